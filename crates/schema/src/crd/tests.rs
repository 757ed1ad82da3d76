//! Upstream's cases: schemas, and what kube-apiserver finds in them, recorded from the tests of apiextensions-apiserver
//! 0.37.

use k1s_object::field::{ErrorKind, FieldError};
use serde_json::Value;

use super::validate::check_schema;
use k1s_cel::go_regex::Patterns;

const CASES: &str = include_str!("../../tests/data/crd_schemas.jsonl");

/// An error with its kind as Go names it.
fn text(error: &FieldError) -> String {
    let kind = match error.kind {
        ErrorKind::Invalid => "FieldValueInvalid",
        ErrorKind::Forbidden => "FieldValueForbidden",
        ErrorKind::Required => "FieldValueRequired",
        ErrorKind::Duplicate => "FieldValueDuplicate",
        ErrorKind::NotSupported => "FieldValueNotSupported",
        ErrorKind::Internal => "InternalError",
        ErrorKind::TooMany => "FieldValueTooMany",
        ErrorKind::TooLong => "FieldValueTooLong",
        ErrorKind::TypeInvalid => "FieldValueTypeInvalid",
        _ => "other",
    };
    format!("{kind} {error}")
}

fn difference(case: &Value) -> Option<String> {
    let flag = |key: &str| case[key].as_bool().unwrap_or_default();
    let path = case["path"].as_str().unwrap_or_default();
    let errors =
        check_schema(&case["schema"], path, flag("status"), flag("tolerate"), &mut Patterns::default());
    let mut found: Vec<String> = errors.into_vec().iter().map(text).collect();
    let expected = case["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut expected: Vec<String> = expected.map(str::to_owned).collect();
    found.sort();
    expected.sort();
    (found != expected).then(|| format!("{case}\n  expected {expected:#?}\n  found {found:#?}"))
}

#[test]
fn schemas_have_upstreams_errors() {
    let cases: Vec<Value> = CASES.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<String> = cases.iter().filter_map(difference).collect();
    assert!(found.is_empty(), "{} of {} cases differ:\n{}", found.len(), cases.len(), found.join("\n\n"));
}
