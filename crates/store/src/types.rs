//! Revisions, entries, ranges, statistics.

use std::fmt;

use bytes::{Bytes, BytesMut};

use crate::{Error, Result};

/// A version of the whole store.
///
/// Each transaction that changes something takes the next revision, for all keys of the store
/// together. Revisions only grow, survive a restart and are never reused for another change
/// that was acknowledged. They may have gaps (in an etcd with other clients).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(u64);

impl Revision {
    /// The revision of a store that was never written to. The first write is later than this,
    /// so a revision that is seen from outside is never 0.
    pub const FIRST: Self = Self(1);

    /// The largest revision there can be.
    pub const MAX: Self = Self(u64::MAX);

    /// The revision with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The revision right after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The revision to read at: `at`, or `newest` if that is `None`. Fails if it is not within `oldest` and `newest`, the revisions
/// that a store can read.
pub fn read_revision(at: Option<Revision>, oldest: Revision, newest: Revision) -> Result<Revision> {
    match at {
        None => Ok(newest),
        Some(requested) if requested > newest => Err(Error::FutureRevision { requested, current: newest }),
        Some(requested) if requested < oldest => Err(Error::Compacted { requested, oldest }),
        Some(requested) => Ok(requested),
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u64> for Revision {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

/// A key with its value and the revision that wrote it.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Bytes,
    /// The value as it was written.
    pub value: Bytes,
    /// The revision of the last write to the key.
    pub revision: Revision,
}

impl KeyValue {
    /// An entry in its own allocation.
    ///
    /// Stores read blocks, pages and messages. Readers may keep entries for long, and a slice of a block would keep all of it
    /// alive.
    pub fn detached(key: &[u8], value: &[u8], revision: Revision) -> Self {
        let mut both = BytesMut::with_capacity(key.len() + value.len());
        both.extend_from_slice(key);
        both.extend_from_slice(value);
        let mut key_bytes = both.freeze();
        let value = key_bytes.split_off(key.len());
        Self { key: key_bytes, value, revision }
    }
}

impl fmt::Debug for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyValue")
            .field("key", &self.key)
            .field("value", &Excerpt(&self.value))
            .field("revision", &self.revision.0)
            .finish()
    }
}

/// Prints the beginning of a value, which may be megabytes.
pub(crate) struct Excerpt<'a>(pub(crate) &'a [u8]);

impl fmt::Debug for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 48;
        match self.0.get(..SHOWN) {
            Some(head) => write!(f, "\"{}\"… ({} bytes)", head.escape_ascii(), self.0.len()),
            None => write!(f, "\"{}\"", self.0.escape_ascii()),
        }
    }
}

/// What to read with [`Store::range`](crate::Store::range).
///
/// ```
/// # use k1s_store::{Range, Revision};
/// let first_page = Range::prefix("/pods/").limit(500);
/// // The next page, at the revision of the first one.
/// let next_page = Range::prefix("/pods/").limit(500).start("/pods/default/web-7").at(Revision::new(812));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Only keys that begin with this; empty for all keys.
    pub prefix: Bytes,
    /// Only keys that are not before this one.
    pub start: Option<Bytes>,
    /// Maximum number of entries; 0 for no limit.
    pub limit: usize,
    /// The state at this revision; `None` for the newest.
    pub revision: Option<Revision>,
}

impl Range {
    /// All keys that begin with `prefix`, as they are now.
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        Self { prefix: prefix.into(), ..Self::default() }
    }

    /// Leaves out the keys before `key`.
    #[must_use]
    pub fn start(mut self, key: impl Into<Bytes>) -> Self {
        self.start = Some(key.into());
        self
    }

    /// Returns at most `limit` entries; 0 for no limit.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Reads the state at `revision`.
    #[must_use]
    pub fn at(mut self, revision: Revision) -> Self {
        self.revision = Some(revision);
        self
    }

    /// The first key that can be in the range.
    pub fn first_key(&self) -> &Bytes {
        match &self.start {
            Some(start) if start > &self.prefix => start,
            _ => &self.prefix,
        }
    }

    /// The limit as a number of entries.
    pub fn max_entries(&self) -> usize {
        if self.limit == 0 { usize::MAX } else { self.limit }
    }
}

/// The smallest key after all keys that begin with `prefix`, or `None` if there is no such key
/// (the prefix is empty or all `0xff`).
pub fn prefix_end(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end.into())
}

/// The answer to [`Store::get`](crate::Store::get).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetResult {
    /// The revision of the read.
    pub revision: Revision,
    /// The entry, if the key had a value at that revision.
    pub entry: Option<KeyValue>,
}

/// The answer to [`Store::range`](crate::Store::range).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeResult {
    /// The revision of the read: read the next page at it.
    pub revision: Revision,
    /// The entries, in the order of their keys.
    pub entries: Vec<KeyValue>,
    /// Whether entries of the range were left out because of its limit.
    pub more: bool,
}

/// Statistics of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The newest revision.
    pub revision: Revision,
    /// The oldest revision that can still be read, and watched from.
    pub oldest: Revision,
    /// Keys that have a value now.
    pub keys: u64,
    /// Bytes of those keys and values; `None` where the backend does not count them.
    pub bytes: Option<u64>,
    /// Bytes used on disk; `None` for a store that has none.
    pub disk_bytes: Option<u64>,
    /// Watches that are open in this process.
    pub watches: u64,
    /// Why writes fail now, if they do (a full disk, say).
    pub degraded: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_end_is_the_next_key_that_does_not_begin_with_the_prefix() {
        assert_eq!(prefix_end(b"/a/"), Some(Bytes::from_static(b"/a0")));
        assert_eq!(prefix_end(b"a\xff\xff"), Some(Bytes::from_static(b"b")));
        assert_eq!(prefix_end(b"\xff\xff"), None);
        assert_eq!(prefix_end(b""), None);
    }

    #[test]
    fn a_range_begins_at_its_start_key_or_its_prefix_whichever_is_later() {
        assert_eq!(Range::prefix("/b/").start("/b/5").first_key(), "/b/5");
        assert_eq!(Range::prefix("/b/").start("/a").first_key(), "/b/");
        assert_eq!(Range::prefix("/b/").first_key(), "/b/");
    }

    #[test]
    fn debug_output_of_a_large_value_is_short() {
        let entry =
            KeyValue { key: "k".into(), value: vec![b'x'; 1 << 20].into(), revision: Revision::new(7) };
        let text = format!("{entry:?}");
        assert!(text.len() < 200, "{text}");
        assert!(text.contains("(1048576 bytes)"), "{text}");
    }
}
