//! Properties of all types of patches.

use k1s_object::patch::{json as json_patch, merge, strategic};
use proptest::{collection, prelude::*, sample};
use serde_json::{Map, Value, json};

use crate::schema::OBJECT;

/// Field names of the schema, and the directives.
const KEYS: &[&str] = &[
    "a",
    "name",
    "port",
    "metadata",
    "spec",
    "labels",
    "finalizers",
    "containers",
    "env",
    "strategy",
    "selector",
    "tolerations",
    "odd",
    "matrix",
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$setElementOrder/finalizers",
    "$setElementOrder/tolerations",
    "$setElementOrder/env",
    "$deleteFromPrimitiveList/finalizers",
    "$deleteFromPrimitiveList/containers",
];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..3).prop_map(Value::from),
        sample::select(vec![0.5, 1.0, 1e30]).prop_map(Value::from),
        sample::select(vec!["a", "b", "name", "spec", "replace", "delete", "merge"]).prop_map(Value::from),
    ]
}

/// Arbitrary documents with names and strings that have a meaning.
fn anything() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(6, 60, 5, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            collection::vec((sample::select(KEYS), inner), 0..5).prop_map(|entries| {
                Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    collection::vec((sample::select(KEYS), anything()), 0..5).prop_map(|entries| {
        Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    })
}

fn without_nulls(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            *map = std::mem::take(map)
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, without_nulls(value)))
                .collect();
        }
        Value::Array(list) => *list = std::mem::take(list).into_iter().map(without_nulls).collect(),
        _ => {}
    }
    value
}

fn path() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        sample::select(vec!["0", "1", "-1", "-", "01", "", "~0", "~1", "~", "é"]).prop_map(str::to_owned),
        sample::select(KEYS).prop_map(str::to_owned),
    ];
    (sample::select(vec!["/", "", "x/"]), collection::vec(part, 0..5))
        .prop_map(|(start, parts)| format!("{start}{}", parts.join("/")))
}

fn operation() -> impl Strategy<Value = Value> {
    let op = sample::select(vec!["add", "remove", "replace", "move", "copy", "test", "bogus"]);
    (op, path(), path(), anything(), 0..8).prop_map(|(op, path, from, value, less)| {
        let mut operation = json!({"op": op, "path": path, "from": from, "value": value});
        if let Value::Object(map) = &mut operation {
            match less {
                0 => map.shift_remove("path"),
                1 => map.shift_remove("from"),
                2 => map.shift_remove("value"),
                _ => None,
            };
        }
        operation
    })
}

fn some_of(names: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    sample::subsequence(names, 0..=names.len()).prop_shuffle()
}

/// A document of the schema, or a patch without directives and nulls.
fn well_formed() -> impl Strategy<Value = Value> {
    let env = some_of(&["X", "Y", "Z"]).prop_map(|names| {
        names.into_iter().map(|name| json!({"name": name, "value": "v"})).collect::<Value>()
    });
    let container = (env, 0..3, collection::vec(0..3, 0..3));
    let containers =
        (some_of(&["a", "b", "c", "d", "e"]), collection::vec(container, 5)).prop_map(|(names, rest)| {
            let items = names.into_iter().zip(rest);
            items
            .map(|(name, (env, image, args))| json!({"name": name, "image": image, "env": env, "args": args}))
            .collect::<Value>()
        });
    let labels = some_of(&["k", "l", "m"]).prop_map(|keys| {
        keys.into_iter().map(|key| (key.to_owned(), json!(key))).collect::<Map<String, Value>>()
    });
    (containers, labels, some_of(&["f", "g", "h", "i"]), 0..2, any::<[bool; 4]>()).prop_map(
        |(containers, labels, finalizers, replicas, [with_spec, with_meta, with_list, with_labels])| {
            let mut spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}});
            if with_list {
                spec["containers"] = containers;
            }
            let mut metadata = json!({"finalizers": finalizers});
            if with_labels {
                metadata["labels"] = Value::Object(labels);
            }
            let mut doc = Map::new();
            if with_spec {
                doc.insert("spec".into(), spec);
            }
            if with_meta {
                doc.insert("metadata".into(), metadata);
            }
            Value::Object(doc)
        },
    )
}

