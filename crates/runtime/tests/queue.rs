//! The guarantees of the queue, one by one.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt as _;
use k1s_env::{Env, VirtualClock};
use k1s_runtime::{
    ObjectKey,
    queue::{
        AddOptions, Cause, CauseEvent, Causes, Fairness, FlowFn, Item, Key, LOW_PRIORITY, Queue,
        QueueOptions, QueueState, RateLimiter,
    },
};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn queue<R: Key>() -> (Queue<R>, Env, VirtualClock) {
    queue_with(QueueOptions::named("test"))
}

fn queue_with<R: Key>(options: QueueOptions<R>) -> (Queue<R>, Env, VirtualClock) {
    let (env, clock) = Env::simulated(1);
    (Queue::new(&env, options), env, clock)
}

fn priority(priority: i32) -> AddOptions {
    AddOptions { priority: Some(priority), ..AddOptions::default() }
}

fn after(after: Duration) -> AddOptions {
    AddOptions { after: Some(after), ..AddOptions::default() }
}

fn because(event: CauseEvent) -> AddOptions {
    AddOptions::because(Cause::new(event))
}

/// Takes all ready keys and completes them immediately.
fn drain<R: Key>(queue: &Queue<R>) -> Vec<R> {
    std::iter::from_fn(|| queue.try_next().map(|item| item.key().clone())).collect()
}

fn state(ready: usize, processing: usize, retrying: usize, delayed: usize) -> QueueState {
    QueueState { ready, processing, retrying, delayed, next_due: None }
}

fn counts<R: Key>(queue: &Queue<R>) -> QueueState {
    QueueState { next_due: None, ..queue.state() }
}

#[test]
fn keys_come_out_by_priority_then_in_insertion_order() {
    let (queue, ..) = queue();
    for (key, at) in [("a", 0), ("b", LOW_PRIORITY), ("c", 7), ("d", 0), ("e", 7), ("f", LOW_PRIORITY)] {
        queue.add_with(priority(at), key);
    }
    assert_eq!(queue.depth(), [(7, 2), (0, 2), (LOW_PRIORITY, 2)]);
    assert_eq!(drain(&queue), ["c", "e", "a", "d", "b", "f"]);
    assert_eq!((queue.depth(), queue.is_empty()), (vec![], true));
}

#[test]
fn a_key_added_many_times_comes_out_once_with_the_highest_priority() {
    let (queue, ..) = queue();
    for at in [LOW_PRIORITY, 3, 0, -1] {
        queue.add_with(priority(at), "a");
    }
    assert_eq!(queue.len(), 1);
    let item = queue.try_next().unwrap();
    assert_eq!((*item.key(), item.priority()), ("a", 3));
    queue.done(item);
    assert!(queue.try_next().is_none());
}

#[test]
fn a_key_added_again_keeps_its_place_and_a_raised_one_goes_to_the_end_of_its_new_priority() {
    let (queue, ..) = queue();
    queue.add_with(priority(LOW_PRIORITY), "raised");
    queue.add("a");
    queue.add("b");
    queue.add("a");
    queue.add("raised");
    queue.add("c");
    assert_eq!(drain(&queue), ["a", "b", "raised", "c"]);
}

#[test]
fn a_key_being_processed_is_not_handed_out_again_until_it_is_done() {
    let (queue, _env, clock) = queue();
    queue.add_with(priority(5), "a");
    let first = queue.try_next().unwrap();
    queue.add_with(AddOptions { priority: Some(LOW_PRIORITY), ..because(CauseEvent::Created) }, "a");
    queue.add_with(AddOptions { priority: Some(-3), ..because(CauseEvent::Updated) }, "a");
    assert!(queue.try_next().is_none());
    assert_eq!((queue.len(), queue.depth(), counts(&queue)), (1, vec![(-3, 1)], state(1, 1, 0, 0)));
    let readded = clock.now();
    clock.advance(SECOND);
    queue.done(first);
    let second = queue.try_next().unwrap();
    assert_eq!(second.priority(), -3, "the priority of the first run is not the second's");
    assert_eq!(second.causes().to_string(), "created; updated");
    assert_eq!(second.queued_at(), readded);
    drop(second);
    assert!(queue.try_next().is_none());
    assert_eq!(counts(&queue), state(0, 0, 0, 0));
}

