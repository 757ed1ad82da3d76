//! Whether a value matches its schema.

use std::collections::HashSet;

use serde_json::Value;

use super::{TypeErrors, Typed, item_element};
use crate::{
    path::PathElement,
    schema::{Relationship, Scalar, Schema, Shape, TypeRef},
    value::{go_syntax, go_type, plain},
};

/// Whether lists may have several items with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// As in objects that exist already.
    Allow,
    /// As in applied configurations.
    Refuse,
}

pub(super) fn check_scalar(scalar: Scalar, value: &Value, prefix: &str) -> Result<(), TypeErrors> {
    let fits = match (scalar, value) {
        (_, Value::Null)
        | (Scalar::Numeric, Value::Number(_))
        | (Scalar::String, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Untyped, Value::Number(_) | Value::String(_) | Value::Bool(_)) => return Ok(()),
        (Scalar::Numeric, other) => format!("expected numeric (int or float), got {}", go_type(other)),
        (Scalar::String, other) => {
            format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(other))
        }
        (Scalar::Boolean, other) => format!("expected boolean, got &{{{}}}", plain(other)),
        (Scalar::Untyped, other) => format!("expected any scalar, got &{{{}}}", plain(other)),
    };
    Err(TypeErrors::of(format!("{prefix}{fits}")))
}

impl Typed<'_> {
    /// Checks that the value matches its schema.
    ///
    /// # Errors
    /// All places where it does not.
    pub fn validate(&self, duplicates: Duplicates) -> Result<(), TypeErrors> {
        validate(self.schema, self.ty, &self.value, duplicates)
    }
}

fn validate(schema: &Schema, ty: TypeRef, value: &Value, duplicates: Duplicates) -> Result<(), TypeErrors> {
    let mut errors = TypeErrors::default();
    match (schema.shape(ty, Some(value)), value) {
        (None, _) => return Err(TypeErrors::of("schema error: no type found")),
        (Some(Shape::Scalar(scalar)), value) => check_scalar(scalar, value, "")?,
        (Some(_), Value::Null) => {}
        (Some(Shape::List(list, relationship)), Value::Array(items)) => {
            let mut seen = HashSet::new();
            for (i, item) in items.iter().enumerate() {
                let element = if relationship == Relationship::Granular {
                    match item_element(schema, list, item) {
                        Ok(element) => element,
                        Err(why) => {
                            errors.add(TypeErrors::of(format!("element {i}: {why}")));
                            return Err(errors);
                        }
                    }
                } else {
                    PathElement::Index(i64::try_from(i).unwrap_or(i64::MAX))
                };
                let is_keyed = relationship == Relationship::Granular && duplicates == Duplicates::Refuse;
                if is_keyed && seen.contains(&element) {
                    errors.add(TypeErrors::of(format!("duplicate entries for key {element}")));
                }
                if let Err(found) = validate(schema, list.element, item, duplicates) {
                    errors.add(found.below(&element));
                }
                if is_keyed {
                    seen.insert(element);
                }
            }
        }
        (Some(Shape::List(..)), other) => {
            return Err(TypeErrors::of(format!("expected list, got &{{{}}}", plain(other))));
        }
        (Some(Shape::Map(map, _)), Value::Object(entries)) => {
            for (name, value) in entries {
                let Some(ty) = map.type_of(name) else {
                    let undeclared = TypeErrors::of("field not declared in schema");
                    errors.add(undeclared.below(&PathElement::field(name.as_str())));
                    // kube-apiserver reports one undeclared field of a map.
                    break;
                };
                if let Err(found) = validate(schema, ty, value, duplicates) {
                    errors.add(found.below(&PathElement::field(name.as_str())));
                }
            }
        }
        (Some(Shape::Map(..)), other) => {
            return Err(TypeErrors::of(format!("expected map, got &{{{}}}", plain(other))));
        }
    }
    errors.into_result()
}
