//! Reads, writes, ranges, and opening and closing a store.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use bytes::Bytes;
use common::*;
use k1s_env::Env;
use k1s_store::{
    Error, KeyValue, Outcome, Precondition, Range, Revision, Store, Txn, WatchItem, WatchRequest,
};
use k1s_store_etcd::{
    ConnectError, EtcdOptions, EtcdStore, TlsOptions,
    testing::{EtcdServer, ServerOptions},
};

fn entry(key: &'static str, value: &'static str, revision: Revision) -> KeyValue {
    KeyValue { key: key.into(), value: value.into(), revision }
}

#[tokio::test]
async fn values_are_written_read_and_deleted() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let store = connect(&env, server.options()).await;

    let created = store.create("/a".into(), "1".into()).await.unwrap();
    let updated = store.update("/a".into(), "2".into(), created).await.unwrap();
    assert!(created < updated);
    let now = store.get(b"/a", None).await.unwrap();
    assert_eq!((now.revision, now.entry), (updated, Some(entry("/a", "2", updated))));
    let then = store.get(b"/a", Some(created)).await.unwrap();
    assert_eq!((then.revision, then.entry), (created, Some(entry("/a", "1", created))));

    let deleted = store.delete("/a".into(), updated).await.unwrap();
    assert_eq!(store.get(b"/a", None).await.unwrap().entry, None);
    assert_eq!(remove(&store, "/a").await, deleted, "deleting a missing key takes no revision");
    assert_eq!(store.revision().await.unwrap(), deleted);

    let future = Revision::new(deleted.get() + 5);
    assert_eq!(
        store.get(b"/a", Some(future)).await,
        Err(Error::FutureRevision { requested: future, current: deleted })
    );
    assert!(matches!(store.get(b"/a", Some(Revision::MAX)).await, Err(Error::FutureRevision { .. })));
    assert!(matches!(store.get(b"/a", Some(Revision::new(0))).await, Err(Error::Compacted { .. })));

    // The key in etcd.
    let raw = server.client().unwrap();
    put(&store, "/b", "x").await.unwrap();
    assert_eq!(raw.get("/k1s/kv//b").await.unwrap().unwrap(), "x");
}

#[tokio::test]
async fn a_conflict_reports_the_first_failed_precondition_and_the_current_entry() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let store = connect(&env, server.options()).await;
    let one = store.create("/one".into(), "1".into()).await.unwrap();
    let two = store.create("/two".into(), "2".into()).await.unwrap();

    let txn = Txn::new()
        .put("/free", "x", Precondition::Any)
        .check("/one", Precondition::Revision(one))
        .put("/two", "x", Precondition::Revision(one))
        .create("/one-more", "x")
        .delete("/missing", Precondition::Exists);
    assert_eq!(
        store.txn(txn).await,
        Err(Error::conflict("/two".into(), Precondition::Revision(one), Some(entry("/two", "2", two))))
    );
    assert_eq!(
        store.delete("/missing".into(), one).await,
        Err(Error::conflict("/missing".into(), Precondition::Revision(one), None))
    );
    let zero = Precondition::Revision(Revision::new(0));
    assert_eq!(
        store.txn(Txn::new().put("/missing", "x", zero)).await,
        Err(Error::conflict("/missing".into(), zero, None)),
        "revision 0 does not mean absent"
    );
    assert_eq!(store.range(Range::prefix("/")).await.unwrap().entries.len(), 2, "nothing was written");
    assert_eq!(store.revision().await.unwrap(), two);
}

#[tokio::test]
async fn a_transaction_of_many_long_keys_is_accepted_and_its_conflict_is_reported() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let store = connect(&env, server.options()).await;
    let key = |n: usize| format!("{n:04000}");
    let txn = (0..128).fold(Txn::new(), |txn, n| txn.create(key(n), "v"));
    let revision = store.txn(txn.clone()).await.unwrap();
    let there = KeyValue { key: key(0).into(), value: "v".into(), revision };
    assert_eq!(store.txn(txn).await, Err(Error::conflict(key(0).into(), Precondition::Absent, Some(there))));
}

#[tokio::test]
async fn a_transaction_too_large_for_etcd_is_reported_with_its_size() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let store = connect(&env, server.options()).await;
    for size in [2 << 20, 5 << 20] {
        let error = store.create("/a".into(), vec![b'x'; size].into()).await.unwrap_err();
        let Error::TooLarge { what: "the transaction", size: reported, limit, unit: "bytes" } = error else {
            panic!("{error}");
        };
        assert!(reported > size && limit == 3 << 19, "{reported} and {limit}");
    }
    assert_eq!(store.get(b"/a", None).await.unwrap().entry, None);
}

