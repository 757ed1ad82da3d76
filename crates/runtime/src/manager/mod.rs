//! The manager: shares resources among controllers, starts and stops them.

mod companion;
mod fleet;
mod group;
mod idle;
mod options;
mod run;
mod runnable;
mod signals;
mod state;

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use k1s_env::{Env, WorkTracker};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use self::group::Group;
pub use self::{
    companion::Companion,
    fleet::Fleet,
    idle::{IdleOptions, IdleReport, NotIdle},
    options::{ManagerOptions, MetricsServing},
    runnable::{FnRunnable, Runnable, runnable},
    signals::{Signals, shutdown_on_signals},
};
#[cfg(feature = "webhook")]
use crate::webhook::{WebhookOptions, WebhookServer};
use crate::{
    BoxError, Kind, Metrics, Object,
    cache::Cache,
    client::{Client, Reader, RestMapper},
    cluster::{Cluster, ClusterMetrics, ClusterName, ClusterOptions},
    controller::{AnyController, ControllerDefaults, ControllerStats, metrics::ControllerMetrics},
    endpoint::Checks,
    leader::{InvalidOptions, LeaderMetrics},
    queue::QueueMetrics,
    recorder::EventRecorder,
};

/// What a manager can be made for: a `kube::Client`, or a runtime that provides one.
#[diagnostic::on_unimplemented(
    message = "a manager cannot be made for `{Self}`",
    label = "neither a `kube::Client` nor a runtime",
    note = "pass a `kube::Client`, or a reference to a `Runtime` of `k1s`: `Manager::new(&runtime, options)`; the client of a manager is `Client::kube`"
)]
pub trait Connect {
    /// The client.
    fn client(&self) -> kube::Client;

    /// Time and tasks of the control plane behind the client, if it runs in this process.
    fn env(&self) -> Option<Env> {
        None
    }

    /// The tracker of its work.
    fn work(&self) -> Option<WorkTracker> {
        None
    }

    /// The control plane's own controllers, if they run in this process. A manager that waits until it is idle waits for
    /// their work, too.
    fn companion(&self) -> Option<watch::Receiver<Companion>> {
        None
    }
}

impl Connect for kube::Client {
    fn client(&self) -> kube::Client {
        self.clone()
    }
}

impl<T: Connect + ?Sized> Connect for &T {
    fn client(&self) -> kube::Client {
        (**self).client()
    }

    fn env(&self) -> Option<Env> {
        (**self).env()
    }

    fn work(&self) -> Option<WorkTracker> {
        (**self).work()
    }

    fn companion(&self) -> Option<watch::Receiver<Companion>> {
        (**self).companion()
    }
}

/// Why a manager has ended, or failed to start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// A manager can be started only once.
    #[error("manager already started")]
    AlreadyStarted,
    /// Another replica leads, or may soon.
    #[error("leader election lost")]
    LeaderElectionLost,
    /// The options of leader election are invalid.
    #[error(transparent)]
    LeaderElection(#[from] InvalidOptions),
    /// A controller or another runnable failed.
    #[error("{name}: {error}")]
    Runnable {
        /// Which one.
        name: String,
        /// Why.
        error: BoxError,
    },
    /// An address could not be listened on, or a server failed.
    #[error("{what}: {error}")]
    Server {
        /// Which one.
        what: &'static str,
        /// Why.
        error: BoxError,
    },
    /// The graceful shutdown timed out with work in flight.
    #[error("the graceful shutdown did not end in time: {}", .stuck.join(", "))]
    ShutdownTimeout {
        /// What was still running: controllers with their keys, and runnables.
        stuck: Vec<String>,
    },
    /// The manager did not become idle.
    #[error(transparent)]
    NotIdle(#[from] NotIdle),
}

/// Shares a client, a cache, metrics and more among controllers, and runs them. Clones refer to the same manager.
///
/// ```no_run
/// use k1s_runtime::{Manager, ManagerOptions, shutdown_on_signals};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = kube::Client::try_default().await?;
/// let manager = Manager::new(client, ManagerOptions::default())?;
/// // ... controllers ...
/// manager.start(shutdown_on_signals(manager.env())).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Manager {
    inner: Arc<Inner>,
}

