//! State shared by the readers, the watches and the writer thread of a store.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use k1s_env::Env;
use k1s_store::{
    Error, Result, Revision, WatchRequest,
    feed::{Backfill, Backfilled, Feed},
};
use parking_lot::Mutex;

use crate::{options::DiskOptions, view::View};

/// Maximum retries of an unpinned read before it takes a snapshot.
const MAX_RETRIES: usize = 3;

pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) options: DiskOptions,
    pub(crate) feed: Feed,
    /// The newest synced snapshot. `None` when the store is closed.
    pub(crate) view: ArcSwapOption<View>,
    /// Why writes currently fail.
    pub(crate) write_error: Mutex<Option<Error>>,
}

impl Shared {
    /// Reads the newest snapshot on the caller's thread: mostly from memory, sometimes from disk.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&View) -> Result<T>) -> Result<T> {
        match &*self.view.load() {
            Some(view) => read(view),
            None => Err(Error::Closed),
        }
    }

    /// Reads at a revision, or the newest one if `None`. If the newest one is compacted meanwhile, the read
    /// is retried at a newer one.
    pub(crate) fn read_at<T>(&self, at: Option<Revision>, read: impl Fn(&View) -> Result<T>) -> Result<T> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let done = self.read(|view| {
                if attempts <= MAX_RETRIES {
                    return read(view);
                }
                // The read takes longer than the history reaches back. A copy of all heads does not age. The
                // copy may be ahead of the published state, so the read stays at `view.state`.
                let (pinned, _) = view.pinned();
                read(&View { state: view.state, ..pinned })
            });
            match done {
                Err(Error::Compacted { .. }) if at.is_none() => {}
                done => return done,
            }
        }
    }

    /// A read that may take long, on a thread that may block.
    pub(crate) async fn read_much<T: Send + 'static>(
        self: &Arc<Self>,
        name: &'static str,
        read: impl FnOnce(&View) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = self.clone();
        self.blocking(name, move || shared.read(read)).await
    }

    /// Runs `work` on a thread that may block.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let task = self.env.spawn_blocking(name, work);
        task.await.unwrap_or_else(|error| Err(Error::unavailable(error.to_string())))
    }
}

/// Serves watches from the log when the feed's ring no longer has the events.
pub(crate) struct Past(pub(crate) Arc<Shared>);

#[async_trait]
impl Backfill for Past {
    async fn backfill(&self, request: &WatchRequest) -> Result<Backfilled> {
        let request = request.clone();
        self.0.read_much("store-disk-history", move |view| view.backfill(&request)).await
    }
}
