//! Time: the virtual clock, the system clock, sleeps and timeouts.

use std::future::{Future, pending, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, SystemTime};

use k1s_env::{Env, Sleep};
use parking_lot::Mutex;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll(sleep: &mut Sleep, wakes: &Arc<Wakes>) -> Poll<()> {
    let waker = Waker::from(Arc::clone(wakes));
    Pin::new(sleep).poll(&mut Context::from_waker(&waker))
}

#[test]
fn virtual_time_stands_still_until_it_is_moved() {
    let (env, clock) = Env::simulated(0);
    let start = env.now();
    assert_eq!(env.now(), start);
    clock.advance(HOUR);
    assert_eq!(env.now() - start, HOUR);
    assert_eq!(clock.now(), env.now());
    clock.advance(Duration::ZERO);
    assert_eq!(env.now() - start, HOUR);
}

#[test]
fn a_sleep_ends_at_its_deadline_and_not_a_nanosecond_before() {
    let (env, clock) = Env::simulated(0);
    let wakes = Arc::default();
    let mut sleep = env.sleep(SECOND);
    assert!(poll(&mut sleep, &wakes).is_pending());
    clock.advance(SECOND - Duration::from_nanos(1));
    assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
    assert!(poll(&mut sleep, &wakes).is_pending());
    clock.advance(Duration::from_nanos(1));
    assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
    assert!(poll(&mut sleep, &wakes).is_ready());
    assert!(poll(&mut sleep, &wakes).is_ready(), "still ready when polled again");
}

#[test]
fn a_sleep_of_zero_or_until_the_past_is_immediate() {
    let (env, clock) = Env::simulated(0);
    let wakes = Arc::default();
    let past = env.now() - HOUR;
    assert!(poll(&mut env.sleep(Duration::ZERO), &wakes).is_ready());
    assert!(poll(&mut env.sleep_until(past), &wakes).is_ready());
    assert_eq!(clock.sleepers(), 0);
}

#[test]
fn a_sleep_is_measured_from_its_creation() {
    let (env, clock) = Env::simulated(0);
    let wakes = Arc::default();
    let mut sleep = env.sleep(SECOND);
    clock.advance(SECOND);
    assert!(poll(&mut sleep, &wakes).is_ready(), "ready at the first poll");
}

#[test]
fn only_the_last_poller_of_a_sleep_is_woken() {
    let (env, clock) = Env::simulated(0);
    let (first, second) = (Arc::default(), Arc::default());
    let mut sleep = env.sleep(SECOND);
    assert!(poll(&mut sleep, &first).is_pending());
    assert!(poll(&mut sleep, &second).is_pending());
    clock.advance(SECOND);
    assert_eq!((first.0.load(Ordering::SeqCst), second.0.load(Ordering::SeqCst)), (0, 1));
}

#[test]
fn a_dropped_sleep_leaves_nothing_behind() {
    let (env, clock) = Env::simulated(0);
    let wakes = Arc::<Wakes>::default();
    let mut sleeps: Vec<_> = (1..=100).map(|i| env.sleep(SECOND * i)).collect();
    for sleep in &mut sleeps[..50] {
        assert!(poll(sleep, &wakes).is_pending());
    }
    assert_eq!(clock.sleepers(), 100);
    assert_eq!(Arc::strong_count(&wakes), 51, "one for each that was polled");
    sleeps.truncate(10);
    assert_eq!(clock.sleepers(), 10);
    drop(sleeps);
    assert_eq!(clock.sleepers(), 0);
    assert_eq!(clock.next_deadline(), None);
    assert_eq!(Arc::strong_count(&wakes), 1);
}

#[test]
fn an_expired_sleep_does_not_count_as_a_sleeper() {
    let (env, clock) = Env::simulated(0);
    let _sleep = env.sleep(SECOND);
    clock.advance(SECOND);
    assert_eq!(clock.sleepers(), 0);
}

