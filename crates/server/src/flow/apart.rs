//! Large requests run apart: each on a thread for blocking work, a limited number at a time.
//!
//! A tokio worker that decodes three megabytes serves no other request meanwhile, and as many such requests as there are
//! workers stall the server. A large request moves as a whole, not step by step: the cost of every step (decoding,
//! defaults, validation, patches, encoding) grows with the same bytes, and a step added later is covered as well. Small
//! requests, which are nearly all, never leave their worker.
//!
//! A request with a large body is recognized by its length. One that turns out to be large because of stored objects
//! fails with [`Error::Apart`] ([`Cx::weigh`]) before it has changed anything, and is restarted apart.

use std::{
    future::Future,
    sync::{Arc, atomic::Ordering},
};

use k1s_env::TaskError;
use k1s_object::Status;

use crate::{
    capacity::{HeldTurn, Share},
    context::Cx,
    errors::{self, Error},
    input,
    stored::Stored,
    tenant::Shared,
};

/// Waits for a permit and runs large work apart.
pub(crate) async fn run<F, T>(
    shared: &Arc<Shared>,
    share: Share,
    flow: u64,
    turn: HeldTurn,
    work: F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>> + Send + 'static,
    T: Send + 'static,
{
    let permit = shared.capacity.turns.take(flow, share == Share::Reserved).await?;
    *turn.lock() = Some(permit);
    work_on(shared, turn, work).await
}

async fn work_on<F, T>(shared: &Shared, turn: HeldTurn, work: F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>> + Send + 'static,
    T: Send + 'static,
{
    // The permit is held until the work ends, even if the client disconnects before that.
    let work = async move {
        let done = work.await;
        drop(turn.lock().take());
        done
    };
    match shared.env.drive_apart("large request", work).await {
        Ok(done) => done,
        Err(TaskError::Panicked { message, .. }) => {
            tracing::error!(message, "the server panicked while handling a request; this is a bug");
            Err(Status::internal("the server panicked while handling the request").into())
        }
        Err(TaskError::Cancelled { .. }) => Err(errors::shutting_down().into()),
    }
}

/// Cost of scanning one object, in equivalent bytes.
const SCAN_BYTES: usize = 2;

/// The work of expressions that a request does on the thread that serves it, in units of their cost: a few milliseconds.
pub(crate) const HERE: u64 = 100_000;

/// Computes what would hold up other requests on this thread. For a request that does not run apart itself ([`Cx::holds_turn`]).
///
/// # Errors
/// 429 if there is no turn for it.
pub(crate) async fn compute<T: Send + 'static>(
    cx: &Cx,
    compute: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let work = async move { Ok(compute()) };
    Box::pin(run(&cx.tenant.shared, Share::of(&cx.user), cx.flow, HeldTurn::default(), work)).await
}

impl Cx {
    /// Whether the request has a permit for large work, and runs on a thread for it.
    pub(crate) fn holds_turn(&self) -> bool {
        self.turn.lock().is_some()
    }

    /// Whether the body is large enough to run the request apart.
    pub(crate) fn is_large(&self) -> bool {
        let limit = self.tenant.options().limits.large_bytes;
        // YAML aliases can expand a small body into a large object.
        self.body.len() > limit
            || (!self.body.is_empty()
                && input::content_type(self).contains("yaml")
                && memchr::memchr(b'&', &self.body).is_some())
    }

    /// Records that the request runs apart.
    pub(crate) fn go_apart(&self) {
        self.apart.store(true, Ordering::Relaxed);
    }

    /// Gives back the permit for large work while the request waits for a webhook, which may be slow: it computes nothing then.
    pub(crate) fn lend_turn(&self) -> Lent {
        Lent { held: self.turn.lock().take().is_some() }
    }

    /// To be called before an object of this size is decoded, and before anything is changed.
    ///
    /// # Errors
    /// [`Error::Apart`] if the request has to be restarted apart.
    pub(crate) fn weigh(&self, bytes: usize) -> Result<(), Error> {
        if bytes > self.tenant.options().limits.large_bytes && !self.apart.load(Ordering::Relaxed) {
            return Err(Error::Apart);
        }
        Ok(())
    }

    /// The same for a number of objects that are only filtered, or sent without decoding.
    pub(crate) fn weigh_scan(&self, objects: usize) -> Result<(), Error> {
        self.weigh(objects.saturating_mul(SCAN_BYTES))
    }

    /// Maximum number of objects that a small request may scan.
    pub(crate) fn max_scan(&self) -> usize {
        match self.apart.load(Ordering::Relaxed) {
            true => usize::MAX,
            false => self.tenant.options().limits.large_bytes / SCAN_BYTES,
        }
    }

    /// The same for the objects of a list.
    pub(crate) fn weigh_list(&self, items: &[Stored]) -> Result<(), Error> {
        // Fixed cost of one object, in equivalent bytes.
        const EACH: usize = 256;
        self.weigh(items.iter().map(Stored::len).sum::<usize>() / 4 + items.len() * EACH / 4)
    }
}

/// Whether a request has given back its permit.
#[must_use]
pub(crate) struct Lent {
    held: bool,
}

impl Lent {
    /// Waits for the permit again.
    pub(crate) async fn take_back(self, cx: &Cx) -> Result<(), Status> {
        if self.held {
            let is_reserved = Share::of(&cx.user) == Share::Reserved;
            let permit = cx.tenant.shared.capacity.turns.take(cx.flow, is_reserved).await?;
            *cx.turn.lock() = Some(permit);
        }
        Ok(())
    }
}
