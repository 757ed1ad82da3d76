//! Triggered execution: run until there is nothing left to do, and report what was done.

use std::{
    collections::BTreeMap, fmt, future::pending, ops::ControlFlow, sync::atomic::Ordering, time::Duration,
};

use futures_util::future::BoxFuture;
use futures_util::future::{join, join_all, join3};
use k1s_env::{Instant, Stall};

use tokio::sync::watch;

use super::{Companion, Manager, ManagerError, companion};
use crate::{
    announce::announced,
    cache::Problem,
    cluster::Cluster,
    controller::{ControllerStats, FailedRequest, NOT_TOKIOS_CLOCK},
};

/// How long to wait for idleness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleOptions {
    /// Maximum time to wait: 5 minutes by default.
    pub deadline: Duration,
    /// Under a simulated clock: maximum time to wait in real time, whatever the clock shows. 5 minutes by default.
    pub real_deadline: Duration,
    /// Under a simulated clock: gives up after this much real time without any progress, not even of the clock. The remaining
    /// work then waits for the clock (a retry, a sleep), or for something outside the simulation. 10 seconds by default.
    pub stalled_after: Duration,
}

impl Default for IdleOptions {
    fn default() -> IdleOptions {
        IdleOptions {
            deadline: Duration::from_secs(300),
            real_deadline: Duration::from_secs(300),
            stalled_after: Duration::from_secs(10),
        }
    }
}

impl IdleOptions {
    /// Gives up after `deadline`.
    #[must_use]
    pub fn within(deadline: Duration) -> IdleOptions {
        IdleOptions { deadline, ..IdleOptions::default() }
    }
}

/// What was done before the manager became idle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdleReport {
    /// Statistics by controller.
    pub controllers: BTreeMap<String, ControllerStats>,
    /// Writes that the server has accepted.
    pub writes: u64,
    /// Requests that controllers have requeued with a delay; they are not waited for.
    pub delayed: usize,
    /// Kinds that could not be watched; objects of these were not reconciled.
    pub problems: Vec<(String, Problem)>,
    /// Requests whose last reconcile has failed, by controller; at most a hundred of each. When the manager is idle, these are
    /// the terminal failures: other errors are retried and waited for.
    pub failed: Vec<FailedRequest>,
    /// Statistics of the control plane's own controllers since their start: garbage collection, namespace deletion.
    /// Empty if they had nothing to do, or if they run in another process and are not waited for.
    pub control_plane: BTreeMap<String, ControllerStats>,
    /// Under a simulated clock, some of the requests whose reconciles waited for something outside the simulation, such as
    /// `tokio::time::sleep`, while the clock advanced: `controller key`. They ran less often than they would have in that
    /// time.
    pub overtaken: Vec<String>,
}

impl IdleReport {
    /// Number of reconciles, over all controllers.
    #[must_use]
    pub fn reconciles(&self) -> u64 {
        self.controllers.values().map(|stats| stats.reconciles).sum()
    }

    /// Number of failed reconciles; they were retried, unless the error was terminal.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.controllers.values().map(|stats| stats.errors).sum()
    }

    /// Number of reconciles with a terminal error, which was not retried.
    #[must_use]
    pub fn terminal(&self) -> u64 {
        self.controllers.values().map(|stats| stats.terminal).sum()
    }

    /// Whether nothing is left that failed: no kind that could not be watched, no request whose last reconcile has failed. An
    /// error that a later reconcile made good is none.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.problems.is_empty() && self.failed.is_empty()
    }
}

