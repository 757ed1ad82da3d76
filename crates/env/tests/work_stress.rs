//! A tracker under many threads: refusing and counting are atomic.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use k1s_env::{Component, Env, WorkGuard, WorkTracker};
use parking_lot::Mutex;

/// Held by each test: their threads spin, and running them at once would only slow them down.
static ALONE: Mutex<()> = Mutex::new(());

const THREADS: usize = 6;
const ROUNDS: usize = 100;

/// Begins and ends work until `end` is set, holding a few units at a time. When refused, it ends one, so the
/// work in flight drains once the tracker stops.
fn worker(component: &Component, end: &AtomicBool, begun: &AtomicU64) {
    let mut held: VecDeque<WorkGuard> = VecDeque::new();
    while !end.load(Ordering::SeqCst) {
        match component.begin("unit") {
            Ok(guard) => {
                begun.fetch_add(1, Ordering::SeqCst);
                held.push_back(guard);
                if held.len() > 4 {
                    held.pop_front().into_iter().for_each(WorkGuard::succeed);
                }
            }
            Err(_) => {
                held.pop_front().into_iter().for_each(WorkGuard::succeed);
                std::thread::yield_now();
            }
        }
    }
}

struct Stress {
    env: Env,
    tracker: WorkTracker,
    components: [Component; 2],
    end: Arc<AtomicBool>,
    begun: Arc<AtomicU64>,
}

impl Stress {
    fn start() -> Stress {
        let env = Env::system();
        let tracker = WorkTracker::new(env.clone());
        let components = [tracker.component("a"), tracker.component("b")];
        let (end, begun) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        for i in 0..THREADS {
            let component = components[i % 2].clone();
            let (end, begun) = (Arc::clone(&end), Arc::clone(&begun));
            let thread = env.spawn_thread("worker", move || worker(&component, &end, &begun));
            assert!(thread.is_ok());
        }
        Stress { env, tracker, components, end, begun }
    }

    /// Returns after the threads have begun more units.
    fn let_it_run(&self) {
        let before = self.begun.load(Ordering::SeqCst);
        while self.begun.load(Ordering::SeqCst) < before + 50 {
            std::thread::yield_now();
        }
    }

    fn finish(self, runtime: &tokio::runtime::Runtime) {
        self.end.store(true, Ordering::SeqCst);
        runtime.block_on(self.env.tasks_ended());
        let stats = self.tracker.stats();
        assert_eq!(stats.iter().map(|s| s.in_flight).sum::<usize>(), 0);
        let started: u64 = stats.iter().map(|s| s.started).sum();
        assert_eq!(started, self.begun.load(Ordering::SeqCst));
        assert_eq!(started, stats.iter().map(|s| s.succeeded + s.failed).sum());
        assert!(stats.iter().all(|s| s.peak <= THREADS / 2 * 5), "{stats:?}");
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn once_a_tracker_has_stopped_nothing_begins_and_the_work_in_flight_only_shrinks() {
    let _alone = ALONE.lock();
    let (stress, runtime) = (Stress::start(), runtime());
    for _ in 0..ROUNDS {
        stress.let_it_run();
        stress.tracker.stop_accepting();
        let started: u64 = stress.tracker.stats().iter().map(|s| s.started).sum();
        let mut in_flight = stress.tracker.in_flight();
        for _ in 0..100 {
            let now = stress.tracker.in_flight();
            assert!(now <= in_flight, "{now} after {in_flight}");
            in_flight = now;
        }
        runtime.block_on(stress.tracker.wait_idle_forever());
        assert_eq!(stress.tracker.in_flight(), 0, "idle stays idle");
        assert_eq!(stress.tracker.stats().iter().map(|s| s.started).sum::<u64>(), started);
        stress.tracker.resume_accepting();
    }
    stress.finish(&runtime);
}

#[test]
fn once_a_component_has_stopped_its_work_only_shrinks_while_the_other_continues() {
    let _alone = ALONE.lock();
    let (stress, runtime) = (Stress::start(), runtime());
    let [a, b] = stress.components.clone();
    for _ in 0..ROUNDS {
        stress.let_it_run();
        a.stop_accepting();
        let stopped = a.stats();
        let mut in_flight = stopped.in_flight;
        for _ in 0..100 {
            let now = a.stats();
            assert_eq!(now.started, stopped.started);
            assert!(now.in_flight <= in_flight);
            in_flight = now.in_flight;
        }
        runtime.block_on(a.wait_idle_forever());
        assert_eq!(a.stats().in_flight, 0);
        let before = b.stats().started;
        while b.stats().started == before {
            std::thread::yield_now();
        }
        a.resume_accepting();
    }
    stress.finish(&runtime);
}

#[test]
fn every_wait_is_woken_under_any_interleaving() {
    let _alone = ALONE.lock();
    let (env, runtime) = (Env::system(), runtime());
    let tracker = WorkTracker::new(env.clone());
    for _ in 0..500 {
        let unit = tracker.component("a").begin("unit");
        let thread = env.spawn_thread("ender", move || unit.map(WorkGuard::succeed));
        // Races with the end of the unit on the other thread; a lost wake would hang here.
        runtime.block_on(tracker.wait_idle_forever());
        assert_eq!(tracker.in_flight(), 0);
        assert!(matches!(thread.map(|t| t.join()), Ok(Ok(Ok(())))));
    }
}
