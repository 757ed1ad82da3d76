//! Webhooks and policies for one version of a kind see requests for another one, converted by its webhook.

use std::{convert::Infallible, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::world::{Mode, World, host, path};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// The requests that a webhook has been sent.
type Calls = Arc<Mutex<Vec<Value>>>;

fn rules(version: &str) -> Value {
    json!([{"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": [version], "resources": ["hosts"]}])
}

/// Registers a webhook of this kind (`Mutating`, `Validating`) for hosts of a version, which answers with a patch.
async fn webhook(world: &World, kind: &str, version: &str, patch: Value) -> Calls {
    let calls = Calls::default();
    let kept = calls.clone();
    let name = format!("{}.k1s.dev", kind.to_lowercase());
    let answer = move |request: Request<Bytes>| {
        let review: Value = serde_json::from_slice(request.body()).unwrap();
        let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
        if !patch.is_null() {
            response["patchType"] = "JSONPatch".into();
            response["patch"] = BASE64_STANDARD.encode(patch.to_string()).into();
        }
        kept.lock().push(review["request"].clone());
        let review =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        async move { Ok::<_, Infallible>(Response::new(Bytes::from(review.to_string()))) }
    };
    world.local.serve("default", &name, tower::service_fn(answer));
    // Failures of conversions are not those of a webhook, which a failure policy could ignore.
    let hook = json!({"name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        "clientConfig": {"url": format!("https://{name}/hook")}, "rules": rules(version)});
    let body = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
        "metadata": {"name": "hosts"}, "webhooks": [hook]});
    world.client.post(&format!("{ADMISSION}/{}webhookconfigurations", kind.to_lowercase()), body).await;
    calls
}

/// A policy for hosts of a version.
async fn policy(world: &World, version: &str, expression: &str) {
    let spec = json!({"matchConstraints": {"resourceRules": rules(version)}, "validations": [{"expression": expression}]});
    let binding = json!({"policyName": "hosts", "validationActions": ["Deny"]});
    for (plural, kind, spec) in [
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy", spec),
        ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", binding),
    ] {
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "hosts"}, "spec": spec});
        world.client.post(&format!("{ADMISSION}/{plural}"), object).await;
    }
}

/// Whether all managers of an object have fields as clients know them. An object without any does not count.
fn has_fields(object: &Value) -> bool {
    let managers = object["metadata"]["managedFields"].as_array();
    managers.is_some_and(|all| !all.is_empty() && all.iter().all(|one| one["fieldsV1"].is_object()))
}

#[tokio::test]
async fn webhooks_and_policies_see_the_version_that_they_match_and_patch_it() {
    let world = World::new().await;
    let client = &world.client;
    let patch = json!([{"op": "test", "path": "/apiVersion", "value": "example.com/v1"},
        {"op": "replace", "path": "/spec/port", "value": 81}, {"op": "add", "path": "/metadata/labels", "value": {"by": "webhook"}}]);
    let mutating = webhook(&world, "Mutating", "v1", patch).await;
    let validating = webhook(&world, "Validating", "v1", Value::Null).await;
    let seen = "request.kind.version == 'v1' && request.requestKind.version == 'v1beta1' \
        && object.apiVersion == 'example.com/v1' && object.spec.port == 81 \
        && (oldObject == null || oldObject.apiVersion == 'example.com/v1' && oldObject.spec.host == 'a.b')";
    policy(&world, "v1", seen).await;
    world.hook.seen.lock().clear();
    let (code, made) = client.call("POST", &path("v1beta1"), host("v1beta1", "a")).await;
    assert_eq!(code, 201, "{made}");
    let beta = format!("{}/a", path("v1beta1"));
    let change = json!({"spec": {"hostPort": "c.d:90"}});
    let (code, changed) = client.call("PATCH", &beta, change).await;
    assert_eq!(code, 200, "{changed}");
    for (object, expected) in [(&made, "a.b:81"), (&changed, "c.d:81")] {
        assert_eq!(object["apiVersion"], "example.com/v1beta1");
        assert_eq!(
            (&object["spec"], &object["metadata"]["labels"]),
            (&json!({"hostPort": expected}), &json!({"by": "webhook"}))
        );
        assert!(has_fields(object), "{object}");
    }
    assert_eq!(client.get(&format!("{}/a", path("v1"))).await["spec"], json!({"host": "c.d", "port": 81}));
    // Objects and old objects, as they come to each webhook.
    let specs = |calls: &Calls| -> Vec<[Value; 2]> {
        let spec = |object: &Value| object["spec"].clone();
        calls.lock().iter().map(|call| [spec(&call["object"]), spec(&call["oldObject"])]).collect()
    };
    let [v1, before] = [json!({"host": "a.b", "port": 81}), json!({"host": "a.b", "port": 80})];
    let [sent, after] = [json!({"host": "c.d", "port": 90}), json!({"host": "c.d", "port": 81})];
    assert_eq!(specs(&mutating), [[before, Value::Null], [sent, v1.clone()]]);
    assert_eq!(specs(&validating), [[v1.clone(), Value::Null], [after, v1]]);
    for call in mutating.lock().iter().chain(&*validating.lock()) {
        let versions = ["kind", "requestKind", "resource", "requestResource"]
            .map(|field| call[field]["version"].clone());
        assert_eq!(versions, ["v1", "v1beta1", "v1", "v1beta1"]);
        for object in [&call["object"], &call["oldObject"]].into_iter().filter(|object| !object.is_null()) {
            assert_eq!(object["apiVersion"], "example.com/v1");
            assert!(has_fields(object), "{object}");
        }
    }
    // The converter knows managers as clients do: not as the text that they are inside the server.
    let seen = world.hook.seen.lock();
    let has_text = |object: &Value| {
        let managers = object["metadata"]["managedFields"].as_array();
        managers.into_iter().flatten().any(|one| one["fieldsV1"].is_string())
    };
    assert!(seen.iter().any(has_fields) && !seen.iter().any(has_text), "{seen:?}");
    // What a webhook has set has no manager.
    let fields = |object: &Value| object["metadata"]["managedFields"][0]["fieldsV1"].clone();
    assert_eq!(fields(&made), json!({"f:spec": {".": {}, "f:hostPort": {}}}));
}

