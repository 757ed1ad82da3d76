//! A store that counts calls, and can be made slow or broken.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use bytes::Bytes;
use k1s_env::Env;
use k1s_store::{
    Error, GetResult, MemoryStore, Range, RangeResult, Result, Revision, Stats, Store, Txn, Watch,
    WatchRequest,
};
use parking_lot::Mutex;
use tokio::sync::watch;

pub(crate) struct Spy {
    inner: MemoryStore,
    gets: Mutex<Vec<Bytes>>,
    gets_so_far: AtomicUsize,
    ranges: Mutex<Vec<Bytes>>,
    revisions: AtomicUsize,
    /// Number of requested transactions.
    written: AtomicUsize,
    /// Reads of keys with this prefix wait until it is removed; with an empty one, `revision` waits as well.
    held: watch::Sender<Option<&'static str>>,
    waiting: AtomicUsize,
    /// The number of transactions that still succeed.
    txns: Mutex<Option<usize>>,
}

impl Spy {
    pub(crate) fn new() -> Arc<Spy> {
        Arc::new(Spy {
            inner: MemoryStore::default(),
            gets: Mutex::default(),
            gets_so_far: AtomicUsize::new(0),
            ranges: Mutex::default(),
            revisions: AtomicUsize::new(0),
            written: AtomicUsize::new(0),
            held: watch::Sender::new(None),
            waiting: AtomicUsize::new(0),
            txns: Mutex::new(None),
        })
    }

    /// The keys read individually since the last call.
    pub(crate) fn take_gets(&self) -> Vec<Bytes> {
        std::mem::take(&mut *self.gets.lock())
    }

    /// The number of reads of exactly this prefix.
    pub(crate) fn ranges(&self, prefix: &str) -> usize {
        self.ranges.lock().iter().filter(|one| **one == prefix).count()
    }

    /// The number of reads of all kinds and of transactions so far.
    pub(crate) fn calls(&self) -> (usize, usize) {
        let reads = self.gets_so_far.load(Ordering::SeqCst) + self.ranges.lock().len() + self.revisions();
        (reads, self.written.load(Ordering::SeqCst))
    }

    pub(crate) fn revisions(&self) -> usize {
        self.revisions.load(Ordering::SeqCst)
    }

    /// Blocks reads of keys with a prefix, or unblocks all.
    pub(crate) fn hold(&self, prefix: Option<&'static str>) {
        self.held.send_replace(prefix);
    }

    /// The number of blocked reads.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Limits the number of further transactions that succeed, or lifts the limit.
    pub(crate) fn let_through(&self, txns: Option<usize>) {
        *self.txns.lock() = txns;
    }

    async fn wait(&self, key: &[u8]) {
        // Lets other tasks run: a store in memory never waits.
        Env::system().yield_now().await;
        let mut held = self.held.subscribe();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let free = |held: &Option<&str>| match held {
            None => true,
            Some("") => !key.is_empty(),
            Some(prefix) => !key.starts_with(prefix.as_bytes()),
        };
        held.wait_for(free).await.unwrap();
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Store for Spy {
    async fn revision(&self) -> Result<Revision> {
        self.revisions.fetch_add(1, Ordering::SeqCst);
        self.wait(b"").await;
        self.inner.revision().await
    }

    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<GetResult> {
        self.gets.lock().push(Bytes::copy_from_slice(key));
        self.gets_so_far.fetch_add(1, Ordering::SeqCst);
        self.wait(key).await;
        self.inner.get(key, at).await
    }

    async fn range(&self, range: Range) -> Result<RangeResult> {
        self.ranges.lock().push(range.prefix.clone());
        self.inner.range(range).await
    }

    async fn txn(&self, txn: Txn) -> Result<Revision> {
        self.written.fetch_add(1, Ordering::SeqCst);
        Env::system().yield_now().await;
        if let Some(left) = &mut *self.txns.lock() {
            if *left == 0 {
                return Err(Error::unavailable("the spy lets nothing through"));
            }
            *left -= 1;
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
