//! A candidate: waits for its turn.

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

/// A candidate for one term. For another one, make another.
///
/// Several of them, for different elections, can run in a process.
pub struct LeaderElector {
    lock: LeaseLock,
    identity: String,
    metrics: LeaderMetrics,
    leader: watch::Sender<Option<String>>,
    rival: watch::Sender<Option<String>>,
    wake: Arc<Notify>,
    seen: Option<Observation>,
    /// Until when another one may be in office, by what was last seen of it.
    others_until: Option<Instant>,
    /// Terms that may have begun: what was sent, and never answered.
    uncertain: Vec<Term>,
}

/// What is kept of those: more than can be under way, and a bound for a server that never answers.
const UNCERTAIN: usize = 16;

/// A candidate that waits says so after this time, and then less and less often.
const SAID_AFTER: Duration = Duration::from_secs(10);
const SAID_AT_LEAST_EVERY: Duration = Duration::from_secs(600);

/// What came of one attempt.
enum Attempt {
    Won { lease: Box<Lease>, term: Term, sent: Instant },
    HeldUntil(Instant),
    Again,
}

impl LeaderElector {
    /// A candidate that does nothing yet.
    ///
    /// # Errors
    /// If the options cannot work.
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
            others_until: None,
            uncertain: Vec::new(),
        })
    }

    /// Shows in these metrics whether it leads.
    #[must_use]
    pub fn with_metrics(mut self, metrics: &LeaderMetrics) -> LeaderElector {
        metrics.set(&self.lock.options.id, false);
        self.metrics = metrics.clone();
        self
    }

    /// What its Lease shows as the holder.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Who leads, as far as this candidate has seen.
    #[must_use]
    pub fn leader(&self) -> watch::Receiver<Option<String>> {
        self.leader.subscribe()
    }

    /// Another candidate that renewed the Lease while this one looked on: it is alive. That a Lease has a holder says less, it
    /// may be one that was killed.
    #[must_use]
    pub fn rival(&self) -> watch::Receiver<Option<String>> {
        self.rival.subscribe()
    }

    /// Notified, it looks at the Lease at once and not only after the retry period: for who hears by a watch that the Lease was
    /// given back.
    #[must_use]
    pub fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// Waits to be elected. `None` if `cancel` came first; then it holds nothing.
    ///
    /// Failures on the way, of the network or for want of permission, are logged, and it goes on.
    pub async fn acquire(mut self, cancel: &CancellationToken) -> Option<Leadership> {
        tracing::info!(lease = %self.lock.name(), identity = %self.identity, "attempting to acquire leader lease");
        let began = self.lock.env.now();
        let (mut pause, mut next) = (SAID_AFTER, began + SAID_AFTER);
        while !cancel.is_cancelled() {
            let now = self.lock.env.now();
            if now >= next {
                pause = (pause * 2).min(SAID_AT_LEAST_EVERY);
                next = now + pause;
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

    /// Waits to be elected, then does what only a leader may, then gives the Lease back.
    ///
    /// `lead` is a future that ends by itself when it should; `cancel` ends the waiting alone. `None` if it came first.
    ///
    /// # Errors
    /// If the leadership was lost while `lead` ran. It is dropped where it waits then; it has the [`Fence`] to ask before
    /// each act that cannot be taken back.
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
            tracing::warn!(%error, "the lease was not given back; it ends by itself");
        }
        Ok(Some(done))
    }

    /// Until the next attempt: the retry period and a bit, or less if a Lease ends before.
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
            // A read can be given up at any time. A write is waited for: it may make this one the leader.
            () = cancel.cancelled() => return Attempt::Again,
        };
        match found {
            Ok(found) => self.stand(found).await,
            Err(error) => {
                tracing::warn!(lease = %self.lock.name(), %error, "the leader lease cannot be read");
                Attempt::Again
            }
        }
    }

    async fn stand(&mut self, found: Option<Lease>) -> Attempt {
        let (env, options) = (self.lock.env.clone(), &self.lock.options);
        // The moment after the answer: later than when it was renewed, whenever that was.
        let now = env.now();
        self.tell(found.as_ref());
        let begun = found
            .as_ref()
            .and_then(|lease| self.uncertain.iter().find(|term| term.is_shown_by(lease)).cloned());
        if let (Some(lease), None) = (&found, &begun) {
            let renewed = Observation::update(&mut self.seen, lease, now);
            if let Some(holder) = holder(lease).filter(|_| renewed) {
                self.rival.send_if_modified(|rival| {
                    let changed = rival.as_deref() != Some(holder);
                    *rival = Some(holder.to_owned());
                    changed
                });
            }
            self.others_until = self.seen.as_ref().and_then(|seen| seen.held_until(options.lease_duration));
        }
        // Also if the Lease is gone, or if it is our own by a request that came late: its holder may not know yet.
        if let Some(until) = self.others_until.filter(|until| now < *until) {
            return Attempt::HeldUntil(until);
        }
        let term =
            begun.unwrap_or_else(|| Term::after(found.as_ref(), &self.identity, env.wall(), env.now()));
        let exists = found.is_some();
        let mut lease = found.unwrap_or_else(|| self.lock.blank());
        term.renew(&mut lease, options.lease_seconds(), env.now());
        let sent = env.now();
        let answer = if exists { self.lock.update(&lease).await } else { self.lock.create(&lease).await };
        match answer {
            Ok(lease) if env.now() < sent + self.lock.options.renew_deadline => {
                let lease = Box::new(lease);
                return Attempt::Won { lease, term, sent };
            }
            // Won, and the time of it is over: this process was stopped meanwhile, or the server slow.
            Ok(_) => self.remember(term),
            Err(CallError::Failed(error) | CallError::NoAnswer(error)) => {
                tracing::warn!(lease = %self.lock.name(), %error, "the leader lease may not have been acquired");
                self.remember(term);
            }
            Err(CallError::Conflict) => tracing::debug!(lease = %self.lock.name(), "somebody else was first"),
            Err(error) => {
                tracing::warn!(lease = %self.lock.name(), %error, "the leader lease cannot be acquired");
            }
        }
        Attempt::Again
    }

    fn remember(&mut self, term: Term) {
        if self.uncertain.len() == UNCERTAIN {
            self.uncertain.remove(0);
        }
        self.uncertain.push(term);
    }

    fn tell(&self, found: Option<&Lease>) {
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
