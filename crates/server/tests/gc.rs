//! Garbage collection, over the API: what becomes of dependents, by each policy.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use http::{Method, Request};
use http_body_util::BodyExt as _;
use k1s_env::Env;
use k1s_server::{ApiServer, Body, ServerOptions, User};
use k1s_store::{MemoryStore, Store};
use serde_json::{Value, json};
use tower::Service as _;

/// A server, and what the tests ask of it.
#[derive(Clone)]
struct Api {
    server: ApiServer,
    env: Env,
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const NODES: &str = "/api/v1/nodes";

impl Api {
    async fn over(store: Arc<dyn Store>, collect: bool) -> Api {
        let env = Env::system();
        let mut options = ServerOptions::default();
        options.garbage_collection = collect;
        let server = ApiServer::new(env.clone(), store, options).await.unwrap();
        Api { server: server.as_user(User::admin()), env }
    }

    async fn new() -> Api {
        Api::over(Arc::new(MemoryStore::default()), true).await
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string().into_bytes()) };
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request =
            Request::builder().method(method).uri(path).header("content-type", kind).body(body).unwrap();
        let answer = self.server.clone().call(request).await.unwrap();
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap())
    }

    /// Creates an object of this kind, and tells its uid.
    async fn create(&self, path: &str, name: &str, owners: &[Value]) -> String {
        self.create_with(path, json!({"metadata": {"name": name, "ownerReferences": owners}})).await
    }

    async fn create_with(&self, path: &str, object: Value) -> String {
        let (code, object) = self.send(Method::POST, path, object).await;
        assert_eq!(code, 201, "{object}");
        object["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    async fn delete(&self, path: &str, policy: &str) {
        let (code, answer) = self.send(Method::DELETE, path, json!({"propagationPolicy": policy})).await;
        assert_eq!(code, 200, "{answer}");
    }

    async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, Value::Null).await.1
    }

    /// Waits, watching, until the list of a collection is as wanted.
    async fn until(&self, collection: &str, wanted: impl Fn(&[Value]) -> bool) {
        let wait = async {
            loop {
                let (code, list) = self.send(Method::GET, collection, Value::Null).await;
                assert_eq!(code, 200, "{list}");
                if wanted(list["items"].as_array().unwrap()) {
                    return;
                }
                let from = list["metadata"]["resourceVersion"].as_str().unwrap();
                let path = format!("{collection}?watch=1&resourceVersion={from}");
                let request = Request::get(path).body(Body::empty()).unwrap();
                let mut watch = self.server.clone().call(request).await.unwrap().into_body();
                watch.frame().await.unwrap().unwrap();
            }
        };
        let patience = Duration::from_secs(60);
        if self.env.timeout(patience, wait).await.is_err() {
            panic!("{collection} did not become as wanted: {}", self.get(collection).await);
        }
    }

    /// Waits until an object is not there.
    async fn gone(&self, collection: &str, name: &str) {
        self.until(collection, |items| items.iter().all(|item| item["metadata"]["name"] != name)).await;
    }

    /// Waits until the metadata of an object is as wanted.
    async fn becomes(&self, collection: &str, name: &str, wanted: impl Fn(&Value) -> bool) {
        self.until(collection, |items| {
            items.iter().any(|item| item["metadata"]["name"] == name && wanted(&item["metadata"]))
        })
        .await;
    }

    /// Waits until something was collected whose turn comes after everything that was written before.
    async fn settle(&self) {
        let uid = self.create(MAPS, "settle-owner", &[]).await;
        self.create(MAPS, "settle", &[owner("settle-owner", &uid)]).await;
        self.delete(&format!("{MAPS}/settle-owner"), "Background").await;
        self.gone(MAPS, "settle").await;
    }
}

fn owner(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid})
}

fn blocking(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": true})
}

fn held(name: &str, owners: &[Value]) -> Value {
    json!({"metadata": {"name": name, "ownerReferences": owners, "finalizers": ["example.com/hold"]}})
}

