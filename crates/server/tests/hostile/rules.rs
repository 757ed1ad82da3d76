//! Definitions with many rules in CEL, and rules that would cost too much.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::common::{client, server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUPS: usize = 20;
const KINDS: usize = 50;

fn definition(group: &str, kind: &str, rules: &[Value]) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
                "properties": {"spec": {"type": "object", "x-kubernetes-validations": rules, "properties": {
                    "n": {"type": "integer"}, "l": {"type": "array", "items": {"type": "string"}}}}}}}}]}})
}

#[tokio::test]
async fn others_are_served_while_a_thousand_definitions_with_rules_are_written() {
    let client = client(&server().await);
    let rules: Vec<Value> = (0..10)
        .map(|number| json!({"rule": format!("self.n != {number}"), "message": format!("not {number}")}))
        .collect();
    let (done, served) = (AtomicBool::new(false), AtomicU64::new(0));
    let write = async {
        for group in 0..GROUPS {
            for kind in 0..KINDS {
                let body = definition(&format!("g{group}.example.com"), &format!("Kind{kind}"), &rules);
                client.post(DEFINITIONS, body).await;
            }
        }
        done.store(true, Ordering::SeqCst);
    };
    let others = async {
        while !done.load(Ordering::SeqCst) {
            let name = format!("c{}", served.fetch_add(1, Ordering::SeqCst));
            let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
            client.post("/api/v1/namespaces/default/configmaps", body).await;
            client.env.yield_now().await;
        }
    };
    tokio::join!(write, others);
    // No definition held up another client for long: there was a request between most of them.
    let served = served.load(Ordering::SeqCst);
    assert!(served * 2 > (GROUPS * KINDS) as u64, "{served} requests were served meanwhile");
    for group in 0..GROUPS {
        let path = format!("/apis/g{group}.example.com/v1/namespaces/default/kind{}s", KINDS - 1);
        let object = |n: u64| {
            json!({"apiVersion": format!("g{group}.example.com/v1"), "kind": format!("Kind{}", KINDS - 1),
                "metadata": {"name": "a"}, "spec": {"n": n}})
        };
        let (code, body) = client.call("POST", &path, object(7)).await;
        assert_eq!((code, &body["details"]["causes"][0]["message"]), (422, &json!("Invalid value: not 7")));
        client.post(&path, object(10)).await;
    }
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
