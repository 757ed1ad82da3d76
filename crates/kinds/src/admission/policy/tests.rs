//! Policies with the cases of upstream's validator tests.

use k1s_cel::Work;
use serde_json::{Value, json};

use super::*;
use crate::expressions::{Input, OUT_OF_BUDGET};

fn outcome(spec: &Value, object: &Value, params: &Value) -> Outcome {
    let request =
        json!({"operation": "CREATE", "name": "x", "namespace": "ns", "userInfo": {"username": "alice"}});
    let namespace = json!({"metadata": {"name": "ns", "labels": {"env": "prod"}}});
    let input = Input {
        object,
        old_object: &Value::Null,
        request: &request,
        params,
        namespace: &namespace,
        authorizer: None,
    };
    ValidatingPolicy::compile(spec).evaluate(input, &Work::new(100_000_000))
}

/// The messages with which an object is denied.
fn denied(spec: &Value, object: &Value) -> Vec<String> {
    let outcome = outcome(spec, object, &Value::Null);
    outcome.denials.into_iter().map(|denial| denial.message).collect()
}

fn one(expression: &str) -> Value {
    json!({"validations": [{"expression": expression}]})
}

#[test]
fn what_does_not_hold_is_denied_with_a_message() {
    let object = json!({"metadata": {"name": "x"}, "data": {"a": "1"}});
    assert_eq!(denied(&one("object.metadata.name == 'x'"), &object), [""; 0]);
    assert_eq!(denied(&one(" object.data.a == '2' "), &object), ["failed expression: object.data.a == '2'"]);
    assert_eq!(
        denied(&one("object.spec.x == 1"), &object),
        ["expression 'object.spec.x == 1' resulted in error: no such key: spec"]
    );
    let spec = |message: Value| {
        let mut validation = json!({"expression": "false", "message": " fixed "});
        validation["messageExpression"] = message;
        json!({"validations": [validation]})
    };
    for (message, shown) in [
        (json!("'named ' + object.metadata.name"), "named x"),
        (json!("' '"), "fixed"),
        (json!("'two\\nlines'"), "fixed"),
        (json!("object.nope"), "fixed"),
        (json!("''"), "fixed"),
    ] {
        assert_eq!(denied(&spec(message.clone()), &object), [shown], "{message}");
    }
}

#[test]
fn a_policy_that_ignores_failures_admits_what_it_cannot_evaluate() {
    let object = json!({"metadata": {"name": "x"}});
    let mut spec = one("object.spec.x == 1");
    spec["failurePolicy"] = "Ignore".into();
    assert_eq!(denied(&spec, &object), [""; 0]);
    spec["validations"][0]["expression"] = "object.metadata.name == 'y'".into();
    assert_eq!(denied(&spec, &object).len(), 1);
}

#[test]
fn a_condition_that_does_not_hold_excludes_even_if_others_fail() {
    let object = json!({"metadata": {"name": "x"}});
    let with = |conditions: Value| {
        let mut spec = one("false");
        spec["matchConditions"] = conditions;
        denied(&spec, &object)
    };
    let fails = json!({"name": "a", "expression": "object.spec.x == 1"});
    let holds = json!({"name": "b", "expression": "request.userInfo.username == 'alice'"});
    let not = json!({"name": "c", "expression": "object.metadata.name == 'y'"});
    assert_eq!(with(json!([holds])), ["failed expression: false"]);
    assert_eq!(with(json!([fails, not])), [""; 0]);
    assert_eq!(
        with(json!([fails, holds])),
        ["expression 'object.spec.x == 1' resulted in error: no such key: spec"]
    );
}

#[test]
fn variables_are_evaluated_once_and_when_they_are_used() {
    let object = json!({"metadata": {"name": "x"}, "items": [1, 2, 3]});
    let spec = json!({
        "variables": [
            {"name": "count", "expression": "object.items.size()"},
            {"name": "double", "expression": "variables.count * 2"},
            {"name": "broken", "expression": "object.nope.x"},
        ],
        "validations": [
            {"expression": "variables.double == 6"},
            {"expression": "variables.count == 4", "messageExpression": "string(variables.double)"},
            {"expression": "variables.broken == 1"},
            {"expression": "namespaceObject.metadata.labels.env == 'prod'"},
        ],
    });
    assert_eq!(
        denied(&spec, &object),
        [
            "6",
            "expression 'variables.broken == 1' resulted in error: composited variable \"broken\" fails to evaluate: no such key: nope",
        ]
    );
}

