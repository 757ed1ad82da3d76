//! Linked lists through the slots of ready keys: constant-time insertion and removal without allocation.

use super::slots::{Link, Links, NIL, Place, Slot, Slots};

/// Selects one of a key's two lists.
#[derive(Debug, Clone, Copy)]
pub(super) enum Chain {
    Band,
    Age,
}

/// The ends and the length of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    pub(super) head: Slot,
    tail: Slot,
    pub(super) len: usize,
}

impl Default for List {
    fn default() -> List {
        List { head: NIL, tail: NIL, len: 0 }
    }
}

impl Links {
    pub(super) const NONE: Links =
        Links { band: Link { prev: NIL, next: NIL }, age: Link { prev: NIL, next: NIL } };
}

fn link<R>(slots: &mut Slots<R>, slot: Slot, chain: Chain) -> &mut Link {
    match (&mut slots.entry_mut(slot).place, chain) {
        (Place::Ready(links), Chain::Band) => &mut links.band,
        (Place::Ready(links), Chain::Age) => &mut links.age,
        _ => unreachable!("slot {slot} is in a list and not ready"),
    }
}

impl List {
    /// Appends a ready key.
    pub(super) fn push_back<R>(&mut self, slots: &mut Slots<R>, chain: Chain, slot: Slot) {
        *link(slots, slot, chain) = Link { prev: self.tail, next: NIL };
        match self.tail {
            NIL => self.head = slot,
            tail => link(slots, tail, chain).next = slot,
        }
        self.tail = slot;
        self.len += 1;
    }

    /// Removes a key at any position.
    pub(super) fn unlink<R>(&mut self, slots: &mut Slots<R>, chain: Chain, slot: Slot) {
        let Link { prev, next } = *link(slots, slot, chain);
        match prev {
            NIL => self.head = next,
            prev => link(slots, prev, chain).next = next,
        }
        match next {
            NIL => self.tail = prev,
            next => link(slots, next, chain).prev = prev,
        }
        self.len -= 1;
    }
}
