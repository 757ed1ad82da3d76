//! `apiserver_admission_*`: how long admission takes, and what webhooks answer.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use k1s_env::Instant;
use parking_lot::{Mutex, RwLock};

use super::{MAX_SERIES, escape, quantiles::Quantiles};
use crate::hooks::Operation;

/// Upper bounds of the buckets of kube-apiserver, in seconds; those of steps and plugins end at 2.5 s.
const BOUNDS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
const OWN_BOUNDS: usize = 6;
/// The quantiles of kube-apiserver's summary.
const SHOWN_QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// A histogram that is written without a lock.
#[derive(Default)]
struct Histogram {
    /// Values by the first bucket that they fit into; one more for larger ones.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Histogram {
    fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    fn write(&self, out: &mut String, name: &str, labels: &str, bounds: usize) {
        let counts: Vec<u64> = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        let total: u64 = counts.iter().sum();
        if total == 0 {
            return;
        }
        let mut sum = 0;
        for (bound, count) in BOUNDS.iter().zip(&counts).take(bounds) {
            sum += count;
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {sum}");
        }
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {total}");
        let seconds = Duration::from_nanos(self.nanos.load(Ordering::Relaxed)).as_secs_f64();
        let _ = writeln!(out, "{name}_sum{{{labels}}} {seconds}");
        let _ = writeln!(out, "{name}_count{{{labels}}} {total}");
    }
}

impl Histogram {
    /// The same durations as a summary.
    fn write_summary(&self, out: &mut String, name: &str, labels: &str, quantiles: &Quantiles) {
        let total: u64 = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum();
        if total == 0 {
            return;
        }
        for (part, value) in SHOWN_QUANTILES.into_iter().zip(quantiles.at(SHOWN_QUANTILES)) {
            let _ = writeln!(out, "{name}{{{labels},quantile=\"{part}\"}} {value}");
        }
        let seconds = Duration::from_nanos(self.nanos.load(Ordering::Relaxed)).as_secs_f64();
        let _ = writeln!(out, "{name}_sum{{{labels}}} {seconds}");
        let _ = writeln!(out, "{name}_count{{{labels}}} {total}");
    }
}

/// Histograms by operation and by whether the request was rejected.
type ByOutcome = [[Histogram; 2]; Operation::ALL.len()];

/// The outcome of a call of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Allowed,
    /// It denied the request, with this code.
    Denied(u16),
    /// It could not be called, which rejects the request.
    NotCalled(u16),
    /// It could not be called, which its failure policy ignores.
    FailedOpen(u16),
    /// The server failed.
    InternalError,
}

impl Outcome {
    fn rejects(self) -> bool {
        !matches!(self, Outcome::Allowed | Outcome::FailedOpen(_))
    }

    fn code(self) -> u16 {
        match self {
            Outcome::Allowed => 200,
            Outcome::Denied(code) | Outcome::NotCalled(code) | Outcome::FailedOpen(code) => code.min(600),
            Outcome::InternalError => 0,
        }
    }

    fn error_type(self) -> &'static str {
        match self {
            Outcome::NotCalled(_) => "calling_webhook_error",
            Outcome::InternalError => "apiserver_internal_error",
            _ => "no_error",
        }
    }
}

