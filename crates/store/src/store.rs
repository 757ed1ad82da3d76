//! The trait every backend implements.

use async_trait::async_trait;
use bytes::Bytes;

use crate::{GetResult, Precondition, Range, RangeResult, Result, Revision, Stats, Txn, Watch, WatchRequest};

/// A store of bytes under keys, with revisions.
///
/// - A write is acknowledged when it is as durable as the backend makes it, and visible to reads and
///   watches only then. What is acknowledged is visible to every read that begins later.
/// - A read sees one revision, whole; by default the newest. Later writes do not affect a read at a revision.
/// - A [`Watch`] keeps the promises listed there, and never slows a writer.
/// - Keys are ordered as bytes. Changes under one prefix cost readers and watchers of another nothing.
/// - History is bounded by the backend's options; it is available from [`Stats::oldest`] on.
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
    /// A transaction that changes nothing (it only deletes absent keys) takes no revision
    /// and returns the newest one.
    async fn txn(&self, txn: Txn) -> Result<Revision>;

    /// Watches a prefix.
    async fn watch(&self, request: WatchRequest) -> Result<Watch>;

    /// Compacts the history before `revision`: afterwards, `revision` is the oldest that can be read
    /// and watched from. Compacting to an older revision changes nothing.
    async fn compact(&self, revision: Revision) -> Result<()>;

    /// Statistics of the store.
    async fn stats(&self) -> Result<Stats>;

    /// Whether the store answers and accepts writes, as far as is known without writing; the error says why not. Cheap: readiness
    /// checks call it every few seconds.
    async fn health(&self) -> Result<()> {
        self.revision().await.map(|_| ())
    }

    /// Closes the store: acknowledged writes are durable, watches end, and later calls fail with
    /// [`Error::Closed`](crate::Error::Closed). Closing twice is allowed.
    async fn close(&self) -> Result<()>;

    /// Whether other processes may use the same data at the same time. Work that only one of
    /// them may do then needs leader election.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether the value of `key` would be stored differently if it were written again as it is: with another key of encryption,
    /// say. Stores that transform nothing have no such values.
    async fn is_stale(&self, _key: &[u8]) -> Result<bool> {
        Ok(false)
    }

    /// Creates `key`; it must not exist.
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