async fn let_go(api: &Api, path: &str) {
    let (code, answer) = api.send(Method::PATCH, path, json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(code, 200, "{answer}");
}

#[tokio::test]
async fn background_deletion_goes_down_five_levels_and_leaves_others_alone() {
    let api = Api::new().await;
    let mut uid = api.create(MAPS, "level-0", &[]).await;
    for level in 1..=5 {
        let above = owner(&format!("level-{}", level - 1), &uid);
        uid = api.create(MAPS, &format!("level-{level}"), &[above]).await;
    }
    let other = api.create(MAPS, "other", &[]).await;
    api.create(MAPS, "kept", &[owner("other", &other)]).await;
    api.delete(&format!("{MAPS}/level-0"), "Background").await;
    api.gone(MAPS, "level-5").await;
    api.settle().await;
    assert_eq!(api.get(&format!("{MAPS}/kept")).await["kind"], "ConfigMap");
}

#[tokio::test]
async fn a_dependent_with_finalizers_is_marked_and_waits() {
    let api = Api::new().await;
    let uid = api.create(MAPS, "o", &[]).await;
    api.create_with(SECRETS, held("d", &[owner("o", &uid)])).await;
    api.delete(&format!("{MAPS}/o"), "Background").await;
    api.becomes(SECRETS, "d", |meta| meta["deletionTimestamp"].is_string()).await;
    let_go(&api, &format!("{SECRETS}/d")).await;
    api.gone(SECRETS, "d").await;
}

#[tokio::test]
async fn foreground_deletion_takes_the_dependents_first() {
    let api = Api::new().await;
    let top = api.create(MAPS, "top", &[]).await;
    let middle = api.create(MAPS, "middle", &[blocking("top", &top)]).await;
    api.create_with(SECRETS, held("leaf", &[blocking("middle", &middle)])).await;
    api.delete(&format!("{MAPS}/top"), "Foreground").await;
    api.becomes(SECRETS, "leaf", |meta| meta["deletionTimestamp"].is_string()).await;
    for name in ["top", "middle"] {
        let object = api.get(&format!("{MAPS}/{name}")).await;
        assert_eq!(object["metadata"]["finalizers"], json!(["foregroundDeletion"]), "{object}");
        assert!(object["metadata"]["deletionTimestamp"].is_string(), "{object}");
    }
    let_go(&api, &format!("{SECRETS}/leaf")).await;
    api.gone(MAPS, "top").await;
    assert_eq!(api.get(&format!("{MAPS}/middle")).await["reason"], "NotFound");
}

#[tokio::test]
async fn foreground_deletion_does_not_wait_for_those_who_do_not_block() {
    let api = Api::new().await;
    let uid = api.create(MAPS, "o", &[]).await;
    api.create_with(SECRETS, held("d", &[owner("o", &uid)])).await;
    api.delete(&format!("{MAPS}/o"), "Foreground").await;
    api.gone(MAPS, "o").await;
    api.becomes(SECRETS, "d", |meta| meta["deletionTimestamp"].is_string()).await;
}

#[tokio::test]
async fn foreground_deletion_without_dependents_is_deletion() {
    let api = Api::new().await;
    api.create(MAPS, "o", &[]).await;
    api.delete(&format!("{MAPS}/o"), "Foreground").await;
    api.gone(MAPS, "o").await;
}

#[tokio::test]
async fn orphans_lose_their_reference_and_stay() {
    let api = Api::new().await;
    let uid = api.create(MAPS, "o", &[]).await;
    let second = api.create(MAPS, "second", &[]).await;
    api.create(MAPS, "d", &[owner("o", &uid)]).await;
    api.create_with(SECRETS, held("e", &[owner("o", &uid), owner("second", &second)])).await;
    api.delete(&format!("{MAPS}/o"), "Orphan").await;
    api.gone(MAPS, "o").await;
    api.settle().await;
    let (d, e) = (api.get(&format!("{MAPS}/d")).await, api.get(&format!("{SECRETS}/e")).await);
    assert_eq!(d["metadata"].get("ownerReferences"), None, "{d}");
    assert_eq!(e["metadata"]["ownerReferences"], json!([owner("second", &second)]));
}

#[tokio::test]
async fn one_of_two_owners_takes_its_reference_along_and_the_last_takes_the_object() {
    let api = Api::new().await;
    let (one, two) = (api.create(MAPS, "one", &[]).await, api.create(MAPS, "two", &[]).await);
    api.create(SECRETS, "d", &[owner("one", &one), blocking("two", &two)]).await;
    api.delete(&format!("{MAPS}/one"), "Background").await;
    api.becomes(SECRETS, "d", |meta| meta["ownerReferences"] == json!([blocking("two", &two)])).await;
    api.delete(&format!("{MAPS}/two"), "Foreground").await;
    api.gone(MAPS, "two").await;
    api.gone(SECRETS, "d").await;
}

#[tokio::test]
async fn an_owner_that_waits_lets_a_dependent_with_another_owner_go_free() {
    let api = Api::new().await;
    let (one, two) = (api.create(MAPS, "one", &[]).await, api.create(MAPS, "two", &[]).await);
    api.create(SECRETS, "d", &[blocking("one", &one), owner("two", &two)]).await;
    api.delete(&format!("{MAPS}/one"), "Foreground").await;
    api.gone(MAPS, "one").await;
    assert_eq!(
        api.get(&format!("{SECRETS}/d")).await["metadata"]["ownerReferences"],
        json!([owner("two", &two)])
    );
}

#[tokio::test]
async fn owners_of_each_other_go_together() {
    for (policies, length) in
        [(["Foreground", "Foreground"], 2), (["Foreground", ""], 2), (["Foreground", ""], 4)]
    {
        let api = Api::new().await;
        let mut uids = Vec::new();
        for place in 0..length {
            uids.push(api.create(MAPS, &format!("m{place}"), &[]).await);
        }
        for place in 0..length {
            let above = (place + 1) % length;
            let owners =
                json!({"metadata": {"ownerReferences": [blocking(&format!("m{above}"), &uids[above])]}});
            let (code, answer) = api.send(Method::PATCH, &format!("{MAPS}/m{place}"), owners).await;
            assert_eq!(code, 200, "{answer}");
        }
        for (place, policy) in policies.iter().enumerate().filter(|(_, policy)| !policy.is_empty()) {
            // The second may be gone already.
            let path = format!("{MAPS}/m{place}");
            let (code, answer) = api.send(Method::DELETE, &path, json!({"propagationPolicy": policy})).await;
            assert!(matches!(code, 200 | 404), "{answer}");
        }
        for place in 0..length {
            api.gone(MAPS, &format!("m{place}")).await;
        }
    }
}

#[tokio::test]
async fn an_owner_of_another_uid_kind_or_namespace_is_no_owner() {
    let api = Api::new().await;
    let uid = api.create(MAPS, "o", &[]).await;
    let wrong = "11111111-2222-3333-4444-555555555555";
    let with_kind = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "name": "o", "uid": uid});
    let elsewhere = "/api/v1/namespaces/kube-public/secrets";
    api.create(SECRETS, "mine", &[owner("o", &uid)]).await;
    api.create(SECRETS, "wrong-uid", &[owner("o", wrong)]).await;
    api.create(SECRETS, "wrong-name", &[owner("p", &uid)]).await;
    api.create(SECRETS, "wrong-kind", &[with_kind("Service")]).await;
    api.create(elsewhere, "wrong-namespace", &[owner("o", &uid)]).await;
    for name in ["wrong-uid", "wrong-name", "wrong-kind"] {
        api.gone(SECRETS, name).await;
    }
    api.gone(elsewhere, "wrong-namespace").await;
    assert_eq!(api.get(&format!("{SECRETS}/mine")).await["kind"], "Secret");
}

