//! Storage migration in a folder, over restarts.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use k1s::{
    Runtime,
    kube::{
        Api,
        api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
        core::GroupVersionKind,
    },
    migration,
    store::{Range, Store as _, disk::DiskStore},
};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);

/// Two versions with the same schema, of which one is stored.
fn definition(storage: &str) -> Value {
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": name == storage, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "notes.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "notes", "kind": "Note"}, "versions": [version("v1"), version("v2")]}})
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

async fn store_as(runtime: &Runtime, version: &str) {
    let definitions =
        resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
    let api = Api::<DynamicObject>::all_with(runtime.client(), &definitions);
    let patch = Patch::Apply(definition(version));
    api.patch("notes.example.com", &PatchParams::apply("test").force(), &patch).await.unwrap();
}

fn notes(runtime: &Runtime) -> Api<DynamicObject> {
    Api::default_namespaced_with(runtime.client(), &resource("example.com", "v1", "Note", "notes"))
}

#[tokio::test]
async fn a_folder_is_migrated_and_holds_no_old_version() {
    let folder = tempfile::tempdir().unwrap();
    let start = || Runtime::builder().disk(folder.path()).start();
    let runtime = start().await.unwrap();
    store_as(&runtime, "v1").await;
    for number in 0..20 {
        let mut note =
            DynamicObject::new(&format!("n{number}"), &resource("example.com", "v1", "Note", "notes"));
        note.data = json!({"spec": {"text": number}});
        notes(&runtime).create(&PostParams::default(), &note).await.unwrap();
    }
    store_as(&runtime, "v2").await;
    runtime.stop().await.unwrap();

    let runtime = start().await.unwrap();
    let found = migration::stored(&runtime.client()).await.unwrap();
    assert_eq!((found[0].to_string(), found[0].is_outdated()), ("notes.example.com".to_owned(), true));
    assert_eq!(found[0].versions, ["v1", "v2"]);
    let done = migration::migrate(&runtime.client(), runtime.env(), ("example.com", "notes"), PATIENCE).await;
    assert_eq!(done.unwrap(), "Migration completed");
    let found = migration::stored(&runtime.client()).await.unwrap();
    assert_eq!((found[0].is_outdated(), &*found[0].versions), (false, &["v2".to_owned()][..]));
    let left = notes(&runtime).list(&ListParams::default()).await.unwrap();
    assert!(left.items.len() == 20 && left.items[3].data["spec"]["text"].is_number());
    runtime.stop().await.unwrap();

    // What is in the store says the same: the version is in front of each object.
    let store = DiskStore::open(k1s::env::Env::system(), folder.path(), Default::default()).unwrap();
    let all = store.range(Range::prefix("")).await.unwrap();
    let stored: Vec<_> = all
        .entries
        .iter()
        .filter(|entry| String::from_utf8_lossy(&entry.key).contains("example.com/notes/"))
        .collect();
    assert_eq!(stored.len(), 20);
    assert!(stored.iter().all(|entry| entry.value[9..].starts_with(b"v2{")));
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_migration_without_controllers_is_not_waited_for_in_vain() {
    let runtime = Runtime::builder().controllers(k1s::ControllersOptions::none()).start().await.unwrap();
    store_as(&runtime, "v1").await;
    let patience = Duration::from_millis(300);
    let done = migration::migrate(&runtime.client(), runtime.env(), ("example.com", "notes"), patience).await;
    assert!(done.unwrap_err().to_string().contains("no controller has begun the migration"));
}
