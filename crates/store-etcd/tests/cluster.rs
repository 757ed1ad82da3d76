//! A cluster of three members that loses its leader.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::*;
use k1s_env::Env;
use k1s_store::{Error, Store, WatchRequest};
use k1s_store_etcd::{
    EtcdOptions,
    testing::{EtcdServer, ServerOptions},
};

/// Three members of one cluster.
async fn cluster(env: &Env) -> Option<Vec<EtcdServer>> {
    // Below the system's range of ephemeral ports.
    let port = || {
        let mut ports = std::iter::repeat_with(|| 15_000 + u16::try_from(env.random_below(17_000)).unwrap());
        ports.find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
    };
    let urls: Vec<_> = (0..3).map(|_| format!("http://127.0.0.1:{}", port())).collect();
    let names: Vec<_> = urls.iter().enumerate().map(|(n, url)| format!("m{n}={url}")).collect();
    let members = urls.iter().enumerate().map(|(n, url)| {
        let args = vec![
            format!("--name=m{n}"),
            format!("--listen-peer-urls={url}"),
            format!("--initial-advertise-peer-urls={url}"),
            format!("--initial-cluster={}", names.join(",")),
            "--heartbeat-interval=20".to_owned(),
            "--election-timeout=200".to_owned(),
        ];
        EtcdServer::start_with(env, ServerOptions { args, ..ServerOptions::default() })
    });
    futures_util::future::join_all(members).await.into_iter().collect::<Result<Option<_>, _>>().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_and_watches_continue_when_a_leader_is_lost() {
    let env = Env::system();
    let Some(mut members) = cluster(&env).await else { return };
    let endpoints: Vec<_> = members.iter().map(EtcdServer::endpoint).collect();
    let options =
        EtcdOptions { endpoints, request_timeout: Duration::from_secs(1), ..hasty(members[0].options()) };
    let store = connect(&env, options).await;
    let mut watch = store.watch(WatchRequest::prefix("/").previous(true)).await.unwrap();
    let (mut acknowledged, mut begun) = (Vec::new(), 0);
    // Each member is down for a while: one of them is the leader, one serves the store.
    for lost in &mut members {
        lost.kill().unwrap();
        let until = begun + 20;
        let mut written = 0;
        while begun < until || written < 10 {
            begun += 1;
            match within(&env, put(&store, "/a", &format!("{begun}"))).await {
                Ok(revision) => {
                    acknowledged.push(revision);
                    written += 1;
                }
                Err(Error::Unavailable { .. }) => env.sleep(Duration::from_millis(20)).await,
                Err(other) => panic!("{other}"),
            }
        }
        lost.restart().await.unwrap();
    }
    let last = put_with_retries(&env, &store, "/a", "last").await;
    acknowledged.push(last);

    // Every acknowledged write was delivered once and in order, each directly after the one it replaced.
    let (mut seen, mut value) = (Vec::new(), None);
    while seen.last() != Some(&last) {
        let change = change(&env, &mut watch).await;
        let event = &change.events()[0];
        assert_eq!(event.previous.as_ref().map(|previous| previous.revision), seen.last().copied());
        assert_eq!(event.previous.as_ref().map(|previous| previous.value.clone()), value);
        value = event.value.clone();
        seen.push(change.revision());
    }
    assert!(seen.is_sorted());
    assert!(acknowledged.iter().all(|revision| seen.contains(revision)));
}
