//! Triggered execution: run until there is nothing left to do, and say what was done.

use std::{
    collections::BTreeMap, fmt, future::pending, ops::ControlFlow, sync::atomic::Ordering, time::Duration,
};

use futures_util::future::{join, join_all};
use k1s_env::{Instant, Stall};

use super::{Companion, Manager, ManagerError, companion};
use crate::{
    announce::announced,
    cache::Problem,
    controller::{ControllerStats, NOT_TOKIOS_CLOCK},
};

/// How long is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleOptions {
    /// After what time it is given up: 5 minutes by default.
    pub deadline: Duration,
    /// Under a simulated clock: after what time it is given up in real time, whatever the clock shows. 5 minutes by default.
    pub real_deadline: Duration,
    /// Under a simulated clock: after what time in real time it is given up if nothing moves, not even the clock. What is
    /// left to do then waits for the clock (a retry, a sleep), or for something that the simulation does not know.
    /// 10 seconds by default.
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
    /// Gives up after so long.
    #[must_use]
    pub fn within(deadline: Duration) -> IdleOptions {
        IdleOptions { deadline, ..IdleOptions::default() }
    }
}

/// What was done until there was nothing left to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdleReport {
    /// By controller.
    pub controllers: BTreeMap<String, ControllerStats>,
    /// Writes that the server has accepted.
    pub writes: u64,
    /// Requests that some controller wants to look at again later; they were not waited for.
    pub delayed: usize,
    /// Kinds that could not be watched: what they would have caused is not done.
    pub problems: Vec<(String, Problem)>,
    /// What the control plane's own controllers have done since they started: garbage collection, deletion of namespaces.
    /// Nothing if there was nothing for them to do, or if they are not in this process and not waited for.
    pub control_plane: BTreeMap<String, ControllerStats>,
    /// Under a simulated clock, some of the requests whose reconciles waited for something that the simulation does not
    /// know, `tokio::time::sleep` for example, while the clock moved on: `controller key`. They ran less often than
    /// they would have in that time.
    pub overtaken: Vec<String>,
}

impl IdleReport {
    /// Reconciles of all controllers.
    #[must_use]
    pub fn reconciles(&self) -> u64 {
        self.controllers.values().map(|stats| stats.reconciles).sum()
    }

    /// Those of them that failed; they were tried again, unless the error was terminal.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.controllers.values().map(|stats| stats.errors).sum()
    }
}

impl fmt::Display for IdleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reconciles, errors) = (Count(self.reconciles(), "reconcile"), Count(self.errors(), "error"));
        write!(f, "{reconciles}, {errors}, {}", Count(self.writes, "write"))?;
        if self.delayed > 0 {
            write!(f, ", {} to be looked at again later", self.delayed)?;
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

/// So many of something, as people write it.
struct Count(u64, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count(count, what) = self;
        write!(f, "{count} {what}{}", if *count == 1 { "" } else { "s" })
    }
}

/// It did not become idle in time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotIdle {
    /// How long it was waited for.
    pub after: Duration,
    /// Whether it was given up because nothing moved any more under a simulated clock; `after` is in real time then.
    pub stalled: bool,
    /// What kept it busy.
    pub busy: Vec<String>,
    /// What was to be done later, and was not waited for.
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
                ". Move the clock (VirtualClock::advance_and_settle) for what waits for it. {NOT_TOKIOS_CLOCK}"
            )?;
        }
        if !report.overtaken.is_empty() {
            write!(f, ". The clock has overtaken {}", report.overtaken.join(", "))?;
        }
        Ok(())
    }
}

