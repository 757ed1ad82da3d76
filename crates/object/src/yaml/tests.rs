//! YAML 1.1 as go-yaml v2 decodes it, and its error messages.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn value(text: &str) -> Value {
    decode(text.as_bytes()).expect(text).value
}

fn error(text: &str) -> String {
    decode(text.as_bytes()).expect_err(text).message
}

#[test]
fn plain_words_have_the_types_of_yaml_1_1() {
    let cases = [
        ("yes", json!(true)),
        ("n", json!(false)),
        ("Off", json!(false)),
        ("~", json!(null)),
        ("", json!(null)),
        ("17", json!(17)),
        ("1_000", json!(1000)),
        ("017", json!(15)),
        ("0o17", json!(15)),
        ("-0x1F", json!(-31)),
        ("0b101", json!(5)),
        ("08", json!(8)),
        ("1.5", json!(1.5)),
        ("1.0", json!(1)),
        (".5", json!(0.5)),
        ("1e3", json!(1000)),
        ("1.2.3", json!("1.2.3")),
        ("12:30:45", json!("12:30:45")),
        ("2020-01-01", json!("2020-01-01")),
        ("v1", json!("v1")),
        ("'5'", json!("5")),
        ("\"yes\"", json!("yes")),
        ("!!str 5", json!("5")),
        ("!!float 5", json!(5)),
        ("!custom 5", json!("5")),
        ("1e", json!("1e")),
        ("a:\tb\nc:\td", json!({"a": "b", "c": "d"})),
        ("a: \"x\ny\"\nb: {c: d\n}\n", json!({"a": "x y", "b": {"c": "d"}})),
        ("- -", json!([[null]])),
        ("18446744073709551615", json!(18_446_744_073_709_551_615_f64)),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn keys_become_strings_and_are_sorted() {
    assert_eq!(
        value("{b: 1, a: 2, 1: 3, true: 4, 1.5: 5, n: 6}").to_string(),
        r#"{"1":3,"1.5":5,"a":2,"b":1,"false":6,"true":4}"#
    );
    assert_eq!(
        value("k: |\n  line1\n  line2\nf: >-\n  a\n  b\n"),
        json!({"f": "a b", "k": "line1\nline2\n"})
    );
}

#[test]
fn anchors_and_merges_are_resolved() {
    let text = "base: &b {x: 1, v: 2}\nuse:\n  <<: *b\n  v: 3\nlist: [*b, {<<: [*b, {z: 9, x: 0}]}]\n";
    assert_eq!(
        value(text),
        json!({"base": {"x": 1, "v": 2}, "use": {"x": 1, "v": 3}, "list": [{"x": 1, "v": 2}, {"x": 1, "v": 2, "z": 9}]})
    );
    assert_eq!(error("<<: 5"), "yaml: map merge requires map or sequence of maps as the value");
    assert_eq!(error("a: *nope"), "yaml: unknown anchor 'nope' referenced");
    assert_eq!(error("a: &x [*x]"), "yaml: anchor 'x' value contains itself");
}

#[test]
fn a_bomb_of_aliases_is_refused() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert_eq!(error(&text), "yaml: document contains excessive aliasing");
}

#[test]
fn duplicate_keys_are_reported_by_line() {
    let decoded = decode(b"a: 1\ndata:\n  k: v\n  k: w\n1: x\n1: z\n").expect("readable");
    assert_eq!(decoded.value, json!({"1": "z", "a": 1, "data": {"k": "w"}}));
    assert_eq!(
        decoded.duplicates,
        ["line 4: key \"k\" already set in map", "line 6: key 1 already set in map"]
    );
    assert_eq!(
        decoded.duplicates_error().map(|error| error.message).unwrap_or_default(),
        "yaml: unmarshal errors:\n  line 4: key \"k\" already set in map\n  line 6: key 1 already set in map"
    );
    let flow = decode(b"{\"data\":{\"k\":\"1\",\"k\":\"2\"}}").expect("readable");
    assert_eq!(flow.duplicates, ["line 1: key \"k\" already set in map"]);
}

#[test]
fn only_the_first_document_counts() {
    assert_eq!(value("---\na: 1\n---\nb: 2\n"), json!({"a": 1}));
    assert_eq!(value("# nothing\n"), json!(null));
}

#[test]
fn syntax_errors_have_go_yamls_words() {
    let cases = [
        ("metadata: {name: b\n", "yaml: line 1: did not find expected ',' or '}'"),
        ("metadata:\n\tname: b\n", "yaml: line 2: found character that cannot start any token"),
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("{\"apiVersion\": \"v1\",", "yaml: line 1: did not find expected node content"),
        (
            "apiVersion: v1\n\tkind: ConfigMap\n",
            "yaml: line 2: found a tab character that violates indentation",
        ),
        ("null: x\na: b: c", "yaml: line 2: mapping values are not allowed in this context"),
        ("a: b\nc: d: @b", "yaml: line 2: mapping values are not allowed in this context"),
        ("a: b\nc: ]", "yaml: line 1: did not find expected node content"),
        ("a: b\n]: c", "yaml: line 1: did not find expected key"),
        ("null: x", "unsupported map key of type: %!s(<nil>), key: <nil>, value: \"x\""),
        ("...\na: b", "yaml: did not find expected node content"),
        ("a: b\nc: @d", "yaml: line 2: found character that cannot start any token"),
        ("a:\n  : b\n", "yaml: line 1: did not find expected key"),
        ("a: @b", "yaml: found character that cannot start any token"),
        ("a: [1, 2\nb: 3\n", "yaml: line 1: did not find expected ',' or ']'"),
        ("a: 'b", "yaml: found unexpected end of stream"),
        ("a: 'b\n", "yaml: line 2: found unexpected end of stream"),
        ("a: .inf", "json: unsupported value: +Inf"),
        ("a: \u{1}", "yaml: control characters are not allowed"),
        ("!!int x", "yaml: cannot decode !!str `x` as a !!int"),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected, "{text:?}");
    }
    assert_eq!(decode(b"\xff").expect_err("no UTF-8").message, "yaml: invalid leading UTF-8 octet");
    assert_eq!(error(&"- ".repeat(100_000)), "yaml: exceeded max depth of 120");
    assert_eq!(error(&"[".repeat(100_000)), "yaml: exceeded max depth of 120");
}

