//! Merging a configuration into an object.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{TypeErrors, Typed, is_leaf, item_element, items, validate::check_scalar};
use crate::{
    path::PathElement,
    schema::{List, Map as SchemaMap, Relationship, Schema, Shape, TypeRef},
    value::equal,
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

    /// Whether merging a configuration changes nothing. Where that is not easily seen, it is `false`.
    pub(crate) fn holds(&self, config: &Typed<'_>) -> bool {
        holds(self.schema, self.ty, &self.value, &config.value)
    }
}

/// The most items of a list that [`Typed::holds`] looks through.
const MAX_HELD_ITEMS: usize = 64;

/// Whether merging `config` into `live` changes nothing; `false` also where only [`merge`] can tell.
fn holds(schema: &Schema, ty: TypeRef, live: &Value, config: &Value) -> bool {
    match (schema.shape(ty, Some(config)), live, config) {
        (None, _, _) | (_, _, Value::Null) => false,
        (Some(Shape::Map(map, Relationship::Granular)), Value::Object(live), Value::Object(config)) => {
            config.is_empty() == live.is_empty()
                && config.iter().all(|(name, value)| match (map.type_of(name), live.get(name)) {
                    (Some(ty), Some(live)) => holds(schema, ty, live, value),
                    _ => false,
                })
        }
        (Some(Shape::List(list, Relationship::Granular)), Value::Array(live), Value::Array(config)) => {
            config.is_empty() == live.is_empty() && holds_items(schema, list, live, config)
        }
        (Some(_), live, config) => equal(live, config),
    }
}

/// The same of the items of a list: those of the configuration are in the same order, and no key is there twice.
fn holds_items(schema: &Schema, list: &List, live: &[Value], config: &[Value]) -> bool {
    if live.len() > MAX_HELD_ITEMS {
        return false;
    }
    let elements = |items: &[Value]| -> Option<Vec<PathElement>> {
        items.iter().map(|item| item_element(schema, list, item).ok()).collect()
    };
    let (Some(left), Some(right)) = (elements(live), elements(config)) else { return false };
    let twice = |(i, element): (usize, &PathElement)| left.iter().skip(i + 1).any(|other| other == element);
    let mut rest = left.iter().zip(live);
    !left.iter().enumerate().any(twice)
        && right.iter().zip(config).all(|(element, item)| {
            rest.find(|(other, _)| *other == element)
                .is_some_and(|(_, live)| holds(schema, list.element, live, item))
        })
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
        // What only the object has stays.
        (Some(left), None) => Ok(Some(left.clone())),
        (Some(Value::Object(left)), Some(right @ Value::Object(new)))
            if let Some(Shape::Map(map, relationship)) = schema.shape(ty, Some(right))
                && !is_leaf(relationship, left.is_empty(), new.is_empty()) =>
        {
            let mut out = left.clone();
            merge_fields(schema, map, &mut out, new)?;
            Ok((!out.is_empty()).then_some(Value::Object(out)))
        }
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

/// Merges fields in place: a copy of the whole object is cheaper than a new map at each level.
fn merge_fields(
    schema: &Schema,
    map: &SchemaMap,
    out: &mut Map<String, Value>,
    new: &Map<String, Value>,
) -> Result<(), TypeErrors> {
    let mut errors = TypeErrors::default();
    for (name, value) in new {
        let Some(ty) = map.type_of(name) else {
            // A field that the schema does not have cannot be merged.
            out.insert(name.clone(), value.clone());
            continue;
        };
        let merged = match (out.get_mut(name), value) {
            (Some(Value::Object(old)), Value::Object(new))
                if let Some(Shape::Map(map, relationship)) = schema.shape(ty, Some(value))
                    && !is_leaf(relationship, old.is_empty(), new.is_empty()) =>
            {
                merge_fields(schema, map, old, new).map(|()| old.is_empty().then_some(None))
            }
            (old, value) => merge(schema, ty, old.as_deref(), Some(value)).map(Some),
        };
        match merged {
            Ok(None) => {}
            Ok(Some(Some(value))) => drop(out.insert(name.clone(), value)),
            Ok(Some(None)) => drop(out.shift_remove(name)),
            Err(found) => errors.add(found.below(&PathElement::field(name.as_str()))),
        }
    }
    errors.into_result()
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
            let mut out = old.clone();
            merge_fields(schema, map, &mut out, new)?;
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