impl Manager {
    /// Starts, reconciles until nothing is queued, in flight or unseen, stops in good order, and says what was done.
    ///
    /// Failed reconciles are tried again, and waited for. What a reconcile wants to look at again after a time is not: the
    /// report says how many such requests there are. Every cache has seen what was on the server at the end.
    ///
    /// On a control plane in this process, its own controllers count as well: garbage is collected, and namespaces that
    /// were deleted are gone, unless a finalizer keeps them.
    ///
    /// # Errors
    /// Like [`start`](Self::start); and [`NotIdle`], if there was something left to do at the deadline.
    pub async fn run_until_idle(&self, options: IdleOptions) -> Result<IdleReport, ManagerError> {
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

    /// Waits until nothing is queued, in flight or unseen, of a manager that runs and goes on running.
    ///
    /// Under a simulated clock it does not wait for a clock that nobody moves: if nothing goes on any more in real time, it
    /// gives up and says what is left ([`IdleOptions::stalled_after`]).
    ///
    /// # Errors
    /// If there was something left to do at the deadline.
    pub async fn wait_until_idle(&self, options: IdleOptions) -> Result<IdleReport, NotIdle> {
        let IdleOptions { deadline, real_deadline, stalled_after } = options;
        let env = &self.inner.env;
        let stalled = |stall| match stall {
            Stall::Still { .. } => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        // In a box: what waits is wrapped several times, and each time it would be copied.
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
            report: Box::new(self.report(self.inner.cache.problems())),
        })
    }

    /// Moves with everything that happens here and beside.
    pub(super) fn marks(&self) -> Vec<u64> {
        let beside = self.beside();
        let all = std::iter::once(self).chain(&beside);
        all.flat_map(|manager| {
            let work = manager.inner.work.stats();
            let work = work.iter().map(|one| one.started + one.succeeded + one.failed).sum();
            let changes = *manager.inner.cache.changes().borrow();
            manager.activity().into_iter().chain([work, changes])
        })
        .collect()
    }

    /// The controllers beside, if they run.
    fn beside(&self) -> Option<Manager> {
        match &*self.inner.companion.as_ref()?.borrow() {
            Companion::Running(manager) => Some(manager.clone()),
            _ => None,
        }
    }

    async fn idle(&self) -> Vec<(String, Problem)> {
        let mut companion = self.inner.companion.clone();
        loop {
            let beside = companion::running(&mut companion).await;
            let settled = tokio::select! {
                settled = self.settle(beside.as_ref()) => settled,
                () = companion::changed(&mut companion) => None,
            };
            if let Some(problems) = settled
                && !companion::has_changed(&companion)
            {
                return problems;
            }
        }
    }

    /// Waits until there is nothing to do here and beside, as far as is known, and then looks: `None` if there was more.
    async fn settle(&self, beside: Option<&Manager>) -> Option<Vec<(String, Problem)>> {
        let all: Vec<&Manager> = std::iter::once(self).chain(beside).collect();
        for manager in &all {
            manager.elected().await;
            for controller in manager.all_controllers() {
                controller.started().await;
                controller.idle().await;
            }
        }
        let before: Vec<u64> = all.iter().flat_map(|manager| manager.activity()).collect();
        // Everything that is on the server now has been told to the handlers when this returns. If that has moved no queue,
        // nothing is left: who reconciles nothing writes nothing.
        let (problems, ()) = join(self.catch_up(), async {
            if let Some(beside) = beside {
                beside.catch_up().await;
            }
        })
        .await;
        let quiet = all.iter().all(|manager| manager.is_quiet());
        let moved = all.iter().flat_map(|manager| manager.activity()).ne(before);
        // What one leaves undone that stops is for those who come after it: they are waited for.
        if beside.is_some_and(|beside| beside.inner.stopping.load(Ordering::Acquire)) {
            pending::<()>().await;
        }
        (quiet && !moved).then_some(problems)
    }

    /// Waits until handlers and queues have been told of everything that has happened up to now. Gives the kinds that
    /// cannot be followed.
    async fn catch_up(&self) -> Vec<(String, Problem)> {
        let controllers = self.all_controllers();
        let sources = join_all(controllers.iter().map(|controller| controller.catch_up()));
        join(self.inner.cache.catch_up(), sources).await.0
    }