impl fmt::Display for IdleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reconciles, errors) = (Count(self.reconciles(), "reconcile"), Count(self.errors(), "error"));
        write!(f, "{reconciles}, {errors}")?;
        if self.terminal() > 0 {
            write!(f, " ({} not retried)", self.terminal())?;
        }
        write!(f, ", {}", Count(self.writes, "write"))?;
        if self.delayed > 0 {
            write!(f, ", {} requeued for later", self.delayed)?;
        }
        let mut between = "; control plane: ";
        for (name, stats) in self.control_plane.iter().filter(|(_, stats)| stats.reconciles > 0) {
            write!(f, "{between}{name} {}", Count(stats.reconciles, "reconcile"))?;
            if stats.errors > 0 {
                write!(f, " ({})", Count(stats.errors, "error"))?;
            }
            between = ", ";
        }
        for (kind, problem) in &self.problems {
            write!(f, "; {kind}: {problem}")?;
        }
        if !self.overtaken.is_empty() {
            let overtaken = self.overtaken.join(", ");
            write!(f, "; overtaken by the simulated clock: {overtaken}. {NOT_TOKIOS_CLOCK}")?;
        }
        Ok(())
    }
}

/// A count with its noun, in singular or plural.
struct Count(u64, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count(count, what) = self;
        write!(f, "{count} {what}{}", if *count == 1 { "" } else { "s" })
    }
}

/// The manager did not become idle in time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotIdle {
    /// How long it waited.
    pub after: Duration,
    /// Whether it gave up because nothing progressed under a simulated clock; `after` is in real time then.
    pub stalled: bool,
    /// What kept it busy.
    pub busy: Vec<String>,
    /// Work scheduled for later, which was not waited for.
    pub later: Vec<String>,
    /// What was done until then.
    pub report: Box<IdleReport>,
}

impl std::error::Error for NotIdle {}

impl fmt::Display for NotIdle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotIdle { after, stalled, busy, later, report } = self;
        if *stalled {
            write!(f, "not idle, and nothing has moved for {after:?} in real time under a simulated clock")?;
        } else {
            write!(f, "not idle after {after:?}")?;
        }
        write!(f, ": {}", busy.join("; "))?;
        if !later.is_empty() {
            write!(f, "; not waited for: {}", later.join("; "))?;
        }
        if *stalled {
            write!(
                f,
                ". Advance the clock (VirtualClock::advance_and_settle) for work that waits for it. {NOT_TOKIOS_CLOCK}"
            )?;
        }
        if !report.overtaken.is_empty() {
            write!(f, ". The clock has overtaken {}", report.overtaken.join(", "))?;
        }
        Ok(())
    }
}

impl Manager {
    /// Starts, reconciles until nothing is queued, in flight or unseen, shuts down gracefully, and reports what was done.
    ///
    /// Failed reconciles are retried and waited for. Requests that a reconcile requeued with a delay are not waited for; the
    /// report counts them. At the end, every cache has seen everything on the server.
    ///
    /// If the control plane runs in this process, its own controllers are waited for as well: garbage is collected, and
    /// deleted namespaces are gone, unless a finalizer keeps them.
    ///
    /// # Errors
    /// Like [`start`](Self::start); and [`NotIdle`], if there was work left at the deadline.
    pub async fn run_until_idle(&self, options: IdleOptions) -> Result<IdleReport, ManagerError> {
        self.run_and_wait(options).await
    }

    // Boxed, as in `run.rs`: not compiled again in every crate that awaits them.

