//! Tracks work in flight: counts it, refuses new work when told to, and waits for the rest.
//!
//! A [`WorkTracker`] belongs to a program, or to a part of it that is started and stopped as a whole. Each
//! kind of work is a [`Component`]; each unit of work is a [`WorkGuard`], from [`Component::begin`] to its
//! drop. That is enough to report what is in flight and how past work ended, and to shut down gracefully:
//! refuse new work, then wait for the rest.
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

/// Counts the work of a program by component.
///
/// Cloning is cheap, and clones are the same tracker. It uses the clock of its [`Env`].
///
/// Beginning, ending, refusing and reading are each atomic across all components, so every report is a
/// consistent snapshot.
#[derive(Clone)]
pub struct WorkTracker {
    shared: Arc<Shared>,
}

struct Shared {
    env: Env,
    // One lock for everything, because it makes these simple:
    // - Checking whether a unit may begin and counting it are one step. When `stop_accepting` returns, every
    //   `begin` is either before it and counted, or after it and refused, so the number in flight can only fall.
    // - Ending the last unit and taking the waiters are one step: a wait that found work in flight is
    //   registered before that work can end, and is woken by its end.
    // - A report is a consistent snapshot of all components.
    // The cost is a few stores under the lock. Creating and freeing descriptions, reading the clock and
    // waking waiters happen outside of it.
    ledger: Mutex<Ledger>,
}

impl WorkTracker {
    /// Creates a tracker without components that accepts work.
    pub fn new(env: Env) -> WorkTracker {
        WorkTracker { shared: Arc::new(Shared { env, ledger: Mutex::new(Ledger::new()) }) }
    }

    /// Returns the component with that name; the same name gives the same counters. Components live as long
    /// as the tracker: name kinds of work here, and describe the unit in [`Component::begin`].
    pub fn component(&self, name: &str) -> Component {
        let (id, name) = self.shared.ledger.lock().component(name);
        Component { shared: Arc::clone(&self.shared), id, name }
    }

    /// Refuses all new work, also in components created later. When this returns, no unit can begin, so the
    /// number in flight can only fall.
    pub fn stop_accepting(&self) {
        self.shared.ledger.lock().set_accepting(None, false);
    }

    /// Reverts [`stop_accepting`](Self::stop_accepting). A component stopped individually stays stopped.
    pub fn resume_accepting(&self) {
        self.shared.ledger.lock().set_accepting(None, true);
    }

    /// Number of units in flight in all components.
    pub fn in_flight(&self) -> usize {
        self.shared.ledger.lock().in_flight(None)
    }

    /// The counters of every component, sorted by name.
    pub fn stats(&self) -> Vec<ComponentStats> {
        let now = self.shared.env.now();
        self.shared.ledger.lock().all_stats(now)
    }

    /// The units in flight, oldest first.
    pub fn running(&self) -> Vec<RunningWork> {
        self.shared.running(None)
    }

    /// Waits until nothing is in flight, for at most `deadline`. Completes with the end of the last unit,
    /// immediately if there is none. Unless work is refused, more may begin right after.
    ///
    /// # Errors
    /// The units in flight when the deadline passed.
    pub async fn wait_idle(&self, deadline: Duration) -> Result<(), StillRunning> {
        self.shared.wait_idle(None, deadline).await
    }

    /// Waits until nothing is in flight, without a deadline.
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
        // The last unit may have ended after the timeout.
        if work.is_empty() { Ok(()) } else { Err(StillRunning { after: deadline, work }) }
    }

    async fn wait_idle_forever(&self, only: Option<ComponentId>) {
        let idle = self.ledger.lock().wait_idle(only);
        if let Some(idle) = idle {
            // The sender stays in the ledger, which lives as long as `self`, until it is used.
            let _ = idle.await;
        }
    }
}

/// One kind of work in a [`WorkTracker`].
///
/// Cloning is cheap, and clones are the same component.
#[derive(Clone)]
pub struct Component {
    shared: Arc<Shared>,
    id: ComponentId,
    name: Arc<str>,
}

impl Component {
    /// The component's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Begins a unit of work; reports show the description.
    ///
    /// # Errors
    /// If the component or the whole tracker refuses work. The unit is counted as refused.
    pub fn begin(&self, description: impl Into<Description>) -> Result<WorkGuard, Refused> {
        let description = description.into();
        let now = self.shared.env.now();
        let begun = self.shared.ledger.lock().begin(self.id, description, now);
        match begun {
            Ok(unit) => Ok(WorkGuard { shared: Arc::clone(&self.shared), unit, outcome: None }),
            // The description is returned to be freed here, outside of the lock.
            Err(_description) => Err(Refused { component: Arc::clone(&self.name) }),
        }
    }

    /// Refuses new work of this component. When this returns, no unit of it can begin, so its number in
    /// flight can only fall.
    pub fn stop_accepting(&self) {
        self.shared.ledger.lock().set_accepting(Some(self.id), false);
    }

    /// Reverts [`stop_accepting`](Self::stop_accepting). If the whole tracker is stopped, work is still refused.
    pub fn resume_accepting(&self) {
        self.shared.ledger.lock().set_accepting(Some(self.id), true);
    }

    /// The component's counters.
    pub fn stats(&self) -> ComponentStats {
        let now = self.shared.env.now();
        self.shared.ledger.lock().stats(self.id, now)
    }

    /// The component's units in flight, oldest first.
    pub fn running(&self) -> Vec<RunningWork> {
        self.shared.running(Some(self.id))
    }

    /// Like [`WorkTracker::wait_idle`], for this component only.
    ///
    /// # Errors
    /// The component's units in flight when the deadline passed.
    pub async fn wait_idle(&self, deadline: Duration) -> Result<(), StillRunning> {
        self.shared.wait_idle(Some(self.id), deadline).await
    }

    /// Waits until this component has nothing in flight, without a deadline.
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
/// Success must be reported with [`succeed`](Self::succeed). A guard dropped without it has failed: an early
/// return, a cancelled future and a panic are all failures, and a panic is also counted as such.
#[must_use = "the work is over, and has failed, when this is dropped"]
pub struct WorkGuard {
    shared: Arc<Shared>,
    unit: UnitId,
    outcome: Option<End>,
}

impl WorkGuard {
    /// Ends the work as succeeded.
    pub fn succeed(mut self) {
        self.outcome = Some(End::Succeeded);
    }

    /// Ends the work as failed.
    pub fn fail(mut self) {
        self.outcome = Some(End::Failed);
    }
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        let end = self.outcome.unwrap_or(if std::thread::panicking() { End::Panicked } else { End::Failed });
        let ended = self.shared.ledger.lock().end(self.unit, end);
        // After releasing the lock, wakes the waiters and frees the description.
        ended.released.wake();
    }
}

impl fmt::Debug for WorkGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkGuard").finish_non_exhaustive()
    }
}
