//! The stored form of an object, and how it is assembled for a client.
//!
//! A value in the store is a short header followed by the object's JSON *without* the fields that the reader can derive:
//! `kind` and `apiVersion` (from the path) and `resourceVersion` (the store's revision). `metadata` comes first, so these
//! three are inserted in front of the stored bytes, which are copied unchanged:
//!
//! ```text
//! stored  {"metadata":{                              "name":"a",…},"data":{…}}
//! sent    {"kind":"K","apiVersion":"v1","metadata":{"resourceVersion":"7","name":"a",…},"data":{…}}
//! ```
//!
//! So a read copies bytes and never parses, and an object is encoded once, when it is written.

mod raw_fields;

use bytes::Bytes;
use k1s_object::{Status, depth};
use k1s_store::Revision;
use serde::de::DeserializeSeed;
use serde_json::{Map, Value};

use self::raw_fields::ObjectSeed;

/// The beginning of every stored object.
const HEAD: &[u8] = b"{\"metadata\":{";

/// Why a value in the store cannot be read as an object.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("its header is damaged")]
    Header,
    #[error("it is nested more than {} levels deep", depth::MAX_DEPTH)]
    TooDeep,
    #[error("its JSON is damaged: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it is not an object")]
    NoObject,
    /// The store could not decode it: it is encrypted with a key that is not here, say.
    #[error("{0}")]
    Undecoded(String),
    /// The object is sound, but only a webhook can convert it to the requested version.
    #[error("{0}")]
    Unconvertible(String),
}

/// How values begin that are encrypted.
const ENCRYPTED: &[u8] = b"k8s:enc:";

impl Unreadable {
    /// Why this value has no header.
    fn why(value: &[u8]) -> Unreadable {
        match k1s_store::why_unreadable(value) {
            Some(why) => Unreadable::Undecoded(why.to_owned()),
            None if value.starts_with(ENCRYPTED) => Unreadable::Undecoded(
                "it is encrypted, and this server has no configuration of encryption".to_owned(),
            ),
            None => Unreadable::Header,
        }
    }
}

/// An object in its stored form.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    /// The whole value, as a single reference to keep the overhead per object small.
    value: Bytes,
    /// Identifies the schema it was written with; 0 for built-in kinds. A reader with another schema parses the object.
    pub(crate) stamp: u64,
    /// Its resourceVersion.
    pub(crate) revision: Revision,
}

impl Stored {
    /// Parses the header of a value from the store. Values that are nested too deeply are rejected here, because most
    /// are sent without being parsed.
    pub(crate) fn new(value: &Bytes, revision: Revision) -> Result<Stored, Unreadable> {
        let stored = Stored::any_depth(value, revision)?;
        if depth::is_too_deep_json(stored.json()) { Err(Unreadable::TooDeep) } else { Ok(stored) }
    }

    /// The same without the depth check, for an object of which only the metadata is read.
    pub(crate) fn any_depth(value: &Bytes, revision: Revision) -> Result<Stored, Unreadable> {
        let broken = || Unreadable::why(value);
        let length = usize::from(*value.first().ok_or_else(broken)?);
        let header = value.get(1..1 + length).ok_or_else(broken)?;
        let stamp = header.first_chunk::<8>().ok_or_else(broken)?;
        if !value.get(1 + length..).is_some_and(|json| json.starts_with(HEAD)) {
            return Err(broken());
        }
        Ok(Stored { value: value.clone(), stamp: u64::from_le_bytes(*stamp), revision })
    }

    /// An object that was just stored. Its depth was checked before.
    pub(crate) fn written(value: &Bytes, revision: Revision) -> Result<Stored, Status> {
        Stored::any_depth(value, revision)
            .map_err(|why| Status::internal(format!("an object was stored that cannot be read: {why}")))
    }

    /// The value for the store: `object` without kind, apiVersion and resourceVersion.
    pub(crate) fn encode(object: &Value, version: &str, stamp: u64) -> Result<Bytes, Status> {
        let broken = || Status::internal("an object without metadata cannot be stored");
        let map = object.as_object().ok_or_else(broken)?;
        let metadata = map.get("metadata").and_then(Value::as_object).ok_or_else(broken)?;
        let mut out = Vec::with_capacity(2048);
        out.push(8 + u8::try_from(version.len()).map_err(|_| broken())?);
        out.extend_from_slice(&stamp.to_le_bytes());
        out.extend_from_slice(version.as_bytes());
        out.extend_from_slice(HEAD);
        let mut first = true;
        for (key, value) in metadata.iter().filter(|(key, _)| key.as_str() != "resourceVersion") {
            match key.as_str() {
                "managedFields" => write_managers(&mut out, value, &mut first),
                _ => write_member(&mut out, key, value, &mut first),
            }
        }
        if first {
            return Err(broken());
        }
        out.push(b'}');
        for (key, value) in map {
            if !matches!(key.as_str(), "metadata" | "kind" | "apiVersion") {
                write_member(&mut out, key, value, &mut first);
            }
        }
        out.push(b'}');
        // Without spare capacity: the store and the cache keep these bytes.
        Ok(out.into_boxed_slice().into())
    }

