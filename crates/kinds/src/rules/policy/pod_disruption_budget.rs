//! `PodDisruptionBudget`.

use crate::rules::{
    Rules,
    helpers::{
        go_values::go_pointers,
        labels::has_invalid_label_value,
        numbers::{int_or_percent, non_negative},
        text::one_of_or_unset,
    },
};
use k1s_object::meta::validate_conditions as conditions;
use k1s_object::{field::At, selector::validate_label_selector};

pub(super) static RULES: Rules =
    Rules { validate, validate_update, validate_status, unconditional_update: false, ..Rules::WITH_STATUS };

fn validate(budget: At<'_, '_>) {
    validate_spec(budget.get("spec"), false);
}

fn validate_update(budget: At<'_, '_>, old: At<'_, '_>) {
    let any_value = has_invalid_label_value(old.get("spec").get("selector"));
    validate_spec(budget.get("spec"), any_value);
}

fn validate_spec(spec: At<'_, '_>, any_value: bool) {
    let (min, max) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if min.is_set() && max.is_set() {
        let fields = [
            ("MinAvailable", "minAvailable"),
            ("Selector", "selector"),
            ("MaxUnavailable", "maxUnavailable"),
            ("UnhealthyPodEvictionPolicy", "unhealthyPodEvictionPolicy"),
        ];
        spec.invalid_as(go_pointers(spec, &fields), "minAvailable and maxUnavailable cannot be both set");
    }
    for bound in [min, max] {
        if bound.is_set() {
            int_or_percent(bound);
        }
    }
    validate_label_selector(spec.get("selector"), any_value);
    one_of_or_unset(spec.get("unhealthyPodEvictionPolicy"), &["AlwaysAllow", "IfHealthyBudget"]);
}

fn validate_status(budget: At<'_, '_>, _: At<'_, '_>) {
    let status = budget.get("status");
    conditions(status.get("conditions"));
    for name in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        non_negative(status.get(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing::*;
    use serde_json::json;

    #[test]
    fn a_budget_bounds_one_side_only() {
        let spec = json!({"spec": {"minAvailable": 1, "maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}}});
        assert_eq!(
            on_create(&RULES, spec),
            [
                "spec: Invalid value: {\"MinAvailable\":1,\"Selector\":{\"matchLabels\":{\"app\":\"a\"}},\"MaxUnavailable\":1,\"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be both set"
            ]
        );
        assert!(on_create(&RULES, json!({"spec": {}})).is_empty());
    }

    #[test]
    fn a_budget_has_percents_up_to_a_hundred_and_known_policies() {
        let spec = json!({"spec": {"minAvailable": "101%", "unhealthyPodEvictionPolicy": "Never"}});
        assert_eq!(
            on_create(&RULES, spec),
            [
                "spec.minAvailable: Invalid value: \"101%\": must not be greater than 100%",
                "spec.unhealthyPodEvictionPolicy: Unsupported value: \"Never\": supported values: \"AlwaysAllow\", \"IfHealthyBudget\"",
            ]
        );
        let spec = json!({"spec": {"maxUnavailable": -1}});
        assert_eq!(
            on_create(&RULES, spec),
            ["spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"]
        );
    }

    #[test]
    fn the_status_of_a_budget_counts_from_zero() {
        let wrong = on_status(&RULES, json!({"status": {"disruptionsAllowed": -1}}), &json!({}));
        assert_eq!(
            wrong,
            ["status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0"]
        );
    }
}
