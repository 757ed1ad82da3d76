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

use super::{cell::Cell, snapshots::Moments};
use crate::{Previous, Range, Revision};

/// The table by hash is in so many parts. A table that grows moves all it has at once: of a part, that is soon done.
const PARTS: usize = 256;

/// A part of the table that has room for no more than this does not shrink.
const MIN_CAPACITY: usize = 64;

/// All keys that have a value.
///
/// Reads and writes of single keys go by a hash, and touch the same few places in memory however many keys there are. The
/// order of the keys is a persistent set beside it, which changes only when a key is created or deleted; a snapshot of it
/// takes no time.
pub(super) struct Entries {
    hasher: Hasher,
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

/// Hashes keys, for one store. Seeded: who chooses keys does not know which of them meet in the table.
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
        // Bits in the middle: the tables themselves look at both ends.
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

    /// All cells in order. They show this moment for as long as it is pinned, see [`Moments`].
    pub(super) fn ordered(&self) -> Ordered {
        self.ordered.clone()
    }

    /// For how many keys the table has room.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.parts.iter().map(HashTable::capacity).sum()
    }

    pub(super) fn get(&self, key: &[u8], hash: Hash) -> Option<&Arc<Cell>> {
        self.parts[hash.part()].find(hash.0, |cell| cell.key() == key)
    }

    /// Gives `key` a value. Returns what it had, and the key as it is here: who keeps that for long shares its memory.
    pub(super) fn put(
        &mut self,
        key: &[u8],
        hash: Hash,
        value: Bytes,
        revision: Revision,
        moments: &Moments,
    ) -> (Bytes, Option<Previous>) {
        self.bytes += value.len() as u64;
        let Self { hasher, parts, ordered, .. } = self;
        let rehash = |cell: &Arc<Cell>| hasher.hash(cell.key()).0;
        match parts[hash.part()].entry(hash.0, |cell| cell.key() == key, rehash) {
            Entry::Occupied(found) => {
                let previous = moments.replace(found.get(), value, revision);
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

    /// Takes the value of `key` away, if it has one. Returns that, and the key as in [`put`](Self::put).
    pub(super) fn delete(
        &mut self,
        key: &[u8],
        hash: Hash,
        revision: Revision,
        moments: &Moments,
    ) -> Option<(Bytes, Previous)> {
        let Self { hasher, parts, ordered, .. } = self;
        let part = &mut parts[hash.part()];
        let (cell, _) = part.find_entry(hash.0, |cell| cell.key() == key).ok()?.remove();
        if part.capacity() > MIN_CAPACITY && part.len() < part.capacity() / 8 {
            part.shrink_to(part.len() * 2, |cell| hasher.hash(cell.key()).0);
        }
        ordered.0.remove(key);
        // The set may go on using the cell as a signpost: not with its value.
        let previous = moments.replace(&cell, Bytes::new(), revision);
        self.bytes -= (key.len() + previous.value.len()) as u64;
        Some((cell.key().clone(), previous))
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