    fn is_quiet(&self) -> bool {
        let controllers = self.all_controllers();
        controllers
            .iter()
            .all(|controller| controller.state().is_idle() && controller.events_in_flight() == 0)
    }

    /// Moves with everything that a controller does.
    fn activity(&self) -> Vec<u64> {
        self.all_controllers().iter().map(|controller| controller.activity()).collect()
    }

    fn report(&self, problems: Vec<(String, Problem)>) -> IdleReport {
        let controllers = self.all_controllers();
        let delayed = controllers.iter().map(|controller| controller.state().delayed).sum();
        let overtaken = controllers
            .iter()
            .flat_map(|one| one.overtaken().into_iter().map(|key| format!("{} {key}", one.name())))
            .collect();
        let control_plane = self.beside().map(|beside| beside.stats()).unwrap_or_default();
        let writes = self.inner.cache.writes();
        IdleReport { controllers: self.stats(), writes, delayed, problems, control_plane, overtaken }
    }

    /// What there is left to do.
    fn busy(&self) -> Vec<String> {
        let mut busy = self.busy_here("controller");
        let beside = self.inner.companion.as_ref().map(|companion| companion.borrow().clone());
        match beside {
            None | Some(Companion::Absent) => {}
            Some(Companion::Starting { problem }) => busy.push(format!(
                "the control plane's controllers do not run yet{}",
                problem.map(|problem| format!(": {problem}")).unwrap_or_default()
            )),
            Some(Companion::Running(manager)) => busy.extend(manager.busy_here("the control plane's")),
        }
        for (name, problem) in self.inner.cache.unsynced() {
            if !busy.iter().any(|one| one.contains(&name)) {
                busy.push(format!("the cache waits for {}", super::describe((name, problem))));
            }
        }
        if busy.is_empty() {
            busy.push("caches have not seen all that is on the server".to_owned());
        }
        busy
    }

    /// What there is left to do for these controllers, who are called like that.
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
            let (state, keys) = (controller.state(), controller.waiting_keys(NAMED));
            if state.ready > 0 {
                busy.push(format!(
                    "{who} {name}: {} queued ({})",
                    state.ready,
                    named(state.ready, keys.ready)
                ));
            }
            if state.retrying > 0 {
                let keys = named(state.retrying, self.due(keys.retrying));
                busy.push(format!(
                    "{who} {name}: {} to be tried again after errors ({keys})",
                    state.retrying
                ));
            }
            sources.extend(controller.problems());
        }
        busy.extend(self.inner.work.running().iter().map(|work| format!("in flight: {work}")));
        busy.extend(sources.into_iter().map(|(name, problem)| format!("{name}: {problem}")));
        busy
    }

    /// What is to be done later, and is not waited for.
    fn later(&self) -> Vec<String> {
        let mut later = Vec::new();
        for controller in self.all_controllers() {
            let (delayed, keys) = (controller.state().delayed, controller.waiting_keys(NAMED));
            if delayed > 0 {
                let keys = named(delayed, self.due(keys.delayed));
                later.push(format!(
                    "controller {}: {delayed} to be looked at again ({keys})",
                    controller.name()
                ));
            }
        }
        later
    }

    /// Keys with the time until they are due.
    fn due(&self, keys: Vec<(String, Instant)>) -> Vec<String> {
        let now = self.inner.env.now();
        keys.into_iter().map(|(key, due)| format!("{key} in {:?}", due - now)).collect()
    }
}

/// So many keys are named.
const NAMED: usize = 5;

/// The first of so many keys.
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
    fn a_report_counts_as_people_do() {
        let stats = |reconciles, errors| ControllerStats { reconciles, errors, panics: 0 };
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
            "3 reconciles, 1 error, 1 write, 3 to be looked at again later; \
             control plane: garbage-collector 2 reconciles (1 error), namespace 1 reconcile"
        );
    }
}
