//! `application/vnd.kubernetes.protobuf`: the envelope, the types of the table, and watch frames.

mod read;
mod write;

use serde_json::Value;

use crate::table::Type;

/// The prefix of an encoded object.
pub const MAGIC: &[u8; 4] = b"k8s\0";

/// Maximum nesting of messages.
const DEEPEST: usize = 100;

/// The reason why bytes are not an object, with Go's message where there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtoError {
    /// No bytes.
    #[error("empty data")]
    Empty,
    /// They do not begin with [`MAGIC`].
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    /// Nothing follows the prefix.
    #[error("empty body")]
    EmptyBody,
    /// The envelope has an unknown kind.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// Its version.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// A value extends beyond the end.
    #[error("unexpected EOF")]
    Eof,
    /// An integer of more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A known field has another wire type.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    WireType {
        /// The JSON name of the field.
        field: &'static str,
        /// The wire type found.
        wire: u8,
    },
    /// A wire type that does not exist.
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u8),
    /// Field number 0.
    #[error("proto: illegal tag {0}")]
    IllegalTag(u64),
    /// Messages nested more than 100 levels deep.
    #[error("proto: too deeply nested")]
    TooDeep,
    /// An invalid quantity or embedded JSON document.
    #[error("{0}")]
    Value(String),
}

/// Decodes an object in its envelope to JSON, without what `finish` adds.
///
/// `lookup` finds the type for an `apiVersion` and `kind`; both may be empty if the client omitted them.
pub fn decode(
    bytes: &[u8],
    lookup: impl Fn(&str, &str) -> Option<&'static Type>,
) -> Result<Value, ProtoError> {
    read::enveloped(bytes, &lookup, 0)
}

/// Encodes an object, byte for byte as Go does; `apiVersion` and `kind` go into the envelope.
#[must_use]
pub fn encode(ty: &'static Type, object: &Value, api_version: &str, kind: &str) -> Vec<u8> {
    write::enveloped(ty, object, api_version, kind)
}

/// Encodes a list without holding all its items as JSON: `items` yields them one by one, the last one first.
/// `list` has the other fields; `names` are its apiVersion and kind.
#[must_use]
pub fn encode_list(
    ty: &'static Type,
    list: &Value,
    items: impl Iterator<Item = Value>,
    names: (&str, &str),
) -> Vec<u8> {
    write::enveloped_list(ty, list, items, names)
}

/// Encodes a watch event with its length prefix; `object` is the result of [`encode`].
#[must_use]
pub fn watch_frame(event: &str, object: &[u8]) -> Vec<u8> {
    write::watch_frame(event, object)
}

#[cfg(test)]
mod tests {
    use super::write::NUMBERS;

    #[test]
    fn all_field_numbers_fit_the_writers_tables() {
        for field in crate::types().iter().flat_map(|ty| ty.fields) {
            let numbers = field.proto.iter().flat_map(|proto| proto.within.iter().chain([&proto.number]));
            assert!(
                numbers.copied().all(|number| number > 0 && (number as usize) < NUMBERS),
                "{}",
                field.name
            );
        }
    }
}
