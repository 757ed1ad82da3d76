//! The metrics of webhooks, named as in Go's controller-runtime.

use k1s_env::{Env, Instant};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::{Family, MetricConstructor},
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
};

use crate::Metrics;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WebhookLabels {
    webhook: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    webhook: String,
    code: u16,
}

/// Buckets from 10 ns to some 17 minutes, as in Go.
#[derive(Debug, Clone)]
struct Latency;

impl MetricConstructor<Histogram> for Latency {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(10e-9, 10.0, 12))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct WebhookMetrics {
    latency: Family<WebhookLabels, Histogram, Latency>,
    requests: Family<RequestLabels, Counter>,
    in_flight: Family<WebhookLabels, Gauge>,
    pub(crate) panics: Counter,
    pub(crate) conversion_panics: Counter,
    pub(crate) certificate_reads: Counter,
    pub(crate) certificate_errors: Counter,
}

impl WebhookMetrics {
    pub(crate) fn new(metrics: &Metrics) -> WebhookMetrics {
        let new = WebhookMetrics {
            latency: Family::new_with_constructor(Latency),
            requests: Family::default(),
            in_flight: Family::default(),
            panics: Counter::default(),
            conversion_panics: Counter::default(),
            certificate_reads: Counter::default(),
            certificate_errors: Counter::default(),
        };
        // The encoder appends `_total` to the names of counters.
        metrics.register(|registry| {
            registry.register(
                "controller_runtime_webhook_latency_seconds",
                "Histogram of the latency of processing admission requests",
                new.latency.clone(),
            );
            registry.register(
                "controller_runtime_webhook_requests",
                "Total number of admission requests by HTTP status code",
                new.requests.clone(),
            );
            registry.register(
                "controller_runtime_webhook_requests_in_flight",
                "Current number of admission requests being served",
                new.in_flight.clone(),
            );
            registry.register(
                "controller_runtime_webhook_panics",
                "Total number of webhook panics",
                new.panics.clone(),
            );
            registry.register(
                "controller_runtime_conversion_webhook_panics",
                "Total number of conversion webhook panics",
                new.conversion_panics.clone(),
            );
            registry.register(
                "certwatcher_read_certificate",
                "Total number of certificate reads",
                new.certificate_reads.clone(),
            );
            registry.register(
                "certwatcher_read_certificate_errors",
                "Total number of certificate read errors",
                new.certificate_errors.clone(),
            );
        });
        new
    }

    /// The metrics of one path, created with zero values.
    pub(crate) fn path(&self, path: &str) -> PathMetrics {
        let labels = WebhookLabels { webhook: path.into() };
        let count = |code| self.requests.get_or_create_owned(&RequestLabels { webhook: path.into(), code });
        PathMetrics {
            latency: self.latency.get_or_create_owned(&labels),
            in_flight: self.in_flight.get_or_create_owned(&labels),
            ok: count(200),
            internal_error: count(500),
            requests: self.requests.clone(),
            path: path.into(),
        }
    }
}

/// The metrics of one path.
#[derive(Debug)]
pub(crate) struct PathMetrics {
    latency: Histogram,
    in_flight: Gauge,
    ok: Counter,
    internal_error: Counter,
    requests: Family<RequestLabels, Counter>,
    path: String,
}

impl PathMetrics {
    /// Counts a request as in flight.
    pub(crate) fn begin<'a>(&'a self, env: &'a Env) -> RequestMetrics<'a> {
        self.in_flight.inc();
        RequestMetrics { metrics: self, env, began: env.now(), code: None }
    }
}

/// The metrics of one request, recorded when it ends in any way.
pub(crate) struct RequestMetrics<'a> {
    metrics: &'a PathMetrics,
    env: &'a Env,
    began: Instant,
    code: Option<u16>,
}

impl RequestMetrics<'_> {
    /// Records the status code of the response.
    pub(crate) fn answered(mut self, code: u16) {
        self.code = Some(code);
    }
}

impl Drop for RequestMetrics<'_> {
    fn drop(&mut self) {
        self.metrics.in_flight.dec();
        // The client disconnected before a response: only the gauge changes.
        let Some(code) = self.code else { return };
        self.metrics.latency.observe((self.env.now() - self.began).as_secs_f64());
        match code {
            200 => self.metrics.ok.inc(),
            500 => self.metrics.internal_error.inc(),
            code => {
                let labels = RequestLabels { webhook: self.metrics.path.clone(), code };
                self.metrics.requests.get_or_create_owned(&labels).inc()
            }
        };
    }
}
