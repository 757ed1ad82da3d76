//! The recent changes, within bounds.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use imbl::Vector;
use smallvec::SmallVec;

use super::MemoryOptions;
use crate::{Change, Event, KeyValue, Previous, Range, Revision};

/// The changes after a revision, oldest first. Cloning is O(1).
#[derive(Clone)]
pub(super) struct History {
    /// Without gaps: the first one is the revision after `oldest`.
    changes: Vector<Arc<Change>>,
    oldest: Revision,
    /// Bytes of keys and values that only the history keeps alive.
    bytes: usize,
}

/// Changes that are no longer in the history. There may be many; they are freed outside of locks.
pub(super) type Forgotten = SmallVec<[Arc<Change>; 1]>;

impl History {
    pub(super) fn new(oldest: Revision) -> Self {
        Self { changes: Vector::new(), oldest, bytes: 0 }
    }

    /// The history begins after this revision.
    pub(super) fn oldest(&self) -> Revision {
        self.oldest
    }

    /// Adds the change of the next revision.
    pub(super) fn push(&mut self, change: Arc<Change>) {
        debug_assert_eq!(change.revision().get(), self.oldest.get() + self.changes.len() as u64 + 1);
        self.bytes += change.superseded_bytes();
        self.changes.push_back(change);
    }

    /// Enforces the bounds.
    pub(super) fn forget(&mut self, options: &MemoryOptions) -> Forgotten {
        let mut forgotten = Forgotten::new();
        while self.changes.len() > options.history_revisions || self.bytes > options.history_bytes {
            forgotten.extend(self.forget_first());
        }
        forgotten
    }

    /// Compacts to `revision`.
    pub(super) fn forget_through(&mut self, revision: Revision) -> Forgotten {
        let mut forgotten = Forgotten::new();
        while self.oldest < revision {
            forgotten.extend(self.forget_first());
        }
        forgotten
    }

    fn forget_first(&mut self) -> Option<Arc<Change>> {
        let change = self.changes.pop_front()?;
        self.oldest = change.revision();
        self.bytes -= change.superseded_bytes();
        Some(change)
    }

    /// The changes after `revision`.
    pub(super) fn after(&self, revision: Revision) -> impl Iterator<Item = &Arc<Change>> {
        let known = revision.get().saturating_sub(self.oldest.get());
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        self.changes.iter().skip(known.min(self.changes.len()))
    }

    /// The value of `key` at `revision`, if it changed since.
    pub(super) fn replaced_since(&self, key: &[u8], revision: Revision) -> Option<Option<KeyValue>> {
        let mut events = self.after(revision).flat_map(|change| change.events());
        events.find(|event| event.key == key).map(Event::replaced)
    }

    /// The values at `revision` of the keys of `range` that changed since.
    pub(super) fn all_replaced_since(
        &self,
        range: &Range,
        revision: Revision,
    ) -> BTreeMap<Bytes, Option<KeyValue>> {
        let first = range.first_key();
        let mut then = BTreeMap::new();
        for event in self.after(revision).flat_map(|change| change.events()) {
            if event.key.starts_with(&range.prefix) && event.key >= first {
                then.entry(event.key.clone()).or_insert_with(|| event.replaced());
            }
        }
        then
    }
}

impl Change {
    /// Bytes that the history keeps alive: keys and values that the change replaced.
    fn superseded_bytes(&self) -> usize {
        self.events()
            .iter()
            .filter_map(|event| Some(event.key.len() + event.previous.as_ref()?.value.len()))
            .sum()
    }
}

impl Event {
    /// The previous values.
    fn replaced(&self) -> Option<KeyValue> {
        let Previous { value, revision } = self.previous.clone()?;
        Some(KeyValue { key: self.key.clone(), value, revision })
    }
}
