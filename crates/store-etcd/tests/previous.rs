//! Previous values: watches that request them get all of them, and etcd only reads them for those.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use common::*;
use k1s_env::{Env, Task};
use k1s_store::{Change, Precondition, Previous, Revision, Store, Txn, Watch, WatchRequest};
use k1s_store_etcd::EtcdStore;

/// Number of writers, and of the keys they share.
const WRITERS: u64 = 4;
const KEYS: u64 = 16;

/// Writers that create, update and delete the same few keys until stopped.
struct Writers {
    stop: Arc<AtomicBool>,
    tasks: Vec<Task<Revision>>,
}

impl Writers {
    fn start(env: &Env, store: &EtcdStore) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let tasks = (0..WRITERS)
            .map(|writer| {
                let (env, store, stop) = (env.clone(), store.clone(), stop.clone());
                env.clone().spawn("writer", async move {
                    let mut last = Revision::FIRST;
                    for round in 0u64.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let key = format!("/k/{}", env.random_below(KEYS));
                        let other = format!("/k/{}x", env.random_below(KEYS));
                        let value = format!("{writer}-{round}");
                        let txn = match env.random_below(6) {
                            0 => Txn::new().delete(key, Precondition::Any),
                            1 => Txn::new().put(key, value.clone(), Precondition::Any).put(
                                other,
                                value,
                                Precondition::Any,
                            ),
                            _ => Txn::new().put(key, value, Precondition::Any),
                        };
                        last = store.txn(txn).await.unwrap();
                    }
                    last
                })
            })
            .collect();
        Self { stop, tasks }
    }

    /// Stops them; returns the newest revision they wrote or saw.
    async fn stop(self) -> Revision {
        self.stop.store(true, Ordering::Relaxed);
        let mut last = Revision::FIRST;
        for task in self.tasks {
            last = last.max(task.await.unwrap());
        }
        last
    }
}

/// The changes of a watch up to `last`, which it must have delivered before its progress mark.
async fn up_to(env: &Env, watch: &mut Watch, last: Revision) -> Vec<Arc<Change>> {
    watch.request_progress();
    let mut changes = Vec::new();
    loop {
        match item(env, watch).await.unwrap() {
            k1s_store::WatchItem::Change(change) => changes.push(change),
            k1s_store::WatchItem::Progress(mark) => {
                assert!(mark >= last);
                return changes;
            }
        }
    }
}

/// The changes as a watch with previous values should deliver them, computed by replaying all.
fn with_previous(all: &[Arc<Change>]) -> Vec<Change> {
    let mut state = BTreeMap::<Bytes, Previous>::new();
    all.iter()
        .map(|change| {
            let events = change.events().iter().map(|event| {
                let mut event = event.clone();
                let value = event.value.clone().map(|value| Previous { value, revision: change.revision() });
                event.previous = match value {
                    Some(value) => state.insert(event.key.clone(), value),
                    None => state.remove(&event.key),
                };
                event
            });
            Change::new(change.revision(), events.collect::<Vec<_>>())
        })
        .collect()
}

