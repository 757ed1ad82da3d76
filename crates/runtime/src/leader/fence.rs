//! Whether a leader may still act as one.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use k1s_env::{Env, Instant};
use tokio_util::sync::CancellationToken;

/// Checks whether a [`Leadership`](super::Leadership) is still valid. Cheap to clone and to query.
#[derive(Clone)]
pub struct Fence {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    env: Env,
    /// The instant that `until` counts from.
    origin: Instant,
    /// The end of the validity, in nanoseconds from the origin; 0 once the leadership has ended.
    until: AtomicU64,
    over: CancellationToken,
    reason: OnceLock<Arc<str>>,
    transitions: i64,
}

/// Another candidate leads, or may soon.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("leader election lost")]
#[non_exhaustive]
pub struct LeadershipLost {
    /// Why.
    pub reason: Arc<str>,
}

impl Fence {
    /// Whether the leadership is valid right now.
    ///
    /// The answer is computed from the clock, so it is correct even right after the process was paused. Check it right
    /// before each action that is reserved for the leader.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.shared.nanos(self.shared.env.now()) < self.shared.until.load(Ordering::Acquire)
    }

    /// For how long the leadership stays valid without another renewal; zero if it has ended.
    #[must_use]
    pub fn valid_for(&self) -> Duration {
        let until = self.shared.until.load(Ordering::Acquire);
        Duration::from_nanos(until.saturating_sub(self.shared.nanos(self.shared.env.now())))
    }

    /// [`is_valid`](Self::is_valid) as a `Result`, for use with `?`.
    ///
    /// # Errors
    /// If the leadership has ended.
    pub fn check(&self) -> Result<(), LeadershipLost> {
        if self.is_valid() { Ok(()) } else { Err(self.shared.lost()) }
    }

    /// Waits for the end of the leadership.
    pub async fn lost(&self) -> LeadershipLost {
        self.shared.over.cancelled().await;
        self.shared.lost()
    }

    /// Cancelled when the leadership ends. A task cancels it, so it may be late; critical actions check
    /// [`is_valid`](Self::is_valid).
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.shared.over.child_token()
    }

    /// How often the Lease has changed hands. Later leaders have higher numbers, unless the Lease is deleted.
    #[must_use]
    pub fn transitions(&self) -> i64 {
        self.shared.transitions
    }
}

impl Shared {
    /// Valid from `sent` until `until`.
    pub(super) fn new(env: Env, sent: Instant, until: Instant, transitions: i64) -> Arc<Shared> {
        let this = Shared {
            env,
            origin: sent,
            until: AtomicU64::new(1),
            over: CancellationToken::new(),
            reason: OnceLock::new(),
            transitions,
        };
        this.extend(until);
        Arc::new(this)
    }

    fn nanos(&self, instant: Instant) -> u64 {
        u64::try_from((instant - self.origin).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Extends the validity. A leadership that has ended stays so.
    pub(super) fn extend(&self, until: Instant) {
        let until = self.nanos(until);
        let longer = |now: u64| (now != 0).then_some(until);
        let _ = self.until.fetch_update(Ordering::AcqRel, Ordering::Acquire, longer);
    }

    /// Ends the leadership. The first reason is kept.
    pub(super) fn end(&self, reason: &str) {
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
