//! The request and the items of one watch.

use std::sync::Arc;

use bytes::Bytes;
use k1s_store::{Change, Revision};

/// One watch, from its opening to its end.
#[derive(Clone, Debug)]
pub struct Session {
    /// The watched prefix.
    pub prefix: Bytes,
    /// Where it began.
    pub start: Start,
    /// Whether it requested previous values.
    pub previous: bool,
    /// The yielded items, in order.
    pub items: Vec<Seen>,
    /// How it ended.
    pub end: End,
}

/// Where a watch began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// After this revision.
    After(Revision),
    /// At the newest revision, which was between these two when it was opened.
    Now {
        /// The newest revision known before the call.
        earliest: Revision,
        /// The newest revision known after it.
        latest: Revision,
    },
}

/// One item of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A change.
    Change(Arc<Change>),
    /// A progress mark.
    Mark(Revision),
}

impl Seen {
    /// The position of the watch after this item.
    pub fn revision(&self) -> Revision {
        match self {
            Self::Change(change) => change.revision(),
            Self::Mark(mark) => *mark,
        }
    }
}

/// How a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its reader dropped it.
    Dropped,
    /// It failed with [`Error::Compacted`](k1s_store::Error::Compacted) and this oldest revision.
    Compacted(Revision),
}

impl Session {
    /// Its changes, in order.
    pub fn changes(&self) -> impl Iterator<Item = &Arc<Change>> {
        self.items.iter().filter_map(|item| match item {
            Seen::Change(change) => Some(change),
            Seen::Mark(_) => None,
        })
    }

    /// The highest revision it reached.
    pub fn reached(&self) -> Option<Revision> {
        self.items.iter().map(Seen::revision).max()
    }

    /// The revision it effectively began after. A watch from now begins somewhere within its opening, which
    /// its first change narrows down.
    pub fn origin(&self) -> Revision {
        match self.start {
            Start::After(revision) => revision,
            Start::Now { latest, .. } => match self.changes().next() {
                Some(first) => latest.min(Revision::new(first.revision().get().saturating_sub(1))),
                None => latest,
            },
        }
    }

    /// A one-line description for evidence.
    pub(super) fn describe(&self) -> String {
        format!("the watch of \"{}\", {:?}, {:?}", self.prefix.escape_ascii(), self.start, self.end)
    }
}
