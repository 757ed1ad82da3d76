//! A client with a cache reads what it has written.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use k1s_env::Env;
use k1s_runtime::{
    ObjectKey,
    cache::Cache,
    client::{Client, ClientOptions, ListOptions, Patch, Written},
    metadata,
    util::{add_finalizer, remove_finalizer},
};
use k1s_server::{ApiServer, ServerOptions, User};
use k1s_store::{MemoryOptions, MemoryStore};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod},
};
use serde_json::{Value, json};

async fn client() -> (Client, Cache) {
    let (env, _clock) = Env::simulated(7);
    let store = Arc::new(MemoryStore::new(env.clone(), MemoryOptions::default()));
    let server = ApiServer::new(env.clone(), store, ServerOptions::default()).await.unwrap();
    let client = kube::Client::new(server.as_user(User::admin()), "default");
    let cache = Cache::default();
    let options = ClientOptions { env, ..ClientOptions::default() };
    (Client::new(client, options).with_cache(cache.clone()), cache)
}

fn config_map(name: &str) -> ConfigMap {
    let meta = json!({"name": name, "namespace": "default", "labels": {"app": "x"}});
    serde_json::from_value(json!({"metadata": meta, "data": {"a": "1"}})).unwrap()
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn last(cache: &Cache) -> Written {
    cache.written().pop().unwrap()
}

fn stored(written: &Written) -> Value {
    let Written::Stored(bytes) = written else { panic!("{written:?}") };
    serde_json::from_slice(bytes).unwrap()
}

#[tokio::test]
async fn writes_are_read_again_and_missing_objects_are_not_found() {
    let (client, cache) = client().await;
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
    assert_eq!(
        client.list::<ConfigMap>(ListOptions::in_namespace("default")).await.unwrap(),
        [Arc::new(object.clone())]
    );
    assert!(client.live().get_opt::<ConfigMap>(&key("a")).await.unwrap().is_some());
    client.delete(&object).await.unwrap();
    assert_eq!(last(&cache), Written::Deleted { key: key("a"), uid: object.metadata.uid });
    assert!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none());
}

#[tokio::test]
async fn dry_runs_and_other_answers_are_not_told() {
    let (client, cache) = client().await;
    client.dry_run().create(&config_map("a")).await.unwrap();
    assert!(cache.written().is_empty());
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    }))
    .unwrap();
    client.create(&deployment).await.unwrap();
    let before = cache.written().len();
    let scale = Patch::merge(&json!({"spec": {"replicas": 3}}));
    let scales = client.sub_resource::<Deployment>("scale");
    scales.patch_as::<Value>(&key("d"), scale, Default::default()).await.unwrap();
    assert_eq!(cache.written().len(), before, "a scale is not a deployment");
    let status = Patch::merge(&json!({"status": {"observedGeneration": 1}}));
    client.status::<Deployment>().patch(&key("d"), status).await.unwrap();
    let told = stored(&last(&cache));
    assert_eq!((&told["kind"], &told["status"]["observedGeneration"]), (&json!("Deployment"), &json!(1)));
}

#[tokio::test]
async fn an_object_that_waits_for_finalizers_is_there_until_the_last_is_gone() {
    let (client, cache) = client().await;
    let mut held = config_map("a");
    add_finalizer(&mut held, "k1s.dev/a");
    client.create(&held).await.unwrap();
    client.delete::<ConfigMap>(&key("a")).await.unwrap();
    assert!(stored(&last(&cache))["metadata"]["deletionTimestamp"].is_string());
    let mut object = (*client.get::<ConfigMap>(&key("a")).await.unwrap()).clone();
    assert!(!add_finalizer(&mut object, "k1s.dev/b"));
    remove_finalizer(&mut object, "k1s.dev/a");
    client.update(&object).await.unwrap();
    assert_eq!(last(&cache), Written::Deleted { key: key("a"), uid: object.metadata.uid });
    assert!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none());
}

#[tokio::test]
async fn a_pod_that_ends_in_good_order_is_still_there() {
    let (client, cache) = client().await;
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
    assert_eq!(stored(&last(&cache))["metadata"]["deletionGracePeriodSeconds"], 30);
    // One that runs nowhere goes at once, and is answered with what it was.
    client.create(&pod("pending", None)).await.unwrap();
    client.delete::<Pod>(&key("pending")).await.unwrap();
    assert!(matches!(last(&cache), Written::Deleted { .. }));
}

#[tokio::test]
async fn metadata_clients_tell_the_cache_of_whole_objects() {
    let (client, cache) = client().await;
    client.create(&config_map("a")).await.unwrap();
    let patch = Patch::merge(&json!({"metadata": {"labels": {"x": "y"}}}));
    let answer = client.kind(metadata::<ConfigMap>()).patch(&key("a"), patch).await.unwrap();
    assert_eq!(answer.metadata.labels.unwrap()["x"], "y");
    assert_eq!(stored(&last(&cache))["data"]["a"], "1");
}

#[tokio::test]
async fn deleting_many_tells_what_has_become_of_each() {
    let (client, cache) = client().await;
    let mut held = config_map("held");
    add_finalizer(&mut held, "k1s.dev/a");
    for object in [&config_map("a"), &held, &config_map("b")] {
        client.create(object).await.unwrap();
    }
    let before = cache.written().len();
    let all = ListOptions::in_namespace("default").matching_labels([("app", "x")]).unwrap();
    client.delete_all_of::<ConfigMap>(all).await.unwrap();
    assert_eq!(cache.written().len(), before + 3);
    assert!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap().is_none());
    assert!(client.get_opt::<ConfigMap>(&key("b")).await.unwrap().is_none());
    let held = client.get::<ConfigMap>(&key("held")).await.unwrap();
    assert!(held.metadata.deletion_timestamp.is_some());
}
