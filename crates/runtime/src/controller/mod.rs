//! A controller: sources that queue requests, and workers that reconcile them.

mod builder;
mod clusters;
mod failures;
pub(crate) mod metrics;
mod options;
mod worker;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, future::join_all};
use k1s_env::{Component, Env, Task, WorkTracker};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

pub use self::{
    builder::{AfterFor, BeforeFor, BuildError, Builder, MayCallFor, MayCallOwns},
    clusters::{RequestClusters, Substitutes},
    failures::FailedRequest,
    options::{ControllerDefaults, ControllerOptions},
};
use self::{failures::Failures, metrics::OfController, options::Settings};
use crate::{
    Action, BoxError, Context, Manager, Reconciler, Request,
    announce::announced,
    cache::Problem,
    cluster::Cluster,
    panics::catch,
    predicate::MetaPredicate,
    queue::{Key, Queue, QueueState, WaitingKeys},
    sharding::Shards,
    source::{CatchUp, Source, SourceContext, Started},
};

/// A controller of a manager. Clones share one controller.
pub struct Controller<R: Key = Request> {
    pub(crate) inner: Arc<Inner<R>>,
}

impl Controller {
    /// A builder for a controller that a manager runs.
    pub fn managed_by(manager: &Manager) -> Builder<Request> {
        Builder::new(manager)
    }
}

pub(crate) struct Inner<R: Key> {
    pub(crate) name: Arc<str>,
    pub(crate) env: Env,
    pub(crate) queue: Queue<R>,
    cluster: Cluster,
    /// Finds the clusters of requests; `None` if all are of `cluster`.
    clusters: Option<Arc<dyn RequestClusters<R>>>,
    /// If replicas share its requests.
    shards: Option<Arc<Shards<R>>>,
    options: Settings,
    reconciler: Box<dyn DynReconciler<R>>,
    filters: Vec<MetaPredicate>,
    metrics: OfController,
    counts: Counts,
    failures: Failures<R>,
    /// Keys whose reconciles waited for something outside of the simulation while its clock advanced.
    overtaken: Mutex<BTreeSet<String>>,
    /// Reconciles in flight.
    pub(crate) reconciles: Component,
    /// Events that wait for their mapper.
    events: Component,
    /// Cancels the remaining reconciles when the shutdown times out.
    give_up: CancellationToken,
    sources: Mutex<Sources<R>>,
    /// Cancelled when the workers start.
    working: CancellationToken,
}

#[derive(Default)]
struct Counts {
    reconciles: AtomicU64,
    errors: AtomicU64,
    panics: AtomicU64,
    terminal: AtomicU64,
}

/// The hint for a reconcile that sleeps by another clock than the simulated one.
pub(crate) const NOT_TOKIOS_CLOCK: &str = "A reconcile under a simulated clock sleeps with `context.env().sleep`; \
     `tokio::time::sleep` sleeps in real time";

/// Counters of a controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ControllerStats {
    /// Finished reconciles.
    pub reconciles: u64,
    /// Failed reconciles.
    pub errors: u64,
    /// Reconciles that panicked.
    pub panics: u64,
    /// Reconciles that failed with a terminal error, which is not retried.
    pub terminal: u64,
}

impl std::ops::AddAssign for ControllerStats {
    fn add_assign(&mut self, other: ControllerStats) {
        self.reconciles += other.reconciles;
        self.errors += other.errors;
        self.panics += other.panics;
        self.terminal += other.terminal;
    }
}

/// Identifies a watch of a controller, to remove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchId(u64);

struct Sources<R: Key> {
    next: u64,
    waiting: BTreeMap<WatchId, (Box<dyn Source<R>>, Wait)>,
    running: BTreeMap<WatchId, Running>,
    /// Set while the controller runs.
    stop: Option<CancellationToken>,
}

/// Completes when a source is synced.
type Synced = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Running {
    name: String,
    stop: CancellationToken,
    wait: Wait,
    synced: bool,
    /// If nothing waits for it: completes when it is synced.
    unwatched: Option<Synced>,
    problem: Box<dyn Fn() -> Option<Problem> + Send + Sync>,
    catch_up: Box<dyn Fn() -> CatchUp + Send + Sync>,
    tasks: Arc<Mutex<Vec<Task<()>>>>,
    _guard: Box<dyn Send + Sync>,
}

/// Whether a source is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Yes,
    No,
}

impl Running {
    fn is_synced(&mut self) -> bool {
        if self.unwatched.as_mut().is_some_and(|synced| synced.as_mut().now_or_never().is_some()) {
            self.unwatched = None;
            self.synced = true;
        }
        self.synced
    }
}

/// An object-safe reconciler.
trait DynReconciler<R>: Send + Sync {
    fn reconcile<'a>(
        &'a self,
        request: R,
        context: Context,
    ) -> Pin<Box<dyn Future<Output = Result<Action, BoxError>> + Send + 'a>>;
}

