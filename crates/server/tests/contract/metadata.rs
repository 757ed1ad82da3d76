//! `/k1s/v1/metadata`: the metadata of all objects in one list or watch.

use std::sync::Arc;

use k1s_server::{ServerOptions, Tokens, User};
use k1s_store::{MemoryOptions, MemoryStore};
use serde_json::{Value, json};

use crate::common::{self, Client, Watch, config_map, simulated};

const PATH: &str = "/k1s/v1/metadata";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn owned(name: &str) -> Value {
    let mut object = config_map(name);
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "some-uid"}]);
    object
}

/// The initial events, as `plural/name`.
async fn initial(watch: &mut Watch) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let event = watch.event().await;
        let object = &event["object"];
        if event["type"] == "BOOKMARK" {
            assert_eq!(object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
            return names;
        }
        assert_eq!((&event["type"], &object["kind"]), (&json!("ADDED"), &json!("PartialObjectMetadata")));
        assert_eq!(object.as_object().unwrap().len(), 4, "only metadata: {object}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        names.push(format!(
            "{}/{}",
            text(&object["resource"]["resource"]),
            text(&object["metadata"]["name"])
        ));
    }
}

async fn server() -> Client {
    common::client(&common::server().await)
}

#[tokio::test]
async fn a_watch_sends_existing_objects_and_then_changes() {
    let client = server().await;
    client.post(MAPS, config_map("a")).await;
    let mut watch = client.watch(PATH).await;
    let names = initial(&mut watch).await;
    for name in ["configmaps/a", "namespaces/default", "serviceaccounts/default", "apiservices/v1"] {
        assert!(names.iter().any(|one| one.starts_with(name)), "{name} is not in {names:?}");
    }
    let created = client.post(MAPS, owned("b")).await;
    let event = watch.event().await;
    assert_eq!(event["type"], "ADDED");
    assert_eq!(event["object"]["metadata"], created["metadata"]);
    assert_eq!(event["object"]["resource"], json!({"group": "", "resource": "configmaps"}));
    client.call("PATCH", &format!("{MAPS}/b"), json!({"data": {"k": "v"}})).await;
    assert_eq!(watch.brief().await.0, "MODIFIED");
    client.call("DELETE", &format!("{MAPS}/b"), Value::Null).await;
    let (kind, name, revision) = watch.brief().await;
    assert_eq!((&*kind, &*name), ("DELETED", "b"));
    // From a revision on, no event is repeated.
    let mut later = client.watch(&format!("{PATH}?resourceVersion={}", revision - 1)).await;
    assert_eq!(later.brief().await, ("DELETED".to_owned(), "b".to_owned(), revision));
}

#[tokio::test]
async fn a_watch_sends_a_bookmark_when_it_has_caught_up_if_requested() {
    let client = server().await;
    client.post(MAPS, owned("a")).await;
    let mut watch = client.watch(&format!("{PATH}?all=nodes")).await;
    assert_eq!(initial(&mut watch).await, ["configmaps/a"]);
    let after =
        client.post(MAPS, owned("b")).await["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    // This object is not selected, but the watch passes its revision.
    let plain = client.post(MAPS, config_map("plain")).await;
    let reached: u64 = plain["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let path = |after: &str| format!("{PATH}?all=nodes&progress=true&resourceVersion={after}");
    let mut asked = client.watch(&path(&after)).await;
    let (kind, _, revision) = asked.brief().await;
    assert!(kind == "BOOKMARK" && revision >= reached, "{kind} {revision}");
    let before = (after.parse::<u64>().unwrap() - 1).to_string();
    let mut asked = client.watch(&path(&before)).await;
    assert_eq!(asked.brief().await.1, "b");
    let (kind, _, revision) = asked.brief().await;
    assert!(kind == "BOOKMARK" && revision >= reached, "{kind} {revision}");
}

#[tokio::test]
async fn a_watch_can_skip_objects_without_owners() {
    let client = server().await;
    for name in ["plain", "named"] {
        client.post(MAPS, config_map(name)).await;
    }
    client.post(MAPS, owned("owned")).await;
    let mut watch = client.watch(&format!("{PATH}?all=nodes&all=configmaps/named")).await;
    assert_eq!(initial(&mut watch).await, ["configmaps/named", "configmaps/owned"]);
    client.call("PATCH", &format!("{MAPS}/plain"), json!({"data": {"k": "v"}})).await;
    client.call("PATCH", &format!("{MAPS}/owned"), json!({"metadata": {"ownerReferences": null}})).await;
    let (kind, name, _) = watch.brief().await;
    assert_eq!((&*kind, &*name), ("MODIFIED", "owned"), "its last owner was removed");
    client.call("PATCH", &format!("{MAPS}/owned"), json!({"data": {"k": "v"}})).await;
    client.call("DELETE", &format!("{MAPS}/plain"), Value::Null).await;
    let (kind, name, _) = watch.brief().await;
    assert_eq!((&*kind, &*name), ("DELETED", "plain"), "every deletion is reported");
}

#[tokio::test]
async fn a_list_names_the_version_and_kind_of_each_object() {
    let client = server().await;
    client.post(MAPS, config_map("a")).await;
    client
        .post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", common::definition("example.com"))
        .await;
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}});
    client.post("/apis/example.com/v1/namespaces/kube-public/things", thing).await;
    let list = client.get(&format!("{PATH}?namespace=kube-public")).await;
    let items = list["items"].as_array().unwrap();
    assert!(items.iter().all(|item| item["metadata"]["namespace"] == "kube-public"), "{list}");
    let found = items.iter().find(|item| item["metadata"]["name"] == "t").unwrap();
    let resource = json!({"group": "example.com", "version": "v1", "resource": "things", "kind": "Thing"});
    assert_eq!(found["resource"], resource);
    let list = client.get(&format!("{PATH}?of=things.example.com")).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
}

#[tokio::test]
async fn it_requires_permission_to_watch_everything() {
    let mut options = ServerOptions::default();
    let mut tokens = Tokens::new();
    tokens.insert("alice-token".to_owned(), User::new("alice", &[]));
    options.tokens = tokens;
    let (client, _clock) = simulated(options).await;
    let answer = client.send("GET", PATH, &[("authorization", "Bearer alice-token")], "").await;
    assert_eq!(answer.status, 403);
    assert!(
        answer.json()["message"].as_str().unwrap().contains("cannot watch resource \"*\""),
        "{}",
        answer.text()
    );
    let (status, _) = client.call("POST", PATH, json!({})).await;
    assert_eq!(status, 405);
}

#[tokio::test]
async fn a_compacted_revision_gets_410() {
    let env = k1s_env::Env::system();
    let store = MemoryStore::new(env.clone(), MemoryOptions::default());
    let store = Arc::new(store);
    let client = common::client(&common::server_with(&env, store.clone(), ServerOptions::default()).await);
    for place in 0..5 {
        client.post(MAPS, config_map(&format!("c{place}"))).await;
    }
    let now = k1s_store::Store::revision(&*store).await.unwrap();
    k1s_store::Store::compact(&*store, now).await.unwrap();
    let answer = client.send("GET", &format!("{PATH}?watch=true&resourceVersion=2"), &[], "").await;
    let body = answer.json();
    let code = if answer.status == 200 { body["object"]["code"].clone() } else { json!(answer.status) };
    assert_eq!(code, 410, "{body}");
}
