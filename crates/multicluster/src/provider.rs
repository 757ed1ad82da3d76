//! Where clusters come from ([`Provider`]), and who they are given to ([`Engager`]).

use std::{fmt, sync::Arc, time::Duration};

use k1s_runtime::{BoxError, Cluster, ClusterName, ClusterOptions, Manager};
use tokio_util::sync::CancellationToken;

/// Finds clusters, and tells an [`Engager`] which ones come and go.
///
/// Indexes are not its concern: those registered by [`index_field`](crate::MultiClusterManager::index_field) are added to every
/// cluster when it is engaged, whichever provider, or wrapper of one, it comes from.
#[async_trait::async_trait]
pub trait Provider: Send + Sync + 'static {
    /// Its name in logs and errors.
    fn name(&self) -> String;

    /// A cluster by its name, whether it is engaged or not.
    ///
    /// # Errors
    /// If there is no such cluster, or it cannot be connected to.
    async fn get(&self, name: &ClusterName) -> Result<Cluster, ProviderError>;

    /// Engages the clusters that there are, calls [`Engager::synced`], then follows what comes, changes and goes, until `stop`
    /// is cancelled. It does not disengage its clusters at the end; the manager stops them. An error ends the manager.
    async fn run(self: Arc<Self>, engager: Arc<dyn Engager>, stop: CancellationToken)
    -> Result<(), BoxError>;
}

/// Takes the clusters of a [`Provider`]: a [`MultiClusterManager`](crate::MultiClusterManager), or a wrapper that renames or
/// selects them.
#[async_trait::async_trait]
pub trait Engager: Send + Sync + 'static {
    /// The options for clusters: time, tasks, work tracker, metrics and field owner of the manager.
    fn cluster_options(&self) -> ClusterOptions;

    /// The manager that the clusters are for, and that controllers of a provider can be added to. `None` when it has ended.
    fn host(&self) -> Option<Manager>;

    /// Starts to work with a cluster, under its [name](Cluster::name). It waits for nothing: neither for an answer of the
    /// cluster, nor for its caches.
    ///
    /// If there is one of that name, that one is disengaged first, in the background: so a cluster is engaged anew with other
    /// credentials. The same cluster again changes nothing. A cluster that comes and goes often has to wait before it is engaged
    /// ([`backoff_initial`](crate::MultiClusterOptions::backoff_initial)).
    fn engage(&self, cluster: Cluster);

    /// Ends the work with a cluster, and waits for it: its sources are removed, its requests dropped, its running reconciles
    /// finished, its caches freed. When it returns, nothing of this manager works with that cluster. Does nothing if there is
    /// none of that name.
    ///
    /// It begins when it is first polled, and goes on if nobody waits for it. One that is [engaged](Self::engage) after that has
    /// to wait for its end, if it has the same name; no other has. So a provider should not wait for it before it engages others.
    ///
    /// # Errors
    /// If reconciles did not end in time; they were cancelled.
    async fn disengage(&self, name: &ClusterName) -> Result<(), Stuck>;

    /// Everything that existed when the provider started is engaged.
    fn synced(&self);
}

/// Why a provider has no such cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// There is none of that name.
    #[error("there is no cluster {0:?}")]
    NotFound(ClusterName),
    /// It exists, and cannot be connected to: its credentials or its address are invalid.
    #[error("cluster {name:?}: {error}")]
    Connect {
        /// The cluster.
        name: ClusterName,
        /// Why.
        error: BoxError,
    },
}

impl ProviderError {
    /// Whether there is no such cluster.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, ProviderError::NotFound(_))
    }
}

/// Reconciles of a cluster did not end in time when it was disengaged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct Stuck {
    /// The cluster.
    pub cluster: ClusterName,
    /// How long they were waited for.
    pub after: Duration,
    /// The controllers and their requests.
    pub reconciles: Vec<String>,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stuck { cluster, after, reconciles } = self;
        write!(f, "cluster {cluster:?}: cancelled after {after:?}: {}", reconciles.join(", "))
    }
}
