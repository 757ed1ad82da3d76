//! Whether a simulation's tasks have anything left to do.

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

/// How many tasks of a simulation could move on by themselves: woken, being polled, or a blocking closure
/// that has not returned.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    state: Mutex<State>,
    /// For those who do not want to wait for ever for a clock that stands still.
    pub(crate) real_time: Arc<RealTime>,
}

#[derive(Debug, Default)]
struct State {
    busy: usize,
    /// How often something has become busy: as long as it does not move, nothing has.
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

    /// The count of those that became busy, if nothing is busy now.
    pub(crate) fn quiet(&self) -> Option<u64> {
        let state = self.state.lock();
        (state.busy == 0).then_some(state.entered)
    }

    /// Waits for a moment at which nothing is busy. It may be awaited in a task that is itself counted
    /// here: that task is busy while it asks, and no more once it waits.
    async fn not_busy(&self) {
        let told = {
            let mut state = self.state.lock();
            if state.busy == 0 {
                return;
            }
            state.waiters.join()
        };
        let _ = told.await;
    }

    /// Waits for a moment at which nothing is busy, nor about to be: tasks of others on the same runtime
    /// have had their turn as well. Two tasks of this environment may well talk to each other through one that
    /// is not (every `kube::Client` has such a task), and are not done while that one is about to run.
    pub(crate) async fn settled(self: &Arc<Self>) {
        if Handle::try_current().is_err() {
            return self.not_busy().await;
        }
        // In a task of its own that is not counted: what waits here may be a task that is, and would look busy
        // whenever it gives others a turn.
        let (tell, told) = oneshot::channel();
        let activity = Arc::clone(self);
        #[expect(clippy::disallowed_methods, reason = "this is the door to the runtime's tasks")]
        let watcher = tokio::spawn(async move {
            activity.not_busy_after_others().await;
            let _ = tell.send(());
        });
        let _abort = AbortOnDrop(watcher.abort_handle());
        let _ = told.await;
    }

    async fn not_busy_after_others(&self) {
        loop {
            self.not_busy().await;
            let Some(before) = self.quiet() else { continue };
            let mut turns = 0;
            let until = Clock::System.now() + PATIENCE;
            // On one thread, a turn given away is a turn for each task that is ready. With more threads, those have
            // to come to rest; tasks of others that never do are not waited for without end.
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

/// So many tasks of others in a row may be between two tasks of the environment.
const TURNS: usize = 3;

/// For so long other threads may work on tasks that are none of the environment's.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether other threads of the runtime have something to do.
#[cfg(target_has_atomic = "64")]
fn other_threads_work() -> bool {
    let metrics = Handle::current().metrics();
    let workers = metrics.num_workers();
    // An odd count is a thread that is parked. One is not: it runs this.
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

/// Busy until it is dropped: a blocking closure, or work that was handed to a thread.
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

/// Follows one task: it is busy from the moment it is woken until the poll that answers ends without
/// another wake.
///
/// The task is polled with a waker that marks it busy before it passes the wake on to the runtime. So
/// whoever wakes it, be it a sender, a lock or the clock, has made it busy when its call returns, and was
/// busy itself while it did so: between a cause and its effect the count is never zero.
#[derive(Debug)]
pub(crate) struct TaskProbe {
    activity: Arc<Activity>,
    state: Mutex<ProbeState>,
}

#[derive(Debug)]
struct ProbeState {
    scheduled: bool,
    polling: bool,
    /// Busy until its end, even if a poll that is already under way comes first and waits.
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
    /// A task that is about to be spawned, which is to say: woken.
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
                self.activity.enter(); // the runtime polls as it likes
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
            // A task that is done goes on being busy until `end`: what it still has to do (hand over
            // its result) wakes others.
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

    /// The task is about to be aborted. To be called before it is: from then on the runtime may drop it any
    /// time.
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

    /// The task is over; wakes mean nothing from here on.
    fn end(&self) {
        let (was_busy, runtime) = {
            let mut state = self.state.lock();
            let was_busy = state.is_busy();
            state.scheduled = false;
            state.polling = false;
            state.aborted = false;
            state.ended = true;
            // Also breaks the circle of a task that owns this, which owns the task's waker.
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

/// The task's own hold on its probe: dropped with the task, it ends the probe.
#[derive(Debug)]
pub(crate) struct ProbeOwner(pub(crate) Arc<TaskProbe>);

impl Drop for ProbeOwner {
    fn drop(&mut self) {
        self.0.end();
    }
}
