//! The work queue: which keys wait to be reconciled, in which order, and which are being worked on.
//!
//! - [`Queue`] holds each key once, hands it to one worker at a time, and remembers what is added meanwhile.
//! - [`AddOptions`] say how urgent an add is, when it is due, and why it was made ([`Cause`]).
//! - [`Item`] is a key that was handed out: until it is dropped, nobody else gets that key.
//! - [`RateLimiter`] decides how long a key that failed has to wait.
//! - [`QueueMetrics`] are the metrics of all queues of a manager, under the names that Go gave them.
//!
//! # Order
//!
//! The highest priority comes first; among equals, who became ready first. Adds of the same key merge: the highest
//! priority of them, the earliest moment, all causes. A key whose priority is raised goes to the end of those that had that
//! priority before it.
//!
//! Low priorities do not starve: see [`Fairness`].
//!
//! # Cost
//!
//! Adding, handing out and finishing take constant time for keys that are ready, and `O(log n)` for delayed ones. A key is
//! stored once, with some 70 bytes beside it, 100 if it is delayed; causes are stored only where there are any. There is no
//! task and no timer of the queue's own: one of those who wait in [`Queue::next`] watches the clock for all of them.

mod cause;
mod core;
mod item;
mod limiter;
mod list;
mod metrics;
mod options;
mod shared;
mod slots;

use std::{fmt, hash::Hash, sync::Arc, time::Duration};

use k1s_env::{Env, Instant};

pub use cause::{Cause, CauseEvent, Causes, ResourceVersion};
pub use item::Item;
pub use limiter::{BucketLimiter, ExponentialLimiter, MaxOf, RateLimiter};
pub use metrics::QueueMetrics;
pub use options::{AddOptions, Fairness, QueueOptions};

use self::shared::Shared;

/// The priority of what can wait: objects of a first list, resyncs. What changes while the program runs has 0.
pub const LOW_PRIORITY: i32 = -100;

/// What a queue can hold: a [`Request`](crate::Request), or a program's own. Implemented for every type that fits.
pub trait Key: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static {}

impl<R: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static> Key for R {}

/// How much is where in a queue, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueState {
    /// Keys that wait for a worker, those included that wait for their own run to end.
    pub ready: usize,
    /// Keys that were handed out and are not done.
    pub processing: usize,
    /// Keys that wait because of the rate limiter: after a failure, or a requeue without a time.
    pub retrying: usize,
    /// Keys that wait for a time that somebody asked for.
    pub delayed: usize,
    /// When the first of the waiting ones (`retrying` and `delayed`) is due.
    pub next_due: Option<Instant>,
}

impl QueueState {
    /// Nothing is to be done but what somebody wanted to be done later.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.ready == 0 && self.processing == 0 && self.retrying == 0
    }

    /// Whether there is no key at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_idle() && self.delayed == 0
    }
}

/// Keys that wait in a queue, at one moment; not necessarily all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingKeys<R> {
    /// Those that wait for a worker; those that wait for their own run to end come last.
    pub ready: Vec<R>,
    /// Those that wait because of the rate limiter, and when they are due.
    pub retrying: Vec<(R, Instant)>,
    /// Those that wait for a time that somebody asked for.
    pub delayed: Vec<(R, Instant)>,
}

impl<R> WaitingKeys<R> {
    pub(crate) fn map<T>(self, of: impl Fn(R) -> T) -> WaitingKeys<T> {
        let timed = |keys: Vec<(R, Instant)>| keys.into_iter().map(|(key, due)| (of(key), due)).collect();
        let (retrying, delayed) = (timed(self.retrying), timed(self.delayed));
        WaitingKeys { ready: self.ready.into_iter().map(of).collect(), retrying, delayed }
    }
}

/// A queue of keys with priorities. Clones are the same queue.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use k1s_env::Env;
/// use k1s_runtime::queue::{AddOptions, LOW_PRIORITY, Queue, QueueOptions};
///
/// let queue = Queue::new(&Env::system(), QueueOptions::named("example"));
/// queue.add_with(AddOptions { priority: Some(LOW_PRIORITY), ..AddOptions::default() }, "later");
/// queue.add("now");
/// queue.add("now"); // merged
///
/// let item = queue.next().await.expect("the queue is open");
/// assert_eq!(*item.key(), "now");
/// queue.add("now"); // remembered until the item is done
/// assert_eq!(*queue.next().await.expect("the queue is open").key(), "later");
/// queue.done(item);
/// assert_eq!(*queue.next().await.expect("the queue is open").key(), "now");
/// # }
/// ```
pub struct Queue<R: Key> {
    shared: Arc<Shared<R>>,
}

impl<R: Key> Queue<R> {
    /// An empty queue on that environment's clock. Two queues share nothing, unless their options do.
    #[must_use]
    pub fn new(env: &Env, options: QueueOptions<R>) -> Queue<R> {
        Queue { shared: Shared::new(env, options) }
    }

