//! Strategic merge patch: a merge patch that knows the types it is applied to, so that it can merge lists, and
//! that has directives (`$patch`, `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`).
//!
//! Types are described by [`PatchSchema`]. New items of a merged list precede existing ones; `$setElementOrder`
//! orders all of them. Values without a counterpart in the document are copied without their nulls, and without
//! objects that have `$patch`. New items of a merged list are copied unchanged.

use std::collections::HashSet;

use serde_json::{Map, Value};

pub use super::leftover::leftover;
use super::{
    PatchError,
    go::{printed, printed_as_text, type_name},
    lists::{self, Elements, Joined},
    remove_all,
};
use crate::{decode::type_name as json_type_name, field::quote};

pub(super) const DIRECTIVE: &str = "$patch";
pub(super) const RETAIN_KEYS: &str = "$retainKeys";
pub(super) const SET_ORDER: &str = "$setElementOrder";
pub(super) const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";

/// A type, as far as strategic merge patch needs it. Copying it is as cheap as copying a pointer.
pub trait PatchSchema: Copy {
    /// Its kind in Go's reflection: `struct`, `map`, `slice`, `string`. That of the target for a pointer.
    fn kind(self) -> &'static str;

    /// Whether Go holds a pointer to it; error messages depend on it.
    fn is_pointer(self) -> bool;

    /// The name of a struct, without its package: `PodSpec`.
    fn type_name(self) -> &'static str;

    /// The field of a struct with this JSON name.
    fn field(self, name: &str) -> Option<FieldPatch<Self>>;

    /// The type of the items, if this is a list.
    fn items(self) -> Option<Self>;
}

/// The patch behaviour of a field of a struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldPatch<S> {
    /// The type of the field.
    pub schema: S,
    /// `patchStrategy`, without `retainKeys`, which concerns only the creation of patches.
    pub strategy: Strategy,
    /// `patchMergeKey`; empty for lists of scalars and other types.
    pub merge_key: &'static str,
}

/// How a field is combined with its counterpart in a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Objects are merged, lists replaced.
    #[default]
    Default,
    /// Lists are merged as well.
    Merge,
    /// Objects are replaced as well.
    Replace,
}

/// Applies a strategic merge patch; a patch that is `null` does nothing.
pub fn apply<S: PatchSchema>(doc: &mut Value, patch: Value, schema: S) -> Result<(), PatchError> {
    let patch = match patch {
        Value::Object(patch) => patch,
        Value::Null => return Ok(()),
        other => {
            return Err(PatchError::Shape(format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                json_type_name(&other)
            )));
        }
    };
    match doc {
        Value::Object(doc) => merge(doc, patch, schema),
        _ => Err(PatchError::Shape("invalid JSON document".into())),
    }
}

pub(super) type Object = Map<String, Value>;

pub(super) fn internal(text: impl Into<String>) -> PatchError {
    PatchError::Internal(text.into())
}

pub(super) fn expected(type_wanted: &str, found: &Value) -> PatchError {
    internal(format!("expected a {type_wanted}, but received a {}", type_name(found)))
}

pub(super) const A_LIST: &str = "[]interface {}";
pub(super) const A_MAP: &str = "map[string]interface {}";

pub(super) fn unknown_directive(directive: &Value, patch: Object) -> PatchError {
    let directive = printed_as_text(directive);
    internal(format!("unknown patch type: {directive} in map: {}", printed(&Value::Object(patch))))
}

/// The field with this name, of any type.
pub(super) fn field<S: PatchSchema>(schema: S, name: &str) -> Result<FieldPatch<S>, PatchError> {
    if schema.kind() != "struct" {
        return Err(internal(format!(
            "merging an object in json but data type is not struct, instead is: {}",
            schema.kind()
        )));
    }
    schema.field(name).ok_or_else(|| {
        internal(format!(
            "unable to find api field in struct {} for the json field {}",
            schema.type_name(),
            quote(name)
        ))
    })
}

/// The list with this name; the schema is that of its items.
pub(super) fn list_field<S: PatchSchema>(schema: S, name: &str) -> Result<FieldPatch<S>, PatchError> {
    let found = field(schema, name)?;
    let items = match found.schema.items() {
        Some(items) if items.items().is_some() && !found.schema.is_pointer() => {
            return Err(internal("unexpected slice of slice"));
        }
        Some(items) => items,
        // Types that are a value or a list of it are pointers in Go, and are accepted.
        None if found.schema.is_pointer() => found.schema,
        None => {
            let kind = if schema.is_pointer() { "ptr" } else { schema.kind() };
            return Err(internal(format!("expected slice or array type, but got: {kind}")));
        }
    };
    Ok(FieldPatch { schema: items, ..found })
}

