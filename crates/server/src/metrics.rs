//! The server's metrics in Prometheus' text format, with the names of kube-apiserver where it has them.

pub(crate) mod admission;
pub(crate) mod policies;
mod quantiles;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use k1s_object::gvk::GroupVersionResource;
use parking_lot::Mutex;

use self::{admission::AdmissionMetrics, policies::PolicyMetrics};
use crate::resource::Resource;

/// Upper bounds of the buckets of the duration histogram, in seconds.
const BOUNDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

#[derive(Default)]
struct Histogram {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

/// Maximum number of series. Those of deleted custom resources stay; beyond the maximum, requests are counted without the
/// names of their resources.
const MAX_SERIES: usize = 10_000;

/// The counters of requests with the same labels.
#[derive(Default)]
struct Series {
    /// Number of responses by status code; there are few codes.
    codes: Vec<(u16, u64)>,
    durations: Histogram,
}

/// The server's counters. One set per server; nothing is process-wide.
#[derive(Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<Labels, Series>>,
    watches: Mutex<BTreeMap<GroupVersionResource, Arc<AtomicI64>>>,
    /// Requests in flight, without watches.
    pub(crate) in_flight: AtomicU64,
    pub(crate) admission: AdmissionMetrics,
    pub(crate) policies: PolicyMetrics,
}

/// One open watch.
pub(crate) struct Gauge(Arc<AtomicI64>);

impl Drop for Gauge {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The labels of a request's series.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Labels {
    pub(crate) verb: &'static str,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
}

impl Labels {
    fn text(&self) -> String {
        format!(
            "group=\"{}\",resource=\"{}\",subresource=\"{}\",verb=\"{}\",version=\"{}\"",
            escape(&self.group),
            escape(&self.resource),
            escape(&self.subresource),
            self.verb,
            escape(&self.version),
        )
    }
}

impl Metrics {
    /// Counts a response.
    pub(crate) fn answered(&self, labels: Labels, code: u16, took: Duration) {
        let is_watch = labels.verb == "WATCH";
        let mut requests = self.requests.lock();
        let is_full = requests.len() >= MAX_SERIES;
        let series = match requests.get_mut(&labels) {
            Some(series) => series,
            None if is_full => requests.entry(Labels { verb: labels.verb, ..Labels::default() }).or_default(),
            None => requests.entry(labels).or_default(),
        };
        match series.codes.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => series.codes.push((code, 1)),
        }
        // The lifetime of a watch is not a latency.
        if is_watch {
            return;
        }
        let histogram = &mut series.durations;
        let seconds = took.as_secs_f64();
        for (bound, bucket) in BOUNDS.iter().zip(&mut histogram.buckets) {
            if seconds <= *bound {
                *bucket += 1;
            }
        }
        histogram.count += 1;
        histogram.sum += seconds;
    }

    /// Counts an open watch until the gauge is dropped.
    pub(crate) fn watch_opened(&self, resource: &Resource) -> Gauge {
        let mut watches = self.watches.lock();
        let mut key = GroupVersionResource::new(
            resource.group.clone(),
            resource.version.clone(),
            resource.plural.clone(),
        );
        if watches.len() >= MAX_SERIES && !watches.contains_key(&key) {
            key = Default::default();
        }
        let gauge = watches.entry(key).or_default().clone();
        drop(watches);
        gauge.fetch_add(1, Ordering::Relaxed);
        Gauge(gauge)
    }

    /// All metrics; `stored` is the number of objects by resource, and `documents` that of OpenAPI and discovery documents
    /// built so far.
    pub(crate) fn text(
        &self,
        stored: &[(String, usize)],
        store: &k1s_store::Stats,
        documents: u64,
    ) -> String {
        let mut out = String::new();
        let head = |out: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        };
        let requests = self.requests.lock();
        head(
            &mut out,
            "apiserver_request_total",
            "counter",
            "Requests answered, by verb, resource and code.",
        );
        for (labels, series) in &*requests {
            let labels = labels.text();
            for (code, count) in &series.codes {
                let _ = writeln!(out, "apiserver_request_total{{code=\"{code}\",{labels}}} {count}");
            }
        }
        let name = "apiserver_request_duration_seconds";
        head(&mut out, name, "histogram", "How long requests took, without watches.");
        for (labels, Series { durations, .. }) in
            requests.iter().filter(|(_, series)| series.durations.count > 0)
        {
            let labels = labels.text();
            for (bound, bucket) in BOUNDS.iter().zip(&durations.buckets) {
                let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {bucket}");
            }
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", durations.count);
            let _ = writeln!(out, "{name}_sum{{{labels}}} {}", durations.sum);
            let _ = writeln!(out, "{name}_count{{{labels}}} {}", durations.count);
        }
        drop(requests);
        head(
            &mut out,
            "apiserver_current_inflight_requests",
            "gauge",
            "Requests in flight, without watches.",
        );
        let _ =
            writeln!(out, "apiserver_current_inflight_requests {}", self.in_flight.load(Ordering::Relaxed));
        head(&mut out, "apiserver_longrunning_requests", "gauge", "Open watches.");
        for (GroupVersionResource { group, version, resource }, open) in &*self.watches.lock() {
            let _ = writeln!(
                out,
                "apiserver_longrunning_requests{{group=\"{}\",resource=\"{}\",verb=\"WATCH\",version=\"{}\"}} {}",
                escape(group),
                escape(resource),
                escape(version),
                open.load(Ordering::Relaxed)
            );
        }
        self.admission.write(&mut out);
        self.policies.write(&mut out);
        head(&mut out, "apiserver_storage_objects", "gauge", "Objects in the store, by resource.");
        for (resource, count) in stored {
            let _ = writeln!(out, "apiserver_storage_objects{{resource=\"{}\"}} {count}", escape(resource));
        }
        head(
            &mut out,
            "k1s_documents_built_total",
            "counter",
            "Documents of OpenAPI and discovery that were built.",
        );
        let _ = writeln!(out, "k1s_documents_built_total {documents}");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_bound_on_series() {
        let metrics = Metrics::default();
        for number in 0..MAX_SERIES + 100 {
            let labels = Labels { verb: "GET", resource: format!("r{number}"), ..Labels::default() };
            metrics.answered(labels, 200, Duration::ZERO);
        }
        let requests = metrics.requests.lock();
        assert_eq!(requests.len(), MAX_SERIES + 1);
        let others = &requests[&Labels { verb: "GET", ..Labels::default() }];
        assert_eq!(others.codes, [(200, 100)]);
    }
}
