//! The clusters that a provider has engaged: what is new or has changed is engaged, what is gone is disengaged.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use futures_util::FutureExt as _;
use k1s_runtime::{Cluster, ClusterName};
use parking_lot::Mutex;

use super::env_of;
use crate::{Engager, ProviderError};

/// Clusters, each with what it depends on: its credentials, the uid of its object.
pub(super) struct Known<V> {
    clusters: Mutex<HashMap<ClusterName, (V, Cluster)>>,
}

impl<V> Default for Known<V> {
    fn default() -> Known<V> {
        Known { clusters: Mutex::default() }
    }
}

impl<V: PartialEq> Known<V> {
    pub(super) fn new() -> Known<V> {
        Known::default()
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

    /// Begins to disengage a cluster, if it is engaged. Nobody waits for its end: a reconcile that does not end must not hold up
    /// what else there is to engage. Its successor, of the same name, waits in the engager.
    pub(super) fn disengage(&self, engager: &Arc<dyn Engager>, name: &ClusterName) {
        if self.clusters.lock().remove(name).is_none() {
            return;
        }
        let (own, name) = (Arc::clone(engager), name.clone());
        let mut ending = Box::pin(async move {
            // What is stuck was logged and cancelled.
            let _ = own.disengage(&name).await;
        });
        // Polled at once, so that it begins before anything else that the caller does.
        if (&mut ending).now_or_never().is_none() {
            drop(env_of(&**engager).spawn("provider: disengaging", ending));
        }
    }

    /// Begins to disengage what is not in a list.
    pub(super) fn disengage_others(&self, engager: &Arc<dyn Engager>, list: &BTreeMap<ClusterName, V>) {
        let gone: Vec<ClusterName> = {
            let clusters = self.clusters.lock();
            clusters.keys().filter(|name| !list.contains_key(*name)).cloned().collect()
        };
        for name in &gone {
            self.disengage(engager, name);
        }
    }
}
