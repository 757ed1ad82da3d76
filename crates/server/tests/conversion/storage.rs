//! The storage version changes, and with it what is stored.

use k1s_env::Env;
use serde_json::{Value, json};

use crate::world::{CRD, Mode, World, definition, host, path};

/// Makes a version the storage version.
pub(crate) async fn store_as(world: &World, version: &str) {
    let mut crd = world.client.get(CRD).await;
    crd["spec"]["versions"] = definition(version)["spec"]["versions"].clone();
    let (code, answer) = world.client.call("PUT", CRD, crd).await;
    assert_eq!(code, 200, "{answer}");
}

async fn stored_versions(world: &World) -> Value {
    world.client.get(CRD).await["status"]["storedVersions"].clone()
}

#[tokio::test]
async fn objects_of_several_stored_versions_are_one_list() {
    let world = World::new().await;
    world.fill(2).await;
    store_as(&world, "v1beta1").await;
    assert_eq!(stored_versions(&world).await, json!(["v1", "v1beta1"]));
    world.client.post(&path("v1alpha1"), host("v1alpha1", "later")).await;
    world.hook.calls();
    for version in ["v1", "v1beta1", "v1alpha1"] {
        let list = world.client.get(&path(version)).await;
        let items = list["items"].as_array().unwrap();
        let expected = &host(version, "")["spec"];
        assert!(items.len() == 3 && items.iter().all(|item| item["spec"] == *expected), "{list}");
    }
    let calls = world.hook.calls();
    assert!(calls <= 3, "{calls}");
}

#[tokio::test]
async fn a_write_that_changes_nothing_moves_an_object_to_the_storage_version() {
    let world = World::new().await;
    world.fill(1).await;
    let one = format!("{}/h0000", path("v1"));
    let before = world.client.get(&one).await;
    // Not while it is stored in the storage version.
    let (_, same) = world.client.call("PUT", &one, before.clone()).await;
    assert_eq!(same, before);
    store_as(&world, "v1beta1").await;
    let (code, moved) = world.client.call("PUT", &one, before.clone()).await;
    assert_eq!((code, &moved["spec"]), (200, &before["spec"]));
    assert_ne!(moved["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    assert_eq!(moved["metadata"]["generation"], before["metadata"]["generation"]);
    // Only now it is readable in the storage version without the converter.
    world.hook.calls();
    world.hook.set(Mode::Fail("down"));
    assert_eq!(
        world.client.get(&format!("{}/h0000", path("v1beta1"))).await["spec"],
        json!({"hostPort": "a.b:80"})
    );
    assert_eq!(world.hook.calls(), 0);
    world.hook.set(Mode::Convert);
    let (_, again) = world.client.call("PUT", &one, moved.clone()).await;
    assert_eq!(again["metadata"]["resourceVersion"], moved["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn a_version_that_may_be_stored_cannot_be_dropped() {
    let world = World::new().await;
    world.fill(1).await;
    store_as(&world, "v1beta1").await;
    let mut crd = world.client.get(CRD).await;
    let versions = crd["spec"]["versions"].as_array_mut().unwrap();
    versions.retain(|version| version["name"] != "v1");
    let (code, answer) = world.client.call("PUT", CRD, crd.clone()).await;
    let message = answer["message"].as_str().unwrap();
    assert!(code == 422 && message.contains("status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"), "{message}");
    let mut status = world.client.get(CRD).await;
    // Once it is said that none are left, it can be dropped; an object that is left is then refused, not guessed at.
    status["status"]["storedVersions"] = json!(["v1beta1"]);
    assert_eq!(world.client.call("PUT", &format!("{CRD}/status"), status).await.0, 200);
    crd["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let now = world.client.get(CRD).await;
    crd["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
    crd["status"] = now["status"].clone();
    let (code, answer) = world.client.call("PUT", CRD, crd).await;
    assert_eq!(code, 200, "{answer}");
    let (code, answer) = world.client.call("GET", &path("v1beta1"), Value::Null).await;
    let message = "request to convert CR from an invalid group/version: example.com/v1";
    assert_eq!((code, answer["message"].as_str().unwrap()), (500, message));
    // It can be deleted.
    assert_eq!(world.client.call("DELETE", &format!("{}/h0000", path("v1beta1")), Value::Null).await.0, 200);
}

#[tokio::test]
async fn conversions_are_forgotten_with_the_schema_they_were_pruned_by() {
    let world = World::new().await;
    world.fill(1).await;
    let one = format!("{}/h0000", path("v1beta1"));
    world.client.get(&one).await;
    let mut crd = world.client.get(CRD).await;
    crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] =
        json!({"other": {"type": "string"}});
    crd["spec"]["versions"][1]["selectableFields"] = Value::Null;
    assert_eq!(world.client.call("PUT", CRD, crd).await.0, 200);
    assert_eq!(world.client.get(&one).await["spec"], json!({}));
}

#[tokio::test]
async fn another_server_over_the_same_store_converts_the_same_objects() {
    let first = World::new().await;
    first.fill(3).await;
    let listed = first.client.get(&path("v1beta1")).await;
    let second = World::over(&Env::system(), first.store.clone()).await;
    assert_eq!(second.client.get(&path("v1beta1")).await["items"], listed["items"]);
    assert_eq!(second.hook.calls(), 1);
    let created = second.client.post(&path("v1beta1"), host("v1beta1", "new")).await;
    assert_eq!(first.client.get(&format!("{}/new", path("v1beta1"))).await, created);
}
