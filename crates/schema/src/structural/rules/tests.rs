//! Upstream's cases: schemas, objects, and what kube-apiserver finds in them and what that costs, recorded from the
//! tests of apiextensions-apiserver 0.37.

use k1s_cel::Work;
use k1s_object::field::ErrorKind;
use serde_json::{Value, json};

use super::*;
use crate::structural::Structural;

const VALIDATIONS: &str = include_str!("../../../tests/data/cel_validations.jsonl");
const COMPILATIONS: &str = include_str!("../../../tests/data/cel_compilations.jsonl");

/// The kind of an error as Go names it.
fn go_kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Invalid => "FieldValueInvalid",
        ErrorKind::Forbidden => "FieldValueForbidden",
        ErrorKind::Required => "FieldValueRequired",
        ErrorKind::Duplicate => "FieldValueDuplicate",
        ErrorKind::Internal => "InternalError",
        _ => "other",
    }
}

/// Upstream's types have a number in their name, which is another each time.
fn anonymous(text: &str) -> String {
    let mut parts = text.split("selfType");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("selfType");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The groups of a file, each with its cases: a schema with the rules of the case.
fn cases(file: &str) -> impl Iterator<Item = (Value, Value, Structural)> {
    file.lines().flat_map(|line| {
        let group: Value = serde_json::from_str(line).unwrap();
        let list = group["cases"].as_array().unwrap().clone();
        list.into_iter().map(move |case| {
            let mut schema = group["schema"].clone();
            schema["x-kubernetes-validations"] = case["rules"].clone();
            let schema = Structural::compile(&schema);
            (group.clone(), case, schema)
        })
    })
}

/// Evaluates the rules of a case; the difference, if there is one.
fn evaluated_otherwise(group: &Value, case: &Value, schema: &Structural) -> Option<String> {
    let root = group["root"].as_bool().unwrap();
    let path = group["path"].as_str().unwrap();
    let budget = group["budget"].as_u64().unwrap();
    let old = Some(&group["old"]).filter(|old| !old.is_null());
    let ratchet = group["ratchet"].as_bool().unwrap();
    let (mut errors, remaining) = match Validator::new(schema, root) {
        Some(validator) => {
            let found =
                validator.validate(schema, &group["obj"], old, ratchet, path, (budget, &Work::new(WORK)));
            let errors = found.errors.into_vec();
            (
                errors.iter().map(|error| format!("{} {error}", go_kind(error.kind))).collect::<Vec<_>>(),
                found.remaining.map_or(-1, |remaining| i64::try_from(remaining).unwrap()),
            )
        }
        None => (Vec::new(), i64::try_from(budget).unwrap()),
    };
    errors.sort();
    let expected: Vec<String> = texts(&case["errors"]).iter().map(|text| anonymous(text)).collect();
    if errors == expected && case["remaining"] == remaining {
        return None;
    }
    Some(format!(
        "rules {} of {}\n  object {}\n  old {}\n  expected {expected:#?} remaining {}\n  found {errors:#?} remaining {remaining}",
        case["rules"], group["schema"], group["obj"], group["old"], case["remaining"]
    ))
}

/// Compiles the rules of a case; the difference, if there is one.
fn compiled_otherwise(group: &Value, case: &Value, schema: &Structural) -> Option<String> {
    // Upstream's tests compile the rules of resources and of parts of them.
    let found = [false, true].map(|root| {
        let Some(decl) = decl_type(schema, root) else { return Value::Null };
        let results = schema.own_rules().iter().map(|rule| {
            let compiled = compile(rule, &decl);
            let ok = matches!(compiled.program, Ok(Some(_)));
            let mut result = json!({
                "uses": compiled.uses_old_self,
                "cost": compiled.cost,
                "cardinality": if ok { decl::MAX_REQUEST / (decl.min_serialized_size() + 1) } else { 0 },
                "message_cost": compiled.message_cost,
            });
            if let Err(RuleError(why)) = &compiled.program {
                result["error"] = json!(why);
            }
            if let Some(Err(RuleError(why))) = &compiled.message {
                result["message_error"] = json!(why);
            }
            result
        });
        results.collect()
    });
    let expected: Value = serde_json::from_str(&anonymous(&case["results"].to_string())).unwrap();
    (!found.contains(&expected)).then(|| {
        format!("rules {} of {}\n  expected {expected}\n  found {}", case["rules"], group["schema"], found[0])
    })
}

fn check(file: &str, difference: impl Fn(&Value, &Value, &Structural) -> Option<String>) -> usize {
    let mut count = 0;
    let mut found = Vec::new();
    for (group, case, schema) in cases(file) {
        count += 1;
        found.extend(difference(&group, &case, &schema));
    }
    assert!(found.is_empty(), "{} of {count} cases differ:\n{}", found.len(), found.join("\n\n"));
    count
}

#[test]
fn rules_find_and_cost_what_they_do_upstream() {
    assert_eq!(check(VALIDATIONS, evaluated_otherwise), 1183);
}

#[test]
fn rules_compile_and_are_estimated_as_upstream() {
    assert_eq!(check(COMPILATIONS, compiled_otherwise), 1109);
}
