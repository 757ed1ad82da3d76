//! What the server counts, in Prometheus' text form, under the names that kube-apiserver's dashboards know.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use crate::resource::Resource;

/// The upper bounds of the duration histogram, in seconds.
const BOUNDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

type RequestKey = (&'static str, String, String, String, String, u16);
type DurationKey = (&'static str, String, String, String, String);

#[derive(Default)]
struct Histogram {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

/// The server's counters. One set per server; nothing is process-wide.
#[derive(Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<RequestKey, u64>>,
    durations: Mutex<BTreeMap<DurationKey, Histogram>>,
    watches: Mutex<BTreeMap<(String, String, String), Arc<AtomicI64>>>,
    /// Requests under way, watches apart.
    pub(crate) in_flight: AtomicU64,
}

/// One open watch.
pub(crate) struct Gauge(Arc<AtomicI64>);

impl Drop for Gauge {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a request was about, for its counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Labels {
    pub(crate) verb: &'static str,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
}

impl Metrics {
    /// Counts a request that was answered.
    pub(crate) fn answered(&self, labels: Labels, code: u16, took: Duration) {
        let Labels { verb, group, version, resource, subresource } = labels;
        *self
            .requests
            .lock()
            .entry((verb, group.clone(), version.clone(), resource.clone(), subresource.clone(), code))
            .or_default() += 1;
        // The lifetime of a watch is no latency.
        if verb == "WATCH" {
            return;
        }
        let mut durations = self.durations.lock();
        let histogram = durations.entry((verb, group, version, resource, subresource)).or_default();
        let seconds = took.as_secs_f64();
        for (bound, bucket) in BOUNDS.iter().zip(&mut histogram.buckets) {
            if seconds <= *bound {
                *bucket += 1;
            }
        }
        histogram.count += 1;
        histogram.sum += seconds;
    }

    /// Counts a watch as long as the gauge lives.
    pub(crate) fn watch_opened(&self, resource: &Resource) -> Gauge {
        let key = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
        let gauge = self.watches.lock().entry(key).or_default().clone();
        gauge.fetch_add(1, Ordering::Relaxed);
        Gauge(gauge)
    }

    /// Everything counted; `stored` are the objects in the store, by resource.
    pub(crate) fn text(&self, stored: &[(String, usize)], store: &k1s_store::Stats) -> String {
        let mut out = String::new();
        let head = |out: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        };
        head(
            &mut out,
            "apiserver_request_total",
            "counter",
            "Requests answered, by verb, resource and code.",
        );
        for ((verb, group, version, resource, subresource, code), count) in &*self.requests.lock() {
            let _ = writeln!(
                out,
                "apiserver_request_total{{code=\"{code}\",group=\"{}\",resource=\"{}\",subresource=\"{}\",verb=\"{verb}\",version=\"{}\"}} {count}",
                escape(group),
                escape(resource),
                escape(subresource),
                escape(version),
            );
        }
        let name = "apiserver_request_duration_seconds";
        head(&mut out, name, "histogram", "How long requests took, watches apart.");
        for ((verb, group, version, resource, subresource), histogram) in &*self.durations.lock() {
            let labels = format!(
                "group=\"{}\",resource=\"{}\",subresource=\"{}\",verb=\"{verb}\",version=\"{}\"",
                escape(group),
                escape(resource),
                escape(subresource),
                escape(version),
            );
            for (bound, bucket) in BOUNDS.iter().zip(&histogram.buckets) {
                let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {bucket}");
            }
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", histogram.count);
            let _ = writeln!(out, "{name}_sum{{{labels}}} {}", histogram.sum);
            let _ = writeln!(out, "{name}_count{{{labels}}} {}", histogram.count);
        }
        head(&mut out, "apiserver_current_inflight_requests", "gauge", "Requests under way, watches apart.");
        let _ =
            writeln!(out, "apiserver_current_inflight_requests {}", self.in_flight.load(Ordering::Relaxed));
        head(&mut out, "apiserver_longrunning_requests", "gauge", "Open watches.");
        for ((group, version, resource), open) in &*self.watches.lock() {
            let _ = writeln!(
                out,
                "apiserver_longrunning_requests{{group=\"{}\",resource=\"{}\",verb=\"WATCH\",version=\"{}\"}} {}",
                escape(group),
                escape(resource),
                escape(version),
                open.load(Ordering::Relaxed)
            );
        }
        head(&mut out, "apiserver_storage_objects", "gauge", "Objects in the store, by resource.");
        for (resource, count) in stored {
            let _ = writeln!(out, "apiserver_storage_objects{{resource=\"{}\"}} {count}", escape(resource));
        }
        head(&mut out, "k1s_store_revision", "counter", "The store's newest revision.");
        let _ = writeln!(out, "k1s_store_revision {}", store.revision);
        head(&mut out, "k1s_store_keys", "gauge", "Keys in the store, of all tenants.");
        let _ = writeln!(out, "k1s_store_keys {}", store.keys);
        head(&mut out, "k1s_store_watches", "gauge", "Watches of the store.");
        let _ = writeln!(out, "k1s_store_watches {}", store.watches);
        out
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
