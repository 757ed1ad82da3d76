//! Simulated tasks: whether all have done what they could, and time that waits for it.

use std::sync::{Arc, mpsc as std_mpsc};
use std::time::Duration;

use k1s_env::{Env, Task};
use parking_lot::Mutex;
use tokio::sync::mpsc;

const SECOND: Duration = Duration::from_secs(1);

/// A chain of tasks that pass on what they get, and what arrives at its end.
fn chain(env: &Env, links: usize) -> (mpsc::UnboundedSender<u32>, Arc<Mutex<Vec<u32>>>) {
    let (first, mut from) = mpsc::unbounded_channel();
    for _ in 0..links {
        let (to, next) = mpsc::unbounded_channel();
        let mut here = std::mem::replace(&mut from, next);
        drop(env.spawn("link", async move {
            while let Some(x) = here.recv().await {
                if to.send(x).is_err() {
                    break;
                }
            }
        }));
    }
    let arrived = Arc::<Mutex<Vec<u32>>>::default();
    let end = Arc::clone(&arrived);
    drop(env.spawn("end", async move {
        while let Some(x) = from.recv().await {
            end.lock().push(x);
        }
    }));
    (first, arrived)
}

#[tokio::test]
async fn settling_with_no_tasks_is_over_at_once() {
    let (_env, clock) = Env::simulated(0);
    clock.settle().await;
}

