//! A byte budget shared by requests.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k1s_env::Env;
use k1s_object::Status;
use tokio::sync::Notify;

use super::Share;
use crate::errors;

pub(crate) struct Budget {
    used: AtomicUsize,
    /// The limit of the common share.
    total: usize,
    /// Additional bytes for the reserved share.
    reserved: usize,
    waiting: AtomicUsize,
    freed: Notify,
}

impl Budget {
    pub(super) fn new(total: usize, reserved: usize) -> Arc<Budget> {
        Arc::new(Budget {
            used: AtomicUsize::new(0),
            total,
            reserved,
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
        })
    }

    fn limit(&self, share: Share) -> usize {
        match share {
            Share::Common => self.total,
            Share::Reserved => self.total.saturating_add(self.reserved),
        }
    }

    fn try_take(&self, bytes: usize, share: Share) -> bool {
        let limit = self.limit(share);
        let fits = |used: usize| used.checked_add(bytes).filter(|after| *after <= limit);
        self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits).is_ok()
    }

    async fn take(&self, env: &Env, bytes: usize, share: Share, patience: Duration) -> Result<(), Status> {
        if self.try_take(bytes, share) {
            return Ok(());
        }
        // Counted while waiting, so that `give_back` notifies only if there are waiters.
        let _waiting = Waiting::new(&self.waiting);
        let take = async {
            loop {
                let mut freed = std::pin::pin!(self.freed.notified());
                freed.as_mut().enable();
                if self.try_take(bytes, share) {
                    return;
                }
                freed.await;
            }
        };
        env.timeout(patience, take).await.map_err(|_| errors::busy())
    }

    fn give_back(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.used.fetch_sub(bytes, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.freed.notify_waiters();
        }
    }
}

struct Waiting<'a>(&'a AtomicUsize);

impl Waiting<'_> {
    fn new(count: &AtomicUsize) -> Waiting<'_> {
        count.fetch_add(1, Ordering::SeqCst);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Bytes taken from a budget; returned on drop.
pub(crate) struct Charge {
    budget: Arc<Budget>,
    share: Share,
    bytes: usize,
}

impl Charge {
    pub(crate) fn new(budget: &Arc<Budget>, share: Share) -> Charge {
        Charge { budget: budget.clone(), share, bytes: 0 }
    }

    /// Takes more.
    ///
    /// # Errors
    /// 429 if the bytes do not become available within `patience`.
    pub(crate) async fn grow(&mut self, env: &Env, bytes: usize, patience: Duration) -> Result<(), Status> {
        self.budget.take(env, bytes, self.share, patience).await?;
        self.bytes += bytes;
        Ok(())
    }

    /// Takes more, at most the whole budget: for responses that may exceed it, and then run alone.
    pub(crate) async fn grow_alone(
        &mut self,
        env: &Env,
        bytes: usize,
        patience: Duration,
    ) -> Result<(), Status> {
        self.grow(env, bytes.min(self.budget.total), patience).await
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}