/// When woken, records its name and the time.
struct Note {
    name: &'static str,
    env: Env,
    notes: Arc<Mutex<Vec<(&'static str, Duration)>>>,
    start: k1s_env::Instant,
}

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        self.notes.lock().push((self.name, self.env.now() - self.start));
    }
}

#[test]
fn sleepers_wake_in_the_order_of_deadlines_each_at_its_own() {
    let (env, clock) = Env::simulated(0);
    let notes = Arc::default();
    let start = env.now();
    let mut sleeps = Vec::new();
    for (name, seconds) in [("c", 3), ("a", 1), ("d", 5), ("b1", 2), ("b2", 2)] {
        let mut sleep = env.sleep(SECOND * seconds);
        let waker = Waker::from(Arc::new(Note { name, env: env.clone(), notes: Arc::clone(&notes), start }));
        assert!(Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker)).is_pending());
        sleeps.push(sleep);
    }
    clock.advance(SECOND * 4);
    let expected = [("a", SECOND), ("b1", SECOND * 2), ("b2", SECOND * 2), ("c", SECOND * 3)];
    assert_eq!(*notes.lock(), expected);
    assert_eq!(env.now() - start, SECOND * 4);
    assert_eq!(clock.next_deadline(), Some(start + SECOND * 5));
}

#[test]
fn advancing_to_the_next_deadline_goes_there_and_no_further() {
    let (env, clock) = Env::simulated(0);
    let start = env.now();
    let _sleeps = [env.sleep(HOUR), env.sleep(SECOND), env.sleep(SECOND)];
    assert_eq!(clock.next_deadline(), Some(start + SECOND));
    assert!(clock.advance_to_next());
    assert_eq!(env.now() - start, SECOND);
    assert_eq!(clock.sleepers(), 1);
    assert!(clock.advance_to_next());
    assert_eq!(env.now() - start, HOUR);
    assert!(!clock.advance_to_next());
    assert_eq!(env.now() - start, HOUR);
}

#[test]
fn an_infinite_sleep_never_ends_and_has_no_deadline() {
    let (env, clock) = Env::simulated(0);
    let wakes = Arc::default();
    let mut sleep = env.sleep(Duration::MAX);
    assert!(poll(&mut sleep, &wakes).is_pending());
    assert_eq!(clock.next_deadline(), None);
    clock.advance(Duration::MAX);
    assert!(poll(&mut sleep, &wakes).is_pending());
    assert!(poll(&mut Env::system().sleep(Duration::MAX), &wakes).is_pending(), "and needs no runtime");
}

#[test]
fn the_wall_clock_advances_with_the_clock_and_may_jump_alone() {
    let (env, clock) = Env::simulated(0);
    let first = env.wall();
    assert_eq!(first, Env::simulated(1).0.wall(), "the same date in every simulation");
    clock.advance(HOUR);
    assert_eq!(env.wall().duration_since(first).unwrap(), HOUR);

    let now = env.now();
    let _sleep = env.sleep(SECOND);
    clock.set_wall(SystemTime::UNIX_EPOCH);
    assert_eq!(env.wall(), SystemTime::UNIX_EPOCH);
    assert_eq!(env.now(), now);
    assert_eq!(clock.sleepers(), 1);
    clock.advance(SECOND);
    assert_eq!(env.wall(), SystemTime::UNIX_EPOCH + SECOND);
}

#[test]
fn clones_of_the_environment_and_the_clock_share_the_time() {
    let (env, clock) = Env::simulated(0);
    let (env2, clock2) = (env.clone(), clock.clone());
    clock2.advance(SECOND);
    assert_eq!(env2.now(), env.now());
    assert_eq!(clock2.now(), clock.now());
    assert_ne!(Env::simulated(0).0.now(), env.now(), "another simulation has its own time");
}

