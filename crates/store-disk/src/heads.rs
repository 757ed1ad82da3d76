//! Where the newest record of each key is: in memory at first, later in the engine.
//!
//! The log is what makes a write durable; the engine's tree of heads follows it. Until then, heads are here, in memory.
//! After a crash they are made anew from the log. So the engine never knows of a write that the log does not have,
//! and heads that are written over and over reach it once.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::Arc,
};

use bytes::Bytes;
use fjall::{OwnedWriteBatch, Snapshot};
use k1s_store::{Error, Range, Result, Revision};
use parking_lot::RwLock;

use crate::{
    engine::{Engine, State},
    log::Segments,
    record::{APPLIED, Head, Pointer, Record, entry_size},
};

/// The heads of all keys, as they are now: who reads a moment finds newer heads, too, and goes back from there.
pub(crate) struct Heads {
    engine: Engine,
    newest: RwLock<Newest>,
}

#[derive(Clone)]
struct Newest {
    /// The heads that are not in the engine, or in a newer version.
    recent: BTreeMap<Bytes, Head>,
    /// What the engine has.
    snapshot: Arc<Snapshot>,
    /// The log has all records that these heads point to.
    log: Segments,
    /// Where the store is: the heads of keys that were deleted before it was swept may be gone.
    state: State,
}

impl Heads {
    pub(crate) fn new(engine: Engine, snapshot: Arc<Snapshot>, log: Segments, state: State) -> Self {
        Self { engine, newest: RwLock::new(Newest { recent: BTreeMap::new(), snapshot, log, state }) }
    }

    /// The heads as they are at this moment, whatever happens to them later.
    pub(crate) fn pinned(&self) -> Self {
        Self { engine: self.engine.clone(), newest: RwLock::new(self.newest.read().clone()) }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The newest record of a key, if it has any.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Head>> {
        let newest = self.newest.read();
        if let Some(head) = newest.recent.get(key) {
            return Ok(Some(*head));
        }
        let snapshot = newest.snapshot.clone();
        drop(newest);
        self.engine.head(&snapshot, key)
    }

    /// Where the store is.
    pub(crate) fn state(&self) -> State {
        self.newest.read().state
    }

    /// The log, with all records that heads had pointed to before.
    pub(crate) fn log(&self) -> Segments {
        self.newest.read().log.clone()
    }

    /// Fails if heads that were needed to read at `revision` may have gone meanwhile.
    pub(crate) fn still_there(&self, revision: Revision) -> Result<()> {
        let swept = self.state().swept;
        if swept > revision { Err(Error::Compacted { requested: revision, oldest: swept }) } else { Ok(()) }
    }

    /// The heads of the keys in a range, in order, but for its end; enough of them to find its entries at `revision`.
    pub(crate) fn range(
        &self,
        range: &Range,
        revision: Revision,
    ) -> impl Iterator<Item = Result<(Bytes, Head)>> + use<> {
        let first = range.first_key();
        let newest = self.newest.read();
        let mut wanted = range.max_entries().saturating_add(1);
        let mut recent = Vec::new();
        for (key, head) in newest.recent.range::<[u8], _>((Bound::Included(&first[..]), Bound::Unbounded)) {
            if wanted == 0 || !key.starts_with(&range.prefix) {
                break;
            }
            wanted -= usize::from(head.live() && head.pointer.revision <= revision);
            recent.push((key.clone(), *head));
        }
        let snapshot = newest.snapshot.clone();
        drop(newest);
        merge(self.engine.heads(&snapshot, first), recent)
    }

    /// The heads of all keys.
    pub(crate) fn all(&self) -> impl Iterator<Item = Result<(Bytes, Head)>> + use<> {
        self.range(&Range::default(), Revision::new(u64::MAX))
    }
}

/// Two ordered lists as one; of two heads of one key, the recent one.
fn merge(
    stored: impl Iterator<Item = Result<(Bytes, Head)>>,
    recent: Vec<(Bytes, Head)>,
) -> impl Iterator<Item = Result<(Bytes, Head)>> {
    let (mut stored, mut recent) = (stored.peekable(), recent.into_iter().peekable());
    std::iter::from_fn(move || {
        let order = match (stored.peek(), recent.peek()) {
            (Some(Ok((stored, _))), Some((recent, _))) => recent.cmp(stored),
            (Some(_), _) => Ordering::Greater,
            (None, _) => Ordering::Less,
        };
        match order {
            Ordering::Less => recent.next().map(Ok),
            Ordering::Equal => {
                stored.next();
                recent.next().map(Ok)
            }
            Ordering::Greater => stored.next(),
        }
    })
}

/// No more heads than this are kept back, and none whose records are so many bytes behind: it is what has to be read
/// again after a crash.
const KEPT_BACK: usize = 16 << 10;
const BYTES_BEHIND: u64 = 32 << 20;

/// So many heads go to the engine together.
const SLICE: usize = 256;

/// Heads on their way to the engine: the writing thread's side of [`Heads`].
pub(crate) struct Recent {
    heads: Arc<Heads>,
    /// In the order in which they were written, those included that were written over since.
    queue: VecDeque<Queued>,
    /// Of the records they belong to.
    bytes: u64,
}

struct Queued {
    key: Bytes,
    pointer: Pointer,
    bytes: u32,
}

impl Recent {
    pub(crate) fn new(heads: Heads) -> Self {
        Self { heads: Arc::new(heads), queue: VecDeque::new(), bytes: 0 }
    }

