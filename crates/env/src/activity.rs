//! Whether a simulation's tasks have anything left to do.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

use crate::waiters::{Released, Waiters};

/// How many tasks of a simulation could move on by themselves: woken, being polled, or a blocking closure
/// that has not returned.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    busy: usize,
    waiters: Waiters,
}

impl Activity {
    fn enter(&self) {
        self.state.lock().busy += 1;
    }

    fn leave(&self) {
        let mut state = self.state.lock();
        state.busy -= 1;
        let released = if state.busy == 0 { state.waiters.take() } else { Released::default() };
        drop(state);
        released.wake();
    }

    /// Waits for a moment at which nothing is busy. It may be awaited in a task that is itself counted
    /// here: that task is busy while it asks, and no more once it waits.
    pub(crate) async fn settled(&self) {
        let told = {
            let mut state = self.state.lock();
            if state.busy == 0 {
                return;
            }
            state.waiters.join()
        };
        let _ = told.await;
    }
}

/// Busy until it is dropped: a blocking closure.
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
