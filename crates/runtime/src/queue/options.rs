//! The options of a queue and of an add.

use std::{
    fmt,
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

use super::{Causes, ExponentialLimiter, Key, QueueMetrics, RateLimiter};

/// A number for the flow that a key belongs to.
pub type FlowFn<R> = Arc<dyn Fn(&R) -> u64 + Send + Sync>;

/// The options of a queue.
pub struct QueueOptions<R> {
    /// Its name in metrics; that of its controller.
    pub name: Arc<str>,
    /// The delay of keys that are added `rate_limited`. By default 5 ms, doubled with each failure of the key, up to
    /// 1000 s.
    pub rate_limiter: Arc<dyn RateLimiter<R>>,
    /// The metrics that it reports to. None by default.
    pub metrics: Option<QueueMetrics>,
    /// How starvation of low priorities is prevented.
    pub fairness: Fairness,
    /// Divides the keys into flows, clusters for example. Among keys of the same priority, each flow has its turn: one key of
    /// each, then the next one of each. By default there is one flow.
    ///
    /// It is called with the queue locked, and must return the same number for the same key.
    pub flows: Option<FlowFn<R>>,
    /// Maximum number of keys of a flow that are processed at once. Unlimited by default.
    pub max_per_flow: Option<NonZeroUsize>,
    /// Whether adds are counted by flow, for [`Queue::flow_state`](super::Queue::flow_state). A flow then takes some memory until
    /// [`Queue::forget_flow`](super::Queue::forget_flow), also without keys. Off by default.
    pub count_flows: bool,
}

impl<R: Key> QueueOptions<R> {
    /// The defaults, under a name.
    pub fn named(name: impl Into<Arc<str>>) -> QueueOptions<R> {
        QueueOptions { name: name.into(), ..QueueOptions::default() }
    }
}

impl<R: Key> Default for QueueOptions<R> {
    fn default() -> QueueOptions<R> {
        QueueOptions {
            name: Arc::default(),
            rate_limiter: Arc::new(ExponentialLimiter::default()),
            metrics: None,
            fairness: Fairness::default(),
            flows: None,
            max_per_flow: None,
            count_flows: false,
        }
    }
}

impl<R> Clone for QueueOptions<R> {
    fn clone(&self) -> QueueOptions<R> {
        QueueOptions {
            name: Arc::clone(&self.name),
            rate_limiter: Arc::clone(&self.rate_limiter),
            metrics: self.metrics.clone(),
            fairness: self.fairness,
            flows: self.flows.clone(),
            max_per_flow: self.max_per_flow,
            count_flows: self.count_flows,
        }
    }
}

impl<R> fmt::Debug for QueueOptions<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueOptions")
            .field("name", &self.name)
            .field("fairness", &self.fairness)
            .finish_non_exhaustive()
    }
}

/// How starvation of low priorities is prevented.
///
/// By default at least every tenth handout goes to the key that has been ready for the longest time, whatever its
/// priority. So a key that finds `k` others ready is handed out after at most `10 (k + 1)` handouts, however many keys of
/// higher priority follow; and high priorities lose at most a tenth of the workers. Counting handouts was chosen over aging
/// (raising priorities with time) because the bound holds whether a reconcile takes a microsecond or a minute, and because
/// it leaves priorities unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fairness {
    /// One of this many handouts in a row goes to the key that has been ready for the longest time. With 1, priorities
    /// have no effect.
    OldestEvery(NonZeroU32),
    /// Higher priorities always come first; lower ones may wait for ever.
    Strict,
}

impl Fairness {
    const TEN: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
}

impl Default for Fairness {
    fn default() -> Fairness {
        Fairness::OldestEvery(Fairness::TEN)
    }
}

/// The options of an add.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// Higher priorities are handed out first. `None` is 0.
    pub priority: Option<i32>,
    /// Minimum delay. Zero is none.
    pub after: Option<Duration>,
    /// Delayed by the rate limiter. With `after`, the shorter delay applies.
    pub rate_limited: bool,
    /// Why the key is added.
    pub causes: Causes,
}

impl AddOptions {
    /// The defaults, with a cause.
    pub fn because(causes: impl Into<Causes>) -> AddOptions {
        AddOptions { causes: causes.into(), ..AddOptions::default() }
    }
}
