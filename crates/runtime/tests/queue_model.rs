//! Compares the queue with a slow and obvious model, and checks that no worker waits while a key could be handed out.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use k1s_env::{Env, Instant};
use k1s_runtime::{
    ObjectKey,
    queue::{AddOptions, Cause, CauseEvent, Causes, Fairness, Item, Queue, QueueOptions, QueueState},
};
use proptest::prelude::*;

type K = u8;

#[derive(Debug, Clone)]
enum Op {
    Add { key: K, priority: i32, after: u64, rate_limited: bool },
    Next,
    Done(usize),
    Forget(K),
    Advance(u64),
    Remove(K),
    Retain(K),
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..10u8;
    let add = (key.clone(), -1..3i32, prop_oneof![3 => Just(0), 2 => 1..20u64], prop::bool::weighted(0.2));
    prop_oneof![
        10 => add.prop_map(|(key, priority, after, rate_limited)| Op::Add { key, priority, after, rate_limited }),
        8 => Just(Op::Next),
        6 => (0..8usize).prop_map(Op::Done),
        1 => key.clone().prop_map(Op::Forget),
        4 => (1..15u64).prop_map(Op::Advance),
        1 => key.clone().prop_map(Op::Remove),
        1 => key.prop_map(Op::Retain),
    ]
}

/// A pending run.
#[derive(Debug, Clone)]
struct Wanted {
    priority: i32,
    at: Instant,
    delayed: bool,
    retry: bool,
    causes: Vec<usize>,
    /// Its positions in the order of its priority and in the overall order; if delayed, among those with the
    /// same due time.
    line: u64,
    age: u64,
}

struct Model {
    wanted: BTreeMap<K, Wanted>,
    /// The keys handed out, with the run pending after it.
    running: BTreeMap<K, (Instant, Option<Wanted>)>,
    failures: BTreeMap<K, u32>,
    passed_over: u32,
    fair_every: u32,
    tickets: u64,
}

impl Model {
    fn new(fair_every: u32) -> Model {
        Model {
            wanted: BTreeMap::new(),
            running: BTreeMap::new(),
            failures: BTreeMap::new(),
            passed_over: 0,
            fair_every,
            tickets: 0,
        }
    }

    fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    fn make_due(&mut self, now: Instant) {
        loop {
            let due = self.wanted.iter().filter(|(_, w)| w.delayed && w.at <= now);
            let Some(key) = due.min_by_key(|(_, w)| (w.at, w.line)).map(|(key, _)| *key) else { return };
            let (line, age) = (self.ticket(), self.ticket());
            let wanted = self.wanted.get_mut(&key).unwrap();
            (wanted.delayed, wanted.line, wanted.age) = (false, line, age);
        }
    }

    fn add(&mut self, now: Instant, op: &Op, cause: usize) {
        let Op::Add { key, priority, after, rate_limited } = *op else { unreachable!() };
        let mut delay = (after > 0).then(|| ms(after));
        if rate_limited {
            let failures = self.failures.entry(key).or_default();
            let limited = ms((5 << *failures).min(1_000_000));
            *failures += 1;
            delay = Some(delay.map_or(limited, |delay| delay.min(limited)));
        }
        let (line, age) = (self.ticket(), self.ticket());
        let new = Wanted {
            priority,
            at: now + delay.unwrap_or_default(),
            delayed: delay.is_some(),
            retry: rate_limited,
            causes: vec![cause],
            line,
            age,
        };
        if let Some((_, again)) = self.running.get_mut(&key) {
            *again = Some(match again.take() {
                None => new,
                Some(old) => merge(old, new),
            });
        } else if let Some(old) = self.wanted.remove(&key) {
            self.wanted.insert(key, merge(old, new));
        } else {
            self.wanted.insert(key, new);
        }
    }

