//! Storage of the keys: each key once, in a slot that does not change while the key is in the queue.

use std::hash::{BuildHasher, Hash, RandomState};

use hashbrown::HashTable;
use k1s_env::Instant;

use super::{cause::Causes, flows::FlowIndex};

/// A slot's number.
pub(super) type Slot = u32;

/// No slot.
pub(super) const NIL: Slot = Slot::MAX;

/// Number of slots per allocation: a growing queue does not move its entries. With more than one chunk, memory is released
/// when the last key is removed.
const CHUNK: usize = 1024;

/// A key and its state.
#[derive(Debug)]
pub(super) struct Entry<R> {
    pub(super) key: R,
    /// When it became ready, or is due. For a key that is being processed: the same for its next run, if there is one.
    pub(super) since: Instant,
    /// The causes of the next run.
    pub(super) causes: Causes,
    /// The priority of the next run.
    pub(super) priority: i32,
    /// The hash of the key, so that the table can grow and remove it without reading the key.
    pub(super) hash: u32,
    pub(super) tag: Tag,
    pub(super) place: Place,
}

/// The flow of a key, 0 in a queue without flows, and whether the key is, or was, delayed by the rate limiter. In one number,
/// so that an entry stays small.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag(u32);

impl Tag {
    const RETRY: u32 = 1 << 31;

    pub(super) fn new(flow: FlowIndex, retry: bool) -> Tag {
        let mut tag = Tag(flow & !Tag::RETRY);
        tag.set_retry(retry);
        tag
    }

    pub(super) fn flow(self) -> FlowIndex {
        self.0 & !Tag::RETRY
    }

    pub(super) fn is_retry(self) -> bool {
        self.0 & Tag::RETRY != 0
    }

    pub(super) fn set_retry(&mut self, retry: bool) {
        self.0 = self.flow() | if retry { Tag::RETRY } else { 0 };
    }
}

/// The state of a key.
#[derive(Debug)]
pub(super) enum Place {
    /// In the lists of ready keys.
    Ready(Links),
    /// In the set of due times; the number orders keys that are due at the same time.
    Delayed { number: u32 },
    /// Handed out.
    Processing(Processing),
}

/// The neighbours of a ready key in its two lists.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    /// Among the keys of its priority.
    pub(super) band: Link,
    /// Among all ready keys.
    pub(super) age: Link,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) prev: Slot,
    pub(super) next: Slot,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Processing {
    /// Its index in the list of keys that are processed.
    pub(super) position: u32,
    pub(super) again: Again,
    /// Whether it was removed from the queue meanwhile.
    pub(super) removed: bool,
}

/// Whether a key was added again while it is processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    No,
    /// Ready when the run ends.
    Ready,
    /// Due at `since`.
    Delayed,
}

#[derive(Debug)]
enum Cell<R> {
    Free { next: Slot },
    Used(Entry<R>),
}

/// The slots, and a table to find them by key.
#[derive(Debug)]
pub(super) struct Slots<R> {
    /// All full but the last.
    chunks: Vec<Vec<Cell<R>>>,
    first_free: Slot,
    table: HashTable<Slot>,
    /// Names come from users; an unpredictable hasher prevents collision attacks. The order of the table is never
    /// visible.
    hasher: RandomState,
}

/// Widens a hash for the table, which uses both the highest and the lowest bits.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

impl<R> Slots<R> {
    pub(super) fn new() -> Slots<R> {
        Slots { chunks: Vec::new(), first_free: NIL, table: HashTable::new(), hasher: RandomState::new() }
    }

