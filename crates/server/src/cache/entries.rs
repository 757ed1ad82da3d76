//! The objects of a snapshot, in the order of their keys.

use std::{borrow::Borrow, cmp::Ordering, ops::Bound, sync::Arc};

use imbl::OrdSet;

use super::Entry;

/// A persistent map from keys to entries. A clone is a pointer; a change copies the nodes on its way, in which an
/// entry is a pointer too: the key is read in the entry itself.
#[derive(Clone, Default)]
pub(crate) struct Entries(OrdSet<Slot>);

#[derive(Clone)]
struct Slot(Arc<Entry>);

impl Entries {
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Arc<Entry>> {
        self.0.get(key).map(|slot| &slot.0)
    }

    /// Puts an entry in the place of the one with its key.
    pub(crate) fn insert(&mut self, entry: Arc<Entry>) {
        self.0.insert(Slot(entry));
    }

    pub(crate) fn remove(&mut self, key: &[u8]) {
        self.0.remove(key);
    }

    /// Whether nothing has changed from one to the other. `false` may be said of equal ones.
    pub(crate) fn is_same(&self, other: &Entries) -> bool {
        self.0.ptr_eq(&other.0)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.0.iter().map(|slot| &slot.0)
    }

    /// Those whose keys are not before `start` and begin with `prefix`.
    pub(crate) fn under<'a>(
        &'a self,
        prefix: &'a [u8],
        start: &[u8],
    ) -> impl Iterator<Item = &'a Arc<Entry>> {
        self.0
            .range::<_, [u8]>((Bound::Included(start), Bound::Unbounded))
            .map(|slot| &slot.0)
            .take_while(move |entry| entry.key.starts_with(prefix))
    }
}

impl Borrow<[u8]> for Slot {
    fn borrow(&self) -> &[u8] {
        &self.0.key
    }
}

impl Ord for Slot {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

impl PartialOrd for Slot {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for Slot {}
