//! What readers, watches and the writing thread of one store share.

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

/// So often somebody who reads the newest moment may be overtaken.
const ATTEMPTS: usize = 3;

pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) options: DiskOptions,
    pub(crate) feed: Feed,
    /// The newest moment that is synced. `None` when the store is closed.
    pub(crate) view: ArcSwapOption<View>,
    /// Why writes fail at the moment.
    pub(crate) trouble: Mutex<Option<Error>>,
}

impl Shared {
    /// Reads the newest moment. It runs on the caller's thread: mostly from memory, at times from disk.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&View) -> Result<T>) -> Result<T> {
        match &*self.view.load() {
            Some(view) => read(view),
            None => Err(Error::Closed),
        }
    }

    /// Reads a moment: the newest if none is given. If that is compacted while it is read, there is a newer one.
    pub(crate) fn read_at<T>(&self, at: Option<Revision>, read: impl Fn(&View) -> Result<T>) -> Result<T> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let done = self.read(|view| {
                if attempts <= ATTEMPTS {
                    return read(view);
                }
                // It takes longer than the history reaches back. From a copy of all heads, it may take as long as it wants.
                // They may be ahead of what everybody can see: it is the same moment that is read.
                let (pinned, _) = view.pinned();
                read(&View { state: view.state, ..pinned })
            });
            match done {
                Err(Error::Compacted { .. }) if at.is_none() => {}
                done => return done,
            }
        }
    }

    /// Reads more than a little, on a thread that may block.
    pub(crate) async fn read_much<T: Send + 'static>(
        self: &Arc<Self>,
        name: &'static str,
        read: impl FnOnce(&View) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = self.clone();
        self.blocking(name, move || shared.read(read)).await
    }

    /// Does something that may block, on a thread where that does no harm.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let task = self.env.spawn_blocking(name, work);
        task.await.unwrap_or_else(|error| Err(Error::unavailable(error.to_string())))
    }
}

/// Where watches find what is no longer in the feed's ring.
pub(crate) struct Past(pub(crate) Arc<Shared>);

#[async_trait]
impl Backfill for Past {
    async fn backfill(&self, request: &WatchRequest) -> Result<Backfilled> {
        let request = request.clone();
        self.0.read_much("store-disk-history", move |view| view.backfill(&request)).await
    }
}
