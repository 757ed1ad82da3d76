//! A leader: keeps its Lease, and knows when it has lost it.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use k1s_env::{Env, Instant, Task};
use kube::api::ObjectMeta;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    LeaderMetrics,
    lock::{CallError, LeaseLock},
    record::{self, Lease, Term},
};

/// A term in office, from the election to its end. It renews its Lease by itself.
///
/// Dropped, it is over at once, and the Lease runs out by itself; [`release`](Self::release) gives it back.
pub struct Leadership {
    fence: Fence,
    lock: Arc<LeaseLock>,
    term: Term,
    metrics: LeaderMetrics,
    /// Ends the renewing.
    stop: CancellationToken,
    renewing: Option<Task<Lease>>,
}

/// Says whether a [`Leadership`] is still in office. Cheap to clone and to ask.
#[derive(Clone)]
pub struct Fence {
    shared: Arc<Shared>,
}

struct Shared {
    env: Env,
    /// The moment that `until` counts from.
    origin: Instant,
    /// The end of what is certain, in nanoseconds from the origin; 0 once all is over.
    until: AtomicU64,
    over: CancellationToken,
    reason: OnceLock<Arc<str>>,
    transitions: i64,
}

/// Somebody else leads, or may soon.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("leader election lost")]
#[non_exhaustive]
pub struct LeadershipLost {
    /// Why.
    pub reason: Arc<str>,
}

/// The Lease was not given back. It runs out by itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the lease {lease} was not released: {reason}")]
#[non_exhaustive]
pub struct ReleaseError {
    /// Its namespace and name.
    pub lease: String,
    /// Why not.
    pub reason: String,
}

impl Fence {
    /// Whether the leadership is in office at this very moment.
    ///
    /// The answer comes from the clock: a process that was stopped and goes on gets the right one. Ask right before each
    /// act that only a leader may do.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.shared.nanos(self.shared.env.now()) < self.shared.until.load(Ordering::Acquire)
    }

    /// For how long it is in office even if it can renew no more; zero if it is not.
    #[must_use]
    pub fn valid_for(&self) -> Duration {
        let until = self.shared.until.load(Ordering::Acquire);
        Duration::from_nanos(until.saturating_sub(self.shared.nanos(self.shared.env.now())))
    }

    /// [`is_valid`](Self::is_valid), for the question mark.
    ///
    /// # Errors
    /// If it is not in office any more.
    pub fn check(&self) -> Result<(), LeadershipLost> {
        if self.is_valid() { Ok(()) } else { Err(self.shared.lost()) }
    }

    /// Waits for the end of the leadership.
    pub async fn lost(&self) -> LeadershipLost {
        self.shared.over.cancelled().await;
        self.shared.lost()
    }

    /// Cancelled when the leadership ends. It is told by a task; an act that counts asks
    /// [`is_valid`](Self::is_valid).
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.shared.over.child_token()
    }

    /// How often the Lease has changed hands: later leaders have higher numbers, unless somebody deletes the Lease.
    #[must_use]
    pub fn transitions(&self) -> i64 {
        self.shared.transitions
    }
}

impl Shared {
    fn nanos(&self, moment: Instant) -> u64 {
        u64::try_from((moment - self.origin).as_nanos()).unwrap_or(u64::MAX)
    }

    /// What is over stays so.
    fn extend(&self, until: Instant) {
        let until = self.nanos(until);
        let longer = |now: u64| (now != 0).then_some(until);
        let _ = self.until.fetch_update(Ordering::AcqRel, Ordering::Acquire, longer);
    }

    /// The first one says why.
    fn end(&self, reason: &str) {
        self.until.store(0, Ordering::Release);
        let _ = self.reason.set(reason.into());
        self.over.cancel();
    }

    fn lost(&self) -> LeadershipLost {
        let reason = self.reason.get().cloned();
        LeadershipLost { reason: reason.unwrap_or_else(|| "it was not renewed in time".into()) }
    }
}

impl std::fmt::Debug for Fence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fence").field("valid_for", &self.valid_for()).finish_non_exhaustive()
    }
}

impl Leadership {
    pub(super) fn begin(
        lock: LeaseLock,
        metrics: LeaderMetrics,
        leader: watch::Sender<Option<String>>,
        term: Term,
        held: Lease,
        sent: Instant,
    ) -> Leadership {
        let lock = Arc::new(lock);
        let env = lock.env.clone();
        let shared = Arc::new(Shared {
            env: env.clone(),
            origin: sent,
            until: AtomicU64::new(1),
            over: CancellationToken::new(),
            reason: OnceLock::new(),
            transitions: term.transitions,
        });
        shared.extend(sent + lock.options.renew_deadline);
        metrics.set(&lock.options.id, true);
        leader.send_replace(Some(term.identity.clone()));
        let stop = CancellationToken::new();
        let renewal = Renewal {
            lock: lock.clone(),
            shared: shared.clone(),
            metrics: metrics.clone(),
            leader,
            term: term.clone(),
            held,
            deadline: sent + lock.options.renew_deadline,
        };
        let renewing = env.spawn("leader election", renewal.run(sent, stop.clone()));
        Leadership { fence: Fence { shared }, lock, term, metrics, stop, renewing: Some(renewing) }
    }