    /// Number of slots, used or free.
    pub(super) fn capacity(&self) -> Slot {
        let last = self.chunks.last().map_or(0, Vec::len);
        (self.chunks.len().saturating_sub(1) * CHUNK + last) as Slot
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Entry<R>> {
        match self.chunks.get(slot as usize / CHUNK)?.get(slot as usize % CHUNK) {
            Some(Cell::Used(entry)) => Some(entry),
            _ => None,
        }
    }

    fn cell_mut(&mut self, slot: Slot) -> &mut Cell<R> {
        &mut self.chunks[slot as usize / CHUNK][slot as usize % CHUNK]
    }

    /// The entry of a used slot. Slot numbers are held (by a list, the due times, an item) only while the slot is in use, so a
    /// free one is a bug of the queue.
    pub(super) fn entry(&self, slot: Slot) -> &Entry<R> {
        entry(&self.chunks, slot)
    }

    /// As [`entry`](Self::entry).
    pub(super) fn entry_mut(&mut self, slot: Slot) -> &mut Entry<R> {
        match self.cell_mut(slot) {
            Cell::Used(entry) => entry,
            Cell::Free { .. } => unreachable!("slot {slot} is free"),
        }
    }
}

fn entry<R>(chunks: &[Vec<Cell<R>>], slot: Slot) -> &Entry<R> {
    match &chunks[slot as usize / CHUNK][slot as usize % CHUNK] {
        Cell::Used(entry) => entry,
        Cell::Free { .. } => unreachable!("slot {slot} is free"),
    }
}

impl<R: Hash + Eq> Slots<R> {
    pub(super) fn hash(&self, key: &R) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    pub(super) fn find(&self, hash: u32, key: &R) -> Option<Slot> {
        let same = |slot: &Slot| {
            let entry = self.entry(*slot);
            entry.hash == hash && entry.key == *key
        };
        self.table.find(spread(hash), same).copied()
    }

    /// Stores a key that is not in the table.
    pub(super) fn insert(&mut self, entry: Entry<R>) -> Slot {
        let hash = spread(entry.hash);
        let slot = match self.first_free {
            NIL => self.push(Cell::Used(entry)),
            slot => {
                let freed = std::mem::replace(self.cell_mut(slot), Cell::Used(entry));
                if let Cell::Free { next } = freed {
                    self.first_free = next;
                }
                slot
            }
        };
        let chunks = &self.chunks;
        self.table.insert_unique(hash, slot, |slot| spread(self::entry(chunks, *slot).hash));
        slot
    }

    fn push(&mut self, cell: Cell<R>) -> Slot {
        let slot = self.capacity();
        assert!(slot < NIL, "a queue holds at most {NIL} keys");
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(cell),
            // The first chunk grows on demand: most queues are short.
            None => self.chunks.push(vec![cell]),
            Some(_) => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(cell);
                self.chunks.push(chunk);
            }
        }
        slot
    }

    /// Frees a used slot.
    pub(super) fn free(&mut self, slot: Slot) -> Entry<R> {
        let next = self.first_free;
        let Cell::Used(entry) = std::mem::replace(self.cell_mut(slot), Cell::Free { next }) else {
            unreachable!("slot {slot} is free")
        };
        self.first_free = slot;
        if let Ok(found) = self.table.find_entry(spread(entry.hash), |other| *other == slot) {
            found.remove();
        }
        if self.table.is_empty() && self.chunks.len() > 1 {
            self.chunks = Vec::new();
            self.first_free = NIL;
            self.table = HashTable::new();
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use k1s_env::Env;

    use super::*;
    use crate::ObjectKey;

    fn insert(slots: &mut Slots<u32>, key: u32) -> Slot {
        let since = Env::simulated(1).0.now();
        let (hash, place) = (slots.hash(&key), Place::Delayed { number: 0 });
        let causes = Causes::none();
        slots.insert(Entry { key, since, causes, priority: 0, hash, tag: Tag::new(0, false), place })
    }

    #[test]
    fn a_key_is_found_until_it_is_freed_and_its_slot_is_used_again() {
        let mut slots = Slots::new();
        let all: Vec<_> = (0..3000).map(|key| insert(&mut slots, key)).collect();
        assert!((0..3000).all(|key| slots.find(slots.hash(&key), &key) == Some(all[key as usize])));
        assert_eq!(slots.free(all[7]).key, 7);
        assert_eq!(slots.free(all[9]).key, 9);
        assert_eq!(slots.find(slots.hash(&7), &7), None);
        assert!(slots.get(all[7]).is_none());
        assert_eq!((insert(&mut slots, 3000), insert(&mut slots, 3001)), (all[9], all[7]));
        assert_eq!(slots.capacity(), 3000);
    }

    #[test]
    fn the_memory_of_many_keys_is_released_with_the_last() {
        let mut slots = Slots::new();
        let all: Vec<_> = (0..10_000).map(|key| insert(&mut slots, key)).collect();
        for slot in all {
            slots.free(slot);
        }
        assert_eq!((slots.capacity(), slots.chunks.capacity(), slots.table.capacity()), (0, 0, 0));
        assert_eq!(insert(&mut slots, 1), 0);
    }

    #[test]
    fn the_overhead_per_key_is_small() {
        assert!(size_of::<Cell<ObjectKey>>() <= size_of::<ObjectKey>() + 56);
    }
}
