//! Create, update, delete, and subresources.

use k1s_runtime::client::{
    CreateOptions, DeleteAllOfOptions, DeleteOptions, Deleted, FieldValidation, ListOptions, Patch,
    PatchOptions, Preconditions, PropagationPolicy, UpdateOptions,
};
use k1s_runtime::{Kind, ObjectKey};
use k8s_openapi::api::{
    apps::v1::Deployment,
    authentication::v1::TokenRequest,
    autoscaling::v1::Scale,
    core::v1::{ConfigMap, Pod, ServiceAccount},
    policy::v1::Eviction,
};
use kube::{
    api::{ApiResource, DynamicObject},
    core::Status,
};
use serde_json::json;

use crate::{WidgetStatus, client, client_with_widgets, config_map, deployment, from, key, pod, widget};

#[tokio::test]
async fn the_servers_response_is_returned() {
    let client = client().await;
    let created = client.create(&config_map("a")).await.unwrap();
    assert!(created.metadata.uid.is_some() && created.metadata.resource_version.is_some());
    let mut changed = created.clone();
    changed.data.as_mut().unwrap().insert("b".into(), "2".into());
    let updated = client.update(&changed).await.unwrap();
    assert_eq!(updated.data, changed.data);
    assert_ne!(updated.metadata.resource_version, created.metadata.resource_version);
    assert!(client.update(&changed).await.unwrap_err().is_conflict());
}

#[tokio::test]
async fn the_server_can_generate_the_name() {
    let client = client().await;
    let mut nameless = config_map("x");
    nameless.metadata.name = None;
    nameless.metadata.generate_name = Some("made-".into());
    let created = client.create(&nameless).await.unwrap();
    assert!(created.metadata.name.unwrap().starts_with("made-"));
}

