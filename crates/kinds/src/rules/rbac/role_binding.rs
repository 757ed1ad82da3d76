//! `RoleBinding`, and what it shares with `ClusterRoleBinding`.

use super::{GROUP, PLAIN};
use crate::rules::{
    Rules,
    helpers::{
        equality::unchanged,
        errors::invalid_each,
        go_values::go_texts,
        json::{default_zero, items, structure},
    },
};
use k1s_object::{field::At, names};
use serde_json::Value;

pub(super) static RULES: Rules = Rules { defaults, validate, validate_update, ..PLAIN };

pub(super) fn defaults(binding: &mut Value) {
    if let Some(role) = structure(binding, "roleRef") {
        default_zero(role, "apiGroup", GROUP);
    }
    for subject in items(binding, "subjects") {
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            default_zero(subject, "apiGroup", GROUP);
        }
    }
}

fn validate(binding: At<'_, '_>) {
    validate_fields(binding, true);
    subject_names_required(binding);
    role_name_required(binding);
}

fn validate_update(binding: At<'_, '_>, old: At<'_, '_>) {
    binding_update(binding, old, true);
}

pub(super) fn binding_update(binding: At<'_, '_>, old: At<'_, '_>, namespaced: bool) {
    validate_fields(binding, namespaced);
    let role = binding.get("roleRef");
    let role_changed = !unchanged(role, old.get("roleRef"));
    if role_changed {
        let fields = [("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name")];
        role.invalid_as(go_texts(role, &fields), "field is immutable");
    }
    if !unchanged(binding.get("subjects"), old.get("subjects")) {
        subject_names_required(binding);
    }
    if role_changed {
        role_name_required(binding);
    }
}

pub(super) fn validate_fields(binding: At<'_, '_>, namespaced: bool) {
    let role = binding.get("roleRef");
    if role.get("apiGroup").text() != GROUP {
        role.get("apiGroup").not_supported(&[GROUP]);
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&role.get("kind").text()) {
        role.get("kind").not_supported(kinds);
    }
    invalid_each(role.get("name"), names::is_path_segment_name(role.get("name").text()));
    for subject in binding.get("subjects").items() {
        subject_written(subject, namespaced);
    }
}

fn subject_written(subject: At<'_, '_>, namespaced: bool) {
    let (name, group) = (subject.get("name"), subject.get("apiGroup"));
    match subject.get("kind").text() {
        "ServiceAccount" => {
            if !name.is_empty() {
                invalid_each(name, names::is_dns1123_subdomain(name.text()));
            }
            if !group.is_empty() {
                group.not_supported(&[""]);
            }
            if !namespaced && subject.get("namespace").is_empty() {
                subject.get("namespace").required("");
            }
        }
        "User" | "Group" if group.text() != GROUP => group.not_supported(&[GROUP]),
        "User" | "Group" => {}
        _ => subject.get("kind").not_supported(&["ServiceAccount", "User", "Group"]),
    }
}

pub(super) fn subject_names_required(binding: At<'_, '_>) {
    for subject in binding.get("subjects").items() {
        if subject.get("name").is_empty() {
            subject.get("name").required("");
        }
    }
}

pub(super) fn role_name_required(binding: At<'_, '_>) {
    let name = binding.get("roleRef").get("name");
    if name.is_empty() {
        name.required("");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing::*;
    use serde_json::json;

    #[test]
    fn a_binding_fills_in_groups_and_keeps_its_role() {
        let mut binding = json!({"subjects": [{"kind": "User", "name": "a"}, {"kind": "ServiceAccount", "name": "b"}],
            "roleRef": {"kind": "Role", "name": "one"}});
        defaults(&mut binding);
        assert_eq!(binding["subjects"][0]["apiGroup"], GROUP);
        assert_eq!(binding["subjects"][1].get("apiGroup"), None);
        let other = json!({"roleRef": {"kind": "Role", "name": "two"}});
        assert_eq!(
            on_update(&RULES, binding, other),
            [
                "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"two\"}: field is immutable"
            ]
        );
    }
}
