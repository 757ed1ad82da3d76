//! Metrics of shardings.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
};

use crate::Metrics;

/// The metrics of all shardings of a registry, each with the label `name`:
///
/// - `k1s_sharding_owned_shards`: shards that this replica owns.
/// - `k1s_sharding_members`: replicas that are alive, as far as this one knows.
/// - `k1s_sharding_acquisitions_total`: shards that this replica has acquired.
/// - `k1s_sharding_releases_total`: shards that it has given to others, after its work had stopped.
/// - `k1s_sharding_losses_total`: shards that it has lost because its Lease was not renewed in time, or its work did not stop
///   in time.
#[derive(Debug, Clone, Default)]
pub struct ShardingMetrics {
    owned: Family<Name, Gauge>,
    members: Family<Name, Gauge>,
    acquisitions: Family<Name, Counter>,
    releases: Family<Name, Counter>,
    losses: Family<Name, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Name {
    name: String,
}

impl ShardingMetrics {
    /// Adds the metrics to a registry. Must be called once per registry.
    #[must_use]
    pub fn register(metrics: &Metrics) -> ShardingMetrics {
        let this = ShardingMetrics::default();
        metrics.register(|registry| {
            registry.register(
                "k1s_sharding_owned_shards",
                "Shards that this replica owns",
                this.owned.clone(),
            );
            registry.register(
                "k1s_sharding_members",
                "Replicas that share the work, as far as this one knows",
                this.members.clone(),
            );
            registry.register(
                "k1s_sharding_acquisitions",
                "Shards that this replica has acquired",
                this.acquisitions.clone(),
            );
            registry.register(
                "k1s_sharding_releases",
                "Shards that this replica has released after its work had stopped",
                this.releases.clone(),
            );
            registry.register(
                "k1s_sharding_losses",
                "Shards that this replica has lost, or released before its work had stopped",
                this.losses.clone(),
            );
        });
        this
    }

    pub(super) fn of(&self, name: &str) -> OfSharding {
        let name = Name { name: name.to_owned() };
        OfSharding {
            owned: self.owned.get_or_create(&name).clone(),
            members: self.members.get_or_create(&name).clone(),
            acquisitions: self.acquisitions.get_or_create(&name).clone(),
            releases: self.releases.get_or_create(&name).clone(),
            losses: self.losses.get_or_create(&name).clone(),
        }
    }
}

/// The metrics of one sharding.
#[derive(Debug)]
pub(super) struct OfSharding {
    pub(super) owned: Gauge,
    pub(super) members: Gauge,
    pub(super) acquisitions: Counter,
    pub(super) releases: Counter,
    pub(super) losses: Counter,
}
