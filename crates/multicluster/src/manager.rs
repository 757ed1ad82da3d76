//! The multi-cluster manager.

use std::{fmt, ops::Deref, sync::Arc};

use k1s_runtime::{
    BoxError, Cluster, ClusterName, ClusterOptions, Connect, IdleOptions, Kind, Manager, ManagerError,
    ManagerOptions, Object,
    manager::{IdleReport, WeakManager},
    runnable,
};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    ClusterState, ClusterStatus, Engager, MultiClusterOptions, Provider, ProviderError, Stuck, fleet::Fleet,
};

/// Maximum number of failing clusters that the readiness check names.
const MAX_NAMED: usize = 10;

/// A [`Manager`] whose controllers work with many clusters, which are engaged and disengaged while it runs. Clones refer to the
/// same manager.
///
/// It does everything that a manager does, for its own ("local") cluster, which leader election, webhooks and providers use.
/// Controllers over many clusters are built by [`Controller::managed_by`](crate::Controller::managed_by).
#[derive(Clone)]
pub struct MultiClusterManager {
    inner: Arc<Inner>,
}

struct Inner {
    manager: Manager,
    fleet: Arc<Fleet>,
    providers: Mutex<Vec<Arc<dyn Provider>>>,
}

impl MultiClusterManager {
    /// A manager with this own cluster, and no others yet.
    ///
    /// # Errors
    /// If the options are invalid.
    pub fn new(
        connect: impl Connect,
        options: ManagerOptions,
        clusters: MultiClusterOptions,
    ) -> Result<MultiClusterManager, ManagerError> {
        let manager = Manager::new(connect, options)?;
        let fleet = Fleet::new(manager.cluster(), manager.cluster_options(), clusters, manager.metrics());
        manager.set_fleet(&fleet);
        let weak = Arc::downgrade(&fleet);
        manager.readyz().add_with_note("clusters", move || {
            let fleet = weak.upgrade();
            async move {
                let Some(fleet) = fleet else { return Ok(None) };
                match describe_failing(&fleet.statuses()) {
                    Some(failing) if fleet.options.ready_needs_clusters => Err(failing),
                    failing => Ok(failing),
                }
            }
        });
        let inner = Inner { manager, fleet, providers: Mutex::default() };
        Ok(MultiClusterManager { inner: Arc::new(inner) })
    }

    /// The manager of the own cluster, for controllers that work with that cluster only.
    #[must_use]
    pub fn manager(&self) -> &Manager {
        &self.inner.manager
    }

    pub(crate) fn fleet(&self) -> &Arc<Fleet> {
        &self.inner.fleet
    }

    /// The own cluster, whose name is empty.
    #[must_use]
    pub fn local_cluster(&self) -> &Cluster {
        self.inner.manager.cluster()
    }

    /// Adds a provider, which runs as long as the manager does, on every replica. Started at once if the manager runs.
    pub fn add_provider(&self, provider: Arc<dyn Provider>) {
        self.inner.providers.lock().push(Arc::clone(&provider));
        let fleet = Arc::clone(&self.inner.fleet);
        let name = format!("provider {}", provider.name());
        let id = fleet.provider_starts(name.clone());
        let engager: Arc<dyn Engager> =
            Arc::new(OfProvider { fleet: Arc::clone(&fleet), host: self.inner.manager.downgrade(), id });
        let run = runnable(name, move |stop| {
            let (provider, engager, fleet) =
                (Arc::clone(&provider), Arc::clone(&engager), Arc::clone(&fleet));
            async move {
                let ended: Result<(), BoxError> = provider.run(engager, stop).await;
                fleet.provider_synced(id);
                ended
            }
        });
        self.inner.manager.add(run.without_leader_election());
    }

    /// What providers are given; for clusters that come from elsewhere.
    #[must_use]
    pub fn engager(&self) -> Arc<dyn Engager> {
        let fleet = Arc::clone(&self.inner.fleet);
        Arc::new(OfProvider { fleet, host: self.inner.manager.downgrade(), id: u64::MAX })
    }

    /// Starts to work with a cluster; see [`Engager::engage`].
    pub fn engage(&self, cluster: Cluster) {
        self.inner.fleet.engage(cluster);
    }