/// Refers to a manager without keeping it: for what the manager itself holds.
#[derive(Clone)]
pub struct WeakManager {
    inner: Weak<Inner>,
}

impl WeakManager {
    /// The manager, unless it is gone.
    #[must_use]
    pub fn upgrade(&self) -> Option<Manager> {
        Some(Manager { inner: self.inner.upgrade()? })
    }
}

impl fmt::Debug for WeakManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakManager")
    }
}

struct Inner {
    options: ManagerOptions,
    cluster: Cluster,
    /// For the clusters that a multi-cluster manager adds.
    cluster_options: ClusterOptions,
    fleet: OnceLock<Weak<dyn Fleet>>,
    queue_metrics: QueueMetrics,
    controller_metrics: ControllerMetrics,
    leader_metrics: LeaderMetrics,
    #[cfg(feature = "webhook")]
    webhooks: WebhookServer,
    healthz: Checks,
    readyz: Checks,
    controllers: Mutex<BTreeMap<Arc<str>, Arc<dyn AnyController>>>,
    /// Runnables that run on every replica; `elected` has those that run on the leader only.
    others: Group,
    elected: Group,
    failures: Mutex<Option<mpsc::UnboundedReceiver<ManagerError>>>,
    started: AtomicBool,
    /// Set when the shutdown begins.
    stopping: AtomicBool,
    is_leader: CancellationToken,
    addresses: Mutex<Addresses>,
}

/// The addresses that a running manager listens on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Addresses {
    /// Metrics.
    pub metrics: Option<std::net::SocketAddr>,
    /// Health and readiness.
    pub health: Option<std::net::SocketAddr>,
    /// `/debug/pprof/`.
    pub pprof: Option<std::net::SocketAddr>,
    /// Webhooks.
    pub webhook: Option<std::net::SocketAddr>,
}

impl Manager {
    /// A manager for the API server of this client or runtime.
    ///
    /// # Errors
    /// If the options are invalid.
    pub fn new(connect: impl Connect, options: ManagerOptions) -> Result<Manager, ManagerError> {
        if let Some(election) = &options.leader_election {
            election.validate()?;
        }
        let env = options.env.clone().or_else(|| connect.env()).unwrap_or_else(Env::system);
        let work =
            options.work.clone().or_else(|| connect.work()).unwrap_or_else(|| WorkTracker::new(env.clone()));
        let metrics = options.metrics.clone();
        let mut cache_options = options.cache.clone();
        cache_options.namespaces = cache_options.namespaces.or_else(|| options.namespaces.clone());
        let cluster_options = ClusterOptions {
            env: Some(env.clone()),
            work: Some(work),
            cache: cache_options,
            namespace: None,
            uncached: options.uncached.clone(),
            field_owner: options.field_owner(),
            log_warnings: options.log_warnings,
            events: options.events.clone(),
            metrics: Some(ClusterMetrics::register(&metrics)),
        };
        let cluster = Cluster::new(ClusterName::default(), connect, cluster_options.clone());
        #[cfg(feature = "webhook")]
        let webhooks = WebhookServer::new(
            &env,
            WebhookOptions {
                metrics: metrics.clone(),
                tracker: cluster_options.work.clone(),
                ..options.webhook.clone()
            },
        );
        let (sender, failures) = mpsc::unbounded_channel();
        let manager = Manager {
            inner: Arc::new(Inner {
                queue_metrics: QueueMetrics::register(&metrics),
                controller_metrics: ControllerMetrics::register(&metrics),
                leader_metrics: LeaderMetrics::register(&metrics),
                others: Group::new("runnable", &env, sender.clone()),
                elected: Group::new("leader's runnable", &env, sender),
                options,
                cluster,
                cluster_options,
                fleet: OnceLock::new(),
                #[cfg(feature = "webhook")]
                webhooks,
                healthz: Checks::default(),
                readyz: Checks::default(),
                controllers: Mutex::new(BTreeMap::new()),
                failures: Mutex::new(Some(failures)),
                started: AtomicBool::new(false),
                stopping: AtomicBool::new(false),
                is_leader: CancellationToken::new(),
                addresses: Mutex::new(Addresses::default()),
            }),
        };
        manager.add_own_checks();
        Ok(manager)
    }

