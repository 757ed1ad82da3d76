//! The interface between the suite and a backend.

use std::time::Duration;

use async_trait::async_trait;

use super::Fresh;

/// A backend under test: creates empty stores.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Creates an empty store. Called within a tokio runtime, possibly several times in one case.
    async fn fresh(&self) -> Fresh;

    /// Creates an empty store that keeps about `revisions` revisions of history, or `None` if the backend has
    /// no such limit; the case that needs one is then skipped.
    async fn bounded(&self, revisions: usize) -> Option<Fresh> {
        let _ = revisions;
        None
    }

    /// The amount of work the suite does, and the assumptions it may not make.
    fn profile(&self) -> Profile {
        Profile::default()
    }
}

/// The amount of work the suite does with a backend, and the assumptions it may not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Other clients write to the same server outside of the store's key space, so revisions may jump. They
    /// must not compact it.
    pub shared: bool,
    /// Number of keys in the case that reads a large range page by page.
    pub many_keys: usize,
    /// Number of writes in the write-heavy cases.
    pub many_writes: usize,
    /// Number of seeds for each random search.
    pub seeds: u64,
    /// Number of operations in each random search.
    pub steps: usize,
    /// Number of latest changes that an open watch still yields after the store was closed. A watch lagging
    /// further may end with [`Error::Closed`](k1s_store::Error::Closed) instead.
    pub after_close: usize,
    /// Maximum wait for a watch item that is due. Only a failing case ever waits that long.
    pub patience: Duration,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            shared: false,
            many_keys: 100_000,
            many_writes: 5_000,
            seeds: 4,
            steps: 300,
            after_close: 500,
            patience: Duration::from_secs(30),
        }
    }
}
