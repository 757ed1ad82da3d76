//! The metrics of queues, named as in Go's controller-runtime.
//!
//! A queue counts in plain integers under its own lock. They are collected when metrics are scraped, so depth and work in
//! flight are exact at that time without being kept up to date.

use std::{
    fmt,
    ops::AddAssign,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet},
    metrics::MetricType,
};

use crate::Metrics;

/// Maximum number of priorities per queue with their own depth; the others share one.
const MAX_PRIORITIES: usize = 25;
const OTHER_PRIORITIES: &str = "exceeded_cardinality_limit";

/// The metrics of all queues of a manager. Registered once; each queue that has them in its options reports to them, and
/// its counters are kept after its end.
///
/// - `workqueue_depth{name,controller,priority}`: keys that are ready;
/// - `workqueue_adds_total`: how often a key became ready; adds that were merged don't count;
/// - `workqueue_retries_total`: adds with a delay;
/// - `workqueue_queue_duration_seconds`: how long keys were ready before they were handed out;
/// - `workqueue_work_duration_seconds`: how long they were processed;
/// - `workqueue_unfinished_work_seconds`, `workqueue_longest_running_processor_seconds`: how long the keys in flight have
///   been processed so far: their sum and the longest.
#[derive(Debug, Clone, Default)]
pub struct QueueMetrics {
    slots: Arc<Mutex<Vec<Arc<Slot>>>>,
}

impl QueueMetrics {
    /// Adds the metrics to a registry. Must be called once per registry.
    #[must_use]
    pub fn register(metrics: &Metrics) -> QueueMetrics {
        let queues = QueueMetrics::default();
        metrics.register(|registry| registry.register_collector(Box::new(queues.clone())));
        queues
    }

    /// The slot of the queues of that name.
    pub(super) fn queue(&self, name: &Arc<str>) -> Arc<Slot> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.iter().find(|slot| slot.name == *name) {
            return Arc::clone(slot);
        }
        let slot = Arc::new(Slot { name: Arc::clone(name), past: Mutex::default(), live: Mutex::default() });
        slots.push(Arc::clone(&slot));
        slot
    }
}

/// A queue as a source of metrics.
pub(super) trait Source: Send + Sync {
    fn snapshot(&self) -> Snapshot;
}

/// The queues of one name in the metrics: the current one and its predecessors.
pub(super) struct Slot {
    name: Arc<str>,
    /// The counters of queues that have ended.
    past: Mutex<Counters>,
    live: Mutex<Vec<Weak<dyn Source>>>,
}

impl Slot {
    pub(super) fn attach(&self, source: Weak<dyn Source>) {
        let mut live = self.live.lock();
        live.retain(|source| source.strong_count() > 0);
        live.push(source);
    }

    /// Keeps the counters of a queue that ends.
    pub(super) fn detach(&self, counters: &Counters) {
        *self.past.lock() += counters;
    }

    fn snapshot(&self) -> Snapshot {
        // Upgraded before the loop, and dropped outside of the lock: this may be the last reference to one of them.
        let live: Vec<_> = self.live.lock().iter().filter_map(Weak::upgrade).collect();
        let mut all = Snapshot { counters: self.past.lock().clone(), ..Snapshot::default() };
        for source in live {
            let one = source.snapshot();
            all.counters += &one.counters;
            all.depth.extend(one.depth);
            all.unfinished += one.unfinished;
            all.longest = all.longest.max(one.longest);
        }
        all
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The counters of a queue.
#[derive(Debug, Clone, Default)]
pub(super) struct Counters {
    pub(super) adds: u64,
    pub(super) retries: u64,
    pub(super) queued: Durations,
    pub(super) worked: Durations,
}

impl AddAssign<&Counters> for Counters {
    fn add_assign(&mut self, other: &Counters) {
        self.adds += other.adds;
        self.retries += other.retries;
        self.queued += &other.queued;
        self.worked += &other.worked;
    }
}

/// The metrics of a queue at one time.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    pub(super) counters: Counters,
    /// Ready keys by priority.
    pub(super) depth: Vec<(i32, usize)>,
    pub(super) unfinished: Duration,
    pub(super) longest: Duration,
}

/// A histogram of durations. The buckets are Go's: powers of ten from 10 ns to 1000 s.
#[derive(Debug, Clone, Default)]
pub(super) struct Durations {
    counts: [u64; Durations::BOUNDS.len()],
    sum: Duration,
}

impl Durations {
    const BOUNDS: [(Duration, f64); 13] = [
        (Duration::from_nanos(10), 1e-8),
        (Duration::from_nanos(100), 1e-7),
        (Duration::from_micros(1), 1e-6),
        (Duration::from_micros(10), 1e-5),
        (Duration::from_micros(100), 1e-4),
        (Duration::from_millis(1), 1e-3),
        (Duration::from_millis(10), 1e-2),
        (Duration::from_millis(100), 1e-1),
        (Duration::from_secs(1), 1.0),
        (Duration::from_secs(10), 10.0),
        (Duration::from_secs(100), 100.0),
        (Duration::from_secs(1000), 1000.0),
        (Duration::MAX, f64::INFINITY),
    ];

