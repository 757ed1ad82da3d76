//! Runnables that are started and stopped together.

use std::{future::Future, ops::ControlFlow, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use k1s_env::{Env, Stall, Task};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{ManagerError, Runnable};
use crate::panics::message;

/// Waits for at most `limit`; under a simulated clock, gives up after `stalled_after` of real time without progress.
pub(super) async fn at_most<F: Future>(
    env: &Env,
    limit: Duration,
    stalled_after: Duration,
    waiting: F,
) -> Option<F::Output> {
    let stalled = |stall| match stall {
        Stall::Still { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let waiting = env.watch_stalls(stalled_after, || (), stalled, waiting);
    env.timeout(limit, waiting).await.ok()?.ok()
}

/// A group of runnables. One that is added while the group runs is started at once.
pub(super) struct Group {
    name: &'static str,
    env: Env,
    stop: CancellationToken,
    failures: mpsc::UnboundedSender<ManagerError>,
    state: Mutex<State>,
}

enum State {
    Waiting(Vec<Arc<dyn Runnable>>),
    Running(Vec<(String, Task<()>)>),
    Stopped,
}

impl Group {
    pub(super) fn new(name: &'static str, env: &Env, failures: mpsc::UnboundedSender<ManagerError>) -> Group {
        Group {
            name,
            env: env.clone(),
            stop: CancellationToken::new(),
            failures,
            state: Mutex::new(State::Waiting(Vec::new())),
        }
    }

    pub(super) fn add(&self, runnable: Arc<dyn Runnable>) {
        match &mut *self.state.lock() {
            State::Waiting(waiting) => waiting.push(runnable),
            State::Running(running) => running.push(self.launch(runnable)),
            // It would never be stopped.
            State::Stopped => {}
        }
    }

    pub(super) fn start(&self) {
        let mut state = self.state.lock();
        if let State::Waiting(waiting) = &mut *state {
            let waiting = std::mem::take(waiting);
            *state = State::Running(waiting.into_iter().map(|runnable| self.launch(runnable)).collect());
        }
    }

    fn launch(&self, runnable: Arc<dyn Runnable>) -> (String, Task<()>) {
        let (name, stop, failures) = (runnable.name(), self.stop.clone(), self.failures.clone());
        let known = name.clone();
        let task = self.env.spawn(format!("{}: {name}", self.name), async move {
            // A panic counts as a failure: otherwise the manager would continue without the runnable and look healthy.
            let ended = AssertUnwindSafe(runnable.run(stop)).catch_unwind().await;
            let ended =
                ended.unwrap_or_else(|panic| Err(format!("panic: {} [recovered]", message(&*panic)).into()));
            if let Err(error) = ended {
                let _ = failures.send(ManagerError::Runnable { name, error });
            }
        });
        (known, task)
    }

    /// Stops the runnables, waits up to `limit` for them to end (`None`: for ever), and aborts the rest. Returns the names
    /// of the aborted ones.
    pub(super) async fn stop(&self, limit: Option<Duration>, stalled_after: Duration) -> Vec<String> {
        self.stop.cancel();
        let state = std::mem::replace(&mut *self.state.lock(), State::Stopped);
        let State::Running(running) = state else { return Vec::new() };
        let deadline = limit.map(|limit| self.env.now() + limit);
        let mut stuck = Vec::new();
        for (name, mut task) in running {
            let ended = match deadline {
                None => {
                    let _ = (&mut task).await;
                    true
                }
                Some(at) => {
                    let left = at - self.env.now();
                    at_most(&self.env, left, stalled_after, &mut task).await.is_some() || task.is_finished()
                }
            };
            if !ended {
                task.abort();
                stuck.push(name);
            }
        }
        stuck
    }
}
