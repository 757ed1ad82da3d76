//! Rate limiters: how long a failed key has to wait.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k1s_env::{Env, Instant};
use parking_lot::Mutex;

use super::Key;

/// Decides how long a rate-limited add of a key is delayed, and counts these adds.
///
/// A queue calls it without holding its own lock, from many tasks at a time.
pub trait RateLimiter<R>: Send + Sync {
    /// The delay of the key from now on; counts as one more failure of it.
    fn when(&self, key: &R) -> Duration;

    /// Resets the failures of a key that has succeeded, or is given up.
    fn forget(&self, key: &R);

    /// The number of failures since the key was last forgotten.
    fn retries(&self, key: &R) -> u32;
}

impl<R, L: RateLimiter<R> + ?Sized> RateLimiter<R> for Arc<L> {
    fn when(&self, key: &R) -> Duration {
        (**self).when(key)
    }

    fn forget(&self, key: &R) {
        (**self).forget(key);
    }

    fn retries(&self, key: &R) -> u32 {
        (**self).retries(key)
    }
}

/// Exponential backoff per key: `base` after the first failure, doubled with each further one, up to `max`. Holds only the
/// keys that have failed and were not forgotten.
pub struct ExponentialLimiter<R> {
    base: Duration,
    max: Duration,
    failures: Mutex<HashMap<R, u32>>,
    /// Number of failed keys, readable without the lock: it is usually zero, and each run of a key reads it twice. A worker
    /// that receives a key after its failure observes that failure, which is all that matters.
    failed: AtomicUsize,
}

impl<R: Key> ExponentialLimiter<R> {
    /// With the first and the longest delay.
    #[must_use]
    pub fn new(base: Duration, max: Duration) -> ExponentialLimiter<R> {
        ExponentialLimiter { base, max, failures: Mutex::default(), failed: AtomicUsize::new(0) }
    }
}

/// 5 ms to 1000 s.
impl<R: Key> Default for ExponentialLimiter<R> {
    fn default() -> ExponentialLimiter<R> {
        ExponentialLimiter::new(Duration::from_millis(5), Duration::from_secs(1000))
    }
}

impl<R: Key> RateLimiter<R> for ExponentialLimiter<R> {
    fn when(&self, key: &R) -> Duration {
        let mut failures = self.failures.lock();
        // Looked up twice for a new key, to avoid cloning a known one.
        let before = match failures.get_mut(key) {
            Some(count) => {
                let before = *count;
                *count = count.saturating_add(1);
                before
            }
            None => {
                failures.insert(key.clone(), 1);
                self.failed.store(failures.len(), Ordering::Release);
                0
            }
        };
        drop(failures);
        backoff(self.base, self.max, before)
    }

    fn forget(&self, key: &R) {
        if self.failed.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut failures = self.failures.lock();
        failures.remove(key);
        self.failed.store(failures.len(), Ordering::Release);
        // Releases the memory after many keys have failed.
        if failures.is_empty() && failures.capacity() > 1024 {
            *failures = HashMap::new();
        }
    }

    fn retries(&self, key: &R) -> u32 {
        if self.failed.load(Ordering::Acquire) == 0 {
            return 0;
        }
        self.failures.lock().get(key).copied().unwrap_or(0)
    }
}

/// `base * 2^failures`, at most `max`.
fn backoff(base: Duration, max: Duration, failures: u32) -> Duration {
    let factor = 1u32.checked_shl(failures).unwrap_or(u32::MAX);
    if failures < 32 {
        return base.checked_mul(factor).map_or(max, |wait| wait.min(max));
    }
    // A base of nanoseconds may need more doublings than fit into a factor.
    let mut wait = base.checked_mul(1 << 31).unwrap_or(max);
    for _ in 31..failures {
        if wait >= max || wait.is_zero() {
            break;
        }
        wait = wait.checked_mul(2).unwrap_or(max);
    }
    wait.min(max)
}

impl<R> fmt::Debug for ExponentialLimiter<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExponentialLimiter")
            .field("base", &self.base)
            .field("max", &self.max)
            .field("keys", &self.failures.lock().len())
            .finish()
    }
}

/// A token bucket: `qps` adds per second for all keys together, with bursts of up to `burst`. It counts no failures.
pub struct BucketLimiter {
    env: Env,
    /// The time until the next token; none if there is no limit.
    interval: Option<Duration>,
    burst: u32,
    /// When the bucket will be full if no more tokens are taken. This is its whole state: it holds as many tokens as
    /// intervals fit between (full time − burst intervals) and now.
    full_at: Mutex<Instant>,
}

impl BucketLimiter {
    /// Maximum interval between tokens, so that sums of intervals stay within the range of the clock.
    const MAX_INTERVAL: Duration = Duration::from_secs(365 * 24 * 3600);

    /// `qps` tokens per second, of which at most `burst` accumulate. A `qps` that is not positive, or too large for the
    /// resolution of the clock, means no limit; the lowest rate is one a year. A burst of 0 counts as 1.
    #[must_use]
    pub fn new(env: &Env, qps: f64, burst: u32) -> BucketLimiter {
        let interval =
            Duration::try_from_secs_f64(1.0 / qps).unwrap_or(Self::MAX_INTERVAL).min(Self::MAX_INTERVAL);
        let interval = (qps > 0.0 && !interval.is_zero()).then_some(interval);
        BucketLimiter { env: env.clone(), interval, burst: burst.max(1), full_at: Mutex::new(env.now()) }
    }
}

