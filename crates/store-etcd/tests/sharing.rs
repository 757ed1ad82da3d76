//! One etcd with several clients: other stores, and clients that are not stores.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use common::*;
use k1s_env::Env;
use k1s_store::{Error, Range, Revision, Store, WatchRequest, feed::FeedOptions};
use k1s_store_etcd::{EtcdOptions, EtcdStore, testing::EtcdServer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_on_one_etcd_see_each_others_writes() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let one = connect(&env, server.options()).await;
    let two = connect(&env, server.options()).await;
    let mut watch = two.watch(WatchRequest::prefix("/")).await.unwrap();

    let by_one = put(&one, "/a", "one").await.unwrap();
    assert_eq!(two.get(b"/a", None).await.unwrap().entry.unwrap().revision, by_one);
    let by_two = two.update("/a".into(), "two".into(), by_one).await.unwrap();
    assert!(matches!(one.update("/a".into(), "one".into(), by_one).await, Err(Error::Conflict(_))));
    assert_eq!(change(&env, &mut watch).await.revision(), by_one);
    assert_eq!(change(&env, &mut watch).await.revision(), by_two);

    // A watch from now on begins after the other store's writes.
    let last = put(&one, "/a", "three").await.unwrap();
    let mut late = two.watch(WatchRequest::prefix("/")).await.unwrap();
    let next = put(&one, "/a", "four").await.unwrap();
    assert_eq!(change(&env, &mut late).await.revision(), next);
    // A watch from a revision that only the other store has seen yet.
    let mut resumed = two.watch(WatchRequest::prefix("/").after(last)).await.unwrap();
    assert_eq!(change(&env, &mut resumed).await.revision(), next);
    let (_, reached) = mark(&env, &mut late).await;
    assert!(reached >= next);
}

/// The variable with etcd's endpoint, for the other process.
const SHARED: &str = "K1S_TEST_SHARED_ETCD";

