//! The keys that have a value now: found by hash, and listed in order.

use std::{borrow::Borrow, cmp::Ordering, ops::Bound, sync::Arc};

use bytes::Bytes;
use hashbrown::{HashTable, hash_table::Entry};
use imbl::OrdSet;

use super::{cell::Cell, snapshots::Moments};
use crate::{Previous, Range, Revision};

/// The table by hash is in so many parts. A table that grows moves all it has at once: of a part, that is soon done.
const PARTS: usize = 1024;

/// All keys that have a value.
///
/// Reads and writes of single keys go by a hash, and touch the same few places in memory however many keys there are. The
/// order of the keys is a persistent set beside it, which changes only when a key is created or deleted; a snapshot of it
/// takes no time.
pub(super) struct Entries {
    parts: Box<[HashTable<Arc<Cell>>]>,
    ordered: Ordered,
    bytes: u64,
}

/// The cells of one moment, in the order of their keys.
#[derive(Clone, Default)]
pub(super) struct Ordered(OrdSet<Slot>);

/// A cell, ordered by its key. A write that creates or deletes a key and meets a snapshot copies the nodes on its way
/// through the set: one pointer for each cell in them is as little to copy as can be.
#[derive(Clone)]
struct Slot(Arc<Cell>);

/// The hash of a key: what all calls with that key are to be given.
#[derive(Clone, Copy)]
pub(super) struct Hash(pub(super) u64);

impl Hash {
    fn part(self) -> usize {
        // Bits that the tables themselves look at last.
        (self.0 >> 40) as usize % PARTS
    }
}

impl Entries {
    pub(super) fn new() -> Self {
        Self {
            parts: std::iter::repeat_with(HashTable::new).take(PARTS).collect(),
            ordered: Ordered::default(),
            bytes: 0,
        }
    }

    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.ordered.0.len()
    }

    /// Bytes of the keys and values.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All cells in order. Of a past moment only if that is pinned, see [`Moments`].
    pub(super) fn ordered(&self) -> Ordered {
        self.ordered.clone()
    }

    pub(super) fn get(&self, key: &[u8], hash: Hash) -> Option<&Arc<Cell>> {
        self.parts[hash.part()].find(hash.0, |cell| cell.key() == key)
    }

    /// Gives `key` a value; returns the key for the event and what it had.
    pub(super) fn put(
        &mut self,
        key: Bytes,
        hash: Hash,
        value: Bytes,
        revision: Revision,
        (moments, rehash): (&Moments, impl Fn(&[u8]) -> Hash),
    ) -> (Bytes, Option<Previous>) {
        self.bytes += value.len() as u64;
        let part = &mut self.parts[hash.part()];
        match part.entry(hash.0, |cell| *cell.key() == key, |cell| rehash(cell.key()).0) {
            Entry::Occupied(found) => {
                let previous = moments.replace(found.get(), value, revision);
                self.bytes -= previous.value.len() as u64;
                (key, Some(previous))
            }
            Entry::Vacant(place) => {
                let cell = Cell::new(&key, value, revision);
                let key = cell.key().clone();
                self.bytes += key.len() as u64;
                self.ordered.0.insert(Slot(cell.clone()));
                place.insert(cell);
                (key, None)
            }
        }
    }

    /// Takes the value of `key` away; returns what it had.
    pub(super) fn delete(
        &mut self,
        key: &[u8],
        hash: Hash,
        revision: Revision,
        moments: &Moments,
    ) -> Option<Previous> {
        let part = &mut self.parts[hash.part()];
        let (cell, _) = part.find_entry(hash.0, |cell| cell.key() == key).ok()?.remove();
        self.ordered.0.remove(key);
        // The set may go on using the cell as a signpost: not with its value.
        let previous = moments.replace(&cell, Bytes::new(), revision);
        self.bytes -= (key.len() + previous.value.len()) as u64;
        Some(previous)
    }
}

impl Ordered {
    /// The cells of the keys in `range`, whatever its limit.
    pub(super) fn within<'a>(&'a self, range: &'a Range) -> impl Iterator<Item = &'a Arc<Cell>> {
        let first = range.first_key();
        self.0
            .range::<_, [u8]>((Bound::Included(&first[..]), Bound::Unbounded))
            .map(|Slot(cell)| cell)
            .take_while(|cell| cell.key().starts_with(&range.prefix))
    }
}

impl Borrow<[u8]> for Slot {
    fn borrow(&self) -> &[u8] {
        self.0.key()
    }
}

impl Ord for Slot {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key().cmp(other.0.key())
    }
}

impl PartialOrd for Slot {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for Slot {}