fn strategically(doc: &Value, patch: &Value) -> Value {
    let mut doc = doc.clone();
    strategic::apply(&mut doc, patch.clone(), OBJECT).expect("a patch that applies");
    doc
}

proptest! {
    #[test]
    fn a_difference_applied_gives_what_it_was_made_of(from in anything(), to in anything()) {
        let to = without_nulls(to);
        let patch = merge::diff(&from, &to);
        let mut doc = from;
        merge::apply(&mut doc, patch);
        prop_assert_eq!(doc, to);
    }

    #[test]
    fn nothing_differs_from_itself(doc in object()) {
        prop_assert_eq!(merge::diff(&doc, &doc), json!({}));
    }

    #[test]
    fn a_merge_patch_applied_twice_is_applied_once(doc in anything(), patch in anything()) {
        let mut once = doc;
        merge::apply(&mut once, patch.clone());
        let mut twice = once.clone();
        merge::apply(&mut twice, patch);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn json_patches_never_panic(doc in object(), operations in collection::vec(operation(), 0..8)) {
        let patch = json_patch::parse(Value::Array(operations.clone()).to_string().as_bytes(), true);
        let patch = patch.expect("a patch");
        prop_assert_eq!(patch.len(), operations.len());
        let mut doc = doc;
        let _ = patch.apply(&mut doc);
        patch.sort_touched(&mut doc);
    }

    #[test]
    fn reading_json_patches_never_panics(text in "[\\[\\]{}:,\"opathvluefrm01n\\\\ ]{0,40}", patch in anything()) {
        for validate in [true, false] {
            let _ = json_patch::parse(text.as_bytes(), validate);
            let _ = json_patch::parse(patch.to_string().as_bytes(), validate);
        }
    }

    #[test]
    fn an_added_value_passes_a_test_operation(doc in object(), key in sample::select(KEYS), value in anything()) {
        let path = format!("/{}", key.replace('/', "~1"));
        let patch = json!([
            {"op": "add", "path": path, "value": value},
            {"op": "test", "path": path, "value": value},
            {"op": "remove", "path": path},
        ]);
        let mut doc = doc;
        let patch = json_patch::parse(patch.to_string().as_bytes(), true).expect("a patch");
        prop_assert_eq!(patch.apply(&mut doc), Ok(()));
        prop_assert!(doc.get(key).is_none());
    }

    #[test]
    fn strategic_patches_never_panic(doc in object(), patch in anything()) {
        let mut result = doc.clone();
        let _ = strategic::apply(&mut result, patch.clone(), OBJECT);
        let _ = strategic::leftover(&doc, patch, OBJECT);
    }

    #[test]
    fn a_strategic_patch_without_directives_applied_twice_is_applied_once(
        doc in well_formed(),
        patch in well_formed(),
    ) {
        let once = strategically(&doc, &patch);
        prop_assert_eq!(&strategically(&once, &patch), &once);
    }

    #[test]
    fn a_strategic_patch_of_itself_changes_nothing(doc in well_formed()) {
        prop_assert_eq!(strategically(&doc, &doc), doc);
    }

    #[test]
    fn merged_lists_hold_the_items_of_both_in_the_order_of_the_patch(doc in well_formed(), patch in well_formed()) {
        let names = |doc: &Value| -> Vec<String> {
            let list = doc.pointer("/spec/containers").and_then(Value::as_array).cloned().unwrap_or_default();
            list.iter().filter_map(|item| item["name"].as_str().map(str::to_owned)).collect()
        };
        let (before, asked, after) = (names(&doc), names(&patch), names(&strategically(&doc, &patch)));
        let of_patch: Vec<&String> = after.iter().filter(|name| asked.contains(name)).collect();
        prop_assert_eq!(of_patch, asked.iter().collect::<Vec<_>>());
        let others: Vec<&String> = after.iter().filter(|name| !asked.contains(name)).collect();
        prop_assert_eq!(others, before.iter().filter(|name| !asked.contains(name)).collect::<Vec<_>>());
    }
}
