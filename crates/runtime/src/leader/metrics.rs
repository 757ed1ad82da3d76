//! Leadership as a metric.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
};

use crate::Metrics;

/// `leader_election_master_status{name}`: 1 if this process leads, 0 if it waits.
///
/// Shared by all elections of a registry.
#[derive(Debug, Clone, Default)]
pub struct LeaderMetrics {
    status: Family<Name, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Name {
    name: String,
}

impl LeaderMetrics {
    /// Adds the metric to a registry. Must be called once per registry.
    #[must_use]
    pub fn register(metrics: &Metrics) -> LeaderMetrics {
        let this = LeaderMetrics::default();
        metrics.register(|registry| {
            registry.register(
                "leader_election_master_status",
                "Whether this process leads the election of that name: 1 if it does, 0 if it waits",
                this.status.clone(),
            );
        });
        this
    }

    pub(super) fn set(&self, name: &str, leads: bool) {
        self.status.get_or_create(&Name { name: name.to_owned() }).set(i64::from(leads));
    }
}
