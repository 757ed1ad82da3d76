//! `application/vnd.kubernetes.protobuf`: the envelope, any type of the table in it, and the frames of a watch.

mod read;
mod write;

use serde_json::Value;

use crate::table::Type;

/// What an encoded object begins with.
pub const MAGIC: &[u8; 4] = b"k8s\0";

/// Messages may be nested this deep.
const DEEPEST: usize = 100;

/// Why bytes are no object, in Go's words where it has some.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtoError {
    /// There are no bytes.
    #[error("empty data")]
    Empty,
    /// They do not begin with [`MAGIC`].
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    /// There is nothing after it.
    #[error("empty body")]
    EmptyBody,
    /// The envelope names a kind that is not known.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// The version it names.
        api_version: String,
        /// The kind it names.
        kind: String,
    },
    /// A value goes past the end.
    #[error("unexpected EOF")]
    Eof,
    /// A number of more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A known field has another encoding.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    WireType {
        /// The JSON name of the field.
        field: &'static str,
        /// Its encoding here.
        wire: u8,
    },
    /// An encoding that does not exist.
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u8),
    /// Field number 0.
    #[error("proto: illegal tag {0}")]
    IllegalTag(u64),
    /// More than 100 messages in each other.
    #[error("proto: too deeply nested")]
    TooDeep,
    /// A quantity, or a JSON document inside, that cannot be read.
    #[error("{0}")]
    Value(String),
}

/// Decodes an object in its envelope to the JSON that Go would print, short of what `finish` adds.
///
/// `lookup` finds the type of an `apiVersion` and `kind`; both may be empty when the client left them out.
pub fn decode(
    bytes: &[u8],
    lookup: impl Fn(&str, &str) -> Option<&'static Type>,
) -> Result<Value, ProtoError> {
    read::enveloped(bytes, &lookup, 0)
}

/// Encodes an object, byte for byte as Go does; `apiVersion` and `kind` are those of the envelope.
#[must_use]
pub fn encode(ty: &'static Type, object: &Value, api_version: &str, kind: &str) -> Vec<u8> {
    write::enveloped(ty, object, api_version, kind)
}

/// Encodes a list without having all its items in memory as JSON: `items` gives one after the other, the last one first.
/// `list` has its other fields; `names` are its apiVersion and kind.
#[must_use]
pub fn encode_list(
    ty: &'static Type,
    list: &Value,
    items: impl Iterator<Item = Value>,
    names: (&str, &str),
) -> Vec<u8> {
    write::enveloped_list(ty, list, items, names)
}

/// Encodes one event of a watch with the length that frames it; `object` is what [`encode`] gave.
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
