//! Merging a configuration into an object.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{TypeErrors, Typed, is_leaf, item_element, items, validate::check_scalar};
use crate::{
    path::PathElement,
    schema::{List, Schema, Shape, TypeRef},
};

impl<'a> Typed<'a> {
    /// This object with a configuration merged into it: leaves of the configuration win, everything else stays.
    ///
    /// # Errors
    /// A list item without a key, several with the same key in the configuration, or a value that is no scalar on both
    /// sides.
    pub fn merge(&self, config: &Typed<'_>) -> Result<Typed<'a>, TypeErrors> {
        let merged = merge(self.schema, self.ty, Some(&self.value), Some(&config.value))?;
        Ok(self.with(merged.unwrap_or(Value::Null)))
    }
}

fn merge(
    schema: &Schema,
    ty: TypeRef,
    left: Option<&Value>,
    right: Option<&Value>,
) -> Result<Option<Value>, TypeErrors> {
    let one = |shape: Option<Shape<'_>>| match shape {
        Some(shape) => merge_as(schema, shape, left, right),
        None => Err(TypeErrors::of("schema error: no type found")),
    };
    match (left, right) {
        (left, None) => one(schema.shape(ty, left)),
        (Some(left), Some(right)) if !schema.same_shape(ty, left, right) => {
            let before = one(schema.shape(ty, Some(left)));
            let after = one(schema.shape(ty, Some(right)));
            match (before, after) {
                (Err(mut before), Err(after)) => {
                    before.add(after);
                    Err(before)
                }
                (Err(error), _) => Err(error),
                (_, after) => after,
            }
        }
        (_, right) => one(schema.shape(ty, right)),
    }
}

/// The right value if there is one.
fn newer(left: Option<&Value>, right: Option<&Value>) -> Option<Value> {
    right.or(left).cloned()
}

fn merge_as(
    schema: &Schema,
    shape: Shape<'_>,
    left: Option<&Value>,
    right: Option<&Value>,
) -> Result<Option<Value>, TypeErrors> {
    match shape {
        Shape::Scalar(scalar) => {
            let check = |value: Option<&Value>, side| value.map_or(Ok(()), |v| check_scalar(scalar, v, side));
            if let (Err(mut left), Err(right)) = (check(left, "lhs: "), check(right, "rhs: ")) {
                left.add(right);
                return Err(left);
            }
            Ok(newer(left, right))
        }
        Shape::List(list, relationship) => {
            let (old, new) = (items(left), items(right));
            let empty = |items: Option<&[Value]>| items.is_none_or(<[Value]>::is_empty);
            if is_leaf(relationship, empty(old), empty(new)) {
                return Ok(newer(left, right));
            }
            merge_lists(schema, list, old.unwrap_or_default(), new.unwrap_or_default())
        }
        Shape::Map(map, relationship) => {
            let none = Map::new();
            let old = left.and_then(Value::as_object).unwrap_or(&none);
            let new = right.and_then(Value::as_object).unwrap_or(&none);
            if is_leaf(relationship, old.is_empty(), new.is_empty()) {
                return Ok(newer(left, right));
            }
            let mut errors = TypeErrors::default();
            let mut out = Map::with_capacity(old.len() + new.len());
            let mut one = |name: &str, old: Option<&Value>, new: Option<&Value>| {
                let Some(ty) = map.type_of(name) else {
                    // A field that the schema does not have cannot be merged.
                    out.extend(newer(old, new).map(|value| (name.to_owned(), value)));
                    return;
                };
                match merge(schema, ty, old, new) {
                    Ok(value) => out.extend(value.map(|value| (name.to_owned(), value))),
                    Err(found) => errors.add(found.below(&PathElement::field(name))),
                }
            };
            for (name, value) in old {
                one(name, Some(value), new.get(name));
            }
            for (name, value) in new {
                if !old.contains_key(name) {
                    one(name, None, Some(value));
                }
            }
            errors.into_result()?;
            Ok((!out.is_empty()).then_some(Value::Object(out)))
        }
    }
}

