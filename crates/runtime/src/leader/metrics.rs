//! Who leads, as a metric.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
};

use crate::Metrics;

/// `leader_election_master_status{name}`: 1 for those that lead, 0 for those that wait.
///
/// One for all elections of a registry.
#[derive(Debug, Clone, Default)]
pub struct LeaderMetrics {
    status: Family<Name, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Name {
    name: String,
}

impl LeaderMetrics {
    /// Adds the metric to a registry. To be called once for each.
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
