//! `node.k8s.io`.

mod runtime_class;

use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "RuntimeClass" => &runtime_class::RULES,
        _ => return None,
    })
}
