//! JSON Patch.

use k1s_object::patch::{
    PatchError,
    json::{self, MAX_COPIED_BYTES, MAX_DEPTH},
};
use serde_json::{Value, json};

fn patched(mut doc: Value, patch: &Value) -> Option<Value> {
    let patch = json::parse(patch.to_string().as_bytes(), true).expect("a patch");
    match patch.apply(&mut doc) {
        Ok(()) => Some(doc),
        Err(PatchError::Apply(_) | PatchError::Test(_)) => None,
        Err(other) => panic!("not a failure to apply: {other:?}"),
    }
}

/// Operations on a document with their results; None if the operation fails.
fn table(doc: &Value, cases: &[(Value, Option<Value>)]) {
    for (operation, expected) in cases {
        let result = patched(doc.clone(), &json!([operation]));
        assert_eq!(&result, expected, "{operation}");
    }
}

#[test]
fn keys_are_added_replaced_and_removed() {
    table(
        &json!({"data": {"a": "1"}, "none": null}),
        &[
            (json!({"op": "add", "path": "/data/c", "value": "3"}), some(json!({"a": "1", "c": "3"}))),
            (json!({"op": "add", "path": "/data/a", "value": "3"}), some(json!({"a": "3"}))),
            (json!({"op": "add", "path": "/data/a"}), some(json!({"a": null}))),
            (json!({"op": "add", "path": "/data/", "value": 1}), some(json!({"a": "1", "": 1}))),
            (json!({"op": "replace", "path": "/data/a", "value": "2"}), some(json!({"a": "2"}))),
            (json!({"op": "replace", "path": "/data/b", "value": "2"}), some(json!({"a": "1", "b": "2"}))),
            (json!({"op": "replace", "path": "/data/a"}), some(json!({"a": null}))),
            (json!({"op": "remove", "path": "/data/a"}), some(json!({}))),
            (json!({"op": "remove", "path": "/data/b"}), None),
            (json!({"op": "add", "path": "/nope/b", "value": 1}), None),
            (json!({"op": "add", "path": "/none/b", "value": 1}), None),
            (json!({"op": "add", "path": "/data/a/b", "value": 1}), None),
            (json!({"op": "replace", "path": "/nope/b", "value": 1}), None),
        ],
    );
}

fn some(data: Value) -> Option<Value> {
    Some(json!({"data": data, "none": null}))
}

#[test]
fn paths_are_read_as_the_real_server_reads_them() {
    table(
        &json!({"a": 1}),
        &[
            (json!({"op": "add", "path": "data/x", "value": 2}), Some(json!({"a": 1, "x": 2}))),
            (json!({"op": "add", "path": "/", "value": 2}), Some(json!({"a": 1, "": 2}))),
            (json!({"op": "add", "path": "/x~1y~0~01~", "value": 2}), Some(json!({"a": 1, "x/y~~1~": 2}))),
            (json!({"op": "add", "path": "x", "value": 2}), None),
            (json!({"op": "add", "path": "", "value": {}}), None),
            (json!({"op": "remove", "path": ""}), None),
            (json!({"op": "replace", "path": "", "value": {"b": 1}}), Some(json!({"b": 1}))),
            (json!({"op": "replace", "path": "", "value": [1]}), Some(json!([1]))),
            (json!({"op": "replace", "path": "", "value": "text"}), None),
            (json!({"op": "replace", "path": ""}), None),
            (json!({"op": "test", "path": "", "value": {"a": 1}}), Some(json!({"a": 1}))),
            (json!({"op": "test", "path": "", "value": {}}), None),
            (json!({"op": "move", "from": "", "path": "/b"}), None),
            (json!({"op": "copy", "from": "", "path": "/b"}), None),
        ],
    );
}

