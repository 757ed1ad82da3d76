//! The clusters of a manager: how they are engaged and disengaged.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use k1s_env::{Env, Instant};
use k1s_runtime::{
    Cluster, ClusterName, ClusterOptions, Kind, Metrics, Object,
    controller::{ControllerError, WatchId},
    queue::FlowState,
};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    ClusterState, ClusterStatus, MultiClusterOptions, Stuck,
    engagement::{Engagement, Live},
    index::Indexes,
    metrics::{ClusterStates, QueueOfCluster, Queues, ReconcileMetrics},
};

/// How long a disengaged cluster has to take the events that are queued for it.
const EVENTS_GRACE: Duration = Duration::from_secs(1);

/// How long cancelled reconciles have to end.
const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// A controller that works with clusters.
pub(crate) trait WorksWith: Send + Sync {
    fn name(&self) -> &Arc<str>;
    /// Adds its sources for a cluster, if it works with that one.
    fn watch(&self, cluster: &Cluster) -> Result<Vec<WatchId>, ControllerError>;
    fn unwatch(&self, watch: WatchId);
    /// Drops the requests of a cluster.
    fn drop_requests(&self, cluster: &ClusterName);
    /// What its queue has of a cluster.
    fn queued(&self, cluster: &ClusterName) -> FlowState;
    /// Drops what its queue counts of a cluster.
    fn forget(&self, cluster: &ClusterName);
    /// The requests of a cluster that are being reconciled.
    fn running(&self, cluster: &ClusterName) -> Vec<String>;
}

pub(crate) struct Fleet {
    env: Env,
    pub(crate) cluster_options: ClusterOptions,
    pub(crate) options: MultiClusterOptions,
    pub(crate) live: Arc<Live>,
    pub(crate) reconciles: ReconcileMetrics,
    indexes: Indexes,
    state: Mutex<State>,
    /// Counts changes of the fleet.
    changes: watch::Sender<u64>,
    next: AtomicU64,
}

#[derive(Default)]
struct State {
    members: BTreeMap<ClusterName, Member>,
    controllers: Vec<Arc<dyn WorksWith>>,
    /// Clusters that were disengaged, and how often in a row soon after they were engaged.
    past: HashMap<ClusterName, Past>,
    /// Providers that have not engaged everything yet.
    starting: BTreeMap<u64, String>,
    /// Set when the manager has ended: nothing is engaged any more.
    ended: bool,
}

enum Member {
    Waiting {
        cluster: Cluster,
        until: Instant,
        cancel: CancellationToken,
    },
    Engaged {
        engagement: Arc<Engagement>,
        watches: Vec<(Arc<dyn WorksWith>, WatchId)>,
    },
    /// `next` is engaged when the old one is gone.
    Disengaging {
        old: Arc<Engagement>,
        next: Option<Cluster>,
        done: watch::Receiver<Option<Result<(), Stuck>>>,
    },
}

#[derive(Clone, Copy)]
struct Past {
    flaps: u32,
    at: Instant,
}

