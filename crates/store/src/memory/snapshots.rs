//! Which moments are being read, so that writers keep what those need.

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

/// The moments that are being read.
///
/// A reader [pins](Self::pin) the newest moment while no write can happen, and then reads cells without any lock of the
/// store. A writer that replaces a value which a pinned moment sees leaves it in the cell. When a moment is released, its
/// reader takes out of the cells what nobody needs any more: a writer's work does not depend on who reads.
#[derive(Default)]
pub(super) struct Moments {
    /// How many are pinned. Changes from 0 only while no write can happen.
    pinned: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In order, each once, and how many readers each has.
    moments: SmallVec<[Revision; 8]>,
    readers: SmallVec<[usize; 8]>,
    /// The cells that keep an older value, in the order of the revisions that replaced it.
    keeping: VecDeque<(Revision, Arc<Cell>)>,
}

/// A moment that can be read from the cells until this is dropped.
pub(super) struct Pinned<'a> {
    moments: &'a Moments,
    revision: Revision,
}

impl Moments {
    /// Keeps what is there at `revision`. It must be the newest one, and no write may happen during the call.
    pub(super) fn pin(&self, revision: Revision) -> Pinned<'_> {
        let mut state = self.state.lock();
        let State { moments, readers, .. } = &mut *state;
        match (moments.last(), readers.last_mut()) {
            (Some(last), Some(readers)) if *last == revision => *readers += 1,
            _ => {
                moments.push(revision);
                readers.push(1);
            }
        }
        self.pinned.store(moments.len(), Ordering::Release);
        Pinned { moments: self, revision }
    }

    /// Gives `cell` a new value, as [`Cell::replace`] does, and keeps the old one if somebody reads a moment that sees it.
    pub(super) fn replace(&self, cell: &Arc<Cell>, value: Bytes, revision: Revision) -> Previous {
        if self.pinned.load(Ordering::Acquire) == 0 {
            return cell.replace(value, revision);
        }
        let mut state = self.state.lock();
        let (previous, kept, released) = cell.replace_and_keep(value, revision, &state.moments);
        if kept {
            state.keeping.push_back((revision, cell.clone()));
        }
        drop(state);
        drop(released);
        previous
    }

    /// How many values are kept for readers, at most.
    #[cfg(test)]
    pub(super) fn keeping(&self) -> usize {
        self.state.lock().keeping.len()
    }
}

impl State {
    fn unpin(&mut self, revision: Revision) {
        let Ok(place) = self.moments.binary_search(&revision) else { return };
        self.readers[place] -= 1;
        if self.readers[place] == 0 {
            self.moments.remove(place);
            self.readers.remove(place);
        }
    }

    /// Some of the cells that keep what no moment needs.
    fn needless(&mut self) -> SmallVec<[(Revision, Arc<Cell>); 32]> {
        let oldest = self.moments.first().copied();
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
        let mut state = self.moments.state.lock();
        state.unpin(self.revision);
        self.moments.pinned.store(state.moments.len(), Ordering::Release);
        drop(state);
        loop {
            // A few at a time: a writer may be waiting for this lock.
            let cells = self.moments.state.lock().needless();
            if cells.is_empty() {
                return;
            }
            for (until, cell) in cells {
                drop::<Released>(cell.release_before(until));
            }
        }
    }
}
