//! A candidate, until it is elected.

use std::{sync::Arc, time::Duration};

use k1s_env::{Env, Instant};
use kube::Client;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::{
    Fence, InvalidOptions, LeaderElectionOptions, LeaderMetrics, Leadership, LeadershipLost, identity,
    lock::{CallError, LeaseLock},
    record::{Lease, Observation, Term, holder},
};

/// A candidate for one term. Each term needs a new elector.
///
/// A process can run several of them, for different elections.
pub struct LeaderElector {
    lock: LeaseLock,
    identity: String,
    metrics: LeaderMetrics,
    leader: watch::Sender<Option<String>>,
    rival: watch::Sender<Option<String>>,
    wake: Arc<Notify>,
    seen: Option<Observation>,
    /// Until when another candidate may be the leader, according to the last Lease read.
    held_by_other_until: Option<Instant>,
    /// Terms that may have begun: their request was sent, and no response was received in time.
    uncertain: Vec<Term>,
}

/// Maximum number of uncertain terms kept: more than can be in flight, and a bound if the server never responds.
const MAX_UNCERTAIN: usize = 16;

/// Time after which a waiting candidate first logs that it is still waiting. The interval doubles from there.
const FIRST_REMINDER: Duration = Duration::from_secs(10);
/// Maximum interval between these log messages.
const MAX_REMINDER_INTERVAL: Duration = Duration::from_secs(600);

/// The outcome of one attempt.
enum Attempt {
    Won { lease: Box<Lease>, term: Term, sent: Instant },
    HeldUntil(Instant),
    Again,
}

impl LeaderElector {
    /// A candidate; nothing is sent before [`acquire`](Self::acquire) or [`run`](Self::run).
    ///
    /// # Errors
    /// If the options are invalid.
    pub fn new(
        client: Client,
        env: Env,
        options: LeaderElectionOptions,
    ) -> Result<LeaderElector, InvalidOptions> {
        let options = options.in_namespace()?;
        let identity = options.identity.clone().unwrap_or_else(|| identity::unique_identity(&env));
        Ok(LeaderElector {
            lock: LeaseLock::new(client, env, options),
            identity,
            metrics: LeaderMetrics::default(),
            leader: watch::Sender::new(None),
            rival: watch::Sender::new(None),
            wake: Arc::default(),
            seen: None,
            held_by_other_until: None,
            uncertain: Vec::new(),
        })
    }

    /// Reports in these metrics whether this candidate leads.
    #[must_use]
    pub fn with_metrics(mut self, metrics: &LeaderMetrics) -> LeaderElector {
        metrics.set(&self.lock.options.id, false);
        self.metrics = metrics.clone();
        self
    }

    /// Adds labels and annotations to the Lease when it is acquired.
    pub(crate) fn with_metadata(
        mut self,
        labels: impl IntoIterator<Item = (String, String)>,
        annotations: impl IntoIterator<Item = (String, String)>,
    ) -> LeaderElector {
        self.lock.labels.extend(labels);
        self.lock.annotations.extend(annotations);
        self
    }

    /// The holder identity that this candidate writes to the Lease.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The current leader, as far as this candidate has observed.
    #[must_use]
    pub fn leader(&self) -> watch::Receiver<Option<String>> {
        self.leader.subscribe()
    }

    /// Another candidate that was observed renewing the Lease, and so is alive. That a Lease has a holder is weaker
    /// evidence: the holder may have been killed.
    #[must_use]
    pub fn rival(&self) -> watch::Receiver<Option<String>> {
        self.rival.subscribe()
    }

    /// Notify it to read the Lease at once instead of after the retry period, for example when a watch reports that the
    /// Lease was released.
    #[must_use]
    pub fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// Waits to be elected. Returns `None` if `cancel` came first; the Lease is not held then.
    ///
    /// Failures on the way, such as network errors or missing permissions, are logged and retried.
    pub async fn acquire(mut self, cancel: &CancellationToken) -> Option<Leadership> {
        tracing::info!(lease = %self.lock.name(), identity = %self.identity, "attempting to acquire leader lease");
        let began = self.lock.env.now();
        let (mut interval, mut next) = (FIRST_REMINDER, began + FIRST_REMINDER);
        while !cancel.is_cancelled() {
            let now = self.lock.env.now();
            if now >= next {
                interval = (interval * 2).min(MAX_REMINDER_INTERVAL);
                next = now + interval;
                let leader = self.leader.borrow().clone();
                tracing::info!(
                    lease = %self.lock.name(),
                    leader,
                    waited = ?(now - began),
                    "still waiting to become the leader"
                );
            }
            match self.attempt(cancel).await {
                Attempt::Won { lease, term, sent } => {
                    tracing::info!(lease = %self.lock.name(), identity = %self.identity, "became the leader");
                    let won = Leadership::begin(self.lock, self.metrics, self.leader, term, *lease, sent);
                    if !cancel.is_cancelled() {
                        return Some(won);
                    }
                    let _ = won.release().await;
                    return None;
                }
                Attempt::HeldUntil(until) => self.pause(Some(until), cancel).await,
                Attempt::Again => self.pause(None, cancel).await,
            }
        }
        None
    }

