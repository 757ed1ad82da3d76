//! Tasks, blocking closures and threads: their results and how they are counted.

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};

use k1s_env::{Env, TaskError};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Both kinds of environment; every test here holds for both.
fn environments() -> [Env; 2] {
    [Env::system(), Env::simulated(0).0]
}

fn counts(env: &Env) -> Vec<(String, usize, usize, usize)> {
    env.tasks().into_iter().map(|t| (t.name.to_string(), t.tasks, t.blocking, t.threads)).collect()
}

/// When dropped, records how many tasks run.
struct Witness {
    env: Env,
    seen: Arc<Mutex<Option<usize>>>,
}

impl Witness {
    fn new(env: &Env) -> (Witness, Arc<Mutex<Option<usize>>>) {
        let seen = Arc::default();
        (Witness { env: env.clone(), seen: Arc::clone(&seen) }, seen)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let running = self.env.tasks().iter().map(|t| t.running()).sum();
        *self.seen.lock() = Some(running);
    }
}

#[tokio::test]
async fn a_task_with_a_result_is_no_longer_counted() {
    for env in environments() {
        let (go, gone) = oneshot::channel::<()>();
        let task = env.spawn("adder", async move {
            gone.await.unwrap();
            1 + 1
        });
        assert_eq!(task.name(), "adder");
        assert!(!task.is_finished());
        assert_eq!(counts(&env), [("adder".to_owned(), 1, 0, 0)]);
        go.send(()).unwrap();
        assert_eq!(task.await, Ok(2));
        assert_eq!(env.tasks(), []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_task_is_counted_after_its_result_on_any_thread() {
    for env in environments() {
        for _ in 0..2000 {
            env.spawn("quick", async {}).await.unwrap();
            assert_eq!(env.tasks(), []);
        }
    }
}

#[tokio::test]
async fn a_dropped_handle_detaches_the_task() {
    for env in environments() {
        let (tell, told) = oneshot::channel();
        drop(env.spawn("detached", async move {
            tell.send("done").unwrap();
        }));
        assert_eq!(told.await, Ok("done"));
        env.tasks_ended().await;
        assert_eq!(env.tasks(), []);
    }
}

#[tokio::test]
async fn a_panic_is_an_error_with_the_task_name_and_the_message() {
    for env in environments() {
        let error = env.spawn("shaky", async { panic!("out of {}", "luck") }).await.unwrap_err();
        assert_eq!(error, TaskError::Panicked { name: "shaky".into(), message: "out of luck".into() });
        assert_eq!(error.to_string(), "task shaky panicked: out of luck");
        let error = env.spawn_blocking("shaky", || panic!("no")).await.unwrap_err();
        assert_eq!(error.to_string(), "task shaky panicked: no");
        let odd = env.spawn("odd", async { std::panic::panic_any(1) }).await.unwrap_err();
        assert_eq!(odd.to_string(), "task odd panicked: (no message)");
        assert_eq!(env.tasks(), []);
    }
}

#[tokio::test]
async fn an_aborted_task_is_cancelled() {
    for env in environments() {
        let task = env.spawn(String::from("stuck"), pending::<()>());
        env.yield_now().await;
        task.abort();
        let error = task.await.unwrap_err();
        assert_eq!(error, TaskError::Cancelled { name: "stuck".into() });
        assert_eq!(error.to_string(), "task stuck was cancelled");
        assert_eq!(env.tasks(), []);
    }
}

#[tokio::test]
async fn aborting_a_finished_task_has_no_effect() {
    for env in environments() {
        let task = env.spawn("done", async { 1 });
        env.tasks_ended().await;
        assert!(task.is_finished());
        task.abort();
        assert_eq!(task.await, Ok(1));
    }
}

#[tokio::test]
async fn everything_a_task_holds_is_dropped_before_it_counts_as_ended() {
    for env in environments() {
        // It ends normally.
        let (witness, seen) = Witness::new(&env);
        env.spawn("a", async move { drop(witness) }).await.unwrap();
        assert_eq!(*seen.lock(), Some(1));

        // It panics.
        let (witness, seen) = Witness::new(&env);
        let panicking = async move {
            let _witness = witness;
            panic!("on purpose")
        };
        env.spawn("a", panicking).await.unwrap_err();
        assert_eq!(*seen.lock(), Some(1));

        // It is aborted while it waits.
        let (witness, seen) = Witness::new(&env);
        let task = env.spawn("a", async move {
            let _witness = witness;
            pending::<()>().await;
        });
        env.yield_now().await;
        task.abort();
        task.await.unwrap_err();
        assert_eq!(*seen.lock(), Some(1));

        // It is aborted before its first poll.
        let (witness, seen) = Witness::new(&env);
        let task = env.spawn("a", async move { drop(witness) });
        task.abort();
        task.await.unwrap_err();
        assert_eq!(*seen.lock(), Some(1));

        // Blocking closures and threads.
        let (witness, seen) = Witness::new(&env);
        env.spawn_blocking("a", move || drop(witness)).await.unwrap();
        assert_eq!(*seen.lock(), Some(1));
        let (witness, seen) = Witness::new(&env);
        env.spawn_thread("a", move || drop(witness)).unwrap().join().unwrap();
        assert_eq!(*seen.lock(), Some(1));
    }
}

#[test]
fn a_runtime_that_shuts_down_cancels_its_tasks() {
    for env in environments() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (witness, seen) = Witness::new(&env);
        let inside = runtime.enter();
        let task = env.spawn("stuck", async move {
            let _witness = witness;
            pending::<()>().await;
        });
        drop(inside);
        drop(runtime);
        assert_eq!(*seen.lock(), Some(1));
        assert!(task.is_finished());
        assert_eq!(env.tasks(), []);
        let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(other.block_on(task), Err(TaskError::Cancelled { name: "stuck".into() }));
    }
}

#[tokio::test]
async fn everything_that_runs_is_listed_by_name() {
    for env in environments() {
        let (stop_thread, stopped) = mpsc::channel::<()>();
        let (stop_blocking, stopped_too) = mpsc::channel::<()>();
        let thread = env.spawn_thread("writer", move || stopped.recv().is_err()).unwrap();
        let blocking = env.spawn_blocking("writer", move || stopped_too.recv().is_err());
        let tasks: Vec<_> = (0..3).map(|i| env.spawn(format!("conn/{}", i % 2), pending::<()>())).collect();
        assert_eq!(
            counts(&env),
            [("conn/0".to_owned(), 2, 0, 0), ("conn/1".to_owned(), 1, 0, 0), ("writer".to_owned(), 0, 1, 1)]
        );
        assert_eq!(env.tasks()[2].running(), 2);
        assert_eq!(Env::system().tasks(), [], "another environment does not see them");

        for task in &tasks {
            task.abort();
        }
        drop((stop_thread, stop_blocking));
        assert_eq!(blocking.await, Ok(true));
        assert!(thread.join().unwrap());
        env.tasks_ended().await;
        assert_eq!(env.tasks(), []);
    }
}

#[test]
fn a_thread_has_its_name_and_its_panic_ends_its_count() {
    for env in environments() {
        let name = env
            .spawn_thread("committer", || std::thread::current().name().map(str::to_owned))
            .unwrap()
            .join()
            .unwrap();
        assert_eq!(name.as_deref(), Some("committer"));
        env.spawn_thread("shaky", || panic!("on purpose")).unwrap().join().unwrap_err();
        assert_eq!(env.tasks(), []);
    }
}

#[test]
fn a_thread_name_with_a_zero_byte_is_an_error() {
    let env = Env::system();
    let error = env.spawn_thread("a\0b", || ()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert_eq!(env.tasks(), []);
}

/// Counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn waiting_for_the_end_of_tasks_is_woken_once_by_the_last() {
    for env in environments() {
        let tasks: Vec<_> = (0..3).map(|_| env.spawn("stuck", pending::<()>())).collect();
        let wakes = Arc::<Wakes>::default();
        let waker = Waker::from(Arc::clone(&wakes));
        let mut ended = pin!(env.tasks_ended());
        assert!(ended.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        for (i, task) in tasks.into_iter().enumerate() {
            assert_eq!(wakes.0.load(Ordering::SeqCst), 0, "after {i}");
            task.abort();
            task.await.unwrap_err();
        }
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
        // A task started meanwhile does not undo it.
        let another = env.spawn("late", pending::<()>());
        assert!(ended.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
        another.abort();
    }
}

#[tokio::test]
async fn waiting_for_no_tasks_is_immediate() {
    for env in environments() {
        env.tasks_ended().await;
    }
}

#[test]
#[should_panic(expected = "must be called from the context of a Tokio 1.x runtime")]
fn a_task_needs_a_runtime() {
    drop(Env::system().spawn("homeless", async {}));
}

/// On a single-threaded runtime, where a busy future would block all other tasks.
#[tokio::test]
async fn a_future_driven_apart_does_not_block_other_tasks() {
    let env = Env::system();
    let (go, wait) = std::sync::mpsc::channel::<u32>();
    let (tell, mut told) = tokio::sync::mpsc::channel(1);
    let busy = env.spawn("caller", {
        let env = env.clone();
        async move {
            let work = async move {
                tell.send(()).await.unwrap();
                // Blocks its thread until another task sends.
                wait.recv().unwrap() + 1
            };
            env.drive_apart("busy", work).await
        }
    });
    told.recv().await.unwrap();
    assert_eq!(env.tasks().iter().map(|task| task.blocking).sum::<usize>(), 1);
    go.send(41).unwrap();
    assert_eq!(busy.await.unwrap(), Ok(42));
    let error = env.drive_apart("shaky", async { panic!("no") }).await;
    let error: TaskError = error.map(|(): ()| ()).unwrap_err();
    assert_eq!(error.to_string(), "task shaky panicked: no");
}

#[tokio::test]
async fn a_simulation_drives_a_future_apart_in_the_callers_task() {
    let (env, clock) = Env::simulated(1);
    let task = env.spawn("caller", {
        let env = env.clone();
        async move {
            let inner = env.clone();
            env.drive_apart("sleepy", async move { inner.sleep(std::time::Duration::from_secs(9)).await })
                .await
        }
    });
    clock.advance_and_settle(std::time::Duration::from_secs(9)).await;
    assert!(task.is_finished());
}

#[tokio::test]
async fn a_scope_counts_its_own_tasks_and_its_environment_counts_them_too() {
    let env = Env::system();
    let (one, other) = (env.scope(), env.scope());
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let inside = one.spawn("inside", async move { drop(ended.await) });
    let (release, released) = tokio::sync::oneshot::channel::<()>();
    let outside = env.spawn("outside", async move { drop(released.await) });
    let names = |env: &Env| env.tasks().iter().map(|task| task.name.to_string()).collect::<Vec<_>>();
    assert_eq!(
        (names(&env), names(&one), names(&other)),
        (vec!["inside".to_owned(), "outside".to_owned()], vec!["inside".to_owned()], vec![])
    );
    other.tasks_ended().await;
    drop(end);
    one.tasks_ended().await;
    inside.await.unwrap();
    assert_eq!(names(&env), ["outside"]);
    drop(release);
    outside.await.unwrap();
    env.tasks_ended().await;
}
