//! Answers that are overtaken by others.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::*;
use k1s_env::Env;
use k1s_store::{Error, Store, WatchItem, WatchRequest};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asking_for_a_revision_that_is_written_meanwhile_does_no_harm() {
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
    assert!(overtaken > 0, "this test never met the future");
}

/// etcd reads its history a thousand revisions at a time, every tenth of a second. If it is compacted between two of these to
/// the revision at which the second begins, and that is a deletion, then it is missing there without a word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_is_compacted_while_a_watch_catches_up_is_not_left_out() {
    let env = Env::system();
    let Some(server) = server(&env).await else { return };
    let raw = server.client().unwrap();
    let writer = connect(&env, server.options()).await;
    // The second part begins here. Whether it is read before it is compacted, or after, is a matter of luck.
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
