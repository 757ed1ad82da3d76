//! How much of the server requests can take: places among those that are worked on, bytes of bodies and of answers,
//! turns for large work. What does not fit is told to come back.
//!
//! A request is charged for what it takes when it takes it: its body as its bytes arrive, its place when the body is
//! there. So a client that sends slowly holds what it has sent, and nothing else.

mod apart;
mod body;
mod budget;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use k1s_object::Status;

use crate::{auth::User, context::Cx, errors, options::ServerOptions, respond::List, tenant::Shared};

pub(crate) use apart::run;
pub(crate) use body::read;
pub(crate) use budget::Charge;

use apart::Turns;
use budget::Budget;

/// Whose share a request is taken out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// What everybody has.
    Common,
    /// What is kept for those who run the control plane, too.
    Reserved,
}

impl Share {
    pub(crate) fn of(user: &User) -> Share {
        let runs_it = user.is_admin()
            || matches!(
                &*user.name,
                "system:apiserver" | "system:kube-controller-manager" | "system:kube-scheduler"
            )
            || user.groups.iter().any(|group| group == "system:serviceaccounts:kube-system");
        if runs_it { Share::Reserved } else { Share::Common }
    }
}

/// What is taken of a server.
pub(crate) struct Flow {
    /// Requests out of the common share that are worked on; `Metrics::in_flight` has all.
    common: AtomicUsize,
    bodies: Arc<Budget>,
    answers: Arc<Budget>,
    turns: Turns,
}

impl Flow {
    pub(crate) fn new(options: &ServerOptions) -> Flow {
        let limits = &options.limits;
        Flow {
            common: AtomicUsize::new(0),
            bodies: Budget::new(limits.max_body_bytes_in_flight, limits.reserved_body_bytes),
            answers: Budget::new(limits.max_answer_bytes_in_flight, limits.max_answer_bytes_in_flight / 4),
            turns: Turns::new(limits.max_large),
        }
    }
}

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
        Share::Common => shared.flow.common.fetch_add(1, Ordering::Relaxed),
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
            self.shared.flow.common.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Takes room for an answer of this many bytes that is made as a whole.
pub(crate) async fn room(cx: &Cx, list: &List) -> Result<Charge, Status> {
    let shared = &cx.tenant.shared;
    let bytes = list.items.iter().map(crate::stored::Stored::len).sum();
    let mut charge = Charge::new(&shared.flow.answers, Share::of(&cx.user));
    charge.grow_alone(&shared.env, bytes, shared.options.limits.patience).await?;
    Ok(charge)
}