    /// The whole value, as it is in the store.
    pub(crate) fn value(&self) -> &Bytes {
        &self.value
    }

    /// The bytes kept for this object.
    pub(crate) fn len(&self) -> usize {
        self.value.len()
    }

    /// Where the JSON begins.
    fn start(&self) -> usize {
        1 + usize::from(self.value.first().copied().unwrap_or_default())
    }

    /// The JSON as stored: without kind, apiVersion and resourceVersion.
    pub(crate) fn json(&self) -> &[u8] {
        self.value.get(self.start()..).unwrap_or_default()
    }

    /// The API version it was written in.
    pub(crate) fn version(&self) -> &str {
        let version = self.value.get(9..self.start()).unwrap_or_default();
        std::str::from_utf8(version).unwrap_or_default()
    }

    /// The same object at another revision, as a DELETED event shows it.
    pub(crate) fn at(&self, revision: Revision) -> Stored {
        Stored { revision, ..self.clone() }
    }

    /// Appends the object as a client sees it. An empty `kind` leaves kind and apiVersion out, as in the items of
    /// built-in lists.
    pub(crate) fn write(&self, out: &mut Vec<u8>, kind: &str, api_version: &str) {
        let json = self.json();
        out.reserve(json.len() + kind.len() + api_version.len() + 64);
        if kind.is_empty() {
            out.extend_from_slice(HEAD);
        } else {
            out.extend_from_slice(b"{\"kind\":\"");
            out.extend_from_slice(kind.as_bytes());
            out.extend_from_slice(b"\",\"apiVersion\":\"");
            out.extend_from_slice(api_version.as_bytes());
            out.extend_from_slice(b"\",\"metadata\":{");
        }
        out.extend_from_slice(b"\"resourceVersion\":\"");
        write_number(out, self.revision.get());
        out.extend_from_slice(b"\",");
        out.extend_from_slice(json.get(HEAD.len()..).unwrap_or_default());
    }

    /// The metadata as stored: the text of an object, which need not be valid.
    fn metadata_json(&self) -> &[u8] {
        let start = HEAD.len() - 1;
        let rest = self.json().get(HEAD.len()..).unwrap_or_default();
        self.json().get(start..HEAD.len() + end_of_object(rest)).unwrap_or_default()
    }

    /// The metadata alone, of an object whose other parts may be damaged.
    pub(crate) fn metadata(&self) -> Result<Value, Unreadable> {
        Ok(serde_json::from_slice(self.metadata_json())?)
    }

    /// Checks that the JSON is valid; objects that are sent as stored have not been parsed before.
    pub(crate) fn check(&self) -> Result<(), Unreadable> {
        is_json(self.json())
    }

    /// Appends only `"metadata":{…}` as a client sees it; nothing if it is damaged.
    pub(crate) fn write_metadata(&self, out: &mut Vec<u8>) -> Result<(), Unreadable> {
        let metadata = self.metadata_json();
        is_json(metadata)?;
        let rest = metadata.get(1..).unwrap_or_default();
        let end = rest.len();
        out.reserve(end + 64);
        out.extend_from_slice(b"\"metadata\":{\"resourceVersion\":\"");
        write_number(out, self.revision.get());
        out.extend_from_slice(b"\",");
        out.extend_from_slice(rest);
        Ok(())
    }

    /// The object as a client sees it.
    pub(crate) fn to_value(&self, kind: &str, api_version: &str) -> Result<Value, Unreadable> {
        let Value::Object(rest) = serde_json::from_slice(self.json())? else {
            return Err(Unreadable::NoObject);
        };
        Ok(self.with_type(rest, kind, api_version))
    }

    /// The object for a write: the `fieldsV1` of its managers are strings that hold their JSON; see [`crate::managed`].
    pub(crate) fn to_write(&self, kind: &str, api_version: &str) -> Result<Value, Unreadable> {
        let mut json = serde_json::Deserializer::from_slice(self.json());
        let rest = ObjectSeed.deserialize(&mut json)?;
        json.end()?;
        Ok(self.with_type(rest, kind, api_version))
    }

    fn with_type(&self, rest: Map<String, Value>, kind: &str, api_version: &str) -> Value {
        let mut object = Map::with_capacity(rest.len() + 2);
        object.insert("kind".into(), kind.into());
        object.insert("apiVersion".into(), api_version.into());
        object.extend(rest);
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".into(), self.revision.to_string().into());
        }
        Value::Object(object)
    }
}

/// Checks that this is one JSON document in UTF-8.
fn is_json(bytes: &[u8]) -> Result<(), Unreadable> {
    // Skipped strings are not checked for UTF-8 when reading from bytes, so the input is checked first.
    let text = std::str::from_utf8(bytes).map_err(<serde_json::Error as serde::de::Error>::custom)?;
    serde_json::from_str::<serde::de::IgnoredAny>(text)?;
    Ok(())
}

