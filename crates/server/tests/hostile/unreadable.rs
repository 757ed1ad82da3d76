//! An unreadable object in the store does not affect others: it is reported, left out, and can be deleted.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use k1s_env::Env;
use k1s_server::ServerOptions;
use k1s_store::{
    GetResult, MemoryStore, Range, RangeResult, Result, Revision, Stats, Store, Txn, Watch, WatchRequest,
};
use serde_json::{Value, json};

use crate::{
    common::{self, Client},
    corpus::definition,
};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// A store that reports itself as shared.
struct Shared(MemoryStore);

#[async_trait]
impl Store for Shared {
    async fn revision(&self) -> Result<Revision> {
        self.0.revision().await
    }

    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<GetResult> {
        self.0.get(key, at).await
    }

    async fn range(&self, range: Range) -> Result<RangeResult> {
        self.0.range(range).await
    }

    async fn txn(&self, txn: Txn) -> Result<Revision> {
        self.0.txn(txn).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch> {
        self.0.watch(request).await
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        self.0.compact(revision).await
    }

    async fn stats(&self) -> Result<Stats> {
        self.0.stats().await
    }

    async fn close(&self) -> Result<()> {
        self.0.close().await
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// A new server over the store.
async fn over(store: &Arc<dyn Store>) -> Client {
    common::client(&common::server_with(&Env::system(), store.clone(), ServerOptions::default()).await)
}

/// Values that are not objects: an unknown header, truncated JSON, invalid UTF-8, and too many levels.
fn damaged(metadata: &Value) -> Vec<Bytes> {
    let mut with_header = vec![10, 0, 0, 0, 0, 0, 0, 0, 0, b'v', b'1'];
    let head = format!("{{\"metadata\":{metadata},\"data\":");
    with_header.extend_from_slice(head.as_bytes());
    let deep = format!("{}{}}}", "[".repeat(200), "]".repeat(200));
    [&b"\"cut"[..], b"\"\xff\"}", deep.as_bytes()]
        .iter()
        .map(|rest| [&with_header, *rest].concat().into())
        .chain([Bytes::from_static(b""), Bytes::from_static(b"\xff garbage")])
        .collect()
}

async fn put(store: &Arc<dyn Store>, key: &str, value: &Bytes) {
    store.txn(Txn::new().put(key.to_owned(), value.clone(), k1s_store::Precondition::Any)).await.unwrap();
}

/// A key for an object, derived from an existing one of its kind.
async fn key_like(store: &Arc<dyn Store>, end: &str, new: &str) -> String {
    let all = store.range(Range::prefix("/")).await.unwrap();
    let keys = all.entries.iter().map(|entry| std::str::from_utf8(&entry.key).unwrap());
    let key = keys.into_iter().find(|key| key.ends_with(end)).expect("an object of the kind").to_owned();
    let prefix = key.strip_suffix(end.rsplit('/').next().unwrap()).unwrap();
    format!("{prefix}{new}")
}

async fn prepared() -> (Arc<dyn Store>, Client) {
    let store: Arc<dyn Store> = Arc::new(Shared(MemoryStore::default()));
    let client = over(&store).await;
    client.post("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    client.post("/api/v1/namespaces/n/configmaps", json!({"metadata": {"name": "good"}})).await;
    let text = definition("widgets", "Widget", r#"{"type":"object"}"#);
    client.post(DEFINITIONS, serde_json::from_str(&text).unwrap()).await;
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "good"}});
    client.post("/apis/example.com/v1/namespaces/n/widgets", widget).await;
    (store, client)
}

#[tokio::test]
async fn an_unreadable_object_is_reported_left_out_and_can_be_deleted() {
    for (path, end) in [
        ("/api/v1/namespaces/n/configmaps", "/configmaps/n/good"),
        ("/apis/example.com/v1/namespaces/n/widgets", "/widgets/n/good"),
    ] {
        let (store, running) = prepared().await;
        let key = key_like(&store, end, "bad").await;
        for value in damaged(&json!({"name": "bad", "namespace": "n", "uid": "u", "finalizers": ["a/b"]})) {
            put(&store, &key, &value).await;
            // With a running server, and with a new one.
            for client in [&running, &over(&store).await] {
                let bad = format!("{path}/bad");
                for (method, body) in
                    [("GET", Value::Null), ("PATCH", json!({"metadata": {"labels": {"a": "b"}}}))]
                {
                    let (status, answer) = client.call(method, &bad, body).await;
                    assert_eq!(status, 500, "{method} {answer}");
                    let message = answer["message"].as_str().unwrap();
                    assert!(message.contains("\"bad\"") && message.contains("can be deleted"), "{message}");
                }
                let (status, answer) = client
                    .call("POST", path, json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "bad"}}))
                    .await;
                assert!(matches!(status, 400 | 409), "{answer}");
                for accept in ["application/json", TABLE, "application/yaml"] {
                    let answer = client.send("GET", path, &[("accept", accept)], "").await;
                    assert_eq!(answer.status, 200, "{accept}: {}", answer.text());
                    assert!(answer.text().contains("good"), "{accept}: {}", answer.text());
                    assert!(answer.header("warning").contains("bad"), "{}", answer.header("warning"));
                }
                let watch = format!(
                    "{path}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
                );
                let mut watch = client.watch(&watch).await;
                assert_eq!(watch.event().await["object"]["metadata"]["name"], "good");
            }
            let answer = running.send("DELETE", &format!("{path}/bad"), &[], "").await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert!(answer.header("warning").contains("finalizers"), "{}", answer.header("warning"));
            assert_eq!(running.call("GET", &format!("{path}/bad"), Value::Null).await.0, 404);
        }
        // DELETE of the collection.
        put(&store, &key, &Bytes::from_static(b"x")).await;
        assert_eq!(running.call("DELETE", path, Value::Null).await.0, 200);
        assert_eq!(running.get(path).await["items"], json!([]));
        assert_eq!(running.call("GET", &format!("{path}/bad"), Value::Null).await.0, 404);
    }
}

