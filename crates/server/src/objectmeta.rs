//! Fields of `metadata` in an object's JSON.

use serde_json::{Map, Value};

/// The metadata of an object, inserted if missing.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    match metadata {
        Value::Object(map) => map,
        _ => unreachable!("it was set to an object above"),
    }
}

/// A field of an object's metadata, empty if missing.
pub(crate) fn meta_text<'a>(object: &'a Value, field: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get(field))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The finalizers of an object.
pub(crate) fn finalizers(object: &Value) -> &[Value] {
    object["metadata"]["finalizers"].as_array().map_or(&[], Vec::as_slice)
}

/// Whether a terminating object has nothing left to wait for.
pub(crate) fn is_gone(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let waits = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) > 0;
    let spec_finalizers = object["kind"] == "Namespace"
        && object["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    !meta_text(object, "deletionTimestamp").is_empty()
        && finalizers(object).is_empty()
        && !waits
        && !spec_finalizers
}

/// The value of a label, empty if there is none.
pub(crate) fn metadata_label<'a>(object: &'a Value, label: &str) -> &'a str {
    object.get("metadata").and_then(|metadata| metadata["labels"][label].as_str()).unwrap_or_default()
}
