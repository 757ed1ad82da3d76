//! Simulated tasks: settling, advancing the clock step by step, and detecting stalls.

use std::ops::ControlFlow;
use std::sync::{Arc, mpsc as std_mpsc};
use std::time::Duration;

use k1s_env::{Env, OutsideWork, Stall, Task};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

const SECOND: Duration = Duration::from_secs(1);

/// A chain of tasks that forward messages, and the messages received at its end.
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
async fn settling_without_tasks_is_immediate() {
    let (_env, clock) = Env::simulated(0);
    clock.settle().await;
}

#[tokio::test]
async fn settling_waits_for_all_effects_of_a_message() {
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
async fn settling_waits_for_all_effects_of_a_message_on_many_threads() {
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
async fn settling_waits_for_tasks_that_await_a_task() {
    let (env, clock) = Env::simulated(0);
    for _ in 0..1000 {
        let task = nested(env.clone(), 8);
        clock.settle().await;
        assert!(task.is_finished());
        assert_eq!(task.await, Ok(8));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn settling_waits_for_blocking_closures_and_their_effects() {
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
    // In a task of another environment, which does not count in this one.
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
async fn a_task_that_yields_or_uses_up_its_budget_is_not_settled() {
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

    // More than the runtime's coop budget allows in one poll.
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
async fn settling_waits_for_the_effects_of_a_panic() {
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
async fn a_wake_after_the_end_of_a_task_is_ignored() {
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
async fn consecutive_sleeps_end_within_one_advance_on_many_threads() {
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
                assert_eq!(env.now() - before, nap, "exactly on time");
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
fn a_dropped_runtime_leaves_nothing_to_settle() {
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

#[tokio::test]
async fn settling_waits_for_work_handed_to_a_thread() {
    let (env, clock) = Env::simulated(0);
    let began = clock.now();
    let (give, work) = std_mpsc::channel::<(OutsideWork, oneshot::Sender<u32>)>();
    let (go, gone) = std_mpsc::channel::<()>();
    let thread = env
        .spawn_thread("writer", move || {
            while let Ok((work, answer)) = work.recv() {
                gone.recv().unwrap();
                answer.send(1).unwrap();
                drop(work);
            }
        })
        .unwrap();
    let asking = env.spawn("asking", {
        let (env, give) = (env.clone(), give.clone());
        async move {
            for _ in 0..3 {
                let (answer, answered) = oneshot::channel();
                give.send((env.outside_work(), answer)).unwrap();
                answered.await.unwrap();
                env.sleep(SECOND).await;
            }
        }
    });
    drop(give);
    let moving = Env::system().spawn("moving", {
        let clock = clock.clone();
        async move { clock.advance_and_settle(10 * SECOND).await }
    });
    for seconds in 0..3 {
        env.yield_now().await;
        assert!(!moving.is_finished());
        assert!(clock.now() <= began + seconds * SECOND, "time passes while a thread works");
        go.send(()).unwrap();
    }
    moving.await.unwrap();
    assert!(asking.is_finished());
    thread.join().unwrap();
    // It costs nothing outside of a simulation.
    drop(Env::system().outside_work());
}

/// A foreign task that echoes every request.
fn echo() -> mpsc::UnboundedSender<(u32, oneshot::Sender<u32>)> {
    let (ask, mut asked) = mpsc::unbounded_channel::<(u32, oneshot::Sender<u32>)>();
    drop(Env::system().spawn("echo", async move {
        while let Some((number, answer)) = asked.recv().await {
            let _ = answer.send(number);
        }
    }));
    ask
}

async fn settles_over_an_echo(rounds: u32) {
    let (env, clock) = Env::simulated(0);
    let ask = echo();
    for _ in 0..rounds {
        let ask = ask.clone();
        let asking = env.spawn("asking", async move {
            for number in 0..20 {
                let (answer, answered) = oneshot::channel();
                assert!(ask.send((number, answer)).is_ok());
                assert_eq!(answered.await, Ok(number));
            }
        });
        clock.settle().await;
        assert!(asking.is_finished());
    }
}

#[tokio::test]
async fn settling_waits_for_tasks_that_communicate_through_a_foreign_task() {
    settles_over_an_echo(100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn settling_waits_for_tasks_that_communicate_through_a_foreign_task_on_many_threads() {
    settles_over_an_echo(200).await;
}

#[tokio::test]
async fn a_wait_on_a_stopped_clock_is_reported_as_a_stall() {
    let (env, clock) = Env::simulated(0);
    let after = Duration::from_millis(10);
    let waited = env.watch_stalls(after, || 0, |_| ControlFlow::Break(()), env.sleep(SECOND)).await;
    assert_eq!(waited, Err(Stall::Still { after }));

    // If told to continue, it reports again at doubling intervals, and ends when the clock moves.
    let (mut reports, mut now) = (Vec::new(), clock.now());
    let stalled = |stall| {
        reports.push(stall);
        if reports.len() == 3 {
            clock.advance(SECOND);
            now = clock.now();
        }
        ControlFlow::Continue(())
    };
    env.watch_stalls(after, || 0, stalled, env.sleep(SECOND)).await.unwrap();
    assert_eq!(reports, [1, 2, 4].map(|times| Stall::Still { after: times * after }));
    assert_eq!(env.now(), now);

    // On the system clock, time passes.
    let system = Env::system();
    let stalled = |_| ControlFlow::Break(());
    system.watch_stalls(Duration::ZERO, || 0, stalled, system.sleep(after)).await.unwrap();
}

#[tokio::test]
async fn a_wait_for_an_outside_event_reports_the_time_it_missed() {
    let (env, clock) = Env::simulated(0);
    let reports = Arc::<Mutex<Vec<Stall>>>::default();
    let watched = |f: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>| {
        let (task, reports) = (env.clone(), reports.clone());
        env.spawn("watched", async move {
            let stalled = |stall| {
                reports.lock().push(stall);
                ControlFlow::Continue(())
            };
            task.watch_stalls(Duration::from_secs(600), || 0, stalled, f).await.unwrap();
        })
    };
    // Woken by the clock or by another task of the environment: not overtaken.
    let (tell, told) = oneshot::channel::<()>();
    let asleep = watched(Box::pin(env.sleep(60 * SECOND)));
    let beside = watched(Box::pin(async { told.await.unwrap() }));
    let telling = env.spawn("telling", {
        let env = env.clone();
        async move {
            env.sleep(60 * SECOND).await;
            tell.send(()).unwrap();
        }
    });
    clock.advance_and_settle(60 * SECOND).await;
    assert!(asleep.is_finished() && beside.is_finished() && telling.is_finished());
    assert_eq!(*reports.lock(), []);
    // Woken from outside of the environment.
    let (tell, told) = oneshot::channel::<()>();
    let outside = watched(Box::pin(async { told.await.unwrap() }));
    clock.advance_and_settle(60 * SECOND).await;
    tell.send(()).unwrap();
    outside.await.unwrap();
    assert_eq!(*reports.lock(), [Stall::Overtaken { missed: 60 * SECOND }]);
}

#[tokio::test]
async fn a_real_time_timeout_holds_while_the_clock_stands_still() {
    let (env, _clock) = Env::simulated(0);
    let elapsed = env.timeout_in_real_time(Duration::from_millis(1), env.sleep(SECOND)).await;
    assert_eq!(elapsed.unwrap_err().after, Duration::from_millis(1));
}

#[test]
fn stalls_are_noticed_without_the_timers_of_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (env, _clock) = Env::simulated(0);
    let after = Duration::from_millis(10);
    let stalled = |_| ControlFlow::Break(());
    let waited = runtime.block_on(env.watch_stalls(after, || 0, stalled, env.sleep(SECOND)));
    assert_eq!(waited, Err(Stall::Still { after }));
}
