//! The fields that a value has.

use std::mem;

use serde_json::Value;

use super::{Typed, item_element, sort_by_element};
use crate::{
    path::PathElement,
    schema::{Relationship, Schema, Shape, TypeRef},
    set::FieldSet,
};

impl Typed<'_> {
    /// The fields of an applied configuration: its leaves, its list items, and the keys of maps.
    pub fn field_set(&self) -> FieldSet {
        let mut set = FieldSet::new();
        collect(self.schema, self.ty, &self.value, &mut set);
        set
    }
}

/// Adds the fields below a value to `set`. Returns whether the value itself is a leaf.
fn collect(schema: &Schema, ty: TypeRef, value: &Value, set: &mut FieldSet) -> bool {
    match schema.shape(ty, Some(value)) {
        None => false,
        Some(
            Shape::Scalar(_) | Shape::List(_, Relationship::Atomic) | Shape::Map(_, Relationship::Atomic),
        ) => true,
        Some(Shape::List(list, Relationship::Granular)) => {
            let mut items: Vec<(PathElement, &Value)> = value
                .as_array()
                .into_iter()
                .flatten()
                .map(|item| {
                    // Only a pruned list has items without a key: its field stays, with nothing to own in it.
                    let element = item_element(schema, list, item);
                    (element.unwrap_or_else(|_| PathElement::Key(Box::default())), item)
                })
                .collect();
            sort_by_element(&mut items);
            set.members.reserve(items.len());
            for same in items.chunk_by_mut(|a, b| a.0 == b.0) {
                let [(element, item), rest @ ..] = same else { continue };
                // Items that share a key are owned together, as a whole.
                if rest.is_empty() {
                    let mut child = FieldSet::new();
                    collect(schema, list.element, item, &mut child);
                    if !child.is_empty() {
                        set.children.push((element.clone(), child));
                    }
                }
                set.members.push(mem::replace(element, PathElement::Index(0)));
            }
            false
        }
        Some(Shape::Map(map, Relationship::Granular)) => {
            let Some(entries) = value.as_object() else { return false };
            for (name, value) in entries {
                let field = map.field(name);
                let Some(ty) = field.map(|field| field.ty).or(map.element) else { continue };
                let mut child = FieldSet::new();
                let is_leaf = collect(schema, ty, value, &mut child);
                let is_empty = match value {
                    Value::Null => true,
                    Value::Object(map) => map.is_empty(),
                    _ => false,
                };
                let element = PathElement::field(name.as_str());
                if !child.is_empty() {
                    set.children.push((element.clone(), child));
                }
                if is_leaf || is_empty || field.is_none() {
                    set.members.push(element);
                }
            }
            set.normalize();
            false
        }
    }
}
