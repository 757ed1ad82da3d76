//! `autoscaling`.

pub mod horizontal_pod_autoscaler;
pub mod scale;

use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(version: &str, kind: &str) -> Option<&'static Rules> {
    Some(match (version, kind) {
        ("v1", "HorizontalPodAutoscaler") => &horizontal_pod_autoscaler::V1,
        (_, "HorizontalPodAutoscaler") => &horizontal_pod_autoscaler::V2,
        (_, "Scale") => &scale::RULES,
        _ => return None,
    })
}
