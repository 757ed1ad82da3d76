//! JSON Merge Patch (RFC 7386) as kube-apiserver applies it, and its creation.

use serde_json::{Map, Value};

use super::{PatchError, remove_all};
use crate::decode::type_name;

/// Whether a document can be a merge patch. `validate`: fields are validated, with warnings or strictly;
/// otherwise a list is accepted and replaces the object.
pub fn check(patch: &Value, validate: bool) -> Result<(), PatchError> {
    match patch {
        Value::Object(_) => Ok(()),
        Value::Array(_) if !validate => Ok(()),
        Value::Null => Err(PatchError::Shape("Invalid JSON Patch".into())),
        _ if !validate => Err(PatchError::Shape("Invalid JSON Patch".into())),
        other => Err(PatchError::Shape(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            type_name(other)
        ))),
    }
}

/// Applies a merge patch.
///
/// Unlike in the RFC, nulls are also removed from objects within lists, unless the list replaces an object.
pub fn apply(doc: &mut Value, patch: Value) {
    match (doc, patch) {
        (Value::Object(doc), Value::Object(patch)) => merge(doc, patch),
        (doc, mut patch) => {
            prune(&mut patch);
            *doc = patch;
        }
    }
}

fn merge(doc: &mut Map<String, Value>, patch: Map<String, Value>) {
    let mut gone = Vec::new();
    for (key, value) in patch {
        if value.is_null() {
            gone.push(key);
            continue;
        }
        match doc.get_mut(&key) {
            Some(current) => match (current, value) {
                (Value::Object(current), Value::Object(value)) => merge(current, value),
                (current @ Value::Object(_), value) => *current = value,
                (current, mut value) => {
                    prune(&mut value);
                    *current = value;
                }
            },
            None => {
                let mut value = value;
                prune(&mut value);
                doc.insert(key, value);
            }
        }
    }
    remove_all(doc, &gone);
}

/// Removes null members from all objects; nulls in lists stay.
pub(super) fn prune(value: &mut Value) {
    match value {
        Value::Object(map) => map.retain(|_, value| {
            prune(value);
            !value.is_null()
        }),
        Value::Array(list) => list.iter_mut().for_each(prune),
        _ => {}
    }
}

/// The merge patch from `from` to `to`; `{}` if they are equal. A null in an object of `to` cannot be expressed
/// and becomes a missing field.
pub fn diff(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return to.clone();
    };
    let mut patch = Map::new();
    for (key, to) in to {
        match from.get(key) {
            Some(from) if from == to => {}
            Some(from @ Value::Object(_)) if to.is_object() => {
                patch.insert(key.clone(), diff(from, to));
            }
            _ => {
                patch.insert(key.clone(), to.clone());
            }
        }
    }
    for key in from.keys() {
        if !to.contains_key(key) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    Value::Object(patch)
}

/// Sorts the keys of every object that the patch traverses, as kube-apiserver does; visible where an error
/// quotes the patched document.
pub fn sort_touched(doc: &mut Value, patch: &Value) {
    match (doc, patch) {
        (Value::Object(doc), Value::Object(patch)) => {
            doc.sort_keys();
            for (key, patch) in patch {
                if let Some(doc) = doc.get_mut(key) {
                    sort_touched(doc, patch);
                }
            }
        }
        (Value::Array(doc), Value::Array(patch)) => {
            doc.iter_mut().zip(patch).for_each(|(doc, patch)| sort_touched(doc, patch));
        }
        _ => {}
    }
}