    fn next(&mut self, now: Instant) -> Option<(K, Wanted)> {
        let ready = || self.wanted.iter().filter(|(_, w)| !w.delayed);
        let first = *ready().min_by_key(|(_, w)| (-w.priority, w.line))?.0;
        let oldest = *ready().min_by_key(|(_, w)| w.age)?.0;
        let fair = first != oldest && self.passed_over + 1 >= self.fair_every;
        let key = if fair { oldest } else { first };
        self.passed_over = if key == oldest { 0 } else { self.passed_over + 1 };
        let wanted = self.wanted.remove(&key)?;
        self.running.insert(key, (now, None));
        Some((key, wanted))
    }

    fn done(&mut self, now: Instant, key: K) {
        if let Some(mut again) = self.running.remove(&key).unwrap().1 {
            (again.line, again.age) = (self.ticket(), self.ticket());
            again.delayed &= again.at > now;
            self.wanted.insert(key, again);
        }
    }

    fn remove(&mut self, key: K) -> bool {
        self.failures.remove(&key);
        let again = self.running.get_mut(&key).and_then(|(_, again)| again.take());
        again.is_some() || self.wanted.remove(&key).is_some()
    }

    fn all(&self) -> impl Iterator<Item = &Wanted> {
        self.wanted.values().chain(self.running.values().filter_map(|(_, again)| again.as_ref()))
    }

    fn state(&self) -> QueueState {
        let count = |of: fn(&Wanted) -> bool| self.all().filter(|w| of(w)).count();
        QueueState {
            ready: count(|w| !w.delayed),
            processing: self.running.len(),
            retrying: count(|w| w.delayed && w.retry),
            delayed: count(|w| w.delayed && !w.retry),
            next_due: self.all().filter(|w| w.delayed).map(|w| w.at).min(),
        }
    }

    fn depth(&self) -> Vec<(i32, usize)> {
        let mut depth = BTreeMap::new();
        for wanted in self.all().filter(|w| !w.delayed) {
            *depth.entry(wanted.priority).or_default() += 1;
        }
        depth.into_iter().rev().collect()
    }
}

fn merge(old: Wanted, new: Wanted) -> Wanted {
    let raised = new.priority > old.priority;
    let sooner = old.delayed && (!new.delayed || new.at < old.at);
    Wanted {
        priority: old.priority.max(new.priority),
        at: old.at.min(new.at),
        delayed: old.delayed && new.delayed,
        retry: old.retry || new.retry,
        causes: [old.causes, new.causes].concat(),
        // Delayed keys are ordered by time; priority does not affect their order.
        line: if sooner || (raised && !old.delayed) { new.line } else { old.line },
        age: if sooner { new.age } else { old.age },
    }
}

fn cause(number: usize) -> Cause {
    Cause::object(CauseEvent::Updated, "Pod", ObjectKey::cluster("a"), Some(&number.to_string()))
}

fn causes(numbers: &[usize]) -> Causes {
    numbers.iter().copied().map(cause).collect()
}

