//! Applies the changes of a defaulter to the object as it was sent.
//!
//! A type has only some fields of an object and serializes them in its own way. A comparison of the sent object with the
//! defaulted one would show changes that were not made: unknown fields dropped, empty ones added, values spelled
//! differently. So three values are compared: the object as sent, its serialization by the type *before* defaulting, and
//! the one *after*. Only differences between the last two are changes, and they are applied to the first.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Applies the changes from `before` to `after` to `sent`.
///
/// A `null` in `after` equals a missing field: many types serialize an empty `Option` like that.
pub(super) fn merge(sent: &Value, before: &Value, after: Value) -> Value {
    if *before == after {
        return sent.clone();
    }
    match (sent, before, after) {
        (Value::Object(sent), Value::Object(before), Value::Object(after)) => {
            Value::Object(merge_objects(sent, before, after))
        }
        (Value::Array(sent), Value::Array(before), Value::Array(after)) if sent.len() == before.len() => {
            Value::Array(merge_lists(sent, before, after))
        }
        (_, _, after) => without_nulls(after),
    }
}

fn merge_objects(
    sent: &Map<String, Value>,
    before: &Map<String, Value>,
    mut after: Map<String, Value>,
) -> Map<String, Value> {
    let mut merged = Map::with_capacity(sent.len().max(after.len()));
    for (key, sent) in sent {
        let was = before.get(key).unwrap_or(&Value::Null);
        let is = after.remove(key).unwrap_or(Value::Null);
        if *was == is {
            merged.insert(key.clone(), sent.clone());
        } else if !is.is_null() {
            merged.insert(key.clone(), merge(sent, was, is));
        }
    }
    for (key, is) in after {
        let was = before.get(&key).unwrap_or(&Value::Null);
        if *was != is && !is.is_null() {
            merged.insert(key, without_nulls(is));
        }
    }
    merged
}

/// Matches items that have moved: equal ones at either end, then by name, then, if the number of items is the same, by
/// index. `sent` and `before` have the same items in the same order.
fn merge_lists(sent: &[Value], before: &[Value], after: Vec<Value>) -> Vec<Value> {
    let shorter = before.len().min(after.len());
    let head = before.iter().zip(&after).take_while(|(was, is)| was == is).count();
    let tail = before.iter().rev().zip(after.iter().rev()).take_while(|(was, is)| was == is).count();
    let tail = tail.min(shorter - head);
    let names: HashMap<(&str, &str), usize> = (head..before.len() - tail)
        .rev() // the first of several with the same name wins
        .filter_map(|index| Some((name(&before[index])?, index)))
        .collect();
    let (same_length, after_tail) = (before.len() == after.len(), after.len() - tail);
    let merge_item = |(index, is): (usize, Value)| {
        if index < head {
            return sent[index].clone();
        }
        if index >= after_tail {
            return sent[index - after_tail + before.len() - tail].clone();
        }
        let origin = match name(&is) {
            Some(name) => names.get(&name).copied(),
            None => same_length.then_some(index).filter(|index| name(&before[*index]).is_none()),
        };
        match origin {
            Some(origin) => merge(&sent[origin], &before[origin], is),
            None => without_nulls(is),
        }
    };
    after.into_iter().enumerate().map(merge_item).collect()
}

