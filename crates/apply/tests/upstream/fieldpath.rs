//! Paths, sets of paths and `FieldsV1`, as `fieldpath/*_test.go` has them.

use std::{cmp::Ordering, collections::HashMap};

use k1s_apply::{FieldSet, PathElement};
use serde_json::Value;

use crate::support::{Check, Named, expect, path, run, set};

fn check(case: &Value, schemas: &HashMap<String, Named>) -> Check {
    let text = |name: &str| case[name].as_str().unwrap();
    let key = |text: &str| PathElement::from_key(text).map_err(|why| why.to_string());
    let expect_set = |actual: FieldSet, name: &str| expect(name, &actual.paths(), &set(&case[name]).paths());
    let fields = |text: &str| -> Result<FieldSet, String> {
        let json: Value = serde_json::from_str(text).map_err(|why| why.to_string())?;
        FieldSet::from_fields_v1(&json).map_err(|why| why.to_string())
    };
    match text("kind") {
        "less" => {
            let order = key(text("left"))?.cmp(&key(text("right"))?);
            expect("order", &order, &if case["equal"] == true { Ordering::Equal } else { Ordering::Less })
        }
        "path_string" => expect("text", &path(&case["path"]).to_string().as_str(), &text("text")),
        "key" => {
            let element = key(text("key"))?;
            expect("key", &element.to_key().as_str(), &text("canonical"))?;
            match case.get("text").and_then(Value::as_str) {
                Some(text) => expect("text", &element.to_string().as_str(), &text),
                None => Ok(()),
            }
        }
        "bad_key" => match key(text("key")) {
            Ok(element) => Err(format!("it is read as {element:?}")),
            Err(_) => Ok(()),
        },
        "fields" => {
            let canonical = fields(text("text"))?.to_fields_v1().to_string();
            expect("fields", &canonical.as_str(), &text("canonical"))
        }
        "bad_fields" => match fields(text("text")) {
            Ok(set) => Err(format!("it is read as {set:?}")),
            Err(_) => Ok(()),
        },
        "has" => {
            expect("has", &set(&case["set"]).has(&path(&case["path"]).0), &case["expect"].as_bool().unwrap())
        }
        "equals" => {
            let equal = set(&case["left"]) == set(&case["right"]);
            expect("equal", &equal, &case["expect"].as_bool().unwrap())
        }
        "size" => expect(
            "size",
            &set(&case["set"]).len(),
            &usize::try_from(case["expect"].as_u64().unwrap()).unwrap(),
        ),
        "union" => expect_set(set(&case["left"]).union(&set(&case["right"])), "expect"),
        "intersection" => expect_set(set(&case["left"]).intersection(&set(&case["right"])), "expect"),
        "difference" => {
            let (left, right) = (set(&case["left"]), set(&case["right"]));
            expect_set(left.difference(&right), "expect")?;
            match case.get("recursive") {
                Some(_) => expect_set(left.recursive_difference(&right), "recursive"),
                None => Ok(()),
            }
        }
        "leaves" => expect_set(set(&case["set"]).leaves(), "expect"),
        "named_fields" => {
            let named = &schemas[text("schema")];
            let ty = named.root(Some(text("type"))).unwrap();
            expect_set(set(&case["set"]).with_named_fields(&named.schema, ty), "expect")
        }
        other => panic!("unknown kind {other}"),
    }
}

#[test]
fn paths_sets_and_fields_v1() {
    run("fieldpath_", check);
}
