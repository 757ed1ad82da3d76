//! What is counted of the requests of a flow schema, in the metrics of kube-apiserver.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use parking_lot::Mutex;

use super::gate::Rejection;

/// Upper bounds of the buckets of waiting times, in seconds.
const BOUNDS: [f64; 13] = [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];

/// The counters of a schema with its level.
#[derive(Debug, Default)]
pub(super) struct Counters {
    dispatched: AtomicU64,
    ended: AtomicU64,
    queued: AtomicU64,
    left_queue: AtomicU64,
    /// By [`Rejection`].
    rejected: [AtomicU64; 3],
    /// The waits of requests that were queued, and then served or not.
    waits: Mutex<[Waits; 2]>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Waits {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

impl Waits {
    fn record(&mut self, waited: Duration) {
        let seconds = waited.as_secs_f64();
        for (bound, bucket) in BOUNDS.iter().zip(&mut self.buckets) {
            *bucket += u64::from(seconds <= *bound);
        }
        self.count += 1;
        self.sum += seconds;
    }
}

impl Counters {
    pub(super) fn dispatch(&self) {
        self.dispatched.fetch_add(1, Relaxed);
    }

    pub(super) fn end(&self) {
        self.ended.fetch_add(1, Relaxed);
    }

    pub(super) fn reject(&self, why: Rejection) {
        if let Some(count) = self.rejected.get(why as usize) {
            count.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn enqueue(&self) {
        self.queued.fetch_add(1, Relaxed);
    }

    /// A request has left its queue: with a seat, or without.
    pub(super) fn dequeue(&self, waited: Duration, served: bool) {
        self.left_queue.fetch_add(1, Relaxed);
        let [unserved_waits, served_waits] = &mut *self.waits.lock();
        if served { served_waits } else { unserved_waits }.record(waited);
    }

    fn executing(&self) -> u64 {
        self.dispatched.load(Relaxed).saturating_sub(self.ended.load(Relaxed))
    }

    fn waiting(&self) -> u64 {
        self.queued.load(Relaxed).saturating_sub(self.left_queue.load(Relaxed))
    }
}

/// The counters of a schema with their labels.
pub(super) struct Labelled<'a> {
    pub(super) schema: &'a str,
    pub(super) level: &'a str,
    pub(super) counters: &'a Counters,
}

impl Labelled<'_> {
    fn labels(&self) -> String {
        format!("flow_schema=\"{}\",priority_level=\"{}\"", self.schema, self.level)
    }
}

const PREFIX: &str = "apiserver_flowcontrol_";

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}");
}

/// Writes the metrics of these schemas.
pub(super) fn write(out: &mut String, all: &[Labelled<'_>]) {
    let mut plain = |name: &str, kind: &str, help: &str, value: fn(&Counters) -> u64| {
        head(out, name, kind, help);
        for one in all {
            let _ = writeln!(out, "{PREFIX}{name}{{{}}} {}", one.labels(), value(one.counters));
        }
    };
    plain("dispatched_requests_total", "counter", "Requests that got a seat.", |one| {
        one.dispatched.load(Relaxed)
    });
    plain("current_executing_requests", "gauge", "Requests with a seat.", Counters::executing);
    plain("current_executing_seats", "gauge", "Seats in use; a request has one.", Counters::executing);
    plain("current_inqueue_requests", "gauge", "Requests that wait for a seat.", Counters::waiting);
    head(out, "rejected_requests_total", "counter", "Requests that got 429, by reason.");
    let reasons = ["queue-full", "concurrency-limit", "time-out"];
    for one in all {
        for (reason, count) in reasons.iter().zip(&one.counters.rejected) {
            let count = count.load(Relaxed);
            if count > 0 {
                let labels = one.labels();
                let _ =
                    writeln!(out, "{PREFIX}rejected_requests_total{{{labels},reason=\"{reason}\"}} {count}");
            }
        }
    }
    let name = "request_wait_duration_seconds";
    head(out, name, "histogram", "How long requests waited for a seat, and whether they got one.");
    for one in all {
        let waits = *one.counters.waits.lock();
        let at_once = one.counters.dispatched.load(Relaxed).saturating_sub(waits[1].count);
        for ((execute, waits), at_once) in ["false", "true"].iter().zip(waits).zip([0, at_once]) {
            if waits.count + at_once == 0 {
                continue;
            }
            let labels = format!("execute=\"{execute}\",{}", one.labels());
            for (bound, bucket) in BOUNDS.iter().zip(waits.buckets) {
                let _ =
                    writeln!(out, "{PREFIX}{name}_bucket{{{labels},le=\"{bound}\"}} {}", bucket + at_once);
            }
            let count = waits.count + at_once;
            let _ = writeln!(out, "{PREFIX}{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
            let _ = writeln!(out, "{PREFIX}{name}_sum{{{labels}}} {}", waits.sum);
            let _ = writeln!(out, "{PREFIX}{name}_count{{{labels}}} {count}");
        }
    }
}

/// Writes a metric of levels: their names and values.
pub(super) fn write_levels(out: &mut String, name: &str, help: &str, levels: &[(&str, usize)]) {
    head(out, name, "gauge", help);
    for (level, value) in levels {
        let _ = writeln!(out, "{PREFIX}{name}{{priority_level=\"{level}\"}} {value}");
    }
}
