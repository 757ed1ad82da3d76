//! What the suite wants to know of a backend.

use std::time::Duration;

use async_trait::async_trait;

use super::Fresh;

/// A backend as the suite sees it: a maker of empty stores.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// An empty store of its own. It is called within a tokio runtime, perhaps several times in one case.
    async fn fresh(&self) -> Fresh;

    /// An empty store that keeps a history of about `revisions` revisions and no more, or `None` (and the
    /// case that needs one is skipped) for a backend that cannot be told.
    async fn bounded(&self, revisions: usize) -> Option<Fresh> {
        let _ = revisions;
        None
    }

    /// How much the suite should do, and what it may not assume.
    fn profile(&self) -> Profile {
        Profile::default()
    }
}

/// How much the suite does with a backend, and what it may not assume of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Others write to the same server outside of the store's key space, so revisions may jump. They must not
    /// compact it.
    pub shared: bool,
    /// Keys of the case that reads a large range page by page.
    pub many_keys: usize,
    /// Writes of the cases that write a lot.
    pub many_writes: usize,
    /// Seeds for each of the random searches.
    pub seeds: u64,
    /// Operations in each of the random searches.
    pub steps: usize,
    /// So many of the last changes an open watch still yields after the store was closed. One that is further
    /// behind may end with [`Error::Closed`](k1s_store::Error::Closed) instead.
    pub after_close: usize,
    /// How long the suite waits for one item of a watch that is due before it calls that a broken promise.
    /// Only a failing case ever waits that long.
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
