//! Uniqueness of items in lists of type set and map.

use std::collections::HashMap;

use k1s_object::field::{Errors, FieldError, Shown};
use serde_json::{Map, Value};

use super::{ListType, Structural};
use crate::go;

/// The duplicates in sets and maps of a custom resource.
pub(super) fn check(schema: &Structural, value: &Value) -> Errors {
    let mut errors = Errors::new();
    if value.is_object() {
        walk(schema, value, &mut String::new(), &mut errors);
    }
    errors
}

fn walk(schema: &Structural, value: &Value, path: &mut String, errors: &mut Errors) {
    use std::fmt::Write as _;
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let length = path.len();
                if let super::Additional::Schema(additional) = &schema.additional {
                    let _ = write!(path, "[{key}]");
                    walk(additional, value, path, errors);
                    path.truncate(length);
                }
                if let Some(property) = schema.property(key) {
                    if length > 0 {
                        path.push('.');
                    }
                    path.push_str(key);
                    walk(property, value, path, errors);
                    path.truncate(length);
                }
            }
        }
        Value::Array(list) => {
            match schema.list_type {
                Some(ListType::Set) => {
                    let refs: Vec<Option<&Value>> = list.iter().map(Some).collect();
                    for index in duplicates(&refs) {
                        if let Some(value) = list.get(index) {
                            errors.push_with(|| duplicate(path, index, go::shown(value)));
                        }
                    }
                }
                Some(ListType::Map) => check_map(schema, list, path, errors),
                _ => {}
            }
            let Some(items) = schema.items() else { return };
            for (index, item) in list.iter().enumerate() {
                let length = path.len();
                let _ = write!(path, "[{index}]");
                walk(items, item, path, errors);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

fn duplicate(path: &str, index: usize, value: Shown) -> FieldError {
    FieldError::new(k1s_object::field::ErrorKind::Duplicate, format!("{path}[{index}]"), value, "")
}

fn check_map(schema: &Structural, list: &[Value], path: &str, errors: &mut Errors) {
    if let Some((index, item)) =
        list.iter().enumerate().find(|(_, item)| !item.is_null() && !item.is_object())
    {
        errors.push(FieldError::new(
            k1s_object::field::ErrorKind::Invalid,
            format!("{path}[{index}]"),
            go::shown(item),
            "must be an object for an array of list-type map",
        ));
        return;
    }
    let keys: Vec<Value> = list.iter().map(|item| key_of(schema, item)).collect();
    let refs: Vec<Option<&Value>> = keys.iter().map(Some).collect();
    for index in duplicates(&refs) {
        if let Some(key) = keys.get(index) {
            errors.push_with(|| duplicate(path, index, Shown::Json(key.clone())));
        }
    }
}

/// The key fields of an item that are present.
pub(super) fn key_of(schema: &Structural, item: &Value) -> Value {
    let mut names: Vec<&str> = schema.list_map_keys().collect();
    names.sort_unstable();
    let mut key = Map::new();
    for name in names {
        if let Some(value) = item.get(name) {
            key.insert(name.to_owned(), value.clone());
        }
    }
    Value::Object(key)
}

/// Whether a value occurs more than once.
pub(super) fn has_duplicates(list: &[Value]) -> bool {
    let refs: Vec<Option<&Value>> = list.iter().map(Some).collect();
    !duplicates(&refs).is_empty()
}

/// The indices at which a value occurs for the second time; further occurrences are not reported.
fn duplicates(list: &[Option<&Value>]) -> Vec<usize> {
    let mut seen: HashMap<String, u32> = HashMap::with_capacity(list.len());
    let mut second = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let times = seen.entry(canonical(*value)).or_insert(0);
        *times += 1;
        if *times == 2 {
            second.push(index);
        }
    }
    second
}

/// JSON with sorted keys, so that equal values have equal texts.
pub(super) fn canonical(value: Option<&Value>) -> String {
    fn write(value: &Value, out: &mut String) {
        match value {
            Value::Object(map) => {
                let mut fields: Vec<_> = map.iter().collect();
                fields.sort_by_key(|(key, _)| *key);
                out.push('{');
                for (key, value) in fields {
                    out.push_str(&Value::from(key.as_str()).to_string());
                    out.push(':');
                    write(value, out);
                    out.push(',');
                }
                out.push('}');
            }
            Value::Array(list) => {
                out.push('[');
                for value in list {
                    write(value, out);
                    out.push(',');
                }
                out.push(']');
            }
            other => out.push_str(&other.to_string()),
        }
    }
    let mut out = String::new();
    if let Some(value) = value {
        write(value, &mut out);
    }
    out
}