    /// Waits to be elected, runs `lead`, then releases the Lease.
    ///
    /// `lead` must end by itself; `cancel` only ends the waiting. Returns `None` if `cancel` came first.
    ///
    /// # Errors
    /// If the leadership was lost while `lead` ran, which is then dropped at its current await point. `lead` should check
    /// the [`Fence`] before each irreversible action.
    pub async fn run<F, T>(
        self,
        cancel: &CancellationToken,
        lead: impl FnOnce(Fence) -> F,
    ) -> Result<Option<T>, LeadershipLost>
    where
        F: Future<Output = T>,
    {
        let Some(leadership) = self.acquire(cancel).await else { return Ok(None) };
        let done = tokio::select! {
            biased;
            lost = leadership.lost() => return Err(lost),
            done = lead(leadership.fence()) => done,
        };
        if let Err(error) = leadership.release().await {
            tracing::warn!(%error, "the lease was not released; it will expire");
        }
        Ok(Some(done))
    }

    /// Sleeps until the next attempt: the retry period plus jitter, or less if the Lease expires earlier.
    async fn pause(&self, until: Option<Instant>, cancel: &CancellationToken) {
        let (env, options) = (&self.lock.env, &self.lock.options);
        let more = options.retry_period.mul_f64(env.random_f64() * options.jitter);
        let next = env.now() + options.retry_period + more;
        let next = until.map_or(next, |until| next.min(until));
        tokio::select! {
            () = env.sleep_until(next) => {}
            () = self.wake.notified() => {}
            () = cancel.cancelled() => {}
        }
    }

    async fn attempt(&mut self, cancel: &CancellationToken) -> Attempt {
        let found = tokio::select! {
            biased;
            found = self.lock.get() => found,
            // A read can be abandoned at any time. A write is awaited: it may make this candidate the leader.
            () = cancel.cancelled() => return Attempt::Again,
        };
        match found {
            Ok(found) => self.try_acquire(found).await,
            Err(error) => {
                tracing::warn!(lease = %self.lock.name(), %error, "cannot read the leader lease");
                Attempt::Again
            }
        }
    }

    async fn try_acquire(&mut self, found: Option<Lease>) -> Attempt {
        let (env, options) = (self.lock.env.clone(), &self.lock.options);
        // Taken after the response, so it is later than the renewal that the Lease shows.
        let now = env.now();
        self.publish_leader(found.as_ref());
        let begun =
            found.as_ref().and_then(|lease| self.uncertain.iter().find(|term| term.holds(lease)).cloned());
        if let (Some(lease), None) = (&found, &begun) {
            let renewed = Observation::update(&mut self.seen, lease, now);
            if let Some(holder) = holder(lease).filter(|_| renewed) {
                self.rival.send_if_modified(|rival| {
                    let changed = rival.as_deref() != Some(holder);
                    *rival = Some(holder.to_owned());
                    changed
                });
            }
            self.held_by_other_until =
                self.seen.as_ref().and_then(|seen| seen.held_until(options.lease_duration));
        }
        // Also if the Lease was deleted, or is ours through a delayed request: its last holder may not know yet.
        if let Some(until) = self.held_by_other_until.filter(|until| now < *until) {
            return Attempt::HeldUntil(until);
        }
        let term =
            begun.unwrap_or_else(|| Term::after(found.as_ref(), &self.identity, env.wall(), env.now()));
        let exists = found.is_some();
        let mut lease = found.unwrap_or_else(|| self.lock.blank());
        self.lock.describe(&mut lease);
        term.renew(&mut lease, options.lease_seconds(), env.now());
        let sent = env.now();
        let answer = if exists { self.lock.update(&lease).await } else { self.lock.create(&lease).await };
        match answer {
            Ok(lease) if env.now() < sent + self.lock.options.renew_deadline => {
                let lease = Box::new(lease);
                return Attempt::Won { lease, term, sent };
            }
            // Acquired, but too late to be used: this process was paused meanwhile, or the server was slow.
            Ok(_) => self.remember(term),
            Err(CallError::Failed(error) | CallError::NoAnswer(error)) => {
                tracing::warn!(lease = %self.lock.name(), %error, "the leader lease may not have been acquired");
                self.remember(term);
            }
            Err(CallError::Conflict) => tracing::debug!(lease = %self.lock.name(), "another candidate won"),
            Err(error) => {
                tracing::warn!(lease = %self.lock.name(), %error, "cannot acquire the leader lease");
            }
        }
        Attempt::Again
    }

    fn remember(&mut self, term: Term) {
        if self.uncertain.len() == MAX_UNCERTAIN {
            self.uncertain.remove(0);
        }
        self.uncertain.push(term);
    }

    fn publish_leader(&self, found: Option<&Lease>) {
        let holder = found.and_then(holder);
        self.leader.send_if_modified(|known| {
            let changed = known.as_deref() != holder;
            if changed {
                tracing::info!(lease = %self.lock.name(), leader = holder, "the leader changed");
                *known = holder.map(str::to_owned);
            }
            changed
        });
    }
}

impl std::fmt::Debug for LeaderElector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeaderElector")
            .field("lease", &self.lock.name())
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
