//! Work in flight: counted, refused when it has to be, waited for.
//!
//! A [`WorkTracker`] belongs to a program, or to a part of it that is started and stopped as one. Each kind
//! of work in it is a [`Component`]; each unit of work is a [`WorkGuard`], from [`Component::begin`] to its
//! drop. That is enough to know whether all is idle, what is not, and how it went so far, and to stop in
//! good order: refuse new work, then wait for what is left.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use k1s_env::{Env, WorkTracker};
//! use std::time::Duration;
//!
//! let (env, clock) = Env::simulated(7);
//! let tracker = WorkTracker::new(env);
//! let widgets = tracker.component("reconcile/widgets");
//!
//! let work = widgets.begin("default/a")?;
//! tracker.stop_accepting();
//! assert!(widgets.begin("default/b").is_err());
//!
//! let waiting = tokio::join!(tracker.wait_idle(Duration::from_secs(30)), async {
//!     clock.advance(Duration::from_secs(30)); // the half minute passes
//! });
//! assert_eq!(
//!     waiting.0.unwrap_err().to_string(),
//!     "1 unit of work still running after 30s: reconcile/widgets default/a (30.0s)",
//! );
//!
//! work.succeed();
//! tracker.wait_idle(Duration::from_secs(30)).await?;
//! assert_eq!(widgets.stats().succeeded, 1);
//! # Ok(())
//! # }
//! ```

mod ledger;
mod report;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::Env;
use ledger::{ComponentId, End, Ledger, UnitId};
pub use report::{ComponentStats, Description, Refused, RunningWork, StillRunning};

/// Counts the work of a program, component by component.
///
/// Cloning is cheap, and clones are one tracker. Time is that of the [`Env`] it was made with.
///
/// Everything it says is true of one moment for all components together: beginning a unit, ending one,
/// refusing and reading are each one step.
#[derive(Clone)]
pub struct WorkTracker {
    shared: Arc<Shared>,
}

struct Shared {
    env: Env,
    // One lock for all of it. What it makes simple:
    // - "May it begin?" and "it has begun" are one step. When `stop_accepting` returns, every `begin` is
    //   either before it, and then counted, or after it, and then refused; none is in between, so the
    //   number in flight can only fall.
    // - Ending the last unit and finding those who wait for it are one step: a wait that found work in
    //   flight is in the list before that work can end, and is woken by its end.
    // - A report shows all components at one moment.
    // What it costs: a few stores under the lock. Descriptions are made and freed, the clock is read and
    // waiters are woken outside of it.
    ledger: Mutex<Ledger>,
}

impl WorkTracker {
    /// A tracker without components, accepting work.
    pub fn new(env: Env) -> WorkTracker {
        WorkTracker { shared: Arc::new(Shared { env, ledger: Mutex::new(Ledger::new()) }) }
    }

    /// The component of that name; the same name gives the same counters. A component stays as long as
    /// the tracker does: name kinds of work, and let units say what they are about.
    pub fn component(&self, name: &str) -> Component {
        let (id, name) = self.shared.ledger.lock().component(name);
        Component { shared: Arc::clone(&self.shared), id, name }
    }

    /// Refuses all new work, in components to come as well. When this returns, no unit can begin: what is
    /// in flight can only become less.
    pub fn stop_accepting(&self) {
        self.shared.ledger.lock().set_accepting(None, false);
    }

    /// Takes [`stop_accepting`](Self::stop_accepting) back. A component that was stopped by itself stays
    /// stopped.
    pub fn resume_accepting(&self) {
        self.shared.ledger.lock().set_accepting(None, true);
    }

    /// How many units are in flight, in all components.
    pub fn in_flight(&self) -> usize {
        self.shared.ledger.lock().in_flight(None)
    }

    /// The numbers of every component, sorted by name.
    pub fn stats(&self) -> Vec<ComponentStats> {
        let now = self.shared.env.now();
        self.shared.ledger.lock().all_stats(now)
    }

    /// What is in flight, the oldest first.
    pub fn running(&self) -> Vec<RunningWork> {
        self.shared.running(None)
    }

    /// Waits until nothing is in flight, for at most `deadline`. It ends with the last unit, or at once if
    /// there is none. Unless work is refused, more may begin right after.
    ///
    /// # Errors
    /// When the time is up: what is in flight then.
    pub async fn wait_idle(&self, deadline: Duration) -> Result<(), StillRunning> {
        self.shared.wait_idle(None, deadline).await
    }