#[test]
fn indexes_may_be_negative_or_written_oddly() {
    let list = |items: Value| Some(json!({"l": items}));
    table(
        &json!({"l": ["a", "b", "c"]}),
        &[
            (json!({"op": "add", "path": "/l/-", "value": "x"}), list(json!(["a", "b", "c", "x"]))),
            (json!({"op": "add", "path": "/l/3", "value": "x"}), list(json!(["a", "b", "c", "x"]))),
            (json!({"op": "add", "path": "/l/4", "value": "x"}), None),
            (json!({"op": "add", "path": "/l/-1", "value": "x"}), list(json!(["a", "b", "c", "x"]))),
            (json!({"op": "add", "path": "/l/-4", "value": "x"}), list(json!(["x", "a", "b", "c"]))),
            (json!({"op": "add", "path": "/l/-5", "value": "x"}), None),
            (json!({"op": "add", "path": "/l/x", "value": "x"}), None),
            (json!({"op": "add", "path": "/l/99999999999999999999", "value": "x"}), None),
            (json!({"op": "replace", "path": "/l/-1", "value": "x"}), list(json!(["a", "b", "x"]))),
            (json!({"op": "replace", "path": "/l/3", "value": "x"}), None),
            (json!({"op": "replace", "path": "/l/-", "value": "x"}), None),
            (json!({"op": "remove", "path": "/l/001"}), list(json!(["a", "c"]))),
            (json!({"op": "remove", "path": "/l/+1"}), list(json!(["a", "c"]))),
            (json!({"op": "remove", "path": "/l/-0"}), list(json!(["b", "c"]))),
            (json!({"op": "remove", "path": "/l/-3"}), list(json!(["b", "c"]))),
            (json!({"op": "remove", "path": "/l/-4"}), None),
            (json!({"op": "remove", "path": "/l/3"}), None),
            (json!({"op": "remove", "path": "/l/-"}), None),
            (json!({"op": "test", "path": "/l/-1", "value": "c"}), list(json!(["a", "b", "c"]))),
            (json!({"op": "test", "path": "/l/5", "value": null}), None),
            (json!({"op": "move", "from": "/l/0", "path": "/l/2"}), list(json!(["b", "c", "a"]))),
            (json!({"op": "copy", "from": "/l/0", "path": "/l/-"}), list(json!(["a", "b", "c", "a"]))),
        ],
    );
}

#[test]
fn values_are_moved_and_copied() {
    table(
        &json!({"a": {"x": 1}, "b": {}}),
        &[
            (json!({"op": "move", "from": "/a/x", "path": "/b/y"}), Some(json!({"a": {}, "b": {"y": 1}}))),
            (json!({"op": "move", "from": "/a/z", "path": "/b/y"}), None),
            (json!({"op": "move", "from": "/a", "path": "/a/inner"}), None),
            (json!({"op": "move", "path": "/a"}), None),
            (
                json!({"op": "copy", "from": "/a", "path": "/b/a"}),
                Some(json!({"a": {"x": 1}, "b": {"a": {"x": 1}}})),
            ),
            (
                json!({"op": "copy", "from": "/a", "path": "/a/a"}),
                Some(json!({"a": {"x": 1, "a": {"x": 1}}, "b": {}})),
            ),
            (
                json!({"op": "copy", "from": "/a/z", "path": "/b/z"}),
                Some(json!({"a": {"x": 1}, "b": {"z": null}})),
            ),
            (json!({"op": "copy", "from": "/z/z", "path": "/b/z"}), None),
            (json!({"op": "copy", "path": "/b/z"}), None),
        ],
    );
}

#[test]
fn tests_compare_values_and_null_is_as_good_as_nothing() {
    let doc = json!({"a": "1", "n": 1, "o": {"x": 1, "y": [1, null]}, "z": null});
    let holds = |path: &str, value: Value| {
        let operation = json!([{"op": "test", "path": path, "value": value}]);
        patched(doc.clone(), &operation).is_some()
    };
    assert!(holds("/a", json!("1")));
    assert!(!holds("/a", json!(1)));
    assert!(!holds("/a", json!(null)));
    assert!(holds("/n", json!(1)));
    assert!(!holds("/n", json!(1.0)), "the text differs");
    assert!(holds("/o", json!({"y": [1, null], "x": 1})));
    assert!(!holds("/o", json!({"x": 1})));
    assert!(holds("/z", json!(null)));
    assert!(holds("/nope", json!(null)));
    assert!(!holds("/nope", json!("1")));
    assert!(!holds("/nope/deeper", json!(null)));
    assert_eq!(patched(doc.clone(), &json!([{"op": "test", "path": "/a"}])), None);
    assert!(patched(doc.clone(), &json!([{"op": "test", "path": "/nope"}])).is_some());
}

