//! What a queue and an add can be told.

use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use super::{Causes, ExponentialLimiter, Key, QueueMetrics, RateLimiter};

/// How a queue is made.
pub struct QueueOptions<R> {
    /// Its name in metrics; that of its controller.
    pub name: Arc<str>,
    /// How long keys wait that are added `rate_limited`. By default 5 ms, doubled with each failure of the key, up to
    /// 1000 s.
    pub rate_limiter: Arc<dyn RateLimiter<R>>,
    /// The metrics it is part of. By default none.
    pub metrics: Option<QueueMetrics>,
    /// What is done so that low priorities do not starve.
    pub fairness: Fairness,
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

/// What is done so that low priorities do not starve.
///
/// By default every tenth handout, at least, goes to the key that has been ready for the longest time, whatever its
/// priority. So a key that finds `k` others ready is handed out after at most `10 (k + 1)` handouts, however much of
/// higher priority comes after it; and high priorities give up at most a tenth of the workers for it. A rule by numbers was chosen
/// over one by age (raising priorities with time) because its bound holds whether a reconcile takes a microsecond or a
/// minute, and because it leaves the priorities what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fairness {
    /// Of so many handouts in a row, one goes to the key that has been ready for the longest time. With 1, priorities
    /// don't matter.
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

/// How a key is added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// Higher ones come first. `None` is 0.
    pub priority: Option<i32>,
    /// Not before this time has passed. Zero is none.
    pub after: Option<Duration>,
    /// Not before the rate limiter allows it. With `after`, the earlier of the two.
    pub rate_limited: bool,
    /// Why.
    pub causes: Causes,
}

impl AddOptions {
    /// The defaults, with a cause.
    pub fn because(causes: impl Into<Causes>) -> AddOptions {
        AddOptions { causes: causes.into(), ..AddOptions::default() }
    }
}
