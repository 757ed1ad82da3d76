//! Takes requests from the queue and reconciles them.

use std::{
    ops::ControlFlow,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::FutureExt as _;
use k1s_env::{Description, Stall, WorkGuard};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{ControllerError, Inner, NOT_TOKIOS_CLOCK};
use crate::{
    Action, BoxError, Context, TerminalError,
    panics::message,
    queue::{AddOptions, Cause, CauseEvent, Item, Key},
    reconcile::{self, Requeue},
};

/// After so long in real time in which nothing moves, a reconcile under a simulated clock is reported.
const STALLED_AFTER: Duration = Duration::from_secs(2);

/// So many keys are remembered that a simulated clock has overtaken.
const OVERTAKEN: usize = 10;

/// How a reconcile ended.
enum Outcome {
    Finished(Result<Action, BoxError>),
    Panicked(String),
    TimedOut,
    /// At the end of a shutdown's time.
    GivenUp,
}

/// Runs the workers until the controller is stopped. Reconciles in flight go on then, until they are given up.
pub(super) async fn run<R: Key>(
    controller: &Arc<Inner<R>>,
    stop: &CancellationToken,
) -> Result<(), ControllerError> {
    let count = controller.options.max_concurrent_reconciles.get();
    tracing::info!(controller = %controller.name, workers = count, "Starting workers");
    let mut workers = Vec::with_capacity(count);
    let failed = CancellationToken::new();
    for _ in 0..count {
        let (controller, failed) = (Arc::clone(controller), failed.clone());
        let name = format!("controller {}", controller.name);
        workers.push(controller.env.clone().spawn(name, async move {
            // A reconciler's panic is caught in each run; this is one of a rate limiter.
            let ended = AssertUnwindSafe(work(&controller)).catch_unwind().await;
            let result = ended.unwrap_or_else(|panic| {
                let message = format!("panic: {} [recovered]", message(&*panic));
                Err(ControllerError::Panic { controller: Arc::clone(&controller.name), message })
            });
            if result.is_err() {
                failed.cancel();
            }
            result
        }));
    }
    controller.working.cancel();
    tokio::select! {
        () = stop.cancelled() => {}
        () = failed.cancelled() => {}
    }
    controller.queue.shut_down();
    let mut result = Ok(());
    for worker in workers {
        if let Ok(ended) = worker.await {
            result = result.and(ended);
        }
    }
    tracing::info!(controller = %controller.name, "All workers finished");
    result
}

async fn work<R: Key>(controller: &Inner<R>) -> Result<(), ControllerError> {
    // One for all runs, until somebody cancels it: making one takes a lock that all workers share. Runs that can be given
    // up one by one have their own.
    let mut cancelled = controller.give_up.child_token();
    let one_by_one = controller.options.reconciliation_timeout.is_some();
    let mut next = controller.queue.next().await;
    while let Some(item) = next {
        // From here on it is counted; what is refused is found again at the next start.
        let Ok(guard) = controller.reconciles.begin(Description::debug(item.key().clone())) else {
            next = controller.queue.next_after(item).await;
            continue;
        };
        if one_by_one || cancelled.is_cancelled() {
            cancelled = controller.give_up.child_token();
        }
        let item = reconcile(controller, item, guard, &cancelled).await?;
        next = controller.queue.next_after(item).await;
    }
    Ok(())
}

/// Runs the reconciler for a key, and does with it what the outcome asks for. The key is not handed out again before the
/// item that is given back is done.
async fn reconcile<R: Key>(
    controller: &Inner<R>,
    mut item: Item<R>,
    guard: WorkGuard,
    cancelled: &CancellationToken,
) -> Result<Item<R>, ControllerError> {
    let env = &controller.env;
    let began = env.now();
    let id = env.uuid();
    let deadline = controller.options.reconciliation_timeout.map(|limit| began + limit);
    let causes = item.take_causes();
    let context = Context::new(reconcile::Inner {
        env: env.clone(),
        id,
        controller: Arc::clone(&controller.name),
        attempt: item.attempt(),
        priority: item.priority(),
        causes,
        deadline,
        cancelled: cancelled.clone(),
    });
    let span = tracing::info_span!(
        "reconcile",
        controller = %controller.name,
        object = ?item.key(),
        reconcile_id = %id,
    );
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
        tokio::select! {
            // A run that has ended has ended, however late it was.
            biased;
            ended = &mut run => match ended {
                Ok(Ok(result)) => Outcome::Finished(result),
                Ok(Err(panic)) => Outcome::Panicked(message(&*panic)),
                Err(stall) => Outcome::Finished(Err(stall.into())),
            },
            () = too_late => {
                // Before it is dropped: what it started elsewhere may listen.
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
    /// A run does not go on by the clock of the simulation, or was overtaken by it. The run goes on all the same.
    fn stalled(&self, key: &R, stall: Stall) -> ControlFlow<()> {
        match stall {
            Stall::Overtaken { .. } => {
                tracing::warn!(controller = %self.name, object = ?key, "{stall}; {NOT_TOKIOS_CLOCK}");
                let mut overtaken = self.overtaken.lock();
                if overtaken.len() < OVERTAKEN {
                    overtaken.insert(format!("{key:?}"));
                }
            }
            _ => tracing::warn!(
                controller = %self.name,
                object = ?key,
                "a reconcile is in flight: {stall}; move the clock if it waits for that. {NOT_TOKIOS_CLOCK}",
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
    let again = |event: CauseEvent, priority: Option<i32>| AddOptions {
        priority: Some(priority.unwrap_or_else(|| item.priority())),
        ..AddOptions::because(Cause::new(event))
    };
    let error: BoxError = match outcome {
        Outcome::Finished(Ok(action)) => {
            match action.requeue {
                Requeue::No => {
                    metrics.success.inc();
                    queue.forget(&key);
                }
                Requeue::After(after) => {
                    metrics.requeue_after.inc();
                    // A pause that was asked for is not a failure.
                    queue.forget(&key);
                    let options = again(CauseEvent::RequeueAfter, action.priority);
                    queue.add_with(AddOptions { after: Some(after), ..options }, key);
                }
                Requeue::RateLimited => {
                    metrics.requeue.inc();
                    let options = again(CauseEvent::Requeue, action.priority);
                    queue.add_with(AddOptions { rate_limited: true, ..options }, key);
                }
            }
            counts.reconciles.fetch_add(1, Ordering::Relaxed);
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
            format!("not done after {:?}", controller.options.reconciliation_timeout.unwrap_or_default())
                .into()
        }
        Outcome::GivenUp => "given up: the time for shutting down is over".into(),
    };
    metrics.error.inc();
    metrics.errors.inc();
    counts.reconciles.fetch_add(1, Ordering::Relaxed);
    counts.errors.fetch_add(1, Ordering::Relaxed);
    if TerminalError::is_in(&error) {
        metrics.terminal_errors.inc();
        tracing::error!(%error, "Reconciler error; not tried again until something changes");
        queue.forget(&key);
    } else {
        tracing::error!(%error, attempt = item.attempt(), "Reconciler error");
        queue.add_with(AddOptions { rate_limited: true, ..again(CauseEvent::Retry, None) }, key);
    }
    guard.fail();
    Ok(())
}
