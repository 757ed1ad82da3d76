//! Server-side apply: ownership, conflicts, extraction, several objects.

use k1s_runtime::{
    client::{ApplyConfiguration, ApplyOptions, ExtractError, Patch},
    util::{OperationResult, create_or_apply},
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    autoscaling::v1::Scale,
    core::v1::{ConfigMap, Namespace},
};
use kube::core::DynamicObject;
use serde_json::{Map, Value, json};

use crate::{Widget, WidgetStatus, client, client_with_widgets, config_map, deployment, from, key, widget};

/// The fields that a manager has applied: its `fieldsV1`.
fn owned(object: &impl kube::Resource, manager: &str) -> Option<Value> {
    let entries = object.meta().managed_fields.as_deref().unwrap_or_default();
    let entry = entries.iter().find(|entry| {
        entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some("Apply")
    })?;
    entry.fields_v1.as_ref().map(|fields| fields.0.clone())
}

fn configuration(data: Value) -> ApplyConfiguration<ConfigMap> {
    ApplyConfiguration::new(&key("a")).with(Map::from_iter([("data".to_owned(), data)]))
}

#[tokio::test]
async fn what_is_not_applied_any_more_is_removed_and_what_others_own_stays() {
    let client = client().await.with_field_owner("me");
    let created = client.apply(&config_map("a")).await.unwrap();
    assert_eq!(
        owned(&created, "me"),
        Some(json!({"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:app": {}}}}))
    );
    client.apply_with(&configuration(json!({"b": "2"})), "other").await.unwrap();
    let stored = client.apply(&configuration(json!({"c": "3"}))).await.unwrap();
    assert_eq!(stored.data, from(json!({"b": "2", "c": "3"})));
    assert_eq!(stored.metadata.labels, None);
    assert_eq!(owned(&stored, "other"), Some(json!({"f:data": {"f:b": {}}})));
}

#[tokio::test]
async fn an_object_that_was_applied_is_what_its_manager_wants() {
    let client = client().await.with_field_owner("me");
    let first = client.apply(&deployment("a")).await.unwrap();
    let second = client.apply(&deployment("a")).await.unwrap();
    assert_eq!(first.metadata.resource_version, second.metadata.resource_version, "nothing has changed");
    assert_eq!(first.spec.replicas, Some(1), "a default");
    let fields = owned(&second, "me").unwrap();
    assert_eq!(fields.pointer("/f:spec/f:replicas"), None, "a default is not owned");
    let read: Deployment = client.live().get(&key("a")).await.unwrap();
    let stale = read.clone();
    client
        .apply_with(&ApplyConfiguration::<Deployment>::new(&key("a")).label("x", "y"), "other")
        .await
        .unwrap();
    let error = client.apply(&stale).await.unwrap_err();
    assert!(
        error.is_conflict() && !error.is_apply_conflict(),
        "its resource version is a precondition: {error}"
    );
}

#[tokio::test]
async fn a_conflict_names_the_other_managers_and_can_be_forced() {
    let client = client().await.with_field_owner("me");
    client.apply_with(&configuration(json!({"x": "1", "y": "1"})), "first").await.unwrap();
    client.patch::<ConfigMap>(&key("a"), Patch::merge(&json!({"data": {"y": "2"}}))).await.unwrap();
    let mine = configuration(json!({"x": "3", "y": "3", "z": "3"}));
    let error = client.apply_with(&mine, "second").await.unwrap_err();
    let conflicts = error.apply_conflicts().unwrap();
    let mut found: Vec<(&str, &str, Option<&str>)> = conflicts
        .conflicts
        .iter()
        .map(|one| (&*one.field, &*one.manager, one.api_version.as_deref()))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [(".data.x", "first", None), (".data.y", "me", Some("v1"))]);
    let forced = client.apply_with(&mine, ApplyOptions::owner("second").force()).await.unwrap();
    assert_eq!(forced.data, from(json!({"x": "3", "y": "3", "z": "3"})));
    assert_eq!(owned(&forced, "first"), None);
    // The same values are shared.
    client.apply(&configuration(json!({"x": "3"}))).await.unwrap();
}

#[tokio::test]
async fn writes_of_every_kind_are_of_the_field_owner() {
    let client = client().await.with_field_owner("me");
    let created = client.create(&config_map("a")).await.unwrap();
    let managers = |object: &ConfigMap| -> Vec<(String, String)> {
        let entries = object.metadata.managed_fields.iter().flatten();
        entries.map(|entry| (entry.manager.clone().unwrap(), entry.operation.clone().unwrap())).collect()
    };
    let own = vec![("me".to_owned(), "Update".to_owned())];
    assert_eq!(managers(&created), own);
    let mut changed = created.clone();
    changed.data.as_mut().unwrap().insert("b".into(), "2".into());
    assert_eq!(managers(&client.update(&changed).await.unwrap()), own);
    let patch = Patch::merge(&json!({"data": {"c": "3"}}));
    assert_eq!(managers(&client.patch::<ConfigMap>(&key("a"), patch).await.unwrap()), own);
}