#[tokio::test]
async fn options_reach_the_server() {
    let client = client().await;
    let dry = CreateOptions { dry_run: true, ..CreateOptions::default() };
    client.create_with(&config_map("a"), dry).await.unwrap();
    assert_eq!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap(), None);

    let unknown: DynamicObject = from(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "typo": 1,
    }));
    let kind = client.kind(Kind::dynamic(ApiResource::erase::<ConfigMap>(&())));
    let strict =
        CreateOptions { field_validation: Some(FieldValidation::Strict), ..CreateOptions::default() };
    let error = kind.create_with(&unknown, strict).await.unwrap_err();
    assert!(error.to_string().contains(r#"unknown field "typo""#), "{error}");
    let ignore =
        CreateOptions { field_validation: Some(FieldValidation::Ignore), ..CreateOptions::default() };
    kind.create_with(&unknown, ignore).await.unwrap();

    let mut read = client.live().get::<ConfigMap>(&key("a")).await.unwrap();
    read.data = Some([("x".to_owned(), "y".to_owned())].into());
    let dry = UpdateOptions { dry_run: true, ..UpdateOptions::default() };
    assert_eq!(client.update_with(&read, dry).await.unwrap().data, read.data);
    assert_eq!(client.live().get::<ConfigMap>(&key("a")).await.unwrap().data, None);
}

#[tokio::test]
async fn a_dynamic_object_without_a_kind_gets_the_clients() {
    let client = client().await;
    let object: DynamicObject = from(json!({"metadata": {"name": "a", "namespace": "default"}}));
    assert!(object.types.is_none());
    let kind = client.kind(Kind::dynamic(ApiResource::erase::<ConfigMap>(&())));
    kind.create(&object).await.unwrap();
    client.get::<ConfigMap>(&key("a")).await.unwrap();
}

#[tokio::test]
async fn deleting_reports_whether_the_object_is_gone() {
    let client = client().await;
    let created = client.create(&config_map("a")).await.unwrap();
    let deleted = client.delete(&created).await.unwrap();
    assert_eq!(deleted, Deleted::Gone { uid: created.metadata.uid });
    assert!(client.delete::<ConfigMap>(&key("a")).await.unwrap_err().is_not_found());

    let mut held = config_map("b");
    held.metadata.finalizers = Some(vec!["k1s.dev/hold".into()]);
    client.create(&held).await.unwrap();
    let Deleted::Deleting(left) = client.delete::<ConfigMap>(&key("b")).await.unwrap() else {
        panic!("it should wait for its finalizer")
    };
    assert!(left.metadata.deletion_timestamp.is_some());
    let mut freed = *left;
    freed.metadata.finalizers = None;
    client.update(&freed).await.unwrap();
    assert_eq!(client.get_opt::<ConfigMap>(&key("b")).await.unwrap(), None);
}

#[tokio::test]
async fn an_object_that_was_read_can_be_deleted() {
    let client = client().await;
    client.create(&config_map("a")).await.unwrap();
    let read = client.get::<ConfigMap>(&key("a")).await.unwrap();
    assert!(client.delete(&read).await.unwrap().is_gone());
}

#[tokio::test]
async fn preconditions_protect_a_recreated_object() {
    let client = client().await;
    let old = client.create(&config_map("a")).await.unwrap();
    client.delete(&old).await.unwrap();
    let new = client.create(&config_map("a")).await.unwrap();
    let error = client.delete_with(&old, DeleteOptions::exactly(&old)).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    let other = Preconditions { uid: None, resource_version: Some("1".into()) };
    let options = DeleteOptions { preconditions: Some(other), ..DeleteOptions::default() };
    assert!(client.delete_with(&new, options).await.unwrap_err().is_conflict());
    let options = DeleteOptions { dry_run: true, ..DeleteOptions::exactly(&new) };
    client.delete_with(&new, options).await.unwrap();
    client.get::<ConfigMap>(&key("a")).await.unwrap();
    assert!(client.delete_with(&new, DeleteOptions::exactly(&new)).await.unwrap().is_gone());
}

#[tokio::test]
async fn propagation_and_grace_reach_the_server() {
    let client = client().await;
    let mut scheduled = pod("p");
    scheduled.spec.as_mut().unwrap().node_name = Some("node".into());
    client.create(&scheduled).await.unwrap();
    let options = DeleteOptions { grace_period: Some(7), ..DeleteOptions::default() };
    let Deleted::Deleting(left) = client.delete_with::<Pod>(&key("p"), options).await.unwrap() else {
        panic!("it has seven seconds")
    };
    assert_eq!(left.metadata.deletion_grace_period_seconds, Some(7));
    let options = DeleteOptions { grace_period: Some(0), ..DeleteOptions::default() };
    assert!(client.delete_with::<Pod>(&key("p"), options).await.unwrap().is_gone());
    assert_eq!(client.get_opt::<Pod>(&key("p")).await.unwrap(), None);

    client.create(&deployment("d")).await.unwrap();
    let options = DeleteOptions::default().propagation(PropagationPolicy::Foreground);
    let Deleted::Deleting(left) = client.delete_with::<Deployment>(&key("d"), options).await.unwrap() else {
        panic!("it waits for its dependents")
    };
    assert_eq!(left.metadata.finalizers.unwrap(), ["foregroundDeletion"]);
}

#[tokio::test]
async fn objects_are_deleted_by_selector() {
    let client = client().await;
    for name in ["a", "b", "c"] {
        client.create(&config_map(name)).await.unwrap();
    }
    let some = ListOptions::in_namespace("default").label_selector("app in (a, b)").unwrap();
    let dry = DeleteOptions { dry_run: true, ..DeleteOptions::default() };
    let options = DeleteAllOfOptions { list: some.clone(), delete: dry };
    client.delete_all_of::<ConfigMap>(options).await.unwrap();
    client.get::<ConfigMap>(&key("a")).await.unwrap();
    client.delete_all_of::<ConfigMap>(some).await.unwrap();
    assert_eq!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap(), None);
    assert_eq!(client.get_opt::<ConfigMap>(&key("b")).await.unwrap(), None);
    client.get::<ConfigMap>(&key("c")).await.unwrap();
    let error = client.delete_all_of::<ConfigMap>(ListOptions::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "delete all of configmaps: the kind is namespaced: a namespace is needed");
}

