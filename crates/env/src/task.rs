//! Tasks, blocking closures and threads: spawned, named, counted, awaited.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use tokio::sync::oneshot;
use tokio::task::{AbortHandle, unconstrained};

use crate::activity::{Activity, Busy, ProbeOwner, TaskProbe};
use crate::registry::{Counted, Name};

/// A spawned task or blocking closure; await it for its result.
///
/// Dropping it detaches: the task continues, and its result is dropped. By the time the result is available,
/// the task's future has been dropped and [`Env::tasks`](crate::Env::tasks) no longer counts it.
pub struct Task<T> {
    name: Name,
    result: oneshot::Receiver<Result<T, TaskError>>,
    abort: AbortHandle,
    probe: Option<Arc<TaskProbe>>,
}

/// Why a task has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// It was aborted, or the runtime it ran on was shut down.
    #[error("task {name} was cancelled")]
    Cancelled {
        /// The name it was started with.
        name: Cow<'static, str>,
    },
    /// It panicked.
    #[error("task {name} panicked: {message}")]
    Panicked {
        /// The name it was started with.
        name: Cow<'static, str>,
        /// The panic's message.
        message: String,
    },
}

impl<T> Task<T> {
    /// The name it was started with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Cancels the task at its next await point; awaiting it then returns [`TaskError::Cancelled`], unless it
    /// completed first. A blocking closure that has started runs to its end.
    pub fn abort(&self) {
        if let Some(probe) = &self.probe {
            probe.mark_aborted();
        }
        self.abort.abort();
    }

    /// Whether it has ended and awaiting it will not wait.
    pub fn is_finished(&self) -> bool {
        !self.result.is_empty() || self.result.is_terminated()
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, TaskError>;

    /// # Panics
    /// If polled again after returning its result.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.result).poll(cx).map(|received| match received {
            Ok(result) => result,
            // `Delivery` always sends, even when dropped; without a result the task is gone anyway.
            Err(_) => Err(TaskError::Cancelled { name: self.name.clone() }),
        })
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("name", &self.name).field("finished", &self.is_finished()).finish()
    }
}

/// Sends the result to the [`Task`]. Dropped without a result, it reports a cancelled task.
struct Delivery<T> {
    name: Name,
    to: Option<oneshot::Sender<Result<T, TaskError>>>,
}

impl<T> Delivery<T> {
    fn new(name: Name) -> (Delivery<T>, oneshot::Receiver<Result<T, TaskError>>) {
        let (to, from) = oneshot::channel();
        (Delivery { name, to: Some(to) }, from)
    }

    fn deliver(mut self, outcome: std::thread::Result<T>) {
        let name = std::mem::take(&mut self.name);
        let result = outcome
            .map_err(|panic| TaskError::Panicked { name, message: panic_message(panic.as_ref()).to_owned() });
        if let Some(to) = self.to.take() {
            let _ = to.send(result); // the receiver is gone if the task is detached
        }
    }
}

impl<T> Drop for Delivery<T> {
    fn drop(&mut self) {
        if let Some(to) = self.to.take() {
            let _ = to.send(Err(TaskError::Cancelled { name: std::mem::take(&mut self.name) }));
        }
    }
}

/// Polls, and turns a panic into a result. It is caught here, not by the runtime, so that it is delivered
/// like any other result; a future that panicked is not polled again.
fn poll_caught<F: Future>(work: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<std::thread::Result<F::Output>> {
    match catch_unwind(AssertUnwindSafe(|| work.poll(cx))) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}

/// A task's work and everything notified of its end.
///
/// Fields are dropped in this order when the task is cancelled before its first poll, and [`Running::run`]
/// follows the same order otherwise: first the work and all it holds, then the count (so "nothing runs" means
/// that all is released), then the result (so a task with a result is no longer counted), then the
/// simulation's busy mark (so any task woken by the result is busy before this one is idle).
struct Running<W, T, B> {
    work: W,
    counted: Counted,
    delivery: Delivery<T>,
    busy: B,
}

impl<F: Future> Running<F, F::Output, Option<ProbeOwner>> {
    async fn run(self) {
        // Locals are dropped last to first.
        let busy = self.busy;
        let delivery = self.delivery;
        let counted = self.counted;
        let outcome = {
            let mut work = pin!(self.work);
            poll_fn(|cx| match &busy {
                // The runtime defers a task that has exhausted its coop budget and wakes it later. Until then
                // a simulation would take it for waiting, so there the budget does not apply.
                Some(ProbeOwner(probe)) => {
                    probe.poll(cx, |cx| poll_caught(pin!(unconstrained(work.as_mut())), cx))
                }
                None => poll_caught(work.as_mut(), cx),
            })
            .await
        };
        drop(counted);
        delivery.deliver(outcome);
        drop(busy);
    }
}

impl<W: FnOnce() -> T, T> Running<W, T, Option<Busy>> {
    fn run(self) {
        let Running { work, counted, delivery, busy } = self;
        let outcome = catch_unwind(AssertUnwindSafe(work));
        drop(counted);
        delivery.deliver(outcome);
        drop(busy);
    }
}

/// # Panics
/// Outside of a tokio runtime.
#[expect(clippy::disallowed_methods, reason = "only this crate spawns tokio tasks")]
pub(crate) fn spawn<F>(
    name: Name,
    counted: Counted,
    activity: Option<&Arc<Activity>>,
    work: F,
) -> Task<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let probe = activity.map(TaskProbe::spawned);
    let (delivery, result) = Delivery::new(name.clone());
    let running = Running { work, counted, delivery, busy: probe.clone().map(ProbeOwner) };
    let abort = tokio::spawn(running.run()).abort_handle();
    Task { name, result, abort, probe }
}

/// # Panics
/// Outside of a tokio runtime.
#[expect(clippy::disallowed_methods, reason = "only this crate uses tokio's blocking threads")]
pub(crate) fn spawn_blocking<T, W>(
    name: Name,
    counted: Counted,
    activity: Option<&Arc<Activity>>,
    work: W,
) -> Task<T>
where
    W: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (delivery, result) = Delivery::new(name.clone());
    let running = Running { work, counted, delivery, busy: activity.map(Busy::new) };
    let abort = tokio::task::spawn_blocking(move || running.run()).abort_handle();
    Task { name, result, abort, probe: None }
}

pub(crate) fn spawn_thread<T, W>(name: &Name, counted: Counted, work: W) -> io::Result<JoinHandle<T>>
where
    W: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    if name.contains('\0') {
        // The standard library would panic.
        let message = format!("a thread's name must not contain a zero byte: {name:?}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    std::thread::Builder::new().name(name.to_string()).spawn(move || {
        let _counted = counted;
        work()
    })
}
