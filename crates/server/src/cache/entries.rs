//! The objects of a snapshot, in the order of their keys.

use std::sync::Arc;

use super::{
    Entry,
    tree::{Keyed, Tree},
};

/// A persistent map from keys to entries; the key is read in the entry itself. A clone is a pointer.
#[derive(Clone, Default)]
pub(crate) struct Entries(Tree<Arc<Entry>>);

impl Keyed for Arc<Entry> {
    fn key(&self) -> &[u8] {
        &self.key
    }
}

impl Entries {
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Arc<Entry>> {
        self.0.get(key)
    }

    /// Inserts an entry, replacing the one with its key.
    pub(crate) fn insert(&mut self, entry: Arc<Entry>) {
        self.0.insert(entry);
    }

    pub(crate) fn remove(&mut self, key: &[u8]) {
        self.0.remove(key);
    }

    /// Whether both are the same by identity. May be `false` for equal ones.
    pub(crate) fn is_same(&self, other: &Entries) -> bool {
        self.0.is_same(&other.0)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.0.from(b"")
    }

    /// The entries whose keys are not before `start` and begin with `prefix`.
    pub(crate) fn under<'a>(&'a self, prefix: &[u8], start: &[u8]) -> impl Iterator<Item = &'a Arc<Entry>> {
        // Counted, which costs less than comparing the beginning of every key.
        self.0.from(start.max(prefix)).take(self.count_under(prefix, start))
    }

    /// The number of those entries, without visiting them.
    pub(crate) fn count_under(&self, prefix: &[u8], start: &[u8]) -> usize {
        let end = k1s_store::prefix_end(prefix).map_or(self.0.len(), |end| self.0.rank(&end));
        end.saturating_sub(self.0.rank(start.max(prefix)))
    }
}