/// The key that identifies an item in Kubernetes' lists.
fn name(item: &Value) -> Option<(&'static str, &str)> {
    let keys = ["name", "key", "type", "id", "uid", "mountPath"];
    keys.into_iter().find_map(|key| Some((key, item.get(key)?.as_str()?)))
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_are_kept() {
        let sent = json!({"a": 1, "unknown": {"x": null}, "b": {"c": 1, "d": 2}});
        let before = json!({"a": 1, "b": {"c": 1}});
        let after = json!({"a": 2, "b": {"c": 1, "e": 3}});
        assert_eq!(
            merge(&sent, &before, after),
            json!({"a": 2, "unknown": {"x": null}, "b": {"c": 1, "d": 2, "e": 3}})
        );
    }

    #[test]
    fn fields_that_only_the_type_adds_are_left_out() {
        let sent = json!({"a": 1, "time": "2024-01-01T00:00:00+00:00"});
        let before = json!({"a": 1, "status": {}, "none": null, "time": "2024-01-01T00:00:00Z"});
        let after = json!({"a": 2, "status": {}, "none": null, "time": "2024-01-01T00:00:00Z"});
        assert_eq!(merge(&sent, &before, after), json!({"a": 2, "time": "2024-01-01T00:00:00+00:00"}));
    }

    #[test]
    fn removed_fields_are_removed_whether_absent_or_null() {
        let sent = json!({"a": 1, "b": 2, "c": null});
        let before = json!({"a": 1, "b": 2});
        assert_eq!(merge(&sent, &before, json!({"a": null})), json!({"c": null}));
    }

    #[test]
    fn items_that_moved_are_matched_by_name() {
        let sent = json!([{"name": "a", "x": 1}, {"name": "b", "x": 2}, {"name": "c", "x": 3}]);
        let before = json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]);
        let after = json!([{"name": "new", "v": null}, {"name": "a"}, {"name": "c", "set": true}]);
        assert_eq!(
            merge(&sent, &before, after),
            json!([{"name": "new"}, {"name": "a", "x": 1}, {"name": "c", "x": 3, "set": true}])
        );
    }

    #[test]
    fn items_without_a_name_are_matched_by_index() {
        let sent = json!([{"v": 1, "x": 1}, {"v": 2, "x": 2}]);
        let before = json!([{"v": 1}, {"v": 2}]);
        assert_eq!(
            merge(&sent, &before, json!([{"v": 1}, {"v": 3}])),
            json!([{"v": 1, "x": 1}, {"v": 3, "x": 2}])
        );
        assert_eq!(merge(&sent, &before, json!([{"v": 2}])), json!([{"v": 2, "x": 2}]));
        assert_eq!(
            merge(&sent, &before, json!([{"v": 1}, {"v": 9}, {"v": 2}])),
            json!([{"v": 1, "x": 1}, {"v": 9}, {"v": 2, "x": 2}])
        );
        assert_eq!(merge(&json!([1, 1]), &json!([1, 1]), json!([1, 1, 1])), json!([1, 1, 1]));
    }

    #[test]
    fn the_patch_produces_the_merged_object() {
        let sent = json!({"l": [{"name": "a", "x": 1}, {"name": "b"}], "m/n": 1, "keep": [1, 2]});
        let before = json!({"l": [{"name": "a"}, {"name": "b"}], "m/n": 1});
        let after = json!({"l": [{"name": "b"}, {"name": "a"}], "m/n": 2});
        let wanted = merge(&sent, &before, after);
        let mut patched = sent.clone();
        json_patch::patch(&mut patched, &json_patch::diff(&sent, &wanted)).unwrap();
        assert_eq!(patched, wanted);
        assert_eq!(patched["l"], json!([{"name": "b"}, {"name": "a", "x": 1}]));
        assert_eq!(patched["keep"], json!([1, 2]));
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;

        fn value() -> impl Strategy<Value = Value> {
            let leaf =
                prop_oneof![Just(Value::Null), (0..3).prop_map(Value::from), "[ab]".prop_map(Value::from)];
            leaf.prop_recursive(4, 24, 4, |inner| {
                prop_oneof![
                    prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                    prop::collection::vec(("(name|[a-d~/])", inner), 0..4)
                        .prop_map(|fields| Value::Object(fields.into_iter().collect())),
                ]
            })
        }

        /// The serialization by a type without the fields `c` and `d`.
        fn known(value: &Value) -> Value {
            match value {
                Value::Object(map) => map
                    .iter()
                    .filter(|(key, value)| !["c", "d"].contains(&key.as_str()) && !value.is_null())
                    .map(|(key, value)| (key.clone(), known(value)))
                    .collect(),
                Value::Array(items) => items.iter().map(known).collect(),
                other => other.clone(),
            }
        }

        proptest! {
            #[test]
            fn the_type_sees_its_own_changes_in_the_result(sent in value(), after in value()) {
                let (before, after) = (known(&sent), known(&after));
                let merged = merge(&sent, &before, after.clone());
                prop_assert_eq!(known(&merged), after);
                let mut patched = sent.clone();
                json_patch::patch(&mut patched, &json_patch::diff(&sent, &merged)).unwrap();
                prop_assert_eq!(patched, merged);
            }

            #[test]
            fn unknown_fields_of_unchanged_parts_are_kept(sent in value(), new in value()) {
                prop_assume!(sent.is_object());
                let before = known(&sent);
                let mut after = before.clone();
                after["new"] = known(&new);
                let merged = merge(&sent, &before, after);
                for (key, value) in sent.as_object().unwrap() {
                    prop_assert_eq!(merged.get(key), Some(value));
                }
            }
        }
    }
}
