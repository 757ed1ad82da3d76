//! The health of the store.

use std::time::Duration;

use k1s_env::{Env, Instant};
use k1s_store::{Stats, Store};
use parking_lot::Mutex;

use crate::shared_call::SharedCall;

/// Checks the health of the store. Any client can cause checks, so concurrent callers share one.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    answers: SharedCall<Result<(), String>>,
    takes_writes: SharedCall<Result<(), String>>,
    /// The last statistics, and when they were read.
    stats: Mutex<Option<(Instant, Stats)>>,
}

/// Maximum age of the statistics of a shared store: etcd counts its keys one by one.
const STATS_AGE: Duration = Duration::from_secs(60);

impl Probe {
    /// Whether the store answers reads; otherwise why not.
    pub(crate) async fn answers(&self, store: &dyn Store) -> Result<(), String> {
        let ask = || async {
            let answer = store.revision().await;
            answer.map(|_| ()).map_err(|error| format!("the store does not answer: {error}"))
        };
        self.answers.call(ask).await
    }

    /// The store's statistics; those of a shared store may be a minute old.
    pub(crate) async fn stats(&self, env: &Env, store: &dyn Store) -> k1s_store::Result<Stats> {
        let now = env.now();
        if store.is_shared()
            && let Some((read, stats)) = &*self.stats.lock()
            && now - *read < STATS_AGE
        {
            return Ok(stats.clone());
        }
        let stats = store.stats().await?;
        *self.stats.lock() = Some((now, stats.clone()));
        Ok(stats)
    }

    /// Whether the store takes writes; otherwise why not.
    pub(crate) async fn takes_writes(&self, store: &dyn Store) -> Result<(), String> {
        self.takes_writes.call(|| async { store.health().await.map_err(|error| error.to_string()) }).await
    }
}
