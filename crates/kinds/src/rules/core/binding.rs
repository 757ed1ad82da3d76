//! `Binding`: assigns a pod to a node.

use k1s_object::At;

use crate::rules::{Rules, helpers::text::dns_subdomain};

pub(super) static RULES: Rules = Rules { validate, ..Rules::PLAIN };

/// Validates the target, which can only be a Node.
pub(crate) fn validate(binding: At<'_, '_>) {
    let (kind, name) = (binding.get("target").get("kind"), binding.get("target").get("name"));
    let is_node = matches!(kind.text(), "" | "Node");
    if !is_node {
        kind.not_supported(&["Node", "<empty>"]);
    }
    if name.text().is_empty() {
        name.required("");
    } else if is_node {
        dns_subdomain(name);
    }
}
