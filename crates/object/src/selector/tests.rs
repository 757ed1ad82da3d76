//! Matching of selectors, and parse errors.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::field::Check;

fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
    let selector = LabelSelector::parse(selector).expect(selector);
    selector.matches(|key| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| *value))
}

#[test]
fn labels_are_selected() {
    let labels = [("app", "web"), ("n", "5"), ("e", "")];
    for yes in [
        "",
        "app",
        "app=web",
        "app==web",
        "app != db",
        "missing!=x",
        "missing notin (a, b)",
        "app in (db, web)",
        "!missing",
        "n>4",
        "n<6",
        "e=",
        "e in ()",
        "e in (,x)",
        "app=web,n,!missing",
        "app in (in, web)",
        " app = web ",
    ] {
        assert!(selects(yes, &labels), "{yes}");
    }
    for no in ["app=db", "!app", "missing", "missing=", "n>5", "app>1", "app notin (web)", "app=web,missing"]
    {
        assert!(!selects(no, &labels), "{no}");
    }
}

#[test]
fn label_selectors_are_printed_sorted() {
    for (text, printed) in [
        ("z=1,a in (c,b)", "a in (b,c),z=1"),
        ("a==b", "a==b"),
        ("!a,b", "!a,b"),
        ("a notin (), b>1, c<2", "a notin (),b>1,c<2"),
        ("", ""),
    ] {
        assert_eq!(LabelSelector::parse(text).expect(text).to_string(), printed);
    }
}

#[test]
fn label_selector_errors_are_gos() {
    let key = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let bad_key = format!("unable to parse requirement: <nil>: Invalid value: \"-bad\": {key}");
    let long = format!("a={}", "x".repeat(64));
    let too_long = format!(
        "unable to parse requirement: values[0][a]: Invalid value: \"{}\": must be no more than 63 bytes",
        "x".repeat(64)
    );
    let cases = [
        ("=x", "found '=', expected: !, identifier, or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (,", "unable to parse requirement: found '', expected: ',', or identifier"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("a=b,", "found '', expected: identifier after ','"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a=b,,c=d", "found ',', expected: identifier after ','"),
        ("a=b!c", "found '!', expected: ',' or 'end of string'"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        (
            "n>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        ("-bad=1", &bad_key),
        (&long, &too_long),
    ];
    for (text, expected) in cases {
        assert_eq!(LabelSelector::parse(text).expect_err(text), expected, "{text}");
    }
}

#[test]
fn selectors_in_objects_select_too() {
    let selector = json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}, {"key": "x", "operator": "DoesNotExist"}]
    });
    let parsed = LabelSelector::from_json(Some(&selector)).expect("valid");
    assert_eq!(parsed.to_string(), "app=web,tier in (a,b),!x");
    assert!(parsed.matches_labels(Some(&json!({"app": "web", "tier": "b"}))));
    assert!(!parsed.matches_labels(None));
    assert!(LabelSelector::from_json(Some(&json!({}))).expect("empty").matches_labels(None));
    let nothing = LabelSelector::from_json(None).expect("missing");
    assert!(!nothing.is_empty() && !nothing.matches_labels(Some(&json!({"a": "b"}))));
    let wrong = json!({"matchExpressions": [{"key": "a", "operator": "Is"}]});
    assert_eq!(
        LabelSelector::from_json(Some(&wrong)),
        Err("\"Is\" is not a valid label selector operator".into())
    );
}

#[test]
fn selectors_in_objects_are_validated() {
    let object = json!({"selector": {
        "matchLabels": {"a": "-"},
        "matchExpressions": [
            {"key": "a", "operator": "In"},
            {"key": "", "operator": "Exists", "values": ["x"]},
            {"key": "b", "operator": "Is", "values": ["_"]},
        ]
    }});
    let check = Check::new();
    validate_label_selector(check.root(&object).get("selector"), false);
    let errors: Vec<String> = check.take().iter().map(ToString::to_string).collect();
    let starts = [
        "selector.matchLabels: Invalid value: \"-\": a valid label must be",
        "selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        "selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        "selector.matchExpressions[1].key: Invalid value: \"\": name part must be non-empty",
        "selector.matchExpressions[1].key: Invalid value: \"\": name part must consist of",
        "selector.matchExpressions[2].operator: Invalid value: \"Is\": not a valid selector operator",
        "selector.matchExpressions[2].values[0]: Invalid value: \"_\": a valid label must be",
    ];
    assert_eq!(errors.len(), starts.len(), "{errors:?}");
    for (error, start) in errors.iter().zip(starts) {
        assert!(error.starts_with(start), "{error}");
    }
}

#[test]
fn fields_are_selected() {
    let fields = json!({"metadata.name": "a,b", "status.phase": "Running"});
    let selects = |text: &str| {
        FieldSelector::parse(text).expect(text).matches(|field| fields.get(field).and_then(Value::as_str))
    };
    for yes in ["", ",", "metadata.name=a\\,b", "status.phase==Running,x!=y", "x=", "="] {
        assert!(selects(yes), "{yes}");
    }
    assert!(!selects("metadata.name=a") && !selects("status.phase!=Running"));
    let selector = FieldSelector::parse("x!=1,metadata.name=a\\=\\\\").expect("valid");
    assert_eq!(selector.exact("metadata.name"), Some("a=\\"));
    assert_eq!(selector.exact("x"), None);
    assert_eq!(selector.to_string(), "metadata.name=a\\=\\\\,x!=1");
    assert_eq!(selector.requirements().len(), 2);
}

#[test]
fn field_selector_errors_are_gos() {
    let cases = [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("b=c,a", "invalid selector: 'b=c,a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a=\\x", "invalid field selector: invalid escape sequence: \\x"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ];
    for (text, expected) in cases {
        assert_eq!(FieldSelector::parse(text).expect_err(text), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(text in "[ab0-9=!<>(), innot\\\\]{0,24}|\\PC{0,12}") {
        if let Ok(selector) = LabelSelector::parse(&text) {
            let again = LabelSelector::parse(&selector.to_string()).expect("the canonical form is a selector");
            prop_assert_eq!(again.to_string(), selector.to_string());
        }
        if let Ok(selector) = FieldSelector::parse(&text) {
            let again = FieldSelector::parse(&selector.to_string()).expect("the canonical form is a selector");
            prop_assert_eq!(again.to_string(), selector.to_string());
        }
    }
}
