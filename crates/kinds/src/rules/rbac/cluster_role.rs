//! `ClusterRole`.

use super::{
    PLAIN,
    role::{policy_rules, verbs_required},
};
use crate::rules::{
    Rules,
    helpers::{
        equality::{same, unchanged},
        errors::finds_fault,
        json::text_at,
        labels::has_invalid_label_value,
    },
};
use k1s_object::{
    field::At,
    selector::{LabelSelector, validate_label_selector},
};
use serde_json::Value;

pub(super) static RULES: Rules = Rules { validate, validate_update, ..PLAIN };

fn validate(role: At<'_, '_>) {
    policy_rules(role, false);
    aggregation(role, false);
    verbs_required(role);
}

fn validate_update(role: At<'_, '_>, old: At<'_, '_>) {
    policy_rules(role, false);
    let stored = old.get("aggregationRule").get("clusterRoleSelectors");
    let any_value = stored.items().any(has_invalid_label_value);
    aggregation(role, any_value);
    if !unchanged(role.get("rules"), old.get("rules")) {
        verbs_required(role);
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

/// The rules that a `ClusterRole` aggregates from `all` cluster roles; None if it has no aggregation rule.
pub fn aggregated_rules(role: &Value, all: &[Value]) -> Option<Vec<Value>> {
    let name = |role: &Value| text_at(role, &["metadata", "name"]).to_owned();
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
            // Maximum number of rules compared by meaning; beyond it only identical ones are dropped.
            let few = rules.len() <= 1000;
            if known.insert(rule) && !(few && rules.iter().any(|known| same(Some(known), Some(rule)))) {
                rules.push(rule.clone());
            }
        }
    }
    Some(rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing::*;
    use serde_json::json;

    #[test]
    fn an_aggregation_rule_needs_selectors() {
        let wrong = on_create(&RULES, json!({"aggregationRule": {}}));
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
}
