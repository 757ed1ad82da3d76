//! The pod failure policy and the success policy of a Job.

use k1s_object::At;
use serde_json::Value;

use super::indexes;
use crate::rules::helpers::{
    equality::same_workload,
    errors::invalid_omitted,
    go_values::{GoField, go_struct},
    numbers::non_negative,
    text::{one_of, qualified_name},
};

/// `PodFailurePolicy` as error messages show it.
pub(super) const POD_FAILURE_POLICY: GoStruct = &[(
    "Rules",
    "rules",
    GoField::List(&[
        ("Action", "action", GoField::Text),
        (
            "OnExitCodes",
            "onExitCodes",
            GoField::Struct(&[
                ("ContainerName", "containerName", GoField::Pointer),
                ("Operator", "operator", GoField::Text),
                ("Values", "values", GoField::Pointer),
            ]),
        ),
        (
            "OnPodConditions",
            "onPodConditions",
            GoField::List(&[("Type", "type", GoField::Text), ("Status", "status", GoField::Text)]),
        ),
    ]),
)];

/// `SuccessPolicy` as error messages show it.
pub(super) const SUCCESS_POLICY: GoStruct = &[(
    "Rules",
    "rules",
    GoField::List(&[
        ("SucceededIndexes", "succeededIndexes", GoField::Pointer),
        ("SucceededCount", "succeededCount", GoField::Pointer),
    ]),
)];

type GoStruct = &'static [(&'static str, &'static str, GoField)];

pub(super) fn go_value(at: At<'_, '_>, fields: GoStruct) -> Value {
    at.value().map_or(Value::Null, |value| go_struct(value, fields))
}

pub(super) fn immutable_struct(new: At<'_, '_>, old: Option<&Value>, fields: GoStruct) {
    if !same_workload(new.value(), old) {
        new.invalid_as(go_value(new, fields), "field is immutable");
    }
}

pub(super) fn pod_failure_policy(spec: At<'_, '_>) {
    let rules = spec.get("podFailurePolicy").get("rules");
    if rules.len() > 20 {
        rules.too_many(20);
    }
    let inner = spec.get("template").get("spec");
    let names: Vec<&str> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| inner.get(list).items().map(|one| one.get("name").text()))
        .collect();
    for rule in rules.items() {
        let action = rule.get("action");
        match action.text() {
            "" => action.required("valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]"),
            "FailIndex" if !spec.get("backoffLimitPerIndex").is_set() => {
                action.invalid("requires the backoffLimitPerIndex to be set");
            }
            "FailIndex" | "Count" | "FailJob" | "Ignore" => {}
            _ => action.not_supported(&["Count", "FailIndex", "FailJob", "Ignore"]),
        }
        let (codes, conditions) = (rule.get("onExitCodes"), rule.get("onPodConditions"));
        if codes.is_set() {
            exit_codes(codes, &names);
        }
        if conditions.len() > 20 {
            conditions.too_many(20);
        }
        for pattern in conditions.items() {
            qualified_name(pattern.get("type"));
            let status = pattern.get("status");
            if status.is_empty() {
                status.required("valid values: [\"False\" \"True\" \"Unknown\"]");
            } else {
                one_of(status, &["False", "True", "Unknown"]);
            }
        }
        match (codes.is_set(), conditions.is_empty()) {
            (true, false) => {
                invalid_omitted(rule, "specifying both OnExitCodes and OnPodConditions is not supported");
            }
            (false, true) => {
                invalid_omitted(rule, "specifying one of OnExitCodes and OnPodConditions is required");
            }
            _ => {}
        }
    }
}

fn exit_codes(at: At<'_, '_>, containers: &[&str]) {
    let operator = at.get("operator");
    if operator.is_empty() {
        operator.required("valid values: [\"In\" \"NotIn\"]");
    } else {
        one_of(operator, &["In", "NotIn"]);
    }
    let name = at.get("containerName");
    if name.is_set() && !containers.contains(&name.text()) {
        name.invalid("must be one of the container or initContainer names in the pod template");
    }
    let values = at.get("values");
    if values.is_empty() {
        values.invalid("at least one value is required");
    } else if values.len() > 255 {
        values.too_many(255);
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut ordered = true;
    let mut last = None;
    for value in values.items() {
        let code = value.number();
        if operator.text() == "In" && code == 0 {
            value.invalid("must not be 0 for the In operator");
        }
        if !seen.insert(code) {
            value.duplicate();
        }
        ordered &= last.is_none_or(|last| last <= code);
        last = Some(code);
    }
    if !ordered {
        values.invalid("must be ordered");
    }
}

pub(super) fn success_policy(at: At<'_, '_>, completions: i64) {
    let rules = at.get("rules");
    if rules.is_empty() {
        rules.required("at least one rules must be specified when the successPolicy is specified");
    }
    if rules.len() > 20 {
        rules.too_many(20);
    }
    for rule in rules.items() {
        let (count, list) = (rule.get("succeededCount"), rule.get("succeededIndexes"));
        if !count.is_set() && !list.is_set() {
            rule.required("at least one of succeededCount or succeededIndexes must be specified");
        }
        let mut total = 0;
        if let Some(text) = list.str() {
            if text.len() > 64 * 1024 {
                list.too_long(64 * 1024);
            }
            match indexes::count(text, completions) {
                Ok(count) => total = count,
                Err(why) => list.invalid(format!("error parsing succeededIndexes: {why}")),
            }
        }
        if count.is_set() {
            non_negative(count);
            if count.number() > completions {
                count.invalid(format!(
                    "must be less than or equal to {completions} (the number of specified completions)"
                ));
            }
            if list.is_set() && count.number() > total {
                count.invalid(format!(
                    "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
                ));
            }
        }
    }
}
