//! Documents that the JSON decoder accepts, and Go's messages for others.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn error(text: &str) -> String {
    json(text.as_bytes()).expect_err(text).message
}

fn value(text: &str) -> Value {
    json(text.as_bytes()).expect(text).value
}

#[test]
fn syntax_errors_have_gos_words() {
    let cases = [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("{\"a\"", "unexpected end of JSON input"),
        ("\"abc", "unexpected end of JSON input"),
        ("\"\\u12", "unexpected end of JSON input"),
        ("nul", "unexpected end of JSON input"),
        ("not json", "invalid character 'o' in literal null (expecting 'u')"),
        ("metadata: {}", "invalid character 'm' looking for beginning of value"),
        ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
        ("{not", "invalid character 'n' looking for beginning of object key string"),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("{} trailing", "invalid character 't' after top-level value"),
        ("01", "invalid character '1' after top-level value"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.", "unexpected end of JSON input"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("é", "invalid character 'é' looking for beginning of value"),
        ("\"a\nb\"", "invalid character '\\n' in string"),
        ("\"\\x\"", "invalid escape sequence `\\x` in string"),
        ("\"\\u12zz\"", "invalid escape sequence `\\u12zz` in string"),
        ("\"\\ \"", "invalid escape sequence \"\\\\ \" in string"),
        ("[1e999]", "json: cannot unmarshal number 1e999 into Go value of type float64"),
        ("[1e999", "unexpected end of JSON input"),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn values_are_what_go_makes_of_them() {
    assert_eq!(
        value(" {\"a\" : [1, -0, 1.5, 1e3, true, null]} "),
        json!({"a": [1, 0, 1.5, 1000.0, true, null]})
    );
    assert_eq!(value("9223372036854775807"), json!(i64::MAX));
    assert_eq!(value("9223372036854775808"), json!(9_223_372_036_854_775_808_f64));
    assert_eq!(value(r#""\u00e9\ud83d\ude00\ud83dx\n""#), json!("é😀\u{fffd}x\n"));
    let bytes = json(b"\"a\xff\xfeb\"").expect("invalid UTF-8 is replaced").value;
    assert_eq!(bytes, json!("a\u{fffd}\u{fffd}b"));
}

#[test]
fn duplicate_keys_are_reported_in_document_order() {
    let text = r#"{"kind":"A","kind":"B","spec":{"x":[{"y":1},{"y":1,"y":2,"y":3}],"z":{"a":1},"z":{}},"q":1,"q":2}"#;
    let decoded = json(text.as_bytes()).expect("valid");
    let paths: Vec<(&str, usize)> =
        decoded.duplicates.iter().map(|duplicate| (duplicate.path.as_str(), duplicate.position)).collect();
    assert_eq!(paths, [("kind", 1), ("spec.x[1].y", 5), ("spec.z", 7), ("q", 7)]);
    assert_eq!(decoded.value.to_string(), r#"{"kind":"B","spec":{"x":[{"y":1},{"y":3}],"z":{}},"q":2}"#);
}

#[test]
fn nesting_has_an_end() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(json(deep(MAX_DEPTH).as_bytes()).is_ok());
    assert_eq!(error(&deep(MAX_DEPTH + 1)), "exceeded max depth of 120");
    assert_eq!(error(&"[".repeat(1_000_000)), "exceeded max depth of 120");
}

#[test]
fn documents_say_what_they_are() {
    let meta =
        |text: &str| type_meta(&value(text)).map(|meta| (meta.api_version.to_owned(), meta.kind.to_owned()));
    assert_eq!(meta(r#"{"APIVERSION":"v1","kind":"Pod"}"#), Ok(("v1".into(), "Pod".into())));
    assert_eq!(meta("null"), Ok((String::new(), String::new())));
    let wrong = |text: &str| meta(text).expect_err(text).message;
    assert_eq!(
        wrong("[]"),
        r#"couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#
    );
    assert_eq!(
        wrong(r#"{"apiVersion":1}"#),
        "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string"
    );
    assert_eq!(wrong(r#"{"apiVersion":"a/b/c"}"#), "unexpected GroupVersion string: a/b/c");
}

fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1.0e9..1.0e9_f64).prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("\\PC{0,4}", inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn serde_output_is_read_back(document in documents()) {
        let decoded = json(document.to_string().as_bytes()).expect("valid");
        prop_assert_eq!(decoded.value, document);
        prop_assert!(decoded.duplicates.is_empty());
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = json(&bytes);
    }

    #[test]
    fn serde_and_this_reader_agree_on_what_is_json(text in "[\\[\\]{}:,\"a0-9.eE+ -]{0,20}") {
        let serde = serde_json::from_str::<Value>(&text);
        let ours = json(text.as_bytes());
        prop_assert_eq!(serde.is_ok(), ours.is_ok(), "{:?} {:?}", serde, ours);
    }
}
