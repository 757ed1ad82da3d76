//! The effect of Go's encoder on a document: zero values without `omitempty` are added, empty ones with it
//! dropped.

use serde_json::{Map, Value};

use crate::table::{Field, Omit, SchemaOther, Shape, Type};

/// Completes a decoded document to what Go encodes after a round trip through the store, where empty lists and
/// maps are lost: one without `omitempty` becomes `null` (but the `items` of a list stay).
///
/// The caller sets `kind` and `apiVersion`.
pub fn finish(ty: &'static Type, doc: &mut Value) {
    if let Value::Object(map) = doc {
        object(ty, map, Empty::Lost);
    }
}

/// Completes a decoded document to what Go encodes before it is stored: like [`finish`], but empty lists and maps stay. The
/// fields of the document that `skip` names stay as they are.
pub fn complete(ty: &'static Type, doc: &mut Value, skip: &[&str]) {
    if let Value::Object(map) = doc {
        object_except(ty, map, Empty::Kept, skip);
    }
}

/// Whether [`complete`] changes a value that is there, rather than only adding some: nulls and empty fields.
#[must_use]
pub fn would_drop(ty: &'static Type, doc: &Value, skip: &[&str]) -> bool {
    doc.as_object().is_some_and(|map| {
        map.iter().any(|(name, value)| !skip.contains(&&**name) && drops_field(ty, name, value))
    })
}

fn drops(ty: &'static Type, map: &Map<String, Value>) -> bool {
    map.iter().any(|(name, value)| drops_field(ty, name, value))
}

fn drops_field(ty: &'static Type, name: &str, value: &Value) -> bool {
    ty.field(name).is_some_and(|field| {
        value.is_null()
            || (!field.pointer
                && field.omit != Omit::Never
                && !(field.omit == Omit::Empty && is_struct(&field.shape))
                && is_zero(&field.shape, value))
            || drops_inside(&field.shape, value)
    })
}

fn drops_inside(shape: &Shape, value: &Value) -> bool {
    match (shape, value) {
        (Shape::Struct(ty) | Shape::SchemaOr(ty, _), Value::Object(map)) => drops(ty, map),
        (Shape::SchemaOr(ty, SchemaOther::Array), Value::Array(items)) => {
            items.iter().filter_map(Value::as_object).any(|map| drops(ty, map))
        }
        (Shape::List(shape), Value::Array(items)) if has_structs(shape) => {
            items.iter().any(|item| drops_inside(shape, item))
        }
        (Shape::Map(shape), Value::Object(map)) if has_structs(shape) => {
            map.values().any(|item| drops_inside(shape, item))
        }
        _ => false,
    }
}

/// What becomes of empty lists and maps without `omitempty`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    Kept,
    Lost,
}

fn object(ty: &'static Type, map: &mut Map<String, Value>, empty: Empty) {
    object_except(ty, map, empty, &[]);
}

fn object_except(ty: &'static Type, map: &mut Map<String, Value>, empty: Empty, skip: &[&str]) {
    map.retain(|name, value| {
        skip.contains(&&**name) || ty.field(name).is_none_or(|field| present(field, value, empty))
    });
    for field in ty.fields {
        if always(field) && !skip.contains(&field.name) && !map.contains_key(field.name) {
            map.insert(field.name.to_owned(), zero(field));
        }
    }
}

/// Whether a field is encoded even if it was never set.
fn always(field: &Field) -> bool {
    match field.omit {
        Omit::Never => true,
        Omit::Empty => !field.pointer && is_struct(&field.shape),
        Omit::Zero => false,
    }
}

/// Whether Go holds a struct, which `omitempty` never omits.
fn is_struct(shape: &Shape) -> bool {
    match shape {
        Shape::Struct(_)
        | Shape::Time
        | Shape::MicroTime
        | Shape::Duration
        | Shape::Quantity
        | Shape::IntOrString
        | Shape::RawExtension
        | Shape::FieldsV1
        | Shape::Json
        | Shape::SchemaOr(..) => true,
        Shape::Bool
        | Shape::Int32
        | Shape::Int64
        | Shape::Uint(..)
        | Shape::Float64
        | Shape::String(_)
        | Shape::Bytes
        | Shape::List(_)
        | Shape::Map(_) => false,
    }
}

