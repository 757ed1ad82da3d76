//! A store whose writes a test can delay.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use k1s::{
    env::Env,
    store::{
        GetResult, MemoryOptions, MemoryStore, Range, RangeResult, Result, Revision, Stats, Store, Txn,
        Watch, WatchRequest,
    },
};
use tokio::sync::Semaphore;

/// Delays its next write until the test lets it through, if requested.
pub(crate) struct Slow {
    inner: MemoryStore,
    /// One permit per waiting write.
    pub(crate) arrived: Semaphore,
    /// One permit per write that may proceed.
    pub(crate) open: Semaphore,
    pub(crate) slow: AtomicBool,
}

pub(crate) fn store(env: &Env) -> Slow {
    Slow {
        inner: MemoryStore::new(env.clone(), MemoryOptions::default()),
        arrived: Semaphore::new(0),
        open: Semaphore::new(0),
        slow: AtomicBool::new(false),
    }
}

#[async_trait]
impl Store for Slow {
    async fn revision(&self) -> Result<Revision> {
        self.inner.revision().await
    }

    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<GetResult> {
        self.inner.get(key, at).await
    }

    async fn range(&self, range: Range) -> Result<RangeResult> {
        self.inner.range(range).await
    }

    async fn txn(&self, txn: Txn) -> Result<Revision> {
        if self.slow.swap(false, Ordering::SeqCst) {
            self.arrived.add_permits(1);
            if let Ok(permit) = self.open.acquire().await {
                permit.forget();
            }
        }
        self.inner.txn(txn).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch> {
        self.inner.watch(request).await
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        self.inner.compact(revision).await
    }

    async fn stats(&self) -> Result<Stats> {
        self.inner.stats().await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}