#[test]
fn a_delayed_key_comes_out_when_it_is_due_and_not_before() {
    let (queue, _env, clock) = queue();
    queue.add_with(after(SECOND), "a");
    assert_eq!((queue.len(), counts(&queue)), (0, state(0, 0, 0, 1)));
    assert_eq!(queue.state().next_due, Some(clock.now() + SECOND));
    clock.advance(SECOND - MS);
    assert!(queue.try_next().is_none());
    clock.advance(MS);
    assert_eq!(counts(&queue), state(1, 0, 0, 0));
    assert_eq!(drain(&queue), ["a"]);
}

#[test]
fn the_earliest_of_several_delays_counts() {
    let (queue, _env, clock) = queue();
    queue.add_with(after(3 * SECOND), "a");
    queue.add_with(after(SECOND), "a");
    queue.add_with(AddOptions { priority: Some(9), ..after(2 * SECOND) }, "a");
    assert_eq!(queue.state().next_due, Some(clock.now() + SECOND));
    clock.advance(SECOND);
    let item = queue.try_next().unwrap();
    assert_eq!(item.priority(), 9);
    drop(item);
    clock.advance(10 * SECOND);
    assert!(queue.try_next().is_none());
}

#[test]
fn a_delayed_add_does_not_delay_a_ready_key_and_an_add_cancels_a_delay() {
    let (queue, _env, clock) = queue();
    queue.add("a");
    queue.add_with(after(SECOND), "a");
    queue.add_with(AddOptions { rate_limited: true, ..AddOptions::default() }, "a");
    queue.add_with(after(SECOND), "b");
    queue.add("b");
    assert_eq!(drain(&queue), ["a", "b"]);
    clock.advance(10 * SECOND);
    assert!(queue.try_next().is_none());
}

#[test]
fn keys_that_become_due_are_ordered_by_due_time() {
    let (queue, _env, clock) = queue();
    queue.add_with(after(3 * SECOND), "third");
    queue.add_with(after(SECOND), "first");
    clock.advance(2 * SECOND);
    // The queue was not read since; still, the first key has been ready for a second.
    queue.add("second");
    clock.advance(2 * SECOND);
    queue.add("fourth");
    assert_eq!(drain(&queue), ["first", "second", "third", "fourth"]);
}

#[test]
fn a_delayed_add_of_a_key_being_processed_waits_for_its_delay_and_the_end_of_the_run() {
    let (queue, _env, clock) = queue();
    for (work, left) in [(SECOND, true), (3 * SECOND, false)] {
        queue.add("a");
        let item = queue.try_next().unwrap();
        queue.add_with(after(2 * SECOND), "a");
        assert_eq!(counts(&queue), state(0, 1, 0, 1));
        clock.advance(work);
        let due = item.queued_at() + 2 * SECOND;
        assert!(queue.try_next().is_none());
        queue.done(item);
        assert_eq!(queue.state().next_due, left.then_some(due));
        assert_eq!(drain(&queue).len(), usize::from(!left));
        clock.advance(SECOND);
        assert_eq!(drain(&queue).len(), usize::from(left));
    }
}

