//! A leader, from its election to the end of its term.

use std::sync::Arc;

use k1s_env::{Instant, Task};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    Fence, LeaderMetrics, LeadershipLost,
    fence::Shared,
    lock::{CallError, LeaseLock},
    record::{self, Lease, Term},
    renewal::Renewal,
};

/// A leader's term, from its election to its end. The Lease is renewed in the background.
///
/// Dropping it ends the term at once and lets the Lease expire; [`release`](Self::release) gives the Lease back.
pub struct Leadership {
    fence: Fence,
    lock: Arc<LeaseLock>,
    term: Term,
    metrics: LeaderMetrics,
    /// Stops the renewals.
    stop: CancellationToken,
    renewing: Option<Task<Lease>>,
}

/// The Lease was not released. It will expire.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the lease {lease} was not released: {reason}")]
#[non_exhaustive]
pub struct ReleaseError {
    /// Namespace and name of the Lease.
    pub lease: String,
    /// Why it was not released.
    pub reason: String,
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
        let deadline = sent + lock.options.renew_deadline;
        let shared = Shared::new(env.clone(), sent, deadline, term.transitions);
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
            deadline,
        };
        let renewing = env.spawn("leader election", renewal.run(sent, stop.clone()));
        Leadership { fence: Fence { shared }, lock, term, metrics, stop, renewing: Some(renewing) }
    }

    /// A handle to check the leadership with, for the tasks that act on its behalf.
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

    /// The holder identity in the Lease.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.term.identity
    }

    /// Ends the leadership and, if `release_on_cancel` is set, gives the Lease back. Call it after everything that only the
    /// leader may do has ended: another candidate can be elected before this returns.
    ///
    /// A Lease that another candidate has taken meanwhile is left alone.
    ///
    /// # Errors
    /// If the server cannot be reached, or rejects the request.
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
            let Some(mut lease) = lease.filter(|lease| self.term.holds(lease)) else { return Ok(()) };
            record::release(&mut lease, self.lock.env.wall());
            match self.lock.update(&lease).await {
                Ok(_) => {
                    tracing::info!(lease = %self.lock.name(), "released the leader lease");
                    return Ok(());
                }
                // A renewal was in flight, or another client changed an unrelated field.
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
