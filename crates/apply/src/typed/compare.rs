//! What changed between two values.

use serde_json::{Map, Value};

use super::{TypeErrors, Typed, is_leaf, item_element, items, sort_by_element, validate::check_scalar};
use crate::{
    path::PathElement,
    schema::{List, Relationship, Schema, Shape, TypeRef},
    set::FieldSet,
    value::{equal, same},
};

/// The differences between two values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields that only the left value has.
    pub removed: FieldSet,
    /// Leaves that both have, with different values.
    pub modified: FieldSet,
    /// Fields that only the right value has.
    pub added: FieldSet,
}

impl Comparison {
    /// Whether there is no difference.
    pub fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    fn normalize(&mut self) {
        self.removed.normalize();
        self.modified.normalize();
        self.added.normalize();
    }

    /// Adds the differences below an element.
    fn extend(&mut self, element: &PathElement, child: Comparison, own: Own) {
        for (into, below, itself) in [
            (&mut self.removed, child.removed, own.removed),
            (&mut self.modified, child.modified, own.modified),
            (&mut self.added, child.added, own.added),
        ] {
            if !below.is_empty() {
                into.children.push((element.clone(), below));
            }
            if itself {
                into.members.push(element.clone());
            }
        }
    }
}

/// What happened to the value itself.
#[derive(Debug, Clone, Copy, Default)]
struct Own {
    removed: bool,
    modified: bool,
    added: bool,
}

impl Typed<'_> {
    /// The differences between this value and a newer one of the same type.
    ///
    /// # Errors
    /// A list item without a key; a value that is no scalar on both sides.
    pub fn compare(&self, newer: &Typed<'_>) -> Result<Comparison, TypeErrors> {
        let mut out = Comparison::default();
        compare(self.schema, self.ty, Some(&self.value), Some(&newer.value), &mut out)?;
        Ok(out)
    }
}

/// All fields of a value that only one side has, and which therefore belongs to the result itself.
fn all(schema: &Schema, ty: TypeRef, value: &Value, out: &mut FieldSet) -> Result<(), TypeErrors> {
    match schema.shape(ty, Some(value)) {
        None => Err(TypeErrors::of("schema error: no type found")),
        Some(
            Shape::Scalar(_) | Shape::List(_, Relationship::Atomic) | Shape::Map(_, Relationship::Atomic),
        ) => Ok(()),
        Some(Shape::List(list, Relationship::Granular)) => {
            all_items(schema, list, items(Some(value)).unwrap_or_default(), out)
        }
        Some(Shape::Map(map, Relationship::Granular)) => {
            let mut errors = TypeErrors::default();
            for (name, value) in value.as_object().into_iter().flatten() {
                let Some(ty) = map.type_of(name) else { continue };
                let mut child = FieldSet::new();
                let element = PathElement::field(name.as_str());
                match all(schema, ty, value, &mut child) {
                    Ok(()) if child.is_empty() => {}
                    Ok(()) => out.children.push((element.clone(), child)),
                    Err(found) => errors.add(found.below(&element)),
                }
                out.members.push(element);
            }
            out.normalize();
            errors.into_result()
        }
    }
}

/// All fields of the items of a list.
fn all_items(schema: &Schema, list: &List, items: &[Value], out: &mut FieldSet) -> Result<(), TypeErrors> {
    let mut errors = TypeErrors::default();
    let mut found: Vec<(PathElement, FieldSet)> = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        match item_element(schema, list, item) {
            Ok(element) => {
                let mut child = FieldSet::new();
                match all(schema, list.element, item, &mut child) {
                    Ok(()) => found.push((element, child)),
                    Err(found) => errors.add(found.below(&element)),
                }
            }
            Err(why) => errors.add(TypeErrors::of(format!("element {i}: {why}"))),
        }
    }
    errors.into_result()?;
    found.sort_by(|a, b| a.0.cmp(&b.0));
    // Items that share a key are one field, as a whole.
    found.dedup_by(|later, first| {
        let same = later.0 == first.0;
        if same {
            first.1 = FieldSet::new();
        }
        same
    });
    out.members = found.iter().map(|(element, _)| element.clone()).collect();
    found.retain(|(_, child)| !child.is_empty());
    out.children = found;
    Ok(())
}

fn compare(
    schema: &Schema,
    ty: TypeRef,
    left: Option<&Value>,
    right: Option<&Value>,
    out: &mut Comparison,
) -> Result<Own, TypeErrors> {
    match (left, right) {
        (None, Some(value)) => {
            all(schema, ty, value, &mut out.added)?;
            return Ok(Own { added: true, ..Own::default() });
        }
        (Some(value), None) => {
            all(schema, ty, value, &mut out.removed)?;
            return Ok(Own { removed: true, ..Own::default() });
        }
        _ => {}
    }
    let mut own = Own::default();
    let mut errors = TypeErrors::default();
    let mut leaf = false;
    let mut visit = |shape: Option<Shape<'_>>, leaf: &mut bool| {
        let Some(shape) = shape else {
            errors.add(TypeErrors::of("schema error: no type found"));
            return;
        };
        match compare_as(schema, shape, left, right, out) {
            Ok(is_leaf) => *leaf = is_leaf,
            Err(found) => errors.add(found),
        }
        if *leaf {
            match (left, right) {
                (None, _) => own.added = true,
                (_, None) => own.removed = true,
                (Some(left), Some(right)) => own.modified |= !equal(left, right),
            }
        }
    };
    match (left, right) {
        (Some(a), Some(b)) if !schema.same_shape(ty, a, b) => {
            visit(schema.shape(ty, left), &mut false);
            visit(schema.shape(ty, right), &mut leaf);
        }
        (left, None) => visit(schema.shape(ty, left), &mut leaf),
        (_, right) => visit(schema.shape(ty, right), &mut leaf),
    }
    if !leaf {
        own.added |= left.is_none();
        own.removed |= right.is_none() && left.is_some();
    }
    errors.into_result()?;
    Ok(own)
}