#[tokio::test]
async fn a_full_etcd_refuses_writes_and_serves_reads() {
    let env = Env::system();
    let args = vec!["--quota-backend-bytes=1000000".to_owned()];
    let Some(server) =
        EtcdServer::start_with(&env, ServerOptions { args, ..ServerOptions::default() }).await.unwrap()
    else {
        return;
    };
    let store = connect(&env, server.options()).await;
    let before = put(&store, "/small", "x").await.unwrap();
    let full = within(&env, async {
        loop {
            let large = "x".repeat(200_000);
            match put(&store, "/large", &large).await {
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    })
    .await;
    assert!(matches!(&full, Error::Full { reason } if reason.contains("space exceeded")), "{full}");
    assert_eq!(store.get(b"/small", None).await.unwrap().entry.unwrap().revision, before);
    assert!(store.stats().await.unwrap().degraded.unwrap().contains("NOSPACE"));
    let mut watch = store.watch(WatchRequest::prefix("/").after(before)).await.unwrap();
    assert!(change(&env, &mut watch).await.revision() > before);
}

#[tokio::test]
async fn a_range_over_many_pages_is_a_snapshot() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let store = connect(&env, EtcdOptions { page: 10, ..server.options() }).await;
    for n in 0..250 {
        put(&store, &format!("/n/{n:03}"), "old").await.unwrap();
    }

    // Writers update all keys to one value, several at a time, while ranges are read.
    let writing = env.spawn("writer", {
        let store = store.clone();
        async move {
            for round in 0..30 {
                let keys = (0..250).step_by(2);
                let txn = keys.fold(Txn::new(), |txn, n| {
                    txn.put(format!("/n/{n:03}"), format!("{round}"), Precondition::Any)
                });
                store.txn(txn).await.unwrap();
            }
        }
    });
    let mut moments = 0;
    while !writing.is_finished() || moments < 3 {
        let all = store.range(Range::prefix("/n/")).await.unwrap();
        assert_eq!((all.entries.len(), all.more), (250, false));
        let even: Vec<_> = all.entries.iter().step_by(2).map(|entry| &entry.value).collect();
        assert!(even.iter().all(|value| *value == even[0]), "a mix of revisions: {even:?}");
        assert!(all.entries.iter().all(|entry| entry.revision <= all.revision));
        moments += 1;
    }
    writing.await.unwrap();

    let limited = store.range(Range::prefix("/n/").limit(95).start("/n/100")).await.unwrap();
    assert_eq!((limited.entries.len(), limited.more), (95, true));
    assert_eq!(limited.entries[0].key, "/n/100");
    let rest = Range::prefix("/n/").start("/n/195").limit(55).at(limited.revision);
    let rest = store.range(rest).await.unwrap();
    assert_eq!((rest.entries.len(), rest.more, rest.revision), (55, false, limited.revision));
    let beyond = store.range(Range::prefix("/n/").start("/o")).await.unwrap();
    assert_eq!((beyond.entries.len(), beyond.more), (0, false));
}

#[tokio::test]
async fn a_range_of_large_values_is_read() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let store = connect(&env, server.options()).await;
    let value = Bytes::from(vec![b'x'; 1 << 20]);
    for n in 0..12 {
        store.create(format!("/{n:02}").into(), value.clone()).await.unwrap();
    }
    let all = store.range(Range::prefix("/")).await.unwrap();
    assert_eq!(all.entries.len(), 12);
    assert!(all.entries.iter().all(|entry| entry.value == value));
}

#[tokio::test]
async fn a_large_change_arrives_whole() {
    let env = Env::system();
    // etcd splits responses at the maximum request size.
    let args = vec!["--max-request-bytes=400000".to_owned()];
    let Some(server) =
        EtcdServer::start_with(&env, ServerOptions { args, ..ServerOptions::default() }).await.unwrap()
    else {
        return;
    };
    let store = connect(&env, server.options()).await;
    let mut watch = store.watch(WatchRequest::prefix("/").previous(true)).await.unwrap();
    for round in 0..3 {
        let value = format!("{round}").repeat(3_500);
        let txn =
            (0..100).fold(Txn::new(), |txn, n| txn.put(format!("/{n:03}"), value.clone(), Precondition::Any));
        let revision = store.txn(txn).await.unwrap();
        let change = change(&env, &mut watch).await;
        assert_eq!((change.revision(), change.events().len()), (revision, 100));
        assert!(change.events().iter().all(|event| event.previous.is_some() == (round > 0)));
    }
    // The same from history.
    let small =
        EtcdOptions { feed: k1s_store::feed::FeedOptions { changes: 1, bytes: 1 }, ..server.options() };
    let late = connect(&env, small).await;
    let mut watch = late.watch(WatchRequest::prefix("/").after(Revision::FIRST)).await.unwrap();
    for _ in 0..3 {
        assert_eq!(change(&env, &mut watch).await.events().len(), 100);
    }
}