impl<R: Key, T: Reconciler<R>> DynReconciler<R> for T {
    fn reconcile<'a>(
        &'a self,
        request: R,
        context: Context,
    ) -> Pin<Box<dyn Future<Output = Result<Action, BoxError>> + Send + 'a>> {
        Box::pin(async move { Reconciler::reconcile(self, request, context).await.map_err(Into::into) })
    }
}

/// Why a controller could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControllerError {
    /// A source could not be started.
    #[error("controller {controller}: cannot watch {source_name}: {error}")]
    Source {
        /// The controller.
        controller: Arc<str>,
        /// The source.
        source_name: String,
        /// The source's error.
        error: BoxError,
    },
    /// A source did not sync in time.
    #[error("controller {controller}: {source_name} did not sync within {after:?}: {}", reason(problem.as_deref()))]
    SyncTimeout {
        /// The controller.
        controller: Arc<str>,
        /// The source.
        source_name: String,
        /// How long the controller waited.
        after: Duration,
        /// The reason, if it is known.
        problem: Option<Box<Problem>>,
    },
    /// A reconcile panicked, and `recover_panic` is off.
    #[error("controller {controller}: {message}")]
    Panic {
        /// The controller.
        controller: Arc<str>,
        /// The panic message.
        message: String,
    },
}

fn reason(problem: Option<&Problem>) -> String {
    problem.map_or_else(|| "the reason is unknown".to_owned(), ToString::to_string)
}

impl<R: Key> Controller<R> {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its queue, to add or inspect requests.
    #[must_use]
    pub fn queue(&self) -> &Queue<R> {
        &self.inner.queue
    }

    /// Its counters.
    #[must_use]
    pub fn stats(&self) -> ControllerStats {
        self.inner.stats()
    }

    /// Adds a source, also while the controller runs.
    ///
    /// # Errors
    /// If the source cannot be started.
    pub fn watch(&self, source: impl Source<R>) -> Result<WatchId, ControllerError> {
        self.inner.add_source(Box::new(source), Wait::Yes)
    }

    /// Adds a source that nothing waits for: neither the start of the controller nor its readiness. For a cluster that may not
    /// answer.
    ///
    /// # Errors
    /// If the source cannot be started.
    pub fn watch_in_background(&self, source: impl Source<R>) -> Result<WatchId, ControllerError> {
        self.inner.add_source(Box::new(source), Wait::No)
    }

    /// Removes a source. Requests that it has queued stay; its informer stops when it is unused.
    pub fn unwatch(&self, watch: WatchId) {
        let mut sources = self.inner.sources.lock();
        sources.waiting.remove(&watch);
        let running = sources.running.remove(&watch);
        drop(sources);
        if let Some(running) = running {
            running.stop.cancel();
        }
    }
}

impl<R: Key> Inner<R> {
    fn stats(&self) -> ControllerStats {
        ControllerStats {
            reconciles: self.counts.reconciles.load(Ordering::Relaxed),
            errors: self.counts.errors.load(Ordering::Relaxed),
            panics: self.counts.panics.load(Ordering::Relaxed),
            terminal: self.counts.terminal.load(Ordering::Relaxed),
        }
    }

    fn add_source(&self, source: Box<dyn Source<R>>, wait: Wait) -> Result<WatchId, ControllerError> {
        let (id, stop) = {
            let mut sources = self.sources.lock();
            let id = WatchId(sources.next);
            sources.next += 1;
            let Some(stop) = sources.stop.clone() else {
                sources.waiting.insert(id, (source, wait));
                return Ok(id);
            };
            (id, stop)
        };
        // The controller does not wait for sources that are added later.
        let synced = self.start_source(id, source, wait, &stop)?;
        self.leave_unwatched(id, synced);
        Ok(id)
    }

    /// Nothing waits until this source is synced; it is looked up when somebody asks.
    fn leave_unwatched(&self, id: WatchId, synced: Synced) {
        if let Some(running) = self.sources.lock().running.get_mut(&id) {
            running.unwatched = Some(synced);
        }
    }

