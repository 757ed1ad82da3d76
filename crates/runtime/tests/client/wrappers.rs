//! Clients that wrap other clients.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use k1s_env::{Env, WorkTracker};
use k1s_runtime::{
    Kind, Metrics, ObjectKey,
    client::{
        ApplyConfiguration, Call, Client, ClientOptions, CreateOptions, DeleteAllOfOptions, Error,
        FieldValidation, Interceptor, ListOptions, Patch, RestMetrics, Verb,
    },
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    api::{ApiResource, DynamicObject},
    core::Status,
};
use parking_lot::Mutex;
use serde_json::json;

use crate::{client, client_with, config_map, from, key};

#[tokio::test]
async fn a_namespaced_client_fills_in_its_namespace_and_refuses_others() {
    let everywhere = client().await;
    let client = everywhere.namespaced("default");
    let mut bare = config_map("a");
    bare.metadata.namespace = None;
    let created = client.create(&bare).await.unwrap();
    assert_eq!(created.metadata.namespace.as_deref(), Some("default"));
    client.get::<ConfigMap>(&ObjectKey::cluster("a")).await.unwrap();
    client.get::<ConfigMap>(&key("a")).await.unwrap();
    client.update(&created).await.unwrap();
    client.update(&bare).await.unwrap();
    client
        .patch::<ConfigMap>(&ObjectKey::cluster("a"), Patch::merge(&json!({"data": {"b": "1"}})))
        .await
        .unwrap();
    let all = client.list::<ConfigMap>(ListOptions::default()).await.unwrap();
    assert!(all.iter().all(|one| one.metadata.namespace.as_deref() == Some("default")));
    assert!(all.len() < everywhere.list::<ConfigMap>(ListOptions::default()).await.unwrap().len());

    let elsewhere = ObjectKey::namespaced("kube-system", "a");
    let error = client.get::<ConfigMap>(&elsewhere).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"get configmaps kube-system/a: this client works in namespace "default" only"#
    );
    assert!(client.list::<ConfigMap>(ListOptions::in_namespace("kube-system")).await.is_err());
    assert!(client.delete::<ConfigMap>(&elsewhere).await.is_err());
    client.get::<Namespace>(&ObjectKey::cluster("kube-system")).await.unwrap();
    client
        .delete_all_of::<ConfigMap>(ListOptions::default().matching_labels([("app", "a")]).unwrap())
        .await
        .unwrap();
    assert!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none());
}

#[tokio::test]
async fn a_namespaced_client_discovers_the_scope_of_dynamic_kinds() {
    let client = client().await.namespaced("default");
    client.create(&config_map("a")).await.unwrap();
    let dynamic = |resource| client.kind(Kind::<DynamicObject>::dynamic(resource));
    let configs = dynamic(ApiResource::erase::<ConfigMap>(&()));
    configs.get(&ObjectKey::cluster("a")).await.unwrap();
    let namespaces = dynamic(ApiResource::erase::<Namespace>(&()));
    namespaces.get(&ObjectKey::cluster("kube-system")).await.unwrap();
}

#[tokio::test]
async fn a_dry_run_client_stores_nothing() {
    let client = client().await;
    let dry = client.dry_run();
    dry.create(&config_map("a")).await.unwrap();
    assert!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none());
    let stored = client.create(&config_map("a")).await.unwrap();
    let mut changed = stored.clone();
    changed.data = None;
    dry.update(&changed).await.unwrap();
    dry.patch(&changed, Patch::merge_from(&stored)).await.unwrap();
    dry.delete(&stored).await.unwrap();
    dry.delete_all_of::<ConfigMap>(DeleteAllOfOptions::from(ListOptions::in_namespace("default")))
        .await
        .unwrap();
    assert_eq!(*client.get::<ConfigMap>(&key("a")).await.unwrap(), stored);
}

/// Records the calls, and fails the configured ones.
#[derive(Default)]
struct Notes {
    seen: Mutex<Vec<String>>,
    fail_before: Option<Verb>,
    fail_after: Option<Verb>,
}