/// Compares two values as one shape. Returns whether they are compared as a whole.
fn compare_as(
    schema: &Schema,
    shape: Shape<'_>,
    left: Option<&Value>,
    right: Option<&Value>,
    out: &mut Comparison,
) -> Result<bool, TypeErrors> {
    match shape {
        Shape::Scalar(scalar) => {
            let check = |value: Option<&Value>, side| value.map_or(Ok(()), |v| check_scalar(scalar, v, side));
            if let (Err(mut left), Err(right)) = (check(left, "lhs: "), check(right, "rhs: ")) {
                left.add(right);
                return Err(left);
            }
            Ok(true)
        }
        Shape::List(list, relationship) => {
            let (left, right) = (items(left), items(right));
            let empty = |items: Option<&[Value]>| items.is_none_or(<[Value]>::is_empty);
            if is_leaf(relationship, empty(left), empty(right)) {
                return Ok(true);
            }
            compare_lists(schema, list, left.unwrap_or_default(), right.unwrap_or_default(), out)?;
            Ok(false)
        }
        Shape::Map(map, relationship) => {
            let none = Map::new();
            let left = left.and_then(Value::as_object).unwrap_or(&none);
            let right = right.and_then(Value::as_object).unwrap_or(&none);
            if is_leaf(relationship, left.is_empty(), right.is_empty()) {
                return Ok(true);
            }
            let mut errors = TypeErrors::default();
            let mut one = |name: &str, left: Option<&Value>, right: Option<&Value>| {
                let Some(ty) = map.type_of(name) else { return };
                if let (Some(left), Some(right)) = (left, right)
                    && same(left, right)
                {
                    return;
                }
                let mut child = Comparison::default();
                match compare(schema, ty, left, right, &mut child) {
                    Ok(own) => out.extend(&PathElement::field(name), child, own),
                    Err(found) => errors.add(found.below(&PathElement::field(name))),
                }
            };
            for (name, value) in left {
                one(name, Some(value), right.get(name));
            }
            for (name, value) in right {
                if !left.contains_key(name) {
                    one(name, None, Some(value));
                }
            }
            out.normalize();
            errors.into_result()?;
            Ok(false)
        }
    }
}

/// The items of a list, sorted by key.
fn by_key<'v>(
    schema: &Schema,
    list: &List,
    items: &'v [Value],
    errors: &mut TypeErrors,
) -> Vec<(PathElement, &'v Value)> {
    let mut found = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        match item_element(schema, list, item) {
            Ok(element) => found.push((element, item)),
            Err(why) => errors.add(TypeErrors::of(format!("element {i}: {why}"))),
        }
    }
    sort_by_element(&mut found);
    found
}

/// Takes the items of the first key, and the key.
fn take_first<'i, 'v>(
    items: &mut &'i [(PathElement, &'v Value)],
    key: &PathElement,
) -> &'i [(PathElement, &'v Value)] {
    let count = items.iter().take_while(|(element, _)| element == key).count();
    let (first, rest) = items.split_at(count);
    *items = rest;
    first
}

fn compare_lists(
    schema: &Schema,
    list: &List,
    left: &[Value],
    right: &[Value],
    out: &mut Comparison,
) -> Result<(), TypeErrors> {
    if left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right)) {
        return Ok(());
    }
    let mut errors = TypeErrors::default();
    let left = by_key(schema, list, left, &mut errors);
    let right = by_key(schema, list, right, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let (mut left, mut right) = (&*left, &*right);
    while let Some(element) = match (left.first(), right.first()) {
        (Some((a, _)), Some((b, _))) => Some(a.min(b)),
        (a, b) => a.or(b).map(|(element, _)| element),
    } {
        let (left, right) = (take_first(&mut left, element), take_first(&mut right, element));
        let mut child = Comparison::default();
        let mut own = Own::default();
        let mut one = |left: Option<&Value>, right: Option<&Value>, own: &mut Own| match compare(
            schema,
            list.element,
            left,
            right,
            &mut child,
        ) {
            Ok(found) => *own = found,
            Err(found) => errors.add(found.below(element)),
        };
        match (left, right) {
            ([] | [_], [] | [_]) => {
                one(left.first().map(|(_, item)| *item), right.first().map(|(_, item)| *item), &mut own);
            }
            // Items that share a key are compared as a whole.
            ([_, _, ..], [_, _, ..]) => {
                own.modified = left.len() != right.len()
                    || left.iter().zip(right).any(|((_, left), (_, right))| !equal(left, right));
            }
            ([_, _, ..], right) => {
                if let Some((_, item)) = right.first() {
                    one(None, Some(item), &mut own);
                }
                own.removed = true;
            }
            (left, _) => {
                if let Some((_, item)) = left.first() {
                    one(Some(item), None, &mut own);
                }
                own.added = true;
            }
        }
        out.extend(element, child, own);
    }
    errors.into_result()
}