    /// Starts a source; the future completes when it has synced.
    fn start_source(
        &self,
        id: WatchId,
        source: Box<dyn Source<R>>,
        wait: Wait,
        stop: &CancellationToken,
    ) -> Result<Synced, ControllerError> {
        let name = source.name();
        let stop = stop.child_token();
        let tasks = Arc::new(Mutex::new(Vec::new()));
        let context = SourceContext {
            env: self.env.clone(),
            cache: self.cluster.cache().clone(),
            queue: match &self.shards {
                None => self.queue.clone(),
                Some(shards) => shards.gate(&self.env, &self.queue),
            },
            controller: Arc::clone(&self.name),
            kind: name.clone(),
            filters: self.filters.clone(),
            work: self.events.clone(),
            stop: stop.clone(),
            tasks: Arc::clone(&tasks),
            shards: self.shards.clone(),
        };
        let started = catch(|| source.start(context))
            .unwrap_or_else(|message| Err(format!("panic: {message} [recovered]").into()));
        let Started { synced, problem, catch_up, guard } = started.map_err(|error| {
            ControllerError::Source { controller: Arc::clone(&self.name), source_name: name.clone(), error }
        })?;
        let running = Running {
            name,
            stop,
            wait,
            synced: false,
            unwatched: None,
            problem,
            catch_up,
            tasks,
            _guard: guard,
        };
        self.sources.lock().running.insert(id, running);
        Ok(synced)
    }

    /// Starts all sources and waits until they have synced.
    async fn start_sources(&self, stop: &CancellationToken) -> Result<(), ControllerError> {
        let waiting = {
            let mut sources = self.sources.lock();
            sources.stop = Some(stop.clone());
            std::mem::take(&mut sources.waiting)
        };
        let mut started = Vec::new();
        for (id, (source, wait)) in waiting {
            let synced = self.start_source(id, source, wait, stop)?;
            match wait {
                Wait::Yes => started.push((id, synced)),
                Wait::No => self.leave_unwatched(id, synced),
            }
        }
        for (id, synced) in started {
            self.wait_for(id, synced).await?;
        }
        Ok(())
    }

    async fn wait_for(&self, id: WatchId, mut synced: Synced) -> Result<(), ControllerError> {
        let limit = self.options.cache_sync_timeout;
        let began = self.env.now();
        let waiting = async {
            while self.env.timeout(limit, &mut synced).await.is_err() {
                let sources = self.sources.lock();
                let Some(running) = sources.running.get(&id) else { return Ok(()) };
                let problem = (running.problem)();
                // Its definition may be created later; the log and readiness report that it is missing.
                if let Some(Problem::NotServed { .. }) = &problem {
                    continue;
                }
                return Err(ControllerError::SyncTimeout {
                    controller: Arc::clone(&self.name),
                    source_name: running.name.clone(),
                    after: self.env.now() - began,
                    problem: problem.map(Box::new),
                });
            }
            Ok(())
        };
        announced(&self.env, waiting, |waited| self.log_waiting(id, waited)).await?;
        if let Some(running) = self.sources.lock().running.get_mut(&id) {
            running.synced = true;
        }
        Ok(())
    }

    /// Logs which source is waited for, why, and what can be done about it.
    fn log_waiting(&self, id: WatchId, waited: Duration) {
        let sources = self.sources.lock();
        let Some(running) = sources.running.get(&id) else { return };
        let (problem, source) = ((running.problem)(), &running.name);
        let hint = match &problem {
            Some(Problem::NotServed { .. }) => {
                "; no reconcile runs before its definition is installed (k1s::Runtime::install, kubectl apply)"
            }
            _ => "",
        };
        let reason = problem
            .map_or_else(|| "the initial list is not complete yet".to_owned(), |problem| problem.to_string());
        tracing::warn!(controller = %self.name, %source, ?waited, "still waiting for {source}: {reason}{hint}");
    }

    /// Starts the sources, and works until it is stopped.
    async fn run_until(self: Arc<Self>, stop: &CancellationToken) -> Result<(), ControllerError> {
        let started = tokio::select! {
            () = stop.cancelled() => Ok(()),
            started = self.start_sources(stop) => started,
        };
        let result = match started {
            Ok(()) if !stop.is_cancelled() => worker::run(&self, stop).await,
            Ok(()) => Ok(()),
            Err(error) => Err(error),
        };
        self.stop_sources().await;
        result
    }

    async fn stop_sources(&self) {
        let running = {
            let mut sources = self.sources.lock();
            sources.stop = None;
            std::mem::take(&mut sources.running)
        };
        for running in running.into_values() {
            running.stop.cancel();
            let tasks = std::mem::take(&mut *running.tasks.lock());
            for task in tasks {
                let _ = task.await;
            }
        }
    }
}