#[tokio::test]
async fn a_reference_that_makes_no_sense_is_left_alone() {
    let api = Api::new().await;
    let uid = api.create(MAPS, "o", &[]).await;
    let unknown = json!({"apiVersion": "example.com/v1", "kind": "Nothing", "name": "x", "uid": "u"});
    let review =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "name": "x", "uid": "u"});
    api.create(NODES, "of-the-cluster", &[owner("o", &uid)]).await;
    api.create(SECRETS, "unknown", &[unknown]).await;
    api.create(SECRETS, "review", &[review]).await;
    api.delete(&format!("{MAPS}/o"), "Background").await;
    api.settle().await;
    for path in ["/api/v1/nodes/of-the-cluster", &format!("{SECRETS}/unknown"), &format!("{SECRETS}/review")]
    {
        let object = api.get(path).await;
        assert!(object["metadata"]["ownerReferences"].is_array(), "{object}");
    }
}

fn definition(scope: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": scope,
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn widget(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": name, "uid": uid})
}

#[tokio::test]
async fn custom_resources_own_and_are_owned() {
    let api = Api::new().await;
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    let typed = |mut object: Value| {
        object["apiVersion"] = "example.com/v1".into();
        object["kind"] = "Widget".into();
        object
    };
    // The reference is there before its kind is.
    api.create(SECRETS, "early", &[widget("never", "11111111-2222-3333-4444-555555555555")]).await;
    api.settle().await;
    assert_eq!(api.get(&format!("{SECRETS}/early")).await["kind"], "Secret");
    api.create_with(DEFINITIONS, definition("Namespaced")).await;
    api.gone(SECRETS, "early").await;
    let top = api.create(MAPS, "top", &[]).await;
    let middle = typed(json!({"metadata": {"name": "middle", "ownerReferences": [blocking("top", &top)]}}));
    let middle = api.create_with(widgets, middle).await;
    api.create(SECRETS, "leaf", &[widget("middle", &middle)]).await;
    api.delete(&format!("{MAPS}/top"), "Foreground").await;
    api.gone(MAPS, "top").await;
    api.gone(SECRETS, "leaf").await;
    assert_eq!(api.get(&format!("{widgets}/middle")).await["reason"], "NotFound");
    // The definition goes with all its objects, and these with their dependents.
    let last = api.create_with(widgets, typed(json!({"metadata": {"name": "last"}}))).await;
    api.create(SECRETS, "leaf", &[widget("last", &last)]).await;
    api.delete(&format!("{DEFINITIONS}/widgets.example.com"), "Background").await;
    api.gone(SECRETS, "leaf").await;
}

#[tokio::test]
async fn an_owner_of_the_cluster_has_dependents_in_all_namespaces() {
    let api = Api::new().await;
    let uid = api.create(NODES, "n", &[]).await;
    let of_node = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": uid});
    let elsewhere = "/api/v1/namespaces/kube-public/secrets";
    api.create(NODES, "m", std::slice::from_ref(&of_node)).await;
    api.create(SECRETS, "d", std::slice::from_ref(&of_node)).await;
    api.create(elsewhere, "d", &[of_node]).await;
    api.settle().await;
    assert_eq!(api.get(&format!("{SECRETS}/d")).await["kind"], "Secret");
    api.delete(&format!("{NODES}/n"), "Background").await;
    api.gone(NODES, "m").await;
    api.gone(SECRETS, "d").await;
    api.gone(elsewhere, "d").await;
}

#[tokio::test]
async fn another_server_finishes_what_one_began() {
    let store = Arc::new(MemoryStore::default());
    let api = Api::over(store.clone(), false).await;
    let foreground = api.create(MAPS, "foreground", &[]).await;
    let orphan = api.create(MAPS, "orphan", &[]).await;
    let background = api.create(MAPS, "background", &[]).await;
    api.create(SECRETS, "f", &[blocking("foreground", &foreground)]).await;
    api.create(SECRETS, "o", &[owner("orphan", &orphan)]).await;
    api.create(SECRETS, "b", &[owner("background", &background)]).await;
    for (name, policy) in [("foreground", "Foreground"), ("orphan", "Orphan"), ("background", "Background")] {
        api.delete(&format!("{MAPS}/{name}"), policy).await;
    }
    for name in ["f", "o", "b"] {
        assert_eq!(api.get(&format!("{SECRETS}/{name}")).await["kind"], "Secret", "nobody collects here");
    }
    api.server.shutdown();
    let api = Api::over(store, true).await;
    api.gone(MAPS, "foreground").await;
    api.gone(MAPS, "orphan").await;
    api.gone(SECRETS, "b").await;
    assert_eq!(api.get(&format!("{SECRETS}/f")).await["reason"], "NotFound");
    assert_eq!(api.get(&format!("{SECRETS}/o")).await["metadata"].get("ownerReferences"), None);
}

#[tokio::test]
async fn the_task_runs_only_where_it_is_needed_and_ends_with_the_server() {
    let api = Api::new().await;
    let running = |api: &Api| api.env.tasks().iter().any(|task| task.name == "garbage collection");
    api.create(MAPS, "o", &[]).await;
    api.delete(&format!("{MAPS}/o"), "Background").await;
    assert!(!running(&api));
    api.settle().await;
    assert!(running(&api));
    let env = api.env.clone();
    drop(api);
    let ended = async {
        while env.tasks().iter().any(|task| task.name == "garbage collection") {
            env.yield_now().await;
        }
    };
    env.timeout(Duration::from_secs(60), ended).await.unwrap();
}

#[tokio::test]
async fn five_thousand_dependents_follow_their_owner() {
    const COUNT: usize = 5000;
    for policy in ["Background", "Foreground", "Orphan"] {
        let api = Api::new().await;
        let uid = api.create(MAPS, "o", &[]).await;
        for number in 0..COUNT {
            api.create(SECRETS, &format!("d{number}"), &[blocking("o", &uid)]).await;
        }
        let started = api.env.now();
        api.delete(&format!("{MAPS}/o"), policy).await;
        api.gone(MAPS, "o").await;
        if policy == "Orphan" {
            let (_, list) = api.send(Method::GET, SECRETS, Value::Null).await;
            let items = list["items"].as_array().unwrap();
            assert_eq!(items.len(), COUNT);
            assert!(items.iter().all(|item| item["metadata"].get("ownerReferences").is_none()));
        } else {
            // Not watched one by one: each look at the list costs as much as thousands of deletions.
            let last = format!("{SECRETS}?limit=1");
            while api.get(&last).await["items"].as_array().is_some_and(|items| !items.is_empty()) {
                api.env.yield_now().await;
            }
        }
        println!("{policy}: {COUNT} dependents in {:?}", api.env.now() - started);
    }
}