#[tokio::test]
async fn statistics_come_from_etcd() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let store = connect(&env, server.options()).await;
    let first = put(&store, "/a", "1").await.unwrap();
    let last = put(&store, "/b", "2").await.unwrap();
    let watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.revision, stats.oldest, stats.keys, stats.watches), (last, Revision::FIRST, 2, 1));
    assert!(stats.disk_bytes.is_some_and(|bytes| bytes > 0));
    assert_eq!(stats.degraded, None);
    drop(watch);

    server.client().unwrap().compact(first).await.unwrap();
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.oldest, stats.watches), (first, 0), "including compactions by other clients");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_leaves_no_task_behind() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    // A separate environment: the server's client has its own tasks.
    let env = Env::system();
    let compaction = Some(Duration::from_secs(60));
    let store = connect(&env, EtcdOptions { compaction, ..server.options() }).await;
    let mut watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    let mut unread = store.watch(WatchRequest::prefix("/").after(Revision::FIRST)).await.unwrap();
    let written = put(&store, "/a", "1").await.unwrap();
    assert!(env.tasks().len() > 3);

    store.close().await.unwrap();
    assert_eq!(item(&env, &mut watch).await.unwrap().revision(), written, "everything is yielded");
    assert_eq!(watch.next().await, None);
    let change = unread.next().await;
    assert!(matches!(change, Some(Ok(WatchItem::Change(_)))), "{change:?}");
    assert_eq!(unread.next().await, None);
    drop((watch, unread));
    assert_no_tasks(&env).await;

    assert_eq!(store.get(b"/a", None).await, Err(Error::Closed));
    assert_eq!(put(&store, "/a", "2").await, Err(Error::Closed));
    assert_eq!(store.watch(WatchRequest::prefix("/")).await.unwrap_err(), Error::Closed);
    assert_eq!(store.stats().await, Err(Error::Closed));
    assert_eq!(store.close().await, Ok(()));
    assert_no_tasks(&env).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_without_watches_ends_every_task_at_once() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let env = Env::system();
    let store = connect(&env, server.options()).await;
    put(&store, "/a", "1").await.unwrap();
    store.close().await.unwrap();
    assert!(env.tasks().is_empty(), "left over: {:?}", env.tasks());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_a_store_and_its_watches_ends_its_tasks() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let env = Env::system();
    let store = connect(&env, server.options()).await;
    let mut watch = store.watch(WatchRequest::prefix("/")).await.unwrap();
    drop(store);
    let raw = server.client().unwrap();
    let written = raw.put("/k1s/kv//a", "1").await.unwrap();
    assert_eq!(change(&env, &mut watch).await.revision(), written, "a watch keeps its store");
    drop(watch);
    assert_no_tasks(&env).await;
}

#[tokio::test]
async fn a_store_that_cannot_be_opened_reports_the_reason() {
    let env = Env::system();
    let options = hasty(EtcdOptions::new(["http://127.0.0.1:1"]));
    let error = EtcdStore::connect(env.clone(), options).await.unwrap_err();
    let ConnectError::Store(Error::Unavailable { reason, outcome: Outcome::NotApplied }) = &error else {
        panic!("{error}");
    };
    assert!(reason.contains("cannot connect to etcd"), "{reason}");
    assert_no_tasks(&env).await;

    let refused = async |endpoint: &str, tls| {
        let options = EtcdOptions { tls, ..EtcdOptions::new([endpoint]) };
        EtcdStore::connect(Env::system(), options).await.unwrap_err().to_string()
    };
    let text = refused("127.0.0.1:2379", None).await;
    assert!(text.starts_with("\"127.0.0.1:2379\" is not an etcd endpoint"), "{text}");
    let text = refused("ftp://127.0.0.1", None).await;
    assert!(text.contains("must begin with http:// or https://"), "{text}");
    let text = refused("https://127.0.0.1:2379", None).await;
    assert!(text.contains("needs a certificate authority"), "{text}");
    let text = refused("https://127.0.0.1:2379", Some(TlsOptions::default())).await;
    assert!(text.contains("is empty"), "{text}");
}
