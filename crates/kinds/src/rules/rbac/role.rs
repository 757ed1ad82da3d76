//! `Role`, and what it shares with `ClusterRole`.

use crate::rules::{Rules, helpers::equality::unchanged};
use k1s_object::field::At;

pub(super) static RULES: Rules = Rules { validate, validate_update, ..super::PLAIN };

fn validate(role: At<'_, '_>) {
    policy_rules(role, true);
    verbs_required(role);
}

fn validate_update(role: At<'_, '_>, old: At<'_, '_>) {
    policy_rules(role, true);
    if !unchanged(role.get("rules"), old.get("rules")) {
        verbs_required(role);
    }
}

pub(super) fn policy_rules(role: At<'_, '_>, namespaced: bool) {
    for rule in role.get("rules").items() {
        let urls = rule.get("nonResourceURLs");
        if !urls.is_empty() {
            if namespaced {
                urls.invalid("namespaced rules cannot apply to non-resource URLs");
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|name| !rule.get(name).is_empty()) {
                urls.invalid("rules cannot apply to both regular resources and non-resource URLs");
            }
            continue;
        }
        if rule.get("apiGroups").is_empty() {
            rule.get("apiGroups").required("resource rules must supply at least one api group");
        }
        if rule.get("resources").is_empty() {
            rule.get("resources").required("resource rules must supply at least one resource");
        }
    }
}

/// Declarative validation, reported after all other errors.
pub(super) fn verbs_required(role: At<'_, '_>) {
    for rule in role.get("rules").items() {
        if rule.get("verbs").is_empty() {
            rule.get("verbs").required("");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing::*;
    use serde_json::json;

    #[test]
    fn a_role_says_what_its_rules_lack_and_missing_verbs_last() {
        let role = json!({"rules": [
            {"apiGroups": [""], "resources": ["pods"]},
            {"verbs": ["get"]},
            {"nonResourceURLs": ["/x"], "verbs": ["get"]},
        ]});
        assert_eq!(
            on_create(&RULES, role),
            [
                "rules[1].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[1].resources: Required value: resource rules must supply at least one resource",
                "rules[2].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
                "rules[0].verbs: Required value",
            ]
        );
    }
}
