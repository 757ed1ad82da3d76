//! Definitions with many rules in CEL, and rules that would cost too much.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::common::{Client, client, server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUPS: usize = 20;
const KINDS: usize = 50;
/// No hostile request takes so long, even on a busy machine and without optimizations.
const PATIENCE: Duration = Duration::from_secs(60);

fn definition(group: &str, kind: &str, rules: &[Value]) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
                "properties": {"spec": {"type": "object", "x-kubernetes-validations": rules, "properties": {
                    "n": {"type": "integer"}, "l": {"type": "array", "items": {"type": "string"}}}}}}}}]}})
}

/// Resident memory of this process in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default();
    pages * 4096
}

/// Runs requests of somebody else until others are done. Returns how many there were, and how long the slowest took.
async fn serve_until(client: &Client, done: &AtomicBool) -> (u64, Duration) {
    let (mut served, mut slowest) = (0, Duration::ZERO);
    while !done.load(Ordering::SeqCst) {
        let body =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{served}")}});
        let began = client.env.now();
        client.post("/api/v1/namespaces/kube-public/configmaps", body).await;
        slowest = slowest.max(client.env.now() - began);
        served += 1;
        client.env.yield_now().await;
    }
    (served, slowest)
}

#[tokio::test]
async fn others_are_served_while_a_thousand_definitions_with_rules_are_written() {
    let client = client(&server().await);
    let rules: Vec<Value> = (0..10)
        .map(|number| json!({"rule": format!("self.n != {number}"), "message": format!("not {number}")}))
        .collect();
    let before = resident();
    let done = AtomicBool::new(false);
    let write = async {
        for group in 0..GROUPS {
            for kind in 0..KINDS {
                let body = definition(&format!("g{group}.example.com"), &format!("Kind{kind}"), &rules);
                client.post(DEFINITIONS, body).await;
            }
        }
        // Each is established, refuses an object that its rules do not allow, and takes another.
        let list = client.get(DEFINITIONS).await;
        for definition in list["items"].as_array().unwrap() {
            let conditions = definition["status"]["conditions"].as_array().unwrap();
            let established = |one: &Value| one["type"] == "Established" && one["status"] == "True";
            assert!(conditions.iter().any(established), "{definition}");
            let (group, names) =
                (definition["spec"]["group"].as_str().unwrap(), &definition["spec"]["names"]);
            let path = format!("/apis/{group}/v1/namespaces/default/{}", names["plural"].as_str().unwrap());
            let object = |n: u64| {
                json!({"apiVersion": format!("{group}/v1"), "kind": names["kind"],
                    "metadata": {"name": "a"}, "spec": {"n": n}})
            };
            let (code, body) = client.call("POST", &path, object(7)).await;
            assert_eq!(
                (code, &body["details"]["causes"][0]["message"]),
                (422, &json!("Invalid value: not 7"))
            );
            client.post(&path, object(10)).await;
        }
        done.store(true, Ordering::SeqCst);
        list["items"].as_array().unwrap().len()
    };
    let (written, (served, slowest)) = tokio::join!(write, serve_until(&client, &done));
    assert_eq!(written, GROUPS * KINDS);
    // No definition held up another client for long: there was a request between most of them.
    assert!(served * 2 > (GROUPS * KINDS) as u64, "{served} requests were served meanwhile");
    assert!(slowest < PATIENCE, "another request took {slowest:?}");
    let grown = resident().saturating_sub(before) >> 20;
    assert!(grown < 600, "the server has grown by {grown} MiB");
}

/// A value with two to the power of `times` parts, which costs little to make and to compare by upstream's count.
fn doubled(times: usize) -> String {
    format!("[dyn([1])]{}[0]", ".map(x, dyn([x, x]))".repeat(times))
}

#[tokio::test]
async fn many_rules_over_a_long_list_share_one_bound() {
    let client = client(&server().await);
    let mut body = definition("many.example.com", "Many", &[]);
    let rules: Vec<Value> = (0..50)
        .map(|number| json!({"rule": format!("[{}].all(x, x == x) || self == '{number}'", doubled(14))}))
        .collect();
    let schema = &mut body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    schema["properties"]["l"] = json!({"type": "array", "maxItems": 300,
        "items": {"type": "string", "maxLength": 10, "x-kubernetes-validations": rules}});
    client.post(DEFINITIONS, body).await;
    let path = "/apis/many.example.com/v1/namespaces/default/manys";
    let object = |items: usize| {
        let list: Vec<String> = (0..items).map(|item| format!("i{item}")).collect();
        json!({"apiVersion": "many.example.com/v1", "kind": "Many", "metadata": {"name": format!("m{items}")},
            "spec": {"l": list}})
    };
    // Each evaluation compares 16,000 parts.
    client.post(path, object(5)).await;
    let done = AtomicBool::new(false);
    let hostile = async {
        let began = client.env.now();
        let answers = join_all((0..4).map(|_| client.call("POST", path, object(300)))).await;
        done.store(true, Ordering::SeqCst);
        (answers, client.env.now() - began)
    };
    let ((answers, took), (served, slowest)) = tokio::join!(hostile, serve_until(&client, &done));
    for (code, body) in answers {
        assert_eq!(code, 422, "{body}");
        let message = body["message"].as_str().unwrap();
        let spent =
            "validation failed due to running out of cost budget, no further validation rules will be run";
        assert!(message.contains(spent), "{message}");
    }
    assert!(took < PATIENCE, "the hostile requests took {took:?}");
    assert!(served > 3, "{served} requests were served meanwhile");
    assert!(slowest < PATIENCE / 4, "another request took {slowest:?}");
}

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const SPENT: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// An object that configures admission.
fn registration(kind: &str, name: &str, field: &str, value: &Value) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, field: value})
}

