//! `ResourceQuota`.

use k1s_object::{At, quantity::Quantity};
use serde_json::{Value, json};

use crate::rules::{
    Rules, drop_status,
    helpers::{
        immutable::IMMUTABLE,
        json::text_at,
        quantities::round_up,
        resource_names::{is_standard_quota, resource_amount, resource_name},
        text::texts,
    },
    keep_status,
};

pub(super) static RULES: Rules = Rules {
    defaults: |quota| {
        for list in ["/spec/hard", "/status/hard", "/status/used"] {
            round_up(quota.pointer_mut(list));
        }
    },
    prepare_create: drop_status,
    prepare_update: keep_status,
    validate: |quota| spec(quota.get("spec")),
    validate_update: |new, old| {
        spec(new.get("spec"));
        let scopes = |quota: At<'_, '_>| {
            let mut scopes: Vec<String> =
                texts(quota.get("spec").get("scopes")).into_iter().map(str::to_owned).collect();
            scopes.sort();
            scopes.dedup();
            scopes
        };
        if scopes(new) != scopes(old) {
            new.get("spec").get("scopes").invalid(IMMUTABLE);
        }
    },
    validate_status: |new, _| {
        amounts(new.get("status").get("hard"));
        amounts(new.get("status").get("used"));
    },
    warnings,
    delete_answers_object: true,
    ..Rules::PLAIN
};

fn amounts(list: At<'_, '_>) {
    for (name, at) in list.entries() {
        resource_name(name, at);
        if !name.contains('/') && !is_standard_quota(name) {
            at.invalid_as(name, "must be a standard resource for quota");
        }
        resource_amount(name, at);
    }
}

const EXISTS_ONLY: [&str; 5] =
    ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"];

fn is_known_scope(scope: &str) -> bool {
    EXISTS_ONLY.contains(&scope) || matches!(scope, "PriorityClass" | "VolumeAttributesClass")
}

/// Whether a scope applies to this resource.
fn scope_fits(scope: &str, resource: &str) -> bool {
    let compute = ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        scope if is_known_scope(scope) => resource == "pods" || compute.contains(&resource),
        _ => true,
    }
}

fn spec(spec: At<'_, '_>) {
    let hard = spec.get("hard");
    amounts(hard);
    let misfits = |scope: &str| {
        hard.entries().filter(|(name, _)| is_standard_quota(name) && !scope_fits(scope, name)).count()
    };
    let scopes = spec.get("scopes");
    for scope in texts(scopes) {
        if !is_known_scope(scope) {
            scopes.invalid("unsupported scope");
        }
        for _ in 0..misfits(scope) {
            scopes.invalid("unsupported scope applied to resource");
            if scopes.check().is_full() {
                break;
            }
        }
    }
    conflicts(scopes, &texts(scopes), scopes.value());
    let selector = spec.get("scopeSelector");
    if !selector.is_set() {
        return;
    }
    let expressions = selector.get("matchExpressions");
    let mut seen = Vec::new();
    for requirement in expressions.items() {
        let scope = requirement.get("scopeName").text();
        if !is_known_scope(scope) {
            expressions.get("scopeName").invalid_as(scope, "unsupported scope");
        }
        for _ in 0..misfits(scope) {
            if expressions.check().is_full() {
                expressions.check().push(k1s_object::FieldError::omitted(1));
                break;
            }
            expressions.invalid_as(shown(expressions), "unsupported scope applied to resource");
        }
        let operator = requirement.get("operator").text();
        if EXISTS_ONLY.contains(&scope) && operator != "Exists" {
            expressions.get("operator").invalid_as(
                operator,
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                 ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
                 ResourceQuotaScopeCrossNamespacePodAffinity",
            );
        }
        let values = requirement.get("values");
        match operator {
            "In" | "NotIn" => {
                if values.is_empty() {
                    expressions.get("values").required(
                        "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
                    );
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    expressions.get("values").invalid_as(
                        values.value().cloned().unwrap_or_default(),
                        "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
                    );
                }
            }
            _ => expressions.get("operator").invalid_as(operator, "not a valid selector operator"),
        }
        seen.push(scope);
    }
    conflicts(expressions, &seen, scopes.value());
}

fn conflicts(at: At<'_, '_>, scopes: &[&str], shown: Option<&Value>) {
    for (one, other) in [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")] {
        if scopes.contains(&one) && scopes.contains(&other) {
            at.invalid_as(shown.cloned().unwrap_or_default(), "conflicting scopes");
        }
    }
}

/// A scope selector as Go prints its struct.
fn shown(expressions: At<'_, '_>) -> Value {
    let one = |requirement: At<'_, '_>| {
        json!({
            "ScopeName": requirement.get("scopeName").text(),
            "Operator": requirement.get("operator").text(),
            "Values": requirement.get("values").value().cloned().unwrap_or_default(),
        })
    };
    json!({"MatchExpressions": expressions.items().map(one).collect::<Vec<_>>()})
}

fn warnings(quota: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_some() {
        return;
    }
    let read = |name: &str| Quantity::parse(text_at(quota, &["spec", "hard", name])).ok();
    for name in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let mut request_name = format!("requests.{name}");
        let mut request = read(&request_name);
        if request.is_none() && matches!(name, "cpu" | "memory") {
            request = read(name);
            request_name = name.to_owned();
        }
        let limit_name = format!("limits.{name}");
        if let (Some(request), Some(limit)) = (request, read(&limit_name))
            && request > limit
        {
            out.push(format!(
                "ResourceQuota {request_name} ({request}) should be less than {limit_name} ({limit})"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing;

    #[test]
    fn names_and_amounts_are_checked() {
        assert_eq!(
            testing::on_create(
                &RULES,
                json!({"spec": {"hard": {"pods": "1.5", "nope": "1", "cpu": "-1", "count/x.y": "1"}}})
            ),
            [
                "spec.hard[pods]: Invalid value: \"1500m\": must be an integer",
                "spec.hard[nope]: Invalid value: \"nope\": must be a standard resource type or fully qualified",
                "spec.hard[nope]: Invalid value: \"nope\": must be a standard resource for quota",
                "spec.hard[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
            ]
        );
    }

    #[test]
    fn scopes_fit_their_resources_and_stay() {
        let quota = |scopes: Value| json!({"spec": {"hard": {"pods": "1", "cpu": "1"}, "scopes": scopes}});
        assert_eq!(
            testing::on_create(&RULES, quota(json!(["BestEffort", "NotBestEffort"]))),
            [
                "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: unsupported scope applied to resource",
                "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: conflicting scopes",
            ]
        );
        assert_eq!(
            testing::on_update(&RULES, quota(json!([])), quota(json!(["Terminating"]))),
            ["spec.scopes: Invalid value: [\"Terminating\"]: field is immutable"]
        );
    }

    #[test]
    fn requests_above_limits_warn() {
        assert_eq!(
            testing::warnings(&RULES, json!({"spec": {"hard": {"requests.cpu": "2", "limits.cpu": "1"}}})),
            ["ResourceQuota requests.cpu (2) should be less than limits.cpu (1)"]
        );
    }
}