    /// Ready when every watched kind is synced and no event was lost to a panic; otherwise the check names the kinds and
    /// the reasons.
    fn add_own_checks(&self) {
        self.inner.healthz.add("ping", || async { Ok(()) });
        let weak = Arc::downgrade(&self.inner);
        self.inner.readyz.add("caches", move || {
            let weak = weak.clone();
            async move {
                let Some(inner) = weak.upgrade() else { return Ok(()) };
                let mut behind: Vec<String> =
                    inner.cluster.cache().unsynced().into_iter().map(describe).collect();
                let controllers: Vec<_> = inner.controllers.lock().values().cloned().collect();
                for controller in controllers {
                    for waiting in controller.waiting_for() {
                        behind.push(format!(
                            "controller {} waits for {}",
                            controller.name(),
                            describe(waiting)
                        ));
                    }
                }
                let panics = inner.cluster.cache().panics();
                let more = panics.len().saturating_sub(MAX_SHOWN_PANICS);
                let shown = panics.into_iter().take(MAX_SHOWN_PANICS);
                behind.extend(shown.map(|(source, problem)| describe((source, Some(problem)))));
                if more > 0 {
                    behind.push(format!("{more} more panics"));
                }
                if behind.is_empty() { Ok(()) } else { Err(behind.join("; ")) }
            }
        });
    }

    /// Refers to this manager without keeping it.
    #[must_use]
    pub fn downgrade(&self) -> WeakManager {
        WeakManager { inner: Arc::downgrade(&self.inner) }
    }

