//! Large requests are worked on apart: each on a thread for blocking work, so many at a time.
//!
//! A tokio worker that decodes three megabytes serves nobody else meanwhile, and as many such requests as there are
//! workers stall everything. The whole of a large request moves, not the costly steps of it one by one: all of them
//! (decoding, defaults, validation, patches, encoding) grow with the same bytes, and a step that is added later cannot be
//! forgotten. Small requests, which is nearly all, never leave their worker.
//!
//! A request with a large body is known by its length. One that turns out to be large because of what is stored says so
//! ([`Cx::weigh`]) before it has changed anything, and is begun again apart.

use std::{
    future::Future,
    sync::{Arc, atomic::Ordering},
};

use k1s_env::TaskError;
use k1s_object::Status;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    capacity::Share,
    context::Cx,
    errors::{self, Error},
    input,
    stored::Stored,
    tenant::Shared,
};

/// Waits for a turn, and does large work apart.
pub(crate) async fn run<F, T>(shared: &Arc<Shared>, share: Share, work: F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>> + Send + 'static,
    T: Send + 'static,
{
    let turn = shared.capacity.turns.take(&shared.env, shared.options.limits.large_patience, share).await?;
    work_on(shared, turn, work).await
}

async fn work_on<F, T>(shared: &Shared, turn: OwnedSemaphorePermit, work: F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>> + Send + 'static,
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
            Err(Status::internal("the server panicked while it worked on the request").into())
        }
        Err(TaskError::Cancelled { .. }) => Err(errors::shutting_down().into()),
    }
}

/// What an object costs that is only looked at, in bytes that cost as much.
const SCAN_BYTES: usize = 2;

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
    pub(crate) fn weigh(&self, bytes: usize) -> Result<(), Error> {
        if bytes > self.tenant.options().limits.large_bytes && !self.apart.load(Ordering::Relaxed) {
            return Err(Error::Apart);
        }
        Ok(())
    }

    /// The same for a number of objects that are only looked at, or sent as they are.
    pub(crate) fn weigh_scan(&self, objects: usize) -> Result<(), Error> {
        self.weigh(objects.saturating_mul(SCAN_BYTES))
    }

    /// Maximum number of objects that [`weigh_scan`](Self::weigh_scan) lets through.
    pub(crate) fn max_scan(&self) -> usize {
        match self.apart.load(Ordering::Relaxed) {
            true => usize::MAX,
            false => self.tenant.options().limits.large_bytes / SCAN_BYTES,
        }
    }

    /// The same for each object of a list.
    pub(crate) fn weigh_list(&self, items: &[Stored]) -> Result<(), Error> {
        // What an object costs however small it is, in bytes that cost as much.
        const EACH: usize = 256;
        self.weigh(items.iter().map(Stored::len).sum::<usize>() / 4 + items.len() * EACH / 4)
    }
}
