//! The record of changes and its subscriptions, on an in-process server.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{collections::BTreeMap, sync::Arc};

use common::{HANG, World};
use k1s_env::{Env, Task};
use k1s_runtime::{
    ObjectKey,
    changes::{Changes, ChangesOptions, EventType, Filter, RecordedKind, Start, Step, Subscription},
    client::{Client, Patch},
    kind,
};
use k1s_store::{MemoryStore, Revision, Store};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::ObjectMeta;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

struct Recording {
    world: World,
    store: Arc<dyn Store>,
    client: Client,
    changes: Changes,
    stop: CancellationToken,
    running: Task<()>,
}

/// Config maps and secrets, with labels that leave out what the server makes itself.
fn kinds() -> [RecordedKind; 2] {
    [RecordedKind::of(&kind::<ConfigMap>()), RecordedKind::of(&kind::<Secret>())]
        .map(|kind| kind.with_labels("test").unwrap())
}

impl Recording {
    async fn start(options: ChangesOptions) -> Recording {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let recording = Recording::prepare(World::with(Env::system(), store.clone()).await, store, options);
        recording.changes.ready().await;
        recording
    }

    fn prepare(world: World, store: Arc<dyn Store>, options: ChangesOptions) -> Recording {
        let client = world.live();
        let changes = Changes::new(&client, kinds(), options);
        let (stop, recorder) = (CancellationToken::new(), changes.clone());
        let token = stop.clone();
        let running = world.env.spawn("changes", async move { recorder.run(token).await });
        Recording { world, store, client, changes, stop, running }
    }

    /// Another recorder on the same server, as after a restart.
    async fn restart(self, options: ChangesOptions) -> Recording {
        self.stop.cancel();
        self.running.await.unwrap();
        let recording = Recording::prepare(self.world, self.store, options);
        recording.changes.ready().await;
        recording
    }

    async fn next(&self, subscription: &mut Subscription) -> Option<Step> {
        self.world.env.timeout(HANG, subscription.next()).await.expect("a step")
    }

    /// The next change, shortened: `ADDED a@7`.
    async fn change(&self, subscription: &mut Subscription) -> (EventType, String, u64) {
        match self.next(subscription).await {
            Some(Step::Change(change)) => {
                let object: Value = serde_json::from_slice(&change.object).unwrap();
                assert_eq!(object["metadata"]["resourceVersion"], change.revision.to_string());
                assert!(object["kind"].is_string() && object["apiVersion"] == "v1", "{object}");
                (change.event, object["metadata"]["name"].as_str().unwrap().to_owned(), change.revision)
            }
            other => panic!("{other:?}"),
        }
    }

    async fn events(&self, subscription: &mut Subscription, count: usize) -> Vec<(EventType, String, u64)> {
        let mut events = Vec::new();
        for _ in 0..count {
            events.push(self.change(subscription).await);
        }
        events
    }

    async fn map(&self, name: &str, value: &str) -> u64 {
        let labels = BTreeMap::from([("test".to_owned(), value.to_owned())]);
        let metadata = metadata(name, labels.clone());
        let map = ConfigMap {
            metadata,
            data: Some([("value".to_owned(), value.to_owned())].into()),
            ..ConfigMap::default()
        };
        let patch = Patch::merge(&json!({"metadata": {"labels": labels}, "data": map.data}));
        let written = match self.client.create(&map).await {
            Err(error) if error.is_already_exists() => {
                self.client.patch::<ConfigMap>(&key(name), patch).await
            }
            done => done,
        };
        written.unwrap().metadata.resource_version.unwrap().parse().unwrap()
    }

    async fn secret(&self, name: &str) -> u64 {
        let metadata = metadata(name, BTreeMap::from([("test".to_owned(), "x".to_owned())]));
        let secret = self.client.create(&Secret { metadata, ..Secret::default() }).await.unwrap();
        secret.metadata.resource_version.unwrap().parse().unwrap()
    }
}

