//! Revisions that are being read, so that writers keep the values they need.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::cell::{Cell, Released};
use crate::{Previous, Revision};

/// The revisions that are being read.
///
/// A reader [pins](Self::pin) the newest revision while no write can happen, and then reads cells without any lock of the
/// store. A writer that replaces a value which a pinned revision sees leaves it in the cell. When a revision is unpinned, its
/// reader removes the values that are no longer needed: a writer's work does not depend on the number of readers.
#[derive(Default)]
pub(super) struct Pins {
    /// How many are pinned. Changes from 0 only while no write can happen.
    pinned: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In order, each once, and how many readers each has.
    pins: SmallVec<[Revision; 8]>,
    readers: SmallVec<[usize; 8]>,
    /// The cells that keep an older value, in the order of the revisions that replaced it.
    keeping: VecDeque<(Revision, Arc<Cell>)>,
}

/// A revision that can be read from the cells until this is dropped.
pub(super) struct Pinned<'a> {
    pins: &'a Pins,
    revision: Revision,
}

impl Pins {
    /// Keeps the values at `revision`. It must be the newest one, and no write may happen during the call.
    pub(super) fn pin(&self, revision: Revision) -> Pinned<'_> {
        let mut state = self.state.lock();
        let State { pins, readers, .. } = &mut *state;
        match (pins.last(), readers.last_mut()) {
            (Some(last), Some(readers)) if *last == revision => *readers += 1,
            _ => {
                pins.push(revision);
                readers.push(1);
            }
        }
        self.pinned.store(pins.len(), Ordering::Release);
        Pinned { pins: self, revision }
    }

    /// Gives `cell` a new value, as [`Cell::replace`] does, and keeps the old one if a pinned revision sees it.
    pub(super) fn replace(&self, cell: &Arc<Cell>, value: Bytes, revision: Revision) -> Previous {
        if self.pinned.load(Ordering::Acquire) == 0 {
            return cell.replace(value, revision);
        }
        let mut state = self.state.lock();
        let (previous, kept, released) = cell.replace_and_keep(value, revision, &state.pins);
        if kept {
            state.keeping.push_back((revision, cell.clone()));
        }
        drop(state);
        drop(released);
        previous
    }

    /// Upper bound of the number of values that are kept for readers.
    #[cfg(test)]
    pub(super) fn keeping(&self) -> usize {
        self.state.lock().keeping.len()
    }
}

impl State {
    fn unpin(&mut self, revision: Revision) {
        let Ok(place) = self.pins.binary_search(&revision) else { return };
        self.readers[place] -= 1;
        if self.readers[place] == 0 {
            self.pins.remove(place);
            self.readers.remove(place);
        }
    }

    /// Some of the cells that keep values which no pinned revision needs.
    fn needless(&mut self) -> SmallVec<[(Revision, Arc<Cell>); 32]> {
        let oldest = self.pins.first().copied();
        let needless = |(until, _): &&(Revision, Arc<Cell>)| oldest.is_none_or(|oldest| *until <= oldest);
        let count = self.keeping.iter().take(32).take_while(needless).count();
        let some = self.keeping.drain(..count).collect();
        if self.keeping.is_empty() {
            // A long read may have let it grow.
            self.keeping.shrink_to(256);
        }
        some
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        let mut state = self.pins.state.lock();
        state.unpin(self.revision);
        self.pins.pinned.store(state.pins.len(), Ordering::Release);
        drop(state);
        loop {
            // A few at a time: a writer may be waiting for this lock.
            let cells = self.pins.state.lock().needless();
            if cells.is_empty() {
                return;
            }
            for (until, cell) in cells {
                drop::<Released>(cell.release_before(until));
            }
        }
    }
}