#[test]
fn operations_build_on_each_other() {
    let patch = json!([
        {"op": "add", "path": "/labels", "value": {}},
        {"op": "add", "path": "/labels/x", "value": "1"},
        {"op": "copy", "from": "/labels/x", "path": "/data/c"},
        {"op": "move", "from": "/data/c", "path": "/data/d"},
        {"op": "test", "path": "/data/d", "value": "1"},
    ]);
    assert_eq!(patched(json!({"data": {}}), &patch), Some(json!({"data": {"d": "1"}, "labels": {"x": "1"}})));
    let twice = json!([{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/a"}]);
    assert_eq!(patched(json!({"a": 1}), &twice), None);
}

#[test]
fn unusable_operations_do_not_apply() {
    for operation in [
        json!({}),
        json!(null),
        json!({"op": "frobnicate", "path": "/a", "value": 1}),
        json!({"op": "ADD", "path": "/a", "value": 1}),
        json!({"path": "/a", "value": 1}),
        json!({"op": "add", "value": 1}),
        json!({"op": "add", "path": null, "value": 1}),
    ] {
        assert_eq!(patched(json!({"a": 1}), &json!([operation])), None, "{operation}");
    }
    assert_eq!(patched(json!({"a": 1}), &json!([])), Some(json!({"a": 1})));
    assert_eq!(patched(json!({"a": 1}), &json!(null)), Some(json!({"a": 1})));
}

#[test]
fn copies_are_limited() {
    let big = "x".repeat(MAX_COPIED_BYTES / 4);
    let copy = |n: usize| json!({"op": "copy", "from": "/o", "path": format!("/c{n}")});
    let copies = |n: usize| Value::Array((0..n).map(copy).collect());
    assert!(patched(json!({"o": big}), &copies(3)).is_some());
    assert_eq!(patched(json!({"o": big}), &copies(4)), None);
    let escaped = "<".repeat(MAX_COPIED_BYTES / 6 + 1);
    assert_eq!(patched(json!({"o": escaped}), &copies(1)), None);
}

#[test]
fn nesting_is_limited() {
    let copies: Vec<Value> =
        (0..MAX_DEPTH * 2).map(|_| json!({"op": "copy", "from": "/o", "path": "/o/o"})).collect();
    assert_eq!(patched(json!({"o": {}}), &Value::Array(copies)), None);
    let mut moves = Vec::new();
    for _ in 0..MAX_DEPTH {
        moves.push(json!({"op": "add", "path": "/b", "value": {}}));
        moves.push(json!({"op": "move", "from": "/a", "path": "/b/a"}));
        moves.push(json!({"op": "move", "from": "/b", "path": "/a"}));
    }
    assert_eq!(patched(json!({"a": {}}), &Value::Array(moves)), None);
    let back_and_forth: Vec<Value> = (0..5_000)
        .map(|n| match n % 2 {
            0 => json!({"op": "move", "from": "/a", "path": "/b/c/a"}),
            _ => json!({"op": "move", "from": "/b/c/a", "path": "/a"}),
        })
        .collect();
    let doc = json!({"a": {"x": [[1]]}, "b": {"c": {}}});
    assert_eq!(patched(doc.clone(), &Value::Array(back_and_forth)), Some(doc));
}

#[test]
fn malformed_patches_are_told_apart() {
    let refused = |text: &str, validate: bool| match json::parse(text.as_bytes(), validate) {
        Ok(_) => "fine".to_owned(),
        Err(error) => {
            assert_eq!(error.to_status().code, 400);
            error.to_string()
        }
    };
    for text in ["", "[{\"op\":\"add\",", "- op: add", "[] x", "[]]"] {
        assert_eq!(json::parse(text.as_bytes(), true), Err(PatchError::Syntax), "{text}");
    }
    assert_eq!(refused("{", true), "invalid JSON patch");
    assert_eq!(
        refused("{\"op\":\"add\"}", true),
        "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
    );
    assert_eq!(refused("{}", false), "json: cannot unmarshal object into Go value of type jsonpatch.Patch");
    assert_eq!(
        refused("\"text\"", true),
        "error decoding patch: json: cannot unmarshal string into Go value of type []handlers.jsonPatchOp"
    );
    assert_eq!(
        refused("[1]", true),
        "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"
    );
    assert_eq!(
        refused("[[]]", false),
        "json: cannot unmarshal array into Go value of type jsonpatch.Operation"
    );
    assert_eq!(
        refused("[{\"op\":1}]", true),
        "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"
    );
    assert_eq!(
        refused("[{\"path\":{}},{\"op\":true}]", true),
        "error decoding patch: json: cannot unmarshal object into Go struct field jsonPatchOp.path of type string"
    );
    assert_eq!(refused("[{\"op\":1}]", false), "fine");
}

#[test]
fn too_many_operations_are_refused_before_any_is_looked_at() {
    let operations = |n: usize| format!("[{}{{}}]", "{},".repeat(n - 1));
    assert_eq!(json::parse(operations(10_000).as_bytes(), true).map(|patch| patch.len()), Ok(10_000));
    let error = json::parse(operations(10_001).as_bytes(), true).expect_err("too many");
    assert_eq!(error, PatchError::TooManyOperations(10_001));
    let status = error.to_status();
    assert_eq!((status.code, status.reason), (413, "RequestEntityTooLarge"));
    assert_eq!(
        status.message,
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
}

#[test]
fn validation_notices_stray_and_repeated_members() {
    let complaints = |text: &str, validate: bool| {
        json::parse(text.as_bytes(), validate).map(|patch| patch.complaints().to_vec()).expect("a patch")
    };
    assert_eq!(
        complaints(r#"[{"op":"add","path":"/a","extra":{"b":1,"b":2}},{"Op":"x","y.\"":1,"Op":1}]"#, true),
        [
            r#"json patch unknown field "[0].extra""#,
            r#"json patch unknown field "[1].Op""#,
            r#"json patch unknown field "[1].y.\"""#,
        ]
    );
    assert_eq!(
        complaints(r#"[{"path":"/d","path":"/e","value":[{"a":{"b":1,"b":2}}],"value":1}]"#, true),
        [
            r#"json patch duplicate field "[0].path""#,
            r#"json patch duplicate field "[0].value[0].a.b""#,
            r#"json patch duplicate field "[0].value""#,
        ]
    );
    assert!(complaints(r#"[{"extra":1,"op":"a","op":"b"}]"#, false).is_empty());
    let last = json::parse(br#"[{"op":"add","path":"/d","path":"/e","value":1}]"#, true).expect("a patch");
    let mut doc = json!({});
    assert_eq!(last.apply(&mut doc), Ok(()));
    assert_eq!(doc, json!({"e": 1}));
}

#[test]
fn a_failure_to_apply_has_a_general_message() {
    let status = PatchError::Apply("secret".into()).to_status().to_json();
    assert_eq!(
        status,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "the server rejected our request due to an error in our request",
            "reason": "Invalid", "details": {}, "code": 422,
        })
    );
}

#[test]
fn objects_on_the_way_of_an_operation_come_out_sorted() {
    let patch = json!([{"op": "add", "path": "/b/x", "value": {"z": 1, "y": 2}}]);
    let patch = json::parse(patch.to_string().as_bytes(), true).expect("a patch");
    let mut doc = json!({"c": {"b": 1, "a": 2}, "b": {"y": 1, "q": 2}});
    patch.apply(&mut doc).expect("applies");
    patch.sort_touched(&mut doc);
    assert_eq!(doc.to_string(), r#"{"b":{"q":2,"x":{"z":1,"y":2},"y":1},"c":{"b":1,"a":2}}"#);
}
