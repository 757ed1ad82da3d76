//! Takes requests from the queue and reconciles them.

use std::{
    future::Future,
    ops::ControlFlow,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use k1s_env::{Description, Stall, Task, WorkGuard};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{ControllerError, Inner, NOT_TOKIOS_CLOCK, Substitutes};
use crate::{
    Action, BoxError, Context, TerminalError,
    cluster::Cluster,
    panics::message,
    queue::{AddOptions, Cause, CauseEvent, Item, Key},
    reconcile::{self, Requeue},
    sharding::{Active, ShardLost},
};

/// Real time without progress after which a reconcile under a simulated clock is reported.
const STALLED_AFTER: Duration = Duration::from_secs(2);

/// Maximum number of overtaken keys to remember (see `Inner::overtaken`).
const MAX_OVERTAKEN: usize = 10;

/// How a reconcile ended.
enum Outcome {
    Finished(Result<Action, BoxError>),
    Panicked(String),
    TimedOut,
    /// Cancelled because another replica may handle the request now.
    ShardLost(ShardLost),
    /// Cancelled when the shutdown timed out.
    GivenUp,
}

/// Runs the workers until the controller is stopped. Reconciles in flight then continue until they finish or are cancelled.
pub(super) async fn run<R: Key>(
    controller: &Arc<Inner<R>>,
    stop: &CancellationToken,
) -> Result<(), ControllerError> {
    let count = controller.options.max_concurrent_reconciles.get();
    tracing::info!(controller = %controller.name, workers = count, "Starting workers");
    let crew = Arc::new(Crew {
        controller: Arc::clone(controller),
        failed: CancellationToken::new(),
        substitutes: Mutex::default(),
    });
    let workers: Vec<Worker> = (0..count).map(|_| Crew::hire(&crew, None)).collect();
    controller.working.cancel();
    tokio::select! {
        () = stop.cancelled() => {}
        () = crew.failed.cancelled() => {}
    }
    controller.queue.shut_down();
    let mut result = Ok(());
    for worker in workers.into_iter().chain(std::iter::from_fn(|| crew.substitutes.lock().pop())) {
        if let Ok(ended) = worker.await {
            result = result.and(ended);
        }
    }
    tracing::info!(controller = %controller.name, "All workers finished");
    result
}

type Worker = Task<Result<(), ControllerError>>;

/// The workers of a controller.
struct Crew<R: Key> {
    controller: Arc<Inner<R>>,
    /// Cancelled if one of them fails.
    failed: CancellationToken,
    /// Those that replace a worker whose run takes long.
    substitutes: Mutex<Vec<Worker>>,
}

impl<R: Key> Crew<R> {
    /// A new worker; it ends when the queue is closed or, after its current run, when it is retired.
    fn hire(crew: &Arc<Crew<R>>, retired: Option<CancellationToken>) -> Worker {
        let (crew, env) = (Arc::clone(crew), crew.controller.env.clone());
        env.spawn(format!("controller {}", crew.controller.name), async move {
            // Panics of the reconciler are caught in each run; this catches those of a rate limiter.
            let ended = AssertUnwindSafe(Crew::work(&crew, retired)).catch_unwind().await;
            let result = ended.unwrap_or_else(|panic| {
                let message = format!("panic: {} [recovered]", message(&*panic));
                Err(ControllerError::Panic { controller: Arc::clone(&crew.controller.name), message })
            });
            if result.is_err() {
                crew.failed.cancel();
            }
            result
        })
    }

    /// Boxed, since a worker may hire another one.
    fn work(
        crew: &Arc<Crew<R>>,
        retired: Option<CancellationToken>,
    ) -> BoxFuture<'_, Result<(), ControllerError>> {
        Box::pin(async move {
            match retired {
                None => work(crew, None).await,
                Some(retired) => work(crew, Some(&retired)).await,
            }
        })
    }

    /// Waits for a run. If it takes long and there are several clusters, another worker takes requests meanwhile.
    async fn wait_for<T>(crew: &Arc<Crew<R>>, run: impl Future<Output = T>) -> T {
        let controller = &crew.controller;
        let mut run = pin!(run);
        let Some(Substitutes { after, max }) = controller.clusters.as_ref().and_then(|one| one.substitutes())
        else {
            return run.await;
        };
        tokio::select! {
            biased;
            ended = &mut run => return ended,
            () = controller.env.sleep(after) => {}
        }
        let retired = CancellationToken::new();
        {
            let mut substitutes = crew.substitutes.lock();
            substitutes.retain(|substitute| !substitute.is_finished());
            if substitutes.len() < max && !controller.queue.is_shut_down() {
                substitutes.push(Crew::hire(crew, Some(retired.clone())));
            }
        }
        let _retires = retired.drop_guard();
        run.await
    }
}

