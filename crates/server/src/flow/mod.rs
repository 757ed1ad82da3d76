//! How much of the server requests can take: places among those that are worked on, bytes of bodies and of answers,
//! turns for large work. What does not fit is told to come back.
//!
//! A request is charged for what it takes when it takes it: its body as its bytes arrive, its place when the body is
//! there. So a client that sends slowly holds what it has sent, and nothing else.

mod apart;
mod body;

use std::sync::{Arc, atomic::Ordering};

use k1s_object::Status;

use crate::{
    capacity::{Charge, Share},
    context::Cx,
    errors,
    stored::Stored,
    tenant::Shared,
};

pub(crate) use apart::run;
pub(crate) use body::read;

/// A place among the requests that are worked on.
pub(crate) struct Slot {
    shared: Arc<Shared>,
    share: Share,
}

/// Takes a place among the requests that are worked on.
pub(crate) fn slot(shared: &Arc<Shared>, share: Share) -> Result<Slot, Status> {
    let most = shared.options.max_in_flight;
    let all = shared.metrics.in_flight.fetch_add(1, Ordering::Relaxed);
    let common = match share {
        Share::Common => shared.capacity.common.fetch_add(1, Ordering::Relaxed),
        Share::Reserved => 0,
    };
    // Gives back what was counted, also if it is refused.
    let slot = Slot { shared: shared.clone(), share };
    let all_limit = most.saturating_add(shared.options.limits.reserved_in_flight);
    if common >= most || all >= all_limit as u64 {
        return Err(errors::busy());
    }
    Ok(slot)
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.shared.metrics.in_flight.fetch_sub(1, Ordering::Relaxed);
        if self.share == Share::Common {
            self.shared.capacity.common.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Takes room for an answer of this many bytes that is made as a whole.
pub(crate) async fn room(cx: &Cx, items: &[Stored]) -> Result<Charge, Status> {
    let shared = &cx.tenant.shared;
    let bytes = items.iter().map(Stored::len).sum();
    let mut charge = Charge::new(&shared.capacity.answers, Share::of(&cx.user));
    charge.grow_alone(&shared.env, bytes, shared.options.limits.patience).await?;
    Ok(charge)
}
