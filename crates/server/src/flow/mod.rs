//! Limits on the resources of requests: slots for requests in flight, bytes of request and response bodies, permits for
//! large work. Requests over the limit get 429 with `Retry-After`.
//!
//! A request is charged for a resource only when it uses it: for its body as the bytes arrive, for its slot once the body
//! is complete. So a client that sends slowly holds only the bytes it has sent.

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
pub(crate) use body::{RequestBody, read};

/// The slot of a request in flight.
pub(crate) struct Slot {
    shared: Arc<Shared>,
    share: Share,
}

/// Takes a slot for a request.
pub(crate) fn slot(shared: &Arc<Shared>, share: Share) -> Result<Slot, Status> {
    let most = shared.options.max_in_flight;
    let all = shared.metrics.in_flight.fetch_add(1, Ordering::Relaxed);
    let common = match share {
        Share::Common => shared.capacity.common.fetch_add(1, Ordering::Relaxed),
        Share::Reserved => 0,
    };
    // Decrements the counters when dropped, also if the request is rejected.
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

/// Reserves memory for a response with these items that is buffered as a whole.
pub(crate) async fn room(cx: &Cx, items: &[Stored]) -> Result<Charge, Status> {
    let shared = &cx.tenant.shared;
    let bytes = items.iter().map(Stored::len).sum();
    let mut charge = Charge::new(&shared.capacity.answers, Share::of(&cx.user));
    charge.grow_alone(&shared.env, bytes, shared.options.limits.patience).await?;
    Ok(charge)
}
