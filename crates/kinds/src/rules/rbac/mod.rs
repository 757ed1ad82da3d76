//! RBAC: `Role`, `ClusterRole` and their bindings.

use k1s_object::{
    field::At,
    names,
    selector::{LabelSelector, validate_label_selector},
};
use serde_json::Value;

use crate::rules::helpers::cluster_util::{
    default_zero, finds_fault, go_texts, has_invalid_label_value, invalid_each, items, same, structure,
    text_at, unchanged,
};
use crate::rules::{NameRule, Rules};

const GROUP: &str = "rbac.authorization.k8s.io";

static ROLE: Rules = Rules {
    validate: role_create,
    validate_update: role_update,
    name: NameRule::PathSegment,
    create_on_update: true,
    ..Rules::PLAIN
};

static CLUSTER_ROLE: Rules =
    Rules { validate: cluster_role_create, validate_update: cluster_role_update, ..role_like() };

static ROLE_BINDING: Rules = Rules {
    defaults: default_binding,
    validate: role_binding_create,
    validate_update: role_binding_update,
    ..role_like()
};

static CLUSTER_ROLE_BINDING: Rules = Rules {
    defaults: default_binding,
    validate: cluster_role_binding_create,
    validate_update: cluster_role_binding_update,
    ..role_like()
};

const fn role_like() -> Rules {
    Rules { name: NameRule::PathSegment, create_on_update: true, ..Rules::PLAIN }
}

pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "Role" => &ROLE,
        "ClusterRole" => &CLUSTER_ROLE,
        "RoleBinding" => &ROLE_BINDING,
        "ClusterRoleBinding" => &CLUSTER_ROLE_BINDING,
        _ => return None,
    })
}

fn default_binding(binding: &mut Value) {
    if let Some(role) = structure(binding, "roleRef") {
        default_zero(role, "apiGroup", GROUP);
    }
    for subject in items(binding, "subjects") {
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            default_zero(subject, "apiGroup", GROUP);
        }
    }
}

fn role_create(role: At<'_, '_>) {
    policy_rules(role, true);
    verbs_required(role);
}

fn role_update(role: At<'_, '_>, old: At<'_, '_>) {
    policy_rules(role, true);
    if !unchanged(role.get("rules"), old.get("rules")) {
        verbs_required(role);
    }
}

fn cluster_role_create(role: At<'_, '_>) {
    policy_rules(role, false);
    aggregation(role, false);
    verbs_required(role);
}

fn cluster_role_update(role: At<'_, '_>, old: At<'_, '_>) {
    policy_rules(role, false);
    let stored = old.get("aggregationRule").get("clusterRoleSelectors");
    let any_value = stored.items().any(has_invalid_label_value);
    aggregation(role, any_value);
    if !unchanged(role.get("rules"), old.get("rules")) {
        verbs_required(role);
    }
}

