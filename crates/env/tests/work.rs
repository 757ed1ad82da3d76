//! Work in flight: counting, refusing and waiting.

use std::fmt;
use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use k1s_env::{ComponentStats, Description, Env, VirtualClock, WorkTracker};

const SECOND: Duration = Duration::from_secs(1);

fn tracker() -> (WorkTracker, VirtualClock) {
    let (env, clock) = Env::simulated(0);
    (WorkTracker::new(env), clock)
}

fn running(tracker: &WorkTracker) -> Vec<String> {
    tracker.running().iter().map(ToString::to_string).collect()
}

/// Started, in flight, succeeded, failed, panicked, refused.
fn counts(stats: &ComponentStats) -> (u64, usize, u64, u64, u64, u64) {
    (stats.started, stats.in_flight, stats.succeeded, stats.failed, stats.panicked, stats.refused)
}

#[test]
fn a_description_is_formatted_only_on_demand() {
    struct Key(&'static str, Arc<AtomicUsize>);
    impl fmt::Debug for Key {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.1.fetch_add(1, Ordering::Relaxed);
            f.write_str(self.0)
        }
    }
    let (tracker, _clock) = tracker();
    let asked = Arc::new(AtomicUsize::new(0));
    let widgets = tracker.component("widgets");
    let work = widgets.begin(Description::debug(Key("default/a", Arc::clone(&asked)))).unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    assert_eq!(running(&tracker), ["widgets default/a (0ms)"]);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    work.succeed();
}

#[test]
fn success_must_be_reported() {
    let (tracker, _clock) = tracker();
    let widgets = tracker.component("widgets");
    widgets.begin("a").unwrap().succeed();
    widgets.begin("b").unwrap().fail();
    drop(widgets.begin("c").unwrap());
    assert_eq!(counts(&widgets.stats()), (3, 0, 1, 2, 0, 0));
}

#[test]
fn a_panic_is_a_failure_and_counted_as_a_panic_too() {
    let (tracker, _clock) = tracker();
    let widgets = tracker.component("widgets");
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _work = widgets.begin("a").unwrap();
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert_eq!(counts(&widgets.stats()), (1, 0, 0, 1, 1, 0));

    // A success reported before the panic counts.
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        widgets.begin("b").unwrap().succeed();
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert_eq!(counts(&widgets.stats()), (2, 0, 1, 1, 1, 0));
}

#[tokio::test]
async fn a_panic_in_a_task_is_counted_and_a_cancelled_task_has_failed() {
    let (env, _clock) = Env::simulated(0);
    let tracker = WorkTracker::new(env.clone());
    let widgets = tracker.component("widgets");
    let work = widgets.begin("a").unwrap();
    let task = env.spawn("a", async move {
        let _work = work;
        panic!("on purpose")
    });
    assert!(task.await.is_err());
    assert_eq!(counts(&widgets.stats()), (1, 0, 0, 1, 1, 0));

    let work = widgets.begin("b").unwrap();
    let task = env.spawn("b", async move {
        let _work = work;
        pending::<()>().await;
    });
    env.yield_now().await;
    task.abort();
    assert!(task.await.is_err());
    assert_eq!(counts(&widgets.stats()), (2, 0, 0, 2, 1, 0));
}

#[test]
fn the_same_name_is_the_same_component() {
    let (tracker, _clock) = tracker();
    let a = tracker.component("widgets");
    let b = tracker.component(&String::from("widgets"));
    let _work = a.begin("x").unwrap();
    assert_eq!(a.stats(), b.stats());
    assert_eq!(b.name(), "widgets");
    let clone = tracker.clone();
    assert_eq!(tracker.stats(), clone.stats());
    assert_eq!(tracker.stats().len(), 1);
    assert_eq!(tracker.component("gadgets").stats().started, 0);
}

