//! How much of the past is kept, and what goes when it is not.

use std::{collections::VecDeque, time::Duration};

use fjall::Readable;
use k1s_env::Instant;
use k1s_store::{Result, Revision};

use crate::{
    engine::{State, decode},
    error::engine_error,
    options::DiskOptions,
    record::{COMPACTED, Pointer, SWEPT, head_key},
    view::View,
};

/// So much superfluous history is worth a batch.
const WORTHWHILE: u64 = 256;

/// So many records are looked at in one go, between two batches of writes.
const SWEEP: usize = 2048;

/// So many moments are remembered to tell the age of a revision.
const MARKS: u32 = 64;

/// The bounds of the history, and when which revision was the newest.
pub(crate) struct History {
    revisions: u64,
    age: Duration,
    marks: VecDeque<Mark>,
}

/// At `at`, `revision` was the newest. Marks of the same little while are one, begun at `begun`.
struct Mark {
    begun: Instant,
    at: Instant,
    revision: Revision,
}

impl History {
    pub(crate) fn new(options: &DiskOptions, now: Instant, state: State) -> Self {
        let marks = VecDeque::from([Mark { begun: now, at: now, revision: state.revision }]);
        Self { revisions: options.history_revisions, age: options.history_age, marks }
    }

    /// Remembers that `revision` is the newest now.
    pub(crate) fn note(&mut self, revision: Revision, now: Instant) {
        match self.marks.back_mut() {
            Some(last) if last.revision == revision => {}
            Some(last) if now - last.begun < self.age / MARKS => {
                last.at = now;
                last.revision = revision;
            }
            _ => self.marks.push_back(Mark { begun: now, at: now, revision }),
        }
    }

    /// Where the history should begin. Old marks are forgotten.
    pub(crate) fn bound(&mut self, state: &State, now: Instant) -> Revision {
        let mut oldest = state.oldest;
        let by_count = state.revision.get().saturating_sub(self.revisions);
        if by_count >= oldest.get() + WORTHWHILE {
            oldest = Revision::new(by_count);
        }
        while let Some(Mark { at, revision, .. }) = self.marks.front()
            && now - *at >= self.age
        {
            oldest = oldest.max(*revision);
            self.marks.pop_front();
        }
        oldest
    }

    /// Whether there is something to remove.
    pub(crate) fn unswept(&self, state: &State) -> bool {
        state.swept < sweep_until(state.revision, state.oldest)
    }

    /// When there is something to do next, if nothing else happens.
    pub(crate) fn due(&self, state: &State, now: Instant) -> Option<Duration> {
        if self.unswept(state) {
            return Some(Duration::ZERO);
        }
        if state.oldest == state.revision {
            return None;
        }
        let next = match self.marks.front() {
            Some(mark) => mark.at + self.age,
            None => now + self.age / MARKS,
        };
        Some((next - now).max(Duration::from_millis(1)))
    }

    /// Puts into `writes` that the history begins at `oldest`, and the removal of records that nobody
    /// can read any more: those that were replaced up to there, and those that only say that a key was
    /// deleted. Returns the state after it, in which not all of them need be gone.
    pub(crate) fn sweep(view: &View, oldest: Revision, writes: &mut fjall::OwnedWriteBatch) -> Result<State> {
        let engine = &view.engine;
        let mut state = State { oldest, ..view.state };
        let until = sweep_until(state.revision, oldest);
        let first = Pointer::new(state.swept.next(), 0).encode();
        let end = Pointer::new(until.next(), 0).encode();
        if first < end {
            state.swept = until;
            for (seen, stored) in view.snapshot.range(&engine.data, first..end).enumerate() {
                let (key, bytes) = stored.into_inner().map_err(|error| engine_error(&error))?;
                let (pointer, record) = decode(&key, &bytes.into())?;
                if seen >= SWEEP && pointer.index == 0 {
                    state.swept = Revision::new(pointer.revision.get() - 1);
                    break;
                }
                if let (false, Some(replaced)) = (record.created, record.replaced) {
                    writes.remove(&engine.data, replaced.encode());
                }
                if record.value.is_none() {
                    writes.remove(&engine.data, pointer.encode());
                    let head = engine.head(&view.snapshot, &record.key)?;
                    if head.is_some_and(|head| head.pointer == pointer) {
                        writes.remove(&engine.heads, head_key(&record.key));
                    }
                }
            }
        }
        for (mark, revision) in [(COMPACTED, state.oldest), (SWEPT, state.swept)] {
            writes.insert(&engine.heads, mark, revision.get().to_be_bytes());
        }
        Ok(state)
    }
}

/// The newest record stays: it says where the store is.
fn sweep_until(revision: Revision, oldest: Revision) -> Revision {
    oldest.min(Revision::new(revision.get().saturating_sub(1)))
}
