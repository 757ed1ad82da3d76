//! A handle to a store that is shared with other runtimes: closing it closes only this handle.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use k1s_store::{
    Error, GetResult, Range, RangeResult, Result, Revision, Stats, Store, Txn, Watch, WatchRequest,
};
use tokio_util::sync::CancellationToken;

/// A store whose [`close`](Store::close) ends the watches and calls through this handle, and leaves the store
/// open.
pub(super) struct SharedStore {
    store: Arc<dyn Store>,
    closed: CancellationToken,
}

impl SharedStore {
    pub(super) fn new(store: Arc<dyn Store>) -> SharedStore {
        SharedStore { store, closed: CancellationToken::new() }
    }

    fn open(&self) -> Result<&dyn Store> {
        if self.closed.is_cancelled() { Err(Error::Closed) } else { Ok(&*self.store) }
    }
}

#[async_trait]
impl Store for SharedStore {
    async fn revision(&self) -> Result<Revision> {
        self.open()?.revision().await
    }

    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<GetResult> {
        self.open()?.get(key, at).await
    }

    async fn range(&self, range: Range) -> Result<RangeResult> {
        self.open()?.range(range).await
    }

    async fn txn(&self, txn: Txn) -> Result<Revision> {
        self.open()?.txn(txn).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch> {
        let watch = self.open()?.watch(request).await?;
        let progress = watch.progress_handle();
        Ok(Watch::new(watch.take_until(self.closed.clone().cancelled_owned()), progress))
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        self.open()?.compact(revision).await
    }

    async fn stats(&self) -> Result<Stats> {
        self.open()?.stats().await
    }

    async fn health(&self) -> Result<()> {
        self.open()?.health().await
    }

    async fn close(&self) -> Result<()> {
        self.closed.cancel();
        Ok(())
    }

    fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    async fn is_stale(&self, key: &[u8]) -> Result<bool> {
        self.open()?.is_stale(key).await
    }
}