fn metadata(name: &str, labels: BTreeMap<String, String>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        namespace: Some("default".into()),
        labels: Some(labels),
        ..ObjectMeta::default()
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn event(event: EventType, name: &str, revision: u64) -> (EventType, String, u64) {
    (event, name.to_owned(), revision)
}

use EventType::{Added, Deleted, Modified};

#[tokio::test]
async fn it_begins_with_what_exists_and_continues_with_changes() {
    let recording = Recording::start(ChangesOptions::default()).await;
    let (b, a) = (recording.map("b", "1").await, recording.map("a", "1").await);
    let mut all = recording.changes.subscribe(Filter::default(), Start::Existing);
    assert_eq!(recording.events(&mut all, 2).await, [event(Added, "b", b), event(Added, "a", a)]);
    let mut new = recording.changes.subscribe(Filter::default(), Start::Now);
    let a = recording.map("a", "2").await;
    recording.client.delete::<ConfigMap>(&key("b")).await.unwrap();
    for subscription in [&mut all, &mut new] {
        assert_eq!(recording.change(subscription).await, event(Modified, "a", a));
        let (deleted, name, revision) = recording.change(subscription).await;
        assert_eq!((deleted, &*name), (Deleted, "b"));
        assert!(revision > a, "the revision of the deletion");
    }
    recording.stop.cancel();
    assert_eq!(recording.next(&mut all).await, None, "the record has ended");
}

#[tokio::test]
async fn all_kinds_are_in_the_order_of_revisions() {
    let recording = Recording::start(ChangesOptions::default()).await;
    let mut all = recording.changes.subscribe(Filter::default(), Start::Now);
    let mut expected = Vec::new();
    for number in 0..200 {
        let name = format!("n{number}");
        let revision =
            if number % 3 == 0 { recording.secret(&name).await } else { recording.map(&name, "1").await };
        expected.push(event(Added, &name, revision));
    }
    assert_eq!(recording.events(&mut all, 200).await, expected);
    // From any of them on.
    for at in [0, 57, 198] {
        let mut resumed = recording.changes.subscribe(Filter::default(), Start::After(expected[at].2));
        assert_eq!(recording.events(&mut resumed, 199 - at).await, expected[at + 1..]);
    }
}

#[tokio::test]
async fn a_new_record_continues_from_the_servers_history() {
    let recording = Recording::start(ChangesOptions::default()).await;
    let mut expected = Vec::new();
    for number in 0..100 {
        let name = format!("n{}", number % 10);
        let known = number >= 10;
        let revision = recording.map(&name, &number.to_string()).await;
        expected.push(event(if known { Modified } else { Added }, &name, revision));
        if number % 7 == 0 {
            let name = format!("s{number}");
            let revision = recording.secret(&name).await;
            expected.push(event(Added, &name, revision));
        }
    }
    let recording = recording.restart(ChangesOptions::default()).await;
    for at in [0, 30, expected.len() - 1] {
        let mut resumed = recording.changes.subscribe(Filter::default(), Start::After(expected[at].2));
        let rest = expected.len() - 1 - at;
        assert_eq!(recording.events(&mut resumed, rest).await, expected[at + 1..]);
        // And then what is new.
        let new = recording.map("new", &at.to_string()).await;
        let (_, name, revision) = recording.change(&mut resumed).await;
        assert_eq!((&*name, revision), ("new", new));
        expected.push(event(if at == 0 { Added } else { Modified }, "new", new));
    }
}

#[tokio::test]
async fn a_revision_that_the_server_has_not_is_a_resync() {
    let recording = Recording::start(ChangesOptions::default()).await;
    let a = recording.map("a", "1").await;
    let mut future = recording.changes.subscribe(Filter::default(), Start::After(a + 1000));
    assert_eq!(recording.next(&mut future).await, Some(Step::Resync));
    assert_eq!(recording.change(&mut future).await, event(Added, "a", a));
}

#[tokio::test]
async fn history_that_is_gone_is_a_resync() {
    let recording = Recording::start(ChangesOptions::default()).await;
    let first = recording.map("a", "1").await;
    let last = recording.map("a", "2").await;
    recording.store.compact(Revision::new(last)).await.unwrap();
    let recording = recording.restart(ChangesOptions::default()).await;
    let mut resumed = recording.changes.subscribe(Filter::default(), Start::After(first - 1));
    assert_eq!(recording.next(&mut resumed).await, Some(Step::Resync));
    assert_eq!(recording.change(&mut resumed).await, event(Added, "a", last));
}

#[tokio::test]
async fn a_reader_that_falls_behind_the_ring_ends_and_resumes_without_a_gap() {
    let recording = Recording::start(ChangesOptions { ring: 8, ..ChangesOptions::default() }).await;
    let mut slow = recording.changes.subscribe(Filter::default(), Start::Now);
    let mut fast = recording.changes.subscribe(Filter::default(), Start::Now);
    let first = recording.map("a", "0").await;
    assert_eq!(recording.change(&mut slow).await, event(Added, "a", first));
    assert_eq!(recording.change(&mut fast).await, event(Added, "a", first));
    let (position, evictions) = (slow.position(), recording.changes.evictions());
    let mut expected = Vec::new();
    for number in 0..20 {
        let revision = recording.map("a", &format!("v{number}")).await;
        assert_eq!(recording.change(&mut fast).await, event(Modified, "a", revision));
        expected.push(event(Modified, "a", revision));
    }
    assert!(position.is_lost(*evictions.borrow()), "its owner can see that it is lost");
    assert!(!fast.position().is_lost(*evictions.borrow()));
    assert_eq!(recording.next(&mut slow).await, None);
    let mut resumed = recording.changes.subscribe(Filter::default(), Start::After(first));
    assert_eq!(recording.events(&mut resumed, 20).await, expected);
}

#[tokio::test]
async fn filters_are_those_of_a_watch_in_the_ring_and_in_the_history() {
    let recording = Recording::start(ChangesOptions::default()).await;
    let start = recording.map("before", "x").await;
    let added = recording.map("a", "yes").await;
    recording.map("b", "yes").await;
    let left = recording.map("a", "no").await;
    let back = recording.map("a", "yes").await;
    recording.secret("a").await;
    let expected = [event(Added, "a", added), event(Deleted, "a", left), event(Added, "a", back)];
    let filter = || Filter {
        kinds: Some([0].into()),
        namespace: Some("default".into()),
        name: Some("a".into()),
        ..Filter::default().label_selector("test=yes").unwrap()
    };
    let mut ring = recording.changes.subscribe(filter(), Start::After(start));
    assert_eq!(recording.events(&mut ring, 3).await, expected);
    let recording = recording.restart(ChangesOptions::default()).await;
    let mut history = recording.changes.subscribe(filter(), Start::After(start));
    assert_eq!(recording.events(&mut history, 3).await, expected);
    let mut existing = recording.changes.subscribe(filter(), Start::Existing);
    assert_eq!(recording.change(&mut existing).await, event(Added, "a", back));
}

#[tokio::test]
async fn the_log_says_what_changed() {
    let recording = Recording::start(ChangesOptions { log: 3, ..ChangesOptions::default() }).await;
    let mut all = recording.changes.subscribe(Filter::default(), Start::Now);
    for value in ["1", "2", "3"] {
        recording.map("a", value).await;
    }
    recording.client.delete::<ConfigMap>(&key("a")).await.unwrap();
    let seen = recording.events(&mut all, 4).await;
    let recent = recording.changes.recent();
    let short: Vec<_> = recent.iter().map(|record| (record.event, record.revision)).collect();
    assert_eq!(
        short,
        [(Deleted, seen[3].2), (Modified, seen[2].2), (Modified, seen[1].2)],
        "newest first, bounded"
    );
    let mut paths = recent[1].paths.clone();
    paths.sort();
    assert_eq!(paths, ["data.value", "metadata.labels.test"]);
    assert!(recent[0].paths.is_empty() && !recent[0].uid.is_empty());
    assert_eq!(recent[0].key, key("a"));
}

#[tokio::test]
async fn watches_that_the_server_ends_are_reopened() {
    let recording = Recording::start(ChangesOptions::default()).await;
    let mut all = recording.changes.subscribe(Filter::default(), Start::Now);
    let mut expected = Vec::new();
    for number in 0..20 {
        expected.push(recording.map(&format!("n{number}"), "1").await);
        if number % 5 == 0 {
            recording.world.faults.cut();
        }
    }
    let seen: Vec<u64> = recording.events(&mut all, 20).await.into_iter().map(|(_, _, at)| at).collect();
    assert_eq!(seen, expected);
}
