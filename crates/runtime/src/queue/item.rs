//! A key that a worker is processing.

use std::{fmt, sync::Arc};

use k1s_env::Instant;

use super::{Causes, Key, core::Taken, shared::Shared, slots::Slot};

/// A key that was handed out. While the item exists, the key is not handed out again.
///
/// Dropping it ends the run, whether it returned, failed, panicked or was cancelled.
pub struct Item<R: Key> {
    shared: Arc<Shared<R>>,
    taken: Taken<R>,
    attempt: u32,
    /// Whether the run has already been ended in the queue.
    done: bool,
}

impl<R: Key> Item<R> {
    pub(super) fn new(shared: Arc<Shared<R>>, taken: Taken<R>) -> Item<R> {
        // The item before the limiter, which is foreign code: if it panics, the key is released.
        let mut item = Item { shared, taken, attempt: 1, done: false };
        item.attempt = item.shared.limiter().retries(item.key()).saturating_add(1);
        item
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &R {
        &self.taken.key
    }

    /// The highest priority it was added with.
    #[must_use]
    pub fn priority(&self) -> i32 {
        self.taken.priority
    }

    /// Why it was queued.
    #[must_use]
    pub fn causes(&self) -> &Causes {
        &self.taken.causes
    }

    /// Takes the causes out of the item, to pass them to the run or to the next add of the key.
    #[must_use]
    pub fn take_causes(&mut self) -> Causes {
        std::mem::take(&mut self.taken.causes)
    }

    /// The number of this attempt: 1, plus one for each rate-limited add since the key was last forgotten.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// When it began to wait for a worker: when it was added or became due. Not the time it was handed out.
    #[must_use]
    pub fn queued_at(&self) -> Instant {
        self.taken.since
    }

    /// Whether the key was removed from the queue since it was handed out, by [`remove`](super::Queue::remove) or
    /// [`retain`](super::Queue::retain): its worker should not requeue it.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.shared.read(|core| core.is_removed(self.taken.slot))
    }

    /// Ends the run. The same as dropping it.
    pub fn done(self) {}

    pub(super) fn is_of(&self, queue: &Arc<Shared<R>>) -> bool {
        Arc::ptr_eq(&self.shared, queue)
    }

    /// Returns the key's slot; the caller ends the run in the queue.
    pub(super) fn finish(mut self) -> Slot {
        self.done = true;
        self.taken.slot
    }
}

impl<R: Key> Drop for Item<R> {
    fn drop(&mut self) {
        if !self.done {
            self.shared.change(|core, now| core.done(now, self.taken.slot));
        }
    }
}

impl<R: Key> fmt::Debug for Item<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("key", self.key())
            .field("priority", &self.priority())
            .field("attempt", &self.attempt)
            .field("causes", self.causes())
            .finish_non_exhaustive()
    }
}