#[tokio::test]
async fn one_step_ends_a_run_and_begins_the_next_even_of_the_same_key() {
    let (queue, env, clock) = queue();
    queue.add("a");
    let a = queue.next().await.unwrap();
    queue.add("a");
    let again = queue.next_after(a).await.unwrap();
    assert_eq!((*again.key(), counts(&queue)), ("a", state(0, 1, 0, 0)));
    // Nothing is ready: the run ends all the same, before the wait for the next key.
    let worker = env.spawn("worker", {
        let queue = queue.clone();
        async move { *queue.next_after(again).await.unwrap().key() }
    });
    clock.settle().await;
    assert_eq!(counts(&queue), state(0, 0, 0, 0));
    queue.add("b");
    assert_eq!(worker.await.unwrap(), "b");
    // An item of another queue is completed in that queue.
    let other = Queue::new(&env, QueueOptions::named("other"));
    other.add("c");
    queue.add("d");
    let d = queue.next_after(other.try_next().unwrap()).await.unwrap();
    assert_eq!((*d.key(), counts(&other), counts(&queue)), ("d", state(0, 0, 0, 0), state(0, 1, 0, 0)));
}

#[tokio::test]
async fn keys_added_together_wake_one_worker_each() {
    let (queue, env, clock) = queue();
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            env.spawn("worker", async move {
                let _item = queue.next().await.unwrap();
                std::future::pending::<()>().await;
            })
        })
        .collect();
    clock.settle().await;
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    clock.settle().await;
    assert_eq!(counts(&queue), state(0, 3, 0, 0), "each has a worker of its own");
    queue.add("d");
    queue.add("e");
    clock.settle().await;
    assert_eq!(counts(&queue), state(1, 4, 0, 0));
    drop(workers);
}

#[tokio::test]
async fn waiting_workers_are_woken_by_adds_and_by_time() {
    let (queue, env, clock) = queue();
    let worker = || {
        let (queue, env) = (queue.clone(), env.clone());
        async move {
            let start = env.now();
            let item = queue.next().await.unwrap();
            (*item.key(), env.now() - start)
        }
    };
    let workers: Vec<_> = (0..4).map(|_| env.spawn("worker", worker())).collect();
    clock.settle().await;
    queue.add_with(after(5 * SECOND), "five");
    clock.settle().await;
    queue.add_with(after(2 * SECOND), "two");
    queue.add_with(after(2 * SECOND), "two again");
    clock.settle().await;
    queue.add("now");
    clock.advance_and_settle(10 * SECOND).await;
    let mut done = Vec::new();
    for worker in workers {
        done.push(worker.await.unwrap());
    }
    done.sort_unstable_by_key(|(key, waited)| (*waited, *key));
    let (two, five) = (2 * SECOND, 5 * SECOND);
    assert_eq!(done, [("now", Duration::ZERO), ("two", two), ("two again", two), ("five", five)]);
    assert_eq!(clock.sleepers(), 0);
}

#[tokio::test]
async fn one_worker_watches_the_clock_for_all_and_is_replaced_when_it_leaves() {
    let (queue, env, clock) = queue();
    let worker = || {
        let queue = queue.clone();
        env.spawn("worker", async move { *queue.next().await.unwrap().key() })
    };
    let workers: Vec<_> = (0..10).map(|_| worker()).collect();
    clock.settle().await;
    assert_eq!(clock.sleepers(), 0, "there is nothing to watch for");
    queue.add_with(after(SECOND), "late");
    clock.settle().await;
    assert_eq!(clock.sleepers(), 1);
    // Seven workers leave with a key and two are cancelled, the one watching the clock among them.
    for key in ["a", "b", "c", "d", "e", "f", "g"] {
        queue.add(key);
        clock.settle().await;
        assert_eq!(clock.sleepers(), 1);
    }
    for worker in workers.iter().filter(|worker| !worker.is_finished()).take(2) {
        worker.abort();
        clock.settle().await;
        assert_eq!(clock.sleepers(), 1);
    }
    clock.advance_and_settle(SECOND).await;
    let mut late = 0;
    for worker in workers {
        late += usize::from(worker.await == Ok("late"));
    }
    assert_eq!((late, clock.sleepers()), (1, 0));
}

