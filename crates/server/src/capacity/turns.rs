//! Permits for large work.

use std::{num::NonZero, sync::Arc, time::Duration};

use k1s_env::Env;
use k1s_object::Status;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Share;
use crate::errors;

/// Permits for large work; the reserved share has an additional one.
pub(crate) struct Turns {
    common: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
}

impl Turns {
    pub(super) fn new(most: usize) -> Turns {
        let most = match most {
            0 => std::thread::available_parallelism().map_or(1, NonZero::get).saturating_sub(1).max(1),
            most => most,
        };
        Turns { common: Arc::new(Semaphore::new(most)), reserved: Arc::new(Semaphore::new(1)) }
    }

    pub(crate) async fn take(
        &self,
        env: &Env,
        patience: Duration,
        share: Share,
    ) -> Result<OwnedSemaphorePermit, Status> {
        match (self.common.clone().try_acquire_owned(), share) {
            (Ok(turn), _) => Ok(turn),
            (Err(_), Share::Common) => wait(env, patience, &self.common).await,
            (Err(_), Share::Reserved) => wait(env, patience, &self.reserved).await,
        }
    }
}

async fn wait(env: &Env, patience: Duration, turns: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Status> {
    match env.timeout(patience, turns.clone().acquire_owned()).await {
        Ok(Ok(turn)) => Ok(turn),
        // Timed out; the semaphore is never closed.
        _ => Err(errors::busy()),
    }
}