    /// Ends the work with a cluster; see [`Engager::disengage`].
    ///
    /// # Errors
    /// If reconciles did not end in time; they were cancelled.
    pub async fn disengage(&self, name: &ClusterName) -> Result<(), Stuck> {
        self.inner.fleet.disengage(name).await
    }

    /// The clusters of providers and their states, by name.
    #[must_use]
    pub fn clusters(&self) -> Vec<ClusterStatus> {
        self.inner.fleet.statuses()
    }

    /// A cluster that is engaged, by name; the own one has the empty name.
    #[must_use]
    pub fn cluster(&self, name: &ClusterName) -> Option<Cluster> {
        Some(self.inner.fleet.live.get(name)?.cluster.clone())
    }

    /// A cluster by name, whether it is engaged or only known to a provider: one of another shard, for example.
    ///
    /// # Errors
    /// If no provider has it, or it cannot be connected to.
    pub async fn get_cluster(&self, name: &ClusterName) -> Result<Cluster, ProviderError> {
        if let Some(cluster) = self.cluster(name) {
            return Ok(cluster);
        }
        let providers = self.inner.providers.lock().clone();
        for provider in providers {
            match provider.get(name).await {
                Ok(cluster) => {
                    self.inner.fleet.apply_indexes(&cluster);
                    return Ok(cluster);
                }
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Err(ProviderError::NotFound(name.clone()))
    }

    /// Adds an index to a kind in every cluster, also those engaged later.
    pub fn index_field<K: Object>(
        &self,
        kind: &Kind<K>,
        field: &str,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) {
        self.inner.fleet.index_field(kind, field, values);
    }

    /// As [`Manager::start`]; at the end, all clusters are stopped.
    ///
    /// # Errors
    /// As there.
    pub async fn start(&self, stop: CancellationToken) -> Result<(), ManagerError> {
        let ended = self.inner.manager.start(stop).await;
        self.inner.fleet.end().await;
        ended
    }

    /// As [`Manager::run_until_idle`], over all clusters: every provider has engaged what there is, and every cluster's cache has
    /// seen everything on its server.
    ///
    /// # Errors
    /// As there.
    pub async fn run_until_idle(&self, options: IdleOptions) -> Result<IdleReport, ManagerError> {
        let ended = self.inner.manager.run_until_idle(options).await;
        self.inner.fleet.end().await;
        ended
    }
}

/// Names the failing clusters.
fn describe_failing(clusters: &[ClusterStatus]) -> Option<String> {
    let failing: Vec<&ClusterStatus> =
        clusters.iter().filter(|cluster| matches!(cluster.state, ClusterState::Failing { .. })).collect();
    if failing.is_empty() {
        return None;
    }
    let mut named: Vec<String> = failing
        .iter()
        .take(MAX_NAMED)
        .map(|cluster| format!("{}: {}", cluster.name, cluster.state))
        .collect();
    if failing.len() > MAX_NAMED {
        named.push(format!("{} more", failing.len() - MAX_NAMED));
    }
    Some(format!("{} of {} clusters fail: {}", failing.len(), clusters.len(), named.join("; ")))
}

/// Everything that a manager does.
impl Deref for MultiClusterManager {
    type Target = Manager;

    fn deref(&self) -> &Manager {
        &self.inner.manager
    }
}

impl fmt::Debug for MultiClusterManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiClusterManager").field("manager", &self.inner.manager).finish_non_exhaustive()
    }
}

/// The fleet, as a provider sees it.
struct OfProvider {
    fleet: Arc<Fleet>,
    host: WeakManager,
    id: u64,
}

#[async_trait::async_trait]
impl Engager for OfProvider {
    fn cluster_options(&self) -> ClusterOptions {
        self.fleet.cluster_options.clone()
    }

    fn host(&self) -> Option<Manager> {
        self.host.upgrade()
    }

    fn engage(&self, cluster: Cluster) {
        self.fleet.engage(cluster);
    }

    async fn disengage(&self, name: &ClusterName) -> Result<(), Stuck> {
        self.fleet.disengage(name).await
    }

    fn synced(&self) {
        self.fleet.provider_synced(self.id);
    }
}