impl Fleet {
    pub(crate) fn new(
        local: &Cluster,
        cluster_options: ClusterOptions,
        options: MultiClusterOptions,
        metrics: &Metrics,
    ) -> Arc<Fleet> {
        let fleet = Arc::new(Fleet {
            env: local.env().clone(),
            cluster_options,
            live: Arc::new(Live::new(local.clone(), &options)),
            reconciles: ReconcileMetrics::register(metrics, options.cluster_label),
            options,
            indexes: Indexes::default(),
            state: Mutex::default(),
            changes: watch::Sender::new(0),
            next: AtomicU64::new(0),
        });
        let weak = Arc::downgrade(&fleet);
        let statuses = move || weak.upgrade().map(|fleet| fleet.statuses());
        ClusterStates::register(metrics, fleet.options.cluster_label, Box::new(statuses));
        let weak = Arc::downgrade(&fleet);
        let queues = move || weak.upgrade().map(|fleet| fleet.queues());
        Queues::register(metrics, fleet.options.cluster_label, Box::new(queues));
        fleet
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    // Controllers and indexes.

    /// Adds a controller, and its sources for the clusters that are engaged already.
    pub(crate) fn add_controller(&self, controller: &Arc<dyn WorksWith>) {
        let engaged: Vec<Arc<Engagement>> = {
            let mut state = self.state.lock();
            state.controllers.push(Arc::clone(controller));
            let engaged = state.members.values().filter_map(|member| match member {
                Member::Engaged { engagement, .. } => Some(Arc::clone(engagement)),
                _ => None,
            });
            engaged.collect()
        };
        for engagement in engaged {
            self.watch(&engagement, std::slice::from_ref(controller));
        }
    }

    /// Registers an index for all clusters, now and later.
    pub(crate) fn index_field<K: Object>(
        &self,
        kind: &Kind<K>,
        field: &str,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) {
        // Locked, so that a cluster engaged meanwhile gets it once.
        let _state = self.state.lock();
        let mut clusters = self.live.all();
        clusters.push(self.live.local().clone());
        self.indexes.add(clusters.iter().map(Cluster::cache), kind, field, values);
    }

    pub(crate) fn apply_indexes(&self, cluster: &Cluster) {
        self.indexes.apply(cluster.cache());
    }

    // Engaging.

    pub(crate) fn engage(self: &Arc<Self>, cluster: Cluster) {
        let name = cluster.name().clone();
        let mut state = self.state.lock();
        if state.ended || name.is_local() {
            return;
        }
        match state.members.get_mut(&name) {
            None => return self.admit(state, cluster),
            Some(Member::Waiting { cluster: waiting, .. }) => *waiting = cluster,
            Some(Member::Disengaging { next, .. }) => *next = Some(cluster),
            Some(Member::Engaged { engagement, .. }) => {
                if engagement.cluster.is_same(&cluster) {
                    return;
                }
                tracing::info!(cluster = %name, "the cluster has changed, and is engaged anew");
                self.begin_disengage(&mut state, &name, Some(cluster));
            }
        }
        self.changed();
    }

    /// Engages a cluster, or lets it wait if it comes and goes too often.
    fn admit(self: &Arc<Self>, mut state: MutexGuard<'_, State>, cluster: Cluster) {
        let name = cluster.name().clone();
        let now = self.env.now();
        let wait = state.past.get(&name).map_or(Duration::ZERO, |past| {
            let wait = match past.flaps.checked_sub(2) {
                None => Duration::ZERO,
                Some(times) => self.options.backoff_initial.saturating_mul(2_u32.saturating_pow(times)),
            };
            (past.at + wait.min(self.options.backoff_max)) - now
        });
        if wait.is_zero() {
            return self.activate(state, cluster);
        }
        tracing::warn!(cluster = %name, ?wait, "the cluster comes and goes, and has to wait");
        let (until, cancel) = (now + wait, CancellationToken::new());
        let member = Member::Waiting { cluster, until, cancel: cancel.clone() };
        state.members.insert(name.clone(), member);
        drop(state);
        self.changed();
        let (fleet, env) = (Arc::downgrade(self), self.env.clone());
        drop(self.env.spawn("cluster waits", async move {
            if cancel.run_until_cancelled(env.sleep_until(until)).await.is_none() {
                return;
            }
            let Some(fleet) = fleet.upgrade() else { return };
            let mut state = fleet.state.lock();
            if cancel.is_cancelled() {
                return;
            }
            if let Some(Member::Waiting { cluster, .. }) = state.members.remove(&name) {
                fleet.activate(state, cluster);
            }
        }));
    }

    fn activate(&self, mut state: MutexGuard<'_, State>, cluster: Cluster) {
        if state.ended {
            return;
        }
        // It may be one that was disengaged before, and whose cache is gone.
        let cluster = if cluster.stopped().is_cancelled() { cluster.renewed() } else { cluster };
        self.apply_indexes(&cluster);
        let name = cluster.name().clone();
        let engagement = Engagement::new(cluster);
        let member = Member::Engaged { engagement: Arc::clone(&engagement), watches: Vec::new() };
        state.members.insert(name, member);
        self.live.add(&engagement);
        let controllers = state.controllers.clone();
        drop(state);
        // Without the lock: handlers are called for objects that are cached already.
        self.watch(&engagement, &controllers);
        self.changed();
    }

    /// Adds the sources of controllers for a cluster.
    fn watch(&self, engagement: &Arc<Engagement>, controllers: &[Arc<dyn WorksWith>]) {
        let name = engagement.cluster.name();
        let mut watches = Vec::new();
        for controller in controllers {
            match controller.watch(&engagement.cluster) {
                Ok(added) => watches.extend(added.into_iter().map(|watch| (Arc::clone(controller), watch))),
                Err(error) => {
                    tracing::error!(cluster = %name, %error, "a source of this cluster cannot start")
                }
            }
        }
        let mut state = self.state.lock();
        let replaced = match state.members.get_mut(name) {
            Some(Member::Engaged { engagement: now, watches: all }) if Arc::ptr_eq(now, engagement) => {
                all.append(&mut watches);
                return;
            }
            Some(Member::Engaged { .. }) => true,
            _ => false,
        };
        // It was disengaged meanwhile. Requests of the same name may be its successor's: these stay, at the price of a run too
        // many. Locked, so that no successor comes in between.
        for (controller, watch) in watches {
            controller.unwatch(watch);
            if !replaced {
                controller.drop_requests(name);
            }
        }
    }

    // Disengaging.

    pub(crate) async fn disengage(self: &Arc<Self>, name: &ClusterName) -> Result<(), Stuck> {
        let mut done = {
            let mut state = self.state.lock();
            match state.members.get_mut(name) {
                None => return Ok(()),
                Some(Member::Waiting { cancel, .. }) => {
                    cancel.cancel();
                    state.members.remove(name);
                    drop(state);
                    self.changed();
                    return Ok(());
                }
                Some(Member::Disengaging { next, done, .. }) => {
                    *next = None;
                    done.clone()
                }
                Some(Member::Engaged { .. }) => self.begin_disengage(&mut state, name, None),
            }
        };
        self.changed();
        match done.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().unwrap_or(Ok(())),
            // The task was ended together with everything else.
            Err(_) => Ok(()),
        }
    }

