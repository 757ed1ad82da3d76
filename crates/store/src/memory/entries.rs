//! The keys that have a value now: found by hash, and listed in order.

use std::{
    borrow::Borrow,
    cmp::Ordering,
    hash::{BuildHasher, RandomState},
    ops::Bound,
    sync::Arc,
};

use bytes::Bytes;
use hashbrown::{HashTable, hash_table::Entry};
use imbl::OrdSet;

use super::{cell::Cell, snapshots::Pins};
use crate::{Previous, Range, Revision};

/// Number of parts of the hash table. A table that grows moves all entries at once, which is short for a part.
const PARTS: usize = 256;

/// Minimum capacity of a part of the table: it does not shrink below this.
const MIN_CAPACITY: usize = 64;

/// All keys that have a value.
///
/// Single keys are read and written by hash, which touches the same few places in memory however many keys there are. The
/// order of the keys is in a persistent set, which changes only when a key is created or deleted, and has O(1) snapshots.
pub(super) struct Entries {
    hasher: Hasher,
    parts: Box<[HashTable<Arc<Cell>>]>,
    ordered: Ordered,
    bytes: u64,
}

/// The cells of a snapshot, in the order of their keys.
#[derive(Clone, Default)]
pub(super) struct Ordered(OrdSet<Slot>);

/// A cell, ordered by its key. A write that creates or deletes a key while there is a snapshot copies nodes of the
/// set: one pointer per cell keeps that small.
#[derive(Clone)]
struct Slot(Arc<Cell>);

/// Hashes keys, for one store. Seeded, so that a client cannot choose keys that collide.
#[derive(Clone, Default)]
pub(super) struct Hasher(RandomState);

/// The hash of a key by the store's [`Hasher`].
#[derive(Clone, Copy)]
pub(super) struct Hash(u64);

impl Hasher {
    pub(super) fn hash(&self, key: &[u8]) -> Hash {
        Hash(self.0.hash_one(key))
    }
}

impl Hash {
    fn part(self) -> usize {
        // Bits in the middle: the tables themselves use both ends.
        (self.0 >> 40) as usize % PARTS
    }
}

impl Entries {
    pub(super) fn new(hasher: Hasher) -> Self {
        Self {
            hasher,
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

    /// All cells in order. They have this revision's values for as long as it is pinned, see [`Pins`].
    pub(super) fn ordered(&self) -> Ordered {
        self.ordered.clone()
    }

    /// Capacity of the table.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.parts.iter().map(HashTable::capacity).sum()
    }

    pub(super) fn get(&self, key: &[u8], hash: Hash) -> Option<&Arc<Cell>> {
        self.parts[hash.part()].find(hash.0, |cell| cell.key() == key)
    }

    /// Sets the value of `key`. Returns the previous one, and the stored key, whose memory callers share.
    pub(super) fn put(
        &mut self,
        key: &[u8],
        hash: Hash,
        value: Bytes,
        revision: Revision,
        pins: &Pins,
    ) -> (Bytes, Option<Previous>) {
        self.bytes += value.len() as u64;
        let Self { hasher, parts, ordered, .. } = self;
        let rehash = |cell: &Arc<Cell>| hasher.hash(cell.key()).0;
        match parts[hash.part()].entry(hash.0, |cell| cell.key() == key, rehash) {
            Entry::Occupied(found) => {
                let previous = pins.replace(found.get(), value, revision);
                self.bytes -= previous.value.len() as u64;
                (found.get().key().clone(), Some(previous))
            }
            Entry::Vacant(place) => {
                let cell = Cell::new(key, value, revision);
                let key = cell.key().clone();
                self.bytes += key.len() as u64;
                ordered.0.insert(Slot(cell.clone()));
                place.insert(cell);
                (key, None)
            }
        }
    }

    /// Deletes `key`, if it has a value. Returns that, and the key as in [`put`](Self::put).
    pub(super) fn delete(
        &mut self,
        key: &[u8],
        hash: Hash,
        revision: Revision,
        pins: &Pins,
    ) -> Option<(Bytes, Previous)> {
        let Self { hasher, parts, ordered, .. } = self;
        let part = &mut parts[hash.part()];
        let (cell, _) = part.find_entry(hash.0, |cell| cell.key() == key).ok()?.remove();
        if part.capacity() > MIN_CAPACITY && part.len() < part.capacity() / 8 {
            part.shrink_to(part.len() * 2, |cell| hasher.hash(cell.key()).0);
        }
        ordered.0.remove(key);
        // Key only: the set may keep the cell as an inner node, so its value is released.
        let previous = pins.replace(&cell, Bytes::new(), revision);
        self.bytes -= (key.len() + previous.value.len()) as u64;
        Some((cell.key().clone(), previous))
    }
}

impl Ordered {
    /// The cells of the keys in `range`, ignoring its limit.
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