#[tokio::test]
async fn keys_seen_due_by_a_query_still_wake_workers() {
    let (queue, env, clock) = queue();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            env.spawn("worker", async move { *queue.next().await.unwrap().key() })
        })
        .collect();
    clock.settle().await;
    for key in ["a", "b", "c"] {
        queue.add_with(after(SECOND), key);
    }
    clock.settle().await;
    clock.advance(SECOND);
    assert_eq!(queue.len(), 3);
    clock.settle().await;
    assert!(workers.iter().all(|worker| worker.is_finished()));
}

#[tokio::test]
async fn a_cancelled_wait_takes_no_key() {
    let (queue, env, clock) = queue();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            env.spawn("worker", async move { *queue.next().await.unwrap().key() })
        })
        .collect();
    clock.settle().await;
    queue.add("a");
    workers[0].abort(); // woken for the key, and cancelled before it could take it
    clock.settle().await;
    let taken = workers[1..].iter().filter(|worker| worker.is_finished()).count();
    assert_eq!((workers[0].is_finished(), taken, queue.len()), (true, 1, 0));
}

#[tokio::test]
async fn a_panic_during_processing_frees_the_key() {
    let (queue, env, _clock) = queue();
    queue.add("a");
    let worker = env.spawn("worker", {
        let queue = queue.clone();
        async move {
            let item = queue.next().await.unwrap();
            queue.add(*item.key());
            panic!("in the middle of it");
        }
    });
    let failed: Result<(), _> = worker.await;
    assert!(failed.is_err());
    assert_eq!(counts(&queue), state(1, 0, 0, 0));
    assert_eq!(drain(&queue), ["a"]);
}

#[test]
fn causes_are_merged_oldest_first_for_each_run() {
    let (queue, _env, clock) = queue();
    let web = || ObjectKey::namespaced("default", "web");
    let cause = |event, rv| AddOptions::because(Cause::object(event, "Deployment.apps", web(), Some(rv)));
    queue.add_with(cause(CauseEvent::Created, "16"), web());
    queue.add_with(AddOptions { after: Some(SECOND), ..cause(CauseEvent::Updated, "17") }, web());
    queue.add(web());
    let item = queue.try_next().unwrap();
    assert_eq!(
        item.causes().to_string(),
        "Deployment.apps default/web created (rv 16); Deployment.apps default/web updated (rv 17)"
    );
    queue.add_with(AddOptions { after: Some(SECOND), ..because(CauseEvent::RequeueAfter) }, web());
    queue.done(item);
    queue.add_with(AddOptions { after: Some(2 * SECOND), ..because(CauseEvent::Resync) }, web());
    clock.advance(SECOND);
    let mut item = queue.try_next().unwrap();
    assert_eq!(item.take_causes().to_string(), "requeue after a delay; resync");
    assert_eq!(item.causes(), &Causes::none());
}

#[test]
fn failures_increase_the_backoff_until_the_key_is_forgotten() {
    let (queue, _env, clock) = queue();
    queue.add("a");
    for (attempt, wait) in [(1, 5), (2, 10), (3, 20)] {
        let item = queue.try_next().unwrap();
        assert_eq!(item.attempt(), attempt);
        queue.add_rate_limited("a");
        queue.done(item);
        assert_eq!((queue.retries(&"a"), counts(&queue)), (attempt, state(0, 0, 1, 0)));
        assert_eq!(queue.state().next_due, Some(clock.now() + wait * MS));
        clock.advance(wait * MS);
    }
    let item = queue.try_next().unwrap();
    queue.forget(&"a");
    assert_eq!((item.attempt(), queue.retries(&"a")), (4, 0));
    queue.add_rate_limited("a");
    queue.done(item);
    assert_eq!(queue.state().next_due, Some(clock.now() + 5 * MS));
}

