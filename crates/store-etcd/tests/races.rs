//! Answers that are overtaken by others.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use k1s_env::Env;
use k1s_store::{Error, Store};

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