#[test]
fn copies_that_anchors_and_aliases_make_have_a_budget_of_bytes() {
    const EXCESSIVE: &str =
        "yaml: document contains excessive aliasing: anchors and aliases stand for more than 16777216 bytes";
    let long = "x".repeat(1 << 20);
    // Few nodes, many bytes: as values, as keys, and within aliased values.
    let aliases = "- *a\n".repeat(100_000);
    assert_eq!(error(&format!("a: &a {long}\nb:\n{aliases}")), EXCESSIVE);
    assert_eq!(error(&format!("a: &a {long}\nb:\n{}", "- {*a : 1}\n".repeat(100))), EXCESSIVE);
    assert_eq!(error(&format!("a: &a {{? {long} : 1}}\nb:\n{aliases}")), EXCESSIVE);
    // Every anchor stores a copy, also if it is not used.
    let nested: String = (0..100).map(|i| format!("[&a{i} ")).collect();
    assert_eq!(error(&format!("{nested}{long}{}", "]".repeat(100))), EXCESSIVE);
    let fine = format!("a: &a {}\nb: [*a, *a, *a]", "x".repeat(1000));
    assert_eq!(value(&fine)["b"][2], "x".repeat(1000));
}

#[test]
fn aliases_do_not_nest_deeper_than_the_limit() {
    let levels = MAX_DEPTH - 10;
    let list = |name: &str, inner: &str| {
        format!("{name}: &{name} {}{inner}{}\n", "[".repeat(levels), "]".repeat(levels))
    };
    let mut document = list("a0", "x");
    for i in 1..1000 {
        document += &list(&format!("a{i}"), &format!("*a{}", i - 1));
    }
    assert_eq!(error(&document), "yaml: exceeded max depth of 120");
    assert!(decode(format!("{}b: [*a0]", list("a0", "x")).as_bytes()).is_ok());
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[ \\na-c0-9:,\\-\\[\\]{}&*!|>'\"#%?<\\t.~]{0,40}|\\PC{0,20}") {
        let _ = decode(text.as_bytes());
    }

    #[test]
    fn json_is_yaml(keys in prop::collection::btree_map("[a-z]{1,6}", any::<i32>(), 0..5)) {
        let document = json!({"spec": keys, "list": [1, "x", null, true]});
        prop_assert_eq!(value(&document.to_string()), document);
    }
}