/// The items of a list by key; `None` for a key of several items, which are not merged.
type Indexed<'e, 'v> = HashMap<&'e PathElement, Option<&'v Value>>;

fn elements(schema: &Schema, list: &List, values: &[Value], errors: &mut TypeErrors) -> Vec<PathElement> {
    let mut out = Vec::with_capacity(values.len());
    for (i, item) in values.iter().enumerate() {
        match item_element(schema, list, item) {
            Ok(element) => out.push(element),
            Err(why) => errors.add(TypeErrors::of(format!("element {i}: {why}"))),
        }
    }
    out
}

/// Items by their elements, and the elements of items that are not the first with theirs.
fn index<'e, 'v>(
    elements: &'e [PathElement],
    values: &'v [Value],
) -> (Indexed<'e, 'v>, Vec<&'e PathElement>) {
    let mut items: Indexed<'e, 'v> = HashMap::with_capacity(elements.len());
    let mut duplicates = Vec::new();
    for (element, value) in elements.iter().zip(values) {
        items
            .entry(element)
            .and_modify(|item| {
                *item = None;
                duplicates.push(element);
            })
            .or_insert(Some(value));
    }
    (items, duplicates)
}

/// Merges lists by key. Items of the configuration keep their order; items that only the object has stay where they are
/// relative to their neighbours, as far as the order of the configuration allows.
fn merge_lists(
    schema: &Schema,
    list: &List,
    old: &[Value],
    new: &[Value],
) -> Result<Option<Value>, TypeErrors> {
    let mut errors = TypeErrors::default();
    let right_elements = elements(schema, list, new, &mut errors);
    let left_elements = elements(schema, list, old, &mut errors);
    errors.into_result()?;
    let (right, duplicates) = index(&right_elements, new);
    let (left, _) = index(&left_elements, old);
    let mut errors = TypeErrors::default();
    for element in duplicates {
        errors.add(TypeErrors::of(format!("duplicate entries for key {element}")));
    }
    errors.into_result()?;

    let mut out: Vec<Value> = Vec::with_capacity(old.len().max(new.len()));
    let mut errors = TypeErrors::default();
    let mut push = |element: &PathElement, old: Option<&Value>, new: Option<&Value>| match merge(
        schema,
        list.element,
        old,
        new,
    ) {
        Ok(value) => out.extend(value),
        Err(found) => errors.add(found.below(element)),
    };
    let both = |element: &PathElement| {
        // Items that share a key are replaced by the configuration's item, together.
        let old = left.get(element).copied().flatten();
        (old, right.get(element).copied().flatten())
    };
    // The items that both have, in the configuration's order; the first one is the next to be written.
    let mut shared = right_elements.iter().filter(|element| left.contains_key(element)).peekable();
    let mut merged: HashSet<&PathElement> = HashSet::new();
    let (mut l, mut r) = (0, 0);
    while l < left_elements.len() || r < right_elements.len() {
        let (at_left, at_right) = (left_elements.get(l), right_elements.get(r));
        if let (Some(element), Some(next)) = (at_left, at_right) {
            if element == next {
                merged.insert(next);
                let (old, new) = both(element);
                push(element, old, new);
                shared.next();
                l += 1;
                r += 1;
                continue;
            }
            // An item that the configuration places later moves there.
            if right.contains_key(element) && shared.peek().is_some_and(|next| *next != element) {
                l += 1;
                continue;
            }
        }
        if let Some(element) = at_left {
            if !right.contains_key(element) {
                push(element, old.get(l), None);
                l += 1;
                continue;
            }
            if merged.contains(element) {
                l += 1;
            }
        }
        if let Some(element) = at_right {
            merged.insert(element);
            let (old, new) = both(element);
            push(element, old, new);
            if shared.peek() == Some(&element) {
                shared.next();
            }
            r += 1;
        }
    }
    errors.into_result()?;
    Ok((!out.is_empty()).then_some(Value::Array(out)))
}