#[test]
fn the_earlier_of_delay_and_rate_limit_counts_and_a_zero_delay_is_none() {
    let (queue, _env, clock) = queue();
    let both = |delay| AddOptions { rate_limited: true, ..after(delay) };
    queue.add_with(both(MS), "a");
    assert_eq!(queue.state().next_due, Some(clock.now() + MS));
    queue.remove(&"a");
    queue.add_with(both(SECOND), "b");
    assert_eq!(queue.state().next_due, Some(clock.now() + 5 * MS));
    queue.remove(&"b");
    queue.add_with(both(Duration::ZERO), "c");
    assert_eq!(queue.state().next_due, Some(clock.now() + 5 * MS));
    queue.add_with(after(Duration::ZERO), "d");
    assert_eq!(drain(&queue), ["d"]);
}

#[test]
fn a_program_can_bring_its_own_rate_limiter() {
    struct Fixed;
    impl RateLimiter<&'static str> for Fixed {
        fn when(&self, _: &&'static str) -> Duration {
            SECOND
        }
        fn forget(&self, _: &&'static str) {}
        fn retries(&self, key: &&'static str) -> u32 {
            key.len() as u32
        }
    }
    let (queue, _env, clock) =
        queue_with(QueueOptions { rate_limiter: Arc::new(Fixed), ..QueueOptions::named("test") });
    queue.add_rate_limited("abc");
    clock.advance(SECOND);
    assert_eq!(queue.try_next().unwrap().attempt(), 4);
}

/// Number of handouts until ten low-priority keys came out, while high-priority keys arrive faster than they are taken.
fn handouts_until_low_is_done(fairness: Fairness, limit: usize) -> Option<usize> {
    let (queue, ..) = queue_with(QueueOptions { fairness, ..QueueOptions::named("test") });
    for low in 0..10 {
        queue.add_with(priority(LOW_PRIORITY), low);
    }
    let mut low = 0;
    for handouts in 0..limit {
        queue.add(1000 + handouts * 2);
        queue.add(1001 + handouts * 2);
        let item = queue.try_next().unwrap();
        if *item.key() < 1000 {
            assert_eq!(*item.key(), low, "the oldest comes first");
            low += 1;
        }
        if low == 10 {
            return Some(handouts + 1);
        }
    }
    None
}

#[test]
fn low_priority_does_not_starve_under_high_priority_load() {
    let every = |n| Fairness::OldestEvery(NonZeroU32::new(n).unwrap());
    assert_eq!(handouts_until_low_is_done(Fairness::default(), 1000), Some(100));
    assert_eq!(handouts_until_low_is_done(every(3), 1000), Some(30));
    assert_eq!(handouts_until_low_is_done(every(1), 1000), Some(10));
    assert_eq!(handouts_until_low_is_done(Fairness::Strict, 1000), None);
}

/// A queue whose keys are of the flow in their first letter.
fn queue_with_flows(fairness: Fairness) -> Queue<&'static str> {
    let flows: FlowFn<&str> = Arc::new(|key| u64::from(key.as_bytes()[0]));
    queue_with(QueueOptions { fairness, flows: Some(flows), ..QueueOptions::named("test") }).0
}

fn taken(queue: &Queue<&'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| Some(*queue.try_next()?.key())).collect()
}

#[test]
fn flows_of_the_same_priority_take_turns() {
    let queue = queue_with_flows(Fairness::Strict);
    for key in ["a1", "a2", "a3", "a4", "b1", "b2", "c1"] {
        queue.add(key);
    }
    queue.add_with(priority(1), "a0");
    queue.add_with(priority(LOW_PRIORITY), "d1");
    assert_eq!(taken(&queue), ["a0", "a1", "b1", "c1", "a2", "b2", "a3", "a4", "d1"]);
    // A flow that comes while others have their turns waits for one turn of each.
    for key in ["a1", "a2", "a3", "b1", "b2", "b3"] {
        queue.add(key);
    }
    assert_eq!((*queue.try_next().unwrap().key(), *queue.try_next().unwrap().key()), ("a1", "b1"));
    queue.add("c1");
    queue.add("c2");
    assert_eq!(taken(&queue), ["a2", "b2", "c1", "a3", "b3", "c2"]);
    assert!(queue.is_empty() && queue.try_next().is_none());
}