/// Merges an object of the patch into its counterpart.
pub(super) fn merge<S: PatchSchema>(
    original: &mut Object,
    mut patch: Object,
    schema: S,
) -> Result<(), PatchError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        match directive.as_str() {
            Some("replace") => {
                patch.shift_remove(DIRECTIVE);
                *original = patch;
            }
            Some("delete") => original.clear(),
            _ => {
                let directive = directive.clone();
                return Err(unknown_directive(&directive, patch));
            }
        }
        return Ok(());
    }
    retain_keys(original, &mut patch)?;
    set_element_order(original, &mut patch, schema)?;
    let mut gone = Vec::new();
    for (key, value) in patch {
        let delete_from = key.starts_with(DELETE_FROM_LIST);
        let name = if delete_from { list_name(&key)? } else { &key };
        if value.is_null() {
            gone.push(name.to_owned());
            continue;
        }
        let alike = match original.get(name) {
            Some(current) => same_type(current, &value),
            None => false,
        };
        if !alike {
            if !delete_from {
                take_over(original, key, value, &mut gone);
            }
            continue;
        }
        match value {
            Value::Object(value) => {
                let found = field(schema, name)?;
                if let Some(Value::Object(current)) = original.get_mut(name) {
                    match found.strategy {
                        Strategy::Replace => *current = value,
                        _ => merge(current, value, found.schema)?,
                    }
                }
            }
            Value::Array(value) => {
                let found = list_field(schema, name)?;
                if let Some(Value::Array(current)) = original.get_mut(name) {
                    *current = if found.strategy == Strategy::Merge || delete_from {
                        lists::merge(std::mem::take(current), value, &found, delete_from)?.ordered()
                    } else {
                        value
                    };
                }
            }
            scalar => {
                if let Some(current) = original.get_mut(name) {
                    *current = scalar;
                }
            }
        }
    }
    remove_all(original, &gone);
    Ok(())
}

/// The list that `$deleteFromPrimitiveList/x` names. Without a name it is the key itself.
fn list_name(key: &str) -> Result<&str, PatchError> {
    match key.split_once('/') {
        Some((DELETE_FROM_LIST, "")) => Ok(key),
        Some((DELETE_FROM_LIST, name)) => Ok(name),
        _ => Err(PatchError::Shape("invalid patch format of primitive list".into())),
    }
}

/// Whether Go decodes both into the same type.
pub(super) fn same_type(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.is_i64() == right.is_i64(),
        _ => std::mem::discriminant(left) == std::mem::discriminant(right),
    }
}

/// Copies a value of the patch without a counterpart of the same type.
fn take_over(original: &mut Object, key: String, mut value: Value, gone: &mut Vec<String>) {
    if strip(&mut value, true) {
        original.insert(key, value);
    } else {
        gone.push(key);
    }
}

/// Removes objects with directives and, if `nulls`, null members. False if the value itself is to be removed.
pub(super) fn strip(value: &mut Value, nulls: bool) -> bool {
    match value {
        Value::Object(map) => {
            if map.get(DIRECTIVE).is_some_and(|directive| !nulls || !directive.is_null()) {
                return false;
            }
            map.retain(|_, value| !(nulls && value.is_null()) && strip(value, nulls));
        }
        Value::Array(list) => list.retain_mut(|value| strip(value, nulls)),
        _ => {}
    }
    true
}

/// `$retainKeys` lists all fields of an object: others are removed, and the patch must not have any.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(keys) = patch.shift_remove(RETAIN_KEYS) else { return Ok(()) };
    let bad = || PatchError::Shape("invalid patch format of retainKeys".into());
    let Value::Array(keys) = keys else { return Err(bad()) };
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    for (key, value) in patch.iter() {
        let parallel = key.starts_with(DELETE_FROM_LIST) || key.starts_with(SET_ORDER);
        if !value.is_null() && !parallel && !keys.contains(key.as_str()) {
            return Err(bad());
        }
    }
    original.retain(|key, _| keys.contains(key.as_str()));
    Ok(())
}

/// Merges the lists that have a `$setElementOrder`, and removes them from the patch.
fn set_element_order<S: PatchSchema>(
    original: &mut Object,
    patch: &mut Object,
    schema: S,
) -> Result<(), PatchError> {
    if !patch.keys().any(|key| key.starts_with(SET_ORDER)) {
        return Ok(());
    }
    let directives: Vec<String> = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let order = match patch.shift_remove(&directive) {
            Some(Value::Array(order)) => order,
            Some(other) => return Err(expected(A_LIST, &other)),
            None => continue,
        };
        let Some((SET_ORDER, name)) = directive.split_once('/') else {
            return Err(PatchError::Shape("invalid patch format of setElementOrder list".into()));
        };
        let list_of = |object: &Object| match object.get(name) {
            None => Ok(false),
            Some(Value::Array(_)) => Ok(true),
            Some(other) => Err(expected(A_LIST, other)),
        };
        let (in_original, in_patch) = (list_of(original)?, list_of(patch)?);
        let found = list_field(schema, name)?;
        let patched = taken_list(patch, name);
        lists::check_order(&patched, &order, found.merge_key)?;
        if !in_original && !in_patch {
            continue;
        }
        let current = original.get_mut(name).map(Value::take);
        let current = if let Some(Value::Array(list)) = current { list } else { Vec::new() };
        let elements = lists::element_type(&current, &patched)?;
        if elements == Elements::Maps && found.merge_key.is_empty() && found.strategy != Strategy::Merge {
            let items = if in_patch { &patched } else { &current };
            return Err(lists::unordered(items, &order, &current));
        }
        let joined = match (in_original, in_patch) {
            (true, true) if found.strategy == Strategy::Merge => {
                lists::merge(current, patched, &found, false)?
            }
            (true, true) => Joined::new(patched, &current, found.merge_key),
            (true, false) => Joined::unchanged(current),
            _ => {
                let mut added = Value::Array(patched);
                strip(&mut added, false);
                let added = if let Value::Array(list) = added { list } else { Vec::new() };
                Joined::new(added, &[], found.merge_key)
            }
        };
        let ordered = joined.ordered_by(&order, found.merge_key)?;
        original.insert(name.to_owned(), Value::Array(ordered));
    }
    Ok(())
}

fn taken_list(object: &mut Object, name: &str) -> Vec<Value> {
    match object.shift_remove(name) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}
