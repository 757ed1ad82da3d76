//! Metadata that the server controls.

use serde_json::Value;

use super::json::{keep, object_in, structure};

/// Restores from `old` the metadata that an update of `/status` may not change.
pub(crate) fn reset_meta_for_status(new: &mut Value, old: &Value) {
    let (Some(meta), Some(before)) = (structure(new, "metadata"), old.get("metadata")) else { return };
    for name in ["deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences"]
    {
        keep(meta, before, name);
    }
}

/// Before an update of `/status` that may not change the metadata.
pub(crate) fn status_alone(new: &mut Value, old: &Value) {
    crate::rules::only_status(new, old);
    reset_meta_for_status(new, old);
}

/// Sets `metadata.generation`.
pub(crate) fn set_generation(object: &mut Value, generation: i64) {
    if let Some(meta) = structure(object, "metadata").and_then(Value::as_object_mut) {
        meta.insert("generation".into(), generation.into());
    }
}

/// Adds a finalizer unless it is there.
pub(crate) fn add_finalizer(value: &mut Value, finalizer: &str) {
    let Some(meta) = object_in(value, "metadata") else { return };
    let finalizers = meta.entry("finalizers").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(items) = finalizers.as_array_mut()
        && !items.iter().any(|item| item == finalizer)
    {
        items.push(finalizer.into());
    }
}
