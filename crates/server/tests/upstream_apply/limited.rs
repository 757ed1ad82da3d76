//! A store that takes as much in a request as etcd does, which is less than the others take.

use async_trait::async_trait;
use k1s_store::{
    Error, GetResult, MemoryStore, Range, RangeResult, Result, Revision, Stats, Store, Txn, Watch,
    WatchRequest,
};

/// etcd's `--max-request-bytes`, if it is not set.
const LIMIT: usize = 3 << 19;

#[derive(Debug)]
pub(crate) struct Limited(pub(crate) MemoryStore);

#[async_trait]
impl Store for Limited {
    async fn revision(&self) -> Result<Revision> {
        self.0.revision().await
    }

    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<GetResult> {
        self.0.get(key, at).await
    }

    async fn range(&self, range: Range) -> Result<RangeResult> {
        self.0.range(range).await
    }

    async fn txn(&self, txn: Txn) -> Result<Revision> {
        match txn.size() {
            size if size > LIMIT => {
                Err(Error::TooLarge { what: "the transaction", size, limit: LIMIT, unit: "bytes" })
            }
            _ => self.0.txn(txn).await,
        }
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch> {
        self.0.watch(request).await
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        self.0.compact(revision).await
    }

    async fn stats(&self) -> Result<Stats> {
        self.0.stats().await
    }

    async fn close(&self) -> Result<()> {
        self.0.close().await
    }
}
