//! Adapting a field set to a schema that has changed.

use super::Typed;
use crate::{
    path::PathElement,
    schema::{Map, Relationship, Scalar, Schema, Shape, TypeRef},
    set::FieldSet,
};

impl Typed<'_> {
    /// The set without the parts of lists and maps that have become atomic: their owner owns them as a whole now. `None` if
    /// nothing has changed. Parts of what has become granular stay owned by the owner of the whole.
    pub fn reconcile(&self, fields: &FieldSet) -> Option<FieldSet> {
        let mut changed = FieldSet::new();
        walk(self.schema, self.ty, Some(fields), false, &mut Vec::new(), &mut changed);
        (!changed.is_empty()).then(|| fields.recursive_difference(&changed).union(&changed))
    }
}

/// Collects the paths of what has become atomic.
fn walk(
    schema: &Schema,
    ty: TypeRef,
    fields: Option<&FieldSet>,
    is_leaf: bool,
    path: &mut Vec<PathElement>,
    changed: &mut FieldSet,
) {
    // Without a value, a type with several shapes is seen as a map.
    let Some(shape) = schema.shape(ty, None) else { return };
    let child_type = |element: &PathElement| match shape {
        Shape::List(list, _) => Some(list.element),
        Shape::Map(map, _) => match element {
            PathElement::Field(name) => map.type_of(name),
            _ => map.element,
        },
        Shape::Scalar(_) => None,
    };
    match shape {
        Shape::Scalar(_) => return,
        Shape::List(_, Relationship::Atomic) if !is_leaf => {
            changed.insert(path);
            return;
        }
        Shape::Map(map, _) if is_deduced(schema, map) => return,
        Shape::Map(_, Relationship::Atomic) if !is_leaf => {
            if fields.is_some_and(|fields| !fields.is_empty()) {
                changed.insert(path);
            }
            return;
        }
        Shape::List(..) | Shape::Map(..) => {}
    }
    let Some(fields) = fields else { return };
    let mut visit = |element: &PathElement, below: Option<&FieldSet>, is_leaf: bool| {
        let Some(ty) = child_type(element) else { return };
        path.push(element.clone());
        walk(schema, ty, below, is_leaf, path, changed);
        path.pop();
    };
    for (element, below) in &fields.children {
        visit(element, Some(below), false);
    }
    for element in &fields.members {
        if fields.child(element).is_none() {
            visit(element, None, true);
        }
    }
}

/// Whether a map is that of the deduced type, whose values may be anything.
fn is_deduced(schema: &Schema, map: &Map) -> bool {
    map.fields.is_empty()
        && map
            .element
            .and_then(|element| schema.atom(element))
            .is_some_and(|atom| atom.scalar == Some(Scalar::Untyped))
}
