//! Lists, tables and watches in another version, and how few calls they cost.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::{
    common::names,
    world::{Mode, World, host, path},
};

#[tokio::test]
async fn a_list_is_one_call_and_the_next_one_none() {
    let world = World::new().await;
    world.fill(40).await;
    let list = world.client.get(&path("v1beta1")).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 40);
    assert!(
        list["items"].as_array().unwrap().iter().all(|item| item["spec"] == json!({"hostPort": "a.b:80"})
            && item["apiVersion"] == "example.com/v1beta1")
    );
    assert_eq!(world.hook.calls(), 1);
    assert_eq!(world.client.get(&path("v1beta1")).await, list);
    let one = world.client.get(&format!("{}/h0007", path("v1beta1"))).await;
    assert_eq!(one, list["items"][7]);
    assert_eq!(world.hook.calls(), 0, "conversions are remembered");
    // Each page is a call of its own objects.
    world.hook.objects.store(0, Ordering::SeqCst);
    let page = world.client.get(&format!("{}?limit=10", path("v1alpha1"))).await;
    assert_eq!((page["items"].as_array().unwrap().len(), world.hook.calls()), (10, 1));
    assert_eq!(world.hook.objects.load(Ordering::SeqCst), 10);
    // Only what has changed is converted again.
    world.client.call("PATCH", &format!("{}/h0003", path("v1")), json!({"spec": {"port": 81}})).await;
    world.hook.objects.store(0, Ordering::SeqCst);
    let list = world.client.get(&path("v1beta1")).await;
    assert_eq!(list["items"][3]["spec"]["hostPort"], "a.b:81");
    assert_eq!((world.hook.calls(), world.hook.objects.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn a_long_list_is_converted_in_parts() {
    let world = World::new().await;
    world.fill(1100).await;
    let list = world.client.get(&path("v1beta1")).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1100);
    assert!(list["items"].as_array().unwrap().iter().all(|item| item["spec"]["hostPort"] == "a.b:80"));
    let calls = world.hook.calls();
    assert!((3..=4).contains(&calls), "{calls}");
}

#[tokio::test]
async fn a_thousand_watchers_of_another_version_cost_one_call_per_event() {
    let world = World::new().await;
    world.fill(2).await;
    let mut watches = Vec::new();
    for _ in 0..1000 {
        watches.push(world.client.watch(&path("v1beta1")).await);
    }
    for watch in &mut watches {
        for _ in 0..2 {
            let event = watch.event().await;
            assert_eq!(
                (&event["type"], &event["object"]["spec"]),
                (&json!("ADDED"), &json!({"hostPort": "a.b:80"}))
            );
        }
    }
    assert_eq!(world.hook.calls(), 1);
    world.client.call("PATCH", &format!("{}/h0001", path("v1")), json!({"spec": {"port": 81}})).await;
    let changed = futures_util::future::join_all(watches.iter_mut().map(|watch| watch.event())).await;
    assert!(
        changed
            .iter()
            .all(|event| event["type"] == "MODIFIED" && event["object"]["spec"]["hostPort"] == "a.b:81")
    );
    assert_eq!(world.hook.calls(), 1);
    world.client.call("DELETE", &format!("{}/h0001", path("v1")), Value::Null).await;
    let gone = futures_util::future::join_all(watches.iter_mut().map(|watch| watch.event())).await;
    assert!(
        gone.iter()
            .all(|event| event["type"] == "DELETED" && event["object"]["spec"]["hostPort"] == "a.b:81")
    );
    assert_eq!(world.hook.calls(), 0, "the last state was converted before");
}

#[tokio::test]
async fn columns_and_selectable_fields_are_those_of_the_version() {
    let world = World::new().await;
    world.fill(2).await;
    world.client.call("PATCH", &format!("{}/h0001", path("v1")), json!({"spec": {"port": 81}})).await;
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let table = world.client.send("GET", &path("v1beta1"), &accept, "").await.json();
    assert_eq!(table["columnDefinitions"][1]["name"], "HostPort");
    assert_eq!(table["rows"][1]["cells"], json!(["h0001", "a.b:81"]));
    let selected = world.client.get(&format!("{}?fieldSelector=spec.hostPort=a.b:81", path("v1beta1"))).await;
    assert_eq!(names(&selected), ["h0001"]);
    let selected = world.client.get(&format!("{}?fieldSelector=spec.host=a.b", path("v1"))).await;
    assert_eq!(names(&selected).len(), 2);
    let refused = world
        .client
        .call("GET", &format!("{}?fieldSelector=spec.host=a.b", path("v1beta1")), Value::Null)
        .await;
    assert_eq!((refused.0, &refused.1["message"]), (400, &json!("field label not supported: spec.host")));
    // A watch sees objects enter and leave its selection.
    let mut watch =
        world.client.watch(&format!("{}?fieldSelector=spec.hostPort=a.b:82", path("v1beta1"))).await;
    let one = format!("{}/h0000", path("v1"));
    world.client.call("PATCH", &one, json!({"spec": {"port": 82}})).await;
    assert_eq!(watch.brief().await.0, "ADDED");
    world.client.call("PATCH", &one, json!({"spec": {"port": 83}})).await;
    let left = watch.event().await;
    assert_eq!((&left["type"], &left["object"]["spec"]["hostPort"]), (&json!("DELETED"), &json!("a.b:82")));
}

#[tokio::test]
async fn labels_are_the_converters_and_selectors_see_them() {
    let world = World::new().await;
    world.fill(2).await;
    world.hook.set(Mode::Change(|answer| {
        for object in answer["response"]["convertedObjects"].as_array_mut().unwrap() {
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"] = json!({"converted": name});
            object["metadata"]["finalizers"] = json!(["ignored"]);
        }
    }));
    let list = world.client.get(&format!("{}?labelSelector=converted%3Dh0001", path("v1beta1"))).await;
    assert_eq!(names(&list), ["h0001"]);
    assert_eq!(list["items"][0]["metadata"].get("finalizers"), None);
    assert_eq!(
        world.client.get(&format!("{}?labelSelector=converted", path("v1"))).await["items"],
        json!([])
    );
}

#[tokio::test]
async fn metadata_of_everything_needs_no_converter() {
    let world = World::new().await;
    world.fill(2).await;
    world.hook.set(Mode::Fail("down"));
    let all = world.client.get("/k1s/v1/metadata?of=hosts.example.com").await;
    assert_eq!(all["items"].as_array().unwrap().len(), 2);
    assert_eq!(world.hook.calls(), 0);
    // Owners are collected, and namespaces emptied, while the converter is down.
    world.client.post("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    let place = "/apis/example.com/v1/namespaces/n/hosts";
    world.client.post(place, host("v1", "a")).await;
    world.client.call("DELETE", "/api/v1/namespaces/n", Value::Null).await;
    crate::common::eventually("the namespace is gone", async || {
        world.client.call("GET", "/api/v1/namespaces/n", Value::Null).await.0 == 404
    })
    .await;
    assert_eq!(world.hook.calls(), 0);
}