    #[inline(never)]
    fn run_and_wait(&self, options: IdleOptions) -> BoxFuture<'_, Result<IdleReport, ManagerError>> {
        Box::pin(self.launch_until_idle(options))
    }

    #[inline(never)]
    fn wait(&self, options: IdleOptions) -> BoxFuture<'_, Result<IdleReport, NotIdle>> {
        Box::pin(self.wait_for_idle(options))
    }

    async fn launch_until_idle(&self, options: IdleOptions) -> Result<IdleReport, ManagerError> {
        let mut running = self.launch().await?;
        let ended = tokio::select! {
            idle = self.wait_until_idle(options) => idle.map_err(ManagerError::from),
            error = running.ended() => Err(error),
        };
        let (report, ended) = match ended {
            Ok(report) => (Some(report), Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.shut_down(running, ended, options.stalled_after).await?;
        Ok(report.unwrap_or_default())
    }

    /// Waits until nothing is queued, in flight or unseen. The manager must be running, and keeps running.
    ///
    /// Under a simulated clock that is not advanced, it gives up once nothing progresses in real time, and reports what is
    /// left ([`IdleOptions::stalled_after`]).
    ///
    /// # Errors
    /// If there was work left at the deadline.
    pub async fn wait_until_idle(&self, options: IdleOptions) -> Result<IdleReport, NotIdle> {
        self.wait(options).await
    }

    async fn wait_for_idle(&self, options: IdleOptions) -> Result<IdleReport, NotIdle> {
        let IdleOptions { deadline, real_deadline, stalled_after } = options;
        let env = self.inner.cluster.env();
        let stalled = |stall| match stall {
            Stall::Still { .. } => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        // Boxed, since each of the wrappers below would copy the future.
        let idle = env.watch_stalls(stalled_after, || self.marks(), stalled, Box::pin(self.idle()));
        let idle = announced(env, env.timeout(deadline, idle), |waited| {
            tracing::info!(?waited, busy = %self.busy().join("; "), "not idle yet");
        });
        let waited = if env.is_simulated() {
            env.timeout_in_real_time(real_deadline, idle).await
        } else {
            Ok(idle.await)
        };
        let (after, stalled) = match waited {
            Ok(Ok(Ok(problems))) => return Ok(self.report(problems)),
            Ok(Ok(Err(_))) => (stalled_after, true),
            Ok(Err(_)) => (deadline, false),
            Err(_) => (real_deadline, false),
        };
        Err(NotIdle {
            after,
            stalled,
            busy: self.busy(),
            later: self.later(),
            report: Box::new(self.report(self.inner.cluster.cache().problems())),
        })
    }

    /// Counters that change with any progress of this manager, its companions and its fleet.
    pub(super) fn marks(&self) -> Vec<u64> {
        let companions = companion::running_now(&self.companions());
        let all = std::iter::once(self).chain(&companions);
        let clusters = self.other_clusters();
        let others = clusters.iter().map(|cluster| *cluster.cache().changes().borrow());
        all.flat_map(|manager| {
            let work = manager.inner.cluster.work().stats();
            let work = work.iter().map(|one| one.started + one.succeeded + one.failed).sum();
            let changes = *manager.inner.cluster.cache().changes().borrow();
            manager.activity().into_iter().chain([work, changes])
        })
        .chain(others)
        .chain([self.fleet_activity()])
        .collect()
    }

    /// The clusters of its fleet.
    fn other_clusters(&self) -> Vec<Cluster> {
        self.fleet().map(|fleet| fleet.clusters()).unwrap_or_default()
    }

    fn fleet_activity(&self) -> u64 {
        self.fleet().map(|fleet| fleet.activity()).unwrap_or_default()
    }

    /// The companions of its own and of its fleet's clusters.
    fn companions(&self) -> Vec<watch::Receiver<Companion>> {
        let clusters = self.other_clusters();
        let all = std::iter::once(&self.inner.cluster).chain(&clusters);
        all.filter_map(|cluster| cluster.companion().cloned()).collect()
    }

    async fn idle(&self) -> Vec<(String, Problem)> {
        loop {
            if let Some(fleet) = self.fleet() {
                fleet.settled().await;
            }
            let before = self.fleet_activity();
            let mut companions = self.companions();
            let running = companion::running(&mut companions).await;
            let settled = tokio::select! {
                settled = self.settle(&running) => settled,
                () = companion::changed(&mut companions) => None,
            };
            if let Some(problems) = settled
                && !companion::has_changed(&companions)
                && self.fleet_activity() == before
            {
                return problems;
            }
        }
    }

    /// Waits until this manager and its companions seem idle, then verifies it: `None` if there was more to do.
    async fn settle(&self, companions: &[Manager]) -> Option<Vec<(String, Problem)>> {
        let all: Vec<&Manager> = std::iter::once(self).chain(companions).collect();
        for manager in &all {
            manager.elected().await;
            for controller in manager.all_controllers() {
                controller.started().await;
                controller.idle().await;
            }
        }
        let before: Vec<u64> = all.iter().flat_map(|manager| manager.activity()).collect();
        // When this returns, everything that is on the servers now was delivered to the handlers. If that has moved no
        // queue, nothing is left: without a reconcile there is no write.
        let (problems, _) =
            join(self.catch_up(), join_all(companions.iter().map(|companion| companion.catch_up()))).await;
        let quiet = all.iter().all(|manager| manager.is_quiet());
        let moved = all.iter().flat_map(|manager| manager.activity()).ne(before);
        // A companion that stops leaves its remaining work to its successor, which is waited for.
        if companions.iter().any(|companion| companion.inner.stopping.load(Ordering::Acquire)) {
            pending::<()>().await;
        }
        (quiet && !moved).then_some(problems)
    }

    /// Waits until handlers and queues have received everything that has happened up to now. Returns the kinds that
    /// cannot be watched.
    async fn catch_up(&self) -> Vec<(String, Problem)> {
        let controllers = self.all_controllers();
        let sources = join_all(controllers.iter().map(|controller| controller.catch_up()));
        let clusters = self.other_clusters();
        let others = join_all(clusters.iter().map(|cluster| async move {
            let problems = cluster.stopped().run_until_cancelled(cluster.cache().catch_up()).await;
            let named = |(kind, problem)| (format!("{}: {kind}", cluster.name()), problem);
            problems.into_iter().flatten().map(named)
        }));
        let (mut problems, _, others) = join3(self.inner.cluster.cache().catch_up(), sources, others).await;
        problems.extend(others.into_iter().flatten());
        problems
    }

    fn is_quiet(&self) -> bool {
        let controllers = self.all_controllers();
        controllers
            .iter()
            .all(|controller| controller.state().is_idle() && controller.events_in_flight() == 0)
    }

    /// Counters that change with everything that a controller does.
    fn activity(&self) -> Vec<u64> {
        self.all_controllers().iter().map(|controller| controller.activity()).collect()
    }

    fn report(&self, problems: Vec<(String, Problem)>) -> IdleReport {
        let controllers = self.all_controllers();
        let delayed = controllers.iter().map(|controller| controller.state().delayed).sum();
        let failed = controllers.iter().flat_map(|controller| controller.failed()).collect();
        let overtaken = controllers
            .iter()
            .flat_map(|one| one.overtaken().into_iter().map(|key| format!("{} {key}", one.name())))
            .collect();
        let mut control_plane = BTreeMap::<String, ControllerStats>::new();
        for (name, stats) in companion::running_now(&self.companions()).iter().flat_map(Manager::stats) {
            *control_plane.entry(name).or_default() += stats;
        }
        let others: u64 = self.other_clusters().iter().map(|cluster| cluster.cache().writes()).sum();
        let writes = self.inner.cluster.cache().writes() + others;
        IdleReport { controllers: self.stats(), writes, delayed, problems, failed, control_plane, overtaken }
    }

    /// Descriptions of the work that is left.
    fn busy(&self) -> Vec<String> {
        let mut busy = self.busy_here("controller");
        for companion in self.companions() {
            match &*companion.borrow() {
                Companion::Absent => {}
                Companion::Starting { problem } => busy.push(format!(
                    "the control plane's controllers do not run yet{}",
                    problem.as_ref().map(|problem| format!(": {problem}")).unwrap_or_default()
                )),
                Companion::Running(manager) => busy.extend(manager.busy_here("the control plane's")),
            }
        }
        if let Some(fleet) = self.fleet() {
            busy.extend(fleet.busy());
        }
        for cluster in self.other_clusters() {
            for unsynced in cluster.cache().unsynced() {
                busy.push(format!("the cache of {} waits for {}", cluster.name(), super::describe(unsynced)));
            }
        }
        for (name, problem) in self.inner.cluster.cache().unsynced() {
            if !busy.iter().any(|one| one.contains(&name)) {
                busy.push(format!("the cache waits for {}", super::describe((name, problem))));
            }
        }
        if busy.is_empty() {
            busy.push("caches have not caught up with the server".to_owned());
        }
        busy
    }

    /// The work that is left for the controllers of this manager; `who` is how the descriptions name them.
    fn busy_here(&self, who: &str) -> Vec<String> {
        let mut busy = Vec::new();
        let mut sources = BTreeMap::new();
        if !self.inner.is_leader.is_cancelled() {
            busy.push(if self.is_started() {
                "another replica is the leader".to_owned()
            } else {
                "the manager was not started".to_owned()
            });
        }
        for controller in self.all_controllers() {
            let name = controller.name();
            for waiting in controller.waiting_for() {
                busy.push(format!("{who} {name} waits for {}", super::describe(waiting)));
            }
            let (state, keys) = (controller.state(), controller.waiting_keys(MAX_NAMED));
            if state.ready > 0 {
                busy.push(format!(
                    "{who} {name}: {} queued ({})",
                    state.ready,
                    named(state.ready, keys.ready)
                ));
            }
            if state.retrying > 0 {
                let keys = named(state.retrying, self.due(keys.retrying));
                busy.push(format!("{who} {name}: {} to be retried after errors ({keys})", state.retrying));
            }
            sources.extend(controller.problems());
        }
        busy.extend(self.inner.cluster.work().running().iter().map(|work| format!("in flight: {work}")));
        busy.extend(sources.into_iter().map(|(name, problem)| format!("{name}: {problem}")));
        busy
    }

    /// Descriptions of requeued requests, which are not waited for.
    fn later(&self) -> Vec<String> {
        let mut later = Vec::new();
        for controller in self.all_controllers() {
            let (delayed, keys) = (controller.state().delayed, controller.waiting_keys(MAX_NAMED));
            if delayed > 0 {
                let keys = named(delayed, self.due(keys.delayed));
                later
                    .push(format!("controller {}: {delayed} requeued for later ({keys})", controller.name()));
            }
        }
        later
    }

    /// Keys with the time until they are due.
    fn due(&self, keys: Vec<(String, Instant)>) -> Vec<String> {
        let now = self.inner.cluster.env().now();
        keys.into_iter().map(|(key, due)| format!("{key} in {:?}", due - now)).collect()
    }
}

/// Maximum number of keys named in a description.
const MAX_NAMED: usize = 5;

/// Lists the given keys out of `count`.
fn named(count: usize, mut keys: Vec<String>) -> String {
    if count > keys.len() {
        keys.push(format!("{} more", count - keys.len()));
    }
    keys.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_uses_singular_and_plural() {
        let stats = |reconciles, errors| ControllerStats { reconciles, errors, ..ControllerStats::default() };
        let mut report = IdleReport { writes: 1, ..IdleReport::default() };
        report.controllers.insert("team".to_owned(), stats(1, 0));
        assert_eq!(report.to_string(), "1 reconcile, 0 errors, 1 write");
        report.controllers.insert("user".to_owned(), stats(2, 1));
        report.control_plane.insert("garbage-collector".to_owned(), stats(2, 1));
        report.control_plane.insert("expiry".to_owned(), stats(0, 0));
        report.control_plane.insert("namespace".to_owned(), stats(1, 0));
        report.delayed = 3;
        assert_eq!(
            report.to_string(),
            "3 reconciles, 1 error, 1 write, 3 requeued for later; \
             control plane: garbage-collector 2 reconciles (1 error), namespace 1 reconcile"
        );
        let mut report = IdleReport::default();
        report.controllers.insert("team".to_owned(), ControllerStats { terminal: 1, ..stats(3, 2) });
        assert_eq!(report.to_string(), "3 reconciles, 2 errors (1 not retried), 0 writes");
    }
}