#[test]
fn keys_of_flows_can_be_removed_and_raised() {
    let queue = queue_with_flows(Fairness::Strict);
    for key in ["a1", "a2", "b1", "b2", "c1", "c2"] {
        queue.add(key);
    }
    assert_eq!(queue.retain(|key| !key.starts_with('a')), 2);
    assert!(queue.remove(&"b1"));
    queue.add_with(priority(1), "c2");
    assert_eq!(queue.depth(), [(1, 1), (0, 2)]);
    queue.add("a3");
    assert_eq!(taken(&queue), ["c2", "a3", "b2", "c1"]);
    assert_eq!(queue.len(), 0);
}

#[test]
fn the_oldest_key_of_any_flow_has_its_share() {
    let queue = queue_with_flows(Fairness::OldestEvery(NonZeroU32::new(2).unwrap()));
    for key in ["a1", "a2", "a3", "a4", "b1", "c1"] {
        queue.add(key);
    }
    // Every second handout that passes over the oldest goes to it.
    assert_eq!(taken(&queue), ["a1", "b1", "a2", "c1", "a3", "a4"]);
}

#[test]
fn a_flow_has_at_most_so_many_keys_in_progress() {
    let flows: FlowFn<&str> = Arc::new(|key| u64::from(key.as_bytes()[0]));
    let max_per_flow = NonZeroUsize::new(2);
    let options = QueueOptions { flows: Some(flows), max_per_flow, ..QueueOptions::named("test") };
    let (queue, ..) = queue_with(options);
    for key in ["a1", "a2", "a3", "a4"] {
        queue.add_with(priority(1), key);
    }
    queue.add("b1");
    let taken: Vec<_> = std::iter::from_fn(|| queue.try_next()).collect();
    assert_eq!(taken.iter().map(|item| *item.key()).collect::<Vec<_>>(), ["a1", "a2", "b1"]);
    assert_eq!((queue.len(), queue.state().is_idle()), (2, false));
    // Removed while blocked; and added again while in progress.
    assert!(queue.remove(&"a3"));
    queue.add("a1");
    assert!(queue.try_next().is_none());
    drop(taken);
    let taken: Vec<_> = std::iter::from_fn(|| queue.try_next()).collect();
    assert_eq!(taken.iter().map(|item| *item.key()).collect::<Vec<_>>(), ["a4", "a1"]);
    drop(taken);
    assert!(queue.is_empty() && queue.state().is_idle());
}

#[tokio::test(flavor = "current_thread")]
async fn a_worker_waits_for_a_flow_that_is_at_its_limit() {
    let flows: FlowFn<&str> = Arc::new(|key| u64::from(key.as_bytes()[0]));
    let options = QueueOptions {
        flows: Some(flows),
        max_per_flow: NonZeroUsize::new(1),
        ..QueueOptions::named("test")
    };
    let (queue, ..) = queue_with(options);
    queue.add("a1");
    queue.add("a2");
    let first = queue.try_next().unwrap();
    let mut next = std::pin::pin!(queue.next());
    assert!(next.as_mut().now_or_never().is_none());
    drop(first);
    assert_eq!(next.await.map(|item| *item.key()), Some("a2"));
}

#[test]
fn a_removed_key_is_gone_with_its_failures() {
    let (queue, _env, clock) = queue();
    queue.add("ready");
    queue.add_with(after(SECOND), "delayed");
    queue.add_rate_limited("failed");
    assert!(queue.remove(&"ready") && queue.remove(&"delayed") && queue.remove(&"failed"));
    assert!(!queue.remove(&"ready") && !queue.remove(&"unknown"));
    assert_eq!((queue.state(), queue.retries(&"failed")), (state(0, 0, 0, 0), 0));
    clock.advance(SECOND);
    assert!(queue.try_next().is_none());
}

