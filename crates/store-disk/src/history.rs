//! How much of the past is kept, and what goes when it is not.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use fjall::OwnedWriteBatch;
use k1s_env::Instant;
use k1s_store::{Result, Revision};

use crate::{
    engine::State,
    options::DiskOptions,
    record::{COMPACTED, Dead, Pointer, Record, SWEPT},
    view::View,
};

/// So much superfluous history is worth a look.
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

    /// Whether there is something to count.
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

    /// Puts into `writes` that the history begins at `oldest`, counts the records that nobody can read any more (those that
    /// were replaced up to there, and those that only say that a key was deleted), and removes the heads of deleted
    /// keys. Returns the state after it, in which not all of them need be counted.
    pub(crate) fn sweep(view: &View, oldest: Revision, writes: &mut OwnedWriteBatch) -> Result<Swept> {
        let (engine, log) = (view.heads.engine(), view.heads.log());
        let mut state = State { oldest, ..view.state };
        let until = sweep_until(state.revision, oldest);
        let first = Pointer::new(state.swept.next(), 0);
        let mut dead = HashMap::<u64, Dead>::new();
        let mut count = |pointer: Pointer| {
            if let Some(segment) = log.of(pointer.revision) {
                let of = if log.is_growing(segment) { 0 } else { segment.records() };
                let count = || Dead { dead: segment.dead(), of };
                dead.entry(segment.id()).or_insert_with(count).dead += 1;
            }
        };
        if state.swept < until {
            state.swept = until;
            let mut seen = 0;
            log.each(first, |pointer, bytes| {
                if pointer.revision > until {
                    return Ok(false);
                }
                if seen >= SWEEP && pointer.index == 0 {
                    state.swept = Revision::new(pointer.revision.get() - 1);
                    return Ok(false);
                }
                seen += 1;
                let record = Record::read(pointer, &bytes)?;
                if let (false, Some(replaced)) = (record.created, record.replaced) {
                    count(replaced);
                }
                if record.value.is_none() {
                    count(pointer);
                    if view.heads.get(&record.key)?.is_some_and(|head| head.pointer == pointer) {
                        engine.remove_head(writes, &record.key);
                    }
                }
                Ok(true)
            })?;
        }
        for (mark, revision) in [(COMPACTED, state.oldest), (SWEPT, state.swept)] {
            engine.put_mark(writes, mark, revision);
        }
        for (segment, dead) in &dead {
            engine.put_dead(writes, *segment, Some(*dead));
        }
        Ok(Swept { state, dead })
    }
}

/// What a sweep comes to.
pub(crate) struct Swept {
    pub(crate) state: State,
    /// How many records are dead, of segments where that has changed.
    pub(crate) dead: HashMap<u64, Dead>,
}

/// The newest record stays: it says where the store is.
pub(crate) fn sweep_until(revision: Revision, oldest: Revision) -> Revision {
    oldest.min(Revision::new(revision.get().saturating_sub(1)))
}