#[tokio::test]
async fn other_definitions_are_served_beside_an_unreadable_one() {
    let (store, running) = prepared().await;
    let key = key_like(&store, "/customresourcedefinitions/widgets.example.com", "bads.example.com").await;
    let values = damaged(&json!({"name": "bads.example.com", "group": "example.com"}));
    for (number, value) in values.iter().enumerate() {
        put(&store, &key, value).await;
        for (place, client) in [&running, &over(&store).await].into_iter().enumerate() {
            for path in [
                "/apis",
                "/apis/example.com/v1",
                "/openapi/v3",
                "/openapi/v3/apis/example.com/v1",
                "/openapi/v2",
            ] {
                let answer = client.send("GET", path, &[], "").await;
                assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            }
            let widgets = "/apis/example.com/v1/namespaces/n/widgets";
            assert_eq!(client.get(widgets).await["items"][0]["metadata"]["name"], "good");
            // Names of the same group are still accepted.
            let plural = format!("others{number}{place}");
            let text = definition(&plural, &format!("Other{number}{place}"), r#"{"type":"object"}"#);
            client.post(DEFINITIONS, serde_json::from_str(&text).unwrap()).await;
            assert_eq!(
                client.call("GET", &format!("/apis/example.com/v1/{plural}"), Value::Null).await.0,
                200
            );
            let (status, answer) =
                client.call("GET", &format!("{DEFINITIONS}/bads.example.com"), Value::Null).await;
            assert_eq!(status, 500, "{answer}");
        }
        let deleted = running.call("DELETE", &format!("{DEFINITIONS}/bads.example.com"), Value::Null).await;
        assert_eq!(deleted.0, 200, "{}", deleted.1);
        let text = definition("bads", "Bad", r#"{"type":"object"}"#);
        running.post(DEFINITIONS, serde_json::from_str(&text).unwrap()).await;
    }
}

#[tokio::test]
async fn a_namespace_with_unreadable_objects_can_be_deleted() {
    let (store, client) = prepared().await;
    for end in ["/configmaps/n/good", "/widgets/n/good"] {
        for number in 0..5 {
            let name = format!("bad{number}");
            let key = key_like(&store, end, &name).await;
            put(&store, &key, &damaged(&json!({"name": name, "namespace": "n"}))[number]).await;
        }
    }
    assert_eq!(client.call("DELETE", "/api/v1/namespaces/n", Value::Null).await.0, 200);
    common::eventually("the namespace is gone", || async {
        client.call("GET", "/api/v1/namespaces/n", Value::Null).await.0 == 404
    })
    .await;
    let left = store.range(k1s_store::Range::prefix("/")).await.unwrap();
    let left: Vec<String> = left
        .entries
        .iter()
        .map(|entry| String::from_utf8_lossy(&entry.key).into_owned())
        .filter(|key| key.contains("/n/"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

/// A policy that went on without a parameter would allow what it is there to deny.
#[tokio::test]
async fn an_unreadable_parameter_fails_the_policies_that_select_it() {
    const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
    let (store, running) = prepared().await;
    let rules = json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}]});
    let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "matchConstraints": rules,
        "validations": [{"expression": "params != null"}]});
    let selector = json!({"matchLabels": {"tier": "x"}});
    let binding = json!({"policyName": "p", "validationActions": ["Deny"],
        "paramRef": {"selector": selector, "parameterNotFoundAction": "Allow"}});
    for (plural, kind, spec) in [
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy", spec),
        ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", binding),
    ] {
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "p"}, "spec": spec});
        running.post(&format!("{ADMISSION}/{plural}"), object).await;
    }
    let key = key_like(&store, "/configmaps/n/good", "bad").await;
    let with_labels = |tier: &str| {
        damaged(&json!({"name": "bad", "namespace": "n", "uid": "u", "labels": {"tier": tier}}))
            .swap_remove(0)
    };
    // Nobody knows the labels of the last one.
    for (value, is_selected) in
        [(with_labels("y"), false), (with_labels("x"), true), (Bytes::from_static(b"\xff garbage"), true)]
    {
        put(&store, &key, &value).await;
        let secret = json!({"metadata": {"generateName": "s-"}});
        let (code, answer) = running.call("POST", "/api/v1/namespaces/n/secrets", secret).await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert_eq!(code, if is_selected { 422 } else { 201 }, "{answer}");
        assert_eq!(
            message.contains("denied request: failed to configure binding: "),
            is_selected,
            "{message}"
        );
    }
}
