//! One key with its value, and the older values that pinned snapshots need.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::{KeyValue, Previous, Revision};

/// A key from its creation to its deletion. (A key that is created again gets another cell: snapshots from before the
/// deletion have the old one.)
///
/// Writers change it in place; a reader of a snapshot finds the value at its revision, as long as that is pinned in
/// [`Pins`](super::snapshots::Pins).
pub(super) struct Cell {
    key: Bytes,
    newest: Mutex<Newest>,
}

struct Newest {
    value: Bytes,
    revision: Revision,
    /// Older values that are kept, newest first.
    kept: Option<Box<Kept>>,
}

/// A value that was replaced, and that a snapshot may still need.
struct Kept {
    value: Bytes,
    revision: Revision,
    /// The revision that replaced it: snapshots from `revision` to right before this one see it.
    until: Revision,
    older: Option<Box<Kept>>,
}

/// Values that no snapshot needs. They are freed when this is dropped: outside of locks, if possible.
#[derive(Default)]
pub(super) struct Released(Option<Box<Kept>>);

impl Cell {
    pub(super) fn new(key: &[u8], value: Bytes, revision: Revision) -> Arc<Self> {
        let newest = Newest { value, revision, kept: None };
        Arc::new(Self { key: compact(key), newest: Mutex::new(newest) })
    }

    pub(super) fn key(&self) -> &Bytes {
        &self.key
    }

    /// The revision that wrote the newest value.
    pub(super) fn revision(&self) -> Revision {
        self.newest.lock().revision
    }

    /// The newest value.
    pub(super) fn entry(&self) -> KeyValue {
        let newest = self.newest.lock();
        KeyValue { key: self.key.clone(), value: newest.value.clone(), revision: newest.revision }
    }

    /// The entry at revision `at`. `None` if the key was created later, or the value was not kept.
    pub(super) fn entry_at(&self, at: Revision) -> Option<KeyValue> {
        let newest = self.newest.lock();
        let (value, revision) = if newest.revision <= at {
            (newest.value.clone(), newest.revision)
        } else {
            let mut kept = newest.kept.as_deref();
            while let Some(later) = kept.filter(|kept| kept.revision > at) {
                kept = later.older.as_deref();
            }
            let kept = kept.filter(|kept| at < kept.until)?;
            (kept.value.clone(), kept.revision)
        };
        drop(newest);
        Some(KeyValue { key: self.key.clone(), value, revision })
    }

    /// Sets a new value, written by `revision`, and returns the previous one.
    ///
    /// Also used for deletion: no snapshot of that revision or a later one has this cell.
    pub(super) fn replace(&self, value: Bytes, revision: Revision) -> Previous {
        let mut newest = self.newest.lock();
        let value = std::mem::replace(&mut newest.value, value);
        let written = std::mem::replace(&mut newest.revision, revision);
        Previous { value, revision: written }
    }

    /// Like [`replace`](Self::replace), and keeps the previous value if one of `pins`, which are in order and before
    /// `revision`, needs it. Returns whether it was kept.
    pub(super) fn replace_and_keep(
        &self,
        value: Bytes,
        revision: Revision,
        pins: &[Revision],
    ) -> (Previous, bool, Released) {
        let mut newest = self.newest.lock();
        let value = std::mem::replace(&mut newest.value, value);
        let written = std::mem::replace(&mut newest.revision, revision);
        // At most one value per pinned revision is kept, however often the key is written.
        let released = newest.release(|kept| {
            let next = pins.partition_point(|at| *at < kept.revision);
            pins.get(next).is_none_or(|at| *at >= kept.until)
        });
        let needed = pins.last().is_some_and(|at| *at >= written);
        if needed {
            let older = newest.kept.take();
            let kept = Kept { value: value.clone(), revision: written, until: revision, older };
            newest.kept = Some(Box::new(kept));
        }
        (Previous { value, revision: written }, needed, released)
    }

    /// Releases values that only snapshots before `oldest` can see.
    pub(super) fn release_before(&self, oldest: Revision) -> Released {
        self.newest.lock().release(|kept| kept.until <= oldest)
    }

    /// How many older values are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        let newest = self.newest.lock();
        std::iter::successors(newest.kept.as_deref(), |kept| kept.older.as_deref()).count()
    }
}

impl Newest {
    /// Takes out the kept values that are `needless`.
    fn release(&mut self, needless: impl Fn(&Kept) -> bool) -> Released {
        let mut released = Released::default();
        let mut rest = self.kept.take();
        let mut end = &mut self.kept;
        while let Some(mut kept) = rest {
            rest = kept.older.take();
            if needless(&kept) {
                kept.older = released.0.take();
                released.0 = Some(kept);
            } else {
                end = &mut end.insert(kept).older;
            }
        }
        released
    }
}

/// The key in its own allocation, beside its reference count: lookups and lists touch little memory, and a slice of a caller's
/// large buffer does not keep all of it alive.
fn compact(key: &[u8]) -> Bytes {
    fn sized<const SIZE: usize>(key: &[u8]) -> Bytes {
        let mut bytes = [0; SIZE];
        bytes[..key.len()].copy_from_slice(key);
        let mut owned = Bytes::from_owner(bytes);
        owned.truncate(key.len());
        owned
    }
    match key.len() {
        0..=32 => sized::<32>(key),
        33..=48 => sized::<48>(key),
        49..=64 => sized::<64>(key),
        65..=80 => sized::<80>(key),
        81..=96 => sized::<96>(key),
        97..=112 => sized::<112>(key),
        113..=128 => sized::<128>(key),
        _ => Bytes::copy_from_slice(key),
    }
}
