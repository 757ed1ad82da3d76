//! The object in a request or in a response, as it was sent. It becomes JSON only when its event is written.

use bytes::Bytes;
use k1s_object::gvk::GroupVersion;
use serde_json::{Value, value::RawValue};

use crate::negotiate::Media;

/// An object in a request or a response.
#[derive(Debug, Clone)]
pub(super) struct Payload {
    bytes: Bytes,
    media: Media,
    /// Whether `managedFields` are left out.
    omit_managed_fields: bool,
}

impl Payload {
    pub(super) fn new(bytes: Bytes, media: Media, omit_managed_fields: bool) -> Payload {
        Payload { bytes, media, omit_managed_fields }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The object as JSON in one line; `None` if it cannot be decoded.
    pub(super) fn json(&self) -> Option<Vec<u8>> {
        if self.media == Media::Json && !self.has_managed_fields() {
            // A document of several lines would break the line of its event.
            let raw: &RawValue = serde_json::from_slice(&self.bytes).ok()?;
            let text = raw.get().as_bytes();
            if !text.contains(&b'\n') {
                return Some(text.to_vec());
            }
        }
        let mut value = match self.media {
            Media::Json => serde_json::from_slice(&self.bytes).ok()?,
            Media::Yaml => k1s_object::yaml::decode(&self.bytes).ok()?.value,
            Media::Protobuf => decode_protobuf(&self.bytes)?,
        };
        if self.omit_managed_fields {
            drop_managed_fields(&mut value);
        }
        serde_json::to_vec(&value).ok()
    }

    fn has_managed_fields(&self) -> bool {
        self.omit_managed_fields && memchr::memmem::find(&self.bytes, b"managedFields").is_some()
    }
}

fn decode_protobuf(bytes: &[u8]) -> Option<Value> {
    k1s_kinds::protobuf::decode(bytes, |api_version, kind| {
        let GroupVersion { group, version } = GroupVersion::split(api_version);
        k1s_kinds::body(group, version, kind)
    })
    .ok()
}

/// Removes the managed fields of an object, of the items of a list, or of the objects in the rows of a table.
fn drop_managed_fields(value: &mut Value) {
    let drop_from = |object: &mut Value| {
        if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.shift_remove("managedFields");
        }
    };
    drop_from(value);
    for (list, field) in [("items", ""), ("rows", "object")] {
        for item in value.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            match field {
                "" => drop_from(item),
                field => item.get_mut(field).into_iter().for_each(drop_from),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(value: &Value, omit: bool) -> Value {
        let bytes = serde_json::to_vec_pretty(value).unwrap();
        let json = Payload::new(bytes.into(), Media::Json, omit).json().unwrap();
        assert!(!json.contains(&b'\n'), "{}", json.escape_ascii());
        serde_json::from_slice(&json).unwrap()
    }

    #[test]
    fn managed_fields_are_left_out_of_objects_lists_and_tables() {
        let object = |managed: bool| match managed {
            true => json!({"kind": "A", "metadata": {"name": "a", "managedFields": [{"manager": "m"}]}}),
            false => json!({"kind": "A", "metadata": {"name": "a"}}),
        };
        let all = |managed: bool| {
            [
                object(managed),
                json!({"kind": "AList", "metadata": {}, "items": [object(managed), object(managed)]}),
                json!({"kind": "Table", "rows": [{"cells": ["a"], "object": object(managed)}]}),
            ]
        };
        for (with, without) in all(true).iter().zip(&all(false)) {
            assert_eq!(shown(with, true), *without);
            assert_eq!(shown(with, false), *with);
        }
    }

    #[test]
    fn what_is_not_an_object_is_left_out() {
        for (bytes, media) in [("{", Media::Json), ("a: [", Media::Yaml), ("k8s\0\u{1}", Media::Protobuf)] {
            assert_eq!(Payload::new(bytes.into(), media, true).json(), None, "{bytes:?}");
        }
        assert_eq!(Payload::new("a: 1".into(), Media::Yaml, false).json().unwrap(), br#"{"a":1}"#);
    }
}
