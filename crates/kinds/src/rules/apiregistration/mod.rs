//! `apiregistration.k8s.io`.

mod api_service;

use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "APIService" => &api_service::RULES,
        _ => return None,
    })
}
