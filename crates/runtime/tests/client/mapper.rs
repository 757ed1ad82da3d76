//! The REST mapper.

use std::time::Duration;

use k1s_runtime::client::Error;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::{
    CustomResourceExt as _,
    api::{DynamicObject, GroupVersionKind},
};
use serde_json::json;

use crate::{Widget, client, client_with, client_with_widgets, from, key};

#[tokio::test]
async fn kinds_are_found_with_their_plural_and_scope() {
    let client = client().await;
    let mapper = client.rest_mapper();
    let found = mapper.mapping(&GroupVersionKind::gvk("apps", "v1", "Deployment")).await.unwrap();
    assert_eq!(found.resource.plural, "deployments");
    assert!(found.is_namespaced() && found.has_verb("deletecollection") && !found.has_verb("fly"));
    assert!(found.subresources.contains(&"scale".to_owned()));
    assert!(!mapper.is_namespaced(&GroupVersionKind::gvk("", "v1", "Node")).await.unwrap());
    assert_eq!(mapper.preferred("apps", "StatefulSet").await.unwrap().resource.api_version, "apps/v1");
    assert!(mapper.mappings().await.unwrap().len() > 40);
    assert!(client.is_namespaced::<ConfigMap>().await.unwrap());
    assert!(!client.is_namespaced::<Node>().await.unwrap());
}

#[tokio::test]
async fn a_kind_installed_later_is_found() {
    let (client, clock) = client_with(|_| {}).await;
    let gvk = GroupVersionKind::gvk("test.k1s.dev", "v1", "Widget");
    let mapper = client.rest_mapper();
    let error = mapper.mapping(&gvk).await.unwrap_err();
    assert!(error.is_no_match());
    assert_eq!(error.to_string(), r#"no matches for kind "Widget" in version "test.k1s.dev/v1""#);
    let error = client.get::<Widget>(&key("w")).await.unwrap_err();
    assert!(error.is_no_match() && error.is_not_found(), "{error}");
    client.create(&Widget::crd()).await.unwrap();
    clock.settle().await;
    let error = client.get::<Widget>(&key("w")).await.unwrap_err();
    assert!(!error.is_no_match() && error.is_not_found(), "{error}");
    assert!(mapper.mapping(&gvk).await.unwrap_err().is_no_match(), "misses are cached for a while");
    clock.advance_and_settle(Duration::from_secs(1)).await;
    assert_eq!(mapper.mapping(&gvk).await.unwrap().resource.plural, "widgets");
    assert!(mapper.preferred("", "Gizmo").await.unwrap_err().is_no_match());
}

#[tokio::test]
async fn dynamic_objects_are_written_as_the_kind_they_name() {
    let client = client_with_widgets().await;
    let object: DynamicObject = from(json!({
        "apiVersion": "test.k1s.dev/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"},
        "spec": {"replicas": 2},
    }));
    client.dynamic(&object).await.unwrap().create(&object).await.unwrap();
    assert_eq!(client.get::<Widget>(&key("w")).await.unwrap().spec.replicas, 2);
    let nothing: DynamicObject = from(json!({"metadata": {}}));
    assert!(matches!(client.dynamic(&nothing).await.unwrap_err(), Error::NoKindMatch { .. }));
}