    pub(super) fn observe(&mut self, duration: Duration) {
        let at = Durations::BOUNDS.partition_point(|(bound, _)| *bound < duration);
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(duration);
    }

    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let mut buckets = [(0.0, 0); Durations::BOUNDS.len()];
        for (bucket, ((_, bound), count)) in buckets.iter_mut().zip(Durations::BOUNDS.iter().zip(self.counts))
        {
            *bucket = (*bound, count);
        }
        let count = self.counts.iter().sum();
        encoder.encode_histogram::<NoLabelSet>(self.sum.as_secs_f64(), count, &buckets, None)
    }
}

impl AddAssign<&Durations> for Durations {
    fn add_assign(&mut self, other: &Durations) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.sum = self.sum.saturating_add(other.sum);
    }
}

impl Collector for QueueMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let slots = self.slots.lock().clone();
        let queues: Vec<_> = slots.iter().map(|slot| (&*slot.name, slot.snapshot())).collect();
        Writer { queues: &queues, encoder }.write()
    }
}

/// Writes the metric families, each with all queues.
struct Writer<'a, 'e> {
    queues: &'a [(&'a str, Snapshot)],
    encoder: DescriptorEncoder<'e>,
}

impl Writer<'_, '_> {
    fn write(mut self) -> fmt::Result {
        self.depth()?;
        self.counter("workqueue_adds", "How often a key became ready in the queue", |s| s.counters.adds)?;
        self.counter("workqueue_retries", "Adds to the queue with a delay", |s| s.counters.retries)?;
        self.durations(
            "workqueue_queue_duration_seconds",
            "How long keys were ready in the queue before they were handed out",
            |s| &s.counters.queued,
        )?;
        self.durations(
            "workqueue_work_duration_seconds",
            "How long keys of the queue were processed",
            |s| &s.counters.worked,
        )?;
        self.gauge(
            "workqueue_unfinished_work_seconds",
            "How long all keys that are not done have been processed so far, in total",
            |s| s.unfinished,
        )?;
        self.gauge(
            "workqueue_longest_running_processor_seconds",
            "How long the longest-running key has been processed so far",
            |s| s.longest,
        )
    }

    fn depth(&mut self) -> fmt::Result {
        let help = "How many keys are ready in the queue, by priority";
        let mut family = self.encoder.encode_descriptor("workqueue_depth", help, None, MetricType::Gauge)?;
        for (name, snapshot) in self.queues {
            let mut depth = snapshot.depth.clone();
            if !depth.iter().any(|(priority, _)| *priority == 0) {
                depth.push((0, 0)); // an empty queue has a depth, too
            }
            // Priorities around 0 are the usual ones, and keep their own depth.
            depth.sort_by_key(|(priority, _)| priority.unsigned_abs());
            for (priority, len) in depth.iter().take(MAX_PRIORITIES) {
                let priority = priority.to_string();
                family
                    .encode_family(&[("name", *name), ("controller", *name), ("priority", &priority)])?
                    .encode_gauge(&(*len as u64))?;
            }
            if depth.len() > MAX_PRIORITIES {
                let rest: usize = depth.iter().skip(MAX_PRIORITIES).map(|(_, len)| len).sum();
                family
                    .encode_family(&[("name", *name), ("controller", *name), ("priority", OTHER_PRIORITIES)])?
                    .encode_gauge(&(rest as u64))?;
            }
        }
        Ok(())
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Fn(&Snapshot) -> u64) -> fmt::Result {
        self.family(name, help, MetricType::Counter, |mut encoder, snapshot| {
            encoder.encode_counter::<NoLabelSet, _, u64>(&value(snapshot), None)
        })
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Fn(&Snapshot) -> Duration) -> fmt::Result {
        self.family(name, help, MetricType::Gauge, |mut encoder, snapshot| {
            encoder.encode_gauge(&value(snapshot).as_secs_f64())
        })
    }

    fn durations(&mut self, name: &str, help: &str, value: impl Fn(&Snapshot) -> &Durations) -> fmt::Result {
        self.family(name, help, MetricType::Histogram, |encoder, snapshot| value(snapshot).encode(encoder))
    }

    fn family(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        write: impl Fn(MetricEncoder<'_>, &Snapshot) -> fmt::Result,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, kind)?;
        for (name, snapshot) in self.queues {
            write(family.encode_family(&[("name", *name), ("controller", *name)])?, snapshot)?;
        }
        Ok(())
    }
}
