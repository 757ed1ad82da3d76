//! `apps`.

mod controller_revision;
mod daemon_set;
mod deployment;
pub(super) mod replica_set;
mod stateful_set;
#[cfg(test)]
mod tests;
pub(super) mod workload;

use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "ControllerRevision" => &controller_revision::RULES,
        "DaemonSet" => &daemon_set::RULES,
        "Deployment" => &deployment::RULES,
        "ReplicaSet" => &replica_set::RULES,
        "StatefulSet" => &stateful_set::RULES,
        _ => return None,
    })
}
