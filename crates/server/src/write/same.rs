//! Whether a write changes anything.

use serde_json::{Map, Value};

/// Whether two states of an object are equal except for the resourceVersion and the times of managers.
pub(super) fn same(new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else { return false };
    new.len() == old.len()
        && new.iter().all(|(key, value)| key == "metadata" || old.get(key) == Some(value))
        && match (new.get("metadata"), old.get("metadata")) {
            (Some(Value::Object(new)), Some(Value::Object(old))) => same_metadata(new, old),
            (new, old) => new == old,
        }
}

fn same_metadata(new: &Map<String, Value>, old: &Map<String, Value>) -> bool {
    let counted = |key: &str| !matches!(key, "resourceVersion" | "managedFields");
    let count = |map: &Map<String, Value>| map.keys().filter(|key| counted(key)).count();
    count(new) == count(old)
        && new.iter().all(|(key, value)| !counted(key) || old.get(key) == Some(value))
        && same_managers(new.get("managedFields"), old.get("managedFields"))
}

/// Whether managers own the same fields, whenever they wrote them. Both have them as text.
fn same_managers(new: Option<&Value>, old: Option<&Value>) -> bool {
    let none = Vec::new();
    let new = new.and_then(Value::as_array).unwrap_or(&none);
    let old = old.and_then(Value::as_array).unwrap_or(&none);
    let same_entry = |new: &Value, old: &Value| match (new.as_object(), old.as_object()) {
        (Some(new), Some(old)) => {
            let counted = |key: &str| key != "time";
            let count = |map: &Map<String, Value>| map.keys().filter(|key| counted(key)).count();
            count(new) == count(old)
                && new.iter().all(|(key, value)| !counted(key) || old.get(key) == Some(value))
        }
        _ => new == old,
    };
    new.len() == old.len() && new.iter().zip(old).all(|(new, old)| same_entry(new, old))
}