/// The length of the rest of an object after its opening brace, including the closing one.
fn end_of_object(json: &[u8]) -> usize {
    let (mut depth, mut in_string, mut escaped) = (1_usize, false, false);
    for (at, byte) in json.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    json.len()
}

fn write_member(out: &mut Vec<u8>, key: &str, value: &Value, first: &mut bool) {
    if !std::mem::take(first) {
        out.push(b',');
    }
    // Writing to a Vec cannot fail, nor can encoding strings and values.
    let _ = serde_json::to_writer(&mut *out, key);
    out.push(b':');
    let _ = serde_json::to_writer(&mut *out, value);
}

/// Appends `managedFields`. A `fieldsV1` that is a string holds JSON, which is copied; see [`crate::managed`].
fn write_managers(out: &mut Vec<u8>, value: &Value, first: &mut bool) {
    let Some(entries) = value.as_array() else { return write_member(out, "managedFields", value, first) };
    if !std::mem::take(first) {
        out.push(b',');
    }
    out.extend_from_slice(b"\"managedFields\":[");
    for (i, entry) in entries.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        let Some(entry) = entry.as_object() else { continue };
        out.push(b'{');
        let mut first = true;
        for (key, value) in entry {
            match value {
                Value::String(json) if key == "fieldsV1" => {
                    if !std::mem::take(&mut first) {
                        out.push(b',');
                    }
                    out.extend_from_slice(b"\"fieldsV1\":");
                    out.extend_from_slice(json.as_bytes());
                }
                value => write_member(out, key, value, &mut first),
            }
        }
        out.push(b'}');
    }
    out.push(b']');
}

/// Appends a decimal number.
pub(crate) fn write_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        // A remainder of ten fits into a byte.
        digits[at] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_is_sent_as_it_was_stored_with_its_type_and_revision_in_front() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"},
            "metadata": {"resourceVersion": "3", "name": "a"}});
        let stored = Stored::new(&Stored::encode(&object, "v1", 7).unwrap(), Revision::new(1234)).unwrap();
        assert_eq!((stored.version(), stored.stamp), ("v1", 7));
        let mut out = Vec::new();
        stored.write(&mut out, "ConfigMap", "v1");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"1234","name":"a"},"data":{"k":"v"}}"#
        );
        let mut out = Vec::new();
        stored.write(&mut out, "", "");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"metadata":{"resourceVersion":"1234","name":"a"},"data":{"k":"v"}}"#
        );
        assert_eq!(stored.to_value("ConfigMap", "v1").unwrap()["metadata"]["resourceVersion"], "1234");
    }

    #[test]
    fn metadata_ends_at_its_own_closing_brace() {
        let object = json!({"kind": "K", "metadata": {"name": "a}\"{\\", "labels": {"x": "}"}, "y": [{}]}, "data": {"k": "}"}});
        let stored = Stored::new(&Stored::encode(&object, "v1", 7).unwrap(), Revision::new(5)).unwrap();
        let mut out = b"{".to_vec();
        stored.write_metadata(&mut out).unwrap();
        out.push(b'}');
        let mut expected = json!({"metadata": object["metadata"]});
        expected["metadata"]["resourceVersion"] = "5".into();
        assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), expected);
    }

    #[test]
    fn damaged_values_are_errors() {
        for bytes in [&b""[..], b"\x02ab", b"\x0912345678v{\"a\":1}", b"\xff"] {
            assert!(Stored::new(&Bytes::copy_from_slice(bytes), Revision::FIRST).is_err());
        }
        let undecoded = |value: &[u8]| match Stored::new(&Bytes::copy_from_slice(value), Revision::FIRST) {
            Err(Unreadable::Undecoded(why)) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(undecoded(&k1s_store::unreadable("no key fits")), "no key fits");
        assert!(
            undecoded(&[&b"k8s:enc:aesgcm:v1:key1:"[..], &[b'x'; 200]].concat()).contains("it is encrypted")
        );
        let stored =
            |json: &[u8]| Stored::new(&[b"\x0a\0\0\0\0\0\0\0\0v1", json].concat().into(), Revision::FIRST);
        let deep = format!("{{\"metadata\":{{\"name\":\"a\"}},\"x\":{}", "[".repeat(depth::MAX_DEPTH));
        assert!(matches!(stored(deep.as_bytes()), Err(Unreadable::TooDeep)));
        for damaged in
            [&b"{\"metadata\":{\"name\":\"a\"},\"x\":"[..], b"{\"metadata\":{\"name\":\"a\"},\"x\":\"\xff\"}"]
        {
            let stored = stored(damaged).unwrap();
            assert!(stored.check().is_err() && stored.to_value("K", "v1").is_err());
            assert_eq!(stored.metadata().unwrap()["name"], "a");
        }
    }

    #[test]
    fn numbers() {
        for number in [0, 7, 10, 1_234_567, u64::MAX] {
            let mut out = Vec::new();
            write_number(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
