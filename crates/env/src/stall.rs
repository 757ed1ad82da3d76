//! Detects stalled simulations, so that a stopped clock blocks no wait for ever.

use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;

use crate::activity::Activity;
use crate::virtual_clock::Timeline;

/// A simulation that makes no progress; see [`Env::watch_stalls`](crate::Env::watch_stalls).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stall {
    /// Nothing has moved for a while.
    #[error("nothing has moved for {after:?} in real time, and the simulated clock stands still")]
    Still {
        /// For how long, in real time.
        after: Duration,
    },
    /// The future was woken from outside the environment after the clock had moved on: it missed the time in between.
    #[error(
        "the simulated clock moved on by {missed:?} during a wait for something outside of the simulation"
    )]
    Overtaken {
        /// How far the clock has moved.
        missed: Duration,
    },
}

/// Maximum number of reports, each after twice the time of the previous one.
const REPORTS: u32 = 8;

pub(crate) async fn watch<F: Future, P: PartialEq>(
    timeline: &Arc<Timeline>,
    activity: &Arc<Activity>,
    after: Duration,
    progress: impl Fn() -> P,
    mut stalled: impl FnMut(Stall) -> ControlFlow<()>,
    f: F,
) -> Result<F::Output, Stall> {
    let wakes = Wakes::new(activity);
    let mark = || (timeline.now(), wakes.count(), progress());
    let still = async |period| loop {
        let before = mark();
        activity.real_time.sleep(period).await;
        // A long-running blocking closure is not a stall.
        activity.settled().await;
        if mark() == before {
            return;
        }
    };
    let mut f = pin!(f);
    let (mut period, mut reports) = (after, 0);
    let mut watchdog = pin!(still(period));
    let mut waits_since = timeline.now();
    poll_fn(|cx| {
        let overtaken = wakes.take_outside() && timeline.now() > waits_since;
        if overtaken {
            let stall = Stall::Overtaken { missed: timeline.now() - waits_since };
            if stalled(stall).is_break() {
                return Poll::Ready(Err(stall));
            }
        }
        if let Poll::Ready(output) = wakes.poll(cx, |cx| f.as_mut().poll(cx)) {
            return Poll::Ready(Ok(output));
        }
        waits_since = timeline.now();
        while reports < REPORTS && watchdog.as_mut().poll(cx).is_ready() {
            let stall = Stall::Still { after: period };
            if stalled(stall).is_break() {
                return Poll::Ready(Err(stall));
            }
            reports += 1;
            period = period.saturating_mul(2);
            watchdog.set(still(period));
        }
        Poll::Pending
    })
    .await
}

/// Counts the wakes of a future and detects those from outside the environment.
struct Wakes {
    activity: Arc<Activity>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    count: u64,
    outside: bool,
    task: Option<Waker>,
}

impl Wakes {
    fn new(activity: &Arc<Activity>) -> Arc<Wakes> {
        Arc::new(Wakes { activity: Arc::clone(activity), state: Mutex::default() })
    }

    fn count(&self) -> u64 {
        self.state.lock().count
    }

    fn take_outside(&self) -> bool {
        std::mem::take(&mut self.state.lock().outside)
    }

    fn poll<T>(
        self: &Arc<Self>,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let replaced = {
            let mut state = self.state.lock();
            match &state.task {
                Some(known) if known.will_wake(cx.waker()) => None,
                _ => state.task.replace(cx.waker().clone()),
            }
        };
        drop(replaced); // outside of the lock: it may hold the last reference to a task
        poll(&mut Context::from_waker(&Waker::from(Arc::clone(self))))
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Tasks of the environment, and its clock, are busy while they wake a task.
        let outside = self.activity.quiet().is_some();
        let task = {
            let mut state = self.state.lock();
            state.count += 1;
            state.outside |= outside;
            state.task.clone()
        };
        if let Some(task) = task {
            task.wake();
        }
    }
}