#[async_trait]
impl Interceptor for Notes {
    async fn before(&self, call: &Call<'_>) -> Result<(), Error> {
        let body = call.body.map_or(0, Bytes::len);
        let dry = if call.dry_run { " dry" } else { "" };
        self.seen.lock().push(format!("before {call}{dry}{}", if body > 0 { " with a body" } else { "" }));
        if self.fail_before == Some(call.verb) {
            return Err(call.api_error(Status::failure("not today", "Conflict").with_code(409)));
        }
        Ok(())
    }

    async fn after(&self, call: &Call<'_>, outcome: Result<&Bytes, &Error>) -> Result<(), Error> {
        let outcome = match outcome {
            Ok(bytes) => {
                if bytes.is_empty() {
                    "empty"
                } else {
                    "answered"
                }
            }
            Err(error) if error.is_not_found() => "not found",
            Err(_) => "failed",
        };
        self.seen.lock().push(format!("after {} {outcome}", call.verb));
        if self.fail_after == Some(call.verb) {
            return Err(Error::Other("the response is lost".into()));
        }
        Ok(())
    }
}

#[tokio::test]
async fn an_interceptor_sees_all_calls() {
    let notes = Arc::new(Notes::default());
    let client = client().await.intercept(Arc::clone(&notes));
    let created = client.create(&config_map("a")).await.unwrap();
    client.dry_run().delete(&created).await.unwrap();
    client.get_opt::<ConfigMap>(&key("b")).await.unwrap();
    client.status().update(&crate::deployment("d")).await.unwrap_err();
    let _watch = client.live().watch::<ConfigMap>(Default::default()).await.unwrap();
    assert_eq!(
        *notes.seen.lock(),
        [
            "before create configmaps default/a with a body",
            "after create answered",
            "before delete configmaps default/a dry with a body",
            "after delete answered",
            "before get configmaps default/b",
            "after get not found",
            "before update deployments.apps/status default/d with a body",
            "after update not found",
            "before watch configmaps",
            "after watch empty",
        ]
    );
}

#[tokio::test]
async fn the_first_interceptor_is_the_outermost() {
    let outer = Arc::new(Notes { fail_after: Some(Verb::Get), ..Notes::default() });
    let inner = Arc::new(Notes { fail_before: Some(Verb::Create), ..Notes::default() });
    let client = client().await.intercept(Arc::clone(&outer)).intercept(Arc::clone(&inner));
    client.create(&config_map("a")).await.unwrap_err();
    assert_eq!(
        (outer.seen.lock().len(), inner.seen.lock().len()),
        (1, 1),
        "a call that was not made has no after"
    );
    let error = client.get::<ConfigMap>(&key("a")).await.unwrap_err();
    assert_eq!(error.to_string(), "the response is lost");
    assert_eq!(inner.seen.lock().last().unwrap(), "after get not found", "the inner one was called first");
}

#[tokio::test]
async fn an_interceptor_can_fail_a_call_before_and_after_it_happens() {
    let plain = client().await;
    let refusing = Arc::new(Notes { fail_before: Some(Verb::Create), ..Notes::default() });
    let error = plain.intercept(Arc::clone(&refusing)).create(&config_map("a")).await.unwrap_err();
    assert!(error.is_conflict());
    assert_eq!(error.to_string(), "create configmaps default/a: not today (409 Conflict)");
    assert!(plain.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none());

    let losing = Arc::new(Notes { fail_after: Some(Verb::Create), ..Notes::default() });
    let error = plain.intercept(losing).create(&config_map("a")).await.unwrap_err();
    assert_eq!(error.to_string(), "the response is lost");
    plain.get::<ConfigMap>(&key("a")).await.expect("it happened");
}

