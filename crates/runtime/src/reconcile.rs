//! What a controller's user writes: a [`Reconciler`], its result, and what it is told about each run.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use k1s_env::{Env, Instant};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::{BoxError, Request, queue::Causes};

/// Makes the world what an object asks for. It is told a name, not what changed: it looks, compares and acts, and can be
/// run at any time, any number of times.
///
/// Implement it for a type, or give a function or closure with the same arguments.
///
/// ```
/// use k1s_runtime::{Action, Client, Context, Reconciler, Request};
/// # type Error = k1s_runtime::BoxError;
///
/// struct Widgets {
///     client: Client,
/// }
///
/// impl Reconciler for Widgets {
///     type Error = Error;
///
///     async fn reconcile(&self, request: Request, _: Context) -> Result<Action, Error> {
///         tracing::info!(%request, "looked at");
///         Ok(Action::done())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reconciler of `{R}`",
    label = "not a reconciler",
    note = "implement `Reconciler` for a type, or give a function or closure `Fn({R}, Context)` that returns a `Send` future of `Result<Action, E>`",
    note = "a closure is called many times: it clones what it captures in each call, or is given it by `reconcile::with_state`"
)]
pub trait Reconciler<R = Request>: Send + Sync + 'static {
    /// Any error: those of libraries, an enum of one's own, `anyhow::Error`, a `String`.
    type Error: Into<BoxError> + Send;

    /// Looks at one object. An error is counted, logged, and tried again with growing pauses, unless it is a
    /// [`TerminalError`].
    fn reconcile(
        &self,
        request: R,
        context: Context,
    ) -> impl Future<Output = Result<Action, Self::Error>> + Send;
}

impl<F, Fut, R, E> Reconciler<R> for F
where
    F: Fn(R, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, E>> + Send,
    E: Into<BoxError> + Send,
{
    type Error = E;

    fn reconcile(&self, request: R, context: Context) -> impl Future<Output = Result<Action, E>> + Send {
        self(request, context)
    }
}

/// A reconciler from a function and what that needs: each run is given a clone of it. Made by [`with_state`].
#[derive(Debug, Clone)]
pub struct WithState<S, F> {
    state: S,
    reconcile: F,
}

/// A reconciler from a function and what that needs, a client for example: each run is given a clone of it.
///
/// ```
/// use k1s_runtime::{Action, BoxError, Client, Context, Controller, Manager, Request, kind, reconcile};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// # fn example(manager: &Manager) -> Result<(), BoxError> {
/// Controller::managed_by(manager).for_(kind::<ConfigMap>()).complete(reconcile::with_state(
///     manager.client(),
///     async |client: Client, request: Request, _: Context| {
///         let Some(map) = client.get_opt::<ConfigMap>(&request).await? else { return Ok(Action::done()) };
///         tracing::info!(%request, keys = map.data.iter().flatten().count(), "looked at");
///         Ok::<_, BoxError>(Action::done())
///     },
/// ))?;
/// # Ok(())
/// # }
/// ```
///
/// A closure that takes the client with it can be called once only, and is no reconciler:
///
/// ```compile_fail,E0525
/// # use k1s_runtime::{Action, BoxError, Context, Controller, Manager, Request, kind};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # fn example(manager: &Manager) -> Result<(), BoxError> {
/// let client = manager.client();
/// Controller::managed_by(manager).for_(kind::<ConfigMap>()).complete(
///     move |request: Request, _: Context| async move {
///         client.get::<ConfigMap>(&request).await?;
///         Ok::<_, BoxError>(Action::done())
///     },
/// )?;
/// # Ok(())
/// # }
/// ```
pub fn with_state<S, R, F, Fut, E>(state: S, reconcile: F) -> WithState<S, F>
where
    F: Fn(S, R, Context) -> Fut,
    Fut: Future<Output = Result<Action, E>>,
{
    WithState { state, reconcile }
}

impl<S, F, Fut, R, E> Reconciler<R> for WithState<S, F>
where
    S: Clone + Send + Sync + 'static,
    F: Fn(S, R, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, E>> + Send,
    E: Into<BoxError> + Send,
{
    type Error = E;

    fn reconcile(&self, request: R, context: Context) -> impl Future<Output = Result<Action, E>> + Send {
        (self.reconcile)(self.state.clone(), request, context)
    }
}

/// What happens after a successful reconcile.
///
/// There is no `Action::requeue`: kube-rs' takes a `Duration`, and Go's `Requeue: true` means the rate limiter's backoff. Each of
/// the two has a name of its own here.
///
/// | here | kube-rs | Go |
/// |---|---|---|
/// | [`done`](Self::done) | `Action::await_change()` | `ctrl.Result{}` |
/// | [`requeue_after`](Self::requeue_after) | `Action::requeue(duration)` | `ctrl.Result{RequeueAfter: duration}` |
/// | [`requeue_with_backoff`](Self::requeue_with_backoff) | – | `ctrl.Result{Requeue: true}` (deprecated) |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Action {
    pub(crate) requeue: Requeue,
    pub(crate) priority: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requeue {
    No,
    RateLimited,
    After(Duration),
}

impl Action {
    /// Nothing until the next event. Resets the backoff.
    pub fn done() -> Action {
        Action { requeue: Requeue::No, priority: None }
    }

    /// Runs again after the controller's [rate limiter](crate::queue::RateLimiter) says so, as after an error, but without
    /// counting or logging one: by default 5 ms, doubled each time.
    pub fn requeue_with_backoff() -> Action {
        Action { requeue: Requeue::RateLimited, priority: None }
    }

    /// Runs again after a fixed time. Resets the backoff.
    pub fn requeue_after(after: Duration) -> Action {
        Action { requeue: Requeue::After(after), priority: None }
    }

    /// Queues the next run with another priority than this one had.
    pub fn with_priority(mut self, priority: i32) -> Action {
        self.priority = Some(priority);
        self
    }
}

/// An error that trying again does not mend: counted and logged, not tried again until an event comes.
///
/// It may be the cause of another error: the whole chain of sources is looked through.
#[derive(Debug)]
pub struct TerminalError(BoxError);

impl TerminalError {
    /// Makes an error terminal.
    pub fn new(error: impl Into<BoxError>) -> TerminalError {
        TerminalError(error.into())
    }

    /// Whether an error is terminal, or has a terminal one as its cause.
    #[must_use]
    pub fn is_in(error: &BoxError) -> bool {
        let mut error: Option<&(dyn std::error::Error + 'static)> = Some(&**error);
        while let Some(one) = error {
            if one.is::<TerminalError>() {
                return true;
            }
            error = one.source();
        }
        false
    }
}

impl fmt::Display for TerminalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "terminal error: {}", self.0)
    }
}