fn check(ops: &[Op], fair_every: u32) -> Result<(), TestCaseError> {
    let (env, clock) = Env::simulated(1);
    let fairness = Fairness::OldestEvery(NonZeroU32::new(fair_every).unwrap());
    let queue: Queue<K> = Queue::new(&env, QueueOptions { fairness, ..QueueOptions::named("model") });
    let mut model = Model::new(fair_every);
    let mut held: Vec<Item<K>> = Vec::new();
    for (number, op) in ops.iter().enumerate() {
        model.make_due(env.now());
        match op {
            Op::Add { key, priority, after, rate_limited } => {
                let options = AddOptions {
                    priority: Some(*priority),
                    after: Some(ms(*after)),
                    rate_limited: *rate_limited,
                    causes: cause(number).into(),
                };
                queue.add_with(options, *key);
                model.add(env.now(), op, number);
            }
            Op::Next => {
                let item = queue.try_next();
                let expected = model.next(env.now());
                let got = item.as_ref().map(|i| (*i.key(), i.priority(), i.queued_at(), i.causes().clone()));
                prop_assert_eq!(
                    got,
                    expected.as_ref().map(|(key, w)| (*key, w.priority, w.at, causes(&w.causes)))
                );
                if let Some(item) = &item {
                    let failures = model.failures.get(item.key()).copied().unwrap_or_default();
                    prop_assert_eq!(item.attempt(), failures + 1);
                }
                held.extend(item);
            }
            Op::Done(which) if !held.is_empty() => {
                let item = held.swap_remove(which % held.len());
                model.done(env.now(), *item.key());
                queue.done(item);
            }
            Op::Done(_) => {}
            Op::Forget(key) => {
                queue.forget(key);
                model.failures.remove(key);
            }
            Op::Advance(by) => clock.advance(ms(*by)),
            Op::Remove(key) => prop_assert_eq!(queue.remove(key), model.remove(*key)),
            Op::Retain(below) => {
                let expected = (0..10).filter(|key| key >= below && model.remove(*key)).count();
                prop_assert_eq!(queue.retain(|key| key < below), expected);
                // The queue does not track failures of keys that it does not hold.
                model.failures = (0..10).map(|key| (key, queue.retries(&key))).collect();
            }
        }
        model.make_due(env.now());
        prop_assert_eq!(queue.state(), model.state());
        prop_assert_eq!(queue.depth(), model.depth());
        prop_assert_eq!(queue.processing().len(), held.len());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_queue_behaves_like_the_model(ops in prop::collection::vec(op(), 1..150), fair_every in 1..5u32) {
        check(&ops, fair_every)?;
    }
}

/// An event for a queue with workers.
#[derive(Debug, Clone)]
enum Event {
    Add {
        key: K,
        after: u64,
        rate_limited: bool,
    },
    /// A worker is aborted in any state and replaced by another one.
    Replace(usize),
    Look,
    Settle,
    Advance(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let add = (0..20u8, prop_oneof![2 => Just(0), 3 => 1..30u64], prop::bool::weighted(0.2));
    prop_oneof![
        8 => add.prop_map(|(key, after, rate_limited)| Event::Add { key, after, rate_limited }),
        2 => (0..5usize).prop_map(Event::Replace),
        1 => Just(Event::Look),
        2 => Just(Event::Settle),
        4 => (1..15u64).prop_map(Event::Advance),
    ]
}

async fn check_that_no_worker_waits_in_vain(
    events: Vec<Event>,
    workers: usize,
    work: u64,
) -> Result<(), TestCaseError> {
    let (env, clock) = Env::simulated(1);
    let queue: Queue<K> = Queue::new(&env, QueueOptions::named("workers"));
    let worker = || {
        let (queue, env) = (queue.clone(), env.clone());
        async move {
            while let Some(item) = queue.next().await {
                env.sleep(ms(work * u64::from(*item.key() % 3))).await;
            }
        }
    };
    let mut tasks: Vec<_> = (0..workers).map(|_| env.spawn("worker", worker())).collect();
    for event in events {
        match event {
            Event::Add { key, after, rate_limited } => {
                let options = AddOptions { after: Some(ms(after)), rate_limited, ..AddOptions::default() };
                queue.add_with(options, key);
                continue;
            }
            Event::Replace(which) => {
                let task = &mut tasks[which % workers];
                task.abort();
                *task = env.spawn("worker", worker());
                continue;
            }
            Event::Look => {
                let _ = queue.state();
                continue;
            }
            Event::Settle => clock.settle().await,
            Event::Advance(by) => clock.advance_and_settle(ms(by)).await,
        }
        let state = queue.state();
        if state.processing < workers {
            prop_assert!(queue.try_next().is_none(), "{state:?}, {workers} workers");
        }
    }
    // The remaining keys are processed when due, without further queries.
    clock.advance_and_settle(Duration::from_secs(3600)).await;
    prop_assert!(queue.state().is_empty(), "{:?}", queue.state());
    queue.shut_down();
    clock.settle().await;
    prop_assert!(tasks.iter().all(|task| task.is_finished()));
    prop_assert_eq!(clock.sleepers(), 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn no_worker_waits_while_there_is_a_key_for_it(
        events in prop::collection::vec(event(), 1..100),
        workers in 1..5usize,
        work in 0..10u64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check_that_no_worker_waits_in_vain(events, workers, work))?;
    }
}
