//! The conformance suite on a real etcd. Each case has its own server: some of them compact.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use k1s_env::{Env, Task};
use k1s_store::{Store, feed::FeedOptions};
use k1s_store_conformance::{Backend, Fresh, Profile};
use k1s_store_etcd::{
    EtcdOptions, EtcdStore,
    testing::{EtcdServer, RawClient},
};

/// How a store is opened, and whether etcd has other clients.
#[derive(Clone, Default)]
struct Etcd {
    change: Option<fn(EtcdOptions) -> EtcdOptions>,
    /// Whether another client writes to the same etcd all the time.
    crowded: bool,
}

#[async_trait]
impl Backend for Etcd {
    async fn fresh(&self) -> Fresh {
        let env = Env::system();
        let server = EtcdServer::start(&env).await.unwrap().expect("etcd is installed");
        let neighbour = self.crowded.then(|| Neighbour::new(&env, server.client().unwrap()));
        let server = Arc::new(server);
        let change = self.change.unwrap_or(|options| options);
        Fresh::reopenable(move || {
            let (env, server) = (env.clone(), server.clone());
            async move {
                let store = EtcdStore::connect(env, change(server.options())).await.unwrap();
                Arc::new(store) as Arc<dyn Store>
            }
        })
        .await
        .keep(neighbour)
    }

    fn profile(&self) -> Profile {
        // A write costs a round trip and a disk sync.
        let profile =
            Profile { many_keys: 5_000, many_writes: 1_000, seeds: 1, steps: 200, ..Profile::default() };
        Profile { shared: self.crowded, ..profile }
    }
}

/// A client that writes keys outside of the store's root.
struct Neighbour(Task<()>);

impl Neighbour {
    fn new(env: &Env, client: RawClient) -> Self {
        let pace = env.clone();
        Self(env.spawn("neighbour", async move {
            while client.put("/other/key", "value").await.is_ok() {
                pace.sleep(Duration::from_millis(5)).await;
            }
        }))
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A backend, or the end of the test if etcd is not installed.
macro_rules! on_etcd {
    ($etcd:expr) => {
        if EtcdServer::is_installed().unwrap() { $etcd } else { return }
    };
}

mod alone {
    use super::*;

    k1s_store_conformance::conformance_tests!(on_etcd!(Etcd::default()));
}

/// Revisions have gaps, and fences are needed.
mod in_a_crowd {
    use super::*;

    k1s_store_conformance::conformance_tests!(on_etcd!(Etcd { crowded: true, ..Etcd::default() }));
}

/// Watches find almost nothing in the ring, and read etcd's history; ranges take many pages.
mod with_little_memory {
    use super::*;

    fn little(options: EtcdOptions) -> EtcdOptions {
        EtcdOptions { feed: FeedOptions { changes: 4, bytes: 1 << 10 }, page: 3, ..options }
    }

    k1s_store_conformance::conformance_tests!(on_etcd!(Etcd { change: Some(little), ..Etcd::default() }));
}
