//! Where the keys are: each once, in a slot that stays the same as long as the key is there.

use std::hash::{BuildHasher, Hash, RandomState};

use hashbrown::HashTable;
use k1s_env::Instant;

use super::cause::Causes;

/// A slot's number.
pub(super) type Slot = u32;

/// No slot.
pub(super) const NIL: Slot = Slot::MAX;

/// Above this many slots, memory is given back when the last key goes.
const KEEP: usize = 4096;

/// A key, and what is known of it.
#[derive(Debug)]
pub(super) struct Entry<R> {
    pub(super) key: R,
    /// When it became ready, or is due. Of a key that is processed: the same for its next run, if there is one.
    pub(super) since: Instant,
    /// Of the next run.
    pub(super) causes: Causes,
    /// Of the next run.
    pub(super) priority: i32,
    /// Whether it waits, or waited, for the rate limiter.
    pub(super) retry: bool,
    pub(super) place: Place,
}

/// Where a key is in its life.
#[derive(Debug)]
pub(super) enum Place {
    /// In the lists of those that can be handed out.
    Ready(Links),
    /// In the order of due times; the number sorts those of the same moment.
    Delayed { number: u64 },
    /// Handed out.
    Processing(Processing),
}

/// A ready key's neighbours, in its two lists.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    /// Among those of its priority.
    pub(super) band: Link,
    /// Among all that are ready.
    pub(super) age: Link,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) prev: Slot,
    pub(super) next: Slot,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Processing {
    pub(super) started: Instant,
    /// Where it is in the list of those that are handed out.
    pub(super) position: u32,
    pub(super) again: Again,
    /// It was removed from the queue meanwhile.
    pub(super) removed: bool,
}

/// Whether a key that is processed was added meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    No,
    /// To be ready when the run ends.
    Ready,
    /// To be due at `since`.
    Delayed,
}

#[derive(Debug)]
enum Cell<R> {
    Free { next: Slot },
    Used(Entry<R>),
}

/// The slots, and a table that finds them by key.
#[derive(Debug)]
pub(super) struct Slots<R> {
    cells: Vec<Cell<R>>,
    first_free: Slot,
    table: HashTable<Slot>,
    /// Names come from users; a hasher they cannot predict keeps them from making all of them collide. The order of the
    /// table shows nowhere.
    hasher: RandomState,
}

impl<R> Slots<R> {
    pub(super) fn new() -> Slots<R> {
        Slots { cells: Vec::new(), first_free: NIL, table: HashTable::new(), hasher: RandomState::new() }
    }

    /// How many slots there are, used or free.
    pub(super) fn capacity(&self) -> Slot {
        self.cells.len() as Slot
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Entry<R>> {
        match self.cells.get(slot as usize) {
            Some(Cell::Used(entry)) => Some(entry),
            _ => None,
        }
    }

    /// The entry of a slot that is in use. Whoever holds the number of a slot (a list, the due times, an item) holds it only
    /// as long as it is used, so another one is a defect of the queue.
    pub(super) fn entry(&self, slot: Slot) -> &Entry<R> {
        match &self.cells[slot as usize] {
            Cell::Used(entry) => entry,
            Cell::Free { .. } => unreachable!("slot {slot} is free"),
        }
    }

    /// As [`entry`](Self::entry).
    pub(super) fn entry_mut(&mut self, slot: Slot) -> &mut Entry<R> {
        match &mut self.cells[slot as usize] {
            Cell::Used(entry) => entry,
            Cell::Free { .. } => unreachable!("slot {slot} is free"),
        }
    }
}

impl<R: Hash + Eq> Slots<R> {
    pub(super) fn hash(&self, key: &R) -> u64 {
        self.hasher.hash_one(key)
    }

    pub(super) fn find(&self, hash: u64, key: &R) -> Option<Slot> {
        self.table.find(hash, |slot| self.entry(*slot).key == *key).copied()
    }

    /// Stores a key that is not there, whose hash this is.
    pub(super) fn insert(&mut self, hash: u64, entry: Entry<R>) -> Slot {
        let slot = match self.first_free {
            NIL => {
                assert!(self.cells.len() < NIL as usize, "a queue holds at most {NIL} keys");
                self.cells.push(Cell::Used(entry));
                self.capacity() - 1
            }
            slot => {
                let freed = std::mem::replace(&mut self.cells[slot as usize], Cell::Used(entry));
                if let Cell::Free { next } = freed {
                    self.first_free = next;
                }
                slot
            }
        };
        let Slots { cells, table, hasher, .. } = self;
        table.insert_unique(hash, slot, |slot| match &cells[*slot as usize] {
            Cell::Used(entry) => hasher.hash_one(&entry.key),
            Cell::Free { .. } => unreachable!("slot {slot} is free"),
        });
        slot
    }

    /// Frees a slot that is in use.
    pub(super) fn free(&mut self, slot: Slot) -> Entry<R> {
        let hash = self.hash(&self.entry(slot).key);
        if let Ok(found) = self.table.find_entry(hash, |other| *other == slot) {
            found.remove();
        }
        let cell = std::mem::replace(&mut self.cells[slot as usize], Cell::Free { next: self.first_free });
        self.first_free = slot;
        if self.table.is_empty() && self.cells.len() > KEEP {
            self.cells = Vec::new();
            self.first_free = NIL;
            self.table = HashTable::new();
        }
        match cell {
            Cell::Used(entry) => entry,
            Cell::Free { .. } => unreachable!("slot {slot} is free"),
        }
    }
}

#[cfg(test)]
mod tests {
    use k1s_env::Env;

    use super::*;
    use crate::ObjectKey;

    fn entry(key: u32) -> Entry<u32> {
        let (env, _clock) = Env::simulated(1);
        let place = Place::Delayed { number: 0 };
        Entry { key, since: env.now(), causes: Causes::none(), priority: 0, retry: false, place }
    }

    fn insert(slots: &mut Slots<u32>, key: u32) -> Slot {
        slots.insert(slots.hash(&key), entry(key))
    }

    #[test]
    fn a_key_is_found_until_it_is_freed_and_its_slot_is_used_again() {
        let mut slots = Slots::new();
        let all: Vec<_> = (0..100).map(|key| insert(&mut slots, key)).collect();
        assert!((0..100).all(|key| slots.find(slots.hash(&key), &key) == Some(all[key as usize])));
        assert_eq!(slots.free(all[7]).key, 7);
        assert_eq!(slots.free(all[9]).key, 9);
        assert_eq!(slots.find(slots.hash(&7), &7), None);
        assert!(slots.get(all[7]).is_none());
        assert_eq!((insert(&mut slots, 200), insert(&mut slots, 201)), (all[9], all[7]));
        assert_eq!(slots.capacity(), 100);
    }

    #[test]
    fn the_memory_of_many_keys_is_given_back_with_the_last() {
        let mut slots = Slots::new();
        let all: Vec<_> = (0..10_000).map(|key| insert(&mut slots, key)).collect();
        for slot in all {
            slots.free(slot);
        }
        assert_eq!(slots.cells.capacity(), 0);
        assert_eq!(insert(&mut slots, 1), 0);
    }

    #[test]
    fn what_is_stored_beside_a_key_is_small() {
        assert!(size_of::<Cell<ObjectKey>>() <= size_of::<ObjectKey>() + 56);
    }
}
