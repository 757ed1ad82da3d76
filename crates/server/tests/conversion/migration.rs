//! `StorageVersionMigration`: the controller rewrites what is stored.

use serde_json::{Value, json};

use crate::{
    common::eventually,
    storage::store_as,
    world::{CRD, Mode, World, host, path},
};

const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";

fn migration(name: &str, plural: &str, group: &str) -> Value {
    json!({"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration", "metadata": {"name": name},
        "spec": {"resource": {"group": group, "resource": plural}}})
}

fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|one| one["type"] == kind).cloned().unwrap_or_default()
}

/// Waits until the migration has ended and its definition says so.
async fn ended(world: &World, name: &str) -> Value {
    let path = format!("{MIGRATIONS}/{name}");
    eventually("the migration ends", async || {
        condition(&world.client.get(&path).await, "Running")["status"] == "False"
    })
    .await;
    world.client.get(&path).await
}

#[tokio::test]
async fn a_migration_rewrites_every_object_and_drops_the_old_version() {
    let world = World::new().await;
    world.fill(30).await;
    store_as(&world, "v1beta1").await;
    let before = world.client.get(&path("v1")).await;
    world.client.post(MIGRATIONS, migration("hosts", "hosts", "example.com")).await;
    let done = ended(&world, "hosts").await;
    assert_eq!(condition(&done, "Succeeded")["status"], "True", "{done}");
    assert!(done["status"]["resourceVersion"].is_string());
    let crd = world.client.get(CRD).await;
    assert_eq!(crd["status"]["storedVersions"], json!(["v1beta1"]));
    let migrating = condition(&crd, "StorageMigrating");
    assert_eq!(
        (&migrating["status"], migrating["message"].as_str().unwrap()),
        (&json!("False"), "The migration has succeeded and the stored versions have been updated")
    );
    // All are stored in the new version: they are read without the converter, and are otherwise as before.
    let after = world.client.get(&path("v1")).await;
    world.hook.calls();
    world.hook.set(Mode::Fail("down"));
    let stored = world.client.get(&path("v1beta1")).await;
    assert_eq!((stored["items"].as_array().unwrap().len(), world.hook.calls()), (30, 0));
    for (before, after) in before["items"].as_array().unwrap().iter().zip(after["items"].as_array().unwrap())
    {
        assert_eq!(
            (&before["spec"], &before["metadata"]["generation"]),
            (&after["spec"], &after["metadata"]["generation"])
        );
        assert_ne!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"]);
    }
    // The old version can be dropped now.
    let mut crd = crd;
    crd["spec"]["versions"].as_array_mut().unwrap().retain(|version| version["name"] != "v1");
    let (code, answer) = world.client.call("PUT", CRD, crd).await;
    assert_eq!(code, 200, "{answer}");
}

#[tokio::test]
async fn a_migration_that_cannot_convert_fails_and_forgets_nothing() {
    let world = World::new().await;
    world.fill(3).await;
    store_as(&world, "v1beta1").await;
    world.hook.set(Mode::Fail("down"));
    world.client.post(MIGRATIONS, migration("hosts", "hosts", "example.com")).await;
    let done = ended(&world, "hosts").await;
    let failed = condition(&done, "Failed");
    assert_eq!(failed["status"], "True", "{done}");
    assert!(failed["message"].as_str().unwrap().contains("failed: down"), "{failed}");
    let crd = world.client.get(CRD).await;
    assert_eq!(crd["status"]["storedVersions"], json!(["v1", "v1beta1"]));
    assert_eq!(condition(&crd, "StorageMigrating")["reason"], "MigrationFailed");
    // Another one does it.
    world.hook.set(Mode::Convert);
    world.client.post(MIGRATIONS, migration("again", "hosts", "example.com")).await;
    let done = ended(&world, "again").await;
    assert_eq!(condition(&done, "Succeeded")["status"], "True", "{done}");
    assert_eq!(world.client.get(CRD).await["status"]["storedVersions"], json!(["v1beta1"]));
}

#[tokio::test]
async fn objects_that_change_meanwhile_are_not_waited_for() {
    let world = World::new().await;
    world.fill(200).await;
    store_as(&world, "v1beta1").await;
    world.client.post(MIGRATIONS, migration("hosts", "hosts", "example.com")).await;
    for number in 0..200 {
        let one = format!("{}/h{number:04}", path("v1"));
        match number % 3 {
            0 => assert_eq!(world.client.call("PATCH", &one, json!({"spec": {"port": number}})).await.0, 200),
            1 => assert_eq!(world.client.call("DELETE", &one, Value::Null).await.0, 200),
            _ => {}
        }
    }
    world.client.post(&path("v1alpha1"), host("v1alpha1", "new")).await;
    let done = ended(&world, "hosts").await;
    assert_eq!(condition(&done, "Succeeded")["status"], "True", "{done}");
    world.hook.set(Mode::Fail("down"));
    assert_eq!(world.client.get(&path("v1beta1")).await["items"].as_array().unwrap().len(), 134);
}

#[tokio::test]
async fn a_built_in_kind_is_migrated_too() {
    let world = World::new().await;
    let map = crate::common::config_map("a");
    world.client.post("/api/v1/namespaces/default/configmaps", map).await;
    world.client.post(MIGRATIONS, migration("maps", "configmaps", "")).await;
    let done = ended(&world, "maps").await;
    assert_eq!(condition(&done, "Succeeded")["status"], "True", "{done}");
}
