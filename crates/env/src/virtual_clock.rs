//! The clock of a simulation: it stands still until it is advanced.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::activity::{Activity, Busy};
use crate::instant::Instant;

/// Initial wall clock of a simulation, 2025-01-01T00:00:00Z: a fixed date, so that two runs do not differ.
const FIRST_WALL: Duration = Duration::from_secs(1_735_689_600);

/// Advances the time of a simulated [`Env`](crate::Env).
///
/// A sleeper is woken when the clock passes its deadline: in order of deadline, then of creation. The clock
/// stops at each deadline on its way, so a sleeper that reads the clock sees its own deadline or a later
/// time, never an earlier one.
///
/// Waking a task does not run it: after [`advance`](Self::advance), woken tasks run when the runtime
/// schedules them, and see the final time. [`advance_and_settle`] lets them run at every stop, so that each
/// sees its own deadline, and the sleeps it starts are part of the same advance.
///
/// [`advance_and_settle`]: Self::advance_and_settle
#[derive(Clone)]
pub struct VirtualClock {
    timeline: Arc<Timeline>,
    activity: Arc<Activity>,
}

impl VirtualClock {
    pub(crate) fn new(timeline: Arc<Timeline>, activity: Arc<Activity>) -> VirtualClock {
        VirtualClock { timeline, activity }
    }

    /// The environment's time.
    pub fn now(&self) -> Instant {
        self.timeline.now()
    }

    /// Advances the clock by `d` and wakes every sleeper whose deadline it passes.
    pub fn advance(&self, d: Duration) {
        let target = self.now() + d;
        while self.step(Some(target)) {}
    }

    /// Advances the clock by `d`; at each deadline on the way, waits until no task has anything left to do.
    /// When this returns, everything due has happened, within the limits described at [`settle`](Self::settle).
    ///
    /// A sleep started on the way also ends on the way, if its deadline is within `d`.
    pub async fn advance_and_settle(&self, d: Duration) {
        let target = self.now() + d;
        self.settle().await;
        while self.step(Some(target)) {
            self.settle().await;
        }
    }

    fn step(&self, target: Option<Instant>) -> bool {
        // The clock is busy while it wakes sleepers, which distinguishes its wakes from those from outside.
        let _busy = Busy::new(&self.activity);
        self.timeline.step(target)
    }

    /// Waits until every task of the environment waits for something and no blocking closure is left: from
    /// then on, only an advance of the clock or an event from outside makes progress.
    ///
    /// For tasks started with [`Env::spawn`](crate::Env::spawn) and
    /// [`Env::spawn_blocking`](crate::Env::spawn_blocking) this is exact: a task counts from its wake until
    /// it waits again. Threads ([`Env::spawn_thread`](crate::Env::spawn_thread)) count while they hold an
    /// [`OutsideWork`](crate::OutsideWork). Foreign tasks on the same tokio runtime get a turn, so that two
    /// tasks of the environment can communicate through one of them. Sockets and timers of the runtime
    /// (`tokio::time::sleep`) are not tracked: a task that waits for one of these counts as waiting.
    ///
    /// It may be awaited in a task of the same environment, which counts as waiting meanwhile.
    pub async fn settle(&self) {
        self.activity.settled().await;
    }

    /// The earliest deadline of any sleeper.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.timeline.next_deadline()
    }

    /// Advances the clock to the earliest deadline and wakes its sleepers; returns `false` and does nothing
    /// if there is none.
    pub fn advance_to_next(&self) -> bool {
        self.step(None)
    }

    /// Number of current sleepers. A sleep counts from its creation until its deadline or its drop.
    pub fn sleepers(&self) -> usize {
        self.timeline.sleepers()
    }

    /// Sets the wall clock, forward or back. The monotonic clock does not move and no sleeper is woken; the
    /// wall clock advances with it from then on.
    pub fn set_wall(&self, wall: SystemTime) {
        self.timeline.set_wall(wall);
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualClock").field("now", &self.now()).field("sleepers", &self.sleepers()).finish()
    }
}

