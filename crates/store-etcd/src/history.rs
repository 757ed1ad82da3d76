//! etcd's history, for watches that lag behind the feed's ring.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use k1s_env::{Task, TaskError};
use k1s_store::{
    Error, Result, Revision, WatchRequest,
    feed::{Backfill, Backfilled},
};

use crate::{
    backoff::Backoff,
    events::{Pieces, Step, steps},
    failure::Failure,
    keys::revision,
    shared::{Shared, glance},
    store::EtcdStore,
};

/// Maximum changes, and approximate maximum bytes, per page.
const PAGE_CHANGES: usize = 4096;
const PAGE_BYTES: usize = 4 << 20;

/// How long a watch of history may be silent before a fence is written: there may be no event for it. etcd serves lagging
/// watches every 100 ms.
const PATIENCE: Duration = Duration::from_millis(250);

/// The history of a store. It keeps the store open while a watch needs it.
pub(crate) struct History {
    store: EtcdStore,
}

impl History {
    pub(crate) fn new(store: EtcdStore) -> Self {
        Self { store }
    }
}

impl Drop for History {
    /// With the last watch of a closed store, the connections for history are no longer needed.
    fn drop(&mut self) {
        let shared = self.store.shared();
        if shared.stop.is_cancelled() && shared.feed.watches() == 0 {
            shared.stop_history.cancel();
            shared.history_connections.abort();
        }
    }
}

#[async_trait]
impl Backfill for History {
    async fn backfill(&self, request: &WatchRequest) -> Result<Backfilled> {
        let shared = self.store.shared().clone();
        let request = request.clone();
        let env = shared.env.clone();
        // In its own task: a watch that is not read must not hold a permit for reading history, nor room on the
        // connection.
        let reading = env.spawn("etcd-history", async move { read(&shared, &request).await });
        AbortOnDrop(reading).await.unwrap_or_else(|error| match error {
            TaskError::Cancelled { .. } => Err(Error::Closed),
            TaskError::Panicked { message, .. } => Err(Error::unavailable(message)),
        })
    }
}

/// Why a page could not be read.
enum Trouble {
    /// Retry.
    Broken(String),
    /// Permanent: there is no such page.
    Fatal(Error),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        if failure.may_pass() {
            Self::Broken(failure.of_read().to_string())
        } else {
            Self::Fatal(failure.of_read())
        }
    }
}

