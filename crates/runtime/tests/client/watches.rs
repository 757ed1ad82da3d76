//! Watches.

use futures_util::StreamExt as _;
use k1s_runtime::{
    client::{EventType, ListOptions, WatchEvent, WatchOptions},
    kind, metadata,
};
use k8s_openapi::api::core::v1::ConfigMap;

use crate::{client, config_map, key};

#[tokio::test]
async fn changes_after_a_list_are_seen_in_order() {
    let client = client().await;
    client.create(&config_map("before")).await.unwrap();
    let options = ListOptions::in_namespace("default").label_selector("app").unwrap();
    let list = client.live().list::<ConfigMap>(options.clone()).await.unwrap();
    assert_eq!(list.items.len(), 1);
    let options = WatchOptions::after(&options, list.resource_version);
    let mut watch = client.live().watch::<ConfigMap>(options).await.unwrap();

    let created = client.create(&config_map("a")).await.unwrap();
    let mut changed = created.clone();
    changed.data = None;
    let changed = client.update(&changed).await.unwrap();
    client.delete(&changed).await.unwrap();

    assert_eq!(watch.next().await.unwrap().unwrap(), WatchEvent::Added(created));
    assert_eq!(watch.next().await.unwrap().unwrap(), WatchEvent::Modified(changed));
    let WatchEvent::Deleted(gone) = watch.next().await.unwrap().unwrap() else { panic!("no deletion") };
    assert_eq!(gone.metadata.name.as_deref(), Some("a"));
}

#[tokio::test]
async fn a_streaming_list_ends_with_a_bookmark() {
    let client = client().await;
    client.create(&config_map("a")).await.unwrap();
    let options = WatchOptions {
        namespace: Some("default".into()),
        send_initial_events: true,
        ..WatchOptions::default()
    };
    let mut watch = client.live().kind(kind::<ConfigMap>()).watch(options).await.unwrap();
    let mut seen = Vec::new();
    let version = loop {
        match watch.next().await.unwrap().unwrap() {
            WatchEvent::Added(object) => seen.extend(object.metadata.name),
            WatchEvent::Bookmark { resource_version, initial_events_end: true } => break resource_version,
            other => panic!("{other:?}"),
        }
    };
    assert!(seen.contains(&"a".to_owned()));
    assert!(version.parse::<u64>().unwrap() > 0);
}

#[tokio::test]
async fn a_resource_version_that_is_too_old_is_gone() {
    let client = client().await;
    let options = WatchOptions { resource_version: Some("1".into()), ..WatchOptions::default() };
    // Nothing is compacted yet, so the oldest revision can still be watched.
    let mut watch = client.live().watch::<ConfigMap>(options).await.unwrap();
    assert!(watch.next().await.unwrap().is_ok());
    let options = WatchOptions { resource_version: Some("no number".into()), ..WatchOptions::default() };
    let error = client.live().watch::<ConfigMap>(options).await.unwrap_err();
    assert!(error.to_string().starts_with("watch configmaps: "), "{error}");
}

#[tokio::test]
async fn watches_of_raw_events_and_metadata_yield_the_requested_form() {
    let client = client().await;
    let list = client.live().list::<ConfigMap>(ListOptions::default()).await.unwrap();
    let options = WatchOptions::after(&ListOptions::in_namespace("default"), list.resource_version);
    let mut whole = client.live().kind(kind::<ConfigMap>()).watch_raw(&options).await.unwrap();
    let mut part = client.live().kind(metadata::<ConfigMap>()).watch(options).await.unwrap();
    let created = client.create(&config_map("a")).await.unwrap();
    let event = whole.next().await.unwrap().unwrap();
    assert_eq!(event.event, EventType::Added);
    assert_eq!(serde_json::from_slice::<ConfigMap>(&event.object).unwrap(), created);
    let WatchEvent::Added(part) = part.next().await.unwrap().unwrap() else { panic!("not added") };
    assert_eq!(part.metadata, created.metadata);
    assert!(client.get::<ConfigMap>(&key("a")).await.is_ok());
}