/// The encoding of a field that was never set.
fn zero(field: &Field) -> Value {
    if field.pointer {
        return Value::Null;
    }
    match field.shape {
        Shape::Bool | Shape::SchemaOr(_, SchemaOther::Bool) => Value::from(false),
        Shape::Int32 | Shape::Int64 | Shape::Uint(..) | Shape::Float64 | Shape::IntOrString => Value::from(0),
        Shape::String(_) => Value::from(""),
        Shape::Duration => Value::from("0s"),
        Shape::Quantity => Value::from("0"),
        Shape::Struct(ty) => {
            let mut map = Map::new();
            object(ty, &mut map, Empty::Lost);
            Value::Object(map)
        }
        Shape::Bytes
        | Shape::Time
        | Shape::MicroTime
        | Shape::RawExtension
        | Shape::FieldsV1
        | Shape::Json
        | Shape::SchemaOr(..)
        | Shape::List(_)
        | Shape::Map(_) => Value::Null,
    }
}

/// Completes the value of a field; false if it is omitted.
fn present(field: &Field, value: &mut Value, empty: Empty) -> bool {
    if value.is_null() {
        let printed = always(field);
        if printed {
            *value = zero(field);
        }
        return printed;
    }
    inside(&field.shape, value, empty);
    if field.pointer {
        return true;
    }
    match field.omit {
        Omit::Never => {
            if empty == Empty::Lost && is_empty_collection(value, &field.shape) && field.name != "items" {
                *value = Value::Null;
            }
            true
        }
        Omit::Empty => is_struct(&field.shape) || !is_zero(&field.shape, value),
        Omit::Zero => !is_zero(&field.shape, value),
    }
}

fn is_empty_collection(value: &Value, shape: &Shape) -> bool {
    match (shape, value) {
        (Shape::List(_), Value::Array(items)) => items.is_empty(),
        (Shape::Map(_), Value::Object(map)) => map.is_empty(),
        _ => false,
    }
}

/// Completes the structs in a value.
fn inside(shape: &Shape, value: &mut Value, empty: Empty) {
    match (shape, value) {
        (Shape::Struct(ty) | Shape::SchemaOr(ty, _), Value::Object(map)) => object(ty, map, empty),
        (Shape::SchemaOr(ty, SchemaOther::Array), Value::Array(items)) => {
            items.iter_mut().filter_map(Value::as_object_mut).for_each(|map| object(ty, map, empty));
        }
        (Shape::List(shape), Value::Array(items)) if has_structs(shape) => {
            items.iter_mut().for_each(|item| inside(shape, item, empty));
        }
        (Shape::Map(shape), Value::Object(map)) if has_structs(shape) => {
            map.iter_mut().for_each(|(_, item)| inside(shape, item, empty));
        }
        _ => {}
    }
}

fn has_structs(shape: &Shape) -> bool {
    match shape {
        Shape::Struct(_) | Shape::SchemaOr(..) => true,
        Shape::List(shape) | Shape::Map(shape) => has_structs(shape),
        _ => false,
    }
}

/// Whether Go would hold the zero value; empty collections count as zero.
fn is_zero(shape: &Shape, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set && !matches!(shape, Shape::Json | Shape::RawExtension),
        Value::Number(number) => {
            number.as_f64() == Some(0.0) && !matches!(shape, Shape::Json | Shape::RawExtension)
        }
        Value::String(text) => match shape {
            Shape::Quantity => text == "0",
            Shape::Duration => text == "0s",
            Shape::String(_) | Shape::Bytes => text.is_empty(),
            _ => false,
        },
        Value::Array(items) => items.is_empty() && matches!(shape, Shape::List(_)),
        Value::Object(map) => match shape {
            Shape::Struct(ty) => map.iter().all(|(name, value)| {
                ty.field(name)
                    .is_some_and(|field| value.is_null() || !field.pointer && is_zero(&field.shape, value))
            }),
            Shape::Map(_) => map.is_empty(),
            _ => false,
        },
    }
}