    /// Ends the work with a cluster in a task of its own, so that it goes on if nobody waits for it.
    fn begin_disengage(
        self: &Arc<Self>,
        state: &mut State,
        name: &ClusterName,
        next: Option<Cluster>,
    ) -> watch::Receiver<Option<Result<(), Stuck>>> {
        let (sender, done) = watch::channel(None);
        let Some(Member::Engaged { engagement, watches }) = state.members.remove(name) else { return done };
        let member = Member::Disengaging { old: Arc::clone(&engagement), next, done: done.clone() };
        state.members.insert(name.clone(), member);
        let (fleet, controllers) = (Arc::clone(self), state.controllers.clone());
        drop(self.env.spawn("disengaging a cluster", async move {
            let ended = fleet.tear_down(&engagement, watches, &controllers).await;
            fleet.disengaged(&engagement);
            let _ = sender.send(Some(ended));
        }));
        done
    }

    async fn tear_down(
        &self,
        engagement: &Engagement,
        watches: Vec<(Arc<dyn WorksWith>, WatchId)>,
        controllers: &[Arc<dyn WorksWith>],
    ) -> Result<(), Stuck> {
        let cluster = &engagement.cluster;
        let name = cluster.name();
        self.live.remove(name);
        engagement.close();
        for (controller, watch) in watches {
            controller.unwatch(watch);
        }
        for controller in controllers {
            controller.drop_requests(name);
        }
        let limit = self.options.disengage_timeout;
        let mut result = Ok(());
        if self.env.timeout(limit, engagement.drained()).await.is_err() {
            let running = controllers.iter().flat_map(|controller| {
                controller.running(name).into_iter().map(|key| format!("{} {key}", controller.name()))
            });
            let stuck = Stuck { cluster: name.clone(), after: limit, reconciles: running.collect() };
            tracing::error!(cluster = %name, reconciles = ?stuck.reconciles, "reconciles of a disengaged cluster are cancelled");
            result = Err(stuck);
            engagement.abort.cancel();
            let _ = self.env.timeout(CANCEL_GRACE, engagement.drained()).await;
        }
        for controller in controllers {
            controller.drop_requests(name);
            controller.forget(name);
            self.reconciles.forget(controller.name(), name);
        }
        if let Err(error) = cluster.stop(EVENTS_GRACE).await {
            tracing::warn!(cluster = %name, %error, "some events were not delivered");
        }
        result
    }