#[test]
fn stats_are_sorted_by_name_and_complete() {
    let (tracker, clock) = tracker();
    let widgets = tracker.component("reconcile/widgets");
    let gadgets = tracker.component("reconcile/gadgets");
    let _first = widgets.begin("a").unwrap();
    clock.advance(SECOND * 2);
    let second = widgets.begin("b").unwrap();
    gadgets.begin("c").unwrap().succeed();
    clock.advance(SECOND);
    drop(second);
    gadgets.stop_accepting();
    assert!(gadgets.begin("d").is_err());

    let stats = tracker.stats();
    assert_eq!(
        stats.iter().map(|s| &*s.name).collect::<Vec<_>>(),
        ["reconcile/gadgets", "reconcile/widgets"]
    );
    assert_eq!(counts(&stats[0]), (1, 0, 1, 0, 0, 1));
    assert_eq!((stats[0].peak, stats[0].oldest, stats[0].accepting), (1, None, false));
    assert_eq!(counts(&stats[1]), (2, 1, 0, 1, 0, 0));
    assert_eq!((stats[1].peak, stats[1].oldest, stats[1].accepting), (2, Some(SECOND * 3), true));
    assert_eq!(tracker.in_flight(), 1);
}

#[test]
fn a_stopped_tracker_refuses_in_every_component_until_it_resumes() {
    let (tracker, _clock) = tracker();
    let widgets = tracker.component("widgets");
    let work = widgets.begin("a").unwrap();
    tracker.stop_accepting();
    let refused = widgets.begin("b").unwrap_err();
    assert_eq!(&*refused.component, "widgets");
    assert_eq!(refused.to_string(), "widgets accepts no more work");
    assert!(tracker.component("made later").begin("c").is_err());
    assert_eq!(running(&tracker), ["widgets a (0ms)"], "work in flight continues");
    work.succeed();
    assert_eq!(counts(&widgets.stats()), (1, 0, 1, 0, 0, 1));

    tracker.resume_accepting();
    widgets.begin("d").unwrap().succeed();
    tracker.component("made later").begin("e").unwrap().succeed();
}

#[test]
fn a_stopped_component_does_not_affect_others_and_stays_stopped() {
    let (tracker, _clock) = tracker();
    let (widgets, gadgets) = (tracker.component("widgets"), tracker.component("gadgets"));
    widgets.stop_accepting();
    assert!(widgets.begin("a").is_err());
    gadgets.begin("b").unwrap().succeed();
    tracker.stop_accepting();
    tracker.resume_accepting();
    assert!(widgets.begin("c").is_err());
    widgets.resume_accepting();
    widgets.begin("d").unwrap().succeed();
    assert_eq!(widgets.stats().refused, 2);
}

#[test]
fn running_work_is_listed_oldest_first() {
    let (tracker, clock) = tracker();
    let (widgets, gadgets) = (tracker.component("widgets"), tracker.component("gadgets"));
    let mut works = Vec::new();
    for (component, description) in [(&widgets, "a"), (&gadgets, "b"), (&widgets, "c"), (&widgets, "d")] {
        works.push(component.begin(format!("default/{description}")).unwrap());
        clock.advance(SECOND);
    }
    drop(works.remove(0));
    // Reuses the freed slot.
    works.push(widgets.begin("default/e").unwrap());
    works.push(gadgets.begin("default/f").unwrap());
    clock.advance(Duration::from_millis(250));
    let expected = [
        "gadgets default/b (3.2s)",
        "widgets default/c (2.2s)",
        "widgets default/d (1.2s)",
        "widgets default/e (250ms)",
        "gadgets default/f (250ms)",
    ];
    assert_eq!(running(&tracker), expected);
    let of_gadgets = gadgets.running();
    assert_eq!(of_gadgets.iter().map(|w| &*w.description).collect::<Vec<_>>(), ["default/b", "default/f"]);
}

#[tokio::test]
async fn waiting_while_idle_is_immediate() {
    let (tracker, clock) = tracker();
    tracker.wait_idle_forever().await;
    assert_eq!(tracker.wait_idle(Duration::ZERO).await, Ok(()));
    tracker.component("widgets").begin("a").unwrap().succeed();
    assert_eq!(tracker.wait_idle(SECOND).await, Ok(()));
    assert_eq!(clock.sleepers(), 0);
}