impl std::error::Error for TerminalError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

/// What a reconciler is told about a run. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) env: Env,
    pub(crate) id: uuid::Uuid,
    pub(crate) controller: Arc<str>,
    pub(crate) attempt: u32,
    pub(crate) priority: i32,
    pub(crate) causes: Causes,
    pub(crate) deadline: Option<Instant>,
    pub(crate) cancelled: CancellationToken,
}

impl Context {
    pub(crate) fn new(inner: Inner) -> Context {
        Context { inner: Arc::new(inner) }
    }

    /// The clock to sleep by, and where tasks, ids and random numbers come from. A reconciler that sleeps with
    /// `tokio::time::sleep` instead does so in real time, also in a test whose clock is simulated.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.inner.env
    }

    /// A number of this run, in the logs as `reconcile_id`.
    #[must_use]
    pub fn id(&self) -> uuid::Uuid {
        self.inner.id
    }

    /// The name of the controller.
    #[must_use]
    pub fn controller(&self) -> &str {
        &self.inner.controller
    }

    /// 1 for a first try; one more for each failure before.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.inner.attempt
    }

    /// The priority that the request had.
    #[must_use]
    pub fn priority(&self) -> i32 {
        self.inner.priority
    }

    /// Why it runs: the events that queued the request. A hint for logs and for choosing what to look at first; the
    /// state that counts is the one that is read.
    #[must_use]
    pub fn causes(&self) -> &Causes {
        &self.inner.causes
    }

    /// When the run will be given up, if there is such a time.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.inner.deadline
    }

    /// Cancelled when the run is given up: at its deadline, or at the end of a shutdown's time. Never before: a
    /// shutdown lets a run finish.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.inner.cancelled
    }

    /// Waits until the run is given up.
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.inner.cancelled.cancelled()
    }
}
