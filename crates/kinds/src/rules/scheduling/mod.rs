//! `scheduling.k8s.io`.

pub(crate) mod priority_class;

use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "PriorityClass" => &priority_class::RULES,
        _ => return None,
    })
}
