//! The metrics of a multi-cluster manager.

use std::{collections::BTreeMap, fmt, sync::Arc};

use k1s_runtime::{ClusterName, Metrics};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{counter::Counter, family::Family, gauge::ConstGauge},
};

use crate::{
    ClusterLabel,
    state::{ClusterState, ClusterStatus},
};

type Labels = [(&'static str, Arc<str>); 3];

/// Reconciles by cluster, if clusters are named in metrics.
#[derive(Clone)]
pub(crate) struct ReconcileMetrics {
    by_cluster: Option<Family<Labels, Counter>>,
}

/// How a reconcile ended, as in metrics.
const RESULTS: [&str; 3] = ["success", "error", "cancelled"];

impl ReconcileMetrics {
    pub(crate) fn register(metrics: &Metrics, label: ClusterLabel) -> ReconcileMetrics {
        if label == ClusterLabel::Off {
            return ReconcileMetrics { by_cluster: None };
        }
        let family = Family::default();
        metrics.register(|registry| {
            registry.register(
                "k1s_multicluster_reconcile",
                "Reconciliations per controller and cluster",
                family.clone(),
            );
        });
        ReconcileMetrics { by_cluster: Some(family) }
    }

    /// Counts a reconcile; `None` if it was cancelled or panicked.
    pub(crate) fn count(&self, controller: &Arc<str>, cluster: &ClusterName, success: Option<bool>) {
        let Some(family) = &self.by_cluster else { return };
        let result = match success {
            Some(true) => RESULTS[0],
            Some(false) => RESULTS[1],
            None => RESULTS[2],
        };
        family.get_or_create(&labels(controller, cluster, result)).inc();
    }

    /// Drops the metrics of a cluster that is gone.
    pub(crate) fn forget(&self, controller: &Arc<str>, cluster: &ClusterName) {
        if let Some(family) = &self.by_cluster {
            for result in RESULTS {
                family.remove(&labels(controller, cluster, result));
            }
        }
    }
}

fn labels(controller: &Arc<str>, cluster: &ClusterName, result: &'static str) -> Labels {
    [("controller", Arc::clone(controller)), ("cluster", cluster.clone().into()), ("result", result.into())]
}

/// The clusters and their states; `None` if their manager is gone.
type Statuses = Box<dyn Fn() -> Option<Vec<ClusterStatus>> + Send + Sync>;

/// The number of clusters by state, counted when metrics are read.
pub(crate) struct ClusterStates {
    statuses: Statuses,
}

impl ClusterStates {
    pub(crate) fn register(metrics: &Metrics, statuses: Statuses) {
        let states = ClusterStates { statuses };
        metrics.register(|registry| registry.register_collector(Box::new(states)));
    }
}

impl Collector for ClusterStates {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(clusters) = (self.statuses)() else { return Ok(()) };
        let mut counts: BTreeMap<&str, i64> = ClusterState::NAMES.iter().map(|name| (*name, 0)).collect();
        for cluster in clusters {
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
        Ok(())
    }
}

impl fmt::Debug for ClusterStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterStates")
    }
}
