//! The parts of a configuration that would be replaced as a whole.

use serde_json::Value;

use super::Typed;
use crate::{
    path::PathElement,
    schema::{Relationship, Schema, Shape, TypeRef},
};

impl Typed<'_> {
    /// The paths of the lists, maps and structs in this value that are atomic, as kube-apiserver shows them. Mutating
    /// policies must not have any: who sets one field of an atomic struct would remove the others.
    pub fn atomic_paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        collect(self.schema, self.ty, &self.value, &mut String::new(), &mut found);
        found
    }
}

fn collect(schema: &Schema, ty: TypeRef, value: &Value, path: &mut String, found: &mut Vec<String>) {
    match (schema.shape(ty, Some(value)), value) {
        (Some(Shape::Map(map, relationship)), Value::Object(entries)) => {
            if relationship == Relationship::Atomic {
                found.push(path.clone());
            }
            for (name, value) in entries {
                // As upstream, only fields of structs are looked into, not the values of maps.
                if let Some(field) = map.field(name) {
                    collect_below(schema, &PathElement::field(name.as_str()), field.ty, value, path, found);
                }
            }
        }
        (Some(Shape::List(list, relationship)), Value::Array(items)) => {
            if relationship == Relationship::Atomic {
                found.push(path.clone());
            }
            for (index, item) in (0..).zip(items) {
                collect_below(schema, &PathElement::Index(index), list.element, item, path, found);
            }
        }
        _ => {}
    }
}

fn collect_below(
    schema: &Schema,
    element: &PathElement,
    ty: TypeRef,
    value: &Value,
    path: &mut String,
    found: &mut Vec<String>,
) {
    let length = path.len();
    path.push_str(&element.to_string());
    collect(schema, ty, value, path, found);
    path.truncate(length);
}
