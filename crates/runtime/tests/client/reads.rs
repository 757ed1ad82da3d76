//! Reads: single objects, lists, pages, metadata, dynamic kinds.

use std::sync::Arc;

use k1s_runtime::{
    Kind, ObjectKey,
    client::{ListOptions, VersionMatch},
    metadata,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    api::{ApiResource, DynamicObject},
    core::PartialObjectMeta,
};

use crate::{client, client_with_widgets, config_map, key, widget};

#[tokio::test]
async fn an_object_is_read_by_its_key() {
    let client = client().await;
    let stored = client.create(&config_map("a")).await.unwrap();
    assert_eq!(client.get::<ConfigMap>(&key("a")).await.unwrap(), Arc::new(stored.clone()));
    assert_eq!(client.live().get::<ConfigMap>(&key("a")).await.unwrap(), stored);
    assert_eq!(client.api_reader().get_opt::<ConfigMap>(&key("b")).await.unwrap(), None);
    assert_eq!(client.get_opt::<ConfigMap>(&key("b")).await.unwrap(), None);
    assert!(client.get::<ConfigMap>(&key("b")).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn cluster_scoped_objects_need_no_namespace() {
    let client = client().await;
    let namespace = client.get::<Namespace>(&ObjectKey::cluster("default")).await.unwrap();
    assert_eq!(namespace.metadata.name.as_deref(), Some("default"));
    // As in Go, a superfluous namespace is ignored.
    client.get::<Namespace>(&ObjectKey::namespaced("x", "default")).await.unwrap();
}

#[tokio::test]
async fn lists_are_filtered_by_namespace_and_selectors() {
    let client = client().await;
    for name in ["a", "b", "c"] {
        client.create(&config_map(name)).await.unwrap();
    }
    let names = async |options: ListOptions| {
        let mut list: Vec<String> = client
            .list::<ConfigMap>(options)
            .await
            .unwrap()
            .iter()
            .filter_map(|one| one.metadata.name.clone())
            .filter(|name| name != "kube-root-ca.crt")
            .collect();
        list.sort();
        list.join(" ")
    };
    assert_eq!(names(ListOptions::default()).await, "a b c");
    assert_eq!(names(ListOptions::in_namespace("default")).await, "a b c");
    assert_eq!(names(ListOptions::in_namespace("kube-system")).await, "");
    let options = ListOptions::default();
    assert_eq!(names(options.clone().matching_labels([("app", "b")]).unwrap()).await, "b");
    assert_eq!(names(options.clone().label_selector("app in (a, c)").unwrap()).await, "a c");
    assert_eq!(names(options.clone().matching_fields([("metadata.name", "c")]).unwrap()).await, "c");
    assert_eq!(names(options.clone().field_selector("metadata.name!=c").unwrap()).await, "a b");
    let nothing = k1s_object::selector::LabelSelector::nothing();
    assert_eq!(names(ListOptions { labels: Some(nothing), ..options }).await, "");
}

#[tokio::test]
async fn a_long_list_comes_in_pages_of_one_snapshot() {
    let client = client().await;
    for i in 0..7 {
        client.create(&config_map(&format!("c{i}"))).await.unwrap();
    }
    let options = ListOptions::in_namespace("default").label_selector("app").unwrap().limit(3);
    let mut pages = client.live().pages::<ConfigMap>(options.clone());
    let first = pages.next().await.unwrap().unwrap();
    assert_eq!(first.items.len(), 3);
    assert!(first.continue_token.is_some());
    client.create(&config_map("c9")).await.unwrap();
    let rest = pages.collect().await.unwrap();
    assert_eq!(rest.len(), 4, "objects created later are not in the list");

    let mut pages = client.live().pages::<ConfigMap>(ListOptions { limit: None, ..options });
    let all = pages.next().await.unwrap().unwrap();
    assert_eq!((all.items.len(), all.continue_token), (8, None));
    assert!(all.resource_version > first.resource_version);
    assert!(pages.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_list_can_be_of_an_older_resource_version() {
    let client = client().await;
    client.create(&config_map("a")).await.unwrap();
    let options = ListOptions::in_namespace("default").label_selector("app").unwrap();
    let before = client.live().list::<ConfigMap>(options.clone()).await.unwrap();
    client.create(&config_map("b")).await.unwrap();
    let options = ListOptions {
        resource_version: Some(before.resource_version.clone()),
        resource_version_match: Some(VersionMatch::Exact),
        limit: Some(10),
        ..options
    };
    assert_eq!(client.live().list::<ConfigMap>(options).await.unwrap().items, before.items);
}

#[tokio::test]
async fn metadata_alone_can_be_read() {
    let client = client().await;
    let stored = client.create(&config_map("a")).await.unwrap();
    let configs = client.kind(metadata::<ConfigMap>());
    let read = configs.get(&key("a")).await.unwrap();
    assert_eq!(read.metadata, stored.metadata);
    assert_eq!(read.types.as_ref().unwrap().kind, "PartialObjectMetadata");
    let options = ListOptions::in_namespace("default").label_selector("app").unwrap();
    assert_eq!(configs.list(options).await.unwrap()[0].metadata, stored.metadata);
    let typed = client.get::<PartialObjectMeta<ConfigMap>>(&key("a")).await.unwrap();
    assert_eq!(typed.types.as_ref().unwrap().kind, "PartialObjectMetadata");
    let error = configs.update(&read).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "update configmaps default/a: the metadata of an object can be patched; this needs the whole object"
    );
}

#[tokio::test]
async fn dynamic_kinds_are_read_with_their_type_meta() {
    let client = client_with_widgets().await;
    client.create(&widget("w")).await.unwrap();
    client.create(&config_map("a")).await.unwrap();
    for (resource, name) in
        [(ApiResource::erase::<crate::Widget>(&()), "w"), (ApiResource::erase::<ConfigMap>(&()), "a")]
    {
        let kind = client.kind(Kind::<DynamicObject>::dynamic(resource.clone()));
        let expected = (resource.api_version.clone(), resource.kind.clone());
        let read = kind.get(&key(name)).await.unwrap();
        let types = read.types.clone().unwrap();
        assert_eq!((types.api_version, types.kind), expected);
        // Items of built-in lists come without their kind.
        let list = kind.list(ListOptions::in_namespace("default")).await.unwrap();
        let types = list[0].types.clone().unwrap();
        assert_eq!((types.api_version, types.kind), expected);
    }
}
