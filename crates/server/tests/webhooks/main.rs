//! Admission webhooks: called in this process and over HTTPS, from well-behaved to hostile; and cases of upstream, of policies too.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod failures;
#[path = "../common/https.rs"]
mod https;
mod matching;
mod mutating;
mod order;
mod remote;
mod reviews;
mod upstream;

use std::{convert::Infallible, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use common::{Answer, Client};
use http::{Request, Response};
use k1s_env::Env;
use k1s_server::{LocalServices, ServerOptions};
use k1s_store::MemoryStore;
use parking_lot::Mutex;
use serde_json::{Value, json};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The requests that a webhook has been sent.
type Calls = Arc<Mutex<Vec<Value>>>;

/// A server with webhooks in its process.
struct Stage {
    client: Client,
    local: LocalServices,
}

impl Stage {
    async fn new() -> Stage {
        let mut options = ServerOptions::default();
        let local = LocalServices::default();
        options.services.local = local.clone();
        let env = Env::system();
        let server = common::server_with(&env, Arc::new(MemoryStore::default()), options).await;
        Stage { client: common::client(&server), local }
    }

    /// Serves a host: `answer` makes the response, without its uid, of a request.
    fn serve(&self, host: &str, answer: impl Fn(&Value) -> Value + Clone + Send + Sync + 'static) -> Calls {
        let calls = Calls::default();
        let kept = calls.clone();
        self.raw(host, move |body| {
            let review: Value = serde_json::from_slice(&body).unwrap();
            let mut response = answer(&review["request"]);
            kept.lock().push(review["request"].clone());
            response["uid"] = review["request"]["uid"].clone();
            let answer =
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            (200, answer.to_string())
        });
        calls
    }

    /// Serves a host with a status and a body.
    fn raw(&self, host: &str, answer: impl Fn(Bytes) -> (u16, String) + Clone + Send + Sync + 'static) {
        let service = tower::service_fn(move |request: Request<Bytes>| {
            let (code, body) = answer(request.into_body());
            async move { Ok::<_, Infallible>(Response::builder().status(code).body(Bytes::from(body)).unwrap()) }
        });
        self.local.serve("default", host, service);
    }

    /// Registers webhooks of this kind: `Mutating` or `Validating`. What they do not say is for every ConfigMap.
    async fn register(&self, kind: &str, name: &str, webhooks: &[Value]) {
        let webhooks: Vec<Value> = webhooks.iter().map(hook).collect();
        let body = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
            "metadata": {"name": name}, "webhooks": webhooks});
        self.client.post(&configurations(kind), body).await;
    }

    async fn unregister(&self, kind: &str, name: &str) {
        let (code, body) =
            self.client.call("DELETE", &format!("{}/{name}", configurations(kind)), Value::Null).await;
        assert_eq!(code, 200, "{body}");
    }

    /// Creates a ConfigMap.
    async fn configmap(&self, object: Value) -> (u16, Value) {
        let mut body = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        merge(&mut body, &object);
        self.client.call("POST", CONFIGMAPS, body).await
    }

    /// Sends JSON and returns the whole answer.
    async fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        self.client.send(method, path, &[("content-type", content)], body).await
    }
}

fn configurations(kind: &str) -> String {
    format!("{ADMISSION}/{}webhookconfigurations", kind.to_lowercase())
}

/// A webhook, complete: the host is that of its name.
fn hook(changes: &Value) -> Value {
    let name = changes["name"].as_str().unwrap();
    let mut hook = json!({
        "name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": format!("https://{name}/hook")},
        "rules": [rule(&["*"], "", &["configmaps"])],
    });
    merge(&mut hook, changes);
    hook
}

fn rule(operations: &[&str], group: &str, resources: &[&str]) -> Value {
    json!({"operations": operations, "apiGroups": [group], "apiVersions": ["v1"], "resources": resources})
}

fn merge(object: &mut Value, changes: &Value) {
    for (key, value) in changes.as_object().unwrap() {
        object[key] = value.clone();
    }
}

fn allow() -> Value {
    json!({"allowed": true})
}

/// Allows the request with a JSON patch.
fn patch(operations: &Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": BASE64_STANDARD.encode(operations.to_string())})
}