#[tokio::test]
async fn a_call_can_override_the_clients_field_validation() {
    let client = client().await.with_field_validation(FieldValidation::Strict);
    let kind = client.kind(Kind::dynamic(ApiResource::erase::<ConfigMap>(&())));
    let unknown: DynamicObject = from(json!({"metadata": {"name": "a", "namespace": "default"}, "typo": 1}));
    assert!(kind.create(&unknown).await.unwrap_err().is_bad_request());
    let ignore =
        CreateOptions { field_validation: Some(FieldValidation::Ignore), ..CreateOptions::default() };
    kind.create_with(&unknown, ignore).await.unwrap();
}

#[tokio::test]
async fn requests_are_counted_by_code_method_and_host() {
    let metrics = Metrics::new();
    let (client, _clock) = client_with(|options: &mut ClientOptions| {
        options.metrics = Some(RestMetrics::new(&metrics));
        options.host = "here:6443".into();
    })
    .await;
    client.create(&config_map("a")).await.unwrap();
    client.get_opt::<ConfigMap>(&key("b")).await.unwrap();
    client.get_opt::<ConfigMap>(&key("b")).await.unwrap();
    let text = metrics.encode();
    for line in [
        r#"rest_client_requests_total{code="201",method="POST",host="here:6443"} 1"#,
        r#"rest_client_requests_total{code="404",method="GET",host="here:6443"} 2"#,
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn calls_are_tracked_and_refused_once_the_tracker_stops_accepting() {
    let (env, _clock) = Env::simulated(1);
    let tracker = WorkTracker::new(env);
    let work = tracker.component("client");
    let (client, _clock) = client_with(|options| options.tracker = Some(tracker.clone())).await;
    client.create(&config_map("a")).await.unwrap();
    assert!(client.create(&config_map("a")).await.is_err());
    let _watch = client.live().watch::<ConfigMap>(Default::default()).await.unwrap();
    let stats = work.stats();
    assert_eq!((stats.succeeded, stats.failed, stats.in_flight), (2, 1, 0));
    tracker.stop_accepting();
    let error = client.get::<ConfigMap>(&key("a")).await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert!(error.to_string().starts_with("get configmaps default/a: "), "{error}");
}

/// Futures of calls are `Send`. Never run: it only has to compile.
#[expect(dead_code, reason = "it compiles")]
fn calls_can_be_sent(client: &Client, object: &ConfigMap, key: &ObjectKey) {
    fn send<F: Future + Send>(_: F) {}
    send(client.get::<ConfigMap>(key));
    send(client.list::<ConfigMap>(ListOptions::default()));
    send(client.create(object));
    send(client.update(object));
    send(client.patch(object, Patch::merge_from(object)));
    send(client.patch::<ConfigMap>(key, Patch::merge_from(object)));
    send(client.apply(object));
    send(client.apply_with(&ApplyConfiguration::<ConfigMap>::new(key), "me"));
    send(client.apply_all([ApplyConfiguration::of(object).erase()], "me"));
    send(client.status().apply(object));
    send(k1s_runtime::util::create_or_apply(client, object, "me"));
    send(client.delete(object));
    send(client.delete::<ConfigMap>(key));
    send(client.delete_all_of::<ConfigMap>(ListOptions::default()));
    send(client.status().update(object));
    send(client.sub_resource::<ConfigMap>("x").create::<Status>(key, object));
    send(client.live().list::<ConfigMap>(ListOptions::default()));
    send(client.live().pages::<ConfigMap>(ListOptions::default()).collect());
    send(client.live().watch::<ConfigMap>(Default::default()));
    send(client.rest_mapper().refresh());
    send(k1s_runtime::util::create_or_update(client, object.clone(), |_| {}));
    send(k1s_runtime::util::create_or_patch(client, object.clone(), |_| {}));
    send(k1s_runtime::util::retry_on_conflict(client.env(), Default::default(), async || {
        client.update(object).await
    }));
}

#[test]
fn clients_are_clone_send_sync_and_debug() {
    fn is<T: Clone + Send + Sync + std::fmt::Debug>() {}
    is::<Client>();
    is::<k1s_runtime::client::KindClient<ConfigMap>>();
}