fn policy_rules(role: At<'_, '_>, namespaced: bool) {
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

/// Said after everything else: this check is a generated one in Kubernetes.
fn verbs_required(role: At<'_, '_>) {
    for rule in role.get("rules").items() {
        if rule.get("verbs").is_empty() {
            rule.get("verbs").required("");
        }
    }
}

fn aggregation(role: At<'_, '_>, any_value: bool) {
    let rule = role.get("aggregationRule");
    if !rule.is_set() {
        return;
    }
    let selectors = rule.get("clusterRoleSelectors");
    if selectors.is_empty() {
        selectors.required("at least one clusterRoleSelector required if aggregationRule is non-nil");
    }
    for selector in selectors.items() {
        validate_label_selector(selector, any_value);
        if finds_fault(selector.value(), |at| validate_label_selector(at, false)) {
            selector.invalid_as(Value::Null, "invalid label selector.");
        }
    }
}

/// The rules that a `ClusterRole` with an aggregation rule adds up to, given all cluster roles; nothing for one
/// without.
pub fn aggregated_rules(role: &Value, all: &[Value]) -> Option<Vec<Value>> {
    let name = |role: &Value| text_at(role, "/metadata/name");
    let aggregation = role.get("aggregationRule").filter(|rule| rule.is_object())?;
    let selectors = aggregation.get("clusterRoleSelectors").and_then(Value::as_array);
    let mut rules: Vec<Value> = Vec::new();
    let mut known: std::collections::HashSet<&Value> = std::collections::HashSet::new();
    for selector in selectors.into_iter().flatten() {
        let selector = LabelSelector::from_json(Some(selector)).ok()?;
        let mut parts: Vec<&Value> = all
            .iter()
            .filter(|other| selector.matches_labels(other.pointer("/metadata/labels")))
            .filter(|other| name(other) != name(role))
            .collect();
        parts.sort_by_key(|part| name(part));
        for rule in parts.iter().filter_map(|part| part.get("rules")).filter_map(Value::as_array).flatten() {
            // What differs in writing alone is compared as long as there are few.
            let few = rules.len() <= 1000;
            if known.insert(rule) && !(few && rules.iter().any(|known| same(Some(known), Some(rule)))) {
                rules.push(rule.clone());
            }
        }
    }
    Some(rules)
}

fn role_binding_create(binding: At<'_, '_>) {
    binding_written(binding, true);
    subject_names_required(binding);
    role_name_required(binding);
}

fn role_binding_update(binding: At<'_, '_>, old: At<'_, '_>) {
    binding_update(binding, old, true);
}

fn cluster_role_binding_create(binding: At<'_, '_>) {
    binding_written(binding, false);
    subject_names_required(binding);
    role_name_required(binding);
}

fn cluster_role_binding_update(binding: At<'_, '_>, old: At<'_, '_>) {
    binding_update(binding, old, false);
}

fn binding_update(binding: At<'_, '_>, old: At<'_, '_>, namespaced: bool) {
    binding_written(binding, namespaced);
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

fn binding_written(binding: At<'_, '_>, namespaced: bool) {
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

fn subject_names_required(binding: At<'_, '_>) {
    for subject in binding.get("subjects").items() {
        if subject.get("name").is_empty() {
            subject.get("name").required("");
        }
    }
}

fn role_name_required(binding: At<'_, '_>) {
    let name = binding.get("roleRef").get("name");
    if name.is_empty() {
        name.required("");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::cluster_util::testing::*;

    #[test]
    fn a_role_says_what_its_rules_lack_and_missing_verbs_last() {
        let role = json!({"rules": [
            {"apiGroups": [""], "resources": ["pods"]},
            {"verbs": ["get"]},
            {"nonResourceURLs": ["/x"], "verbs": ["get"]},
        ]});
        assert_eq!(
            on_create(&ROLE, role),
            [
                "rules[1].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[1].resources: Required value: resource rules must supply at least one resource",
                "rules[2].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
                "rules[0].verbs: Required value",
            ]
        );
    }

    #[test]
    fn an_aggregation_rule_needs_selectors() {
        let wrong = on_create(&CLUSTER_ROLE, json!({"aggregationRule": {}}));
        assert_eq!(
            wrong,
            [
                "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil"
            ]
        );
    }

    #[test]
    fn roles_add_up_by_name_without_repeating_themselves() {
        let part = |name: &str, label: &str, verb: &str| json!({"metadata": {"name": name, "labels": {"agg": label}}, "rules": [{"verbs": [verb]}]});
        let sum = json!({"metadata": {"name": "sum", "labels": {"agg": "yes"}},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"agg": "yes"}}]}, "rules": [{"verbs": ["x"]}]});
        let all = [
            part("b", "yes", "list"),
            part("a", "yes", "get"),
            part("c", "yes", "get"),
            part("d", "no", "watch"),
            sum.clone(),
        ];
        assert_eq!(
            aggregated_rules(&sum, &all),
            Some(vec![json!({"verbs": ["get"]}), json!({"verbs": ["list"]})])
        );
        assert_eq!(aggregated_rules(&all[0], &all), None);
    }

    #[test]
    fn a_binding_fills_in_groups_and_keeps_its_role() {
        let mut binding = json!({"subjects": [{"kind": "User", "name": "a"}, {"kind": "ServiceAccount", "name": "b"}],
            "roleRef": {"kind": "Role", "name": "one"}});
        default_binding(&mut binding);
        assert_eq!(binding["subjects"][0]["apiGroup"], GROUP);
        assert_eq!(binding["subjects"][1].get("apiGroup"), None);
        let other = json!({"roleRef": {"kind": "Role", "name": "two"}});
        assert_eq!(
            on_update(&ROLE_BINDING, other, binding),
            [
                "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"two\"}: field is immutable"
            ]
        );
    }

    #[test]
    fn a_cluster_role_binding_names_cluster_roles_and_namespaces_of_accounts() {
        let binding = json!({"subjects": [{"kind": "ServiceAccount", "name": "b"}, {"kind": "Robot"}],
            "roleRef": {"kind": "Role"}});
        assert_eq!(
            on_create(&CLUSTER_ROLE_BINDING, binding),
            [
                "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"",
                "subjects[0].namespace: Required value",
                "subjects[1].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
                "subjects[1].name: Required value",
                "roleRef.name: Required value",
            ]
        );
    }
}
