//! The metrics of queues.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use k1s_env::{Env, VirtualClock};
use k1s_runtime::{
    Metrics,
    queue::{AddOptions, LOW_PRIORITY, Queue, QueueMetrics, QueueOptions},
};

const SECOND: Duration = Duration::from_secs(1);

struct Fixture {
    env: Env,
    clock: VirtualClock,
    metrics: Metrics,
    queues: QueueMetrics,
}

fn fixture() -> Fixture {
    let (env, clock) = Env::simulated(1);
    let metrics = Metrics::new();
    let queues = QueueMetrics::register(&metrics);
    Fixture { env, clock, metrics, queues }
}

impl Fixture {
    fn queue(&self, name: &str) -> Queue<u32> {
        let metrics = Some(self.queues.clone());
        Queue::new(&self.env, QueueOptions { metrics, ..QueueOptions::named(name) })
    }

    /// The value of a sample of the queue `q`; an additional label may follow after a `|`.
    fn value(&self, sample: &str) -> Option<f64> {
        let (name, label) = sample.split_once('|').unwrap_or((sample, ""));
        let text = self.metrics.encode();
        let of_queue = |line: &&str| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{'))
                && [r#"name="q""#, r#"controller="q""#, label].iter().all(|label| line.contains(label))
        };
        let line = text.lines().find(of_queue)?;
        line.rsplit(' ').next().map(|value| value.parse().unwrap())
    }
}

fn low() -> AddOptions {
    AddOptions { priority: Some(LOW_PRIORITY), ..AddOptions::default() }
}

#[test]
fn an_unused_queue_exports_all_of_its_metrics() {
    let f = fixture();
    let _queue = f.queue("q");
    for sample in [
        "workqueue_depth|priority=\"0\"",
        "workqueue_adds_total",
        "workqueue_retries_total",
        "workqueue_queue_duration_seconds_count",
        "workqueue_queue_duration_seconds_bucket|le=\"+Inf\"",
        "workqueue_work_duration_seconds_sum",
        "workqueue_unfinished_work_seconds",
        "workqueue_longest_running_processor_seconds",
    ] {
        assert_eq!(f.value(sample), Some(0.0), "{sample} in\n{}", f.metrics.encode());
    }
}

#[test]
fn depth_is_by_priority_and_follows_the_queue() {
    let f = fixture();
    let queue = f.queue("q");
    queue.add_with(low(), 1);
    queue.add_with(low(), 2);
    queue.add(3);
    queue.add(2);
    queue.add_after(4, SECOND);
    let depth = || (f.value("workqueue_depth|priority=\"-100\""), f.value("workqueue_depth|priority=\"0\""));
    assert_eq!(depth(), (Some(1.0), Some(2.0)));
    let item = queue.try_next().unwrap();
    assert_eq!(depth(), (Some(1.0), Some(1.0)));
    queue.add(*item.key());
    assert_eq!(depth(), (Some(1.0), Some(2.0)), "it waits for its own run to end");
    drop(item);
    f.clock.advance(SECOND);
    assert_eq!(depth(), (Some(1.0), Some(3.0)), "one has become due since");
    while queue.try_next().is_some() {}
    assert_eq!(depth(), (Some(0.0), Some(0.0)));
}

#[test]
fn adds_count_keys_that_become_ready_and_retries_count_delays() {
    let f = fixture();
    let queue = f.queue("q");
    queue.add(1);
    queue.add(1);
    queue.add_after(1, SECOND);
    queue.add_after(2, SECOND);
    queue.add_rate_limited(3);
    let counts = || (f.value("workqueue_adds_total").unwrap(), f.value("workqueue_retries_total").unwrap());
    assert_eq!(counts(), (1.0, 3.0));
    f.clock.advance(SECOND);
    assert_eq!(counts(), (3.0, 3.0));
    let item = queue.try_next().unwrap();
    queue.add(1);
    queue.add(1);
    assert_eq!(counts(), (4.0, 3.0));
    drop(item);
    assert_eq!(counts(), (4.0, 3.0), "counted when it was added");
    while queue.try_next().is_some() {}
    queue.add(1);
    let item = queue.try_next().unwrap();
    queue.add_after(1, SECOND);
    f.clock.advance(SECOND);
    drop(item);
    assert_eq!(counts(), (6.0, 4.0));
}

#[test]
fn wait_and_work_durations_use_gos_buckets() {
    let f = fixture();
    let queue = f.queue("q");
    queue.add_after(1, SECOND);
    f.clock.advance(SECOND + Duration::from_millis(50));
    let item = queue.try_next().unwrap();
    f.clock.advance(2 * SECOND);
    queue.done(item);
    let bucket = |of: &str, le: &str| f.value(&format!("workqueue_{of}_duration_seconds_bucket|le=\"{le}\""));
    assert_eq!(bucket("queue", "0.01"), Some(0.0), "{}", f.metrics.encode());
    assert_eq!(bucket("queue", "0.1"), Some(1.0));
    assert_eq!(f.value("workqueue_queue_duration_seconds_sum"), Some(0.05), "from when it was due");
    assert_eq!((bucket("work", "1.0"), bucket("work", "10.0")), (Some(0.0), Some(1.0)));
    assert_eq!(f.value("workqueue_work_duration_seconds_sum"), Some(2.0));
    assert_eq!(f.value("workqueue_work_duration_seconds_count"), Some(1.0));
    let bounds = f
        .metrics
        .encode()
        .lines()
        .filter(|l| l.starts_with("workqueue_work_duration_seconds_bucket"))
        .count();
    assert_eq!(bounds, 13, "10 ns to 1000 s, and all");
}

#[test]
fn unfinished_work_is_measured_at_scrape_time() {
    let f = fixture();
    let queue = f.queue("q");
    let unfinished = || {
        let longest = f.value("workqueue_longest_running_processor_seconds").unwrap();
        (f.value("workqueue_unfinished_work_seconds").unwrap(), longest)
    };
    queue.add(1);
    queue.add(2);
    let first = queue.try_next().unwrap();
    f.clock.advance(3 * SECOND);
    let second = queue.try_next().unwrap();
    assert_eq!(unfinished(), (3.0, 3.0));
    f.clock.advance(SECOND);
    assert_eq!(unfinished(), (5.0, 4.0));
    drop(first);
    assert_eq!(unfinished(), (1.0, 1.0));
    drop(second);
    assert_eq!(unfinished(), (0.0, 0.0));
}

#[test]
fn queues_share_metric_families_and_keep_their_counts_when_dropped() {
    let f = fixture();
    let queue = f.queue("q");
    let other = f.queue("other");
    other.add(1);
    queue.add(1);
    queue.add(2);
    let text = f.metrics.encode();
    assert_eq!(text.matches("# TYPE workqueue_adds counter").count(), 1, "{text}");
    assert_eq!(f.value("workqueue_adds_total"), Some(2.0));
    drop(queue);
    assert_eq!(f.value("workqueue_adds_total"), Some(2.0));
    assert_eq!(f.value("workqueue_depth|priority=\"0\""), Some(0.0));
    let queue = f.queue("q");
    queue.add(1);
    assert_eq!(f.value("workqueue_adds_total"), Some(3.0), "a queue with the same name continues the count");
}

#[test]
fn many_priorities_share_one_sample() {
    let f = fixture();
    let queue = f.queue("q");
    for key in 0..40 {
        queue.add_with(AddOptions { priority: Some(key), ..AddOptions::default() }, key as u32);
    }
    assert_eq!(f.value("workqueue_depth|priority=\"24\""), Some(1.0));
    assert_eq!(f.value("workqueue_depth|priority=\"25\""), None);
    assert_eq!(f.value("workqueue_depth|priority=\"exceeded_cardinality_limit\""), Some(15.0));
}
