//! The queue with its lock, its clock and its waiters.
//!
//! No task makes due keys ready: the next operation does it. Only if all workers wait, one of them, the timekeeper, has to
//! wake up at the next due time. When it leaves, with a key or because its wait was cancelled, it wakes another waiter as
//! its successor.
//!
//! Workers are woken one after the other: a worker that wakes up and finds more than one key wakes the next. So a thousand
//! keys that arrive at once do not wake a thousand workers to contend for the lock, and a fast worker takes them all.

use std::{pin::pin, sync::Arc};

use k1s_env::{Env, Instant};
use parking_lot::Mutex;
use tokio::{sync::Notify, task::coop};

use super::{
    AddOptions, Item, Key, QueueOptions, RateLimiter,
    core::{Core, Due, Take, Taken},
    metrics::{Slot as MetricsSlot, Snapshot, Source},
};

/// Adds a key to another queue.
type Forward<R> = Box<dyn Fn(AddOptions, R) + Send + Sync>;

pub(super) struct Shared<R: Key> {
    env: Env,
    pub(super) name: Arc<str>,
    limiter: Arc<dyn RateLimiter<R>>,
    metrics: Option<Arc<MetricsSlot>>,
    /// Takes what is added, instead of the queue itself.
    forward: Option<Forward<R>>,
    state: Mutex<State<R>>,
    /// Notifies tasks that wait for a key.
    available: Notify,
    /// Notifies the timekeeper that the first due time is earlier than it was.
    earlier: Notify,
    /// Notifies tasks that wait until nothing is left to do.
    idle: Notify,
}

struct State<R> {
    core: Core<R>,
    /// Number of tasks that wait for a key.
    waiting: usize,
    /// Whether one of them watches the clock.
    timekeeper: bool,
    /// Whether one of them was woken and has not taken the lock yet.
    woken: bool,
}

impl<R: Key> State<R> {
    /// Whether one of the waiters has to be woken.
    fn has_work_for_waiter(&self) -> bool {
        self.waiting > 0
            && (self.core.available() > 0 || (!self.timekeeper && self.core.next_due().is_some()))
    }
}

/// The state whose changes waiters are notified of.
struct Marks {
    due: Option<Instant>,
    idle: bool,
    exhausted: bool,
}

impl Marks {
    fn of<R: Key>(core: &Core<R>) -> Marks {
        Marks { due: core.next_due(), idle: core.is_idle(), exhausted: core.is_exhausted() }
    }
}

impl<R: Key> Shared<R> {
    pub(super) fn new(env: &Env, options: QueueOptions<R>) -> Arc<Shared<R>> {
        Shared::assemble(env, options, None)
    }

    pub(super) fn forwarding(env: &Env, name: Arc<str>, forward: Forward<R>) -> Arc<Shared<R>> {
        Shared::assemble(env, QueueOptions::named(name), Some(forward))
    }

    fn assemble(env: &Env, options: QueueOptions<R>, forward: Option<Forward<R>>) -> Arc<Shared<R>> {
        let QueueOptions { name, rate_limiter, metrics, fairness, flows, max_per_flow, count_flows } =
            options;
        let metrics = metrics.map(|metrics| metrics.queue(&name));
        let state = State {
            core: Core::new(fairness, flows, max_per_flow, count_flows),
            waiting: 0,
            timekeeper: false,
            woken: false,
        };
        let shared = Arc::new(Shared {
            env: env.clone(),
            name,
            limiter: rate_limiter,
            metrics,
            forward,
            state: Mutex::new(state),
            available: Notify::new(),
            earlier: Notify::new(),
            idle: Notify::new(),
        });
        if let Some(metrics) = &shared.metrics {
            let source: Arc<dyn Source> = shared.clone();
            metrics.attach(Arc::downgrade(&source));
        }
        shared
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn limiter(&self) -> &dyn RateLimiter<R> {
        self.limiter.as_ref()
    }

    pub(super) fn add(&self, options: AddOptions, key: R) {
        if let Some(forward) = &self.forward {
            return forward(options, key);
        }
        let AddOptions { priority, after, rate_limited, causes } = options;
        // The limiter is foreign code, so it is called outside of the lock.
        let limited = rate_limited.then(|| self.limiter.when(&key));
        let after = after.filter(|after| !after.is_zero());
        let after = after.into_iter().chain(limited).min();
        self.change(|core, now| {
            let due = Due { at: after.map(|after| now + after), retry: rate_limited };
            core.add(now, due, priority.unwrap_or(0), causes, key);
        });
    }

    /// Reads the current state of the queue.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Core<R>) -> T) -> T {
        self.change(|core, now| {
            core.promote(now);
            read(core)
        })
    }

