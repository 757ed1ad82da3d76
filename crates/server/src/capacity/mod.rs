//! The shares of a server that requests take: slots, bytes of bodies and of answers, turns at large work. `flow` hands them
//! out.

mod budget;
mod turns;

use std::sync::{Arc, atomic::AtomicUsize};

pub(crate) use budget::{Budget, Charge};
use turns::Turns;

use crate::{identity::User, options::ServerOptions};

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
pub(crate) struct Capacity {
    /// Requests out of the common share that are worked on; `Metrics::in_flight` has all.
    pub(crate) common: AtomicUsize,
    pub(crate) bodies: Arc<Budget>,
    pub(crate) answers: Arc<Budget>,
    pub(crate) turns: Turns,
}

impl Capacity {
    pub(crate) fn new(options: &ServerOptions) -> Capacity {
        let limits = &options.limits;
        Capacity {
            common: AtomicUsize::new(0),
            bodies: Budget::new(limits.max_body_bytes_in_flight, limits.reserved_body_bytes),
            answers: Budget::new(limits.max_answer_bytes_in_flight, limits.max_answer_bytes_in_flight / 4),
            turns: Turns::new(limits.max_large),
        }
    }
}