    /// Something to ask, and to give to those who act.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// [`Fence::is_valid`].
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.fence.is_valid()
    }

    /// [`Fence::lost`].
    pub async fn lost(&self) -> LeadershipLost {
        self.fence.lost().await
    }

    /// What the Lease shows as its holder.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.term.identity
    }

    /// Ends the leadership and gives the Lease back, if `release_on_cancel` says so. To be called when all that only a
    /// leader may do has ended: another one can be elected before this returns.
    ///
    /// A Lease that somebody else has taken meanwhile is left alone.
    ///
    /// # Errors
    /// If the server cannot be reached, or says no.
    pub async fn release(mut self) -> Result<(), ReleaseError> {
        self.end("it was released");
        let held = match self.renewing.take() {
            Some(renewing) => renewing.await.ok(),
            None => None,
        };
        if !self.lock.options.release_on_cancel {
            return Ok(());
        }
        let (env, limit) = (&self.lock.env, self.lock.options.renew_deadline);
        let released = env.timeout(limit, self.give_back(held)).await;
        let failed = match released {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(elapsed) => elapsed.to_string(),
        };
        Err(ReleaseError { lease: self.lock.name(), reason: failed })
    }

    async fn give_back(&self, held: Option<Lease>) -> Result<(), CallError> {
        let mut held = held;
        loop {
            let lease = match held.take() {
                Some(lease) => Some(lease),
                None => self.lock.get().await?,
            };
            let Some(mut lease) = lease.filter(|lease| self.term.is_shown_by(lease)) else { return Ok(()) };
            record::release(&mut lease, self.lock.env.wall());
            match self.lock.update(&lease).await {
                Ok(_) => {
                    tracing::info!(lease = %self.lock.name(), "released the leader lease");
                    return Ok(());
                }
                // A renewal that was under way, or somebody who changed something else of it.
                Err(CallError::Conflict) => {}
                Err(CallError::Missing) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn end(&self, reason: &str) {
        self.fence.shared.end(reason);
        self.stop.cancel();
        self.metrics.set(&self.lock.options.id, false);
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        self.end("it was given up");
    }
}

impl std::fmt::Debug for Leadership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leadership")
            .field("lease", &self.lock.name())
            .field("identity", &self.term.identity)
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}

/// The task that keeps the Lease.
struct Renewal {
    lock: Arc<LeaseLock>,
    shared: Arc<Shared>,
    metrics: LeaderMetrics,
    leader: watch::Sender<Option<String>>,
    term: Term,
    /// The Lease as it was last seen on the server.
    held: Lease,
    /// When all is over unless it is renewed.
    deadline: Instant,
}

/// Why a Lease was not renewed.
enum Failed {
    /// It is somebody else's.
    Taken(Option<String>),
    /// It may work another time.
    Call(CallError),
}

/// A renewal that meets conflicts gives up after so many; there is another one soon.
const ROUNDS: usize = 3;

impl Renewal {
    /// Renews until it is told to stop or all is over, and gives back the Lease as it last saw it.
    async fn run(mut self, sent: Instant, stop: CancellationToken) -> Lease {
        let env = self.lock.env.clone();
        let (renew_deadline, retry_period) =
            (self.lock.options.renew_deadline, self.lock.options.retry_period);
        let mut next = sent + retry_period;
        let mut last_failure = String::from("there was no answer");
        loop {
            let deadline = self.deadline;
            tokio::select! {
                // In this order: whoever wakes up too late has lost, whatever else is ready.
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
                    // At once, if this one took longer than that.
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

    /// Renews once, and says when that was sent.
    async fn renew(&mut self) -> Result<Instant, Failed> {
        let mut exists = true;
        for _ in 0..ROUNDS {
            let mut lease = self.held.clone();
            if !exists {
                lease.metadata = ObjectMeta {
                    labels: lease.metadata.labels,
                    annotations: lease.metadata.annotations,
                    ..self.lock.blank().metadata
                };
            }
            self.term.renew(&mut lease, self.lock.options.lease_seconds(), self.lock.env.now());
            // Before it is sent: others count from when they see it, which is later.
            let sent = self.lock.env.now();
            let answer = if exists { self.lock.update(&lease).await } else { self.lock.create(&lease).await };
            let failure = match answer {
                Ok(lease) => {
                    self.held = lease;
                    return Ok(sent);
                }
                // Nor is there one to the next question. If it was done, the next renewal meets a conflict.
                Err(failure @ CallError::NoAnswer(_)) => return Err(Failed::Call(failure)),
                Err(failure) => failure,
            };
            // What is there tells more than the failure does. (Leases can be created by an update, so a server that has
            // none left complains of other things first.)
            match self.lock.get().await {
                Ok(None) => exists = false,
                Ok(Some(lease)) if self.term.is_shown_by(&lease) => {
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
