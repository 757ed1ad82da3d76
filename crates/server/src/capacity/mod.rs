//! The resources that requests share: slots, bytes of request and response bodies, permits for large work. `flow` hands
//! them out.

mod budget;
mod turns;

use std::sync::{Arc, atomic::AtomicUsize};

pub(crate) use budget::{Budget, Charge};
use turns::Turns;

use crate::{identity::User, options::ServerOptions};

/// The share that a request is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// Available to all users.
    Common,
    /// The common share plus the part reserved for control plane components and administrators.
    Reserved,
}

impl Share {
    pub(crate) fn of(user: &User) -> Share {
        let is_control_plane = user.is_admin()
            || matches!(
                &*user.name,
                "system:apiserver" | "system:kube-controller-manager" | "system:kube-scheduler"
            )
            || user.groups.iter().any(|group| group == "system:serviceaccounts:kube-system");
        if is_control_plane { Share::Reserved } else { Share::Common }
    }
}

/// The resources in use.
pub(crate) struct Capacity {
    /// Requests of the common share in flight; `Metrics::in_flight` counts all.
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
