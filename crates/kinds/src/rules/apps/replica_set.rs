//! `ReplicaSet`.

use k1s_object::At;
use serde_json::Value;

use super::workload::{
    available_within_ready, non_negatives, selector, template, template_warnings, unusable, within_replicas,
};
use crate::rules::{
    Rules,
    core::pod::{defaults as pod_defaults, warnings as pod_warnings},
    helpers::{
        equality::same_workload_field,
        immutable::immutable_selector,
        json::{child, default_pointer, object},
        numbers::non_negative,
    },
};

pub(super) static RULES: Rules =
    Rules { defaults, validate, validate_update, validate_status, warnings, ..Rules::WITH_STATUS };

fn defaults(value: &mut Value) {
    let spec = child(object(value), "spec");
    default_pointer(spec, "replicas", 1);
    pod_defaults::template(spec, "template");
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
    non_negative(spec.get("minReadySeconds"));
    if selector(spec.get("selector"), "deployment") {
        template(spec);
    } else {
        unusable(spec.get("selector"), "invalid label selector");
    }
}

/// Also used for `ReplicationController`.
pub(in crate::rules) fn validate_status(new: At<'_, '_>, _old: At<'_, '_>) {
    let at = new.get("status");
    non_negatives(
        at,
        &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
    );
    within_replicas(at, &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"]);
    available_within_ready(at, "cannot be greater than readyReplicas");
}

pub(super) fn warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_none() {
        pod_warnings::name(new, "Pod names and hostnames", out);
    }
    if old.is_none_or(|old| !same_workload_field(new, old, "spec")) {
        template_warnings(new, out);
    }
}
