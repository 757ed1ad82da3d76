//! Kinds and request bodies shared by the webhook tests.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of this")]

use bytes::Bytes;
use http::{Request, Response};
use k1s_runtime::webhook::WebhookServer;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[kube(group = "shop.example.com", version = "v1", kind = "Widget", namespaced, derive = "PartialEq")]
#[serde(rename_all = "camelCase")]
pub struct WidgetSpec {
    pub replicas: Option<i32>,
    #[serde(default)]
    pub parts: Vec<Part>,
    // Serialized as null when empty, as by many types.
    pub colour: Option<String>,
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
pub struct Part {
    pub name: String,
    pub weight: Option<i32>,
}

/// A creation as sent by kube-apiserver: with `creationTimestamp`, managed fields, and fields unknown to `Widget`.
pub fn create(spec: &Value) -> Value {
    review("CREATE", Some(&widget(spec)), None, "CreateOptions")
}

pub fn update(old: &Value, new: &Value) -> Value {
    review("UPDATE", Some(&widget(new)), Some(&widget(old)), "UpdateOptions")
}

pub fn delete(spec: &Value) -> Value {
    review("DELETE", None, Some(&widget(spec)), "DeleteOptions")
}

pub fn widget(spec: &Value) -> Value {
    json!({
        "apiVersion": "shop.example.com/v1", "kind": "Widget",
        "metadata": {
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"apiVersion\":\"shop.example.com/v1\"}\n"},
            "creationTimestamp": "2024-05-06T07:08:09Z", "generation": 1,
            "managedFields": [{
                "apiVersion": "shop.example.com/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}},
                "manager": "kubectl-client-side-apply", "operation": "Update", "time": "2024-05-06T07:08:09Z"
            }],
            "name": "gear", "namespace": "default", "uid": "1ed1b5b9-5b5c-4a5b-8a50-4f3c29d5a1c4"
        },
        "spec": spec
    })
}

pub fn review(operation: &str, object: Option<&Value>, old: Option<&Value>, options: &str) -> Value {
    json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": "shop.example.com", "version": "v1", "kind": "Widget"},
            "resource": {"group": "shop.example.com", "version": "v1", "resource": "widgets"},
            "requestKind": {"group": "shop.example.com", "version": "v1", "kind": "Widget"},
            "requestResource": {"group": "shop.example.com", "version": "v1", "resource": "widgets"},
            "name": "gear", "namespace": "default", "operation": operation,
            "userInfo": {
                "username": "alice", "uid": "014fbff9a07c", "groups": ["system:masters", "system:authenticated"],
                "extra": {"authentication.kubernetes.io/credential-id": ["X509SHA256=af2e"]}
            },
            "object": object, "oldObject": old, "dryRun": false,
            "options": {"kind": options, "apiVersion": "meta.k8s.io/v1"}
        }
    })
}

pub async fn post(server: &WebhookServer, path: &str, body: &Value) -> (u16, Value) {
    let response = post_bytes(server, path, serde_json::to_vec(body).unwrap()).await;
    (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
}

pub async fn post_bytes(server: &WebhookServer, path: &str, body: impl Into<Bytes>) -> Response<Bytes> {
    let request = Request::post(format!("{path}?timeout=10s"))
        .header("content-type", "application/json")
        .body(body.into())
        .unwrap();
    server.handle(request).await
}

/// The object of a review with the response's patch applied.
pub fn patched(review: &Value, answer: &Value) -> Value {
    let mut object = review["request"]["object"].clone();
    if let Some(patch) = patch(answer) {
        let patch: json_patch::Patch = serde_json::from_value(patch).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
    }
    object
}

/// The patch of a response, decoded from base64.
pub fn patch(answer: &Value) -> Option<Value> {
    let response = &answer["response"];
    let patch = response.get("patch")?;
    assert_eq!(response["patchType"], "JSONPatch");
    let bytes: k8s_openapi::ByteString = serde_json::from_value(patch.clone()).unwrap();
    Some(serde_json::from_slice(&bytes.0).unwrap())
}
