//! Limits on the resources of requests: seats for requests in flight, bytes of request and response bodies, permits for
//! large work. Requests over the limit get 429 with `Retry-After`; how seats are shared, `fairness` decides.
//!
//! A request is charged for a resource only when it uses it: for its body as the bytes arrive, for its seat once the body
//! is complete. So a client that sends slowly holds only the bytes it has sent.

mod apart;
mod body;

use std::sync::{Arc, atomic::Ordering};

use k1s_object::Status;

use crate::{
    capacity::{Charge, Share},
    context::Cx,
    fairness::{Flow, Seat},
    stored::Stored,
    tenant::Shared,
};

pub(crate) use apart::{HERE, compute, run};
pub(crate) use body::{RequestBody, read};

/// A request in flight.
pub(crate) struct Slot {
    shared: Arc<Shared>,
    _seat: Seat,
}

impl Slot {
    fn new(shared: &Arc<Shared>, seat: Seat) -> Slot {
        shared.metrics.in_flight.fetch_add(1, Ordering::Relaxed);
        Slot { shared: shared.clone(), _seat: seat }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.shared.metrics.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits for a seat.
///
/// # Errors
/// 429.
pub(crate) async fn slot(shared: &Arc<Shared>, flow: &Flow) -> Result<Slot, Status> {
    Ok(Slot::new(shared, flow.seat().await?))
}

/// The same for large work, which has waited for its turn: it takes a seat, but does not wait for one.
pub(crate) fn slot_now(shared: &Arc<Shared>, flow: &Flow) -> Slot {
    Slot::new(shared, flow.seat_now())
}

/// Reserves memory for a response with these items that is buffered as a whole.
pub(crate) async fn room(cx: &Cx, items: &[Stored]) -> Result<Charge, Status> {
    let shared = &cx.tenant.shared;
    let bytes = items.iter().map(Stored::len).sum();
    let mut charge = Charge::new(&shared.capacity.answers, Share::of(&cx.user));
    charge.grow_alone(&shared.env, bytes, shared.options.limits.patience).await?;
    Ok(charge)
}