    /// With the heads of all records in the log after `applied`.
    pub(crate) fn read(heads: Heads, applied: Revision) -> Result<Self> {
        let (log, state) = (heads.log(), heads.state());
        let mut recent = Self::new(heads);
        let mut found = Vec::new();
        log.each(Pointer::new(applied.next(), 0), |pointer, bytes| {
            let record = Record::read(pointer, &bytes)?;
            let size = record.value.as_ref().map(|value| entry_size(&record.key, value));
            found.push((record.key, Head { pointer, size }));
            if found.len() >= SLICE {
                recent.note(found.drain(..), &log, state);
            }
            Ok(true)
        })?;
        recent.note(found, &log, state);
        Ok(recent)
    }

    pub(crate) fn heads(&self) -> &Arc<Heads> {
        &self.heads
    }

    /// Remembers heads that were written, in order. Their records are in `log`, and the store is at `state` now.
    pub(crate) fn note(
        &mut self,
        heads: impl IntoIterator<Item = (Bytes, Head)>,
        log: &Segments,
        state: State,
    ) {
        let mut newest = self.heads.newest.write();
        newest.log = log.clone();
        newest.state = state;
        for (key, head) in heads {
            // In memory of its own: who wrote it may have cut the key out of something larger.
            let key = Bytes::copy_from_slice(&key);
            let bytes = head.size.unwrap_or(0);
            self.bytes += u64::from(bytes);
            self.queue.push_back(Queued { key: key.clone(), pointer: head.pointer, bytes });
            newest.recent.insert(key, head);
        }
    }

    /// Up to which revision heads should go to the engine now, if any should.
    pub(crate) fn due(&self) -> Option<Revision> {
        if self.queue.len() < KEPT_BACK + SLICE && self.bytes < BYTES_BEHIND {
            return None;
        }
        Some(self.queue.get(SLICE.min(self.queue.len().saturating_sub(1)))?.pointer.revision)
    }

    /// Whether there are any up to `revision`.
    pub(crate) fn reach(&self, revision: Revision) -> bool {
        self.queue.front().is_some_and(|first| first.pointer.revision <= revision)
    }

    /// Takes the heads of records up to `revision`: what to write to the engine, and the keys that will be there.
    pub(crate) fn take(&mut self, revision: Revision) -> (OwnedWriteBatch, Vec<Bytes>) {
        let engine = &self.heads.engine;
        let (mut writes, mut keys) = (engine.batch(SLICE), Vec::new());
        let newest = self.heads.newest.read();
        while let Some(Queued { key, pointer, bytes }) =
            self.queue.pop_front_if(|first| first.pointer.revision <= revision)
        {
            self.bytes -= u64::from(bytes);
            // A key that was written to again is further behind in the queue, too.
            if let Some(head) = newest.recent.get(&key)
                && head.pointer == pointer
            {
                engine.put_head(&mut writes, &key, *head);
                keys.push(key);
            }
        }
        engine.put_mark(&mut writes, APPLIED, revision);
        (writes, keys)
    }

    /// The engine or the log has changed, `keys` have their heads in the engine: readers find that from now on.
    pub(crate) fn show(&mut self, keys: Vec<Bytes>, log: &Segments, state: State) {
        let snapshot = Arc::new(self.heads.engine.snapshot());
        let mut newest = self.heads.newest.write();
        for key in keys {
            newest.recent.remove(&key);
        }
        newest.log = log.clone();
        newest.state = state;
        newest.snapshot = snapshot;
    }
}
