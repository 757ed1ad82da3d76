//! The work queue: which keys wait to be reconciled, in which order, and which are being processed.
//!
//! - [`Queue`] holds each key once, hands it to one worker at a time, and remembers adds during the run.
//! - [`AddOptions`] set the priority, the delay and the causes ([`Cause`]) of an add.
//! - [`Item`] is a key that was handed out: until it is dropped, no other worker gets that key.
//! - [`RateLimiter`] decides how long a failed key has to wait.
//! - [`QueueMetrics`] are the metrics of all queues of a manager, named as in Go.
//!
//! # Order
//!
//! The highest priority comes first; among equals, the key that became ready first. Adds of the same key are merged into
//! one with the highest priority, the earliest time and all causes. A key whose priority is raised is queued behind the
//! keys that already had that priority.
//!
//! Low priorities do not starve: see [`Fairness`]. Nor do keys of the same priority, if they belong to different flows
//! ([`QueueOptions::flows`]): a flow with many keys does not delay the others.
//!
//! # Cost
//!
//! Adding, handing out and finishing take constant time for ready keys, and `O(log n)` for delayed ones. A key is stored
//! once, with an overhead of some 70 bytes, 100 if it is delayed; causes are stored only if there are any. The queue has no
//! task or timer of its own: one of the workers waiting in [`Queue::next`] watches the clock for all of them.

mod band;
mod cause;
mod core;
mod flows;
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
pub use flows::FlowState;
pub use item::Item;
pub use limiter::{BucketLimiter, ExponentialLimiter, MaxOf, RateLimiter};
pub use metrics::QueueMetrics;
pub use options::{AddOptions, Fairness, FlowFn, QueueOptions};

use self::shared::Shared;

/// The priority of work that can wait: objects of the initial list, resyncs. Changes have 0.
pub const LOW_PRIORITY: i32 = -100;

/// What a queue can hold: a [`Request`](crate::Request), or a program's own type. Implemented for every type that fits.
pub trait Key: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static {}

impl<R: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static> Key for R {}

/// A snapshot of the number of keys in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueState {
    /// Keys that wait for a worker, including those that wait for their own run to end.
    pub ready: usize,
    /// Keys that are handed out and not done.
    pub processing: usize,
    /// Keys delayed by the rate limiter: after a failure, or a requeue without a delay.
    pub retrying: usize,
    /// Keys that were added with a delay.
    pub delayed: usize,
    /// When the first delayed key (`retrying` or `delayed`) is due.
    pub next_due: Option<Instant>,
}

impl QueueState {
    /// Whether nothing is left to do but keys that were added with a delay.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.ready == 0 && self.processing == 0 && self.retrying == 0
    }

    /// Whether there are no keys at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_idle() && self.delayed == 0
    }
}

/// A snapshot of the keys that wait in a queue; not necessarily all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingKeys<R> {
    /// Keys that wait for a worker; those that wait for their own run to end come last.
    pub ready: Vec<R>,
    /// Keys delayed by the rate limiter, and when they are due.
    pub retrying: Vec<(R, Instant)>,
    /// Keys that were added with a delay, and when they are due.
    pub delayed: Vec<(R, Instant)>,
}

impl<R> WaitingKeys<R> {
    pub(crate) fn map<T>(self, of: impl Fn(R) -> T) -> WaitingKeys<T> {
        let timed = |keys: Vec<(R, Instant)>| keys.into_iter().map(|(key, due)| (of(key), due)).collect();
        let (retrying, delayed) = (timed(self.retrying), timed(self.delayed));
        WaitingKeys { ready: self.ready.into_iter().map(of).collect(), retrying, delayed }
    }
}