    /// Changes the queue, and notifies its waiters.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Core<R>, Instant) -> T) -> T {
        self.change_state(|state, now| change(&mut state.core, now))
    }

    fn change_state<T>(&self, change: impl FnOnce(&mut State<R>, Instant) -> T) -> T {
        let mut state = self.state.lock();
        // Under the lock, so that time does not go backwards between changes.
        let now = self.env.now();
        let before = Marks::of(&state.core);
        let result = change(&mut state, now);
        let after = Marks::of(&state.core);

        let earlier = after.due.is_some_and(|due| before.due.is_none_or(|before| due < before));
        let timekeeper = state.timekeeper;
        let wake = !state.woken && state.has_work_for_waiter();
        state.woken |= wake;
        drop(state);

        if wake {
            // The most recent waiter: its caches are warm.
            self.available.notify_last();
        }
        if earlier && timekeeper {
            self.earlier.notify_one();
        }
        if after.exhausted && !before.exhausted {
            self.available.notify_waiters();
        }
        if after.idle && !before.idle {
            self.idle.notify_waiters();
        }
        result
    }

    pub(super) fn try_next(shared: &Arc<Shared<R>>) -> Option<Item<R>> {
        match shared.change(Core::take) {
            Take::Key(taken) => Some(Item::new(Arc::clone(shared), taken)),
            Take::Empty | Take::Closed => None,
        }
    }

    /// The next key; `finished` is done first.
    pub(super) async fn next(shared: &Arc<Shared<R>>, finished: Option<Item<R>>) -> Option<Item<R>> {
        // A worker that always finds a key and never awaits anything else would starve other tasks of its thread.
        coop::consume_budget().await;
        // An item of another queue is ended there, by its drop.
        let finished = finished.filter(|item| item.is_of(shared));
        let take = shared.change(|core, now| {
            if let Some(item) = finished {
                core.done(now, item.finish());
            }
            core.take(now)
        });
        let taken = match take {
            Take::Key(taken) => taken,
            Take::Closed => return None,
            Take::Empty => Waiter::new(shared).taken().await?,
        };
        Some(Item::new(Arc::clone(shared), taken))
    }

    pub(super) async fn idle(&self) {
        loop {
            // Registered before the check, so that no notification is missed.
            let notified = self.idle.notified();
            if self.read(|core| core.is_idle()) {
                return;
            }
            notified.await;
        }
    }

    pub(super) fn shut_down(&self, drain: bool) {
        let dropped = self.change(|core, now| {
            core.promote(now);
            core.close(drain)
        });
        drop(dropped); // outside of the lock: there may be a million entries
    }
}

impl<R: Key> Source for Shared<R> {
    fn snapshot(&self) -> Snapshot {
        self.change(|core, now| {
            core.promote(now);
            core.snapshot(now)
        })
    }
}

impl<R: Key> Drop for Shared<R> {
    fn drop(&mut self) {
        if let Some(metrics) = &self.metrics {
            metrics.detach(self.state.get_mut().core.counters());
        }
    }
}

/// A task that waits for a key. Dropping it ends the wait.
struct Waiter<'a, R: Key> {
    shared: &'a Shared<R>,
    waiting: bool,
    timekeeper: bool,
}

impl<'a, R: Key> Waiter<'a, R> {
    fn new(shared: &'a Shared<R>) -> Waiter<'a, R> {
        Waiter { shared, waiting: false, timekeeper: false }
    }

    async fn taken(mut self) -> Option<Taken<R>> {
        let shared = self.shared;
        loop {
            // Registered before the check: a key that arrives after it wakes this waiter or another one.
            let mut available = pin!(shared.available.notified());
            available.as_mut().enable();
            let (take, due) = self.take();
            match take {
                Take::Key(taken) => return Some(taken),
                Take::Closed => return None,
                Take::Empty => {}
            }
            let Some(due) = due else {
                available.await;
                continue;
            };
            tokio::select! {
                biased;
                () = available => {}
                () = shared.earlier.notified() => {}
                () = shared.env.sleep_until(due) => {}
            }
        }
    }

    /// Takes a key or registers as waiting; as the timekeeper, if it returns a due time.
    fn take(&mut self) -> (Take<R>, Option<Instant>) {
        self.shared.change_state(|state, now| {
            state.woken = false;
            let take = state.core.take(now);
            if !matches!(take, Take::Empty) {
                self.leave(state);
                return (take, None);
            }
            if !self.waiting {
                self.waiting = true;
                state.waiting += 1;
            }
            let due = state.core.next_due().filter(|_| self.timekeeper || !state.timekeeper);
            if self.timekeeper || due.is_some() {
                self.timekeeper = due.is_some();
                state.timekeeper = due.is_some();
            }
            (take, due)
        })
    }

    fn leave(&mut self, state: &mut State<R>) {
        if std::mem::take(&mut self.waiting) {
            state.waiting -= 1;
        }
        if std::mem::take(&mut self.timekeeper) {
            state.timekeeper = false;
        }
    }
}

impl<R: Key> Drop for Waiter<'_, R> {
    fn drop(&mut self) {
        if self.waiting {
            self.shared.change_state(|state, _| {
                // This may be the waiter that was woken.
                state.woken = false;
                self.leave(state);
            });
        }
    }
}
