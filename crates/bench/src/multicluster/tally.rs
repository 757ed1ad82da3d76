//! Counts reconciles.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use k1s_env::{Env, Instant};
use tokio::sync::watch;

use crate::Failure;

/// Maximum time to wait for reconciles.
const PATIENCE: Duration = Duration::from_secs(300);

pub(super) struct Tally {
    env: Env,
    count: AtomicU64,
    target: AtomicU64,
    reached: watch::Sender<Option<Instant>>,
}

impl Tally {
    pub(super) fn new(env: &Env) -> Arc<Tally> {
        let (count, target) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Arc::new(Tally { env: env.clone(), count, target, reached: watch::Sender::new(None) })
    }

    /// A reconcile has ended.
    pub(super) fn ran(&self) {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if count == self.target.load(Ordering::Relaxed) {
            self.reached.send_replace(Some(self.env.now()));
        }
    }

    /// Waits for so many more reconciles from now on.
    pub(super) fn expect(&self, more: u64) {
        self.reached.send_replace(None);
        self.target.store(self.count.load(Ordering::SeqCst) + more, Ordering::SeqCst);
    }

    /// When the expected reconciles had ended.
    pub(super) async fn reached(&self) -> Result<Instant, Failure> {
        let mut reached = self.reached.subscribe();
        let reached = self.env.timeout(PATIENCE, reached.wait_for(Option::is_some)).await;
        let at = reached.ok().and_then(|reached| reached.ok().and_then(|at| *at));
        let so_far = || self.count.load(Ordering::Relaxed);
        at.ok_or_else(|| Failure(format!("it stands still after {} reconciles", so_far())))
    }
}
