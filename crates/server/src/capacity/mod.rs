//! The resources that requests share: seats, bytes of request and response bodies, turns of large work. `flow` hands
//! them out.

mod budget;

use std::{num::NonZero, sync::Arc};

pub(crate) use budget::{Budget, Charge};
use k1s_env::Env;
use parking_lot::Mutex;

use crate::{
    fairness::{Fairness, Turn, Turns},
    identity::User,
    options::ServerOptions,
};

/// The permit of a large request, which it can give back while it waits for others.
pub(crate) type HeldTurn = Arc<Mutex<Option<Turn>>>;

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
    /// The seats of requests.
    pub(crate) fairness: Arc<Fairness>,
    pub(crate) bodies: Arc<Budget>,
    pub(crate) answers: Arc<Budget>,
    pub(crate) turns: Turns,
}

impl Capacity {
    pub(crate) fn new(env: &Env, options: &ServerOptions) -> Capacity {
        let limits = &options.limits;
        let large = match limits.max_large {
            0 => std::thread::available_parallelism().map_or(1, NonZero::get).saturating_sub(1).max(1),
            most => most,
        };
        let (most, reserve) = (options.max_in_flight, limits.reserved_in_flight);
        Capacity {
            fairness: Fairness::new(env, most, reserve, limits.queue_patience),
            bodies: Budget::new(limits.max_body_bytes_in_flight, limits.reserved_body_bytes),
            answers: Budget::new(limits.max_answer_bytes_in_flight, limits.max_answer_bytes_in_flight / 4),
            turns: Turns::new(env, large, limits.large_patience),
        }
    }
}
