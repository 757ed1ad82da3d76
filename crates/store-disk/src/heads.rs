//! The newest record of each key, shared with readers.

use std::sync::Arc;

use bytes::Bytes;
use k1s_store::{Error, Range, Result, Revision};
use parking_lot::RwLock;

use crate::{
    keys::Keys,
    log::{Bits, Segment, Segments},
    record::{Head, Pointer, Totals},
};

/// Keys copied per lock acquisition while listing; writers wait for one page.
const PAGE: usize = 256;

/// Maximum number of a transaction's keys that are prefetched.
const MAX_PREFETCHED: usize = 16;

/// The revisions and the size of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// The newest revision.
    pub(crate) revision: Revision,
    /// The oldest revision that can be read and watched from.
    pub(crate) oldest: Revision,
    /// Dead records have been found up to this revision.
    pub(crate) swept: Revision,
    pub(crate) totals: Totals,
}

impl State {
    pub(crate) const NEW: Self = Self {
        revision: Revision::FIRST,
        oldest: Revision::FIRST,
        swept: Revision::FIRST,
        totals: Totals { keys: 0, bytes: 0 },
    };
}

/// The newest heads of all keys. A read of an older revision starts from them, too, and follows the records
/// back.
pub(crate) struct Heads(RwLock<Newest>);

#[derive(Clone)]
struct Newest {
    keys: Keys,
    /// The log that holds all records these heads point to.
    log: Segments,
    /// Deleted keys up to `swept` may have lost their heads.
    state: State,
}

/// The dead records of each segment, in a snapshot.
pub(crate) type Dead = Vec<(Arc<Segment>, Bits)>;

impl Heads {
    pub(crate) fn new(keys: Keys, log: Segments, state: State) -> Self {
        Self(RwLock::new(Newest { keys, log, state }))
    }

    /// A snapshot of the heads, and the dead records.
    pub(crate) fn pinned(&self) -> (Self, Dead) {
        let newest = self.0.read();
        let dead = newest.log.iter().map(|segment| (segment.clone(), segment.dead())).collect();
        (Self(RwLock::new(newest.clone())), dead)
    }

    /// The newest record of a key, if any.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Head> {
        self.0.read().keys.get(key)
    }

    /// Looks up the heads of keys that are about to be written.
    ///
    /// This loads them into the processor's cache on the caller's thread. The single writer thread would
    /// otherwise spend most of its time waiting for memory when there are many keys.
    pub(crate) fn prefetch<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) {
        let newest = self.0.read();
        for key in keys.take(MAX_PREFETCHED) {
            std::hint::black_box(newest.keys.get(key));
        }
    }

    /// The newest record of a key, if any, and the log that holds it.
    pub(crate) fn find(&self, key: &[u8]) -> Option<(Head, Segments)> {
        let newest = self.0.read();
        Some((newest.keys.get(key)?, newest.log.clone()))
    }

    /// The current revisions and size of the store.
    pub(crate) fn state(&self) -> State {
        self.0.read().state
    }

    /// The log, with all records that any head read before points to.
    pub(crate) fn log(&self) -> Segments {
        self.0.read().log.clone()
    }

    /// Fails if heads needed to read at `revision` may have been removed meanwhile.
    pub(crate) fn still_there(&self, revision: Revision) -> Result<()> {
        let swept = self.state().swept;
        if swept > revision { Err(Error::Compacted { requested: revision, oldest: swept }) } else { Ok(()) }
    }

    /// The heads of the keys in a range, in order, regardless of its limit. Later pages may be newer than
    /// earlier ones.
    pub(crate) fn range<'a>(&'a self, range: &'a Range) -> impl Iterator<Item = (Bytes, Head)> + 'a {
        let mut first = range.first_key().to_vec();
        let mut page = Vec::new().into_iter();
        let mut wanted = range.max_entries().saturating_add(1).clamp(1, PAGE);
        let mut more = true;
        std::iter::from_fn(move || {
            loop {
                if let Some(next) = page.next() {
                    return Some(next);
                }
                if !more {
                    return None;
                }
                let mut found = Vec::with_capacity(wanted);
                self.0.read().keys.each(&first, |key, head| {
                    let is_within = key.starts_with(&range.prefix);
                    found.extend(is_within.then(|| (Bytes::copy_from_slice(key), head)));
                    is_within && found.len() < wanted
                });
                more = found.len() == wanted;
                wanted = PAGE;
                if let Some((last, _)) = found.last() {
                    // The smallest key after the last one.
                    first.clear();
                    first.extend_from_slice(last);
                    first.push(0);
                }
                page = found.into_iter();
            }
        })
    }

    /// Adds heads, in the order written. Their records are in `log`, and the store is now at `state`.
    pub(crate) fn note(&self, heads: &[(Bytes, Head)], log: Segments, state: State) {
        let mut newest = self.0.write();
        newest.log = log;
        newest.state = state;
        for (key, head) in heads {
            newest.keys.insert(key, *head);
        }
    }

    /// Marks records as dead. The store is now at `state`.
    pub(crate) fn sweep(&self, dead: &[Pointer], state: State) {
        let mut newest = self.0.write();
        newest.state = state;
        for pointer in dead {
            newest.log.mark_dead(*pointer);
        }
    }

    /// Removes keys whose newest record is the deletion at this pointer.
    pub(crate) fn forget(&self, deleted: &[(Bytes, Pointer)]) {
        let mut newest = self.0.write();
        for (key, pointer) in deleted {
            if newest.keys.get(key).is_some_and(|head| head.pointer == *pointer) {
                newest.keys.remove(key);
            }
        }
    }

    /// Replaces the log by another one with the same live records.
    pub(crate) fn set_log(&self, log: Segments) {
        self.0.write().log = log;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;

    #[test]
    fn a_range_has_every_key_once_however_many_pages_it_takes() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::create(&crate::files::real(), &folder.path().join("log"), 1 << 20).unwrap().segments();
        let heads = Heads::new(Keys::new(), log.clone(), State::NEW);
        let head = Head { pointer: Pointer::new(Revision::new(2), 0), size: Some(10) };
        let keys = |prefix: &str, count: usize| -> Vec<_> {
            (0..count).map(|number| (Bytes::from(format!("{prefix}{number:05}")), head)).collect()
        };
        let (before, within, after) = (keys("/a", 10), keys("/b/", 3 * PAGE), keys("/c", 10));
        for some in [&within, &after, &before] {
            heads.note(some, log.clone(), State::NEW);
        }
        assert_eq!(heads.range(&Range::prefix("/b/")).collect::<Vec<_>>(), within);
        assert_eq!(heads.range(&Range::prefix("/b/").limit(7)).collect::<Vec<_>>(), within);
        assert_eq!(heads.range(&Range::prefix("/x")).count(), 0);
        assert_eq!(heads.range(&Range::default()).count(), 3 * PAGE + 20);
        assert_eq!(heads.range(&Range::default()).count(), heads.0.read().keys.len());
    }
}
