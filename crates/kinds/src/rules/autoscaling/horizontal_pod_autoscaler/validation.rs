//! Validation of a `HorizontalPodAutoscaler` in autoscaling/v2.

use k1s_object::{field::At, names};

use super::metrics::metrics;
use crate::rules::helpers::{
    equality::unchanged,
    errors::invalid_each,
    numbers::{non_negative, non_negative_quantity},
    text::one_of_or_unset,
};

/// The `apiVersion`s that a reference may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct References {
    pub(super) empty_group: bool,
    pub(super) anything: bool,
}

pub(super) fn create(autoscaler: At<'_, '_>) {
    let spec = autoscaler.get("spec");
    let empty_group = spec.get("scaleTargetRef").get("kind").text() == "ReplicationController";
    written(
        spec,
        References { empty_group, anything: false },
        References { empty_group: true, anything: false },
    );
    replicas(spec, None);
}

pub(super) fn update(autoscaler: At<'_, '_>, old: At<'_, '_>) {
    let (spec, before) = (autoscaler.get("spec"), old.get("spec"));
    let (target, target_before) = (spec.get("scaleTargetRef"), before.get("scaleTargetRef"));
    let same = |name: &'static str| target.get(name).text() == target_before.get(name).text();
    let anything = same("apiVersion") && same("kind");
    let empty_group = !anything && target.get("kind").text() == "ReplicationController";
    let described = before.get("metrics").items().map(|one| one.get("object").get("describedObject"));
    let objects = References { empty_group: true, anything: false };
    let wrong_before =
        described.filter(|one| one.is_set()).any(|one| api_version_error(one, objects).is_some());
    written(
        spec,
        References { empty_group, anything },
        References { empty_group: true, anything: wrong_before },
    );
    replicas(spec, Some(before));
}

pub(super) fn status(autoscaler: At<'_, '_>, _: At<'_, '_>) {
    let status = autoscaler.get("status");
    for condition in status.get("conditions").items() {
        non_negative(condition.get("observedGeneration"));
    }
    non_negative(status.get("currentReplicas"));
    non_negative(status.get("desiredReplicas"));
}

fn written(spec: At<'_, '_>, target: References, objects: References) {
    let (min, max) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    if min.int().is_some_and(|min| max.number() < min) {
        max.invalid_as(max.number(), "must be greater than or equal to `minReplicas`");
    }
    reference(spec.get("scaleTargetRef"), target);
    metrics(spec.get("metrics"), objects);
    if min.int() == Some(0) {
        let outside = |one: At<'_, '_>| matches!(one.get("type").text(), "Object" | "External");
        if !spec.get("metrics").items().any(outside) {
            spec.get("metrics").forbidden(
                "must specify at least one Object or External metric to support scaling to zero replicas",
            );
        }
    }
    for direction in ["scaleUp", "scaleDown"] {
        scaling_rules(spec.get("behavior").get(direction));
    }
}

/// Declarative validation: reported last, and skipped for unchanged fields.
fn replicas(spec: At<'_, '_>, old: Option<At<'_, '_>>) {
    let changed = |name: &'static str| old.is_none_or(|old| !unchanged(spec.get(name), old.get(name)));
    if changed("minReplicas") {
        non_negative(spec.get("minReplicas"));
    }
    if changed("maxReplicas") {
        let max = spec.get("maxReplicas");
        match max.number() {
            0 => max.required(""),
            ..0 => max.invalid("must be greater than or equal to 1"),
            _ => {}
        }
    }
}

pub(super) fn reference(at: At<'_, '_>, allowed: References) {
    for name in ["kind", "name"] {
        let part = at.get(name);
        if part.is_empty() {
            part.required("");
        } else {
            invalid_each(part, names::is_path_segment_name(part.text()));
        }
    }
    if let Some(wrong) = api_version_error(at, allowed) {
        at.get("apiVersion").invalid_text(wrong);
    }
}

fn api_version_error(reference: At<'_, '_>, allowed: References) -> Option<String> {
    if allowed.anything {
        return None;
    }
    let version = reference.get("apiVersion").text();
    match version.matches('/').count() {
        0 | 1 if version == "/" || version.is_empty() || !version.contains('/') => {
            (!allowed.empty_group).then(|| "apiVersion must specify API group".into())
        }
        0 | 1 if version.starts_with('/') => {
            (!allowed.empty_group).then(|| "apiVersion must specify API group".into())
        }
        0 | 1 => None,
        _ => Some(format!("unexpected GroupVersion string: {version}")),
    }
}

fn scaling_rules(rules: At<'_, '_>) {
    if !rules.is_set() {
        return;
    }
    let window = rules.get("stabilizationWindowSeconds");
    match window.number() {
        ..0 => window.invalid("must be greater than or equal to zero"),
        3601.. => window.invalid("must be less than or equal to 3600"),
        _ => {}
    }
    one_of_or_unset(rules.get("selectPolicy"), &["Disabled", "Max", "Min"]);
    if rules.get("policies").is_empty() {
        rules.get("policies").required("must specify at least one Policy");
    }
    for policy in rules.get("policies").items() {
        if !matches!(policy.get("type").text(), "Pods" | "Percent") {
            policy.get("type").not_supported(&["Percent", "Pods"]);
        }
        for name in ["value", "periodSeconds"] {
            let number = policy.get(name);
            if number.number() <= 0 {
                number.invalid_as(number.number(), "must be greater than zero");
            }
        }
        let period = policy.get("periodSeconds");
        if period.number() > 1800 {
            period.invalid("must be less than or equal to 1800");
        }
    }
    non_negative_quantity(rules.get("tolerance"));
}
