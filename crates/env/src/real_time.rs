//! Real time for simulations: it works without the timers of a runtime, which a simulation may do without, and when those
//! are paused.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// How late a sleep may end. Coarse, so that those who begin a sleep and drop it do not have to wake the thread.
const TICK: Duration = Duration::from_millis(5);

/// After so many ticks without a sleeper the thread waits for the next one.
const IDLE_TICKS: u32 = 200;

/// Wakes sleepers from a thread of its own, which is started by the first sleeper and ends with this.
#[derive(Debug, Default)]
pub(crate) struct RealTime {
    state: Mutex<State>,
    /// For the thread, when it waits for a sleeper.
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
    #[expect(clippy::disallowed_methods, reason = "this is the door to the system's monotonic clock")]
    pub(crate) fn sleep(self: &Arc<Self>, d: Duration) -> RealSleep {
        // A time that cannot be told does not come.
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
                // Without it, a stall goes unnoticed; nothing else depends on it.
                if thread.spawn(move || run(&time)).is_ok() {
                    state.thread = Thread::Ticks;
                }
            }
        }
        drop(state);
        drop(replaced); // outside of the lock: it may be the last of a task that sleeps
        number
    }

    /// One tick of the thread.
    #[expect(clippy::disallowed_methods, reason = "this is the door to the system's monotonic clock")]
    fn tick(&self, idle: &mut u32) {
        let mut state = self.state.lock();
        if state.sleepers.is_empty() {
            *idle += 1;
            if *idle > IDLE_TICKS {
                state.thread = Thread::Waits;
                // Not for ever: who owns this may be gone.
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
        #[expect(clippy::disallowed_methods, reason = "a thread that does nothing but to tell the time")]
        std::thread::sleep(TICK);
    }
}

/// Ends when its time has come, in real time.
#[must_use = "a sleep does nothing unless it is awaited"]
pub(crate) struct RealSleep {
    time: Arc<RealTime>,
    deadline: Option<Instant>,
    number: Option<u64>,
}

impl Future for RealSleep {
    type Output = ();

    #[expect(clippy::disallowed_methods, reason = "this is the door to the system's monotonic clock")]
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
