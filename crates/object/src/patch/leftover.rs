//! The remainder of a strategic merge patch after its application, which error messages quote.

use std::collections::HashMap;

use serde_json::Value;

use super::merge::prune;
use super::strategic::{
    DELETE_FROM_LIST, DIRECTIVE, Object, PatchSchema, RETAIN_KEYS, SET_ORDER, Strategy, field, list_field,
    same_type, strip,
};

/// The patch as kube-apiserver holds it after a successful application to `original`: directives that were
/// applied are removed, and so are nulls and directives in values that were copied to the document.
///
/// With [`printed`](super::printed) it is the value in `patch: Invalid value: "map[…]"`.
pub fn leftover<S: PatchSchema>(original: &Value, mut patch: Value, schema: S) -> Value {
    if let (Value::Object(original), Value::Object(patch)) = (original, &mut patch) {
        reduce(original, patch, schema);
    }
    if patch.is_null() { Value::Object(Object::new()) } else { patch }
}

fn reduce<S: PatchSchema>(original: &Object, patch: &mut Object, schema: S) {
    if let Some(directive) = patch.get(DIRECTIVE) {
        if directive == "replace" {
            patch.shift_remove(DIRECTIVE);
        }
        return;
    }
    patch.shift_remove(RETAIN_KEYS);
    let orders: Vec<String> = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for order in orders {
        patch.shift_remove(&order);
        if let Some((_, name)) = order.split_once('/') {
            patch.shift_remove(name);
        }
    }
    for (key, value) in patch.iter_mut() {
        if value.is_null() || key.starts_with(DELETE_FROM_LIST) {
            continue;
        }
        match (original.get(key), value) {
            (Some(Value::Object(original)), Value::Object(value)) => {
                if let Ok(found) = field(schema, key)
                    && found.strategy != Strategy::Replace
                {
                    reduce(original, value, found.schema);
                }
            }
            (Some(Value::Array(original)), Value::Array(value)) => {
                if let Ok(found) = list_field(schema, key)
                    && found.strategy == Strategy::Merge
                    && !found.merge_key.is_empty()
                {
                    reduce_items(original, value, found.merge_key, found.schema);
                }
            }
            (Some(original), value) if same_type(original, value) => {}
            (_, value) => take_over(value),
        }
    }
}

fn reduce_items<S: PatchSchema>(original: &[Value], patch: &mut [Value], key: &str, schema: S) {
    // A list that is replaced is not merged.
    if patch.iter().any(|item| item.get(DIRECTIVE).is_some_and(|directive| directive == "replace")) {
        return;
    }
    let mut counterparts: HashMap<Option<&Value>, &Value> = HashMap::with_capacity(original.len());
    for item in original {
        counterparts.entry(item.get(key)).or_insert(item);
    }
    for item in patch {
        let counterpart = counterparts.get(&item.get(key)).copied();
        if let (Some(Value::Object(original)), Value::Object(item)) = (counterpart, item)
            && !item.contains_key(DIRECTIVE)
        {
            reduce(original, item, schema);
        }
    }
}

/// A copied value shares its nodes with the document, where nulls and directives are removed. Only a list, or an
/// object with a directive, keeps its items: the document has a copy of the one and nothing of the other.
fn take_over(value: &mut Value) {
    prune(value);
    lose_directives(value);
}

fn lose_directives(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(lose_directives),
        value => {
            strip(value, false);
        }
    }
}
