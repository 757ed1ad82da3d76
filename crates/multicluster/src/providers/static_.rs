//! Clusters that are known from the start.

use std::{collections::BTreeMap, fmt, sync::Arc};

use k1s_runtime::{BoxError, Cluster, ClusterName, ClusterOptions, Connect};
use tokio_util::sync::CancellationToken;

use super::{Connection, known::Known};
use crate::{Engager, Provider, ProviderError};

/// A fixed set of clusters.
///
/// Before it runs, [`get`](Provider::get) makes a cluster with default options for each call: those of the manager are not known
/// yet.
#[derive(Default)]
pub struct StaticProvider {
    clusters: BTreeMap<ClusterName, Connection>,
    known: Known<()>,
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
}

#[async_trait::async_trait]
impl Provider for StaticProvider {
    fn name(&self) -> String {
        "static".to_owned()
    }

    async fn get(&self, name: &ClusterName) -> Result<Cluster, ProviderError> {
        self.known.get(name).or_else(|not_found| {
            let connection = self.clusters.get(name).ok_or(not_found)?;
            Ok(Cluster::new(name.clone(), &**connection, ClusterOptions::default()))
        })
    }

    async fn run(
        self: Arc<Self>,
        engager: Arc<dyn Engager>,
        stop: CancellationToken,
    ) -> Result<(), BoxError> {
        for (name, connection) in &self.clusters {
            let cluster = Cluster::new(name.clone(), &**connection, engager.cluster_options());
            self.known.engage(&*engager, (), cluster);
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
