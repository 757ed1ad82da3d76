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
    /// The heads of all records up to here are in the engine.
    applied: Revision,
}

/// What somebody found in the engine before the writing thread needs to know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hint {
    head: Option<Head>,
    /// The newest revision at that time.
    revision: Revision,
}

impl Heads {
    pub(crate) fn new(
        engine: Engine,
        snapshot: Arc<Snapshot>,
        log: Segments,
        state: State,
        applied: Revision,
    ) -> Self {
        let recent = BTreeMap::new();
        Self { engine, newest: RwLock::new(Newest { recent, snapshot, log, state, applied }) }
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
        self.get_with(key, None)
    }

    /// The same for somebody who has looked before, and need not look again if nothing can have changed since.
    pub(crate) fn get_with(&self, key: &[u8], hint: Option<Hint>) -> Result<Option<Head>> {
        let newest = self.newest.read();
        if let Some(head) = newest.recent.get(key) {
            return Ok(Some(*head));
        }
        // What was written since would be in memory: nothing of that has gone to the engine yet.
        if let Some(hint) = hint.filter(|hint| newest.applied <= hint.revision) {
            return Ok(hint.head);
        }
        let snapshot = newest.snapshot.clone();
        drop(newest);
        self.engine.head(&snapshot, key)
    }

    /// Looks a key up that will be written to. `None` if there is nothing to gain: it is in memory.
    pub(crate) fn hint(&self, key: &[u8]) -> Result<Option<Hint>> {
        let newest = self.newest.read();
        if newest.recent.contains_key(key) {
            return Ok(None);
        }
        let (snapshot, revision) = (newest.snapshot.clone(), newest.state.revision);
        drop(newest);
        Ok(Some(Hint { head: self.engine.head(&snapshot, key)?, revision }))
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
        let some = self.queue.len().saturating_sub(KEPT_BACK).max(SLICE);
        Some(self.queue.get(some - 1).or(self.queue.back())?.pointer.revision)
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

    /// The engine or the log has changed; the engine has the heads of `keys`, and of all records up to `applied`: readers find
    /// that from now on.
    pub(crate) fn show(&mut self, keys: Vec<Bytes>, applied: Option<Revision>, log: &Segments, state: State) {
        let snapshot = Arc::new(self.heads.engine.snapshot());
        let mut newest = self.heads.newest.write();
        for key in keys {
            newest.recent.remove(&key);
        }
        newest.log = log.clone();
        newest.state = state;
        newest.snapshot = snapshot;
        newest.applied = applied.unwrap_or(newest.applied);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        log::{Frame, Log},
        options::DiskOptions,
        record::Totals,
    };

    fn recent(folder: &std::path::Path) -> (Recent, Log) {
        let options = DiskOptions::default();
        let log = Log::create(&folder.join("log"), options.segment_bytes).unwrap();
        let engine = Engine::create(&folder.join("engine"), &options).unwrap();
        let snapshot = Arc::new(engine.snapshot());
        let heads = Heads::new(engine, snapshot, log.segments(), State::NEW, Revision::FIRST);
        (Recent::new(heads), log)
    }

    fn head(revision: u64) -> Head {
        Head { pointer: Pointer::new(Revision::new(revision), 0), size: Some(10) }
    }

    /// Does what the writing thread does.
    fn apply(recent: &mut Recent, log: &Log, revision: Revision) {
        let (writes, keys) = recent.take(revision);
        writes.commit().unwrap();
        let state = recent.heads().state();
        recent.show(keys, Some(revision), &log.segments(), state);
    }

    #[test]
    fn however_much_comes_at_once_no_more_than_a_bound_is_kept_back() {
        let dir = tempfile::tempdir().unwrap();
        let (mut recent, log) = recent(dir.path());
        for round in 0..5 {
            let heads = (0..20_000).map(|n| (Bytes::from(format!("/{n}")), head(2 + round * 20_000 + n)));
            recent.note(heads, &log.segments(), State::NEW);
            while let Some(revision) = recent.due() {
                apply(&mut recent, &log, revision);
            }
            assert!(recent.queue.len() <= KEPT_BACK + SLICE, "{}", recent.queue.len());
            for n in [0, 7, 19_999] {
                let found = recent.heads().get(format!("/{n}").as_bytes()).unwrap();
                assert_eq!(found, Some(head(2 + round * 20_000 + n)), "in memory or not, it is found");
            }
        }
    }

    #[test]
    fn a_hint_is_not_believed_when_something_newer_may_be_in_the_engine() {
        let dir = tempfile::tempdir().unwrap();
        let (mut recent, log) = recent(dir.path());
        let at = |revision| State { revision: Revision::new(revision), ..State::NEW };
        let heads = recent.heads().clone();
        let hint = heads.hint(b"/a").unwrap();
        assert_eq!(heads.get_with(b"/a", hint).unwrap(), None);
        // It is in memory: that counts.
        recent.note([(Bytes::from_static(b"/a"), head(2))], &log.segments(), at(2));
        assert_eq!(heads.get_with(b"/a", hint).unwrap(), Some(head(2)));
        assert!(heads.hint(b"/a").unwrap().is_none());
        // It has gone to the engine since.
        apply(&mut recent, &log, Revision::new(2));
        assert_eq!(heads.get_with(b"/a", hint).unwrap(), Some(head(2)));
        let newer = heads.hint(b"/a").unwrap();
        assert_eq!(newer.and_then(|hint| hint.head), Some(head(2)));
        assert_eq!(heads.get_with(b"/a", newer).unwrap(), Some(head(2)));
    }

    #[test]
    fn heads_that_the_engine_has_not_heard_of_are_read_from_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let (_, mut log) = recent(dir.path());
        let mut frame = Frame::default();
        for revision in 2..10 {
            let pointer = Pointer::new(Revision::new(revision), 0);
            let record = Record {
                key: format!("/{}", revision % 3).into(),
                value: Some("value".into()),
                created: false,
                replaced: None,
                steps: 1,
                totals: Totals::default(),
            };
            frame.push(pointer, |bytes| record.encode(pointer, bytes));
        }
        log.append(&mut frame).unwrap();
        let engine = Engine::create(&dir.path().join("other"), &DiskOptions::default()).unwrap();
        let snapshot = Arc::new(engine.snapshot());
        let heads = Heads::new(engine, snapshot, log.segments(), State::NEW, Revision::new(7));
        let recent = Recent::read(heads, Revision::new(7)).unwrap();
        let found: Vec<_> = recent.heads().all().map(|head| head.unwrap().1.pointer.revision.get()).collect();
        assert_eq!(found, [9, 8]);
    }
}
