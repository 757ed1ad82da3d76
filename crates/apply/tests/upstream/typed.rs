//! Values with a schema, as `typed/*_test.go` has them.

use std::collections::HashMap;

use k1s_apply::{
    FieldSet,
    typed::{Comparison, Duplicates, Typed},
};
use serde_json::Value;

use crate::support::{Check, Named, expect, expect_paths, run};

fn fields(case: &Value, name: &str) -> FieldSet {
    FieldSet::from_fields_v1(&case[name]).unwrap()
}

fn expect_comparison(actual: &Comparison, expected: &Value, reverse: bool) -> Check {
    let (removed, added) = if reverse { ("added", "removed") } else { ("removed", "added") };
    expect_paths(removed, &actual.removed, &expected[removed])?;
    expect_paths("modified", &actual.modified, &expected["modified"])?;
    expect_paths(added, &actual.added, &expected[added])
}

fn check(case: &Value, schemas: &HashMap<String, Named>) -> Check {
    if case["kind"] == "exclude" {
        let exclude = case.get("exclude").map(|_| fields(case, "exclude")).unwrap_or_default();
        let without = |name: &str| fields(case, name).recursive_difference(&exclude);
        let actual = Comparison {
            removed: without("removed"),
            modified: without("modified"),
            added: without("added"),
        };
        return expect_comparison(&actual, &case["expect"], false);
    }
    let named = &schemas[case["schema"].as_str().unwrap()];
    let ty = named.root(case.get("type").and_then(Value::as_str)).unwrap();
    let typed = |name: &str| Typed::new(&case[name], &named.schema, ty, "v1");
    let valid = |value: &Typed<'_>, duplicates| {
        value.validate(duplicates).map_err(|errors| format!("{} is not valid: {errors}", value.value))
    };
    match case["kind"].as_str().unwrap() {
        "validate" => {
            let object = typed("object");
            match case["expect"].as_str().unwrap() {
                "valid" => valid(&object, Duplicates::Refuse)?,
                expected => {
                    let errors = object.validate(Duplicates::Refuse).err().ok_or("it is valid")?;
                    if let Some(text) = case.get("error").and_then(Value::as_str) {
                        expect("error", &errors.to_string().as_str(), &text)?;
                    }
                    if expected == "duplicates" {
                        valid(&object, Duplicates::Allow)?;
                    }
                }
            }
            Ok(())
        }
        "merge" => {
            let (left, right) = (typed("left"), typed("right"));
            valid(&left, Duplicates::Allow)?;
            valid(&right, Duplicates::Refuse)?;
            let merged = left.merge(&right).map_err(|errors| errors.to_string())?;
            expect("merged", &*merged.value, &case["out"])
        }
        "compare" => {
            let (left, right) = (typed("left"), typed("right"));
            valid(&left, Duplicates::Allow)?;
            valid(&right, Duplicates::Allow)?;
            expect_comparison(&left.compare(&right).map_err(|errors| errors.to_string())?, case, false)?;
            expect_comparison(&right.compare(&left).map_err(|errors| errors.to_string())?, case, true)
                .map_err(|why| format!("reverse: {why}"))
        }
        "field_set" => {
            valid(&typed("object"), Duplicates::Allow)?;
            expect_paths("fields", &typed("object").field_set(), &case["fields"])
        }
        "remove" => {
            let set = fields(case, "set");
            valid(&typed("object"), Duplicates::Refuse)?;
            if let Some(expected) = case.get("removed") {
                expect("removed", &*typed("object").remove(&set).value, expected)?;
            }
            if let Some(expected) = case.get("extracted") {
                expect("extracted", &*typed("object").extract(&set).value, expected)?;
            }
            Ok(())
        }
        "extract_with_keys" => {
            expect("extracted", &*typed("object").extract(&fields(case, "set")).value, &case["extracted"])
        }
        "reversible_extract" => {
            let config = typed("config");
            let merged = typed("object").merge(&config).map_err(|errors| errors.to_string())?;
            expect("extracted", &*merged.extract(&config.field_set().leaves()).value, &config.value)
        }
        "reconcile" => {
            valid(&typed("object"), Duplicates::Refuse)?;
            match (typed("object").reconcile(&fields(case, "set")), case.get("fields")) {
                (None, None) => Ok(()),
                (Some(actual), Some(expected)) => expect_paths("fields", &actual, expected),
                (actual, expected) => Err(format!("expected {expected:?}, actual {actual:?}")),
            }
        }
        other => panic!("unknown kind {other}"),
    }
}

#[test]
fn values_with_a_schema() {
    run("typed_", check);
}
