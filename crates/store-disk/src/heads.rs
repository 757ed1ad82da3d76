//! Where the newest record of each key is, for everybody who reads.

use std::sync::Arc;

use bytes::Bytes;
use k1s_store::{Error, Range, Result, Revision};
use parking_lot::RwLock;

use crate::{
    keys::Keys,
    log::{Bits, Segment, Segments},
    record::{Head, Pointer, Totals},
};

/// Who lists keys looks at so many at a time. Nobody can write meanwhile.
const PAGE: usize = 256;

/// Of a transaction, so many keys are looked at beforehand.
const LOOKED_AT: usize = 16;

/// Where a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// The newest revision.
    pub(crate) revision: Revision,
    /// The oldest revision that can be read and watched from.
    pub(crate) oldest: Revision,
    /// Records that `oldest` made superfluous are known up to this revision.
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

/// The heads of all keys, as they are now: who reads a moment finds newer heads, too, and goes back from there.
pub(crate) struct Heads(RwLock<Newest>);

#[derive(Clone)]
struct Newest {
    keys: Keys,
    /// The log has all records that these heads point to.
    log: Segments,
    /// Where the store is: the heads of keys that were deleted before it was swept are gone.
    state: State,
}

/// Which records of each segment were dead at some moment.
pub(crate) type Dead = Vec<(Arc<Segment>, Bits)>;

impl Heads {
    pub(crate) fn new(keys: Keys, log: Segments, state: State) -> Self {
        Self(RwLock::new(Newest { keys, log, state }))
    }

    /// The heads as they are at this moment, whatever happens to them later, and what is dead.
    pub(crate) fn pinned(&self) -> (Self, Dead) {
        let newest = self.0.read();
        let dead = newest.log.iter().map(|segment| (segment.clone(), segment.dead())).collect();
        (Self(RwLock::new(newest.clone())), dead)
    }

    /// The newest record of a key, if it has any.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Head> {
        self.0.read().keys.get(key)
    }

    /// Looks at the heads of some keys that will be written to.
    ///
    /// There is one thread that writes and many that want it to. It finds what they have just looked at in the processor's
    /// cache; else, with many keys, it would do little but wait for memory.
    pub(crate) fn look_at<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) {
        let newest = self.0.read();
        for key in keys.take(LOOKED_AT) {
            std::hint::black_box(newest.keys.get(key));
        }
    }

    /// The newest record of a key, if it has any, and the log that it is in.
    pub(crate) fn find(&self, key: &[u8]) -> Option<(Head, Segments)> {
        let newest = self.0.read();
        Some((newest.keys.get(key)?, newest.log.clone()))
    }

    /// Where the store is.
    pub(crate) fn state(&self) -> State {
        self.0.read().state
    }

    /// The log, with all records that heads had pointed to before.
    pub(crate) fn log(&self) -> Segments {
        self.0.read().log.clone()
    }

    /// Fails if heads that were needed to read at `revision` may have gone meanwhile.
    pub(crate) fn still_there(&self, revision: Revision) -> Result<()> {
        let swept = self.state().swept;
        if swept > revision { Err(Error::Compacted { requested: revision, oldest: swept }) } else { Ok(()) }
    }

    /// The heads of the keys in a range, whatever its limit, in order. Those of the first keys may be older than those of the
    /// last.
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
                    // The next key there can be.
                    first.clear();
                    first.extend_from_slice(last);
                    first.push(0);
                }
                page = found.into_iter();
            }
        })
    }

    /// Remembers heads that were written, in order. Their records are in `log`, and the store is at `state` now.
    pub(crate) fn note(&self, heads: &[(Bytes, Head)], log: Segments, state: State) {
        let mut newest = self.0.write();
        newest.log = log;
        newest.state = state;
        for (key, head) in heads {
            newest.keys.insert(key, *head);
        }
    }

    /// The records at `dead` can no longer be read. The store is at `state` now.
    pub(crate) fn sweep(&self, dead: &[Pointer], state: State) {
        let mut newest = self.0.write();
        newest.state = state;
        for pointer in dead {
            newest.log.kill(*pointer);
        }
    }

    /// Forgets keys whose newest record is the deletion at this pointer.
    pub(crate) fn forget(&self, deleted: &[(Bytes, Pointer)]) {
        let mut newest = self.0.write();
        for (key, pointer) in deleted {
            if newest.keys.get(key).is_some_and(|head| head.pointer == *pointer) {
                newest.keys.remove(key);
            }
        }
    }

    /// The log has changed, but not what is in it.
    pub(crate) fn show(&self, log: Segments) {
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
