//! Triggered execution: run until there is nothing left to do, and say what was done.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::{Manager, ManagerError};
use crate::{cache::Problem, controller::ControllerStats};

/// How long is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleOptions {
    /// After what time it is given up: 5 minutes by default.
    pub deadline: Duration,
}

impl Default for IdleOptions {
    fn default() -> IdleOptions {
        IdleOptions { deadline: Duration::from_secs(300) }
    }
}

impl IdleOptions {
    /// Gives up after so long.
    #[must_use]
    pub fn within(deadline: Duration) -> IdleOptions {
        IdleOptions { deadline }
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
        write!(f, "{} reconciles, {} errors, {} writes", self.reconciles(), self.errors(), self.writes)?;
        if self.delayed > 0 {
            write!(f, ", {} to be looked at again later", self.delayed)?;
        }
        for (kind, problem) in &self.problems {
            write!(f, "; {kind}: {problem}")?;
        }
        Ok(())
    }
}

/// It did not become idle in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not idle after {after:?}: {}", .busy.join("; "))]
#[non_exhaustive]
pub struct NotIdle {
    /// How long it was waited for.
    pub after: Duration,
    /// What kept it busy.
    pub busy: Vec<String>,
    /// What was done until then.
    pub report: IdleReport,
}

impl Manager {
    /// Starts, reconciles until nothing is queued, in flight or unseen, stops in good order, and says what was done.
    ///
    /// Failed reconciles are tried again, and waited for. What a reconcile wants to look at again after a time is not: the
    /// report says how many such requests there are. Every cache has seen what was on the server at the end.
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
        self.shut_down(running, ended).await?;
        Ok(report.unwrap_or_default())
    }

    /// Waits until nothing is queued, in flight or unseen, of a manager that runs and goes on running.
    ///
    /// # Errors
    /// If there was something left to do at the deadline.
    pub async fn wait_until_idle(&self, options: IdleOptions) -> Result<IdleReport, NotIdle> {
        match self.inner.env.timeout(options.deadline, self.idle()).await {
            Ok(problems) => Ok(self.report(problems)),
            Err(_) => Err(NotIdle {
                after: options.deadline,
                busy: self.busy(),
                report: self.report(self.inner.cache.problems()),
            }),
        }
    }

    async fn idle(&self) -> Vec<(String, Problem)> {
        self.elected().await;
        loop {
            for controller in self.all_controllers() {
                controller.started().await;
                controller.idle().await;
            }
            let before = self.activity();
            // Everything that is on the server now has been told to the handlers when this returns. If that has moved no
            // queue, nothing is left.
            let problems = self.inner.cache.catch_up().await;
            let quiet = self
                .all_controllers()
                .iter()
                .all(|controller| controller.state().is_idle() && controller.events_in_flight() == 0);
            if quiet && self.activity() == before {
                return problems;
            }
        }
    }

    /// Moves with everything that a controller does.
    fn activity(&self) -> Vec<u64> {
        self.all_controllers().iter().map(|controller| controller.activity()).collect()
    }

    fn report(&self, problems: Vec<(String, Problem)>) -> IdleReport {
        let delayed = self.all_controllers().iter().map(|controller| controller.state().delayed).sum();
        IdleReport { controllers: self.stats(), writes: self.inner.cache.writes(), delayed, problems }
    }

    /// What there is left to do.
    fn busy(&self) -> Vec<String> {
        let mut busy = Vec::new();
        for controller in self.all_controllers() {
            let name = controller.name();
            for waiting in controller.waiting_for() {
                busy.push(format!("controller {name} waits for {}", super::describe(waiting)));
            }
            let state = controller.state();
            for (count, what) in [(state.ready, "queued"), (state.retrying, "to be tried again after errors")]
            {
                if count > 0 {
                    busy.push(format!("controller {name}: {count} {what}"));
                }
            }
        }
        busy.extend(self.inner.work.running().iter().map(|work| format!("in flight: {work}")));
        if busy.is_empty() {
            busy.push("caches have not seen all that is on the server".to_owned());
        }
        busy
    }
}
