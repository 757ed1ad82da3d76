//! `Deployment`.

use k1s_object::At;
use serde_json::Value;

use super::workload::{
    amount, at_most_all, available_within_ready, collisions, int_or_percent, non_negatives,
    not_supported_strategy, selector, template, template_warnings, unusable, within_replicas,
};
use crate::rules::{
    Rules,
    core::pod::defaults as pod_defaults,
    helpers::{
        equality::{same_workload, same_workload_field},
        immutable::immutable_selector,
        json::{child, default_pointer, default_value, object, restore, text},
        numbers::non_negative,
    },
    only_status,
};

pub(super) static RULES: Rules = Rules {
    defaults,
    validate,
    validate_update,
    validate_status,
    warnings,
    prepare_status,
    annotations_in_generation: true,
    ..Rules::WITH_STATUS
};

fn defaults(value: &mut Value) {
    let spec = child(object(value), "spec");
    default_pointer(spec, "replicas", 1);
    let strategy = child(spec, "strategy");
    default_value(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        default_pointer(rolling, "maxUnavailable", "25%");
        default_pointer(rolling, "maxSurge", "25%");
    }
    default_pointer(spec, "revisionHistoryLimit", 10);
    default_pointer(spec, "progressDeadlineSeconds", 600);
    pod_defaults::template(spec, "template");
}

/// An update of the status may change annotations, but not labels.
fn prepare_status(new: &mut Value, old: &Value) {
    only_status(new, old);
    let metadata = child(object(new), "metadata");
    restore(metadata, old.get("metadata").and_then(Value::as_object), "labels");
}

fn validate(object: At<'_, '_>) {
    validate_spec(object.get("spec"));
}

fn validate_update(new: At<'_, '_>, old: At<'_, '_>) {
    validate_spec(new.get("spec"));
    immutable_selector(new.get("spec").get("selector"), old.get("spec").get("selector").value());
}

fn validate_spec(spec: At<'_, '_>) {
    non_negative(spec.get("replicas"));
    if selector(spec.get("selector"), "deployment") {
        template(spec);
    } else {
        unusable(spec.get("selector"), "invalid label selector");
    }
    validate_strategy(spec.get("strategy"));
    non_negative(spec.get("minReadySeconds"));
    non_negative(spec.get("revisionHistoryLimit"));
    let deadline = spec.get("progressDeadlineSeconds");
    if deadline.is_set() {
        non_negative(deadline);
        if deadline.number() <= spec.get("minReadySeconds").number() {
            deadline.invalid("must be greater than minReadySeconds");
        }
    }
}

fn validate_strategy(at: At<'_, '_>) {
    let rolling = at.get("rollingUpdate");
    match at.get("type").text() {
        "Recreate" => {
            if rolling.is_set() {
                rolling.forbidden("may not be specified when strategy `type` is 'Recreate'");
            }
        }
        "RollingUpdate" => {
            if !rolling.is_set() {
                rolling.required("this should be defaulted and never be nil");
                return;
            }
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            int_or_percent(unavailable);
            int_or_percent(surge);
            if amount(unavailable) == 0 && amount(surge) == 0 {
                unavailable.invalid("may not be 0 when `maxSurge` is 0");
            }
            at_most_all(unavailable);
        }
        _ => not_supported_strategy(at, &["Recreate", "RollingUpdate"], &["MaxUnavailable", "MaxSurge"]),
    }
}

fn validate_status(new: At<'_, '_>, old: At<'_, '_>) {
    let at = new.get("status");
    non_negatives(
        at,
        &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
    );
    within_replicas(at, &["updatedReplicas", "readyReplicas", "availableReplicas"]);
    available_within_ready(at, "cannot be greater than readyReplicas");
    collisions(new, old);
}

fn warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    super::replica_set::warnings(new, old, out);
    let annotations = |object: &Value| object.pointer("/metadata/annotations").cloned();
    // A change of annotations counts as a change of a Deployment.
    if let Some(old) = old
        && same_workload_field(new, old, "spec")
        && !same_workload(annotations(new).as_ref(), annotations(old).as_ref())
    {
        template_warnings(new, out);
    }
}