#[tokio::test]
async fn what_a_converter_adds_on_the_way_back_from_a_webhook_is_pruned() {
    let world = World::new().await;
    let patch = json!([{"op": "replace", "path": "/spec/hostPort", "value": "c.d:81"}]);
    let calls = webhook(&world, "Mutating", "v1beta1", patch).await;
    world.hook.set(Mode::Change(|answer| {
        let object = &mut answer["response"]["convertedObjects"][0];
        (object["unknown"], object["spec"]["unknown"]) = (1.into(), 1.into());
    }));
    let (code, made) = world.client.call("POST", &path("v1"), host("v1", "a")).await;
    assert_eq!((code, calls.lock().len()), (201, 1), "{made}");
    let stored = world.client.get(&format!("{}/a", path("v1"))).await;
    for object in [&made, &stored] {
        assert_eq!((&object["spec"], object.get("unknown")), (&json!({"host": "c.d", "port": 81}), None));
    }
}

#[tokio::test]
async fn a_failing_converter_fails_what_its_webhooks_and_policies_would_have_seen() {
    let world = World::new().await;
    let client = &world.client;
    let create = async |version: &str, name: &str| {
        let (code, answer) = client.call("POST", &path(version), host(version, name)).await;
        (code, answer["message"].as_str().unwrap_or_default().to_owned())
    };
    let failed = "Internal error occurred: conversion webhook for example.com/v1, Kind=Host failed: down";
    for kind in ["Mutating", "Validating"] {
        let patch = match kind {
            "Mutating" => json!([{"op": "replace", "path": "/spec/hostPort", "value": "c.d:81"}]),
            _ => Value::Null,
        };
        let calls = webhook(&world, kind, "v1beta1", patch).await;
        world.hook.set(Mode::Fail("down"));
        assert_eq!(create("v1", "a").await, (500, failed.to_owned()), "{kind}");
        assert_eq!(calls.lock().len(), 0, "{kind}");
        if kind == "Mutating" {
            // The way to the webhook works, the way back does not.
            world.hook.set(Mode::Change(|answer| {
                if answer["response"]["convertedObjects"][0]["apiVersion"] == "example.com/v1" {
                    answer["response"]["result"] = json!({"status": "Failure", "message": "down"});
                }
            }));
            assert_eq!(create("v1", "a").await, (500, failed.replace("/v1,", "/v1beta1,")));
            assert_eq!(calls.lock().len(), 1);
        }
        let path = format!("{ADMISSION}/{}webhookconfigurations/hosts", kind.to_lowercase());
        assert_eq!(client.call("DELETE", &path, Value::Null).await.0, 200);
    }
    world.hook.set(Mode::Fail("down"));
    policy(&world, "v1beta1", "true").await;
    let (code, message) = create("v1", "a").await;
    let by = "hosts.example.com \"a\" is forbidden: ValidatingAdmissionPolicy 'hosts' with binding 'hosts' denied request: failed to configure binding: failed to convert object version:";
    assert_eq!((code, message), (422, format!("{by} {failed}")));
    assert_eq!(client.get(&path("v1")).await["items"], json!([]));
    // Unlike those of webhooks, a policy may ignore it.
    let ignore = json!({"spec": {"failurePolicy": "Ignore"}});
    let at = format!("{ADMISSION}/validatingadmissionpolicies/hosts");
    assert_eq!(client.call("PATCH", &at, ignore).await.0, 200);
    assert_eq!(create("v1", "a").await.0, 201);
}
