//! The metrics of controllers, with the names of Go's controller-runtime.

use std::sync::Arc;

use prometheus_client::{
    metrics::{
        counter::Counter,
        family::{Family, MetricConstructor},
        gauge::Gauge,
        histogram::Histogram,
    },
    registry::Registry,
};

use crate::Metrics;

type Labels = [(&'static str, Arc<str>); 1];
type ResultLabels = [(&'static str, Arc<str>); 2];

/// The metrics of all controllers of a manager.
#[derive(Clone)]
pub(crate) struct ControllerMetrics {
    total: Family<ResultLabels, Counter>,
    errors: Family<Labels, Counter>,
    terminal_errors: Family<Labels, Counter>,
    panics: Family<Labels, Counter>,
    timeouts: Family<Labels, Counter>,
    time: Family<Labels, Histogram, Buckets>,
    max_concurrent: Family<Labels, Gauge>,
    active: Family<Labels, Gauge>,
}

/// The metrics of one controller.
pub(crate) struct OfController {
    pub(crate) success: Counter,
    pub(crate) error: Counter,
    pub(crate) requeue: Counter,
    pub(crate) requeue_after: Counter,
    pub(crate) errors: Counter,
    pub(crate) terminal_errors: Counter,
    pub(crate) panics: Counter,
    pub(crate) timeouts: Counter,
    pub(crate) time: Histogram,
    pub(crate) active: Gauge,
}

#[derive(Clone)]
struct Buckets;

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new([
            0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
            1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
            25.0, 30.0, 40.0, 50.0, 60.0,
        ])
    }
}

impl ControllerMetrics {
    pub(crate) fn register(metrics: &Metrics) -> ControllerMetrics {
        let all = ControllerMetrics {
            total: Family::default(),
            errors: Family::default(),
            terminal_errors: Family::default(),
            panics: Family::default(),
            timeouts: Family::default(),
            time: Family::new_with_constructor(Buckets),
            max_concurrent: Family::default(),
            active: Family::default(),
        };
        metrics.register(|registry: &mut Registry| {
            let registry = registry.sub_registry_with_prefix("controller_runtime");
            // The encoder appends `_total` to the names of counters.
            registry.register(
                "reconcile",
                "Total number of reconciliations per controller",
                all.total.clone(),
            );
            registry.register(
                "reconcile_errors",
                "Total number of reconciliation errors per controller",
                all.errors.clone(),
            );
            registry.register(
                "terminal_reconcile_errors",
                "Total number of terminal reconciliation errors per controller",
                all.terminal_errors.clone(),
            );
            registry.register(
                "reconcile_panics",
                "Total number of reconciliation panics per controller",
                all.panics.clone(),
            );
            registry.register(
                "reconcile_timeouts",
                "Total number of reconciliation timeouts per controller",
                all.timeouts.clone(),
            );
            registry.register(
                "reconcile_time_seconds",
                "Length of time per reconciliation per controller",
                all.time.clone(),
            );
            registry.register(
                "max_concurrent_reconciles",
                "Maximum number of concurrent reconciles per controller",
                all.max_concurrent.clone(),
            );
            registry.register(
                "active_workers",
                "Number of currently used workers per controller",
                all.active.clone(),
            );
        });
        all
    }

    /// The metrics of a controller, initialized to zero.
    pub(crate) fn controller(&self, name: &Arc<str>, max_concurrent: usize) -> OfController {
        let labels = [("controller", Arc::clone(name))];
        let result = |result: &str| {
            self.total.get_or_create(&[("controller", Arc::clone(name)), ("result", result.into())]).clone()
        };
        let max_concurrent = i64::try_from(max_concurrent).unwrap_or(i64::MAX);
        self.max_concurrent.get_or_create(&labels).set(max_concurrent);
        OfController {
            success: result("success"),
            error: result("error"),
            requeue: result("requeue"),
            requeue_after: result("requeue_after"),
            errors: self.errors.get_or_create(&labels).clone(),
            terminal_errors: self.terminal_errors.get_or_create(&labels).clone(),
            panics: self.panics.get_or_create(&labels).clone(),
            timeouts: self.timeouts.get_or_create(&labels).clone(),
            time: self.time.get_or_create(&labels).clone(),
            active: self.active.get_or_create(&labels).clone(),
        }
    }
}