#[tokio::test]
async fn settling_waits_for_all_that_follows_from_a_message() {
    let (env, clock) = Env::simulated(0);
    let (first, arrived) = chain(&env, 100);
    for i in 0..100 {
        first.send(i).unwrap();
        assert!(arrived.lock().len() <= i as usize);
        clock.settle().await;
        assert_eq!(arrived.lock().len(), i as usize + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn settling_waits_for_it_on_many_threads_too() {
    let (env, clock) = Env::simulated(0);
    let (first, arrived) = chain(&env, 5);
    for i in 0..5000 {
        first.send(i).unwrap();
        clock.settle().await;
        assert_eq!(arrived.lock().len(), i as usize + 1);
    }
    drop(first);
    clock.settle().await;
    assert_eq!(env.tasks(), []);
}

fn nested(env: Env, depth: u32) -> Task<u32> {
    env.clone().spawn("nested", async move {
        if depth == 0 { 0 } else { nested(env, depth - 1).await.map_or(u32::MAX, |n| n + 1) }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn settling_waits_for_those_who_await_a_task() {
    let (env, clock) = Env::simulated(0);
    for _ in 0..1000 {
        let task = nested(env.clone(), 8);
        clock.settle().await;
        assert!(task.is_finished());
        assert_eq!(task.await, Ok(8));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn settling_waits_for_blocking_closures_and_what_follows_from_them() {
    let (env, clock) = Env::simulated(0);
    for _ in 0..500 {
        let env2 = env.clone();
        let task = env.spawn("outer", async move { env2.spawn_blocking("inner", || 1).await.unwrap() + 1 });
        clock.settle().await;
        assert!(task.is_finished());
    }
}

#[tokio::test]
async fn settling_waits_for_a_blocking_closure_to_return() {
    let (env, clock) = Env::simulated(0);
    let (go, gone) = std_mpsc::channel::<()>();
    let blocking = env.spawn_blocking("slow", move || gone.recv());
    // In a task of another environment, which this one does not count.
    let settled = Env::system().spawn("settle", {
        let clock = clock.clone();
        async move { clock.settle().await }
    });
    env.yield_now().await;
    assert!(!settled.is_finished());
    go.send(()).unwrap();
    settled.await.unwrap();
    assert!(blocking.is_finished());
}

#[tokio::test]
async fn settling_does_not_mistake_a_task_that_yields_or_has_much_to_do_for_one_that_waits() {
    let (env, clock) = Env::simulated(0);
    let yielding = env.spawn("yielding", {
        let env = env.clone();
        async move {
            for _ in 0..100 {
                env.yield_now().await;
            }
        }
    });
    clock.settle().await;
    assert!(yielding.is_finished());

    // More than the runtime allows in one turn.
    let (send, mut receive) = mpsc::unbounded_channel();
    for i in 0..10_000 {
        send.send(i).unwrap();
    }
    drop(send);
    let busy = env.spawn("busy", async move { while receive.recv().await.is_some() {} });
    clock.settle().await;
    assert!(busy.is_finished());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn settling_waits_for_an_abort_to_take_effect() {
    let (env, clock) = Env::simulated(0);
    for i in 0..5000 {
        let task = env.spawn("stuck", std::future::pending::<()>());
        if i % 2 == 0 {
            clock.settle().await;
            assert!(!task.is_finished());
        }
        task.abort();
        clock.settle().await;
        assert!(task.is_finished());
    }
    assert_eq!(env.tasks(), []);
}

#[tokio::test]
async fn settling_waits_for_what_follows_from_a_panic() {
    let (env, clock) = Env::simulated(0);
    let shaky = env.spawn("shaky", async { panic!("on purpose") });
    let waiting = env.spawn("waiting", async move { shaky.await.is_err() });
    clock.settle().await;
    assert!(waiting.is_finished());
    assert_eq!(waiting.await, Ok(true));
}

#[tokio::test]
async fn settling_may_be_awaited_in_a_task_of_the_same_environment() {
    let (env, clock) = Env::simulated(0);
    let (first, arrived) = chain(&env, 10);
    let driver = env.spawn("driver", async move {
        for i in 0..10 {
            first.send(i).unwrap();
            clock.settle().await;
            assert_eq!(arrived.lock().len(), i as usize + 1);
        }
    });
    driver.await.unwrap();
    env.tasks_ended().await;
}

#[tokio::test]
async fn a_wake_after_the_end_of_a_task_is_no_work() {
    let (env, clock) = Env::simulated(0);
    let keep = Arc::new(Mutex::new(None));
    let task = env.spawn("short", {
        let keep = Arc::clone(&keep);
        std::future::poll_fn(move |cx| {
            *keep.lock() = Some(cx.waker().clone());
            std::task::Poll::Ready(())
        })
    });
    task.await.unwrap();
    keep.lock().take().unwrap().wake();
    clock.settle().await;
}

#[tokio::test]
async fn each_sleeper_runs_at_its_own_deadline() {
    let (env, clock) = Env::simulated(0);
    let start = env.now();
    let seen = Arc::<Mutex<Vec<(char, u64)>>>::default();
    for (who, seconds, times) in [('a', 3, 4), ('b', 5, 2)] {
        let (env, seen) = (env.clone(), Arc::clone(&seen));
        drop(env.clone().spawn("ticker", async move {
            for _ in 0..times {
                env.sleep(SECOND * seconds).await;
                seen.lock().push((who, (env.now() - start).as_secs()));
            }
        }));
    }
    clock.advance_and_settle(SECOND * 11).await;
    assert_eq!(*seen.lock(), [('a', 3), ('b', 5), ('a', 6), ('a', 9), ('b', 10)]);
    assert_eq!(env.now() - start, SECOND * 11);
    assert_eq!(clock.next_deadline(), Some(start + SECOND * 12));
    clock.advance_and_settle(SECOND).await;
    assert_eq!(env.tasks(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sleeps_that_follow_from_sleeps_happen_within_one_advance_on_many_threads() {
    let (env, clock) = Env::simulated(0);
    let start = env.now();
    let (tell, mut told) = mpsc::unbounded_channel();
    for i in 0..20u64 {
        let (env, tell) = (env.clone(), tell.clone());
        drop(env.clone().spawn("sleeper", async move {
            for n in 1..=20u64 {
                let before = env.now();
                let nap = Duration::from_millis(1 + (i * n) % 7);
                env.sleep(nap).await;
                assert_eq!(env.now() - before, nap, "not a moment late");
            }
            tell.send(env.now() - start).unwrap();
        }));
    }
    drop(tell);
    clock.advance_and_settle(Duration::from_millis(20 * 7)).await;
    assert_eq!(env.tasks(), []);
    let mut count = 0;
    while let Some(took) = told.recv().await {
        assert!(took <= Duration::from_millis(20 * 7));
        count += 1;
    }
    assert_eq!(count, 20, "no task panicked");
}

#[test]
fn a_runtime_that_is_dropped_leaves_nothing_to_settle() {
    let (env, clock) = Env::simulated(0);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    {
        let _inside = runtime.enter();
        for _ in 0..100 {
            let env2 = env.clone();
            drop(env.spawn("sleeper", async move {
                loop {
                    env2.sleep(SECOND).await;
                }
            }));
        }
    }
    clock.advance(SECOND);
    drop(runtime);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(clock.settle());
    assert_eq!(clock.sleepers(), 0);
    assert_eq!(env.tasks(), []);
}
