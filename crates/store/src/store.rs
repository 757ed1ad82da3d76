//! The trait every backend implements.

use async_trait::async_trait;
use bytes::Bytes;

use crate::{GetResult, Precondition, Range, RangeResult, Result, Revision, Stats, Txn, Watch, WatchRequest};

/// A store of bytes under keys, with revisions.
///
/// - A write is acknowledged when it is as durable as the backend makes it, and visible to reads and
///   watches only then. What is acknowledged is visible to every read that begins later.
/// - A read shows one moment, whole. A read at a revision shows that moment, however much was written since.
/// - A [`Watch`] keeps the promises listed there, and never slows a writer.
/// - Keys are ordered as bytes. What happens under one prefix costs the readers and watchers of another nothing.
/// - History is kept to a bound of the backend's options, and at least from [`Stats::oldest`] on.
///
/// `k1s_store_conformance` has a check for each of these.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The newest revision: that of the last acknowledged write, or later.
    async fn revision(&self) -> Result<Revision>;

    /// The value of a key now, or at a past revision.
    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<GetResult>;

    /// The entries under a prefix, in the order of their keys.
    async fn range(&self, range: Range) -> Result<RangeResult>;

    /// Carries out a transaction and returns its revision.
    ///
    /// One that turns out to change nothing (it only deletes what is not there) takes no revision
    /// and returns the newest one.
    async fn txn(&self, txn: Txn) -> Result<Revision>;

    /// Watches a prefix.
    async fn watch(&self, request: WatchRequest) -> Result<Watch>;

    /// Forgets the history before `revision`: afterwards, `revision` is the oldest that can be read
    /// and watched from. Compacting to where the store is compacted already changes nothing.
    async fn compact(&self, revision: Revision) -> Result<()>;

    /// What the store says about itself.
    async fn stats(&self) -> Result<Stats>;

    /// Whether the store answers and takes writes, as far as can be told without writing; the error says why not. It is cheap: a
    /// readiness check asks for it every few seconds.
    async fn health(&self) -> Result<()> {
        self.revision().await.map(|_| ())
    }

    /// Closes the store: what is acknowledged is safe, watches end, and later calls fail with
    /// [`Error::Closed`](crate::Error::Closed). Closing twice is fine.
    async fn close(&self) -> Result<()>;

    /// Whether other processes may use the same data at the same time. What only one of them may do is then a matter of an
    /// election.
    fn is_shared(&self) -> bool {
        false
    }

    /// Gives `key` its first value.
    async fn create(&self, key: Bytes, value: Bytes) -> Result<Revision> {
        self.txn(Txn::new().put(key, value, Precondition::Absent)).await
    }

    /// Replaces the value that revision `expected` gave to `key`.
    async fn update(&self, key: Bytes, value: Bytes, expected: Revision) -> Result<Revision> {
        self.txn(Txn::new().put(key, value, Precondition::Revision(expected))).await
    }

    /// Deletes the value that revision `expected` gave to `key`.
    async fn delete(&self, key: Bytes, expected: Revision) -> Result<Revision> {
        self.txn(Txn::new().delete(key, Precondition::Revision(expected))).await
    }
}