    /// The work with a cluster has ended; engages its successor, if there is one.
    fn disengaged(self: &Arc<Self>, old: &Arc<Engagement>) {
        let (name, now) = (old.cluster.name().clone(), self.env.now());
        let mut state = self.state.lock();
        let next = match state.members.remove(&name) {
            Some(Member::Disengaging { next, .. }) => next,
            _ => None,
        };
        let stable = self.options.stable_after;
        // What was disengaged long ago is not flapping.
        let keep = stable + self.options.backoff_max;
        state.past.retain(|_, past| now - past.at < keep);
        let brief = now - old.since < stable;
        let before = state.past.get(&name).map_or(0, |past| past.flaps);
        let flaps = if brief { before.saturating_add(1) } else { 0 };
        state.past.insert(name, Past { flaps, at: now });
        match next {
            Some(next) => self.admit(state, next),
            None => {
                drop(state);
                self.changed();
            }
        }
    }

    /// Stops all clusters: their manager has ended.
    pub(crate) async fn end(&self) {
        let members = {
            let mut state = self.state.lock();
            state.ended = true;
            std::mem::take(&mut state.members)
        };
        let clusters: Vec<Cluster> = members
            .into_values()
            .map(|member| match member {
                Member::Waiting { cluster, cancel, .. } => {
                    cancel.cancel();
                    cluster
                }
                Member::Engaged { engagement, .. } => engagement.cluster.clone(),
                Member::Disengaging { old, .. } => old.cluster.clone(),
            })
            .collect();
        let stopped = clusters.iter().map(|cluster| async move {
            self.live.remove(cluster.name());
            if let Err(error) = cluster.stop(EVENTS_GRACE).await {
                tracing::warn!(cluster = %cluster.name(), %error, "some events were not delivered");
            }
        });
        futures_util::future::join_all(stopped).await;
        self.changed();
    }

    // Reports.

    pub(crate) fn statuses(&self) -> Vec<ClusterStatus> {
        let now = self.env.now();
        let members: Vec<(ClusterName, Result<Arc<Engagement>, ClusterState>)> = {
            let state = self.state.lock();
            let members = state.members.iter().map(|(name, member)| {
                let found = match member {
                    Member::Waiting { until, .. } => {
                        Err(ClusterState::BackingOff { remaining: *until - now })
                    }
                    Member::Engaged { engagement, .. } => Ok(Arc::clone(engagement)),
                    Member::Disengaging { .. } => Err(ClusterState::Disengaging),
                };
                (name.clone(), found)
            });
            members.collect()
        };
        let state_of = |engagement: Arc<Engagement>| {
            ClusterState::of(&engagement.cluster, now - engagement.since, self.options.answer_within)
        };
        members
            .into_iter()
            .map(|(name, found)| ClusterStatus { name, state: found.map_or_else(|state| state, state_of) })
            .collect()
    }

    /// The queues of controllers by cluster, without those that no request of a cluster has been in.
    fn queues(&self) -> Vec<QueueOfCluster> {
        let controllers = self.state.lock().controllers.clone();
        let mut queues = Vec::new();
        for cluster in self.live.all().iter().chain([self.live.local()]) {
            for controller in &controllers {
                let state = controller.queued(cluster.name());
                if state != FlowState::default() {
                    let (controller, cluster) = (Arc::clone(controller.name()), cluster.name().clone());
                    queues.push(QueueOfCluster { controller, cluster, state });
                }
            }
        }
        queues
    }

    // Providers.

    /// A provider starts: the fleet is not settled before it is synced.
    pub(crate) fn provider_starts(&self, name: String) -> u64 {
        let id = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.state.lock().starting.insert(id, name);
        id
    }

    pub(crate) fn provider_synced(&self, id: u64) {
        if self.state.lock().starting.remove(&id).is_some() {
            self.changed();
        }
    }
}

#[async_trait::async_trait]
impl k1s_runtime::manager::Fleet for Fleet {
    fn clusters(&self) -> Vec<Cluster> {
        self.live.all()
    }

    async fn settled(&self) {
        let mut changes = self.changes.subscribe();
        while !k1s_runtime::manager::Fleet::busy(self).is_empty() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn activity(&self) -> u64 {
        *self.changes.borrow()
    }

    fn busy(&self) -> Vec<String> {
        let state = self.state.lock();
        let starting = state.starting.values().map(|provider| format!("{provider} looks for clusters"));
        let ending = state.members.iter().filter_map(|(name, member)| match member {
            Member::Disengaging { .. } => Some(format!("cluster {name} is being disengaged")),
            _ => None,
        });
        starting.chain(ending).collect()
    }
}

#[cfg(test)]
mod tests;
