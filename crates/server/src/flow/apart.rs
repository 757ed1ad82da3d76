//! Large requests are worked on apart: each on a thread for blocking work, so many at a time.
//!
//! A tokio worker that decodes three megabytes serves nobody else meanwhile, and as many such requests as there are
//! workers stall everything. The whole of a large request moves, not the costly steps of it one by one: all of them
//! (decoding, defaults, validation, patches, encoding) grow with the same bytes, and a step that is added later cannot be
//! forgotten. Small requests, which is nearly all, never leave their worker.
//!
//! A request with a large body is known by its length. One that turns out to be large because of what is stored says so
//! ([`Cx::weigh`]) before it has changed anything, and is begun again apart.

use std::{future::Future, num::NonZero, sync::Arc, sync::atomic::Ordering};

use k1s_env::TaskError;
use k1s_object::Status;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Share, busy};
use crate::{context::Cx, input, respond::List, stored::Stored, tenant::Shared};

/// Turns at large work.
pub(super) struct Turns {
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

    async fn take(&self, shared: &Shared, share: Share) -> Result<OwnedSemaphorePermit, Status> {
        match (self.common.clone().try_acquire_owned(), share) {
            (Ok(turn), _) => Ok(turn),
            (Err(_), Share::Common) => wait(shared, &self.common).await,
            (Err(_), Share::Reserved) => wait(shared, &self.reserved).await,
        }
    }
}

async fn wait(shared: &Shared, turns: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Status> {
    match shared.env.timeout(shared.options.limits.large_patience, turns.clone().acquire_owned()).await {
        Ok(Ok(turn)) => Ok(turn),
        // Nobody closes them.
        _ => Err(busy()),
    }
}

/// Waits for a turn, and does large work apart.
pub(crate) async fn run<F, T>(shared: &Arc<Shared>, share: Share, work: F) -> Result<T, Status>
where
    F: Future<Output = Result<T, Status>> + Send + 'static,
    T: Send + 'static,
{
    let turn = shared.flow.turns.take(shared, share).await?;
    work_on(shared, turn, work).await
}

async fn work_on<F, T>(shared: &Shared, turn: OwnedSemaphorePermit, work: F) -> Result<T, Status>
where
    F: Future<Output = Result<T, Status>> + Send + 'static,
    T: Send + 'static,
{
    // The turn ends with the work, which goes on if the client does not wait for it.
    let work = async move {
        let done = work.await;
        drop(turn);
        done
    };
    match shared.env.drive_apart("large request", work).await {
        Ok(done) => done,
        Err(TaskError::Panicked { message, .. }) => {
            tracing::error!(message, "a request made the server panic; this is a bug");
            Err(Status::internal("the server panicked while it worked on the request"))
        }
        Err(TaskError::Cancelled { .. }) => {
            Err(Status::new(503, "ServiceUnavailable", "the server is shutting down"))
        }
    }
}

/// A reason of our own, which no client ever sees.
const REASON: &str = "k1s/apart";

/// Whether a request has to be begun again apart.
pub(crate) fn is_for_apart(status: &Status) -> bool {
    status.reason == REASON
}

impl Cx {
    /// Whether the request is to be worked on apart because of what was sent.
    pub(crate) fn is_large(&self) -> bool {
        let limit = self.tenant.options().limits.large_bytes;
        // A few aliases in YAML make much of little.
        self.body.len() > limit
            || (!self.body.is_empty()
                && input::content_type(self).contains("yaml")
                && memchr::memchr(b'&', &self.body).is_some())
    }

    /// From here on the request is worked on apart.
    pub(crate) fn go_apart(&self) {
        self.apart.store(true, Ordering::Relaxed);
    }

    /// To be asked before an object of this size is looked into, and before anything is changed.
    ///
    /// # Errors
    /// If the request has to be begun again apart.
    pub(crate) fn weigh(&self, bytes: usize) -> Result<(), Status> {
        if bytes > self.tenant.options().limits.large_bytes && !self.apart.load(Ordering::Relaxed) {
            return Err(Status::new(500, REASON, "a large request is worked on apart"));
        }
        Ok(())
    }

    /// The same for a number of objects that are only looked at, or sent as they are.
    pub(crate) fn weigh_scan(&self, objects: usize) -> Result<(), Status> {
        // What each costs, in bytes that cost as much.
        const EACH: usize = 2;
        self.weigh(objects.saturating_mul(EACH))
    }

    /// The same for each object of a list.
    pub(crate) fn weigh_list(&self, list: &List) -> Result<(), Status> {
        // What an object costs however small it is, in bytes that cost as much.
        const EACH: usize = 256;
        self.weigh(list.items.iter().map(Stored::len).sum::<usize>() / 4 + list.items.len() * EACH / 4)
    }
}
