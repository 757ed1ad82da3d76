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
        let existing = self.field_set();
        let mut with_keys = fields.clone();
        for path in fields.paths() {
            if !existing.has(&path.0) {
                continue;
            }
            for (i, element) in path.0.iter().enumerate() {
                let PathElement::Key(keys) = element else { continue };
                for (name, _) in keys {
                    let mut key_path = path.0.get(..=i).unwrap_or_default().to_vec();
                    key_path.push(PathElement::Field(name.clone()));
                    with_keys.insert(&key_path);
                }
            }
        }
        self.with(walk(self.schema, self.ty, &self.value, &with_keys, true).unwrap_or(Value::Null))
    }
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
