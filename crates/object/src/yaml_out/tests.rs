//! YAML as Go writes it, and as it is read back.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[test]
fn a_document_looks_as_go_writes_it() {
    let value = json!({"versions": [{"version": "v1", "groupVersion": "apps/v1"}], "kind": "APIGroup",
        "empty": {}, "none": [], "text": "a\nb\n", "number": 3, "quoted": "true", "nested": {"a": {"b": [1, [2]]}}});
    assert_eq!(
        to_string(&value),
        "empty: {}\nkind: APIGroup\nnested:\n  a:\n    b:\n    - 1\n    - - 2\nnone: []\nnumber: 3\nquoted: \"true\"\n\
         text: |\n  a\n  b\nversions:\n- groupVersion: apps/v1\n  version: v1\n"
    );
}

#[test]
fn strings_are_quoted_as_go_quotes_them() {
    for (text, expected) in [
        ("plain text", "plain text"),
        ("nginx:latest", "nginx:latest"),
        ("80%", "80%"),
        ("a#b", "a#b"),
        ("", "\"\""),
        ("true", "\"true\""),
        ("y", "\"y\""),
        ("null", "\"null\""),
        ("~", "\"~\""),
        ("12", "\"12\""),
        ("0x1f", "\"0x1f\""),
        ("1e3", "\"1e3\""),
        ("1.5", "\"1.5\""),
        ("1.2.3", "1.2.3"),
        ("10.0.0.1", "10.0.0.1"),
        ("12:30", "\"12:30\""),
        ("1_000", "\"1_000\""),
        ("2024-01-02", "\"2024-01-02\""),
        ("2024-01-02T03:04:05Z", "\"2024-01-02T03:04:05Z\""),
        ("5Gi", "5Gi"),
        ("100m", "100m"),
        ("*", "'*'"),
        ("a: b", "'a: b'"),
        ("a #b", "'a #b'"),
        ("it's", "it's"),
        ("'x'", "'''x'''"),
        ("{a}", "'{a}'"),
        ("- x", "'- x'"),
        ("-x", "-x"),
        (" x", "' x'"),
        ("x ", "'x '"),
        ("@x", "'@x'"),
        ("a\tb", "\"a\\tb\""),
        ("ü", "ü"),
        ("a\nb", "|-\n  a\n  b"),
        ("a\nb\n", "|\n  a\n  b"),
        ("a\n\n", "|+\n  a\n"),
        (" a\nb", "|2-\n   a\n  b"),
        ("a \nb", "\"a \\nb\""),
        ("a\n b", "|-\n  a\n   b"),
    ] {
        assert_eq!(to_string(&json!({"k": text})), format!("k: {expected}\n"), "{text:?}");
    }
}

#[test]
fn keys_are_in_the_order_of_go() {
    assert_eq!(to_string(&json!({"a10": 1, "a2": 2, "B": 3, "a-b": 4})), "B: 3\na-b: 4\na2: 2\na10: 1\n");
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
        "[a-z0-9:. #\n-]{0,12}".prop_map(Value::from),
        "[ \n'\"]{0,4}[a-z]{0,2}[ \n:#,?-]{0,4}".prop_map(Value::from),
        "[0-9eE_.:xoTZ+-]{0,10}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-zA-Z0-9.:/ -]{0,8}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn written_yaml_is_read_back(value in values()) {
        let text = to_string(&value);
        let read = crate::yaml::decode(text.as_bytes());
        prop_assert_eq!(read.map(|read| read.value), Ok(value), "{}", text);
    }
}