/// Opens watches with previous values during writes, on a store that had no such watch before, unless
/// `another` is set. Each must deliver exactly the changes, and so must a watch without previous values.
async fn opened_during_writes(another: bool) {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let writer = connect(&env, server.options()).await;
    let begin = writer.revision().await.unwrap();
    let writers = Writers::start(&env, &writer);

    let mut opened = Vec::new();
    for _ in 0..4 {
        let store = connect(&env, server.options()).await;
        let mut plain = store.watch(WatchRequest::prefix("/k/").after(begin)).await.unwrap();
        change(&env, &mut plain).await;
        let other = match another {
            true => Some(store.watch(WatchRequest::prefix("/nothing/").previous(true)).await.unwrap()),
            false => None,
        };
        let now = store.watch(WatchRequest::prefix("/k/").previous(true)).await.unwrap();
        let past = store.watch(WatchRequest::prefix("/k/").after(begin).previous(true)).await.unwrap();
        // Some changes come before, during and after the replacement of the upstream watch.
        let enough = Revision::new(writer.revision().await.unwrap().get() + 100);
        while change(&env, &mut plain).await.revision() < enough {}
        opened.push((store, other, now, past, plain));
    }
    let last = writers.stop().await;

    let mut all = writer.watch(WatchRequest::prefix("/k/").after(begin)).await.unwrap();
    let expected = with_previous(&up_to(&env, &mut all, last).await);
    assert!(expected.len() > 400);
    for (_store, _other, mut now, mut past, mut plain) in opened {
        let seen = up_to(&env, &mut past, last).await;
        assert!(seen.iter().map(|change| &**change).eq(&expected), "a watch of the past sees everything");

        let seen = up_to(&env, &mut now, last).await;
        assert!(seen.len() > 50);
        let rest = &expected[expected.len() - seen.len()..];
        assert!(seen.iter().map(|change| &**change).eq(rest), "a watch from now on sees everything since");

        let revisions: Vec<_> = up_to(&env, &mut plain, last).await.iter().map(|c| c.revision()).collect();
        let rest = &expected[expected.len() - revisions.len()..];
        assert!(
            rest.iter().map(Change::revision).eq(revisions),
            "a watch without previous values misses nothing either"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_watch_with_previous_values_during_writes_gets_every_change_once() {
    opened_during_writes(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_further_watch_with_previous_values_during_writes_gets_every_change_once() {
    opened_during_writes(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_watch_reads_previous_values_from_history() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let store = connect(&env, server.options()).await;
    let begin = put(&store, "/k/a", "0").await.unwrap();
    let mut plain = store.watch(WatchRequest::prefix("/k/")).await.unwrap();
    let mut written = vec![begin];
    for n in 1..5 {
        written.push(put(&store, "/k/a", &n.to_string()).await.unwrap());
        change(&env, &mut plain).await;
    }
    // The revision advances outside of the store's root.
    server.client().unwrap().put("/others", "x").await.unwrap();
    let mut watch = store.watch(WatchRequest::prefix("/k/").after(begin).previous(true)).await.unwrap();
    for n in 5..9 {
        written.push(put(&store, "/k/a", &n.to_string()).await.unwrap());
    }
    for (n, pair) in written.windows(2).enumerate() {
        let change = change(&env, &mut watch).await;
        assert_eq!(change.revision(), pair[1]);
        let expected = Previous { value: n.to_string().into(), revision: pair[0] };
        assert_eq!(change.events()[0].previous, Some(expected));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn previous_values_continue_across_a_crash_of_etcd() {
    let env = Env::system();
    let Some(mut server) = server(&env).await else { return };
    let store = connect(&env, server.options()).await;
    put(&store, "/k/a", "0").await.unwrap();
    let mut watch = store.watch(WatchRequest::prefix("/k/").previous(true)).await.unwrap();
    for n in 1..4 {
        server.restart().await.unwrap();
        put_with_retries(&env, &store, "/k/a", &n.to_string()).await;
        let change = change(&env, &mut watch).await;
        let previous = change.events()[0].previous.as_ref().map(|previous| previous.value.clone());
        assert_eq!(previous, Some((n - 1).to_string().into()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_reads_previous_values_only_when_requested() {
    const UPDATES: u64 = 200;
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let store = connect(&env, server.options()).await;
    put(&store, "/k/a", "0").await.unwrap();
    let mut plain = store.watch(WatchRequest::prefix("/k/")).await.unwrap();
    let update = async |watch: &mut Watch| {
        let before = metric(&server, "etcd_debugging_mvcc_range_total").await;
        for n in 0..UPDATES {
            put(&store, "/k/a", &n.to_string()).await.unwrap();
            change(&env, watch).await;
        }
        metric(&server, "etcd_debugging_mvcc_range_total").await - before
    };
    let reads = update(&mut plain).await;
    assert!(reads < UPDATES / 4, "no watch needs previous values, but etcd read {reads} times");
    let mut watch = store.watch(WatchRequest::prefix("/k/").previous(true)).await.unwrap();
    let reads = update(&mut watch).await;
    assert!(reads >= UPDATES, "a watch needs previous values, but etcd read only {reads} times");
    // The replaced watch is gone.
    within(&env, async {
        while metric(&server, "etcd_debugging_mvcc_watcher_total").await != 1 {
            env.sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}
