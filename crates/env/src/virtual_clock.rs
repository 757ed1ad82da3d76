//! The clock of a simulation: it stands still until it is moved.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::activity::{Activity, Busy};
use crate::instant::Instant;

/// What a simulation's wall clock shows at first: 2025-01-01T00:00:00Z. A fixed date, because the real
/// one would make two runs differ.
const FIRST_WALL: Duration = Duration::from_secs(1_735_689_600);

/// Moves the time of a simulated [`Env`](crate::Env).
///
/// A sleeper is woken when the clock passes its deadline: in the order of deadlines, and of creation where
/// these are equal. The clock stops at each deadline on its way, so a sleeper that looks at the clock sees
/// its own deadline or a later moment, never an earlier one.
///
/// Waking a task is not running it: after [`advance`](Self::advance), tasks that were woken run when the
/// runtime gets to them, and see the time the clock was moved to. [`advance_and_settle`] lets them run at
/// every stop, so that each sees its own deadline and what it starts then is part of the same advance.
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

    /// The time on this clock, which is the environment's.
    pub fn now(&self) -> Instant {
        self.timeline.now()
    }

    /// Moves the clock on by `d` and wakes every sleeper whose deadline it passes.
    pub fn advance(&self, d: Duration) {
        let target = self.now() + d;
        while self.step(Some(target)) {}
    }

    /// Moves the clock on by `d`; at each deadline on the way, waits until no task has anything left to do
    /// before it moves on. When this returns, all that was to happen until now has happened. What "nothing left to do" means, and what it cannot
    /// know, is said at [`settle`](Self::settle).
    ///
    /// A sleep that a task begins on the way ends on the way, if its deadline is within `d`.
    pub async fn advance_and_settle(&self, d: Duration) {
        let target = self.now() + d;
        self.settle().await;
        while self.step(Some(target)) {
            self.settle().await;
        }
    }

    fn step(&self, target: Option<Instant>) -> bool {
        // Who wakes others is busy: so a wake by the clock can be told from one that comes from outside.
        let _busy = Busy::new(&self.activity);
        self.timeline.step(target)
    }

    /// Waits until every task of the environment waits for something, and no blocking closure is left:
    /// nothing moves any more unless the clock does, or somebody outside does something.
    ///
    /// It knows what was started with [`Env::spawn`](crate::Env::spawn) and
    /// [`Env::spawn_blocking`](crate::Env::spawn_blocking), and it is a fact about those, not a guess: a
    /// task counts from the moment it is woken until it waits again. Of threads
    /// ([`Env::spawn_thread`](crate::Env::spawn_thread)) it knows what they were given with an
    /// [`OutsideWork`](crate::OutsideWork). Other tasks of the same tokio runtime get a turn, so that two tasks of the
    /// environment can talk through one of them. It does not know sockets and timers of the runtime
    /// (`tokio::time::sleep`): a task that waits for one of these counts as waiting.
    ///
    /// It may be awaited in a task of the same environment, which counts as waiting meanwhile.
    pub async fn settle(&self) {
        self.activity.settled().await;
    }

    /// The earliest deadline anybody sleeps for.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.timeline.next_deadline()
    }

    /// Moves the clock to the earliest deadline and wakes who sleeps for it; `false`, and nothing happens,
    /// if nobody sleeps.
    pub fn advance_to_next(&self) -> bool {
        self.step(None)
    }

    /// How many sleep now. A sleep counts from when it is made until its moment or its drop.
    pub fn sleepers(&self) -> usize {
        self.timeline.sleepers()
    }

    /// Sets the wall clock, forward or back. The monotonic clock does not move and nobody is woken; from
    /// here on the wall clock goes along with it.
    pub fn set_wall(&self, wall: SystemTime) {
        self.timeline.set_wall(wall);
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualClock").field("now", &self.now()).field("sleepers", &self.sleepers()).finish()
    }
}

/// The time of a simulation and those who sleep in it.
#[derive(Debug)]
pub(crate) struct Timeline {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    now: Instant,
    /// What the wall clock showed when it was last set, and when that was.
    wall: SystemTime,
    wall_set_at: Instant,
    next_number: u64,
    /// By deadline, then by creation. The waker is that of the last poll; none if there was none yet.
    sleepers: BTreeMap<SleeperId, Option<Waker>>,
}

/// A sleeper's place in the order of waking.
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

    /// Adds a sleeper, unless its moment has come.
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

    /// Whether the sleeper's moment has come; if not, `waker` is woken when it has.
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
        drop(replaced); // outside of the lock: it may be the last of a task that sleeps
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

    /// Goes to the next deadline and wakes those who sleep for it. `false` if there is none, or none up to
    /// `target`: then the clock goes to `target`.
    fn step(&self, target: Option<Instant>) -> bool {
        let mut due = Vec::new();
        {
            let mut state = self.state.lock();
            let next = state.sleepers.first_key_value().map(|(id, _)| id.deadline);
            let Some(deadline) = next.filter(|next| target.is_none_or(|target| *next <= target)) else {
                // Under the same lock as the look at the sleepers: none is passed over. Another may have
                // moved the clock further meanwhile; it never goes back.
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
        // Outside of the lock: a waker runs foreign code, which may look at this clock.
        for waker in due {
            waker.wake();
        }
        true
    }
}
