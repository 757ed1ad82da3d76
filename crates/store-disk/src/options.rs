//! What can be chosen about a disk store.

use std::time::Duration;

use k1s_store::feed::FeedOptions;

/// How a [`DiskStore`](crate::DiskStore) works. The defaults suit a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// History of at most so many revisions, for reads and watches of the past.
    pub history_revisions: u64,
    /// History of at most this age. After a restart, what is there counts as new.
    pub history_age: Duration,
    /// The log is in files of about so many bytes. The room of what nobody can read any more is given back a file at a
    /// time, and the last file is read when the store is opened.
    pub segment_bytes: u64,
    /// So much room is kept for a full disk: deletions, and what leads to them, go through as long as it lasts. 0 keeps none.
    pub reserve_bytes: u64,
    /// How many writes may wait for the disk; more of them wait outside.
    pub queued_writes: usize,
    /// After how long a write that the disk does not finish fails, its fate unknown.
    pub stall: Duration,
    /// The ring from which open watches are served.
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