    /// Waits until nothing is in flight, however long it takes.
    pub async fn wait_idle_forever(&self) {
        self.shared.wait_idle_forever(None).await;
    }
}

impl fmt::Debug for WorkTracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkTracker").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}

impl Shared {
    fn running(&self, only: Option<ComponentId>) -> Vec<RunningWork> {
        let now = self.env.now();
        let running = self.ledger.lock().running(only, now);
        running.into_iter().map(ledger::Running::shown).collect()
    }

    async fn wait_idle(&self, only: Option<ComponentId>, deadline: Duration) -> Result<(), StillRunning> {
        if self.env.timeout(deadline, self.wait_idle_forever(only)).await.is_ok() {
            return Ok(());
        }
        let work = self.running(only);
        // The last unit may have ended while the timer went off.
        if work.is_empty() { Ok(()) } else { Err(StillRunning { after: deadline, work }) }
    }

    async fn wait_idle_forever(&self, only: Option<ComponentId>) {
        let idle = self.ledger.lock().wait_idle(only);
        if let Some(idle) = idle {
            // The sender is in the ledger, which lives as long as `self`, until it is used.
            let _ = idle.await;
        }
    }
}

/// One kind of work in a [`WorkTracker`].
///
/// Cloning is cheap, and clones are one component.
#[derive(Clone)]
pub struct Component {
    shared: Arc<Shared>,
    id: ComponentId,
    name: Arc<str>,
}

impl Component {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Begins a unit of work; the description is what reports call it.
    ///
    /// # Errors
    /// If the component or the whole tracker accepts no more work. It is counted as refused.
    pub fn begin(&self, description: impl Into<Description>) -> Result<WorkGuard, Refused> {
        let description = description.into();
        let now = self.shared.env.now();
        let begun = self.shared.ledger.lock().begin(self.id, description, now);
        match begun {
            Ok(unit) => Ok(WorkGuard { shared: Arc::clone(&self.shared), unit, said: None }),
            // The description comes back to be freed here, outside of the lock.
            Err(_description) => Err(Refused { component: Arc::clone(&self.name) }),
        }
    }

    /// Refuses new work of this component. When this returns, no unit of it can begin: what it has in
    /// flight can only become less.
    pub fn stop_accepting(&self) {
        self.shared.ledger.lock().set_accepting(Some(self.id), false);
    }

    /// Takes [`stop_accepting`](Self::stop_accepting) back. If the whole tracker was stopped, work is still
    /// refused.
    pub fn resume_accepting(&self) {
        self.shared.ledger.lock().set_accepting(Some(self.id), true);
    }

    /// Its numbers.
    pub fn stats(&self) -> ComponentStats {
        let now = self.shared.env.now();
        self.shared.ledger.lock().stats(self.id, now)
    }

    /// What it has in flight, the oldest first.
    pub fn running(&self) -> Vec<RunningWork> {
        self.shared.running(Some(self.id))
    }

    /// Waits until this component has nothing in flight, as [`WorkTracker::wait_idle`] does for all.
    ///
    /// # Errors
    /// When the time is up: what it has in flight then.
    pub async fn wait_idle(&self, deadline: Duration) -> Result<(), StillRunning> {
        self.shared.wait_idle(Some(self.id), deadline).await
    }

    /// Waits until this component has nothing in flight, however long it takes.
    pub async fn wait_idle_forever(&self) {
        self.shared.wait_idle_forever(Some(self.id)).await;
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Component").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A unit of work in flight, until it is dropped.
///
/// Success has to be said, with [`succeed`](Self::succeed). A guard that is dropped without a word has
/// failed: an early return, a cancelled future and a panic are all failures, and the panic is counted as
/// such besides.
#[must_use = "the work is over, and has failed, when this is dropped"]
pub struct WorkGuard {
    shared: Arc<Shared>,
    unit: UnitId,
    said: Option<End>,
}

impl WorkGuard {
    /// Ends the work: it succeeded.
    pub fn succeed(mut self) {
        self.said = Some(End::Succeeded);
    }

    /// Ends the work: it failed.
    pub fn fail(mut self) {
        self.said = Some(End::Failed);
    }
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        let end = self.said.unwrap_or(if std::thread::panicking() { End::Panicked } else { End::Failed });
        let ended = self.shared.ledger.lock().end(self.unit, end);
        // The lock is released; now the waiters are woken and the description is freed.
        ended.released.wake();
    }
}

impl fmt::Debug for WorkGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkGuard").finish_non_exhaustive()
    }
}