#[tokio::test]
async fn a_deadline_reports_exactly_what_still_runs() {
    let (tracker, clock) = tracker();
    let (widgets, gadgets) = (tracker.component("reconcile/widgets"), tracker.component("reconcile/gadgets"));
    let a = widgets.begin("default/a").unwrap();
    clock.advance(SECOND);
    let b = gadgets.begin("default/b").unwrap();
    let c = widgets.begin("default/c").unwrap();

    let (still, ()) = tokio::join!(tracker.wait_idle(SECOND * 30), async {
        b.succeed(); // in time
        clock.advance(SECOND * 30);
    });
    let still = still.unwrap_err();
    assert_eq!(
        still.to_string(),
        "2 units of work still running after 30s: \
         reconcile/widgets default/a (31.0s), reconcile/widgets default/c (30.0s)"
    );
    assert_eq!(still.after, SECOND * 30);
    assert_eq!(still.work, tracker.running());
    assert_eq!(clock.sleepers(), 0);

    // A component waits for its own units only.
    assert_eq!(gadgets.wait_idle(Duration::ZERO).await, Ok(()));
    assert_eq!(widgets.wait_idle(Duration::ZERO).await.unwrap_err().work.len(), 2);
    drop((a, c));
    assert_eq!(widgets.wait_idle(Duration::ZERO).await, Ok(()));
}

#[tokio::test]
async fn a_deadline_reports_a_single_unit_in_the_singular() {
    let (tracker, _clock) = tracker();
    let _work = tracker.component("widgets").begin("a").unwrap();
    let still = tracker.wait_idle(Duration::ZERO).await.unwrap_err();
    assert_eq!(still.to_string(), "1 unit of work still running after 0ns: widgets a (0ms)");
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn waiting_is_woken_once_by_the_end_of_the_last_unit() {
    let (tracker, _clock) = tracker();
    let (widgets, gadgets) = (tracker.component("widgets"), tracker.component("gadgets"));
    let wakes = [Arc::<Wakes>::default(), Arc::default(), Arc::default()];
    let seen = || wakes.each_ref().map(|w| w.0.load(Ordering::SeqCst));
    let wakers = wakes.clone().map(Waker::from);
    let mut contexts = wakers.each_ref().map(Context::from_waker);

    let works: Vec<_> = (0..3).map(|i| widgets.begin(i.to_string()).unwrap()).collect();
    let other = gadgets.begin("x").unwrap();
    let mut all = pin!(tracker.wait_idle(SECOND));
    let mut for_ever = pin!(tracker.wait_idle_forever());
    let mut component = pin!(widgets.wait_idle(SECOND));
    assert!(all.as_mut().poll(&mut contexts[0]).is_pending());
    assert!(for_ever.as_mut().poll(&mut contexts[1]).is_pending());
    assert!(component.as_mut().poll(&mut contexts[2]).is_pending());

    for work in works {
        assert_eq!(seen(), [0, 0, 0]);
        work.succeed();
    }
    assert_eq!(seen(), [0, 0, 1]);
    other.succeed();
    assert_eq!(seen(), [1, 1, 1]);

    // Units that begin afterwards do not undo it.
    let _more = widgets.begin("more").unwrap();
    assert_eq!(all.as_mut().poll(&mut contexts[0]), Poll::Ready(Ok(())));
    assert_eq!(for_ever.as_mut().poll(&mut contexts[1]), Poll::Ready(()));
    assert_eq!(component.as_mut().poll(&mut contexts[2]), Poll::Ready(Ok(())));
}

#[tokio::test]
async fn waiting_again_waits_for_the_next_idle_state() {
    let (tracker, _clock) = tracker();
    let widgets = tracker.component("widgets");
    widgets.begin("a").unwrap().succeed();
    let work = widgets.begin("b").unwrap();
    let mut waiting = pin!(tracker.wait_idle_forever());
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    work.succeed();
    waiting.await;
}

#[test]
fn a_tracker_may_be_dropped_before_its_work() {
    let (tracker, _clock) = tracker();
    let widgets = tracker.component("widgets");
    let work = widgets.begin("a").unwrap();
    drop(tracker);
    assert_eq!(widgets.stats().in_flight, 1);
    drop(widgets);
    work.succeed();
}
