//! Quantiles of durations, over the last hours, without a lock.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use k1s_env::Instant;

/// Durations are kept for one to two of these: kube-apiserver's summaries cover five hours.
const PERIOD: Duration = Duration::from_secs(9000);
/// Buckets for each doubling of a duration, as a power of two: a quantile is accurate to three percent.
const PRECISION: u32 = 4;
/// Shorter durations count as this one, as a power of two in nanoseconds.
const SHORTEST: u32 = 10;
/// The number of doublings, which ends at a minute.
const DOUBLINGS: u32 = 26;
const BUCKETS: usize = (DOUBLINGS as usize) << PRECISION;

/// Counts of durations by logarithmic buckets, made with the first one.
#[derive(Default)]
pub(super) struct Quantiles(OnceLock<Box<Counts>>);

struct Counts {
    began: Instant,
    /// The number of the current period.
    period: AtomicU64,
    /// Those of even and odd periods.
    periods: [[AtomicU32; BUCKETS]; 2],
}

fn bucket(took: Duration) -> usize {
    let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1 << SHORTEST);
    let doubling = nanos.ilog2();
    let within = (nanos >> (doubling - PRECISION)) & ((1 << PRECISION) - 1);
    let at = (u64::from(doubling - SHORTEST) << PRECISION) + within;
    usize::try_from(at).unwrap_or(BUCKETS).min(BUCKETS - 1)
}

/// The middle of a bucket in seconds.
fn middle(bucket: usize) -> f64 {
    let doubling = (bucket >> PRECISION) as i32 + SHORTEST as i32;
    let within = (bucket & ((1 << PRECISION) - 1)) as f64 + 0.5;
    2f64.powi(doubling) * (1.0 + within / f64::from(1 << PRECISION)) / 1e9
}

impl Quantiles {
    pub(super) fn observe(&self, now: Instant, took: Duration) {
        let counts = self.0.get_or_init(|| {
            let periods = std::array::from_fn(|_| std::array::from_fn(|_| AtomicU32::new(0)));
            Box::new(Counts { began: now, period: AtomicU64::new(0), periods })
        });
        let period = (now - counts.began).as_secs() / PERIOD.as_secs();
        let before = counts.period.fetch_max(period, Ordering::Relaxed);
        let [even, odd] = &counts.periods;
        let (current, last) = if period.is_multiple_of(2) { (even, odd) } else { (odd, even) };
        if before < period {
            // Whoever begins a period forgets what is older than the one before.
            current.iter().for_each(|count| count.store(0, Ordering::Relaxed));
            if before + 1 < period {
                last.iter().for_each(|count| count.store(0, Ordering::Relaxed));
            }
        }
        if let Some(count) = current.get(bucket(took)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The durations in seconds that these parts of all do not exceed; `NaN` if there are none.
    pub(super) fn at<const N: usize>(&self, parts: [f64; N]) -> [f64; N] {
        let Some(counts) = self.0.get() else { return [f64::NAN; N] };
        let [even, odd] = &counts.periods;
        let both = even.iter().zip(odd);
        let counts: Vec<u64> = both
            .map(|(one, two)| u64::from(one.load(Ordering::Relaxed)) + u64::from(two.load(Ordering::Relaxed)))
            .collect();
        let total: u64 = counts.iter().sum();
        parts.map(|part| {
            let rank = ((total as f64 * part).ceil() as u64).max(1);
            let mut sum = 0;
            let found = counts.iter().position(|count| {
                sum += count;
                sum >= rank
            });
            found.map_or(f64::NAN, middle)
        })
    }
}

#[cfg(test)]
mod tests {
    use k1s_env::Env;

    use super::*;

    #[test]
    fn quantiles_are_accurate_to_a_few_percent() {
        let (env, _) = Env::simulated(1);
        let quantiles = Quantiles::default();
        assert!(quantiles.at([0.5])[0].is_nan());
        for micros in 1..=10_000 {
            quantiles.observe(env.now(), Duration::from_micros(micros));
        }
        for (part, found) in [0.5, 0.9, 0.99].into_iter().zip(quantiles.at([0.5, 0.9, 0.99])) {
            let expected = part * 0.01;
            assert!((found / expected - 1.0).abs() < 0.035, "{part}: {found}");
        }
        for extreme in [Duration::ZERO, Duration::MAX] {
            quantiles.observe(env.now(), extreme);
        }
        assert!(quantiles.at([1.0])[0] > 60.0);
    }

    #[test]
    fn old_durations_are_forgotten() {
        let (env, _) = Env::simulated(1);
        let (quantiles, start) = (Quantiles::default(), env.now());
        let median = |quantiles: &Quantiles| (quantiles.at([0.5])[0] * 1e3).round();
        quantiles.observe(start, Duration::from_millis(100));
        quantiles.observe(start + PERIOD, Duration::from_millis(10));
        quantiles.observe(start + PERIOD, Duration::from_millis(100));
        assert!(median(&quantiles) > 90.0, "the last period counts");
        quantiles.observe(start + PERIOD * 2, Duration::from_millis(10));
        assert!(median(&quantiles) < 11.0, "the one before does not");
        quantiles.observe(start + PERIOD * 9, Duration::from_millis(200));
        assert!(median(&quantiles) > 190.0);
    }
}