/// A queue of keys with priorities. Clones refer to the same queue.
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
    /// An empty queue on the clock of `env`. Two queues share nothing, unless their options do.
    #[must_use]
    pub fn new(env: &Env, options: QueueOptions<R>) -> Queue<R> {
        Queue { shared: Shared::new(env, options) }
    }

    /// A queue that holds nothing: what is added to it is added to another queue, as another key.
    pub(crate) fn forwarding<T: Key>(
        env: &Env,
        to: &Queue<T>,
        map: impl Fn(R) -> T + Send + Sync + 'static,
    ) -> Queue<R> {
        let (name, to) = (Arc::clone(&to.shared.name), to.clone());
        let forward = Box::new(move |options, key| to.add_with(options, map(key)));
        Queue { shared: Shared::forwarding(env, name, forward) }
    }

    /// A queue without keys of its own: what `keep` accepts is added to this one.
    pub(crate) fn filtered(&self, env: &Env, keep: impl Fn(&R) -> bool + Send + Sync + 'static) -> Queue<R> {
        let (name, to) = (Arc::clone(&self.shared.name), self.clone());
        let forward = Box::new(move |options, key| {
            if keep(&key) {
                to.add_with(options, key);
            }
        });
        Queue { shared: Shared::forwarding(env, name, forward) }
    }

    /// The name from its options.
    #[must_use]
    pub fn name(&self) -> &str {
        self.shared.name()
    }

    /// Adds a key, to be handed out as soon as possible, with priority 0.
    pub fn add(&self, key: R) {
        self.add_with(AddOptions::default(), key);
    }

    /// Adds a key. A key that is already queued keeps the higher priority and the earlier time of the two, and its position
    /// among the keys of the same priority; a delay never postpones a ready key. A key that is being processed is handed
    /// out again once it is done. Has no effect after a shutdown.
    pub fn add_with(&self, options: AddOptions, key: R) {
        self.shared.add(options, key);
    }

    /// Waits for the next key in order. `None` after a shutdown.
    ///
    /// It may be called by any number of workers, and is cancel safe: no key is lost.
    pub async fn next(&self) -> Option<Item<R>> {
        Shared::next(&self.shared, None).await
    }

    /// [`done`](Self::done) and [`next`](Self::next) in one step: the loop of a worker.
    pub async fn next_after(&self, item: Item<R>) -> Option<Item<R>> {
        Shared::next(&self.shared, Some(item)).await
    }

    /// The next key in order, if one is ready now.
    #[must_use]
    pub fn try_next(&self) -> Option<Item<R>> {
        Shared::try_next(&self.shared)
    }

    /// Ends the run, so that the key may be handed out again. Dropping the item does the same.
    pub fn done(&self, item: Item<R>) {
        drop(item);
    }

    /// Resets the failures of a key in the rate limiter.
    pub fn forget(&self, key: &R) {
        self.shared.limiter().forget(key);
    }

    /// Number of rate-limited adds of the key since it was last forgotten.
    #[must_use]
    pub fn retries(&self, key: &R) -> u32 {
        self.shared.limiter().retries(key)
    }

    /// Number of ready keys, including those that wait for their own run to end. Delayed keys do not count.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.read(|core| core.len())
    }

    /// Whether no key is ready.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of ready keys by priority, the highest first. Priorities without keys are left out.
    #[must_use]
    pub fn depth(&self) -> Vec<(i32, usize)> {
        let mut depth = self.shared.read(|core| core.depth());
        depth.retain(|(_, len)| *len > 0);
        depth
    }

    /// What there is of a flow, by the number that [`QueueOptions::flows`] returns for its keys.
    #[must_use]
    pub fn flow_state(&self, flow: u64) -> FlowState {
        self.shared.read(|core| core.flow_state(flow))
    }

    /// Drops what is counted of a flow ([`QueueOptions::count_flows`]); its keys stay.
    pub fn forget_flow(&self, flow: u64) {
        self.shared.change(|core, _| core.forget_flow(flow));
    }

    /// The number of keys in each state.
    #[must_use]
    pub fn state(&self) -> QueueState {
        self.shared.read(|core| core.state())
    }

    /// A counter that changes with every add, handout, done and removal, and when keys become due: if two reads return the
    /// same value, nothing happened in between.
    #[must_use]
    pub fn activity(&self) -> u64 {
        self.shared.read(|core| core.activity())
    }

    /// Waits until nothing is ready, processed or to be retried; returns at once if so. Keys that were added with a delay do
    /// not count.
    pub async fn idle(&self) {
        self.shared.idle().await;
    }

    /// The keys that are being processed, each with the time it was handed out, the longest first.
    #[must_use]
    pub fn processing(&self) -> Vec<(R, Instant)> {
        self.shared.read(|core| core.processing())
    }

    /// The keys that wait: those that have waited the longest, or are due first, at most `limit` in each state.
    #[must_use]
    pub fn waiting(&self, limit: usize) -> WaitingKeys<R> {
        self.shared.read(|core| core.waiting(limit))
    }

    /// Removes a ready or delayed key, and forgets its failures. A run in progress goes on; adds that wait for its end are
    /// dropped, later ones are not. Returns whether anything was dropped.
    pub fn remove(&self, key: &R) -> bool {
        let removed = self.shared.change(|core, _| core.remove(key));
        self.shared.limiter().forget(key);
        removed
    }

    /// Removes all keys for which `keep` returns `false`, each as [`remove`](Self::remove) does, and returns how many.
    ///
    /// It visits every key with the queue locked: `keep` must not use this queue.
    pub fn retain(&self, keep: impl FnMut(&R) -> bool) -> usize {
        let removed = self.shared.change(|core, _| core.retain(keep));
        for key in &removed.forgotten {
            self.shared.limiter().forget(key);
        }
        removed.dropped
    }

    /// Closes the queue: further adds are ignored, waiting keys are dropped, [`next`](Self::next) returns `None`. Items that
    /// were handed out are not affected; [`idle`](Self::idle) waits for them.
    pub fn shut_down(&self) {
        self.shared.shut_down(false);
    }

    /// Closes the queue, but still hands out ready keys: further adds are ignored, delayed keys are dropped, and
    /// [`next`](Self::next) returns `None` when nothing is left. [`idle`](Self::idle) waits until all of it is done.
    pub fn shut_down_with_drain(&self) {
        self.shared.shut_down(true);
    }

    /// Whether it was shut down, with or without draining.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.shared.read(|core| core.is_closed())
    }

    /// Adds a key with a delay: [`add_with`](Self::add_with) with `after`.
    pub fn add_after(&self, key: R, after: Duration) {
        self.add_with(AddOptions { after: Some(after), ..AddOptions::default() }, key);
    }

    /// Adds a key with the delay of the rate limiter: [`add_with`](Self::add_with) with `rate_limited`.
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
