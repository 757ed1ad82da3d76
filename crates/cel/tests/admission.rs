//! What only expressions of admission use: the authorizer, and the objects that mutating policies construct.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use k1s_cel::{
    CostEstimate, Env, EvalError, Value,
    cost::NoSizes,
    library::authz::{self, Action, Authorize, Decision, ResourceAction, Subject},
};
use serde_json::{Value as Json, json};

/// Allows to get, and remembers what it was asked.
#[derive(Debug, Default)]
struct Gets(Mutex<Vec<(Subject, Action)>>);

impl Authorize for Gets {
    fn authorize(&self, subject: &Subject, action: &Action) -> Decision {
        self.0.lock().expect("a lock").push((subject.clone(), action.clone()));
        let verb = match action {
            Action::Path { verb, .. } => verb,
            Action::Resource(action) => &action.verb,
        };
        let error = (verb == "fail").then(|| "broken".to_owned());
        Decision { allowed: verb == "get", reason: format!("because {verb}"), error }
    }
}

fn env() -> Env {
    let [authorizer, resource_check] = authz::types();
    Env::kubernetes()
        .extend()
        .variable("authorizer", authorizer)
        .variable("authorizer.requestResource", resource_check)
        .mutation_types()
        .build()
}

/// The result of an expression as JSON, its cost, and what the authorizer was asked.
fn run(expression: &str) -> (Result<Json, EvalError>, u64, Vec<(Subject, Action)>) {
    let gets = Arc::new(Gets::default());
    let resource = ResourceAction { resource: "pods".into(), name: "a".into(), ..ResourceAction::default() };
    let variables = [authz::authorizer(gets.clone()), authz::request_resource(gets.clone(), resource)];
    let program = env().compile(expression).unwrap().program().unwrap();
    let evaluation = program.evaluate(&variables, u64::MAX);
    let result = evaluation.result.and_then(|value: Value<'_>| value.to_json());
    let asked = gets.0.lock().expect("a lock").clone();
    (result, evaluation.cost, asked)
}

#[test]
fn the_authorizer_is_asked_what_the_expression_says() {
    let (result, cost, asked) = run("authorizer.path('/healthz').check('get').allowed()");
    assert_eq!((result, cost), (Ok(json!(true)), 350_003));
    assert_eq!(asked, [(Subject::Requester, Action::Path { path: "/healthz".into(), verb: "get".into() })]);

    let check = "authorizer.serviceAccount('ns', 'sa').group('apps').resource('deployments').subresource('status')\
        .namespace('test').name('backend').fieldSelector('a=b').labelSelector('c').check('create')";
    let (result, _, asked) = run(&format!("{check}.allowed() || {check}.reason() == 'because create'"));
    assert_eq!(result, Ok(json!(true)));
    let action = ResourceAction {
        group: "apps".into(),
        resource: "deployments".into(),
        subresource: "status".into(),
        namespace: "test".into(),
        name: "backend".into(),
        field_selector: "a=b".into(),
        label_selector: "c".into(),
        verb: "create".into(),
    };
    let expected = (Subject::ServiceAccount("ns".into(), "sa".into()), Action::Resource(action));
    assert_eq!(asked, [expected.clone(), expected]);

    let (result, _, asked) = run("authorizer.requestResource.check('fail').error()");
    assert_eq!(result, Ok(json!("broken")));
    assert!(
        matches!(&asked[..], [(_, Action::Resource(action))] if action.resource == "pods" && action.name == "a")
    );
}

#[test]
fn the_authorizer_refuses_what_upstream_refuses() {
    for (expression, message) in [
        ("authorizer.path(' ').check('get').allowed()", "path must not be empty"),
        ("authorizer.group('').resource('').check('get').allowed()", "resource must not be empty"),
        (
            "authorizer.serviceAccount('ns', 'A').path('/').check('get').allowed()",
            "Invalid service account name",
        ),
        (
            "authorizer.serviceAccount('', 'a').path('/').check('get').allowed()",
            "Invalid service account namespace",
        ),
    ] {
        let (result, _, asked) = run(expression);
        assert_eq!(result.unwrap_err().to_string(), message, "{expression}");
        assert_eq!(asked, []);
    }
    let ast = env().compile("authorizer.path('/').check('get').allowed()").unwrap();
    assert_eq!(ast.cost(&NoSizes), CostEstimate::fixed(350_003));
}

#[test]
fn mutating_policies_construct_objects_and_patches() {
    let (result, cost, _) = run(
        "Object{metadata: Object.metadata{labels: {'a': 'b'}}, spec: Object.spec{replicas: 1, ?paused: optional.none()}}",
    );
    assert_eq!(result, Ok(json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1}})));
    assert_eq!(cost, 121);
    let (result, _, _) = run("[JSONPatch{op: 'add', path: '/spec/x', value: {'y': [1]}}]");
    assert_eq!(result, Ok(json!([{"op": "add", "path": "/spec/x", "value": {"y": [1]}}])));
    let ast = env().compile("[JSONPatch{op: 'test'}]").unwrap();
    assert_eq!(ast.output_type().to_string(), "list(JSONPatch)");
    for (expression, message) in [
        ("JSONPatch{oh: 'add'}", "undefined field 'oh'"),
        ("JSONPatch{op: 1}", "expected type of field 'op' is 'string' but provided type is 'int'"),
        ("Objects{}", "undeclared reference to 'Objects' (in container '')"),
    ] {
        let error = env().compile(expression).unwrap_err();
        assert_eq!(error.issues()[0].message, message);
    }
}

#[test]
fn what_go_has_decoded_has_floating_point_numbers_and_escaped_names() {
    let claims = json!({
        "exp": 1700081020, "kubernetes.io": {"pod": [{"a-b": "x"}]}, "namespace": "n", "plain": {"__dot__": 1}, "a/b": true,
    });
    let decl = k1s_cel::DeclType::decoded();
    let env = Env::kubernetes()
        .extend()
        .variable("claims", k1s_cel::Type::map(k1s_cel::Type::String, k1s_cel::Type::Dyn))
        .build();
    let run = |expression: &str| {
        let program = env.compile(expression).unwrap().program().unwrap();
        let variables = [Value::from_json(&claims, &decl).unwrap()];
        let result = program.evaluate(&variables, u64::MAX).result;
        result.and_then(|value| value.to_json()).map_err(|error| error.to_string())
    };
    for (expression, expected) in [
        ("string(int(claims.exp))", json!("1700081020")),
        ("type(claims.exp) == double", json!(true)),
        ("claims.kubernetes__dot__io.pod[0].a__dash__b", json!("x")),
        ("claims['kubernetes.io'].pod[0]['a-b']", json!("x")),
        ("has(claims.kubernetes__dot__io.pod)", json!(true)),
        ("has(claims.a__slash__b) && claims[?'a__slash__b'].hasValue()", json!(true)),
        ("claims.__namespace__ + claims.namespace", json!("nn")),
        ("'kubernetes__dot__io' in claims", json!(true)),
        ("has(claims.plain.__dot__)", json!(false)),
        ("claims.size() == 5 && claims.exists(name, name == 'kubernetes.io')", json!(true)),
    ] {
        assert_eq!(run(expression), Ok(expected), "{expression}");
    }
    assert_eq!(run("claims.kubernetes__dot__com").unwrap_err(), "no such key: kubernetes__dot__com");
}
