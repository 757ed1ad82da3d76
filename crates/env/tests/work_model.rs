//! Compares a tracker's counters with those of a simple model.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use k1s_env::{Component, ComponentStats, Env, VirtualClock, WorkGuard, WorkTracker};
use proptest::prelude::*;

const NAMES: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Copy, Debug)]
enum Step {
    Begin(usize),
    /// Ends a unit in flight, if there is any.
    Succeed(usize),
    Fail(usize),
    Drop(usize),
    Panic(usize),
    Advance(u64),
    Stop(Option<usize>),
    Resume(Option<usize>),
}

fn step() -> impl Strategy<Value = Step> {
    let component = 0..NAMES.len();
    let scope = prop::option::of(component.clone());
    prop_oneof![
        8 => component.prop_map(Step::Begin),
        2 => any::<usize>().prop_map(Step::Succeed),
        1 => any::<usize>().prop_map(Step::Fail),
        1 => any::<usize>().prop_map(Step::Drop),
        1 => any::<usize>().prop_map(Step::Panic),
        2 => (0..5000u64).prop_map(Step::Advance),
        1 => scope.clone().prop_map(Step::Stop),
        2 => scope.prop_map(Step::Resume),
    ]
}

#[derive(Default)]
struct Model {
    now: u64,
    stopped: bool,
    components: [ModelComponent; 3],
    /// Component, description and start of each unit in flight, in order of beginning.
    in_flight: Vec<(usize, String, u64)>,
}

#[derive(Default)]
struct ModelComponent {
    stopped: bool,
    started: u64,
    peak: usize,
    succeeded: u64,
    failed: u64,
    panicked: u64,
    refused: u64,
}

impl Model {
    fn check(&self, stats: &ComponentStats, which: usize) {
        let model = &self.components[which];
        let mine = || self.in_flight.iter().filter(|(c, ..)| *c == which);
        assert_eq!(&*stats.name, NAMES[which]);
        assert_eq!(stats.accepting, !self.stopped && !model.stopped);
        assert_eq!(stats.started, model.started);
        assert_eq!(stats.in_flight, mine().count());
        assert_eq!(stats.peak, model.peak);
        assert_eq!(stats.succeeded, model.succeeded);
        assert_eq!(stats.failed, model.failed);
        assert_eq!(stats.panicked, model.panicked);
        assert_eq!(stats.refused, model.refused);
        assert_eq!(stats.oldest, mine().map(|(.., since)| Duration::from_millis(self.now - since)).max());
        assert_eq!(stats.started, stats.in_flight as u64 + stats.succeeded + stats.failed);
    }
}

/// The tracker under test and its model.
struct Pair {
    clock: VirtualClock,
    tracker: WorkTracker,
    components: [Component; 3],
    guards: Vec<WorkGuard>,
    model: Model,
}

impl Pair {
    fn new() -> Pair {
        let (env, clock) = Env::simulated(0);
        let tracker = WorkTracker::new(env);
        // Deliberately not in alphabetical order.
        let components = [2, 0, 1].map(|i| tracker.component(NAMES[i]));
        let [c, a, b] = components;
        Pair { clock, tracker, components: [a, b, c], guards: Vec::new(), model: Model::default() }
    }

    /// Removes a unit in flight from the model; returns its guard and its component.
    fn pick(&mut self, which: usize) -> Option<(WorkGuard, usize)> {
        let which = which.checked_rem(self.guards.len())?;
        let (component, ..) = self.model.in_flight.remove(which);
        Some((self.guards.remove(which), component))
    }

    fn apply(&mut self, number: usize, step: Step) {
        match step {
            Step::Begin(c) => {
                let description = format!("{}/{number}", NAMES[c]);
                let begun = self.components[c].begin(description.clone());
                let refuse = self.model.stopped || self.model.components[c].stopped;
                assert_eq!(begun.is_err(), refuse);
                match begun {
                    Err(_) => self.model.components[c].refused += 1,
                    Ok(guard) => {
                        self.guards.push(guard);
                        self.model.in_flight.push((c, description, self.model.now));
                        let in_flight = self.model.in_flight.iter().filter(|(of, ..)| *of == c).count();
                        let model = &mut self.model.components[c];
                        model.started += 1;
                        model.peak = model.peak.max(in_flight);
                    }
                }
            }
            Step::Succeed(which) => {
                if let Some((guard, c)) = self.pick(which) {
                    guard.succeed();
                    self.model.components[c].succeeded += 1;
                }
            }
            Step::Fail(which) => {
                if let Some((guard, c)) = self.pick(which) {
                    guard.fail();
                    self.model.components[c].failed += 1;
                }
            }
            Step::Drop(which) => {
                if let Some((guard, c)) = self.pick(which) {
                    drop(guard);
                    self.model.components[c].failed += 1;
                }
            }
            Step::Panic(which) => {
                if let Some((guard, c)) = self.pick(which) {
                    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
                        let _guard = guard;
                        std::panic::resume_unwind(Box::new("without the hook's message"));
                    }));
                    assert!(unwound.is_err());
                    self.model.components[c].failed += 1;
                    self.model.components[c].panicked += 1;
                }
            }
            Step::Advance(millis) => {
                self.clock.advance(Duration::from_millis(millis));
                self.model.now += millis;
            }
            Step::Stop(None) => {
                self.tracker.stop_accepting();
                self.model.stopped = true;
            }
            Step::Stop(Some(c)) => {
                self.components[c].stop_accepting();
                self.model.components[c].stopped = true;
            }
            Step::Resume(None) => {
                self.tracker.resume_accepting();
                self.model.stopped = false;
            }
            Step::Resume(Some(c)) => {
                self.components[c].resume_accepting();
                self.model.components[c].stopped = false;
            }
        }
    }

    fn check(&self) {
        let stats = self.tracker.stats();
        assert_eq!(stats.len(), NAMES.len());
        for (i, stats) in stats.iter().enumerate() {
            self.model.check(stats, i);
            assert_eq!(*stats, self.components[i].stats());
        }
        assert_eq!(self.tracker.in_flight(), self.model.in_flight.len());

        let expected: Vec<_> = self
            .model
            .in_flight
            .iter()
            .map(|(c, description, since)| {
                (NAMES[*c], description.as_str(), Duration::from_millis(self.model.now - since))
            })
            .collect();
        let running = self.tracker.running();
        let listed: Vec<_> = running.iter().map(|w| (&*w.component, &*w.description, w.age)).collect();
        assert_eq!(listed, expected);

        // A wait with a deadline of zero is a query.
        let idle = pin!(self.tracker.wait_idle(Duration::ZERO)).poll(&mut Context::from_waker(Waker::noop()));
        match idle {
            Poll::Pending => panic!("a wait with a deadline of zero is pending"),
            Poll::Ready(Ok(())) => assert!(expected.is_empty()),
            Poll::Ready(Err(still)) => assert_eq!(still.work, running),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tracker_counts_like_its_model(steps in prop::collection::vec(step(), 1..120)) {
        let mut pair = Pair::new();
        for (number, step) in steps.into_iter().enumerate() {
            pair.apply(number, step);
            pair.check();
        }
    }
}