    /// The cluster that it is made for: client, cache, mapper, recorders.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.inner.cluster
    }

    /// The options of its own cluster, for other clusters whose work it does: they share its time, tasks, work tracker,
    /// metrics and field owner.
    #[must_use]
    pub fn cluster_options(&self) -> ClusterOptions {
        self.inner.cluster_options.clone()
    }

    /// Sets the other clusters that its controllers work with: they are waited for until it is idle. Only the first call has
    /// an effect.
    pub fn set_fleet(&self, fleet: &Arc<impl Fleet>) {
        let fleet: Weak<dyn Fleet> = Arc::<_>::downgrade(fleet) as Weak<dyn Fleet>;
        let _ = self.inner.fleet.set(fleet);
    }

    fn fleet(&self) -> Option<Arc<dyn Fleet>> {
        self.inner.fleet.get()?.upgrade()
    }

    /// Reads from the cache and writes to the server; reads reflect the client's own writes.
    #[must_use]
    pub fn client(&self) -> Client {
        self.inner.cluster.client().clone()
    }

    /// Reads from the server.
    #[must_use]
    pub fn api_reader(&self) -> Reader {
        self.inner.cluster.api_reader()
    }

    /// Maps kinds to the resources that the server has.
    #[must_use]
    pub fn rest_mapper(&self) -> RestMapper {
        self.inner.cluster.rest_mapper().clone()
    }

    /// The underlying client of `kube`.
    #[must_use]
    pub fn kube_client(&self) -> kube::Client {
        self.inner.cluster.kube_client().clone()
    }

    /// The cache.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        self.inner.cluster.cache()
    }

    /// The metrics; programs can add their own.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.inner.options.metrics
    }

    /// Time, tasks and randomness.
    #[must_use]
    pub fn env(&self) -> &Env {
        self.inner.cluster.env()
    }

    /// Work in flight.
    #[must_use]
    pub fn work(&self) -> &WorkTracker {
        self.inner.cluster.work()
    }

    /// A recorder of events on behalf of a component.
    #[must_use]
    pub fn event_recorder_for(&self, component: &str) -> EventRecorder {
        self.inner.cluster.event_recorder_for(component)
    }

    /// The webhook server.
    #[cfg(feature = "webhook")]
    #[must_use]
    pub fn webhook_server(&self) -> &WebhookServer {
        &self.inner.webhooks
    }

    /// Adds an index to a kind, so that cached lists can select by it like by a field.
    pub fn index_field<K: Object>(
        &self,
        kind: &Kind<K>,
        field: &str,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) {
        self.inner.cluster.cache().index_field(kind, field, values);
    }

    /// Adds a runnable. If the manager is running, it is started at once.
    pub fn add(&self, runnable: impl Runnable) {
        let group = if runnable.needs_leader_election() { &self.inner.elected } else { &self.inner.others };
        group.add(Arc::new(runnable));
    }

    /// Adds a check to `/healthz`.
    pub fn add_healthz_check<F, Fut>(&self, name: &str, check: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.inner.healthz.add(name, check);
    }

    /// Adds a check to `/readyz`.
    pub fn add_readyz_check<F, Fut>(&self, name: &str, check: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.inner.readyz.add(name, check);
    }

    /// The checks of `/healthz`.
    #[must_use]
    pub fn healthz(&self) -> &Checks {
        &self.inner.healthz
    }

    /// The checks of `/readyz`.
    #[must_use]
    pub fn readyz(&self) -> &Checks {
        &self.inner.readyz
    }

    /// Waits until this manager is the leader; without leader election, until it was started.
    pub async fn elected(&self) {
        self.inner.is_leader.cancelled().await;
    }

    /// The addresses that it listens on; none before the start.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.inner.addresses.lock().clone()
    }

    /// Statistics of its controllers so far, by name.
    #[must_use]
    pub fn stats(&self) -> BTreeMap<String, ControllerStats> {
        let controllers = self.inner.controllers.lock();
        controllers.iter().map(|(name, controller)| (name.to_string(), controller.stats())).collect()
    }

    pub(crate) fn controller_defaults(&self) -> &ControllerDefaults {
        &self.inner.options.controller
    }

    pub(crate) fn queue_metrics(&self) -> &QueueMetrics {
        &self.inner.queue_metrics
    }

    pub(crate) fn controller_metrics(&self) -> &ControllerMetrics {
        &self.inner.controller_metrics
    }

    /// Adds a controller; `false` if there is already one of that name.
    pub(crate) fn add_controller(&self, controller: Arc<dyn AnyController>) -> bool {
        {
            let mut controllers = self.inner.controllers.lock();
            if controllers.contains_key(controller.name()) {
                return false;
            }
            controllers.insert(Arc::clone(controller.name()), Arc::clone(&controller));
        }
        self.add(run::ControllerRunnable::new(controller, &self.inner));
        true
    }

    fn all_controllers(&self) -> Vec<Arc<dyn AnyController>> {
        self.inner.controllers.lock().values().cloned().collect()
    }

    /// Whether it was started, even if it has ended since.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.inner.started.load(Ordering::Acquire)
    }
}

/// Maximum number of panics in the readiness report; there may be one for each object.
const MAX_SHOWN_PANICS: usize = 5;

/// A kind that is not synced, and why.
fn describe((name, problem): (String, Option<crate::cache::Problem>)) -> String {
    match problem {
        Some(problem) => format!("{name}: {problem}"),
        None => format!("{name}: not synced yet"),
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<Arc<str>> = self.inner.controllers.lock().keys().cloned().collect();
        f.debug_struct("Manager").field("controllers", &names).finish_non_exhaustive()
    }
}
