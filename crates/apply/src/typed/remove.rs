//! Removing fields from a value, and extracting them.

use serde_json::{Map, Value};

use super::{Typed, item_element};
use crate::{
    path::PathElement,
    schema::{Relationship, Schema, Shape, TypeRef},
    set::FieldSet,
};

impl<'a> Typed<'a> {
    /// The value without the fields of a set.
    #[must_use]
    pub fn remove(&self, fields: &FieldSet) -> Typed<'a> {
        self.with(walk(self.schema, self.ty, &self.value, fields, false).unwrap_or(Value::Null))
    }

    /// Only the fields of a set, with the keys of the list items that they are in.
    #[must_use]
    pub fn extract(&self, fields: &FieldSet) -> Typed<'a> {
        let (with_keys, _) = add_keys(fields, &self.field_set());
        self.with(walk(self.schema, self.ty, &self.value, &with_keys, true).unwrap_or(Value::Null))
    }
}

/// Adds the keys of list items that have a path in `existing`. Returns whether any path has.
fn add_keys(fields: &FieldSet, existing: &FieldSet) -> (FieldSet, bool) {
    let mut out =
        FieldSet { members: fields.members.clone(), children: Vec::with_capacity(fields.children.len()) };
    let mut any_exists = false;
    let none = FieldSet::new();
    let mut visit = |element: &PathElement, below: &FieldSet| {
        let (mut below, mut exists) = add_keys(below, existing.child(element).unwrap_or(&none));
        exists |= existing.has_member(element) && fields.has_member(element);
        if let (PathElement::Key(keys), true) = (element, exists) {
            keys.iter().for_each(|(name, _)| below.insert(&[PathElement::Field(name.clone())]));
        }
        if !below.is_empty() {
            out.children.push((element.clone(), below));
        }
        any_exists |= exists;
    };
    for (element, below) in &fields.children {
        visit(element, below);
    }
    for element in &fields.members {
        if fields.child(element).is_none() {
            visit(element, &none);
        }
    }
    out.normalize();
    (out, any_exists)
}

/// Removes or extracts fields. `None` if nothing is left.
fn walk(schema: &Schema, ty: TypeRef, value: &Value, fields: &FieldSet, extract: bool) -> Option<Value> {
    let whole = || extract.then(|| value.clone());
    match schema.shape(ty, Some(value))? {
        Shape::Scalar(_) => Some(value.clone()),
        Shape::List(list, relationship) => {
            let items = value.as_array()?;
            if items.is_empty() || relationship == Relationship::Atomic {
                return whole();
            }
            let mut out = Vec::with_capacity(items.len());
            for item in items {
                let element = item_element(schema, list, item);
                let named = element.as_ref().is_ok_and(|element| fields.has_member(element));
                let below = element.as_ref().ok().and_then(|element| fields.child(element));
                let part = |below: &FieldSet| {
                    walk(schema, list.element, item, below, extract).unwrap_or(Value::Null)
                };
                match (extract, named, below) {
                    (true, _, Some(below)) | (false, false, Some(below)) => out.push(part(below)),
                    (true, true, None) | (false, false, None) => out.push(item.clone()),
                    (true, false, None) | (false, true, _) => {}
                }
            }
            (!out.is_empty()).then_some(Value::Array(out))
        }
        Shape::Map(map, relationship) => {
            let entries = value.as_object()?;
            if entries.is_empty() || relationship == Relationship::Atomic {
                return whole();
            }
            let mut out = Map::with_capacity(entries.len());
            for (name, value) in entries {
                let element = PathElement::field(name.as_str());
                let below = fields.child(&element);
                let part = |below: &FieldSet| match map.type_of(name) {
                    Some(ty) => walk(schema, ty, value, below, extract).unwrap_or(Value::Null),
                    None => value.clone(),
                };
                if fields.has_member(&element) {
                    if extract {
                        // Of a map that is owned without its keys, nothing is left but null.
                        let owned = part(below.unwrap_or(&FieldSet::new()));
                        out.insert(name.clone(), owned);
                    }
                } else if let Some(below) = below {
                    out.insert(name.clone(), part(below));
                } else if !extract {
                    out.insert(name.clone(), value.clone());
                }
            }
            (!out.is_empty()).then_some(Value::Object(out))
        }
    }
}