/// A webhook and the type of its calls.
type WebhookKey = (String, &'static str);

#[derive(Default)]
struct Webhook {
    durations: ByOutcome,
    requests: BTreeMap<(Operation, u16, bool), u64>,
    rejections: BTreeMap<(Operation, &'static str, u16), u64>,
    fail_open: u64,
}

/// Counters of admission.
#[derive(Default)]
pub(crate) struct AdmissionMetrics {
    /// The chain: the part that mutates and the one that validates.
    steps: [ByOutcome; 2],
    quantiles: [[[Quantiles; 2]; Operation::ALL.len()]; 2],
    /// By the name of a plugin, which is one of a few.
    plugins: RwLock<BTreeMap<(&'static str, bool), Box<ByOutcome>>>,
    webhooks: Mutex<BTreeMap<WebhookKey, Webhook>>,
}

fn histogram(of: &ByOutcome, operation: Operation, rejected: bool) -> &Histogram {
    let [accepted, refused] = &of[operation as usize];
    if rejected { refused } else { accepted }
}

impl AdmissionMetrics {
    /// Counts a run of the chain.
    pub(crate) fn step(
        &self,
        mutating: bool,
        operation: Operation,
        rejected: bool,
        [began, ended]: [Instant; 2],
    ) {
        let took = ended - began;
        let ([admit, validate], [admit_quantiles, validate_quantiles]) = (&self.steps, &self.quantiles);
        let (steps, quantiles) =
            if mutating { (admit, admit_quantiles) } else { (validate, validate_quantiles) };
        histogram(steps, operation, rejected).observe(took);
        let [accepted, refused] = &quantiles[operation as usize];
        if rejected { refused } else { accepted }.observe(ended, took);
    }

    /// Counts a run of a plugin.
    pub(crate) fn plugin(
        &self,
        name: &'static str,
        mutating: bool,
        operation: Operation,
        rejected: bool,
        took: Duration,
    ) {
        if let Some(known) = self.plugins.read().get(&(name, mutating)) {
            return histogram(known, operation, rejected).observe(took);
        }
        let mut plugins = self.plugins.write();
        histogram(plugins.entry((name, mutating)).or_default(), operation, rejected).observe(took);
    }

    /// Counts a call of a webhook.
    pub(crate) fn webhook(
        &self,
        name: &str,
        kind: &'static str,
        operation: Operation,
        outcome: Outcome,
        took: Duration,
    ) {
        let mut webhooks = self.webhooks.lock();
        let is_full = webhooks.len() >= MAX_SERIES;
        let mut key = (name.to_owned(), kind);
        if is_full && !webhooks.contains_key(&key) {
            key.0.clear();
        }
        let webhook = webhooks.entry(key).or_default();
        let (code, rejects) = (outcome.code(), outcome.rejects());
        histogram(&webhook.durations, operation, rejects).observe(took);
        *webhook.requests.entry((operation, code, rejects)).or_default() += 1;
        if rejects {
            *webhook.rejections.entry((operation, outcome.error_type(), code)).or_default() += 1;
        }
        if matches!(outcome, Outcome::FailedOpen(_)) {
            webhook.fail_open += 1;
        }
    }

    pub(super) fn write(&self, out: &mut String) {
        let head = |out: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        };
        let each = |of: &ByOutcome, write: &mut dyn FnMut(&Histogram, &str)| {
            for operation in Operation::ALL {
                for rejected in [false, true] {
                    let labels = format!("operation=\"{operation}\",rejected=\"{rejected}\"");
                    write(histogram(of, operation, rejected), &labels);
                }
            }
        };
        let kind = |mutating: bool| if mutating { "admit" } else { "validate" };
        let name = "apiserver_admission_step_admission_duration_seconds";
        head(out, name, "histogram", "How long admission took, by its step.");
        for (steps, mutating) in self.steps.iter().zip([true, false]) {
            each(steps, &mut |histogram, labels| {
                let labels = format!("type=\"{}\",{labels}", kind(mutating));
                histogram.write(out, name, &labels, OWN_BOUNDS);
            });
        }
        let name = "apiserver_admission_step_admission_duration_seconds_summary";
        head(out, name, "summary", "How long admission took, by its step, as quantiles.");
        for ((steps, quantiles), mutating) in self.steps.iter().zip(&self.quantiles).zip([true, false]) {
            for operation in Operation::ALL {
                for (rejected, quantiles) in [false, true].into_iter().zip(&quantiles[operation as usize]) {
                    let labels = format!(
                        "type=\"{}\",operation=\"{operation}\",rejected=\"{rejected}\"",
                        kind(mutating)
                    );
                    histogram(steps, operation, rejected).write_summary(out, name, &labels, quantiles);
                }
            }
        }
        let name = "apiserver_admission_controller_admission_duration_seconds";
        head(out, name, "histogram", "How long admission plugins took.");
        for ((plugin, mutating), durations) in &*self.plugins.read() {
            each(durations, &mut |histogram, labels| {
                let labels = format!("name=\"{plugin}\",type=\"{}\",{labels}", kind(*mutating));
                histogram.write(out, name, &labels, OWN_BOUNDS);
            });
        }
        let webhooks = self.webhooks.lock();
        let named = |(name, kind): &WebhookKey| format!("name=\"{}\",type=\"{kind}\"", escape(name));
        let name = "apiserver_admission_webhook_admission_duration_seconds";
        head(out, name, "histogram", "How long admission webhooks took.");
        for (key, webhook) in &*webhooks {
            each(&webhook.durations, &mut |histogram, labels| {
                histogram.write(out, name, &format!("{},{labels}", named(key)), BOUNDS.len());
            });
        }
        let name = "apiserver_admission_webhook_request_total";
        head(
            out,
            name,
            "counter",
            "Calls of admission webhooks, by code and whether the request was rejected.",
        );
        for (key, webhook) in &*webhooks {
            for ((operation, code, rejected), count) in &webhook.requests {
                let labels = named(key);
                let _ = writeln!(
                    out,
                    "{name}{{{labels},operation=\"{operation}\",code=\"{code}\",rejected=\"{rejected}\"}} {count}"
                );
            }
        }
        let name = "apiserver_admission_webhook_rejection_count";
        head(
            out,
            name,
            "counter",
            "Requests rejected by admission webhooks, or because one could not be called.",
        );
        for (key, webhook) in &*webhooks {
            for ((operation, error, code), count) in &webhook.rejections {
                let labels = named(key);
                let _ = writeln!(
                    out,
                    "{name}{{{labels},operation=\"{operation}\",error_type=\"{error}\",rejection_code=\"{code}\"}} {count}"
                );
            }
        }
        let name = "apiserver_admission_webhook_fail_open_count";
        head(out, name, "counter", "Admission webhooks that could not be called, and did not have to be.");
        for (key, webhook) in webhooks.iter().filter(|(_, webhook)| webhook.fail_open > 0) {
            let _ = writeln!(out, "{name}{{{}}} {}", named(key), webhook.fail_open);
        }
    }
}