/// The time of a simulation and its sleepers.
#[derive(Debug)]
pub(crate) struct Timeline {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    now: Instant,
    /// The value the wall clock was last set to, and when.
    wall: SystemTime,
    wall_set_at: Instant,
    next_number: u64,
    /// By deadline, then by creation. Holds the waker of the last poll; `None` before the first.
    sleepers: BTreeMap<SleeperId, Option<Waker>>,
}

/// A sleeper's position in the wake order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SleeperId {
    deadline: Instant,
    number: u64,
}

impl SleeperId {
    pub(crate) fn deadline(self) -> Instant {
        self.deadline
    }
}

impl Timeline {
    pub(crate) fn new() -> Timeline {
        Timeline {
            state: Mutex::new(State {
                now: Instant::ORIGIN,
                wall: SystemTime::UNIX_EPOCH + FIRST_WALL,
                wall_set_at: Instant::ORIGIN,
                next_number: 0,
                sleepers: BTreeMap::new(),
            }),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.state.lock().now
    }

    pub(crate) fn wall(&self) -> SystemTime {
        let state = self.state.lock();
        // A wall clock set to the end of its range stays there.
        state.wall.checked_add(state.now - state.wall_set_at).unwrap_or(state.wall)
    }

    fn set_wall(&self, wall: SystemTime) {
        let mut state = self.state.lock();
        state.wall = wall;
        state.wall_set_at = state.now;
    }

    /// Adds a sleeper; `None` if its deadline has passed.
    pub(crate) fn register(&self, deadline: Instant) -> Option<SleeperId> {
        let mut state = self.state.lock();
        if deadline <= state.now {
            return None;
        }
        let id = SleeperId { deadline, number: state.next_number };
        state.next_number += 1;
        state.sleepers.insert(id, None);
        Some(id)
    }

    /// Ready once the deadline has passed; until then, `waker` is registered for it.
    pub(crate) fn poll(&self, id: SleeperId, waker: &Waker) -> Poll<()> {
        let mut state = self.state.lock();
        if id.deadline <= state.now {
            return Poll::Ready(());
        }
        let slot = state.sleepers.entry(id).or_default();
        let replaced = match slot {
            Some(known) if known.will_wake(waker) => None,
            _ => slot.replace(waker.clone()),
        };
        drop(state);
        drop(replaced); // outside of the lock: it may hold the last reference to a sleeping task
        Poll::Pending
    }

    pub(crate) fn forget(&self, id: SleeperId) {
        let waker = self.state.lock().sleepers.remove(&id);
        drop(waker); // outside of the lock, as above
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.state.lock().sleepers.first_key_value().map(|(id, _)| id.deadline)
    }

    fn sleepers(&self) -> usize {
        self.state.lock().sleepers.len()
    }

    /// Moves to the next deadline and wakes its sleepers. Without one up to `target`, moves to `target` and
    /// returns `false`.
    fn step(&self, target: Option<Instant>) -> bool {
        let mut due = Vec::new();
        {
            let mut state = self.state.lock();
            let next = state.sleepers.first_key_value().map(|(id, _)| id.deadline);
            let Some(deadline) = next.filter(|next| target.is_none_or(|target| *next <= target)) else {
                // Under the same lock as the lookup, so that no sleeper is skipped. A concurrent call may
                // have moved the clock further; it never goes back.
                state.now = state.now.max(target.unwrap_or(state.now));
                return false;
            };
            state.now = state.now.max(deadline);
            while let Some(first) = state.sleepers.first_entry() {
                if first.key().deadline > deadline {
                    break;
                }
                due.extend(first.remove());
            }
        }
        // Outside of the lock: a waker runs foreign code, which may read this clock.
        for waker in due {
            waker.wake();
        }
        true
    }
}
