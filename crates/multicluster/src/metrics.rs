//! The metrics of a multi-cluster manager.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use k1s_runtime::{ClusterName, Metrics, queue::FlowState};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _, NoLabelSet},
    metrics::{
        MetricType,
        counter::Counter,
        family::{Family, MetricConstructor},
        gauge::ConstGauge,
        histogram::Histogram,
    },
};

use crate::{
    ClusterLabel,
    state::{ClusterState, ClusterStatus},
};

type Labels = [(&'static str, Arc<str>); 2];
type ResultLabels = [(&'static str, Arc<str>); 3];

/// The metrics of reconciles by cluster, if clusters are named in metrics. Those of the runtime are of all clusters together.
#[derive(Clone)]
pub(crate) struct ReconcileMetrics {
    by_cluster: Option<Families>,
}

#[derive(Clone)]
struct Families {
    total: Family<ResultLabels, Counter>,
    time: Family<Labels, Histogram, Buckets>,
}

/// Fewer than those of all clusters together: there is a series of each for every cluster.
#[derive(Clone)]
struct Buckets;

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new([0.01, 0.1, 1.0, 10.0, 60.0])
    }
}

/// The metrics of a controller in a cluster. They are looked up once, not for each reconcile.
pub(crate) struct OfCluster {
    success: Counter,
    error: Counter,
    cancelled: Counter,
    time: Histogram,
}

/// How a reconcile ended, as in metrics.
const RESULTS: [&str; 3] = ["success", "error", "cancelled"];

impl ReconcileMetrics {
    pub(crate) fn register(metrics: &Metrics, label: ClusterLabel) -> ReconcileMetrics {
        if label == ClusterLabel::Off {
            return ReconcileMetrics { by_cluster: None };
        }
        let families = Families { total: Family::default(), time: Family::new_with_constructor(Buckets) };
        metrics.register(|registry| {
            registry.register(
                "k1s_multicluster_reconcile",
                "Reconciliations per controller and cluster",
                families.total.clone(),
            );
            registry.register(
                "k1s_multicluster_reconcile_time_seconds",
                "Length of time per reconciliation per controller and cluster",
                families.time.clone(),
            );
        });
        ReconcileMetrics { by_cluster: Some(families) }
    }

    /// The metrics of a controller in a cluster.
    pub(crate) fn of(&self, controller: &Arc<str>, cluster: &ClusterName) -> Option<OfCluster> {
        let families = self.by_cluster.as_ref()?;
        let total =
            |result| families.total.get_or_create(&result_labels(controller, cluster, result)).clone();
        let [success, error, cancelled] = RESULTS.map(total);
        let time = families.time.get_or_create(&labels(controller, cluster)).clone();
        Some(OfCluster { success, error, cancelled, time })
    }

    /// Drops the metrics of a cluster that is gone.
    pub(crate) fn forget(&self, controller: &Arc<str>, cluster: &ClusterName) {
        if let Some(families) = &self.by_cluster {
            for result in RESULTS {
                families.total.remove(&result_labels(controller, cluster, result));
            }
            families.time.remove(&labels(controller, cluster));
        }
    }
}

impl OfCluster {
    /// Counts a reconcile; `None` if it was cancelled or panicked.
    pub(crate) fn count(&self, success: Option<bool>, took: Duration) {
        let counter = match success {
            Some(true) => &self.success,
            Some(false) => &self.error,
            None => &self.cancelled,
        };
        counter.inc();
        self.time.observe(took.as_secs_f64());
    }
}

fn labels(controller: &Arc<str>, cluster: &ClusterName) -> Labels {
    [("controller", Arc::clone(controller)), ("cluster", cluster.clone().into())]
}

fn result_labels(controller: &Arc<str>, cluster: &ClusterName, result: &'static str) -> ResultLabels {
    [("controller", Arc::clone(controller)), ("cluster", cluster.clone().into()), ("result", result.into())]
}

/// The clusters and their states; `None` if their manager is gone.
type Statuses = Box<dyn Fn() -> Option<Vec<ClusterStatus>> + Send + Sync>;

/// The number of clusters by state, and the state of each if clusters are named in metrics; read when metrics are.
pub(crate) struct ClusterStates {
    statuses: Statuses,
    label: ClusterLabel,
}

impl ClusterStates {
    pub(crate) fn register(metrics: &Metrics, label: ClusterLabel, statuses: Statuses) {
        let states = ClusterStates { statuses, label };
        metrics.register(|registry| registry.register_collector(Box::new(states)));
    }
}

impl Collector for ClusterStates {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(clusters) = (self.statuses)() else { return Ok(()) };
        let mut counts: BTreeMap<&str, i64> = ClusterState::NAMES.iter().map(|name| (*name, 0)).collect();
        for cluster in &clusters {
            *counts.entry(cluster.state.as_str()).or_default() += 1;
        }
        let gauge = ConstGauge::new(0_i64);
        let mut family = encoder.encode_descriptor(
            "k1s_multicluster_clusters",
            "Clusters by state",
            None,
            gauge.metric_type(),
        )?;
        for (state, count) in counts {
            let labels = [("state", state)];
            ConstGauge::new(count).encode(family.encode_family(&labels)?)?;
        }
        if self.label == ClusterLabel::Off {
            return Ok(());
        }
        let mut family = encoder.encode_descriptor(
            "k1s_multicluster_cluster_state",
            "1 for the state of a cluster, 0 for all others",
            None,
            MetricType::Gauge,
        )?;
        for cluster in &clusters {
            for state in ClusterState::NAMES {
                let labels = [("cluster", &*cluster.name), ("state", state)];
                family.encode_family(&labels)?.encode_gauge(&i64::from(cluster.state.as_str() == state))?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ClusterStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterStates")
    }
}

/// The queue of a controller, as far as a cluster is concerned.
pub(crate) struct QueueOfCluster {
    pub(crate) controller: Arc<str>,
    pub(crate) cluster: ClusterName,
    pub(crate) state: FlowState,
}

/// The queues of controllers by cluster; `None` if their manager is gone.
type QueueStates = Box<dyn Fn() -> Option<Vec<QueueOfCluster>> + Send + Sync>;

/// The keys of each cluster in the queues, read when metrics are.
pub(crate) struct Queues {
    states: QueueStates,
}

impl Queues {
    pub(crate) fn register(metrics: &Metrics, label: ClusterLabel, states: QueueStates) {
        if label == ClusterLabel::On {
            metrics.register(|registry| registry.register_collector(Box::new(Queues { states })));
        }
    }
}

impl Collector for Queues {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(queues) = (self.states)() else { return Ok(()) };
        let mut family = encoder.encode_descriptor(
            "k1s_multicluster_workqueue_depth",
            "How many keys of a cluster are ready in the queue of a controller",
            None,
            MetricType::Gauge,
        )?;
        for queue in &queues {
            family.encode_family(&queue.labels())?.encode_gauge(&(queue.state.ready as u64))?;
        }
        let mut family = encoder.encode_descriptor(
            "k1s_multicluster_workqueue_adds",
            "How often a key of a cluster became ready in the queue of a controller",
            None,
            MetricType::Counter,
        )?;
        for queue in &queues {
            let labels = queue.labels();
            let mut metric = family.encode_family(&labels)?;
            metric.encode_counter::<NoLabelSet, _, u64>(&queue.state.adds, None)?;
        }
        Ok(())
    }
}

impl QueueOfCluster {
    fn labels(&self) -> [(&'static str, &str); 2] {
        [("controller", &self.controller), ("cluster", &self.cluster)]
    }
}

impl fmt::Debug for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Queues")
    }
}