async fn work<R: Key>(
    crew: &Arc<Crew<R>>,
    retired: Option<&CancellationToken>,
) -> Result<(), ControllerError> {
    let controller = &*crew.controller;
    // One token for all runs, until a reconciler cancels it: creating one takes a lock that all workers share. With a
    // timeout, runs are cancelled individually, and each has its own token.
    let mut cancelled = controller.give_up.child_token();
    let own_token = controller.options.reconciliation_timeout.is_some();
    let mut done = None;
    loop {
        let next = async {
            match done.take() {
                None => controller.queue.next().await,
                Some(item) => controller.queue.next_after(item).await,
            }
        };
        let next = match retired {
            None => next.await,
            Some(retired) => retired.run_until_cancelled(next).await.flatten(),
        };
        let Some(item) = next else { return Ok(()) };
        let Some(cluster) = controller.cluster_of(item.key()) else {
            // Its cluster is gone, and with it everything there is to do.
            controller.queue.forget(item.key());
            controller.failures.resolved(item.key());
            done = Some(item);
            continue;
        };
        let shard = match &controller.shards {
            None => None,
            Some(shards) => match shards.begin(item.key()) {
                Some(shard) => Some(shard),
                None => {
                    // Another replica's, whose own events queue it there.
                    controller.queue.forget(item.key());
                    controller.failures.resolved(item.key());
                    done = Some(item);
                    continue;
                }
            },
        };
        // Tracked from here on. A request that the tracker rejects is queued again by the initial list of the next start.
        let Ok(guard) = controller.reconciles.begin(Description::debug(item.key().clone())) else {
            done = Some(item);
            continue;
        };
        if own_token || cancelled.is_cancelled() {
            cancelled = controller.give_up.child_token();
        }
        let run = reconcile(controller, (cluster, shard), item, guard, &cancelled);
        done = Some(Crew::wait_for(crew, run).await?);
    }
}

