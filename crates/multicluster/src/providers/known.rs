//! The clusters that a provider has engaged: what is new or has changed is engaged, what is gone is disengaged.

use std::collections::{BTreeMap, HashMap};

use futures_util::future::join_all;
use k1s_runtime::{Cluster, ClusterName};
use parking_lot::Mutex;

use crate::{Engager, ProviderError};

/// Clusters, each with what it depends on: its credentials, the uid of its object.
pub(super) struct Known<V> {
    clusters: Mutex<HashMap<ClusterName, (V, Cluster)>>,
}

impl<V: PartialEq> Known<V> {
    pub(super) fn new() -> Known<V> {
        Known { clusters: Mutex::default() }
    }

    pub(super) fn get(&self, name: &ClusterName) -> Result<Cluster, ProviderError> {
        let mut clusters = self.clusters.lock();
        let (_, cluster) = clusters.get_mut(name).ok_or_else(|| ProviderError::NotFound(name.clone()))?;
        if cluster.stopped().is_cancelled() {
            *cluster = cluster.renewed();
        }
        Ok(cluster.clone())
    }

    /// Whether a cluster is engaged, and depends on the same as then.
    pub(super) fn is_current(&self, name: &ClusterName, value: &V) -> bool {
        self.clusters.lock().get(name).is_some_and(|(known, _)| known == value)
    }

    pub(super) fn engage(&self, engager: &dyn Engager, value: V, cluster: Cluster) {
        self.clusters.lock().insert(cluster.name().clone(), (value, cluster.clone()));
        engager.engage(cluster);
    }

    /// Disengages a cluster, if it is engaged.
    pub(super) async fn disengage(&self, engager: &dyn Engager, name: &ClusterName) {
        let known = self.clusters.lock().remove(name).is_some();
        if known {
            // What is stuck was logged and cancelled.
            let _ = engager.disengage(name).await;
        }
    }

    /// Disengages what is not in a list, all at once.
    pub(super) async fn disengage_others(&self, engager: &dyn Engager, list: &BTreeMap<ClusterName, V>) {
        let gone: Vec<ClusterName> = {
            let clusters = self.clusters.lock();
            clusters.keys().filter(|name| !list.contains_key(*name)).cloned().collect()
        };
        join_all(gone.iter().map(|name| self.disengage(engager, name))).await;
    }
}