#[test]
fn parameters_and_old_objects_are_null_without_any() {
    let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "params == null && oldObject == null"}]});
    assert_eq!(outcome(&spec, &json!({}), &Value::Null).denials, []);
    assert_eq!(outcome(&spec, &json!({}), &json!({"data": {}})).denials.len(), 1);
}

#[test]
fn reasons_come_from_the_validation() {
    let spec = json!({"validations": [
        {"expression": "false", "reason": "Forbidden"}, {"expression": "false"}, {"expression": "object.x"}]});
    let reasons: Vec<String> =
        outcome(&spec, &json!({}), &Value::Null).denials.into_iter().map(|one| one.reason).collect();
    assert_eq!(reasons, ["Forbidden", "Invalid", ""]);
}

#[test]
fn audit_annotations_are_published_unless_null_or_empty() {
    let spec = json!({"auditAnnotations": [
        {"key": "a", "valueExpression": "'by ' + request.userInfo.username"},
        {"key": "b", "valueExpression": "null"},
        {"key": "c", "valueExpression": "'  '"},
        {"key": "d", "valueExpression": "string(object.nope)"},
    ]});
    let outcome = outcome(&spec, &json!({}), &Value::Null);
    assert_eq!(
        outcome.annotations,
        [
            Annotation::Publish("a".into(), "by alice".into()),
            Annotation::Failed(
                "expression 'string(object.nope)' resulted in error: no such key: nope".into()
            ),
        ]
    );
}

#[test]
fn the_budget_bounds_a_policy() {
    let list: Vec<Value> = (0..2000).map(Value::from).collect();
    let object = json!({"items": list});
    let expensive = "object.items.all(x, object.items.all(y, x + y >= 0))";
    let found = denied(&one(expensive), &object);
    assert_eq!(
        found,
        [format!(
            "expression '{expensive}' resulted in error: operation cancelled: actual cost limit exceeded"
        )]
    );
}

#[test]
fn policies_of_a_request_share_a_bound() {
    let list: Vec<Value> = (0..1000).map(Value::from).collect();
    let object = json!({"items": list});
    let nothing = Value::Null;
    let input = Input {
        object: &object,
        old_object: &nothing,
        request: &nothing,
        params: &nothing,
        namespace: &nothing,
        authorizer: None,
    };
    // Variables count when they are evaluated, however they depend on each other.
    let expensive = "object.items.map(x, x + 1).size()";
    let mut variables = vec![json!({"name": "v0", "expression": expensive})];
    for number in 1..30 {
        let expression = format!("{expensive} + variables.v{}", number - 1);
        variables.push(json!({"name": format!("v{number}"), "expression": expression}));
    }
    let spec = json!({"variables": variables, "validations": [{"expression": "variables.v29 > 0"}, {"expression": "false"}]});
    let policy = ValidatingPolicy::compile(&spec);
    let work = Work::new(800_000);
    let evaluate =
        || policy.evaluate(input, &work).denials.into_iter().map(|denial| denial.message).collect();
    let denied: Vec<String> = evaluate();
    assert_eq!(
        (denied.as_slice(), work.is_exhausted()),
        (&["failed expression: false".to_owned()][..], false)
    );
    let denied: Vec<String> = evaluate();
    assert_eq!((denied.as_slice(), work.is_exhausted()), (&[OUT_OF_BUDGET.to_owned()][..], true));
}

#[test]
fn variables_are_nested_as_deep_as_the_stack_allows() {
    let deep = format!("{}1{}", "[".repeat(30), "]".repeat(30));
    let mut variables = vec![json!({"name": "v0", "expression": deep})];
    for number in 1..200 {
        // Each is used in the depth of the next.
        let (before, after) = ("[1].map(x, ".repeat(30), ")".repeat(30));
        let expression = format!("{before}variables.v{}{after}", number - 1);
        variables.push(json!({"name": format!("v{number}"), "expression": expression}));
    }
    let last = |number: usize| {
        let spec = json!({"variables": variables[..=number],
            "validations": [{"expression": format!("variables.v{number}.size() > 0")}]});
        denied(&spec, &Value::Null)
    };
    assert_eq!(last(1), [""; 0]);
    let [why] = last(199).try_into().unwrap();
    assert!(why.ends_with("max recursion depth exceeded"), "{why}");
}
