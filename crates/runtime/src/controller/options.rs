//! How a controller works.

use std::{fmt, num::NonZeroUsize, sync::Arc, time::Duration};

use crate::{
    leader::LeaderElectionOptions,
    queue::{ExponentialLimiter, Fairness, Key, RateLimiter},
};

/// The options of a controller.
pub struct ControllerOptions<R: Key> {
    /// How many requests are reconciled at the same time; never one twice. 1 by default.
    pub max_concurrent_reconciles: NonZeroUsize,
    /// How long the controller waits for its sources at its start. Kinds that are not served are waited for without
    /// limit. 2 minutes by default.
    pub cache_sync_timeout: Duration,
    /// Turns a panic of the reconciler into an error. On by default; otherwise it ends the manager.
    pub recover_panic: bool,
    /// After what time a reconcile is given up and counts as failed. None by default.
    pub reconciliation_timeout: Option<Duration>,
    /// How long requests wait that failed. By default 5 ms, doubled with each failure, up to 1000 s.
    pub rate_limiter: Arc<dyn RateLimiter<R>>,
    /// What is done so that requests of low priority do not starve.
    pub fairness: Fairness,
    /// Whether the controller runs on the leader only. On by default; it matters if the manager has leader election.
    pub needs_leader_election: bool,
    /// An election of the controller's own, beside the manager's: controllers of one program can run on different
    /// replicas.
    pub leader_election: Option<LeaderElectionOptions>,
}

impl<R: Key> Default for ControllerOptions<R> {
    fn default() -> ControllerOptions<R> {
        ControllerOptions {
            max_concurrent_reconciles: NonZeroUsize::MIN,
            cache_sync_timeout: Duration::from_secs(120),
            recover_panic: true,
            reconciliation_timeout: None,
            rate_limiter: Arc::new(ExponentialLimiter::default()),
            fairness: Fairness::default(),
            needs_leader_election: true,
            leader_election: None,
        }
    }
}

impl<R: Key> ControllerOptions<R> {
    /// The defaults, with so many reconciles at the same time (at least one).
    #[must_use]
    pub fn concurrent(max: usize) -> ControllerOptions<R> {
        let max_concurrent_reconciles = NonZeroUsize::new(max).unwrap_or(NonZeroUsize::MIN);
        ControllerOptions { max_concurrent_reconciles, ..ControllerOptions::default() }
    }
}

impl<R: Key> Clone for ControllerOptions<R> {
    fn clone(&self) -> ControllerOptions<R> {
        ControllerOptions {
            max_concurrent_reconciles: self.max_concurrent_reconciles,
            cache_sync_timeout: self.cache_sync_timeout,
            recover_panic: self.recover_panic,
            reconciliation_timeout: self.reconciliation_timeout,
            rate_limiter: Arc::clone(&self.rate_limiter),
            fairness: self.fairness,
            needs_leader_election: self.needs_leader_election,
            leader_election: self.leader_election.clone(),
        }
    }
}

impl<R: Key> fmt::Debug for ControllerOptions<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerOptions")
            .field("max_concurrent_reconciles", &self.max_concurrent_reconciles)
            .field("cache_sync_timeout", &self.cache_sync_timeout)
            .field("recover_panic", &self.recover_panic)
            .field("reconciliation_timeout", &self.reconciliation_timeout)
            .field("needs_leader_election", &self.needs_leader_election)
            .finish_non_exhaustive()
    }
}
