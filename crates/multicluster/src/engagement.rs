//! A cluster that is worked with: its running reconciles, and the clusters that requests are of.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use k1s_env::Instant;
use k1s_runtime::{
    Cluster, ClusterName,
    controller::{RequestClusters, Substitutes},
};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{ClusterLabel, MultiClusterOptions, MultiRequest, metrics::OfCluster};

/// The work with a cluster, from when it is engaged until it is disengaged.
pub(crate) struct Engagement {
    pub(crate) cluster: Cluster,
    pub(crate) since: Instant,
    running: Mutex<Running>,
    /// By controller.
    metrics: RwLock<Vec<(Arc<str>, Arc<OfCluster>)>>,
    ended: Notify,
    /// Cancels the running reconciles.
    pub(crate) abort: CancellationToken,
}

#[derive(Default)]
struct Running {
    count: usize,
    closed: bool,
}

impl Engagement {
    pub(crate) fn new(cluster: Cluster) -> Arc<Engagement> {
        Arc::new(Engagement {
            since: cluster.env().now(),
            cluster,
            running: Mutex::default(),
            metrics: RwLock::default(),
            ended: Notify::new(),
            abort: CancellationToken::new(),
        })
    }

    /// Begins a reconcile; `None` if the cluster is being disengaged.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<InFlight> {
        let mut running = self.running.lock();
        if running.closed {
            return None;
        }
        running.count += 1;
        Some(InFlight { of: Arc::clone(self) })
    }

    /// The metrics of a controller in this cluster.
    pub(crate) fn metrics(
        &self,
        controller: &Arc<str>,
        look_up: impl FnOnce() -> Option<OfCluster>,
    ) -> Option<Arc<OfCluster>> {
        let known = |all: &[(Arc<str>, Arc<OfCluster>)]| {
            let found = all.iter().find(|(name, _)| Arc::ptr_eq(name, controller));
            found.map(|(_, metrics)| Arc::clone(metrics))
        };
        if let Some(found) = known(&self.metrics.read()) {
            return Some(found);
        }
        let mut all = self.metrics.write();
        known(&all).or_else(|| {
            let made = Arc::new(look_up()?);
            all.push((Arc::clone(controller), Arc::clone(&made)));
            Some(made)
        })
    }

    /// Begins no more reconciles.
    pub(crate) fn close(&self) {
        self.running.lock().closed = true;
    }

    /// Waits until no reconcile runs.
    pub(crate) async fn drained(&self) {
        loop {
            // Registered before the check, so that no notification is missed.
            let ended = self.ended.notified();
            if self.running.lock().count == 0 {
                return;
            }
            ended.await;
        }
    }
}

/// A running reconcile.
pub(crate) struct InFlight {
    of: Arc<Engagement>,
}

impl InFlight {
    pub(crate) fn engagement(&self) -> &Engagement {
        &self.of
    }

    /// Cancelled when the reconcile has to end.
    pub(crate) fn abort(&self) -> &CancellationToken {
        &self.of.abort
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut running = self.of.running.lock();
        running.count -= 1;
        // Nobody waits before it is closed.
        if running.count == 0 && running.closed {
            self.of.ended.notify_waiters();
        }
    }
}

/// The clusters whose requests are reconciled. It refers to no controller, since controllers refer to it.
pub(crate) struct Live {
    local: Arc<Engagement>,
    clusters: RwLock<HashMap<ClusterName, Arc<Engagement>>>,
    label: ClusterLabel,
    substitutes: Substitutes,
}

impl Live {
    pub(crate) fn new(local: Cluster, options: &MultiClusterOptions) -> Live {
        let substitutes = Substitutes { after: options.slow_after, max: options.max_slow };
        let (local, label) = (Engagement::new(local), options.cluster_label);
        Live { local, clusters: RwLock::default(), label, substitutes }
    }

    pub(crate) fn local(&self) -> &Cluster {
        &self.local.cluster
    }

    pub(crate) fn get(&self, name: &ClusterName) -> Option<Arc<Engagement>> {
        if name.is_local() { Some(Arc::clone(&self.local)) } else { self.clusters.read().get(name).cloned() }
    }

    pub(crate) fn add(&self, engagement: &Arc<Engagement>) {
        self.clusters.write().insert(engagement.cluster.name().clone(), Arc::clone(engagement));
    }

    pub(crate) fn remove(&self, name: &ClusterName) {
        self.clusters.write().remove(name);
    }

    pub(crate) fn all(&self) -> Vec<Cluster> {
        self.clusters.read().values().map(|engagement| engagement.cluster.clone()).collect()
    }
}

impl RequestClusters<MultiRequest> for Live {
    fn cluster(&self, request: &MultiRequest) -> Option<Cluster> {
        Some(self.get(&request.cluster)?.cluster.clone())
    }

    fn flow(&self, request: &MultiRequest) -> u64 {
        flow_of(&request.cluster)
    }

    fn substitutes(&self) -> Option<Substitutes> {
        Some(self.substitutes)
    }

    fn in_logs(&self) -> bool {
        self.label == ClusterLabel::On
    }

    fn counts(&self) -> bool {
        self.label == ClusterLabel::On
    }
}

/// The number of a cluster's flow in queues.
pub(crate) fn flow_of(cluster: &ClusterName) -> u64 {
    let mut hasher = DefaultHasher::new();
    cluster.hash(&mut hasher);
    hasher.finish()
}