impl<R> RateLimiter<R> for BucketLimiter {
    fn when(&self, _: &R) -> Duration {
        let Some(interval) = self.interval else { return Duration::ZERO };
        let mut full_at = self.full_at.lock();
        let now = self.env.now();
        // Taking a token moves the full time by one interval. A deficit beyond the burst has to be waited for.
        *full_at = now.max(*full_at) + interval;
        *full_at - (now + interval.saturating_mul(self.burst))
    }

    fn forget(&self, _: &R) {}

    fn retries(&self, _: &R) -> u32 {
        0
    }
}

impl fmt::Debug for BucketLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketLimiter")
            .field("interval", &self.interval)
            .field("burst", &self.burst)
            .finish_non_exhaustive()
    }
}

/// Combines several limiters: the longest delay and the highest number of failures of any of them.
pub struct MaxOf<R> {
    limiters: Vec<Arc<dyn RateLimiter<R>>>,
}

impl<R: Key> MaxOf<R> {
    /// Combines these limiters.
    #[must_use]
    pub fn new(limiters: Vec<Arc<dyn RateLimiter<R>>>) -> MaxOf<R> {
        MaxOf { limiters }
    }

    /// The former default of Go's controllers: 5 ms to 1000 s per key, and a bucket of 10 per second with a burst of 100
    /// for all keys together.
    #[must_use]
    pub fn default_with_bucket(env: &Env) -> MaxOf<R> {
        MaxOf::new(vec![
            Arc::new(ExponentialLimiter::default()),
            Arc::new(BucketLimiter::new(env, 10.0, 100)),
        ])
    }
}

impl<R> RateLimiter<R> for MaxOf<R> {
    fn when(&self, key: &R) -> Duration {
        // All limiters are called, since each of them counts.
        self.limiters.iter().map(|limiter| limiter.when(key)).max().unwrap_or_default()
    }

    fn forget(&self, key: &R) {
        for limiter in &self.limiters {
            limiter.forget(key);
        }
    }

    fn retries(&self, key: &R) -> u32 {
        self.limiters.iter().map(|limiter| limiter.retries(key)).max().unwrap_or_default()
    }
}

impl<R> fmt::Debug for MaxOf<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaxOf").field("limiters", &self.limiters.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn each_failure_of_a_key_doubles_its_wait_up_to_the_cap() {
        let limiter = ExponentialLimiter::default();
        let waits: Vec<_> = (0..20).map(|_| limiter.when(&"a").as_millis()).collect();
        assert_eq!(waits[..5], [5, 10, 20, 40, 80]);
        assert_eq!(waits[17..], [655_360, 1_000_000, 1_000_000]);
        assert_eq!(limiter.retries(&"a"), 20);
        assert_eq!((limiter.when(&"b"), limiter.retries(&"b")), (5 * MS, 1));
        limiter.forget(&"a");
        assert_eq!((limiter.retries(&"a"), limiter.retries(&"b")), (0, 1));
        assert_eq!(limiter.when(&"a"), 5 * MS);
    }

    #[test]
    fn no_number_of_failures_overflows() {
        for failures in [30, 31, 32, 33, 62, 63, 64, 65, 1000, u32::MAX] {
            assert_eq!(backoff(5 * MS, Duration::from_secs(1000), failures), Duration::from_secs(1000));
            assert_eq!(backoff(Duration::ZERO, Duration::MAX, failures), Duration::ZERO);
            assert_eq!(backoff(Duration::from_secs(1), Duration::ZERO, failures), Duration::ZERO);
            assert_eq!(backoff(Duration::MAX, Duration::MAX, failures), Duration::MAX);
        }
        assert_eq!(backoff(Duration::from_nanos(1), Duration::MAX, 40), Duration::from_nanos(1 << 40));
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_a_token_at_a_time() {
        let (env, clock) = Env::simulated(1);
        let bucket = BucketLimiter::new(&env, 10.0, 3);
        let when = || RateLimiter::when(&bucket, &"a");
        assert_eq!([when(), when(), when()], [Duration::ZERO; 3]);
        assert_eq!([when(), when()], [100 * MS, 200 * MS]);
        clock.advance(250 * MS);
        assert_eq!(when(), 50 * MS);
        clock.advance(Duration::from_secs(3600));
        assert_eq!([when(), when(), when()], [Duration::ZERO; 3], "an hour saves up no more than the burst");
        assert_eq!(when(), 100 * MS);
    }

    #[test]
    fn a_bucket_without_a_rate_does_not_limit() {
        let (env, _clock) = Env::simulated(1);
        for qps in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            let bucket = BucketLimiter::new(&env, qps, 0);
            let waits: Vec<_> = (0..3).map(|_| RateLimiter::when(&bucket, &"a")).collect();
            assert_eq!(waits, [Duration::ZERO; 3], "{qps}");
        }
        let slow = BucketLimiter::new(&env, 1e-300, 0);
        assert_eq!(RateLimiter::when(&slow, &"a"), Duration::ZERO);
        assert_eq!(RateLimiter::when(&slow, &"a"), BucketLimiter::MAX_INTERVAL);
    }

    #[test]
    fn the_slowest_limiter_decides() {
        let (env, clock) = Env::simulated(1);
        let limiter = MaxOf::default_with_bucket(&env);
        let first: Vec<_> = (0..100).map(|key| limiter.when(&key)).collect();
        assert_eq!(first, [5 * MS; 100]);
        assert_eq!(limiter.when(&100), 100 * MS);
        assert_eq!((limiter.retries(&100), limiter.retries(&101)), (1, 0));
        clock.advance(Duration::from_secs(60));
        assert_eq!(limiter.when(&100), 10 * MS);
        limiter.forget(&100);
        assert_eq!(limiter.retries(&100), 0);
    }
}
