//! Broken connections and crashed servers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::*;
use k1s_env::Env;
use k1s_store::{Error, Outcome, Range, Revision, Store, WatchItem, WatchRequest, feed::FeedOptions};
use k1s_store_etcd::{
    EtcdOptions,
    testing::{EtcdServer, ServerOptions},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_continues_across_a_crash_of_etcd_without_gaps_or_duplicates() {
    let env = Env::system();
    let Some(mut server) = server(&env).await else { return };
    let store = connect(&env, hasty(server.options())).await;
    let mut watch = store.watch(WatchRequest::prefix("/").previous(true)).await.unwrap();
    let mut expected = Vec::new();
    for round in 0..3 {
        for n in 0..20 {
            let revision = put(&store, &format!("/{n}"), &format!("{round}")).await.unwrap();
            expected.push(revision);
        }
        server.kill().unwrap();
        server.restart().await.unwrap();
        expected.push(put_with_retries(&env, &store, "/back", &format!("{round}")).await);
    }
    let mut seen = Vec::new();
    while seen.len() < expected.len() {
        seen.push(change(&env, &mut watch).await.revision());
    }
    assert_eq!(seen, expected);
    let (rest, mark) = mark(&env, &mut watch).await;
    assert_eq!((rest, mark), (vec![], *expected.last().unwrap()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_continues_across_broken_connections_during_writes() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let writer = connect(&env, server.options()).await;
    let proxy = Proxy::new(&env, &server.endpoint()).await;
    let options = EtcdOptions { endpoints: vec![proxy.endpoint.clone()], ..hasty(server.options()) };
    // A small ring, so that missed changes must often be read from etcd's history.
    let feed = FeedOptions { changes: 16, bytes: 1 << 20 };
    let store = connect(&env, EtcdOptions { feed, ..options }).await;
    let mut watch = store.watch(WatchRequest::prefix("/")).await.unwrap();

    let writing = env.spawn("writer", {
        let writer = writer.clone();
        async move {
            let mut written = Vec::new();
            for n in 0..600 {
                written.push(put(&writer, &format!("/{}", n % 50), &format!("{n}")).await.unwrap());
            }
            written
        }
    });
    let mut seen = Vec::new();
    while seen.len() < 600 {
        seen.push(change(&env, &mut watch).await.revision());
        if seen.len() % 100 == 50 {
            proxy.cut().await;
        }
    }
    assert_eq!(seen, writing.await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_fail_while_etcd_is_down_and_work_when_it_is_back() {
    let env = Env::system();
    let Some(mut server) = server(&env).await else { return };
    let store = connect(&env, hasty(server.options())).await;
    let mut watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    let before = put(&store, "/a", "1").await.unwrap();
    assert_eq!(change(&env, &mut watch).await.revision(), before);

    server.kill().unwrap();
    let read = store.get(b"/a", None).await.unwrap_err();
    assert!(matches!(read, Error::Unavailable { outcome: Outcome::NotApplied, .. }), "{read}");
    // The first write may use the remains of the connection; the next one finds no server.
    let _ = put(&store, "/a", "2").await.unwrap_err();
    let write = put(&store, "/a", "2").await.unwrap_err();
    assert!(matches!(write, Error::Unavailable { outcome: Outcome::NotApplied, .. }), "{write}");
    assert!(matches!(
        store.watch(WatchRequest::prefix("/")).await,
        Err(Error::Unavailable { outcome: Outcome::NotApplied, .. })
    ));
    // Changes in memory can be watched.
    let mut watch = store.watch(WatchRequest::prefix("/").after(before)).await.unwrap();
    watch.request_progress();

    server.restart().await.unwrap();
    let after = put_with_retries(&env, &store, "/b", "3").await;
    assert_eq!(store.get(b"/a", None).await.unwrap().entry.unwrap().revision, before);
    let mut reached = before;
    let mut marked = false;
    while !(marked && reached == after) {
        let item = item(&env, &mut watch).await.unwrap();
        assert!(item.revision() >= reached);
        reached = item.revision();
        marked |= matches!(item, WatchItem::Progress(_));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_outcome_of_a_write_without_a_response_is_unknown() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let store = connect(&env, hasty(server.options())).await;
    put(&store, "/a", "1").await.unwrap();

    server.pause().unwrap();
    let write = put(&store, "/a", "2").await.unwrap_err();
    assert!(matches!(write, Error::Unavailable { outcome: Outcome::Unknown, .. }), "{write}");
    let read = store.get(b"/a", None).await.unwrap_err();
    assert!(matches!(read, Error::Unavailable { outcome: Outcome::NotApplied, .. }), "{read}");

    server.resume().unwrap();
    put_with_retries(&env, &store, "/b", "3").await;
    let value = store.get(b"/a", None).await.unwrap().entry.unwrap().value;
    assert!(value == "1" || value == "2", "once or never: {value:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_endpoint_is_skipped() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let endpoints = vec!["http://127.0.0.1:1".into(), server.endpoint()];
    let store = connect(&env, EtcdOptions { endpoints, ..server.options() }).await;
    let mut watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    let written = put(&store, "/a", "1").await.unwrap();
    assert_eq!(change(&env, &mut watch).await.revision(), written);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_endpoint_takes_over_and_back() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let mut first = Proxy::new(&env, &server.endpoint()).await;
    let mut second = Proxy::new(&env, &server.endpoint()).await;
    let endpoints = vec![first.endpoint.clone(), second.endpoint.clone()];
    let store = connect(&env, EtcdOptions { endpoints, ..server.options() }).await;
    let mut watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    let mut expected = Vec::new();
    expected.push(put(&store, "/a", "1").await.unwrap());
    first.down().await;
    store.get(b"/a", None).await.expect("a read finds the other endpoint by itself");
    expected.push(put_with_retries(&env, &store, "/a", "2").await);
    first.up().await;
    second.down().await;
    store.get(b"/a", None).await.expect("a read finds the other endpoint by itself");
    expected.push(put_with_retries(&env, &store, "/a", "3").await);
    for revision in expected {
        assert_eq!(change(&env, &mut watch).await.revision(), revision);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lagging_watch_waits_for_etcd_to_come_back() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let mut proxy = Proxy::new(&env, &server.endpoint()).await;
    let options = EtcdOptions { endpoints: vec![proxy.endpoint.clone()], ..hasty(server.options()) };
    let feed = FeedOptions { changes: 2, bytes: 1 << 20 };
    let store = connect(&env, EtcdOptions { feed, ..options }).await;
    let mut watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    let mut expected = Vec::new();
    for n in 0..20 {
        expected.push(put(&store, &format!("/{n}"), "x").await.unwrap());
    }
    // Then the feed has received everything, and dropped most of it.
    drop(store.watch(WatchRequest::prefix("/")).await.unwrap());
    proxy.down().await;
    let reading = env.spawn("reader", {
        let env = env.clone();
        async move {
            let mut seen = Vec::new();
            while seen.len() < 20 {
                seen.push(change(&env, &mut watch).await.revision());
            }
            seen
        }
    });
    assert!(store.get(b"/1", None).await.is_err());
    proxy.up().await;
    assert_eq!(reading.await.unwrap(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silently_dead_connection_is_detected() {
    let env = Env::system();
    let options =
        ServerOptions { args: vec!["--grpc-keepalive-min-time=10ms".into()], ..ServerOptions::default() };
    let Some(server) = EtcdServer::start_with(&env, options).await.unwrap() else { return };
    let writer = connect(&env, server.options()).await;
    let proxy = Proxy::new(&env, &server.endpoint()).await;
    let options = EtcdOptions {
        endpoints: vec![proxy.endpoint.clone()],
        keep_alive: Duration::from_millis(200),
        ..hasty(server.options())
    };
    let store = connect(&env, options).await;
    let mut watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    proxy.freeze();
    let written = put(&writer, "/a", "1").await.unwrap();
    assert_eq!(change(&env, &mut watch).await.revision(), written);
    put_with_retries(&env, &store, "/b", "2").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_that_lost_revisions_is_not_trusted() {
    let env = Env::system();
    let Some(mut server) = server(&env).await else { return };
    let store = connect(&env, hasty(server.options())).await;
    let mut watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    for n in 0..10 {
        put(&store, &format!("/{n}"), "x").await.unwrap();
        change(&env, &mut watch).await;
    }
    server.restart_empty().await.unwrap();
    let ended = end(&env, &mut watch).await.unwrap();
    assert!(
        matches!(&ended, Error::Corrupt { reason } if reason.contains("restored from a backup")),
        "{ended}"
    );
    let read = store.range(Range::prefix("/")).await.unwrap_err();
    assert_eq!(read, ended);
    assert_eq!(put(&store, "/a", "1").await.unwrap_err(), ended);
    assert_eq!(store.watch(WatchRequest::prefix("/").after(Revision::new(2))).await.unwrap_err(), ended);
    within(&env, store.close()).await.unwrap();

    // A store opened on it accepts its state.
    let store = connect(&env, server.options()).await;
    assert_eq!(store.range(Range::prefix("/")).await.unwrap().entries, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_does_not_wait_for_an_etcd_that_is_gone() {
    let env = Env::system();
    let Some(mut server) = server(&env).await else { return };
    let env = Env::system();
    let store = connect(&env, server.options()).await;
    let watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    server.kill().unwrap();
    watch.request_progress();
    let slow = env.spawn("reader", {
        let store = store.clone();
        async move { store.get(b"/a", None).await }
    });
    env.timeout(Duration::from_secs(3), store.close()).await.unwrap().unwrap();
    assert!(slow.await.unwrap().is_err());
    drop(watch);
    assert_no_tasks(&env).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corruption_reported_by_etcd_lasts_until_etcd_clears_it() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let raw = server.client().unwrap();
    let store = connect(&env, server.options()).await;
    let mut watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    let before = put(&store, "/a", "1").await.unwrap();
    assert_eq!(change(&env, &mut watch).await.revision(), before);

    raw.alarm(true).await.unwrap();
    let write = put(&store, "/a", "2").await.unwrap_err();
    assert!(matches!(&write, Error::Corrupt { reason } if reason.contains("corrupt cluster")), "{write}");
    // No fence can be written for these, either.
    watch.request_progress();
    let with_previous = WatchRequest::prefix("/").after(before).previous(true);
    let mut with_previous = store.watch(with_previous).await.unwrap();
    raw.alarm(false).await.unwrap();

    let after = put(&store, "/a", "3").await.unwrap();
    let mut reached = before;
    while reached < after {
        reached = item(&env, &mut watch).await.unwrap().revision();
    }
    assert_eq!(change(&env, &mut with_previous).await.revision(), after);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_of_another_cluster_is_not_trusted() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let Some(other) = common::server(&env).await else { return };
    let proxy = Proxy::new(&env, &server.endpoint()).await;
    let endpoints = vec![proxy.endpoint.clone(), other.endpoint()];
    let store = connect(&env, EtcdOptions { endpoints, ..server.options() }).await;
    let mut watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    let own = put(&store, "/a", "1").await.unwrap();
    assert_eq!(change(&env, &mut watch).await.revision(), own);

    // Watches meet the other cluster first; reads may still reach the right one.
    proxy.cut().await;
    let strangers = other.client().unwrap();
    for _ in 0..5 {
        strangers.put("/k1s/kv//a", "not ours").await.unwrap();
    }
    let ended = item(&env, &mut watch).await.unwrap_err();
    assert!(
        matches!(&ended, Error::Corrupt { reason } if reason.contains("different etcd clusters")),
        "{ended}"
    );
    assert_eq!(store.get(b"/a", None).await.unwrap_err(), ended);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_far_behind_makes_progress_over_short_lived_connections() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let writer = connect(&env, server.options()).await;
    let begin = writer.revision().await.unwrap();
    let writers = (0..30).map(async |n| {
        let value = "x".repeat(1000);
        let mut written = Vec::new();
        for _ in 0..100 {
            written.push(put(&writer, &format!("/{n}"), &value).await.unwrap());
        }
        written
    });
    let mut expected = futures_util::future::join_all(writers).await.concat();
    expected.sort();
    let proxy = Proxy::new(&env, &server.endpoint()).await;
    // etcd sends the events of 1000 revisions at a time: two of the three parts arrive.
    proxy.break_after(2_500_000);
    let options = EtcdOptions { endpoints: vec![proxy.endpoint.clone()], ..server.options() };
    let store = connect(&env, options).await;
    let mut watch = store.watch(WatchRequest::prefix("/").after(begin)).await.unwrap();
    for revision in expected {
        assert_eq!(change(&env, &mut watch).await.revision(), revision);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_etcd_with_a_higher_revision_is_not_trusted() {
    let env = Env::system();
    let Some(mut server) = server(&env).await else { return };
    let mut proxy = Proxy::new(&env, &server.endpoint()).await;
    let options = EtcdOptions { endpoints: vec![proxy.endpoint.clone()], ..hasty(server.options()) };
    let store = connect(&env, options).await;
    let mut watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    for n in 0..10 {
        put(&store, &format!("/{n}"), "old").await.unwrap();
        change(&env, &mut watch).await;
    }
    // Unseen by this store, another etcd replaces it, and soon has a higher revision.
    proxy.down().await;
    server.restart_empty().await.unwrap();
    let other = connect(&env, server.options()).await;
    for _ in 0..30 {
        put(&other, "/new", "new").await.unwrap();
    }
    proxy.up().await;
    let ended = item(&env, &mut watch).await.unwrap_err();
    assert!(
        matches!(&ended, Error::Corrupt { reason } if reason.contains("restored from a backup")),
        "{ended}"
    );
    assert_eq!(store.get(b"/1", None).await.unwrap_err(), ended);
}