#[tokio::test]
async fn the_status_is_written_separately() {
    let client = client_with_widgets().await;
    let mut widget = client.create(&widget("w")).await.unwrap();
    let generation = widget.metadata.generation;
    widget.status = Some(WidgetStatus { replicas: 3 });
    widget.spec.text = "not written".into();
    let stored = client.status().update(&widget).await.unwrap();
    assert_eq!(stored.status, Some(WidgetStatus { replicas: 3 }));
    assert_eq!((stored.spec.text.as_str(), stored.metadata.generation), ("", generation));

    let mut changed = stored.clone();
    changed.status = Some(WidgetStatus { replicas: 4 });
    let stored = client.status().patch(&changed, Patch::merge_from(&stored)).await.unwrap();
    assert_eq!(stored.status, Some(WidgetStatus { replicas: 4 }));
    let patch = Patch::merge(&json!({"status": {"replicas": 5}}));
    let dry = PatchOptions { dry_run: true, ..PatchOptions::default() };
    let status = client.status::<crate::Widget>();
    assert_eq!(status.patch_with(&key("w"), patch, dry).await.unwrap().status.unwrap().replicas, 5);
    let read: crate::Widget = status.get(&key("w")).await.unwrap();
    assert_eq!(read.status, Some(WidgetStatus { replicas: 4 }));
    // A status sent to the main resource is ignored.
    changed.metadata.resource_version = read.metadata.resource_version;
    changed.status = Some(WidgetStatus { replicas: 9 });
    assert_eq!(client.update(&changed).await.unwrap().status, Some(WidgetStatus { replicas: 4 }));
}

#[tokio::test]
async fn a_scale_has_its_own_type() {
    let client = client_with_widgets().await;
    client.create(&widget("w")).await.unwrap();
    let scale = client.sub_resource::<crate::Widget>("scale");
    let mut read: Scale = scale.get(&key("w")).await.unwrap();
    assert_eq!(read.spec.as_ref().unwrap().replicas, Some(1));
    read.spec.as_mut().unwrap().replicas = Some(2);
    let written = scale.update_as(&key("w"), &read).await.unwrap();
    assert_eq!(written.spec.unwrap().replicas, Some(2));
    let patch = Patch::merge(&json!({"spec": {"replicas": 3}}));
    let patched: Scale = scale.patch_as(&key("w"), patch, PatchOptions::default()).await.unwrap();
    assert_eq!(patched.spec.unwrap().replicas, Some(3));
    assert_eq!(client.get::<crate::Widget>(&key("w")).await.unwrap().spec.replicas, 3);
    let error = scale.get::<Scale>(&key("no")).await.unwrap_err();
    assert!(error.to_string().starts_with("get widgets.test.k1s.dev/scale default/no: "), "{error}");
}

#[tokio::test]
async fn subresources_can_be_created() {
    let client = client().await;
    client.create(&pod("p")).await.unwrap();
    let eviction: Eviction = from(json!({"metadata": {"name": "p", "namespace": "default"}}));
    let answer: Status = client.sub_resource::<Pod>("eviction").create(&key("p"), &eviction).await.unwrap();
    assert!(answer.is_success());
    assert_eq!(client.get_opt::<Pod>(&key("p")).await.unwrap(), None);

    let account: ServiceAccount = from(json!({"metadata": {"name": "robot", "namespace": "default"}}));
    client.create(&account).await.unwrap();
    let request: TokenRequest = from(json!({"spec": {"audiences": []}}));
    let tokens = client.sub_resource::<ServiceAccount>("token");
    let token: TokenRequest = tokens.create(&ObjectKey::of(&account), &request).await.unwrap();
    assert!(!token.status.unwrap().token.unwrap().is_empty());
}
