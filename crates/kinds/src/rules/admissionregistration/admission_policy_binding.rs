//! `ValidatingAdmissionPolicyBinding` and `MutatingAdmissionPolicyBinding`.

use super::{
    admission_policy::default_match,
    matching::{match_resources, mutating_operations},
};
use crate::rules::helpers::{
    equality::unchanged, errors::invalid_each, json::structure, text::one_of_or_unset,
};
use k1s_object::{field::At, names, selector::validate_label_selector};
use serde_json::Value;

const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];

pub(super) fn defaults(binding: &mut Value) {
    if let Some(spec) = structure(binding, "spec") {
        default_match(spec, "matchResources");
    }
}

pub(super) fn validate(new: At<'_, '_>, old: Option<At<'_, '_>>, mutating: bool) {
    let spec = new.get("spec");
    let policy = spec.get("policyName");
    if !policy.is_empty() {
        invalid_each(policy, names::is_dns1123_subdomain(policy.text()));
    } else if mutating {
        policy.required("");
    }
    param_ref(spec.get("paramRef"));
    match_resources(spec.get("matchResources"));
    if mutating {
        return mutating_operations(spec.get("matchResources"));
    }
    let actions = spec.get("validationActions");
    let mut seen = std::collections::HashSet::new();
    for action in actions.items() {
        one_of_or_unset(action, &ACTIONS);
        if seen.contains(&action.text()) {
            action.duplicate();
        }
        seen.insert(action.text());
    }
    if seen.contains(&"Deny") && seen.contains(&"Warn") {
        actions.invalid(
            "must not contain both Deny and Warn (repeating the same validation failure information in the API \
             response and headers serves no purpose)",
        );
    }
    // Declarative validation: reported last, and skipped for unchanged fields.
    for name in ["policyName", "validationActions"] {
        let at = spec.get(name);
        if at.is_empty() && old.is_none_or(|old| !unchanged(at, old.get("spec").get(name))) {
            at.required("");
        }
    }
}

fn param_ref(at: At<'_, '_>) {
    if !at.is_set() {
        return;
    }
    let (name, selector) = (at.get("name"), at.get("selector"));
    if !name.is_empty() {
        invalid_each(name, names::is_path_segment_name(name.text()));
        if selector.is_set() {
            name.forbidden("name and selector are mutually exclusive");
        }
    }
    if selector.is_set() {
        validate_label_selector(selector, false);
        if !name.is_empty() {
            selector.forbidden("name and selector are mutually exclusive");
        }
    }
    if name.is_empty() && !selector.is_set() {
        at.required("one of name or selector must be specified");
    }
    let action = at.get("parameterNotFoundAction");
    if action.is_empty() {
        action.required("");
    } else {
        one_of_or_unset(action, &["Deny", "Allow"]);
    }
}
