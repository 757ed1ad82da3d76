//! A webhook that fails everything holds the control plane up only until it is removed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use http::{Request, Response};
use k1s::{
    IdleOptions, Manager, ManagerOptions, Runtime,
    k8s_openapi::api::{
        admissionregistration::v1::ValidatingWebhookConfiguration,
        core::v1::{ConfigMap, Namespace, Secret},
    },
    kube::{
        Api, ResourceExt as _,
        api::{DeleteParams, WatchEvent, WatchParams},
    },
    server::ServerOptions,
};
use serde_json::{Value, json};
use tokio::sync::watch;

/// The answer of a webhook that only lets a user begin the deletions of the test, and what it was asked.
fn answer(review: &Value) -> (Bytes, String) {
    let request = &review["request"];
    let text = |field: &str| request[field].as_str().unwrap_or_default().to_owned();
    let asked = format!(
        "{} {} {}",
        text("operation"),
        request["resource"]["resource"].as_str().unwrap(),
        text("name")
    );
    if !matches!(&*asked, "DELETE namespaces blue" | "DELETE configmaps owner") {
        return (Bytes::from_static(b"broken"), asked);
    }
    let response = json!({"uid": request["uid"], "allowed": true});
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    (review.to_string().into(), asked)
}

#[tokio::test]
async fn what_a_broken_webhook_held_up_is_finished_when_it_is_removed() {
    let options = ServerOptions::default();
    let (refused, mut told) = watch::channel(Vec::<String>::new());
    let service = tower::service_fn(move |request: Request<Bytes>| {
        let (body, asked) = answer(&serde_json::from_slice(request.body()).unwrap());
        if body == "broken" {
            refused.send_modify(|all| all.push(asked));
        }
        async move { Ok::<_, Infallible>(Response::new(body)) }
    });
    options.services.local.serve_all("broken.none.svc", service);
    let runtime = Runtime::builder().server_options(options).start().await.unwrap();
    let client = runtime.client();
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let namespaces = Api::<Namespace>::all(client.clone());
    runtime
        .apply(
            "{apiVersion: v1, kind: Namespace, metadata: {name: blue}}\n---\n\
             {apiVersion: v1, kind: ConfigMap, metadata: {name: content, namespace: blue}}\n---\n\
             {apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}",
        )
        .await
        .unwrap();
    let owner = maps.get("owner").await.unwrap().uid().unwrap();
    let dependent = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "dependent",
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}]}});
    let rules =
        json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]);
    let broken = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "broken"}, "webhooks": [{"name": "broken.k1s.dev", "failurePolicy": "Fail", "rules": rules,
            "clientConfig": {"service": {"namespace": "none", "name": "broken"}}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"]}]});
    runtime.apply(&dependent.to_string()).await.unwrap();
    runtime.apply(&broken.to_string()).await.unwrap();

    namespaces.delete("blue", &DeleteParams::default()).await.unwrap();
    maps.delete("owner", &DeleteParams::background()).await.unwrap();
    // The controllers of the control plane are refused, as everybody is.
    told.wait_for(|all| {
        ["DELETE configmaps ", "DELETE secrets "]
            .iter()
            .all(|what| all.iter().any(|one| one.starts_with(what)))
    })
    .await
    .unwrap();
    let held = namespaces.get("blue").await.unwrap();
    assert!(held.metadata.deletion_timestamp.is_some());
    let mut refused = ConfigMap::default();
    refused.metadata.name = Some("refused".into());
    let why = maps.create(&Default::default(), &refused).await.unwrap_err().to_string();
    assert!(why.contains("failed calling webhook \"broken.k1s.dev\""), "{why}");

    let secrets = Api::<Secret>::default_namespaced(client.clone());
    let events = WatchParams::default();
    let mut namespace =
        namespaces.watch(&events.clone().fields("metadata.name=blue"), "0").await.unwrap().boxed();
    let mut secret = secrets.watch(&events.fields("metadata.name=dependent"), "0").await.unwrap().boxed();
    let hooks = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    hooks.delete("broken", &DeleteParams::default()).await.unwrap();
    // What failed is tried again.
    while !matches!(namespace.try_next().await.unwrap().unwrap(), WatchEvent::Deleted(_)) {}
    while !matches!(secret.try_next().await.unwrap().unwrap(), WatchEvent::Deleted(_)) {}
    let manager = Manager::new(&runtime, ManagerOptions::local()).unwrap();
    manager.run_until_idle(IdleOptions::default()).await.unwrap();
    assert!(namespaces.get_opt("blue").await.unwrap().is_none());
    assert!(secrets.get_opt("dependent").await.unwrap().is_none());
    runtime.stop().await.unwrap();
}
