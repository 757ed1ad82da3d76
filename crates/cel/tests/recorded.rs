//! Expressions whose mistakes, types, results and costs were recorded from cel-go in Kubernetes' environment of 1.37.
//!
//! A line of a file in `recorded/` is an expression with what upstream makes of it, or the schema and the value of `self` for
//! those that follow. The order of a map's entries is
//! random there, so no expression depends on it.

#![allow(clippy::expect_used)]

mod support;

use std::{fmt::Write as _, fs, path::Path};

use k1s_cel::{
    DeclType, Env, Type, Value,
    cost::{NoSizes, SizeEstimator},
};
use serde_json::Value as Json;

/// What is known to differ, and why.
const KNOWN: &[(&str, &str)] = &[
    ("{1.0:1}", "numbers with a fraction, and null, are no keys here"),
    ("{dyn(1.0):1}", "as above"),
    ("{dyn(null):1}", "as above"),
    ("google.protobuf.Int64Value{value: 1}", "there are no messages of protobuf"),
    ("google.protobuf.Timestamp{}", "as above"),
];

/// What differs for an expression, or nothing.
fn differences(case: &Json, given: &Json) -> String {
    let text = |name: &str| case.get(name).and_then(Json::as_str);
    let mut out = String::new();
    let decl = given.get("schema").map(|schema| support::declared(schema, given["root"] == true));
    let ty = decl.as_ref().map_or(Type::Dyn, |decl| decl.cel().clone());
    let env = Env::kubernetes().extend().variable("self", ty).build();
    let expression = text("expr").unwrap_or_default();
    let ast = match env.compile(expression) {
        Ok(ast) => ast,
        Err(error) => {
            check(&mut out, "compile", text("compile"), Some(&error.to_string()));
            return out;
        }
    };
    check(&mut out, "compile", text("compile"), None);
    if !out.is_empty() {
        return out;
    }
    check(&mut out, "type", text("type"), Some(&support::type_text(ast.output_type())));
    let sizes: &dyn SizeEstimator = match &decl {
        Some(decl) => decl,
        None => &NoSizes,
    };
    let cost = ast.cost(sizes);
    let bounds = |name: &str| case.get(name).and_then(Json::as_u64);
    if (bounds("min"), bounds("max")) != (Some(cost.min), Some(cost.max)) {
        let _ = writeln!(
            out,
            "  estimate: {:?}..{:?}, here {}..{}",
            bounds("min"),
            bounds("max"),
            cost.min,
            cost.max
        );
    }
    let program = match ast.program() {
        Ok(program) => program,
        Err(error) => {
            check(&mut out, "program", text("program"), Some(&error));
            return out;
        }
    };
    check(&mut out, "program", text("program"), None);
    if text("program").is_some() {
        return out;
    }
    let dynamic = DeclType::dynamic();
    let mut variables = Vec::new();
    if let Some(json) = given.get("self") {
        match Value::from_json(json, decl.as_ref().unwrap_or(&dynamic)) {
            Ok(value) => variables.push(value),
            Err(error) => {
                check(&mut out, "error", text("error"), Some(&error.to_string()));
                return out;
            }
        }
    }
    let evaluation = program.evaluate(&variables, u64::MAX);
    let (result, error) = match &evaluation.result {
        Ok(value) => (Some(support::value_text(value)), None),
        Err(error) => (None, Some(error.to_string())),
    };
    check(&mut out, "result", text("result"), result.as_deref());
    check(&mut out, "error", text("error"), error.as_deref());
    if bounds("cost") != Some(evaluation.cost) {
        let _ = writeln!(out, "  cost: {:?}, here {}", bounds("cost"), evaluation.cost);
    }
    out
}

fn check(out: &mut String, what: &str, upstream: Option<&str>, here: Option<&str>) {
    if upstream != here {
        let _ = writeln!(out, "  {what}: {}\n    here: {}", upstream.unwrap_or("-"), here.unwrap_or("-"));
    }
}

fn play(name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(name);
    let lines = fs::read_to_string(file).expect("a file of recorded cases");
    let mut report = String::new();
    let (mut cases, mut different) = (0, 0);
    let mut given = Json::Null;
    for line in lines.lines().filter(|line| !line.is_empty()) {
        let case: Json = serde_json::from_str(line).expect("a case is JSON");
        if let Some(next) = case.get("given") {
            given = next.clone();
            continue;
        }
        cases += 1;
        if KNOWN.iter().any(|(expression, _)| case["expr"] == *expression) {
            continue;
        }
        let differences = differences(&case, &given);
        if !differences.is_empty() {
            different += 1;
            let _ = writeln!(report, "{}\n{differences}", case["expr"]);
        }
    }
    assert!(cases > 0, "no cases");
    assert!(report.is_empty(), "{different} of {cases} cases differ:\n{report}");
}

#[test]
fn syntax_errors_are_upstreams() {
    play("syntax.jsonl");
}

#[test]
fn the_language_is_upstreams() {
    play("language.jsonl");
}

#[test]
fn typed_and_untyped_objects_are_upstreams() {
    play("schemas.jsonl");
}

#[test]
fn expressions_of_upstreams_tests_are_upstreams() {
    play("upstream.jsonl");
}

#[test]
fn random_expressions_are_upstreams() {
    play("random.jsonl");
}
