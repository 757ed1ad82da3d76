//! Small tools for changing JSON in place: Go's zero values, and fields that are made when missing.

use serde_json::{Map, Value};

/// A JSON object.
pub(crate) type Object = Map<String, Value>;

/// The object itself, made empty when it is something else.
pub(crate) fn object(value: &mut Value) -> &mut Object {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        // Cannot be reached: it was just made one.
        _ => unreachable!("an object"),
    }
}

/// The object in a field, made when missing.
pub(crate) fn child<'a>(map: &'a mut Object, key: &str) -> &'a mut Object {
    object(map.entry(key).or_insert_with(|| Value::Object(Map::new())))
}

/// The object in a field, if there is one.
pub(crate) fn existing<'a>(map: &'a mut Object, key: &str) -> Option<&'a mut Object> {
    map.get_mut(key).and_then(Value::as_object_mut)
}

/// The objects of a list.
pub(crate) fn each<'a>(map: &'a mut Object, key: &str) -> impl Iterator<Item = &'a mut Object> {
    let items: &mut [Value] = match map.get_mut(key) {
        Some(Value::Array(items)) => items,
        _ => &mut [],
    };
    items.iter_mut().filter_map(Value::as_object_mut)
}

/// Whether a field is missing or null: a nil pointer.
pub(crate) fn unset(map: &Object, key: &str) -> bool {
    matches!(map.get(key), None | Some(Value::Null))
}

/// Whether a field is missing or has Go's zero value.
pub(crate) fn zero(map: &Object, key: &str) -> bool {
    match map.get(key) {
        None | Some(Value::Null | Value::Bool(false)) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Number(number)) => number.as_i64() == Some(0),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Bool(true)) => false,
    }
}

/// Sets a pointer that is nil.
pub(crate) fn default_pointer(map: &mut Object, key: &str, value: impl Into<Value>) {
    if unset(map, key) {
        map.insert(key.into(), value.into());
    }
}

/// Sets a value that is zero.
pub(crate) fn default_value(map: &mut Object, key: &str, value: impl Into<Value>) {
    if zero(map, key) {
        map.insert(key.into(), value.into());
    }
}

/// The text in a field, empty when missing.
pub(crate) fn text<'a>(map: &'a Object, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Fields that are pointers in Go: `0` and `false` are not the same as nothing there.
const POINTERS: [&str; 36] = [
    "activeDeadlineSeconds",
    "allowPrivilegeEscalation",
    "automountServiceAccountToken",
    "backoffLimit",
    "backoffLimitPerIndex",
    "completions",
    "defaultMode",
    "enableServiceLinks",
    "expirationSeconds",
    "failedJobsHistoryLimit",
    "fsGroup",
    "hostProcess",
    "hostUsers",
    "manualSelector",
    "maxFailedIndexes",
    "maxSurge",
    "maxUnavailable",
    "minDomains",
    "mode",
    "optional",
    "parallelism",
    "partition",
    "priority",
    "privileged",
    "progressDeadlineSeconds",
    "readOnlyRootFilesystem",
    "replicas",
    "revisionHistoryLimit",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "suspend",
    "terminationGracePeriodSeconds",
    "tolerationSeconds",
];

/// Whether two documents are equal for Go: a missing field equals a zero value, an empty list or map a missing one.
pub(crate) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    same_field_value("", a, b)
}

fn same_field_value(key: &str, a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            a.iter().all(|(key, value)| same_field_value(key, Some(value), b.get(key)))
                && b.iter().all(|(key, value)| a.contains_key(key) || is_zero(key, value))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_field_value("", Some(a), Some(b)))
        }
        (Some(a), Some(b)) => a == b || (is_zero(key, a) && is_zero(key, b)),
        (Some(one), None) | (None, Some(one)) => is_zero(key, one),
        (None, None) => true,
    }
}

/// What Go does not tell from nothing.
fn is_zero(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value && !POINTERS.contains(&key),
        Value::Number(number) => number.as_i64() == Some(0) && !POINTERS.contains(&key),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// Whether a field is the same in two objects.
pub(crate) fn same_field(a: &Value, b: &Value, key: &str) -> bool {
    same(a.get(key), b.get(key))
}

/// Puts the field of `old` into `new`, or removes it.
pub(crate) fn restore(new: &mut Object, old: Option<&Object>, key: &str) {
    match old.and_then(|old| old.get(key)) {
        Some(value) => {
            new.insert(key.into(), value.clone());
        }
        None => {
            new.shift_remove(key);
        }
    }
}

/// A number in a field, 0 when missing.
pub(crate) fn number(value: &Value, pointer: &str) -> i64 {
    value.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// The text at a JSON pointer, empty when missing.
pub(crate) fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