#[test]
fn removing_a_key_being_processed_drops_pending_adds_but_not_later_ones() {
    let (queue, ..) = queue();
    queue.add("a");
    let item = queue.try_next().unwrap();
    queue.add_with(because(CauseEvent::Created), "a");
    assert!(!item.is_removed());
    assert!(queue.remove(&"a"));
    assert!(!queue.remove(&"a"));
    assert!(item.is_removed());
    assert_eq!(counts(&queue), state(0, 1, 0, 0));
    queue.add_with(because(CauseEvent::Deleted), "a");
    queue.done(item);
    let item = queue.try_next().unwrap();
    assert_eq!((item.causes().to_string().as_str(), item.is_removed()), ("deleted", false));
    drop(item);
    assert!(queue.try_next().is_none());
}

#[test]
fn retain_drops_keys_by_predicate() {
    let (queue, _env, clock) = queue();
    for n in 0..100 {
        queue.add(("east", n));
        queue.add_with(after(SECOND), ("west", n));
        queue.add_with(AddOptions { rate_limited: true, ..priority(n) }, ("north", n));
    }
    let held = queue.try_next().unwrap();
    assert_eq!(*held.key(), ("east", 0));
    queue.add(("east", 0));
    assert_eq!(queue.retain(|(cluster, n)| *cluster == "west" && n % 2 == 0), 250);
    assert!(held.is_removed());
    drop(held);
    assert_eq!(counts(&queue), state(0, 0, 0, 50));
    assert_eq!(queue.retries(&("north", 1)), 0);
    clock.advance(SECOND);
    assert_eq!(drain(&queue), (0..50).map(|n| ("west", 2 * n)).collect::<Vec<_>>());
}

#[tokio::test]
async fn after_a_shutdown_nothing_is_added_or_handed_out() {
    let (queue, env, clock) = queue();
    queue.add("held");
    let held = queue.next().await.unwrap();
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            env.spawn("worker", async move { queue.next().await.is_none() })
        })
        .collect();
    clock.settle().await;
    queue.add("held");
    queue.add_with(after(SECOND), "delayed");
    queue.shut_down();
    assert!(queue.is_shut_down());
    for worker in waiting {
        assert!(worker.await.unwrap());
    }
    queue.add("late");
    assert!(queue.next().await.is_none());
    assert_eq!(queue.state(), state(0, 1, 0, 0));
    drop(held);
    queue.idle().await;
    clock.advance(SECOND);
    assert_eq!(queue.state(), state(0, 0, 0, 0));
    assert!(queue.next().await.is_none());
}

#[tokio::test]
async fn a_drain_hands_out_ready_keys_and_then_ends() {
    let (queue, env, clock) = queue();
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    queue.add_with(after(SECOND), "delayed");
    let a = queue.next().await.unwrap();
    queue.add("a");
    queue.shut_down_with_drain();
    queue.add("late");
    assert_eq!(counts(&queue), state(3, 1, 0, 0));
    assert_eq!(drain(&queue), ["b", "c"]);
    // "a" still has another run; a waiting worker gets it, or `None` after it.
    let worker = || {
        let queue = queue.clone();
        env.spawn("worker", async move { queue.next().await.map(|item| *item.key()) })
    };
    let workers = [worker(), worker()];
    clock.settle().await;
    assert!(workers.iter().all(|worker| !worker.is_finished()));
    drop(a);
    clock.settle().await;
    let [first, second] = workers;
    let mut got = [first.await.unwrap(), second.await.unwrap()];
    got.sort_unstable();
    assert_eq!(got, [None, Some("a")]);
    queue.idle().await;
    assert!(queue.next().await.is_none());
}

