//! Responses that are overtaken by other requests.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::*;
use k1s_env::Env;
use k1s_store::{Error, Store, WatchItem, WatchRequest};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requesting_a_revision_that_is_written_meanwhile_is_safe() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let store = connect(&env, server.options()).await;
    let writing = env.spawn("writer", {
        let store = store.clone();
        async move {
            for n in 0..600 {
                put(&store, "/a", &format!("{n}")).await?;
            }
            Ok::<_, Error>(())
        }
    });
    let mut overtaken = 0;
    while !writing.is_finished() {
        let next = store.revision().await.unwrap().next();
        match store.get(b"/a", Some(next)).await {
            Ok(_) => {}
            Err(Error::FutureRevision { requested, current }) if requested == next => {
                assert!(current < requested, "{current} is not before {requested}");
                overtaken += 1;
            }
            Err(other) => panic!("{other}"),
        }
        match store.compact(store.revision().await.unwrap().next()).await {
            Ok(()) | Err(Error::FutureRevision { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    writing.await.unwrap().unwrap();
    assert!(overtaken > 0, "no read requested a future revision");
}

/// etcd reads its history a thousand revisions at a time, every tenth of a second. If it is compacted in
/// between, to the revision at which the second part begins, and that is a deletion, etcd omits the deletion
/// silently.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_compacted_while_a_watch_catches_up_is_not_omitted() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let raw = server.client().unwrap();
    let writer = connect(&env, server.options()).await;
    // The second part begins here. Whether it is read before or after it is compacted depends on timing.
    let begin = 1000;
    for _ in 0..4 {
        for n in 0..10 {
            put(&writer, &format!("/{n}"), "here").await.unwrap();
        }
        let after = writer.revision().await.unwrap();
        let mut written = Vec::new();
        for _ in 0..995 {
            written.push(put(&writer, "/busy", "x").await.unwrap());
        }
        for n in 0..10 {
            written.push(remove(&writer, &format!("/{n}")).await);
        }
        for _ in 0..20 {
            written.push(put(&writer, "/busy", "x").await.unwrap());
        }
        // It has none of this in memory.
        let reader = connect(&env, server.options()).await;
        let mut watch = reader.watch(WatchRequest::prefix("/").after(after)).await.unwrap();
        let seen = env.spawn("reader", {
            let (env, last) = (env.clone(), written[written.len() - 1]);
            async move {
                let mut seen = Vec::new();
                while seen.last() != Some(&last) {
                    match item(&env, &mut watch).await {
                        Ok(WatchItem::Change(change)) => seen.push(change.revision()),
                        Ok(WatchItem::Progress(_)) => {}
                        Err(Error::Compacted { .. }) => break,
                        Err(other) => panic!("{other}"),
                    }
                }
                seen
            }
        });
        env.sleep(Duration::from_millis(100)).await;
        raw.compact(written[begin - 1]).await.unwrap();
        let seen = seen.await.unwrap();
        assert_eq!(seen, written[..seen.len()]);
    }
}
