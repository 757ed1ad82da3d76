//! The fields of a new object, as JSON.

use serde_json::{Map, Value};

use super::{Typed, is_leaf, item_element, items};
use crate::{
    fields_v1::write_key,
    path::PathElement,
    schema::{Schema, Shape, TypeRef},
    set::FieldSet,
    value::equal,
};

/// Metadata that nobody owns: the server sets it.
pub(crate) const UNOWNED_METADATA: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// Where a value is in an object, as far as it matters for what can be owned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Object,
    Metadata,
    Below,
}

impl Place {
    /// Whether nobody can own a field itself.
    fn is_unowned(self, name: &str) -> bool {
        match self {
            Place::Object => matches!(name, "apiVersion" | "kind" | "metadata"),
            Place::Metadata => UNOWNED_METADATA.contains(&name),
            Place::Below => false,
        }
    }

    fn of_field(self, name: &str) -> Place {
        if self == Place::Object && name == "metadata" { Place::Metadata } else { Place::Below }
    }
}

/// The objects are not an empty and a new one, or do not match the schema: they have to be compared.
pub(crate) struct NotNew;

impl Typed<'_> {
    /// What a new object adds to this one, the empty object, as `FieldsV1`: the same as a comparison finds, without the sets.
    /// `None` if it is nothing. `excluded` cannot be owned.
    pub(crate) fn created(
        &self,
        new: &Typed<'_>,
        excluded: Option<&FieldSet>,
    ) -> Result<Option<String>, NotNew> {
        let mut out = String::with_capacity(512);
        out.push('{');
        let walk = Walk { schema: self.schema, out: &mut out };
        walk.inside(self.ty, Some(&self.value), &new.value, excluded, Place::Object)?;
        out.push('}');
        Ok((out.len() > 2).then_some(out))
    }
}

struct Walk<'a> {
    schema: &'a Schema,
    out: &'a mut String,
}

impl Walk<'_> {
    /// Writes what is new inside of a value. Returns whether the value is a leaf that has changed.
    fn inside(
        self,
        ty: TypeRef,
        left: Option<&Value>,
        right: &Value,
        excluded: Option<&FieldSet>,
        place: Place,
    ) -> Result<bool, NotNew> {
        if let Some(left) = left
            && !self.schema.same_shape(ty, left, right)
        {
            return Err(NotNew);
        }
        let changed = |left: Option<&Value>| left.is_none_or(|left| !equal(left, right));
        match self.schema.shape(ty, Some(right)).ok_or(NotNew)? {
            Shape::Scalar(_) => Ok(changed(left)),
            Shape::List(list, relationship) => {
                let old = items(left).unwrap_or_default();
                let new = items(Some(right)).unwrap_or_default();
                if is_leaf(relationship, old.is_empty(), new.is_empty()) {
                    return Ok(changed(left));
                }
                if !old.is_empty() {
                    return Err(NotNew);
                }
                let mut found = Vec::with_capacity(new.len());
                for item in new {
                    found.push((item_element(self.schema, list, item).map_err(|_| NotNew)?, item));
                }
                found.sort_by(|a, b| a.0.cmp(&b.0));
                let Walk { schema, out } = self;
                let mut rest = found.as_slice();
                while let Some((element, item)) = rest.first() {
                    let count = rest.iter().take_while(|(other, _)| other == element).count();
                    rest = rest.get(count..).unwrap_or_default();
                    // Items that share a key are one field, as a whole.
                    let single = (count == 1).then_some(*item);
                    Walk { schema, out: &mut *out }.element(
                        element,
                        list.element,
                        None,
                        single,
                        None,
                        Place::Below,
                        true,
                    )?;
                }
                Ok(false)
            }
            Shape::Map(map, relationship) => {
                let none = Map::new();
                let old = left.and_then(Value::as_object).unwrap_or(&none);
                let new = right.as_object().unwrap_or(&none);
                if is_leaf(relationship, old.is_empty(), new.is_empty()) {
                    return Ok(changed(left));
                }
                let mut entries: Vec<(&String, &Value)> = new.iter().collect();
                if !entries.is_sorted_by_key(|(name, _)| *name) {
                    entries.sort_unstable_by_key(|(name, _)| *name);
                }
                let Walk { schema, out } = self;
                for (name, value) in entries {
                    let Some(ty) = map.type_of(name) else { continue };
                    let element = PathElement::field(name.as_str());
                    if excluded.is_some_and(|excluded| excluded.has_member(&element)) {
                        continue;
                    }
                    let below = excluded.and_then(|excluded| excluded.child(&element));
                    let owned = !place.is_unowned(name);
                    let walk = Walk { schema, out: &mut *out };
                    walk.element(
                        &element,
                        ty,
                        old.get(name),
                        Some(value),
                        below,
                        place.of_field(name),
                        owned,
                    )?;
                }
                Ok(false)
            }
        }
    }

    /// Writes a field or an item. Without a value, it is owned as a whole. `owned`: whether it can be owned itself.
    #[expect(clippy::too_many_arguments, reason = "the state of the recursion")]
    fn element(
        self,
        element: &PathElement,
        ty: TypeRef,
        left: Option<&Value>,
        right: Option<&Value>,
        excluded: Option<&FieldSet>,
        place: Place,
        owned: bool,
    ) -> Result<(), NotNew> {
        let Walk { schema, out } = self;
        let start = out.len();
        if !out.ends_with('{') {
            out.push(',');
        }
        write_key(element, out);
        out.push_str(":{");
        let open = out.len();
        let mut is_member = left.is_none();
        if let Some(right) = right {
            is_member |= Walk { schema, out: &mut *out }.inside(ty, left, right, excluded, place)?;
        }
        match (is_member && owned, out.len() > open) {
            // Both the value and parts of it are new.
            (true, true) => out.insert_str(open, "\".\":{},"),
            (false, false) => {
                out.truncate(start);
                return Ok(());
            }
            (true, false) | (false, true) => {}
        }
        out.push('}');
        Ok(())
    }
}