/// A page of history; waits for etcd if it is unavailable.
async fn read(shared: &Shared, request: &WatchRequest) -> Result<Backfilled> {
    let page = async {
        let Ok(_reader) = shared.history_readers.acquire().await else { return Err(Error::Closed) };
        let mut backoff = Backoff::default();
        loop {
            shared.check_fault()?;
            let mut page = Page::new(request, shared.feed.revision());
            match read_page(shared, request, &mut page).await {
                Ok(()) => return Ok(page.page),
                // What has arrived is complete up to there. Starting over each time might never finish.
                Err(Trouble::Broken(_)) if page.has_begun() => return Ok(page.page),
                Err(Trouble::Fatal(error)) => return Err(error),
                // A closed store does not wait for etcd to come back.
                Err(Trouble::Broken(_)) if shared.stop.is_cancelled() => return Err(Error::Closed),
                Err(Trouble::Broken(reason)) => {
                    tracing::debug!(reason, "reading etcd's history again");
                    backoff.pause(&shared.env).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = shared.stop_history.cancelled() => Err(Error::Closed),
        page = page => page,
    }
}

/// Reads through a watch from the request's revision up to where the feed is now; the feed has everything later.
async fn read_page(shared: &Shared, request: &WatchRequest, page: &mut Page<'_>) -> Result<(), Trouble> {
    let after = request.after.unwrap_or_default();
    let target = page.target;
    // From `after` itself, which is known already, so that etcd reports compaction exactly: it would accept a watch
    // that starts at the compacted revision, and leave out the deletions there.
    let create = shared.watch_everything(after, request.previous);
    let mut stream = shared.history.watch(create).await?;
    let mut pieces = Pieces::default();
    let mut silence_ends = shared.env.now() + shared.options.request_timeout;
    loop {
        let response = match shared.env.timeout(PATIENCE, stream.next()).await {
            Ok(response) => {
                silence_ends = shared.env.now() + shared.options.request_timeout;
                response?
            }
            Err(_) if shared.env.now() >= silence_ends => {
                return Err(Trouble::Broken("etcd is silent about its history".into()));
            }
            Err(_) => {
                // There may be no event under the root up to the target: the fence is one.
                if let Err(error) = shared.fence_after(&shared.history, target).await {
                    tracing::debug!(%error, "reading etcd's history cannot be hurried");
                }
                continue;
            }
        };
        if let Some(header) = response.header {
            shared.check_cluster(header).map_err(Trouble::Fatal)?;
        }
        if response.canceled {
            return Err(match response.compact_revision {
                0 => Trouble::Broken(format!("etcd cancelled the watch: {}", response.cancel_reason)),
                oldest => {
                    shared.forget_before(revision(oldest));
                    Trouble::Fatal(Error::Compacted { requested: after, oldest: revision(oldest) })
                }
            });
        }
        let Some(events) = pieces.add(response) else { continue };
        // etcd reads its history in parts, and from the second on it does not report compaction exactly either.
        if page.has_begun()
            && let Err(error) = shared.range_once(glance(&shared.keys), Some(page.page.through)).await
        {
            tracing::debug!(%error, "what follows in etcd's history is not certain");
            return Ok(());
        }
        for step in steps(&shared.keys, events, &|_, _| None).map_err(Trouble::Broken)? {
            match page.add(step) {
                Added::More => {}
                Added::Full => return Ok(()),
                // etcd leaves out previous values that are compacted.
                Added::PreviousMissing => return Err(Trouble::Fatal(shared.compacted(after).await)),
            }
        }
    }
}

/// A page that is being filled.
struct Page<'a> {
    request: &'a WatchRequest,
    target: Revision,
    bytes: usize,
    page: Backfilled,
}

#[derive(Debug, PartialEq, Eq)]
enum Added {
    More,
    Full,
    PreviousMissing,
}

impl<'a> Page<'a> {
    fn new(request: &'a WatchRequest, target: Revision) -> Self {
        let page = Backfilled { changes: Vec::new(), through: request.after.unwrap_or_default() };
        Self { request, target, bytes: 0, page }
    }

    /// Whether it goes beyond where it was asked to begin.
    fn has_begun(&self) -> bool {
        Some(self.page.through) > self.request.after
    }

    fn add(&mut self, step: Step) -> Added {
        let Step { revision, change, previous } = step;
        if revision <= self.page.through {
            return Added::More;
        }
        if revision <= self.target
            && let Some(change) = change.and_then(|change| Arc::new(change).under(&self.request.prefix))
        {
            if self.request.previous && !previous {
                return Added::PreviousMissing;
            }
            self.bytes += change.size();
            self.page.changes.push(change);
        }
        // Never beyond the target: the feed would deliver the rest once more.
        self.page.through = revision.min(self.target);
        let full = self.page.changes.len() >= PAGE_CHANGES || self.bytes >= PAGE_BYTES;
        if full || revision >= self.target { Added::Full } else { Added::More }
    }
}

/// A task that is aborted when it is dropped.
struct AbortOnDrop<T>(Task<T>);

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use k1s_store::{Change, Event};

    use super::*;

    fn step(number: u64, key: Option<&'static str>) -> Step {
        let revision = Revision::new(number);
        let change = key.map(|key| {
            let event = Event { key: key.into(), value: Some("v".into()), created: true, previous: None };
            Change::new(revision, [event])
        });
        Step { revision, change, previous: number != 8 }
    }

    #[test]
    fn a_page_has_what_is_under_the_prefix_and_ends_at_the_target() {
        let request = WatchRequest::prefix("/a/").after(Revision::new(5));
        let mut page = Page::new(&request, Revision::new(9));
        assert_eq!(page.add(step(5, Some("/a/known"))), Added::More);
        assert_eq!(page.add(step(6, Some("/a/1"))), Added::More);
        assert_eq!(page.add(step(7, Some("/b/1"))), Added::More);
        assert_eq!(page.add(step(8, Some("/a/2"))), Added::More);
        assert_eq!(page.add(step(11, Some("/a/later"))), Added::Full);
        let revisions: Vec<_> = page.page.changes.iter().map(|change| change.revision().get()).collect();
        assert_eq!(revisions, [6, 8]);
        assert_eq!(page.page.through, Revision::new(9));
    }

    #[test]
    fn a_page_without_the_previous_values_that_were_asked_for_is_no_page() {
        let request = WatchRequest::prefix("/a/").after(Revision::new(5)).previous(true);
        let mut page = Page::new(&request, Revision::new(9));
        assert_eq!(page.add(step(8, Some("/b/2"))), Added::More);
        let mut page = Page::new(&request, Revision::new(9));
        assert_eq!(page.add(step(8, Some("/a/2"))), Added::PreviousMissing);
    }

    #[test]
    fn a_fence_ends_a_page_without_changes() {
        let request = WatchRequest::prefix("").after(Revision::new(5));
        let mut page = Page::new(&request, Revision::new(9));
        assert_eq!(page.add(step(12, None)), Added::Full);
        assert_eq!(page.page, Backfilled { changes: Vec::new(), through: Revision::new(9) });
    }
}
