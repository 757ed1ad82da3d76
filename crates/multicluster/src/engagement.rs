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

use crate::{ClusterLabel, MultiClusterOptions, MultiRequest};

/// The work with a cluster, from when it is engaged until it is disengaged.
pub(crate) struct Engagement {
    pub(crate) cluster: Cluster,
    pub(crate) since: Instant,
    running: Mutex<Running>,
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
    /// Cancelled when the reconcile has to end.
    pub(crate) fn abort(&self) -> &CancellationToken {
        &self.of.abort
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut running = self.of.running.lock();
        running.count -= 1;
        if running.count == 0 {
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
        let mut hasher = DefaultHasher::new();
        request.cluster.hash(&mut hasher);
        hasher.finish()
    }

    fn substitutes(&self) -> Option<Substitutes> {
        Some(self.substitutes)
    }

    fn in_logs(&self) -> bool {
        self.label == ClusterLabel::On
    }
}
