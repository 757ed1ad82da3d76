//! Large answers, of which few are held at once.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Answers beyond this size are large.
pub(super) const LARGE_ANSWER_BYTES: usize = 1 << 20;
/// Maximum number of large answers that are held at once; further ones wait, within their timeouts.
const ALL: usize = 12;
/// Maximum number of those of one tenant: its webhooks may be as slow as they like.
const OF_A_TENANT: usize = 2;

/// The permits for large answers.
#[derive(Debug)]
pub(super) struct LargeAnswers {
    all: Arc<Semaphore>,
    tenants: Mutex<HashMap<Box<str>, Weak<Semaphore>>>,
}

/// A permit for one, held while it is in memory.
#[derive(Debug)]
pub(crate) struct LargeAnswer {
    _of_all: OwnedSemaphorePermit,
    _of_tenant: OwnedSemaphorePermit,
}

impl Default for LargeAnswers {
    fn default() -> LargeAnswers {
        LargeAnswers { all: Arc::new(Semaphore::new(ALL)), tenants: Mutex::default() }
    }
}

impl LargeAnswers {
    /// Waits for a permit.
    pub(super) async fn take(&self, tenant: &str) -> Result<LargeAnswer, AcquireError> {
        // Whoever waits for its own tenant holds nothing that others need.
        let of_tenant = self.of(tenant).acquire_owned().await?;
        Ok(LargeAnswer { _of_all: self.all.clone().acquire_owned().await?, _of_tenant: of_tenant })
    }

    fn of(&self, tenant: &str) -> Arc<Semaphore> {
        let mut tenants = self.tenants.lock();
        if let Some(known) = tenants.get(tenant).and_then(Weak::upgrade) {
            return known;
        }
        tenants.retain(|_, one| one.strong_count() > 0);
        let new = Arc::new(Semaphore::new(OF_A_TENANT));
        tenants.insert(tenant.into(), Arc::downgrade(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_tenant_has_a_part_of_the_permits_and_is_forgotten_without_any() {
        let permits = LargeAnswers::default();
        let mut held = Vec::new();
        for number in 0..ALL / OF_A_TENANT {
            let tenant = format!("t{number}");
            for _ in 0..OF_A_TENANT {
                held.push(permits.take(&tenant).await.unwrap());
            }
            assert!(permits.take(&tenant).now_or_never().is_none());
        }
        let mut last = pin!(permits.take("last"));
        assert!((&mut last).now_or_never().is_none(), "all together are bounded, too");
        held.remove(0);
        last.await.unwrap();
        held.clear();
        drop(permits.take("t0").await.unwrap());
        assert!(permits.tenants.lock().len() <= 2);
    }
}
