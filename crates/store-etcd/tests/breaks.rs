//! Histories of clients whose connections break.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use common::*;
use k1s_env::{Env, Task};
use k1s_store_conformance::{Backend, Fresh, linearizability, run_async};
use k1s_store_etcd::{EtcdOptions, testing::EtcdServer};

/// Stores behind a network that breaks.
struct Breaking;

/// Cuts all connections now and then.
struct Cutter(Task<()>);

impl Drop for Cutter {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[async_trait]
impl Backend for Breaking {
    async fn fresh(&self) -> Fresh {
        let env = Env::system();
        let server = common::server(&env).await.expect("etcd is installed");
        let proxy = Arc::new(Proxy::new(&env, &server.endpoint()).await);
        let endpoints = vec![proxy.endpoint.clone(); 2];
        let store = connect(&env, EtcdOptions { endpoints, ..server.options() }).await;
        let (pace, cut) = (env.clone(), proxy.clone());
        let cutter = Cutter(env.spawn("cutter", async move {
            // Not forever: many writes with unknown outcomes make the linearizability search very slow.
            for _ in 0..5 {
                pace.sleep(Duration::from_millis(10 + pace.random_below(40))).await;
                cut.cut().await;
            }
        }));
        Fresh::new(Arc::new(store)).keep((server, proxy, cutter))
    }
}

#[test]
fn histories_are_linearizable_though_connections_break() {
    if !EtcdServer::is_installed().unwrap() {
        return;
    }
    run_async(async {
        for seed in 0..3 {
            linearizability(&Breaking, seed, 4, 60).await;
        }
    });
}
