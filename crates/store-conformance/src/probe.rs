//! A watch with expectations.

use std::{sync::Arc, time::Duration};

use k1s_env::Env;
use k1s_store::{Change, Error, Result, Revision, Watch, WatchItem};

/// A watch read by a case. It panics instead of hanging when an item that is due does not come.
pub(super) struct Probe {
    watch: Watch,
    patience: Duration,
}

impl Probe {
    pub(super) fn new(watch: Watch, patience: Duration) -> Self {
        Self { watch, patience }
    }

    /// The next item or the end, one of which must be due.
    pub(super) async fn next(&mut self) -> Option<Result<WatchItem>> {
        match Env::system().timeout(self.patience, self.watch.next()).await {
            Ok(item) => item,
            Err(_) => panic!(
                "broken promise: an item that is due arrives\n  it yielded nothing for {:?}",
                self.patience
            ),
        }
    }

    /// The next change; unrequested marks may come before it.
    pub(super) async fn change(&mut self) -> Arc<Change> {
        loop {
            match self.next().await {
                Some(Ok(WatchItem::Change(change))) => return change,
                Some(Ok(WatchItem::Progress(_))) => {}
                other => panic!("broken promise: a change is due\n  the watch yielded {other:?}"),
            }
        }
    }

    /// The next `count` changes.
    pub(super) async fn changes(&mut self, count: usize) -> Vec<Arc<Change>> {
        let mut changes = Vec::with_capacity(count);
        while changes.len() < count {
            changes.push(self.change().await);
        }
        changes
    }

    pub(super) fn ask(&self) {
        self.watch.request_progress();
    }

    /// Requests a mark at `revision` or later; returns the changes before it, and the mark.
    pub(super) async fn mark(&mut self, revision: Revision) -> (Vec<Arc<Change>>, Revision) {
        self.ask();
        match self.until_mark(revision).await {
            (changes, Ok(mark)) => (changes, mark),
            (_, Err(error)) => panic!("broken promise: a mark is due\n  the watch ended with {error}"),
        }
    }

    /// Reads until a requested mark at `revision` or later, or until the watch fails.
    pub(super) async fn until_mark(&mut self, revision: Revision) -> (Vec<Arc<Change>>, Result<Revision>) {
        let mut changes = Vec::new();
        loop {
            match self.next().await {
                Some(Ok(WatchItem::Change(change))) => changes.push(change),
                Some(Ok(WatchItem::Progress(mark))) if mark >= revision => return (changes, Ok(mark)),
                Some(Ok(WatchItem::Progress(_))) => {}
                Some(Err(error)) => return (changes, Err(error)),
                None => return (changes, Err(Error::Closed)),
            }
        }
    }

    /// Checks that no change is due: a mark comes, and no change before it.
    pub(super) async fn quiet(&mut self, revision: Revision) {
        let (changes, mark) = self.mark(revision).await;
        assert!(
            changes.is_empty(),
            "broken promise: a watch yields each change under its prefix once\n  before the mark at {mark} came {changes:?}"
        );
    }

    /// Reads the remaining changes until the watch ends, which must be without an error.
    pub(super) async fn rest(self) -> Vec<Arc<Change>> {
        match self.until_end().await {
            (changes, None) => changes,
            (changes, Some(error)) => panic!(
                "broken promise: a watch of a closed store ends cleanly\n  it ended with {error} after {changes:?}"
            ),
        }
    }

    /// Reads the remaining changes until the watch ends; returns the error it ended with, if any.
    pub(super) async fn until_end(mut self) -> (Vec<Arc<Change>>, Option<Error>) {
        let mut changes = Vec::new();
        loop {
            match self.next().await {
                Some(Ok(WatchItem::Change(change))) => changes.push(change),
                Some(Ok(WatchItem::Progress(_))) => {}
                None => return (changes, None),
                Some(Err(error)) => return (changes, Some(error)),
            }
        }
    }
}
