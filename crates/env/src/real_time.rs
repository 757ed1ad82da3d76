//! Real-time sleeps for simulations, independent of the runtime's timers, which may be absent or paused.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Maximum lateness of a sleep. Coarse, so that starting and dropping a sleep does not have to wake the thread.
const TICK: Duration = Duration::from_millis(5);

/// Number of ticks without a sleeper after which the thread blocks until the next one.
const IDLE_TICKS: u32 = 200;

/// Wakes sleepers from a dedicated thread, which the first sleeper starts and which ends when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct RealTime {
    state: Mutex<State>,
    /// Wakes the blocked thread for a new sleeper.
    first: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    sleepers: BTreeMap<(Instant, u64), Waker>,
    thread: Thread,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Thread {
    #[default]
    NotStarted,
    Ticks,
    Waits,
}

impl RealTime {
    #[expect(clippy::disallowed_methods, reason = "only this crate reads the monotonic clock")]
    pub(crate) fn sleep(self: &Arc<Self>, d: Duration) -> RealSleep {
        // A deadline beyond the clock's range is never reached.
        RealSleep { time: Arc::clone(self), deadline: Instant::now().checked_add(d), number: None }
    }

    fn register(self: &Arc<Self>, deadline: Instant, number: Option<u64>, waker: &Waker) -> u64 {
        let mut state = self.state.lock();
        let number = number.unwrap_or_else(|| {
            state.next += 1;
            state.next
        });
        let replaced = state.sleepers.insert((deadline, number), waker.clone());
        match state.thread {
            Thread::Ticks => {}
            Thread::Waits => {
                self.first.notify_one();
            }
            Thread::NotStarted => {
                let time = Arc::downgrade(self);
                let thread = std::thread::Builder::new().name("real time".to_owned());
                // If the thread cannot start, stalls go unnoticed; nothing else depends on it.
                if thread.spawn(move || run(&time)).is_ok() {
                    state.thread = Thread::Ticks;
                }
            }
        }
        drop(state);
        drop(replaced); // outside of the lock: it may hold the last reference to a sleeping task
        number
    }

    /// One tick of the thread.
    #[expect(clippy::disallowed_methods, reason = "only this crate reads the monotonic clock")]
    fn tick(&self, idle: &mut u32) {
        let mut state = self.state.lock();
        if state.sleepers.is_empty() {
            *idle += 1;
            if *idle > IDLE_TICKS {
                state.thread = Thread::Waits;
                // Bounded, because the owner may have dropped this meanwhile.
                self.first.wait_for(&mut state, Duration::from_secs(1));
                state.thread = Thread::Ticks;
            }
            return;
        }
        *idle = 0;
        let later = state.sleepers.split_off(&(Instant::now(), u64::MAX));
        let due = std::mem::replace(&mut state.sleepers, later);
        drop(state);
        for waker in due.into_values() {
            waker.wake();
        }
    }
}

fn run(time: &Weak<RealTime>) {
    let mut idle = 0;
    while let Some(time) = time.upgrade() {
        time.tick(&mut idle);
        drop(time);
        #[expect(clippy::disallowed_methods, reason = "a dedicated timer thread")]
        std::thread::sleep(TICK);
    }
}

/// Completes after its duration in real time.
#[must_use = "a sleep does nothing unless it is awaited"]
pub(crate) struct RealSleep {
    time: Arc<RealTime>,
    deadline: Option<Instant>,
    number: Option<u64>,
}

impl Future for RealSleep {
    type Output = ();

    #[expect(clippy::disallowed_methods, reason = "only this crate reads the monotonic clock")]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else { return Poll::Pending };
        if Instant::now() >= deadline {
            return Poll::Ready(());
        }
        let number = self.time.register(deadline, self.number, cx.waker());
        self.number = Some(number);
        Poll::Pending
    }
}

impl Drop for RealSleep {
    fn drop(&mut self) {
        if let (Some(deadline), Some(number)) = (self.deadline, self.number) {
            let waker = self.time.state.lock().sleepers.remove(&(deadline, number));
            drop(waker); // outside of the lock, as above
        }
    }
}
