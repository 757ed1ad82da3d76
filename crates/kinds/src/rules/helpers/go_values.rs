//! Values as error messages of Kubernetes show them: by the names of Go structs, maps sorted.

use k1s_object::At;
use serde_json::{Map, Value};

/// The value with all maps sorted by key.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            Value::Object(entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// A label selector with its fields in Go's order.
pub(crate) fn go_selector(selector: &Value) -> Value {
    let mut shown = Map::new();
    if let Some(labels) = selector.get("matchLabels") {
        shown.insert("matchLabels".into(), sorted(labels));
    }
    if let Some(expressions) = selector.get("matchExpressions") {
        // key, operator, values: alphabetical order is the order of the Go struct.
        shown.insert("matchExpressions".into(), sorted(expressions));
    }
    Value::Object(shown)
}

/// The type of a field of a Go struct.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GoField {
    /// A string, empty when missing.
    Text,
    /// A pointer, a list or a map: null when missing.
    Pointer,
    /// A list of structs.
    List(&'static [(&'static str, &'static str, GoField)]),
    /// A pointer to a struct.
    Struct(&'static [(&'static str, &'static str, GoField)]),
}

/// A JSON object as a Go struct: all fields, by their Go names and in their order (Go name, JSON name, type).
pub(crate) fn go_struct(value: &Value, fields: &[(&str, &str, GoField)]) -> Value {
    let mut shown = Map::new();
    for (go, json, field) in fields {
        let inner = value.get(json).filter(|inner| !inner.is_null());
        shown.insert(
            (*go).into(),
            match (inner, field) {
                (Some(inner), GoField::Struct(fields)) => go_struct(inner, fields),
                (Some(Value::Array(items)), GoField::List(fields)) => {
                    items.iter().map(|item| go_struct(item, fields)).collect()
                }
                (Some(inner), _) => inner.clone(),
                (None, GoField::Text) => "".into(),
                (None, _) => Value::Null,
            },
        );
    }
    Value::Object(shown)
}

/// [`go_struct`] of fields that are pointers, lists or maps.
pub(crate) fn go_pointers(at: At<'_, '_>, fields: &[(&str, &str)]) -> Value {
    go_fields(at, fields, GoField::Pointer)
}

/// [`go_struct`] of fields that are strings.
pub(crate) fn go_texts(at: At<'_, '_>, fields: &[(&str, &str)]) -> Value {
    go_fields(at, fields, GoField::Text)
}

fn go_fields(at: At<'_, '_>, fields: &[(&str, &str)], field: GoField) -> Value {
    let fields: Vec<_> = fields.iter().map(|(go, json)| (*go, *json, field)).collect();
    go_struct(at.value().unwrap_or(&Value::Null), &fields)
}
