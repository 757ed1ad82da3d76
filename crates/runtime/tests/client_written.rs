//! A client with a cache reads its own writes, even before the cache has received them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use k1s_env::Env;
use k1s_runtime::{
    ObjectKey,
    cache::{Cache, CacheOptions, InformerOptions},
    client::{Client, ClientOptions, ListOptions, Patch},
    kind, metadata,
    util::{OperationResult, add_finalizer, create_or_update, remove_finalizer},
};
use k1s_server::{ApiServer, ServerOptions, User};
use k1s_store::{MemoryOptions, MemoryStore};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod},
};
use serde_json::{Value, json};
use tower::Service as _;

/// A client whose cache lists once and then receives no events: its watches stay silent.
async fn client() -> (Client, Cache) {
    client_with(CacheOptions::default()).await
}

async fn client_with(cache_options: CacheOptions) -> (Client, Cache) {
    let (env, _clock) = Env::simulated(7);
    let store = Arc::new(MemoryStore::new(env.clone(), MemoryOptions::default()));
    let server = ApiServer::new(env.clone(), store, ServerOptions::default()).await.unwrap();
    let server = server.as_user(User::admin());
    let silent = {
        let server = server.clone();
        tower::service_fn(move |request: Request<kube::client::Body>| {
            let mut server = server.clone();
            async move {
                if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                    let never = futures_util::stream::pending::<Result<Frame<Bytes>, Infallible>>();
                    return Ok(Response::new(
                        StreamBody::new(never).map_err(|never| match never {}).boxed_unsync(),
                    ));
                }
                let answer = server.call(request).await?;
                Ok::<_, Infallible>(answer.map(|body| {
                    let body: UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>> =
                        body.map_err(Into::into).boxed_unsync();
                    body
                }))
            }
        })
    };
    let cache = Cache::new(&env, kube::Client::new(silent, "default"), cache_options);
    let options = ClientOptions { env, ..ClientOptions::default() };
    let client = Client::new(kube::Client::new(server, "default"), options).with_cache(cache.clone());
    (client, cache)
}

fn config_map(name: &str) -> ConfigMap {
    let meta = json!({"name": name, "namespace": "default", "labels": {"app": "x"}});
    serde_json::from_value(json!({"metadata": meta, "data": {"a": "1"}})).unwrap()
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

#[tokio::test]
async fn own_writes_are_read_and_missing_objects_are_not_found() {
    let (client, _) = client().await;
    let error = client.get::<ConfigMap>(&key("a")).await.unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(error.to_string(), r#"get configmaps default/a: configmaps "a" not found (404 NotFound)"#);

    let mut object = client.create(&config_map("a")).await.unwrap();
    assert_eq!(*client.get::<ConfigMap>(&key("a")).await.unwrap(), object);
    object.data = None;
    let object = client.update(&object).await.unwrap();
    assert_eq!(*client.get::<ConfigMap>(&key("a")).await.unwrap(), object);
    let patch = Patch::merge(&json!({"data": {"b": "2"}}));
    let object = client.patch::<ConfigMap>(&key("a"), patch).await.unwrap();
    let mine = ListOptions::in_namespace("default").matching_labels([("app", "x")]).unwrap();
    assert_eq!(client.list::<ConfigMap>(mine).await.unwrap(), [Arc::new(object.clone())]);
    client.delete(&object).await.unwrap();
    assert!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none());
    let anew = client.create(&config_map("a")).await.unwrap();
    assert_eq!(*client.get::<ConfigMap>(&key("a")).await.unwrap(), anew);
}

/// The cache receives no events of other clients; live reads go to the server.
#[tokio::test]
async fn live_reads_see_objects_missing_in_the_cache() {
    let (client, _) = client().await;
    assert!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none());
    let other = Client::new(client.kube().clone(), ClientOptions::default());
    other.create(&config_map("a")).await.unwrap();
    assert!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none(), "this cache receives no events");
    assert!(client.live().get_opt::<ConfigMap>(&key("a")).await.unwrap().is_some());
    let error = create_or_update(&client, config_map("a"), |_| {}).await.unwrap_err();
    assert!(error.is_already_exists(), "as in Go, an object missing in the cache is created");
}

/// An object found on the server, past the cache's selector, is then readable from the cache.
#[tokio::test]
async fn an_object_that_create_or_update_found_on_the_server_is_readable() {
    let labels = k1s_object::selector::LabelSelector::parse("app=x").unwrap();
    let options = CacheOptions::default()
        .by_object(&kind::<ConfigMap>(), InformerOptions { labels: Some(labels), ..Default::default() });
    let (client, _) = client_with(options).await;
    assert!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none());
    let other = Client::new(client.kube().clone(), ClientOptions::default());
    let stored = other.create(&config_map("a")).await.unwrap();
    assert!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none(), "this cache receives no events");
    let (found, done) = create_or_update(&client, config_map("a"), |_| {}).await.unwrap();
    assert_eq!((&found, done), (&stored, OperationResult::Unchanged));
    assert_eq!(*client.get::<ConfigMap>(&key("a")).await.unwrap(), stored);
}

