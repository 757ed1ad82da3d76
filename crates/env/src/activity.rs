//! Tracks whether the tasks of a simulation have anything left to do.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::clock::Clock;
use crate::real_time::RealTime;
use crate::waiters::{Released, Waiters};

/// Counts the tasks of a simulation that can make progress: woken, being polled, or a blocking closure that
/// has not returned.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    state: Mutex<State>,
    /// Bounds waits that a stopped virtual clock would never end.
    pub(crate) real_time: Arc<RealTime>,
}

#[derive(Debug, Default)]
struct State {
    busy: usize,
    /// Number of transitions to busy. Unchanged means that nothing became busy in between.
    entered: u64,
    waiters: Waiters,
}

impl Activity {
    fn enter(&self) {
        let mut state = self.state.lock();
        state.busy += 1;
        state.entered += 1;
    }

    fn leave(&self) {
        let mut state = self.state.lock();
        state.busy -= 1;
        let released = if state.busy == 0 { state.waiters.take() } else { Released::default() };
        drop(state);
        released.wake();
    }

    /// The number of transitions to busy, or `None` while something is busy.
    pub(crate) fn quiet(&self) -> Option<u64> {
        let state = self.state.lock();
        (state.busy == 0).then_some(state.entered)
    }

    /// Waits until nothing is busy. A counted task may await this: it is busy while polled and idle while it waits.
    async fn not_busy(&self) {
        let idle = {
            let mut state = self.state.lock();
            if state.busy == 0 {
                return;
            }
            state.waiters.join()
        };
        let _ = idle.await;
    }

    /// Waits until nothing is busy and foreign tasks on the same runtime have had a turn as well. Two tasks
    /// of this environment may communicate through a foreign one (every `kube::Client` has such a task), and
    /// are not settled while that one is about to run.
    pub(crate) async fn settled(self: &Arc<Self>) {
        if Handle::try_current().is_err() {
            return self.not_busy().await;
        }
        // Runs in an uncounted task: the caller may be a counted one, which would look busy whenever it yields.
        let (notify, settled) = oneshot::channel();
        let activity = Arc::clone(self);
        #[expect(clippy::disallowed_methods, reason = "only this crate spawns tokio tasks")]
        let watcher = tokio::spawn(async move {
            activity.not_busy_after_foreign_tasks().await;
            let _ = notify.send(());
        });
        let _abort = AbortOnDrop(watcher.abort_handle());
        let _ = settled.await;
    }

    async fn not_busy_after_foreign_tasks(&self) {
        loop {
            self.not_busy().await;
            let Some(before) = self.quiet() else { continue };
            let mut turns = 0;
            let until = Clock::System.now() + PATIENCE;
            // On one thread, a yield gives every ready task a turn. With several threads, the others have to
            // become idle; foreign tasks that never do are waited for up to `PATIENCE`.
            while turns < TURNS || (other_threads_work() && Clock::System.now() < until) {
                turns += 1;
                if turns > TURNS {
                    std::thread::yield_now(); // there may be more threads than processors
                }
                #[expect(clippy::disallowed_methods, reason = "the task is not one of the environment's")]
                tokio::task::yield_now().await;
                if self.quiet() != Some(before) {
                    break;
                }
            }
            if self.quiet() == Some(before) {
                return;
            }
        }
    }
}

/// Maximum length of a chain of foreign tasks between two tasks of the environment.
const TURNS: usize = 3;

/// Maximum wait for other threads that work on foreign tasks.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether other threads of the runtime have work.
#[cfg(target_has_atomic = "64")]
fn other_threads_work() -> bool {
    let metrics = Handle::current().metrics();
    let workers = metrics.num_workers();
    // An odd count is a parked thread. At least one is not: it runs this code.
    let active =
        (0..workers).filter(|worker| metrics.worker_park_unpark_count(*worker).is_multiple_of(2)).count();
    workers > 1 && (active > 1 || metrics.global_queue_depth() > 0)
}

