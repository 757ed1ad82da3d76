//! `coordination.k8s.io`.

mod lease;

use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "Lease" => &lease::RULES,
        _ => return None,
    })
}