#[tokio::test]
async fn the_queue_is_idle_when_only_delayed_keys_are_left() {
    let (queue, env, clock) = queue();
    queue.idle().await;
    queue.add("a");
    queue.add_with(after(3600 * SECOND), "in an hour");
    let idle = env.spawn("observer", {
        let (queue, env) = (queue.clone(), env.clone());
        async move {
            queue.idle().await;
            env.now()
        }
    });
    clock.settle().await;
    let item = queue.next().await.unwrap();
    clock.settle().await;
    assert!(!idle.is_finished(), "a key is being processed");
    queue.add_rate_limited("a");
    queue.done(item);
    clock.settle().await;
    assert!(!idle.is_finished(), "a key is to be retried");
    clock.advance_and_settle(5 * MS).await;
    let item = queue.next().await.unwrap();
    let done = env.now();
    queue.done(item);
    clock.settle().await;
    assert_eq!(idle.await.unwrap(), done);
    assert!(queue.state().is_idle() && !queue.state().is_empty());
}

#[tokio::test]
async fn dropping_the_last_key_makes_the_queue_idle() {
    let ways: [fn(&Queue<&'static str>); 3] = [
        |queue| assert!(queue.remove(&"a")),
        |queue| assert_eq!(queue.retain(|_| false), 1),
        Queue::shut_down,
    ];
    for drop_it in ways {
        let (queue, env, clock) = queue();
        queue.add_rate_limited("a");
        let idle = env.spawn("observer", {
            let queue = queue.clone();
            async move { queue.idle().await }
        });
        clock.settle().await;
        assert!(!idle.is_finished());
        drop_it(&queue);
        clock.settle().await;
        assert!(idle.is_finished());
    }
}

#[test]
fn the_activity_counter_changes_with_every_change_and_with_nothing_else() {
    let (queue, _env, clock) = queue();
    let mut last = queue.activity();
    let mut moved = |what: &str, expected: bool| {
        let now = queue.activity();
        assert_eq!(now != last, expected, "{what}");
        last = now;
    };
    queue.add("a");
    moved("add", true);
    queue.add("a");
    moved("a merged add", true);
    let item: Item<_> = queue.try_next().unwrap();
    moved("handout", true);
    assert!(queue.try_next().is_none());
    let _ = (queue.state(), queue.len(), queue.processing());
    clock.advance(SECOND);
    moved("looking", false);
    drop(item);
    moved("done", true);
    queue.add_after("a", SECOND);
    moved("delayed add", true);
    clock.advance(SECOND);
    moved("due", true);
}

#[test]
fn keys_being_processed_are_listed_longest_running_first() {
    let (queue, _env, clock) = queue();
    let start = clock.now();
    let mut items = Vec::new();
    for key in ["a", "b", "c", "d"] {
        queue.add(key);
        items.push(queue.try_next().unwrap());
        clock.advance(SECOND);
    }
    drop(items.remove(1));
    assert_eq!(queue.processing(), [("a", start), ("c", start + 2 * SECOND), ("d", start + 3 * SECOND)]);
    drop(items);
    assert_eq!(queue.processing(), []);
}

#[test]
fn waiting_keys_are_listed_with_their_due_times() {
    let (queue, env, _clock) = queue();
    let now = env.now();
    queue.add("taken");
    let taken = queue.try_next().unwrap();
    for key in ["a", "b", "taken"] {
        queue.add(key);
    }
    queue.add_rate_limited("failed");
    queue.add_after("later", 2 * SECOND);
    queue.add_after("sooner", SECOND);
    let waiting = queue.waiting(5);
    assert_eq!(waiting.ready, ["a", "b", "taken"], "one waits for its own run to end");
    assert_eq!(waiting.retrying, [("failed", now + 5 * MS)]);
    assert_eq!(waiting.delayed, [("sooner", now + SECOND), ("later", now + 2 * SECOND)]);
    let first = queue.waiting(1);
    assert_eq!((first.ready, first.delayed), (vec!["a"], vec![("sooner", now + SECOND)]));
    assert!(queue.waiting(0).retrying.is_empty());
    queue.done(taken);
}