#[cfg(not(target_has_atomic = "64"))]
fn other_threads_work() -> bool {
    false
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Keeps the simulation busy until dropped: a blocking closure, or work handed to a thread.
#[derive(Debug)]
pub(crate) struct Busy {
    activity: Arc<Activity>,
}

impl Busy {
    pub(crate) fn new(activity: &Arc<Activity>) -> Busy {
        activity.enter();
        Busy { activity: Arc::clone(activity) }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.activity.leave();
    }
}

/// Tracks one task: it is busy from a wake until the poll that follows ends without another wake.
///
/// The task is polled with a waker that marks it busy before it passes the wake on to the runtime. The source
/// of the wake (a sender, a lock, the clock) is busy during the call, and the task is busy when it returns:
/// between a cause and its effect the count is never zero.
#[derive(Debug)]
pub(crate) struct TaskProbe {
    activity: Arc<Activity>,
    state: Mutex<ProbeState>,
}

#[derive(Debug)]
struct ProbeState {
    scheduled: bool,
    polling: bool,
    /// Busy until it ends, even if a poll in progress returns pending first.
    aborted: bool,
    ended: bool,
    /// The runtime's waker.
    runtime: Option<Waker>,
}

impl ProbeState {
    fn is_busy(&self) -> bool {
        self.scheduled || self.polling || self.aborted
    }
}

impl TaskProbe {
    /// For a task that is about to be spawned, which counts as woken.
    pub(crate) fn spawned(activity: &Arc<Activity>) -> Arc<TaskProbe> {
        activity.enter();
        let state =
            ProbeState { scheduled: true, polling: false, aborted: false, ended: false, runtime: None };
        Arc::new(TaskProbe { activity: Arc::clone(activity), state: Mutex::new(state) })
    }

    /// Polls the task's future. `poll` must not panic.
    pub(crate) fn poll<T>(
        self: &Arc<Self>,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let replaced = {
            let mut state = self.state.lock();
            if !state.is_busy() {
                self.activity.enter(); // the runtime may poll without a wake
            }
            state.scheduled = false;
            state.polling = true;
            match &state.runtime {
                Some(known) if known.will_wake(cx.waker()) => None,
                _ => state.runtime.replace(cx.waker().clone()),
            }
        };
        drop(replaced);

        let waker = Waker::from(Arc::clone(self));
        let polled = poll(&mut Context::from_waker(&waker));

        let idle = {
            let mut state = self.state.lock();
            state.polling = false;
            // A finished task stays busy until `end`: handing over its result wakes other tasks.
            state.scheduled |= polled.is_ready();
            !state.is_busy()
        };
        if idle {
            self.activity.leave();
        }
        polled
    }

    fn mark_scheduled(&self) {
        self.mark(|state| state.scheduled = true);
    }

    /// Marks the task as aborted. Called before the abort, after which the runtime may drop the task at any time.
    pub(crate) fn mark_aborted(&self) {
        self.mark(|state| state.aborted = true);
    }

    fn mark(&self, set: impl FnOnce(&mut ProbeState)) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        if !state.is_busy() {
            self.activity.enter();
        }
        set(&mut state);
    }

    /// Marks the task as ended; later wakes are ignored.
    fn end(&self) {
        let (was_busy, runtime) = {
            let mut state = self.state.lock();
            let was_busy = state.is_busy();
            state.scheduled = false;
            state.polling = false;
            state.aborted = false;
            state.ended = true;
            // Also breaks the reference cycle between the task, this probe and the task's waker.
            (was_busy, state.runtime.take())
        };
        drop(runtime);
        if was_busy {
            self.activity.leave();
        }
    }
}

impl Wake for TaskProbe {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.mark_scheduled();
        let runtime = self.state.lock().runtime.clone();
        if let Some(runtime) = runtime {
            runtime.wake();
        }
    }
}

/// The task's owning reference to its probe: dropping it with the task ends the probe.
#[derive(Debug)]
pub(crate) struct ProbeOwner(pub(crate) Arc<TaskProbe>);

impl Drop for ProbeOwner {
    fn drop(&mut self) {
        self.0.end();
    }
}
