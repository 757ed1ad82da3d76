//! JSON Merge Patch.

use k1s_object::patch::{PatchError, merge};
use serde_json::{Value, json};

fn patched(mut doc: Value, patch: Value) -> Value {
    merge::apply(&mut doc, patch);
    doc
}

#[test]
fn objects_are_merged_and_the_rest_is_replaced() {
    let cases = [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!({"e": null}), json!({"e": {"x": null, "y": 1}}), json!({"e": {"y": 1}})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        (json!({"a": "foo"}), json!({"a": {"b": null}}), json!({"a": {}})),
    ];
    for (doc, patch, expected) in cases {
        assert_eq!(patched(doc.clone(), patch.clone()), expected, "{doc} {patch}");
    }
}

#[test]
fn many_nulls_delete_many_keys_and_keep_the_order() {
    let doc: Value = (0..100).map(|n| (format!("k{n}"), json!(n))).collect::<serde_json::Map<_, _>>().into();
    let patch: Value =
        (1..99).map(|n| (format!("k{n}"), json!(null))).collect::<serde_json::Map<_, _>>().into();
    assert_eq!(patched(doc, patch).to_string(), r#"{"k0":0,"k99":99}"#);
}

#[test]
fn objects_in_lists_lose_their_nulls_unless_they_replace_an_object() {
    let list = json!({"a": [null, {"b": null, "c": 1}]});
    let pruned = json!({"a": [null, {"c": 1}]});
    assert_eq!(patched(json!({}), list.clone()), pruned);
    assert_eq!(patched(json!({"a": [1]}), list.clone()), pruned);
    assert_eq!(patched(json!({"a": {"x": 1}}), list.clone()), list);
}

#[test]
fn documents_that_are_no_objects_are_refused() {
    let text = |patch: &Value, validate: bool| match merge::check(patch, validate) {
        Ok(()) => "fine".to_owned(),
        Err(PatchError::Shape(text)) => text,
        Err(other) => panic!("{other:?}"),
    };
    let refused = |what: &str| {
        format!(
            "error decoding patch: json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"
        )
    };
    assert_eq!(text(&json!({}), true), "fine");
    assert_eq!(text(&json!([]), true), refused("array"));
    assert_eq!(text(&json!("text"), true), refused("string"));
    assert_eq!(text(&json!(5), true), refused("number"));
    assert_eq!(text(&json!(true), true), refused("bool"));
    assert_eq!(text(&json!(null), true), "Invalid JSON Patch");
    assert_eq!(text(&json!(null), false), "Invalid JSON Patch");
    assert_eq!(text(&json!(5), false), "Invalid JSON Patch");
    assert_eq!(text(&json!([]), false), "fine");
}

#[test]
fn a_difference_names_only_what_changed() {
    let cases = [
        (json!({"a": 1}), json!({"a": 1}), json!({})),
        (json!({"a": 1, "b": 2}), json!({"b": 3, "c": 4}), json!({"b": 3, "c": 4, "a": null})),
        (json!({"a": {"x": 1, "y": 2}}), json!({"a": {"x": 1}}), json!({"a": {"y": null}})),
        (json!({"a": {"x": 1}}), json!({"a": [1]}), json!({"a": [1]})),
        (json!({"a": [1, 2]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!({"a": {}}), json!({"a": {}}), json!({})),
        (json!(1), json!({"a": 1}), json!({"a": 1})),
    ];
    for (from, to, expected) in cases {
        assert_eq!(merge::diff(&from, &to), expected, "{from} {to}");
    }
}

#[test]
fn objects_that_were_merged_come_out_sorted() {
    let patch = json!({"c": 1, "b": {"x": 1}});
    let mut doc = json!({"z": {"b": 1, "a": 2}, "b": {"y": 1, "q": 2}});
    merge::apply(&mut doc, patch.clone());
    merge::sort_touched(&mut doc, &patch);
    assert_eq!(doc.to_string(), r#"{"b":{"q":2,"x":1,"y":1},"c":1,"z":{"b":1,"a":2}}"#);
}