    /// The name it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        self.shared.name()
    }

    /// Adds a key, to be handed out as soon as possible, with priority 0.
    pub fn add(&self, key: R) {
        self.add_with(AddOptions::default(), key);
    }

    /// Adds a key. One that is there already keeps the higher priority and the earlier moment of the two, and its place
    /// among those of the same priority; a delay never makes a key wait that is ready. One that is being processed is
    /// handed out again once that is done. After a shutdown nothing happens.
    pub fn add_with(&self, options: AddOptions, key: R) {
        self.shared.add(options, key);
    }

    /// Waits for a key, the next in order. `None` after a shutdown.
    ///
    /// It may be called by any number of workers, and dropped at any time: no key is lost.
    pub async fn next(&self) -> Option<Item<R>> {
        Shared::next(&self.shared, None).await
    }

    /// [`done`](Self::done) and [`next`](Self::next) in one step: what a worker does all the time.
    pub async fn next_after(&self, item: Item<R>) -> Option<Item<R>> {
        Shared::next(&self.shared, Some(item)).await
    }

    /// The next key in order if one is ready now.
    #[must_use]
    pub fn try_next(&self) -> Option<Item<R>> {
        Shared::try_next(&self.shared)
    }

    /// The key may be handed out again. Dropping the item does the same.
    pub fn done(&self, item: Item<R>) {
        drop(item);
    }

    /// Forgets the failures of a key: the rate limiter begins anew with it.
    pub fn forget(&self, key: &R) {
        self.shared.limiter().forget(key);
    }

    /// How often the key was added by way of the rate limiter since it was last forgotten.
    #[must_use]
    pub fn retries(&self, key: &R) -> u32 {
        self.shared.limiter().retries(key)
    }

    /// How many keys are ready: what workers could take, and what waits for its own run to end. Delayed keys don't count.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.read(|core| core.len())
    }

    /// Whether no key is ready.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys are ready, by priority, the highest first. Priorities without any are left out.
    #[must_use]
    pub fn depth(&self) -> Vec<(i32, usize)> {
        let mut depth = self.shared.read(|core| core.depth());
        depth.retain(|(_, len)| *len > 0);
        depth
    }

    /// How much is where, now.
    #[must_use]
    pub fn state(&self) -> QueueState {
        self.shared.read(|core| core.state())
    }

    /// A number that moves with every add, handout and done, with keys that become due, and with removals: if it is the
    /// same at two looks, nothing happened in between.
    #[must_use]
    pub fn activity(&self) -> u64 {
        self.shared.read(|core| core.activity())
    }

    /// Waits for a moment at which nothing is ready, processed or to be retried; at once if that is so now. What somebody
    /// wanted to be done later doesn't count.
    pub async fn idle(&self) {
        self.shared.idle().await;
    }

    /// The keys that are being processed, each with the moment it was handed out, the longest first.
    #[must_use]
    pub fn processing(&self) -> Vec<(R, Instant)> {
        self.shared.read(|core| core.processing())
    }

    /// The keys that wait: those that have waited the longest, or are due first, at most so many of each kind.
    #[must_use]
    pub fn waiting(&self, limit: usize) -> WaitingKeys<R> {
        self.shared.read(|core| core.waiting(limit))
    }

    /// Drops a key that is ready or delayed, with its failures. One that is being processed goes on; adds of it that wait
    /// for its end are dropped, later ones are not. Says whether there was anything to drop.
    pub fn remove(&self, key: &R) -> bool {
        let removed = self.shared.change(|core, _| core.remove(key));
        self.shared.limiter().forget(key);
        removed
    }

    /// Drops all keys that `keep` says no to, each as [`remove`](Self::remove) does, and says how many.
    ///
    /// It looks at every key with the queue locked: `keep` must not use this queue.
    pub fn retain(&self, keep: impl FnMut(&R) -> bool) -> usize {
        let removed = self.shared.change(|core, _| core.retain(keep));
        for key in &removed.forgotten {
            self.shared.limiter().forget(key);
        }
        removed.dropped
    }

    /// Closes the queue: adds do nothing from now on, what waits is dropped, [`next`](Self::next) gives `None`. Items that
    /// were handed out are not touched; [`idle`](Self::idle) waits for them.
    pub fn shut_down(&self) {
        self.shared.shut_down(false);
    }

    /// Closes the queue, but what is ready is still handed out: adds do nothing from now on, what is delayed is dropped, and
    /// [`next`](Self::next) gives `None` when nothing is left. [`idle`](Self::idle) waits until all of it is done.
    pub fn shut_down_with_drain(&self) {
        self.shared.shut_down(true);
    }

    /// Whether it was shut down, in one way or the other.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.shared.read(|core| core.is_closed())
    }

    /// Adds a key with a delay: [`add_with`](Self::add_with) with `after`.
    pub fn add_after(&self, key: R, after: Duration) {
        self.add_with(AddOptions { after: Some(after), ..AddOptions::default() }, key);
    }

    /// Adds a key when the rate limiter says so: [`add_with`](Self::add_with) with `rate_limited`.
    pub fn add_rate_limited(&self, key: R) {
        self.add_with(AddOptions { rate_limited: true, ..AddOptions::default() }, key);
    }
}

impl<R: Key> Clone for Queue<R> {
    fn clone(&self) -> Queue<R> {
        Queue { shared: Arc::clone(&self.shared) }
    }
}

impl<R: Key> fmt::Debug for Queue<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("name", &self.name()).field("state", &self.state()).finish()
    }
}