#[tokio::test]
async fn a_timeout_returns_the_output_of_a_future_that_ends_in_time() {
    let (env, clock) = Env::simulated(0);
    assert_eq!(env.timeout(SECOND, ready(1)).await, Ok(1));
    assert_eq!(env.timeout(Duration::ZERO, ready(1)).await, Ok(1), "a ready future wins");
    assert_eq!(clock.sleepers(), 0);
}

#[tokio::test]
async fn a_timeout_ends_a_slow_future_and_reports_the_duration() {
    let (env, clock) = Env::simulated(0);
    let (elapsed, ()) = tokio::join!(env.timeout(SECOND, pending::<()>()), async { clock.advance(SECOND) });
    assert_eq!(elapsed.unwrap_err().to_string(), "not done within 1s");
    assert_eq!(clock.sleepers(), 0);
}

#[test]
fn a_dropped_timeout_leaves_nothing_behind() {
    let (env, clock) = Env::simulated(0);
    {
        let mut timeout = pin!(env.timeout(SECOND, pending::<()>()));
        assert!(timeout.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(clock.sleepers(), 1);
    }
    assert_eq!(clock.sleepers(), 0);
}

#[test]
fn sleepers_of_many_threads_all_wake_while_the_clock_is_moved() {
    let (env, clock) = Env::simulated(0);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    let tasks: Vec<_> = (0..64u32)
        .map(|i| {
            let env = env.clone();
            let _inside = runtime.enter();
            env.clone().spawn("sleeper", async move {
                for n in 0..50 {
                    let until = env.now() + Duration::from_millis(u64::from((i * 7 + n) % 13));
                    env.sleep_until(until).await;
                    assert!(env.now() >= until);
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for task in tasks {
            while !task.is_finished() {
                clock.advance_to_next();
                std::thread::yield_now();
            }
            task.await.unwrap();
        }
    });
    assert_eq!(clock.sleepers(), 0);
}

#[test]
fn the_system_clock_is_monotonic_and_shared_by_all_environments() {
    let (a, b) = (Env::system(), Env::default());
    let mut last = a.now();
    for _ in 0..1000 {
        for env in [&a, &b] {
            let now = env.now();
            assert!(now >= last);
            last = now;
        }
    }
    assert!(a.wall() > SystemTime::UNIX_EPOCH);
}

// Tokio's clock is paused: it jumps to the next timer when all tasks are idle.
#[tokio::test(start_paused = true)]
async fn sleeps_on_the_system_clock_use_the_runtimes_timers() {
    let env = Env::system();
    let start = env.now();
    env.sleep(HOUR).await;
    assert!(env.now() - start >= HOUR);
    env.sleep_until(start + HOUR * 2).await;
    assert!(env.now() - start >= HOUR * 2);
    env.sleep_until(start).await;
    env.sleep(Duration::ZERO).await;
    assert!(env.now() - start < HOUR * 2 + SECOND);
}

#[tokio::test(start_paused = true)]
async fn timeouts_on_the_system_clock_work_the_same() {
    let env = Env::system();
    assert_eq!(env.timeout(HOUR, ready(1)).await, Ok(1));
    assert_eq!(env.timeout(HOUR, pending::<()>()).await.unwrap_err().after, HOUR);
    let slow = async {
        env.sleep(HOUR).await;
        2
    };
    assert_eq!(env.timeout(HOUR * 2, slow).await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_ends_a_future_that_always_uses_up_its_budget() {
    // It always has work, so the runtime cuts each of its polls short.
    let greedy = async {
        tokio::time::advance(HOUR).await;
        loop {
            tokio::task::consume_budget().await;
        }
    };
    let elapsed: Result<(), _> = Env::system().timeout(HOUR, greedy).await;
    assert!(elapsed.is_err());
}

#[test]
fn a_sleep_on_the_system_clock_may_be_created_outside_of_a_runtime() {
    let sleep = Env::system().sleep(Duration::ZERO);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(sleep);
}
