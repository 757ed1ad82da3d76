//! The code that users write: a [`Reconciler`], its result, and the context of each run.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use k1s_env::{Env, Instant};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::{BoxError, Request, cluster::Cluster, queue::Causes, sharding::ShardToken};

/// Brings the actual state to the state that an object specifies. It receives a key, not the change: it reads the current
/// state, compares and acts, and may run at any time, any number of times.
///
/// Implement it for a type, or pass a function or closure with the same arguments.
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
///         tracing::info!(%request, "reconciled");
///         Ok(Action::done())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reconciler of `{R}`",
    label = "not a reconciler",
    note = "implement `Reconciler` for a type, or pass a function or closure `Fn({R}, Context)` that returns a `Send` future of `Result<Action, E>`",
    note = "a closure is called many times: clone captured values in each call, or pass them with `reconcile::with_state`"
)]
pub trait Reconciler<R = Request>: Send + Sync + 'static {
    /// Any error: from a library, an enum of your own, `anyhow::Error`, a `String`.
    type Error: Into<BoxError> + Send;

    /// Reconciles one object. An error is counted, logged, and retried with backoff, unless it is a [`TerminalError`].
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

/// A reconciler made from a function and its state by [`with_state`].
#[derive(Debug, Clone)]
pub struct WithState<S, F> {
    state: S,
    reconcile: F,
}

/// Makes a reconciler from a function and its state, for example a client: each run receives a clone of the state.
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
///         tracing::info!(%request, keys = map.data.iter().flatten().count(), "reconciled");
///         Ok::<_, BoxError>(Action::done())
///     },
/// ))?;
/// # Ok(())
/// # }
/// ```
///
/// A closure that moves the client into its future can be called only once, and is not a reconciler:
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

/// What to do after a successful reconcile.
///
/// There is no `Action::requeue`, since its meaning differs: in kube-rs it takes a `Duration`, and Go's `Requeue: true` uses
/// the rate limiter's backoff. Here the two have different names.
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
    /// Waits for the next event. Resets the backoff.
    pub fn done() -> Action {
        Action { requeue: Requeue::No, priority: None }
    }

    /// Runs again with the delay of the controller's [rate limiter](crate::queue::RateLimiter), as after an error, but without
    /// counting or logging one: by default 5 ms, doubled each time.
    pub fn requeue_with_backoff() -> Action {
        Action { requeue: Requeue::RateLimited, priority: None }
    }

    /// Runs again after a fixed delay. Resets the backoff.
    pub fn requeue_after(after: Duration) -> Action {
        Action { requeue: Requeue::After(after), priority: None }
    }

    /// Sets the priority of the next run; by default that of this run.
    pub fn with_priority(mut self, priority: i32) -> Action {
        self.priority = Some(priority);
        self
    }
}

/// An error that a retry cannot fix: counted and logged, but not retried before the next event.
///
/// It may be the cause of another error: the whole source chain is searched.
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

/// The context of a run. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) env: Env,
    pub(crate) cluster: Cluster,
    pub(crate) shard: Option<ShardToken>,
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

    /// The source of time, tasks, ids and random numbers. Sleep with it: `tokio::time::sleep` sleeps in real time, also in a
    /// test with a simulated clock.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.inner.env
    }

    /// The cluster that the request belongs to: its name, client and recorders. With a single-cluster manager, the manager's
    /// own. What Go calls `ClusterFromContext`.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.inner.cluster
    }

    /// The shard that the request belongs to, if the controller is [sharded](crate::controller::Builder::sharded_by): with it
    /// a client refuses writes after the shard was lost (`client.intercept(shard.clone())`), and its
    /// [value](ShardToken::value) can be written along.
    #[must_use]
    pub fn shard(&self) -> Option<&ShardToken> {
        self.inner.shard.as_ref()
    }

    /// The id of this run, logged as `reconcile_id`.
    #[must_use]
    pub fn id(&self) -> uuid::Uuid {
        self.inner.id
    }

    /// The name of the controller.
    #[must_use]
    pub fn controller(&self) -> &str {
        &self.inner.controller
    }

    /// 1 for the first attempt, plus one for each preceding failure.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.inner.attempt
    }

    /// The priority of the request.
    #[must_use]
    pub fn priority(&self) -> i32 {
        self.inner.priority
    }

    /// The events that queued the request. Use them for logs, and as a hint where to start; only the state that is read is
    /// authoritative.
    #[must_use]
    pub fn causes(&self) -> &Causes {
        &self.inner.causes
    }

    /// When the run will be cancelled, if it has a deadline.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.inner.deadline
    }

    /// Cancelled when the run is aborted: at its deadline, or when a shutdown times out. Not before: a shutdown lets runs
    /// finish.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.inner.cancelled
    }

    /// Waits until the run is aborted.
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.inner.cancelled.cancelled()
    }
}
