//! Policy: `PodDisruptionBudget`, and the body of an `Eviction`.

use k1s_object::{
    field::{At, FieldError},
    selector::validate_label_selector,
    status::Status,
};
use serde_json::Value;

use crate::rules::Rules;
use crate::rules::helpers::cluster_util::{
    conditions, go_struct, has_invalid_label_value, int_or_percent, non_negative, one_of_if_set,
};

static BUDGET: Rules = Rules {
    validate: budget_create,
    validate_update: budget_update,
    validate_status: budget_status,
    unconditional_update: false,
    ..Rules::WITH_STATUS
};

pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    (kind == "PodDisruptionBudget").then_some(&BUDGET)
}

fn budget_create(budget: At<'_, '_>) {
    budget_spec(budget.get("spec"), false);
}

fn budget_update(budget: At<'_, '_>, old: At<'_, '_>) {
    let any_value = has_invalid_label_value(old.get("spec").get("selector"));
    budget_spec(budget.get("spec"), any_value);
}

fn budget_spec(spec: At<'_, '_>, any_value: bool) {
    let (min, max) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if min.is_set() && max.is_set() {
        let fields = [
            ("MinAvailable", "minAvailable"),
            ("Selector", "selector"),
            ("MaxUnavailable", "maxUnavailable"),
            ("UnhealthyPodEvictionPolicy", "unhealthyPodEvictionPolicy"),
        ];
        spec.invalid_as(go_struct(spec, &fields), "minAvailable and maxUnavailable cannot be both set");
    }
    for bound in [min, max] {
        if bound.is_set() {
            int_or_percent(bound);
        }
    }
    validate_label_selector(spec.get("selector"), any_value);
    one_of_if_set(spec.get("unhealthyPodEvictionPolicy"), &["AlwaysAllow", "IfHealthyBudget"]);
}

fn budget_status(budget: At<'_, '_>, _: At<'_, '_>) {
    let status = budget.get("status");
    conditions(status.get("conditions"));
    for name in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        non_negative(status.get(name));
    }
}

/// The body of an eviction of the pod `name`.
pub fn validate_eviction(eviction: &Value, name: &str) -> Result<(), Status> {
    let text = eviction.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if text != name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let unsafe_delete = "ignoreStoreReadErrorWithClusterBreakingPotential";
    let options = eviction.get("deleteOptions");
    if options.and_then(|options| options.get(unsafe_delete)).and_then(Value::as_bool) == Some(true) {
        let why = "can not be set for pod eviction, try after removing the option";
        let error = FieldError::invalid(format!("deleteOptions.{unsafe_delete}"), true, why);
        return Err(Status::invalid("policy", "Eviction", name, &[error]));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::cluster_util::testing::*;

    #[test]
    fn a_budget_bounds_one_side_only() {
        let spec = json!({"spec": {"minAvailable": 1, "maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}}});
        assert_eq!(
            on_create(&BUDGET, spec),
            [
                "spec: Invalid value: {\"MinAvailable\":1,\"Selector\":{\"matchLabels\":{\"app\":\"a\"}},\"MaxUnavailable\":1,\"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be both set"
            ]
        );
        assert!(on_create(&BUDGET, json!({"spec": {}})).is_empty());
    }

    #[test]
    fn a_budget_has_percents_up_to_a_hundred_and_known_policies() {
        let spec = json!({"spec": {"minAvailable": "101%", "unhealthyPodEvictionPolicy": "Never"}});
        assert_eq!(
            on_create(&BUDGET, spec),
            [
                "spec.minAvailable: Invalid value: \"101%\": must not be greater than 100%",
                "spec.unhealthyPodEvictionPolicy: Unsupported value: \"Never\": supported values: \"AlwaysAllow\", \"IfHealthyBudget\"",
            ]
        );
        let spec = json!({"spec": {"maxUnavailable": -1}});
        assert_eq!(
            on_create(&BUDGET, spec),
            ["spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"]
        );
    }

    #[test]
    fn the_status_of_a_budget_counts_from_zero() {
        let wrong = on_status(&BUDGET, json!({"status": {"disruptionsAllowed": -1}}), &json!({}));
        assert_eq!(
            wrong,
            ["status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0"]
        );
    }

    #[test]
    fn an_eviction_names_its_pod() {
        assert!(validate_eviction(&json!({"metadata": {"name": "p"}}), "p").is_ok());
        let wrong = validate_eviction(&json!({"metadata": {"name": "q"}}), "p").unwrap_err();
        assert_eq!(wrong.message, "name in URL does not match name in Eviction object");
    }
}
