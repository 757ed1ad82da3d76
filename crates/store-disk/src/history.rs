//! How much of the past is kept, and what goes when it is not.

use std::{collections::VecDeque, ops::RangeInclusive, time::Duration};

use bytes::Bytes;
use k1s_env::Instant;
use k1s_store::{Result, Revision};

use crate::{
    heads::State,
    log::Segments,
    options::DiskOptions,
    record::{Pointer, Record},
};

/// So much superfluous history is worth a look.
const WORTHWHILE: u64 = 256;

/// So many records are looked at in one go, between two batches of writes; or twice as many as were written, if that is
/// more: else, what nobody needs would become more and more. But a batch waits for it, so there is a limit, which is more
/// than a batch can have.
const SWEEP: RangeInclusive<usize> = 512..=4096;

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

    /// Whether there is something to look for.
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

    /// Finds the records that nobody can read any more if the history begins at `oldest`: those that were replaced up to
    /// there, and those that only say that a key was deleted. Not all of them need be found at once, but more than the
    /// `written` records that have come since the last time.
    pub(crate) fn sweep(log: &Segments, state: State, oldest: Revision, written: usize) -> Result<Swept> {
        let mut swept = Swept { state: State { oldest, ..state }, dead: Vec::new(), deleted: Vec::new() };
        let until = sweep_until(state.revision, oldest);
        if state.swept >= until {
            return Ok(swept);
        }
        swept.state.swept = until;
        let enough = (2 * written).clamp(*SWEEP.start(), *SWEEP.end());
        let mut seen = 0;
        log.each(Pointer::new(state.swept.next(), 0), |pointer, bytes| {
            if pointer.revision > until {
                return Ok(false);
            }
            if seen >= enough && pointer.index == 0 {
                swept.state.swept = Revision::new(pointer.revision.get() - 1);
                return Ok(false);
            }
            seen += 1;
            let record = Record::read(pointer, &bytes)?;
            if let (false, Some(replaced)) = (record.created, record.replaced) {
                swept.dead.push(replaced);
            }
            if record.value.is_none() {
                swept.dead.push(pointer);
                // A copy: the key is a slice of all that was read at once.
                swept.deleted.push((Bytes::copy_from_slice(&record.key), pointer));
            }
            Ok(true)
        })?;
        Ok(swept)
    }
}

/// What a sweep comes to.
pub(crate) struct Swept {
    pub(crate) state: State,
    /// The records that nobody can read any more.
    pub(crate) dead: Vec<Pointer>,
    /// Keys that were deleted, and the records that say so.
    pub(crate) deleted: Vec<(Bytes, Pointer)>,
}

/// The newest record stays: it says where the store is.
pub(crate) fn sweep_until(revision: Revision, oldest: Revision) -> Revision {
    oldest.min(Revision::new(revision.get().saturating_sub(1)))
}
