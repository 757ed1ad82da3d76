//! The right to work on a shard.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::{
    client::{Call, Error, Interceptor},
    leader::Fence,
};

/// The right of this replica to work on a shard, from its acquisition to its release or loss. Cheap to clone and to query.
///
/// As an [`Interceptor`] of a client it refuses writes after its end: `client.intercept(token)`.
#[derive(Clone)]
pub struct ShardToken {
    inner: Arc<Inner>,
}

struct Inner {
    shard: u32,
    value: u64,
    /// The replica's membership.
    fence: Fence,
    ended: AtomicBool,
    over: CancellationToken,
    reason: OnceLock<Arc<str>>,
}

/// Another replica owns the shard, or may soon.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("shard {shard} is not owned any more: {reason}")]
#[non_exhaustive]
pub struct ShardLost {
    /// The shard.
    pub shard: u32,
    /// Why.
    pub reason: Arc<str>,
}

impl ShardToken {
    pub(super) fn new(shard: u32, value: u64, fence: Fence) -> ShardToken {
        ShardToken {
            inner: Arc::new(Inner {
                shard,
                value,
                fence,
                ended: AtomicBool::new(false),
                over: CancellationToken::new(),
                reason: OnceLock::new(),
            }),
        }
    }

    /// The shard.
    #[must_use]
    pub fn shard(&self) -> u32 {
        self.inner.shard
    }

    /// The fencing token: each acquisition of the shard, by any replica, has a higher one than those before it. Write it along
    /// with a change, on the condition that no higher one is there.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.inner.value
    }

    /// Whether this replica may work on the shard right now. While the shard is about to be released it may: work in flight
    /// finishes, and none should begin.
    ///
    /// The answer is computed from the clock, so it is correct even right after the process was paused. Check it right before
    /// each write.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.inner.ended.load(Ordering::Acquire) && self.inner.fence.is_valid()
    }

    /// For how long it stays valid without another renewal of this replica's Lease; zero if it has ended.
    #[must_use]
    pub fn valid_for(&self) -> Duration {
        if self.inner.ended.load(Ordering::Acquire) { Duration::ZERO } else { self.inner.fence.valid_for() }
    }

    /// [`is_valid`](Self::is_valid) as a `Result`, for use with `?`.
    ///
    /// # Errors
    /// If the shard was released or lost.
    pub fn check(&self) -> Result<(), ShardLost> {
        if self.is_valid() { Ok(()) } else { Err(self.loss()) }
    }

    /// Waits for the end of the right. A task notices it, so it may be late; [`check`](Self::check) is not.
    pub async fn lost(&self) -> ShardLost {
        tokio::select! {
            () = self.inner.over.cancelled() => {}
            _ = self.inner.fence.lost() => {}
        }
        self.loss()
    }

    pub(super) fn end(&self, reason: &str) {
        let _ = self.inner.reason.set(reason.into());
        self.inner.ended.store(true, Ordering::Release);
        self.inner.over.cancel();
    }

    fn loss(&self) -> ShardLost {
        let reason = match self.inner.fence.check() {
            Err(lost) if self.inner.reason.get().is_none() => lost.reason,
            _ => self.inner.reason.get().cloned().unwrap_or_default(),
        };
        ShardLost { shard: self.inner.shard, reason }
    }
}

#[async_trait]
impl Interceptor for ShardToken {
    async fn before(&self, call: &Call<'_>) -> Result<(), Error> {
        if call.verb.is_write() { self.check().map_err(|lost| Error::Other(lost.into())) } else { Ok(()) }
    }
}

impl fmt::Debug for ShardToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardToken")
            .field("shard", &self.inner.shard)
            .field("value", &self.inner.value)
            .field("valid_for", &self.valid_for())
            .finish()
    }
}