/// Runs the reconciler for a key, and requeues the key according to the outcome. The queue does not hand out the key again
/// before the returned item is done.
async fn reconcile<R: Key>(
    controller: &Inner<R>,
    (cluster, shard): (Cluster, Option<Active>),
    mut item: Item<R>,
    guard: WorkGuard,
    cancelled: &CancellationToken,
) -> Result<Item<R>, ControllerError> {
    let env = &controller.env;
    let began = env.now();
    let id = env.uuid();
    let deadline = controller.options.reconciliation_timeout.map(|limit| began + limit);
    let causes = item.take_causes();
    let span = tracing::info_span!(
        "reconcile",
        controller = %controller.name,
        cluster = tracing::field::Empty,
        object = ?item.key(),
        reconcile_id = %id,
    );
    if controller.clusters.as_ref().is_some_and(|clusters| clusters.in_logs()) {
        span.record("cluster", cluster.name().as_str());
    }
    let context = Context::new(reconcile::Inner {
        cluster,
        shard: shard.as_ref().map(|shard| shard.token().clone()),
        env: env.clone(),
        id,
        controller: Arc::clone(&controller.name),
        attempt: item.attempt(),
        priority: item.priority(),
        causes,
        deadline,
        cancelled: cancelled.clone(),
    });
    controller.metrics.active.inc();
    let outcome = {
        let run =
            AssertUnwindSafe(controller.reconciler.reconcile(item.key().clone(), context)).catch_unwind();
        let stalled = |stall| controller.stalled(item.key(), stall);
        let run = env.watch_stalls(STALLED_AFTER, || (), stalled, run);
        let mut run = pin!(run.instrument(span.clone()));
        let too_late = async {
            match deadline {
                Some(at) => env.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let shard_lost = async {
            match &shard {
                Some(shard) => shard.lost().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // A finished run counts as finished, even after its deadline.
            biased;
            // Before the run: if the process was paused, the run must not go on.
            lost = shard_lost => {
                cancelled.cancel();
                Outcome::ShardLost(lost)
            }
            ended = &mut run => match ended {
                Ok(Ok(result)) => Outcome::Finished(result),
                Ok(Err(panic)) => Outcome::Panicked(message(&*panic)),
                Err(stall) => Outcome::Finished(Err(stall.into())),
            },
            () = too_late => {
                // Cancelled before the future is dropped: tasks that it spawned may listen.
                cancelled.cancel();
                Outcome::TimedOut
            }
            () = controller.give_up.cancelled() => Outcome::GivenUp,
        }
    };
    let metrics = &controller.metrics;
    metrics.active.dec();
    metrics.time.observe((env.now() - began).as_secs_f64());
    let _entered = span.enter();
    finish(controller, &item, guard, outcome)?;
    Ok(item)
}

impl<R: Key> Inner<R> {
    /// The cluster of a request; `None` if it is gone.
    fn cluster_of(&self, key: &R) -> Option<Cluster> {
        match &self.clusters {
            None => Some(self.cluster.clone()),
            Some(clusters) => clusters.cluster(key),
        }
    }

    /// Reports a run that waits for something other than the simulated clock, or was overtaken by it. The run continues.
    fn stalled(&self, key: &R, stall: Stall) -> ControlFlow<()> {
        match stall {
            Stall::Overtaken { .. } => {
                tracing::warn!(controller = %self.name, object = ?key, "{stall}; {NOT_TOKIOS_CLOCK}");
                let mut overtaken = self.overtaken.lock();
                if overtaken.len() < MAX_OVERTAKEN {
                    overtaken.insert(format!("{key:?}"));
                }
            }
            _ => tracing::warn!(
                controller = %self.name,
                object = ?key,
                "a reconcile is in flight: {stall}; advance the clock if it waits for that. {NOT_TOKIOS_CLOCK}",
            ),
        }
        ControlFlow::Continue(())
    }
}

fn finish<R: Key>(
    controller: &Inner<R>,
    item: &Item<R>,
    guard: WorkGuard,
    outcome: Outcome,
) -> Result<(), ControllerError> {
    let (queue, metrics, counts) = (&controller.queue, &controller.metrics, &controller.counts);
    let key = item.key().clone();
    // A key that was removed meanwhile, with its cluster for example, is not queued again.
    let requeue = |options: AddOptions, key: R| {
        if item.is_removed() {
            queue.forget(&key);
        } else {
            queue.add_with(options, key);
        }
    };
    let again = |event: CauseEvent, priority: Option<i32>| AddOptions {
        priority: Some(priority.unwrap_or_else(|| item.priority())),
        ..AddOptions::because(Cause::new(event))
    };
    // Another replica reports what it does about its requests.
    let ours = !matches!(outcome, Outcome::ShardLost(_));
    let error: BoxError = match outcome {
        Outcome::Finished(Ok(action)) => {
            match action.requeue {
                Requeue::No => {
                    metrics.success.inc();
                    queue.forget(&key);
                }
                Requeue::After(after) => {
                    metrics.requeue_after.inc();
                    // A requested delay is not a failure.
                    queue.forget(&key);
                    let options = again(CauseEvent::RequeueAfter, action.priority);
                    requeue(AddOptions { after: Some(after), ..options }, key);
                }
                Requeue::RateLimited => {
                    metrics.requeue.inc();
                    let options = again(CauseEvent::Requeue, action.priority);
                    requeue(AddOptions { rate_limited: true, ..options }, key);
                }
            }
            counts.reconciles.fetch_add(1, Ordering::Relaxed);
            controller.failures.resolved(item.key());
            guard.succeed();
            return Ok(());
        }
        Outcome::Finished(Err(error)) => error,
        Outcome::Panicked(message) => {
            metrics.panics.inc();
            counts.panics.fetch_add(1, Ordering::Relaxed);
            let message = format!("panic: {message} [recovered]");
            if !controller.options.recover_panic {
                return Err(ControllerError::Panic { controller: Arc::clone(&controller.name), message });
            }
            message.into()
        }
        Outcome::TimedOut => {
            metrics.timeouts.inc();
            format!("timed out after {:?}", controller.options.reconciliation_timeout.unwrap_or_default())
                .into()
        }
        // Not retried: it is another replica's.
        Outcome::ShardLost(lost) => TerminalError::new(lost).into(),
        Outcome::GivenUp => "cancelled: the graceful shutdown timed out".into(),
    };
    metrics.error.inc();
    metrics.errors.inc();
    counts.reconciles.fetch_add(1, Ordering::Relaxed);
    counts.errors.fetch_add(1, Ordering::Relaxed);
    let terminal = TerminalError::is_in(&error);
    // One that was removed, with its cluster for example, is nobody's concern any more.
    if ours && !item.is_removed() {
        controller.failures.failed(&key, error.to_string(), terminal);
    }
    if terminal {
        metrics.terminal_errors.inc();
        counts.terminal.fetch_add(u64::from(ours), Ordering::Relaxed);
        tracing::error!(%error, "Reconciler error; not retried until an event arrives");
        queue.forget(&key);
    } else {
        tracing::error!(%error, attempt = item.attempt(), "Reconciler error");
        requeue(AddOptions { rate_limited: true, ..again(CauseEvent::Retry, None) }, key);
    }
    guard.fail();
    Ok(())
}
