//! Reading and changing JSON the way Go treats its structs: a missing field is the zero value.

use serde_json::{Map, Value};

/// A JSON object.
pub(crate) type Object = Map<String, Value>;

/// The value at this path.
pub(crate) fn find<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// The string at this path, empty when missing.
pub(crate) fn text_at<'v>(value: &'v Value, path: &[&str]) -> &'v str {
    find(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at this path, 0 when missing.
pub(crate) fn number_at(value: &Value, path: &[&str]) -> i64 {
    find(value, path).and_then(Value::as_i64).unwrap_or_default()
}

/// The items of the list at this path.
pub(crate) fn list_at<'v>(value: &'v Value, path: &[&str]) -> &'v [Value] {
    find(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The strings of the list at this path.
pub(crate) fn strings_at<'v>(value: &'v Value, path: &[&str]) -> Vec<&'v str> {
    list_at(value, path).iter().filter_map(Value::as_str).collect()
}

/// The string in a field, empty when missing.
pub(crate) fn text<'a>(map: &'a Object, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The value as an object; replaced by an empty one if it is anything else.
pub(crate) fn object(value: &mut Value) -> &mut Object {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("an object"),
    }
}

/// The object in a field, created if missing or of another type.
pub(crate) fn child<'a>(map: &'a mut Object, key: &str) -> &'a mut Object {
    object(map.entry(key).or_insert_with(|| Value::Object(Map::new())))
}

/// The object in a field, if there is one.
pub(crate) fn existing<'a>(map: &'a mut Object, key: &str) -> Option<&'a mut Object> {
    map.get_mut(key).and_then(Value::as_object_mut)
}

/// The objects of the list in a field.
pub(crate) fn each<'a>(map: &'a mut Object, key: &str) -> impl Iterator<Item = &'a mut Object> {
    let items: &mut [Value] = match map.get_mut(key) {
        Some(Value::Array(items)) => items,
        _ => &mut [],
    };
    items.iter_mut().filter_map(Value::as_object_mut)
}

/// A struct that Go holds by value: created if the client left it out. None if it is of another type.
pub(crate) fn structure<'v>(parent: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    let slot = parent.as_object_mut()?.entry(name).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    slot.is_object().then_some(slot)
}

/// The map of [`structure`].
pub(crate) fn object_in<'v>(value: &'v mut Value, name: &str) -> Option<&'v mut Object> {
    structure(value, name).and_then(Value::as_object_mut)
}

/// A struct behind a pointer: only if the client sent it.
pub(crate) fn pointer<'v>(parent: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    parent.get_mut(name).filter(|value| value.is_object())
}

/// The items of the list in a field.
pub(crate) fn items<'v>(parent: &'v mut Value, name: &str) -> impl Iterator<Item = &'v mut Value> + use<'v> {
    parent.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Whether a field is missing or null, a nil pointer in Go.
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

/// Whether the value is null or an empty string, list or object.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Sets a field that is missing, as for a nil pointer.
pub(crate) fn default_pointer(map: &mut Object, key: &str, value: impl Into<Value>) {
    if unset(map, key) {
        map.insert(key.into(), value.into());
    }
}

/// Sets a field that is missing or zero.
pub(crate) fn default_value(map: &mut Object, key: &str, value: impl Into<Value>) {
    if zero(map, key) {
        map.insert(key.into(), value.into());
    }
}

/// [`default_pointer`] for a value that should be an object.
pub(crate) fn default(parent: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(map) = parent.as_object_mut() {
        default_pointer(map, name, value);
    }
}

/// [`default_value`] for a value that should be an object.
pub(crate) fn default_zero(parent: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(map) = parent.as_object_mut() {
        default_value(map, name, value);
    }
}

/// Sets a field of the object in a field, such as the spec.
pub(crate) fn set_in(value: &mut Value, parent: &str, name: &str, new: impl Into<Value>) {
    if let Some(parent) = object_in(value, parent) {
        parent.insert(name.into(), new.into());
    }
}

/// Sets a field of the object in a field if it is missing or the empty string.
pub(crate) fn default_in(value: &mut Value, parent: &str, name: &str, new: impl Into<Value>) {
    if text_at(value, &[parent, name]).is_empty() {
        set_in(value, parent, name, new);
    }
}

/// Removes a field of the object in a field.
pub(crate) fn remove_in(value: &mut Value, parent: &str, name: &str) {
    if let Some(parent) = value.get_mut(parent).and_then(Value::as_object_mut) {
        parent.shift_remove(name);
    }
}

/// Copies a field from `old`, or removes it if `old` lacks it.
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

/// [`restore`] for values that should be objects.
pub(crate) fn keep(new: &mut Value, old: &Value, name: &str) {
    if let Some(new) = new.as_object_mut() {
        restore(new, old.as_object(), name);
    }
}

/// The decoded length of a base64 string.
pub(crate) fn bytes_len(base64: &str) -> usize {
    let digits = base64.trim_end_matches('=').len();
    digits / 4 * 3 + (digits % 4).saturating_sub(1)
}
