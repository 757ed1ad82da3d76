//! Clusters that are known from the start.

use std::{collections::BTreeMap, fmt, sync::Arc};

use k1s_runtime::{BoxError, Cluster, ClusterName, ClusterOptions, Connect};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::Connection;
use crate::{Engager, Provider, ProviderError};

/// A fixed set of clusters.
#[derive(Default)]
pub struct StaticProvider {
    clusters: BTreeMap<ClusterName, Connection>,
    made: Mutex<BTreeMap<ClusterName, Cluster>>,
}

impl StaticProvider {
    /// No clusters.
    #[must_use]
    pub fn new() -> StaticProvider {
        StaticProvider::default()
    }

    /// Adds a cluster.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<ClusterName>,
        connect: impl Connect + Send + Sync + 'static,
    ) -> StaticProvider {
        self.clusters.insert(name.into(), Box::new(connect));
        self
    }

    fn cluster(&self, name: &ClusterName, options: ClusterOptions) -> Option<Cluster> {
        let connection = self.clusters.get(name)?;
        let mut made = self.made.lock();
        let cluster =
            made.entry(name.clone()).or_insert_with(|| Cluster::new(name.clone(), &**connection, options));
        Some(cluster.clone())
    }
}

#[async_trait::async_trait]
impl Provider for StaticProvider {
    fn name(&self) -> String {
        "static".to_owned()
    }

    async fn get(&self, name: &ClusterName) -> Result<Cluster, ProviderError> {
        self.cluster(name, ClusterOptions::default()).ok_or_else(|| ProviderError::NotFound(name.clone()))
    }

    async fn run(
        self: Arc<Self>,
        engager: Arc<dyn Engager>,
        stop: CancellationToken,
    ) -> Result<(), BoxError> {
        for name in self.clusters.keys() {
            if let Some(cluster) = self.cluster(name, engager.cluster_options()) {
                engager.engage(cluster);
            }
        }
        engager.synced();
        stop.cancelled().await;
        Ok(())
    }
}

impl fmt::Debug for StaticProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StaticProvider").field(&self.clusters.keys()).finish()
    }
}
