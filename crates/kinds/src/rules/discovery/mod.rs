//! `discovery.k8s.io`.

mod endpoint_slice;

use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "EndpointSlice" => &endpoint_slice::RULES,
        _ => return None,
    })
}
