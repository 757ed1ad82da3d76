//! The task that renews a Lease until it is stopped or the leadership is lost.

use std::sync::Arc;

use k1s_env::Instant;
use kube::api::ObjectMeta;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    LeaderMetrics,
    fence::Shared,
    lock::{CallError, LeaseLock},
    record::{self, Lease, Term},
};

/// The state of the task.
pub(super) struct Renewal {
    pub(super) lock: Arc<LeaseLock>,
    pub(super) shared: Arc<Shared>,
    pub(super) metrics: LeaderMetrics,
    pub(super) leader: watch::Sender<Option<String>>,
    pub(super) term: Term,
    /// The Lease as last read from the server.
    pub(super) held: Lease,
    /// When the leadership ends unless it is renewed.
    pub(super) deadline: Instant,
}

/// Why a Lease was not renewed.
enum Failed {
    /// Another candidate holds it.
    Taken(Option<String>),
    /// The call failed; a retry may succeed.
    Call(CallError),
}

/// Maximum attempts of one renewal when it meets conflicts; the next renewal follows soon.
const MAX_ATTEMPTS: usize = 3;

impl Renewal {
    /// Renews until `stop` is cancelled or the leadership is lost. Returns the Lease as last read.
    pub(super) async fn run(mut self, sent: Instant, stop: CancellationToken) -> Lease {
        let env = self.lock.env.clone();
        let (renew_deadline, retry_period) =
            (self.lock.options.renew_deadline, self.lock.options.retry_period);
        let mut next = sent + retry_period;
        let mut last_failure = String::from("no response");
        loop {
            let deadline = self.deadline;
            tokio::select! {
                // In this order: a task that wakes up too late has lost, whatever else is ready.
                biased;
                () = stop.cancelled() => return self.held,
                () = env.sleep_until(deadline) => return self.lose(&last_failure),
                () = env.sleep_until(next) => {}
            }
            let tried = env.now();
            let renewed = tokio::select! {
                biased;
                () = stop.cancelled() => None,
                () = env.sleep_until(deadline) => return self.lose(&last_failure),
                renewed = self.renew() => Some(renewed),
            };
            match renewed {
                None => return self.held,
                // The deadline may pass while a response is processed: another process may have stopped waiting by then.
                Some(Ok(_)) if env.now() >= deadline => return self.lose("the response was too late"),
                Some(Ok(sent)) => {
                    self.deadline = sent + renew_deadline;
                    self.shared.extend(self.deadline);
                    next = sent + retry_period;
                }
                Some(Err(Failed::Taken(holder))) => {
                    let by = holder.unwrap_or_else(|| "nobody".to_owned());
                    let reason = format!("the lease {} is held by {by}", self.lock.name());
                    return self.over(&reason);
                }
                Some(Err(Failed::Call(error))) => {
                    tracing::warn!(lease = %self.lock.name(), %error, "the leader lease was not renewed; trying again");
                    last_failure = error.to_string();
                    // Immediately, if this attempt took longer than the retry period.
                    next = tried + retry_period;
                }
            }
        }
    }

    fn lose(self, failure: &str) -> Lease {
        let (lease, limit) = (self.lock.name(), self.lock.options.renew_deadline);
        self.over(&format!("the lease {lease} was not renewed within {limit:?}: {failure}"))
    }

    fn over(self, reason: &str) -> Lease {
        self.shared.end(reason);
        self.metrics.set(&self.lock.options.id, false);
        tracing::error!(reason, "leader election lost");
        self.held
    }

    /// Renews once. Returns when the request was sent.
    async fn renew(&mut self) -> Result<Instant, Failed> {
        let mut exists = true;
        for _ in 0..MAX_ATTEMPTS {
            let mut lease = self.held.clone();
            if !exists {
                lease.metadata = ObjectMeta {
                    labels: lease.metadata.labels,
                    annotations: lease.metadata.annotations,
                    ..self.lock.blank().metadata
                };
            }
            self.term.renew(&mut lease, self.lock.options.lease_seconds(), self.lock.env.now());
            // Before sending: other candidates count from when they see the renewal, which is later.
            let sent = self.lock.env.now();
            let answer = if exists { self.lock.update(&lease).await } else { self.lock.create(&lease).await };
            let failure = match answer {
                Ok(lease) => {
                    self.held = lease;
                    return Ok(sent);
                }
                // A read would not be answered either. If the write was applied, the next renewal meets a conflict.
                Err(failure @ CallError::NoAnswer(_)) => return Err(Failed::Call(failure)),
                Err(failure) => failure,
            };
            // The Lease itself is more informative than the error. (An update may create a Lease, so a server without one
            // may report a different error first.)
            match self.lock.get().await {
                Ok(None) => exists = false,
                Ok(Some(lease)) if self.term.holds(&lease) => {
                    exists = true;
                    self.held = lease;
                    if !matches!(failure, CallError::Conflict | CallError::Missing) {
                        return Err(Failed::Call(failure));
                    }
                }
                Ok(Some(lease)) => {
                    let holder = record::holder(&lease).map(str::to_owned);
                    self.leader.send_replace(holder.clone());
                    return Err(Failed::Taken(holder));
                }
                Err(_) => return Err(Failed::Call(failure)),
            }
        }
        Err(Failed::Call(CallError::Conflict))
    }
}
