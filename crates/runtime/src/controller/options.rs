//! Options of a controller.

use std::{collections::BTreeMap, fmt, num::NonZeroUsize, sync::Arc, time::Duration};

use crate::{
    GroupKind,
    leader::LeaderElectionOptions,
    queue::{ExponentialLimiter, Fairness, Key, RateLimiter},
};

/// Options of a controller. `None` falls back to the manager's [`ControllerDefaults`], then to the default.
pub struct ControllerOptions<R: Key> {
    /// Maximum number of concurrent reconciles; the same request never runs twice at a time. 1 by default.
    pub max_concurrent_reconciles: Option<NonZeroUsize>,
    /// Maximum time to wait for the sources to sync at the start. Kinds that are not served yet are waited for without
    /// limit. 2 minutes by default.
    pub cache_sync_timeout: Option<Duration>,
    /// Whether a panic of the reconciler counts as an error. On by default; otherwise a panic stops the manager.
    pub recover_panic: Option<bool>,
    /// Time after which a reconcile is cancelled and counts as failed. Unlimited by default.
    pub reconciliation_timeout: Option<Duration>,
    /// Backoff of failed requests. By default 5 ms, doubled with each failure, up to 1000 s.
    pub rate_limiter: Arc<dyn RateLimiter<R>>,
    /// Prevents starvation of requests with low priority.
    pub fairness: Fairness,
    /// Whether the controller runs on the leader only, if the manager has leader election. On by default.
    pub needs_leader_election: Option<bool>,
    /// A separate election for this controller, in addition to the manager's: controllers of one program can run on
    /// different replicas.
    pub leader_election: Option<LeaderElectionOptions>,
}

impl<R: Key> Default for ControllerOptions<R> {
    fn default() -> ControllerOptions<R> {
        ControllerOptions {
            max_concurrent_reconciles: None,
            cache_sync_timeout: None,
            recover_panic: None,
            reconciliation_timeout: None,
            rate_limiter: Arc::new(ExponentialLimiter::default()),
            fairness: Fairness::default(),
            needs_leader_election: None,
            leader_election: None,
        }
    }
}

impl<R: Key> ControllerOptions<R> {
    /// The defaults, with this many concurrent reconciles (at least one).
    #[must_use]
    pub fn concurrent(max: usize) -> ControllerOptions<R> {
        let max_concurrent_reconciles = Some(NonZeroUsize::new(max).unwrap_or(NonZeroUsize::MIN));
        ControllerOptions { max_concurrent_reconciles, ..ControllerOptions::default() }
    }
}

/// Defaults for the options of a manager's controllers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControllerDefaults {
    /// See [`ControllerOptions::max_concurrent_reconciles`].
    pub max_concurrent_reconciles: Option<NonZeroUsize>,
    /// The same for controllers that are [for](super::Builder::for_) a kind; takes precedence over
    /// [`max_concurrent_reconciles`](Self::max_concurrent_reconciles). Go's `GroupKindConcurrency`.
    pub group_kind_concurrency: BTreeMap<GroupKind, NonZeroUsize>,
    /// See [`ControllerOptions::cache_sync_timeout`].
    pub cache_sync_timeout: Option<Duration>,
    /// See [`ControllerOptions::recover_panic`].
    pub recover_panic: Option<bool>,
    /// See [`ControllerOptions::reconciliation_timeout`].
    pub reconciliation_timeout: Option<Duration>,
    /// See [`ControllerOptions::needs_leader_election`].
    pub needs_leader_election: Option<bool>,
}

/// Options with all defaults applied.
pub(super) struct Settings {
    pub(super) max_concurrent_reconciles: NonZeroUsize,
    pub(super) cache_sync_timeout: Duration,
    pub(super) recover_panic: bool,
    pub(super) reconciliation_timeout: Option<Duration>,
    pub(super) needs_leader_election: bool,
    pub(super) leader_election: Option<LeaderElectionOptions>,
}

impl Settings {
    /// The options of a controller, then those of its manager for its kind and for all, then the defaults.
    pub(super) fn of<R: Key>(
        options: &ControllerOptions<R>,
        defaults: &ControllerDefaults,
        kind: Option<&GroupKind>,
    ) -> Settings {
        let by_kind = kind.and_then(|kind| defaults.group_kind_concurrency.get(kind).copied());
        Settings {
            max_concurrent_reconciles: options
                .max_concurrent_reconciles
                .or(by_kind)
                .or(defaults.max_concurrent_reconciles)
                .unwrap_or(NonZeroUsize::MIN),
            cache_sync_timeout: options
                .cache_sync_timeout
                .or(defaults.cache_sync_timeout)
                .unwrap_or(Duration::from_secs(120)),
            recover_panic: options.recover_panic.or(defaults.recover_panic).unwrap_or(true),
            reconciliation_timeout: options.reconciliation_timeout.or(defaults.reconciliation_timeout),
            needs_leader_election: options
                .needs_leader_election
                .or(defaults.needs_leader_election)
                .unwrap_or(true),
            leader_election: options.leader_election.clone(),
        }
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