/// For new Secrets.
fn secrets() -> Value {
    json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}])
}

/// Registers policies with bindings: more than a request may evaluate, if each works like [`doubled`].
async fn policies(client: &Client, kind: &str, spec: &Value) {
    for number in 0..40 {
        let name = format!("p{number:03}");
        let path = format!("{ADMISSION}/{}admissionpolic", kind.to_lowercase());
        let policy = format!("{kind}AdmissionPolicy");
        client.post(&format!("{path}ies"), registration(&policy, &name, "spec", spec)).await;
        let mut binding = json!({"policyName": name});
        if kind == "Validating" {
            binding["validationActions"] = json!(["Deny"]);
        }
        let binding = registration(&format!("{policy}Binding"), &name, "spec", &binding);
        client.post(&format!("{path}ybindings"), binding).await;
    }
}

/// Creates a Secret, which has to be refused within bounds while others are served.
async fn is_refused(client: &Client, expected: u16, begins: &str, ends: &str) {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    let done = AtomicBool::new(false);
    let hostile = async {
        let began = client.env.now();
        let answer = client.call("POST", "/api/v1/namespaces/default/secrets", secret).await;
        done.store(true, Ordering::SeqCst);
        (answer, client.env.now() - began)
    };
    let (((code, body), took), (served, slowest)) = tokio::join!(hostile, serve_until(client, &done));
    assert!(took < PATIENCE, "the hostile request took {took:?}");
    assert!(served > 3, "{served} requests were served meanwhile");
    assert!(slowest < PATIENCE / 4, "another request took {slowest:?}");
    let message = body["message"].as_str().unwrap_or_default();
    // On a busy machine, the time of the request is up before its work is.
    let late = code == 504 && message == "Timeout: request did not complete within requested timeout";
    assert!(
        late || code == expected && message.starts_with(begins) && message.ends_with(ends),
        "{code} {message}"
    );
}

// The policies and webhooks below ignore failures, but not that nothing more is evaluated.

#[tokio::test]
async fn the_validating_policies_of_a_request_share_one_bound() {
    let client = client(&server().await);
    let spec = json!({"failurePolicy": "Ignore", "matchConstraints": {"resourceRules": secrets()},
        "validations": [{"expression": format!("[{}].all(x, x == x)", doubled(20))}]});
    policies(&client, "Validating", &spec).await;
    let begins = "secrets \"s\" is forbidden: ValidatingAdmissionPolicy 'p0";
    is_refused(&client, 422, begins, &format!("denied request: {SPENT}")).await;
}

#[tokio::test]
async fn the_mutating_policies_of_a_request_share_one_bound() {
    let client = client(&server().await);
    let patch = "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}]";
    let expression = format!("[{}].all(x, x == x) ? {patch} : {patch}", doubled(20));
    let spec = json!({"failurePolicy": "Ignore", "matchConstraints": {"resourceRules": secrets()},
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]});
    policies(&client, "Mutating", &spec).await;
    is_refused(&client, 403, "policy 'p0", &format!("denied request: {SPENT}")).await;
}

#[tokio::test]
async fn the_match_conditions_of_a_request_share_one_bound() {
    let client = client(&server().await);
    let condition = json!({"name": "c", "expression": format!("![{}].all(x, x == x)", doubled(20))});
    let hooks: Vec<Value> = (0..40)
        .map(|number| {
            json!({"name": format!("h{number}.k1s.dev"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "failurePolicy": "Ignore", "rules": secrets(), "matchConditions": [condition],
                "clientConfig": {"url": "https://127.0.0.1:1"}})
        })
        .collect();
    let hooks = registration("ValidatingWebhookConfiguration", "v", "webhooks", &hooks.into());
    client.post(&format!("{ADMISSION}/validatingwebhookconfigurations"), hooks).await;
    is_refused(&client, 403, "secrets \"s\" is forbidden: ", SPENT).await;
}

#[tokio::test]
async fn a_rule_that_costs_too_much_is_refused_with_its_definition_or_stopped() {
    let client = client(&server().await);
    let nested = (0..8).fold("true".to_owned(), |inside, level| format!("self.l.all(x{level}, {inside})"));
    let body = definition("hostile.example.com", "Bomb", &[json!({ "rule": nested })]);
    let (code, body) = client.call("POST", DEFINITIONS, body).await;
    assert_eq!(code, 422, "{body}");
    assert!(body["message"].as_str().unwrap().contains("exceeds budget"), "{body}");
    // What no estimate finds is stopped when it runs: a text that doubles forty times.
    let doubling = (0..40).fold("'a'".to_owned(), |text, _| format!("[{text}].map(t, t + t)[0]"));
    let rule = json!({ "rule": format!("{doubling} != self.l[0]") });
    client.post(DEFINITIONS, definition("hostile.example.com", "Bomb", &[rule])).await;
    let bomb = json!({"apiVersion": "hostile.example.com/v1", "kind": "Bomb", "metadata": {"name": "b"}, "spec": {"l": ["a"]}});
    let (code, body) =
        client.call("POST", "/apis/hostile.example.com/v1/namespaces/default/bombs", bomb).await;
    assert_eq!(code, 422, "{body}");
    assert!(body["message"].as_str().unwrap().contains("cost"), "{body}");
}