#[tokio::test]
async fn create_or_update_reads_its_own_writes() {
    let (client, _) = client().await;
    let mut done = Vec::new();
    for value in ["1", "1", "2", "2"] {
        let set = |object: &mut ConfigMap| object.data = Some([("k".to_owned(), value.to_owned())].into());
        done.push(create_or_update(&client, config_map("a"), set).await.unwrap().1);
    }
    use OperationResult::{Created, Unchanged, Updated};
    assert_eq!(done, [Created, Unchanged, Updated, Unchanged]);
}

#[tokio::test]
async fn dry_runs_and_other_kinds_of_responses_are_not_cached() {
    let (client, cache) = client().await;
    assert!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none());
    client.dry_run().create(&config_map("a")).await.unwrap();
    assert!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none());
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    }))
    .unwrap();
    assert!(client.get_opt::<Deployment>(&key("d")).await.unwrap().is_none());
    client.create(&deployment).await.unwrap();
    assert_eq!(cache.writes(), 1);
    let scale = Patch::merge(&json!({"spec": {"replicas": 3}}));
    let scales = client.sub_resource::<Deployment>("scale");
    scales.patch_as::<Value>(&key("d"), scale, Default::default()).await.unwrap();
    assert_eq!(cache.writes(), 1, "a scale is not a deployment");
    let status = Patch::merge(&json!({"status": {"observedGeneration": 1}}));
    client.status::<Deployment>().patch(&key("d"), status).await.unwrap();
    let read = client.get::<Deployment>(&key("d")).await.unwrap();
    assert_eq!(read.status.as_ref().unwrap().observed_generation, Some(1));
}

#[tokio::test]
async fn an_object_with_finalizers_exists_until_the_last_is_removed() {
    let (client, _) = client().await;
    assert!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none());
    let mut held = config_map("a");
    add_finalizer(&mut held, "k1s.dev/a");
    client.create(&held).await.unwrap();
    client.delete::<ConfigMap>(&key("a")).await.unwrap();
    let mut object = (*client.get::<ConfigMap>(&key("a")).await.unwrap()).clone();
    assert!(object.metadata.deletion_timestamp.is_some());
    assert!(!add_finalizer(&mut object, "k1s.dev/b"));
    remove_finalizer(&mut object, "k1s.dev/a");
    client.update(&object).await.unwrap();
    assert!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none());
}

#[tokio::test]
async fn a_gracefully_terminating_pod_still_exists() {
    let (client, _) = client().await;
    assert!(client.get_opt::<Pod>(&key("running")).await.unwrap().is_none());
    let pod = |name: &str, node: Option<&str>| -> Pod {
        let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
        if let Some(node) = node {
            spec["nodeName"] = node.into();
        }
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec}))
            .unwrap()
    };
    client.create(&pod("running", Some("node"))).await.unwrap();
    client.delete::<Pod>(&key("running")).await.unwrap();
    let left = client.get::<Pod>(&key("running")).await.unwrap();
    assert_eq!(left.metadata.deletion_grace_period_seconds, Some(30));
    // An unscheduled pod is deleted immediately, and the response is its last state.
    client.create(&pod("pending", None)).await.unwrap();
    client.delete::<Pod>(&key("pending")).await.unwrap();
    assert!(client.get_opt::<Pod>(&key("pending")).await.unwrap().is_none());
}

#[tokio::test]
async fn writes_of_metadata_clients_update_whole_objects_in_the_cache() {
    let (client, _) = client().await;
    let (whole, part) = (client.kind(kind::<ConfigMap>()), client.kind(metadata::<ConfigMap>()));
    assert!(whole.get_opt(&key("a")).await.unwrap().is_none());
    assert!(part.get_opt(&key("a")).await.unwrap().is_none());
    client.create(&config_map("a")).await.unwrap();
    let patch = Patch::merge(&json!({"metadata": {"labels": {"x": "y"}}}));
    let answer = part.patch(&key("a"), patch).await.unwrap();
    assert_eq!(answer.metadata.labels.unwrap()["x"], "y");
    let read = whole.get(&key("a")).await.unwrap();
    assert_eq!(read.metadata.labels.as_ref().unwrap()["x"], "y");
    assert_eq!(read.data.as_ref().unwrap()["a"], "1");
    assert_eq!(part.get(&key("a")).await.unwrap().metadata, read.metadata);
}

#[tokio::test]
async fn deleting_a_collection_updates_the_cache_for_each_object() {
    let (client, _) = client().await;
    assert!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none());
    let mut held = config_map("held");
    add_finalizer(&mut held, "k1s.dev/a");
    for object in [&config_map("a"), &held, &config_map("b")] {
        client.create(object).await.unwrap();
    }
    let all = ListOptions::in_namespace("default").matching_labels([("app", "x")]).unwrap();
    client.delete_all_of::<ConfigMap>(all).await.unwrap();
    assert!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none());
    assert!(client.get_opt::<ConfigMap>(&key("b")).await.unwrap().is_none());
    let held = client.get::<ConfigMap>(&key("held")).await.unwrap();
    assert!(held.metadata.deletion_timestamp.is_some());
}