/// A controller of any request type, as its manager sees it.
#[async_trait::async_trait]
pub(crate) trait AnyController: Send + Sync + 'static {
    fn name(&self) -> &Arc<str>;
    fn needs_leader_election(&self) -> bool;
    fn leader_election(&self) -> Option<crate::leader::LeaderElectionOptions>;
    /// Runs until it is stopped; reconciles in flight then finish.
    async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<(), BoxError>;
    /// Hands out no more requests.
    fn stop_accepting(&self);
    fn reconciles(&self) -> &Component;
    /// Cancels the reconciles in flight.
    fn give_up(&self);
    fn state(&self) -> QueueState;
    /// Keys that wait in its queue, formatted.
    fn waiting_keys(&self, limit: usize) -> WaitingKeys<String>;
    /// Keys that were overtaken by a simulated clock.
    fn overtaken(&self) -> Vec<String>;
    fn activity(&self) -> u64;
    fn events_in_flight(&self) -> usize;
    /// Waits until its workers have started.
    async fn started(&self);
    async fn idle(&self);
    fn stats(&self) -> ControllerStats;
    /// Requests whose last reconcile has failed.
    fn failed(&self) -> Vec<FailedRequest>;
    /// Sources that have not synced, and why.
    fn waiting_for(&self) -> Vec<(String, Option<Problem>)>;
    /// Sources that have synced and have a problem now.
    fn problems(&self) -> Vec<(String, Problem)>;
    /// Waits until each source has queued the requests for all events up to now, or has ended.
    async fn catch_up(&self);
}

#[async_trait::async_trait]
impl<R: Key> AnyController for Inner<R> {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn needs_leader_election(&self) -> bool {
        self.options.needs_leader_election
    }

    fn leader_election(&self) -> Option<crate::leader::LeaderElectionOptions> {
        self.options.leader_election.clone()
    }

    async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<(), BoxError> {
        let run = Arc::clone(&self).run_until(&stop);
        match &self.shards {
            None => run.await?,
            Some(shards) => tokio::select! {
                ended = run => ended?,
                () = shards.follow(&self.env, &self.queue) => {}
            },
        }
        Ok(())
    }

    fn stop_accepting(&self) {
        self.reconciles.stop_accepting();
        self.queue.shut_down();
    }

    fn reconciles(&self) -> &Component {
        &self.reconciles
    }

    fn give_up(&self) {
        self.give_up.cancel();
    }

    fn state(&self) -> QueueState {
        self.queue.state()
    }

    fn waiting_keys(&self, limit: usize) -> WaitingKeys<String> {
        self.queue.waiting(limit).map(|key| format!("{key:?}"))
    }

    fn overtaken(&self) -> Vec<String> {
        self.overtaken.lock().iter().cloned().collect()
    }

    fn activity(&self) -> u64 {
        self.queue.activity()
    }

    fn events_in_flight(&self) -> usize {
        self.events.stats().in_flight
    }

    async fn started(&self) {
        self.working.cancelled().await;
    }

    async fn idle(&self) {
        self.queue.idle().await;
        self.events.wait_idle_forever().await;
    }

    fn stats(&self) -> ControllerStats {
        Inner::stats(self)
    }

    fn failed(&self) -> Vec<FailedRequest> {
        self.failures.list(&self.name)
    }

    fn waiting_for(&self) -> Vec<(String, Option<Problem>)> {
        let mut sources = self.sources.lock();
        let waited = sources.running.values_mut().filter(|running| running.wait == Wait::Yes);
        let unsynced = waited.filter_map(|running| (!running.is_synced()).then_some(&*running));
        unsynced.map(|running| (running.name.clone(), (running.problem)())).collect()
    }

    fn problems(&self) -> Vec<(String, Problem)> {
        let mut sources = self.sources.lock();
        let synced =
            sources.running.values_mut().filter_map(|running| running.is_synced().then_some(&*running));
        synced.filter_map(|running| Some((running.name.clone(), (running.problem)()?))).collect()
    }

    async fn catch_up(&self) {
        let each: Vec<_> = {
            let sources = self.sources.lock();
            let catch_up =
                |running: &Running| running.stop.clone().run_until_cancelled_owned((running.catch_up)());
            sources.running.values().map(catch_up).collect()
        };
        join_all(each).await;
    }
}

/// The components that track a controller's reconciles and events. They are not shared, even if managers that share a
/// tracker have controllers of the same name: stopping one must not stop the other. The components of a controller that has
/// ended are reused.
pub(crate) fn components(work: &WorkTracker, name: &str) -> (Component, Component) {
    let known = work.stats();
    let mut own = name.to_owned();
    for number in 2.. {
        let reconciles = format!("reconcile/{own}");
        let other = known.iter().find(|one| *one.name == *reconciles);
        if other.is_none_or(|other| !other.accepting && other.in_flight == 0) {
            break;
        }
        own = format!("{name}#{number}");
    }
    let reconciles = work.component(&format!("reconcile/{own}"));
    reconciles.resume_accepting();
    (reconciles, work.component(&format!("events/{own}")))
}

impl<R: Key> Clone for Controller<R> {
    fn clone(&self) -> Controller<R> {
        Controller { inner: Arc::clone(&self.inner) }
    }
}

impl<R: Key> fmt::Debug for Controller<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.inner.name)
            .field("queue", &self.inner.queue)
            .finish()
    }
}
