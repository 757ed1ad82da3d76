//! Retention of the history, and which records compaction makes dead.

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

/// Minimum number of excess revisions before the history is compacted.
const MIN_EXCESS: u64 = 256;

/// Records swept between two batches of writes: twice as many as were written, within these bounds, so that
/// dead records do not accumulate. A batch waits for the sweep, so there is a maximum; it exceeds the largest
/// batch.
const SWEEP: RangeInclusive<usize> = 512..=4096;

/// Number of marks that an age limit is divided into.
const MARKS: u32 = 64;

/// The limits of the history, and the times at which revisions were the newest.
pub(crate) struct History {
    revisions: u64,
    age: Duration,
    marks: VecDeque<Mark>,
}

/// At `at`, `revision` was the newest. Writes within a short interval share one mark, which started at
/// `begun`.
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

    /// Records that `revision` is the newest now.
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

    /// The revision at which the history should begin. Expired marks are dropped.
    pub(crate) fn bound(&mut self, state: &State, now: Instant) -> Revision {
        let mut oldest = state.oldest;
        let by_count = state.revision.get().saturating_sub(self.revisions);
        if by_count >= oldest.get() + MIN_EXCESS {
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

    /// Whether there are revisions left to sweep.
    pub(crate) fn unswept(&self, state: &State) -> bool {
        state.swept < sweep_until(state.revision, state.oldest)
    }

    /// Time until the next sweep or expiry, if there are no writes.
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

    /// Finds the records that can no longer be read if the history begins at `oldest`: records replaced up to
    /// there, and records of deletions. A call may stop early, but covers more than the `written` records
    /// added since the last call.
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
                // Copied, because the key is a slice of the whole chunk that was read.
                swept.deleted.push((Bytes::copy_from_slice(&record.key), pointer));
            }
            Ok(true)
        })?;
        Ok(swept)
    }
}

/// The result of a sweep.
pub(crate) struct Swept {
    pub(crate) state: State,
    /// Records that can no longer be read.
    pub(crate) dead: Vec<Pointer>,
    /// Deleted keys, with the records of their deletion.
    pub(crate) deleted: Vec<(Bytes, Pointer)>,
}

/// The newest record is kept: it holds the store's revision and size.
pub(crate) fn sweep_until(revision: Revision, oldest: Revision) -> Revision {
    oldest.min(Revision::new(revision.get().saturating_sub(1)))
}
