//! Options of a disk store.

use std::time::Duration;

use k1s_store::feed::FeedOptions;

/// Options of a [`DiskStore`](crate::DiskStore). The defaults suit a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// Maximum number of revisions kept as history, for reads and watches of the past.
    pub history_revisions: u64,
    /// Maximum age of the history. After a restart, existing history counts as new.
    pub history_age: Duration,
    /// Approximate size of a log file. Space is reclaimed one file at a time, and the last file is read when
    /// the store is opened.
    pub segment_bytes: u64,
    /// Space reserved for a full disk: deletions, and updates that lead to them, succeed while it lasts. 0
    /// reserves none.
    pub reserve_bytes: u64,
    /// Maximum number of writes queued for the disk; further callers wait to enqueue.
    pub queued_writes: usize,
    /// Time after which a write that the disk has not completed fails with an unknown outcome.
    pub stall: Duration,
    /// The ring buffer that serves open watches.
    pub feed: FeedOptions,
}

impl Default for DiskOptions {
    fn default() -> Self {
        Self {
            history_revisions: 100_000,
            history_age: Duration::from_secs(10 * 60),
            segment_bytes: 32 << 20,
            reserve_bytes: 4 << 20,
            queued_writes: 4096,
            stall: Duration::from_secs(30),
            feed: FeedOptions::default(),
        }
    }
}
