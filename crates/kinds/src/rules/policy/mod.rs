//! `policy`.

mod eviction;
mod pod_disruption_budget;

pub use self::eviction::validate_eviction;
use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "PodDisruptionBudget" => &pod_disruption_budget::RULES,
        _ => return None,
    })
}