#[tokio::test]
async fn a_status_has_owners_of_its_own() {
    let client = client_with_widgets().await.with_field_owner("me");
    client.apply(&widget("w")).await.unwrap();
    let mut reported = widget("w");
    reported.spec.text = "not applied".into();
    reported.status = Some(WidgetStatus { replicas: 2 });
    let stored: Widget = client.status().apply(&reported).await.unwrap();
    assert_eq!((stored.spec.text.as_str(), stored.status.as_ref()), ("", reported.status.as_ref()));
    let status = ApplyConfiguration::extract_subresource(&stored, "me", "status").unwrap();
    assert_eq!(status.get("/status"), Some(&json!({"replicas": 2})));
    assert_eq!(status.get("/spec"), None);
    let spec = ApplyConfiguration::extract(&stored, "me").unwrap();
    assert_eq!((spec.get("/spec/replicas"), spec.get("/status")), (Some(&json!(1)), None));
    let missing: Widget = widget("missing");
    assert!(client.status().apply(&missing).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_scale_is_applied_as_its_own_type() {
    let client = client().await.with_field_owner("me");
    client.apply(&deployment("a")).await.unwrap();
    let scale = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", "namespace": "default"},
        "spec": {"replicas": 4},
    });
    let scales = client.sub_resource::<Deployment>("scale");
    // A default that nobody has applied conflicts here, as in Kubernetes.
    let scaler = ApplyOptions::owner("scaler").force();
    let scaled: Scale = scales.apply_as(&key("a"), &scale, scaler).await.unwrap();
    assert_eq!(scaled.spec.unwrap().replicas, Some(4));
    let mine = ApplyConfiguration::<Deployment>::new(&key("a")).with(json!({"spec": {"replicas": 1}}));
    let conflicts = client.apply_with(&mine, "other").await.unwrap_err().apply_conflicts().unwrap();
    assert_eq!(
        conflicts.to_string(),
        r#"1 field of other managers: .spec.replicas of "scaler" through scale"#
    );
}

#[tokio::test]
async fn what_was_extracted_is_changed_and_applied_again() {
    let client = client().await.with_field_owner("me");
    let mut object = deployment("a");
    object.metadata.finalizers = Some(vec!["example.com/mine".into()]);
    let first = client.apply(&object).await.unwrap();
    let sidecar = json!({
        "metadata": {"finalizers": ["example.com/theirs"]},
        "spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "s:1"}]}}},
    });
    let theirs = ApplyConfiguration::<Deployment>::new(&key("a")).with(sidecar);
    let second = client.apply_with(&theirs, "other").await.unwrap();
    let mine = ApplyConfiguration::extract(&second, "me").unwrap();
    assert_eq!(mine, ApplyConfiguration::extract(&first, "me").unwrap());
    assert_eq!(mine, ApplyConfiguration::of(&object));
    assert_eq!(ApplyConfiguration::extract(&second, "other").unwrap(), theirs);

    let same = client.apply(&mine).await.unwrap();
    assert_eq!(same.metadata.resource_version, second.metadata.resource_version, "nothing has changed");
    let mut changed = mine.with(json!({"spec": {"replicas": 3}}));
    changed.remove("/metadata/finalizers");
    let stored = client.apply(&changed).await.unwrap();
    assert_eq!(stored.spec.replicas, Some(3));
    assert_eq!(stored.metadata.finalizers, Some(vec!["example.com/theirs".to_owned()]));
    let containers = stored.spec.template.spec.as_ref().unwrap().containers.len();
    assert_eq!(containers, 2);
    assert!(ApplyConfiguration::extract(&stored, "nobody").unwrap().is_empty());
    let mut lean = stored;
    lean.metadata.managed_fields = None;
    let error = ApplyConfiguration::extract(&lean, "me").unwrap_err();
    assert!(matches!(error, ExtractError::NoManagedFields { .. }), "{error}");
}

#[tokio::test]
async fn objects_of_several_kinds_are_applied_in_order() {
    let client = client().await.with_field_owner("me");
    let namespace: Namespace = from(json!({"metadata": {"name": "team"}}));
    let mut settings = config_map("a");
    settings.metadata.namespace = Some("team".into());
    let all = [
        ApplyConfiguration::of(&namespace).erase(),
        ApplyConfiguration::from(json!({"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "x"}})),
        ApplyConfiguration::from(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "lost"}}),
        ),
        ApplyConfiguration::of(&settings).erase(),
    ];
    let reports = client.apply_all(all, ApplyOptions::forced()).await;
    let told: Vec<String> = reports.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "namespace team applied",
            r#"nothing x: no matches for kind "Nothing" in version "v1""#,
            "configmap lost: apply configmaps lost: the kind is namespaced: a namespace is needed",
            "configmap team/a applied",
        ]
    );
    let stored: &DynamicObject = reports[3].outcome.as_ref().unwrap();
    assert_eq!(stored.data["data"], json!({"a": "1"}));
    assert_eq!(reports[0].outcome.as_ref().unwrap().metadata.name.as_deref(), Some("team"));
}

#[tokio::test]
async fn the_result_of_an_apply_is_told() {
    let client = client().await.with_field_owner("me");
    let done = async |configuration: &ApplyConfiguration<ConfigMap>, owner: &str| {
        create_or_apply(&client, configuration, owner).await.unwrap().1
    };
    let first = configuration(json!({"a": "1"}));
    assert_eq!(done(&first, "me").await, OperationResult::Created);
    assert_eq!(done(&first, "me").await, OperationResult::Unchanged);
    assert_eq!(done(&first, "other").await, OperationResult::Unchanged, "a further owner, the same content");
    assert_eq!(done(&configuration(json!({"a": "1", "b": "2"})), "me").await, OperationResult::Updated);
}