/// Increments a number `times` times, concurrently with others.
async fn count(store: &EtcdStore, times: u64) {
    for _ in 0..times {
        loop {
            let there = store.get(b"/count", None).await.unwrap().entry;
            let next = there.as_ref().map_or(1, |entry| number(&entry.value) + 1).to_string();
            let written = match there {
                Some(entry) => store.update("/count".into(), next.into(), entry.revision).await,
                None => store.create("/count".into(), next.into()).await,
            };
            match written {
                Ok(_) => break,
                Err(Error::Conflict(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
}

fn number(value: &[u8]) -> u64 {
    std::str::from_utf8(value).unwrap().parse().unwrap()
}

/// Runs in the other process; does nothing if the variable is not set.
#[tokio::test]
async fn counts_as_another_process() {
    let Ok(endpoint) = std::env::var(SHARED) else { return };
    let options = EtcdOptions { endpoints: vec![endpoint], ..EtcdOptions::default() };
    count(&connect(&Env::system(), options).await, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_on_one_etcd_see_each_others_writes() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let store = connect(&env, server.options()).await;
    let mut watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    let mut other = Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", "counts_as_another_process"]).env(SHARED, server.endpoint());
    let mut other = other.stdout(Stdio::null()).spawn().unwrap();
    count(&store, 100).await;
    for expected in 1..=200 {
        let change = change(&env, &mut watch).await;
        assert_eq!(change.events()[0].value.as_deref().map(number), Some(expected));
    }
    assert!(other.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roots_are_isolated() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let one = connect(&env, EtcdOptions { root: "/one".into(), ..server.options() }).await;
    let two = connect(&env, EtcdOptions { root: "/one/two".into(), ..server.options() }).await;
    let mut watch = one.watch(WatchRequest::prefix("")).await.unwrap();
    put(&two, "/a", "two").await.unwrap();
    let written = put(&one, "/b", "one").await.unwrap();
    assert_eq!(change(&env, &mut watch).await.revision(), written);
    assert_eq!(one.range(Range::prefix("")).await.unwrap().entries.len(), 1);
    assert_eq!(two.range(Range::prefix("")).await.unwrap().entries.len(), 1);
    assert_eq!(one.stats().await.unwrap().keys, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_keys_are_not_visible_but_progress_marks_include_their_revisions() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let raw = server.client().unwrap();
    for n in 0..10 {
        raw.put(format!("/registry/{n}"), "x").await.unwrap();
    }
    let store = connect(&env, server.options()).await;
    let mut watch = store.watch(WatchRequest::prefix("")).await.unwrap();
    let own = put(&store, "/a", "1").await.unwrap();
    let foreign = raw.put("/k1s-not/kv/a", "x").await.unwrap();
    let foreign = raw.put("/k1", "x").await.unwrap().max(foreign);

    let (before, marked) = mark(&env, &mut watch).await;
    assert_eq!(before, [own]);
    assert!(marked >= foreign, "a mark at {marked} is older than {foreign}");
    let all = store.range(Range::prefix("")).await.unwrap();
    assert_eq!(all.entries.len(), 1);
    assert!(all.revision >= foreign);

    // A revision of another client is a valid start of a watch.
    let mut resumed = store.watch(WatchRequest::prefix("").after(foreign)).await.unwrap();
    let next = put(&store, "/a", "2").await.unwrap();
    assert_eq!(change(&env, &mut resumed).await.revision(), next);
    assert_eq!(change(&env, &mut watch).await.revision(), next);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_a_history_without_events_ends() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let raw = server.client().unwrap();
    let first = raw.put("/other", "x").await.unwrap();
    for _ in 0..20 {
        raw.put("/other", "x").await.unwrap();
    }
    // The store starts after all of that, and a watch before it.
    let store = connect(&env, server.options()).await;
    let mut watch = store.watch(WatchRequest::prefix("/").after(first)).await.unwrap();
    let newest = raw.revision().await.unwrap();
    let (before, marked) = mark(&env, &mut watch).await;
    assert_eq!(before, []);
    assert!(marked >= newest);
    let written = put(&store, "/a", "1").await.unwrap();
    assert_eq!(change(&env, &mut watch).await.revision(), written);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compactions_by_other_clients_are_respected() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let raw = server.client().unwrap();
    let feed = FeedOptions { changes: 4, bytes: 1 << 20 };
    let store = connect(&env, EtcdOptions { feed, ..server.options() }).await;
    let mut behind = store.watch(WatchRequest::prefix("/")).await.unwrap();
    let mut current = store.watch(WatchRequest::prefix("/")).await.unwrap();
    let mut written = Vec::new();
    for n in 0..30 {
        written.push(put(&store, "/a", &format!("{n}")).await.unwrap());
        assert_eq!(change(&env, &mut current).await.revision(), written[n]);
    }
    let oldest = written[25];
    raw.compact(oldest).await.unwrap();

    let compacted = Error::Compacted { requested: written[3], oldest };
    assert_eq!(store.get(b"/a", Some(written[3])).await, Err(compacted.clone()));
    assert_eq!(store.range(Range::prefix("/").at(written[3])).await.unwrap_err(), compacted);
    assert_eq!(store.get(b"/a", Some(oldest)).await.unwrap().entry.unwrap().revision, oldest);
    assert!(matches!(end(&env, &mut behind).await, Some(Error::Compacted { .. })));
    assert!(matches!(
        store.watch(WatchRequest::prefix("/").after(written[3])).await,
        Err(Error::Compacted { .. })
    ));
    // A watch that keeps up is not affected.
    let next = put(&store, "/a", "next").await.unwrap();
    assert_eq!(change(&env, &mut current).await.revision(), next);

    // A store opened later learns of the compaction.
    let late = connect(&env, server.options()).await;
    assert_eq!(late.stats().await.unwrap().oldest, oldest);
    assert!(matches!(
        late.watch(WatchRequest::prefix("/").after(written[24])).await,
        Err(Error::Compacted { .. })
    ));
    let mut watch = late.watch(WatchRequest::prefix("/").after(oldest)).await.unwrap();
    assert_eq!(change(&env, &mut watch).await.revision(), written[26]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_during_an_outage_ends_the_watches_that_missed_it() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let writer = connect(&env, server.options()).await;
    let mut proxy = Proxy::new(&env, &server.endpoint()).await;
    let options = EtcdOptions { endpoints: vec![proxy.endpoint.clone()], ..hasty(server.options()) };
    let store = connect(&env, options).await;
    let mut watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    let seen = put(&writer, "/a", "1").await.unwrap();
    assert_eq!(change(&env, &mut watch).await.revision(), seen);

    proxy.down().await;
    put(&writer, "/a", "2").await.unwrap();
    let deleted = remove(&writer, "/a").await;
    // To exactly the revision of a deletion, which removes it from etcd's history.
    writer.compact(deleted).await.unwrap();
    proxy.up().await;

    let ended = end(&env, &mut watch).await;
    assert_eq!(ended, Some(Error::Compacted { requested: seen, oldest: deleted }));
    let mut watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    let next = put(&writer, "/a", "3").await.unwrap();
    assert_eq!(change(&env, &mut watch).await.revision(), next);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_compact_in_turn_and_keep_recent_history() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let options = EtcdOptions { compaction: Some(Duration::from_millis(200)), ..server.options() };
    let one = connect(&env, options.clone()).await;
    let two = connect(&env, options).await;
    let mut watch = two.watch(WatchRequest::prefix("/")).await.unwrap();

    let compacted_beyond = async |revision: Revision| {
        within(&env, async {
            loop {
                let stats = two.stats().await.unwrap();
                if stats.oldest >= revision {
                    return stats;
                }
                env.sleep(Duration::from_millis(20)).await;
            }
        })
        .await
    };
    let first = put(&one, "/a", "1").await.unwrap();
    assert_eq!(change(&env, &mut watch).await.revision(), first);
    let stats = compacted_beyond(first).await;
    assert!(stats.oldest < stats.revision, "recent history is kept");
    assert!(matches!(one.get(b"/a", Some(Revision::FIRST)).await, Err(Error::Compacted { .. })));

    // One of them is closed; the other takes over.
    one.close().await.unwrap();
    let second = put(&two, "/a", "2").await.unwrap();
    assert_eq!(change(&env, &mut watch).await.revision(), second);
    compacted_beyond(second).await;
    let third = put(&two, "/a", "3").await.unwrap();
    assert_eq!(change(&env, &mut watch).await.revision(), third, "a watch that keeps up is not affected");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_watches_share_one_etcd_watch_and_reading_history_leaves_none() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let feed = FeedOptions { changes: 2, bytes: 1 << 20 };
    let store = connect(&env, EtcdOptions { feed, ..server.options() }).await;
    let first = put(&store, "/0", "x").await.unwrap();
    for n in 1..10 {
        put(&store, &format!("/{n}"), "x").await.unwrap();
    }
    let mut watches = Vec::new();
    for _ in 0..20 {
        let mut watch = store.watch(WatchRequest::prefix("/").after(first)).await.unwrap();
        for _ in 1..10 {
            change(&env, &mut watch).await;
        }
        watches.push(watch);
    }
    within(&env, async {
        while watchers(&server).await != 1 {
            env.sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// Number of watches in etcd.
async fn watchers(server: &EtcdServer) -> u64 {
    metric(server, "etcd_debugging_mvcc_watcher_total").await
}
