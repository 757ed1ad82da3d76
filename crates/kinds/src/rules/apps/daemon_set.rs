//! `DaemonSet`.

use k1s_object::At;
use serde_json::{Value, json};

use super::workload::{
    amount, at_most_all, collisions, int_or_percent, non_negatives, not_supported_strategy, selects_template,
    template_warnings,
};
use crate::rules::{
    Rules,
    core::pod::{defaults as pod_defaults, spec as pod},
    drop_status,
    helpers::{
        equality::same_workload,
        immutable::immutable_selector,
        json::{child, default_pointer, default_value, object, text},
        labels,
        numbers::non_negative,
    },
    keep_status, only_status,
};

/// The annotation that holds the generation of the template of a `DaemonSet`.
pub(super) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(super) static RULES: Rules = Rules {
    defaults,
    prepare_create,
    prepare_update,
    prepare_status,
    validate,
    validate_update,
    validate_status,
    warnings,
    ..Rules::WITH_STATUS
};

fn defaults(value: &mut Value) {
    let set = object(value);
    // The default is 0, and the annotation belongs to the field manager that sent the object.
    let annotations = child(child(set, "metadata"), "annotations");
    default_value(annotations, TEMPLATE_GENERATION, "0");
    let spec = child(set, "spec");
    let strategy = child(spec, "updateStrategy");
    default_value(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        default_pointer(rolling, "maxUnavailable", 1);
        default_pointer(rolling, "maxSurge", 0);
    }
    default_pointer(spec, "revisionHistoryLimit", 10);
    pod_defaults::template(spec, "template");
}

fn template_generation(set: &Value) -> i64 {
    let annotations = set.pointer("/metadata/annotations").and_then(Value::as_object);
    annotations
        .and_then(|annotations| text(annotations, TEMPLATE_GENERATION).parse().ok())
        .unwrap_or_default()
}

fn set_template_generation(set: &mut Value, generation: i64) {
    let annotations = child(child(object(set), "metadata"), "annotations");
    annotations.insert(TEMPLATE_GENERATION.into(), generation.to_string().into());
}

fn prepare_create(set: &mut Value) {
    drop_status(set);
    let generation = template_generation(set).max(1);
    set_template_generation(set, generation);
}

fn prepare_update(new: &mut Value, old: &Value) {
    keep_status(new, old);
    let changed = !same_workload(new.pointer("/spec/template"), old.pointer("/spec/template"));
    let generation = template_generation(old).saturating_add(i64::from(changed));
    set_template_generation(new, generation);
}

fn prepare_status(new: &mut Value, old: &Value) {
    only_status(new, old);
    set_template_generation(new, template_generation(old));
}

fn validate(object: At<'_, '_>) {
    validate_spec(object.get("spec"));
}

fn validate_update(new: At<'_, '_>, old: At<'_, '_>) {
    immutable_selector(new.get("spec").get("selector"), old.get("spec").get("selector").value());
    validate_spec(new.get("spec"));
}

fn validate_spec(spec: At<'_, '_>) {
    let (select, template) = (spec.get("selector"), spec.get("template"));
    if labels::selector(select) {
        selects_template(select, template);
    }
    if select.is_set() && labels::is_empty(select.value()) {
        select.invalid_as(json!({}), "empty selector is invalid for daemonset");
    }
    pod::template(template);
    pod::always_restarts(template, "DaemonSet");
    non_negative(spec.get("minReadySeconds"));
    let strategy = spec.get("updateStrategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "OnDelete" => {}
        "RollingUpdate" if !rolling.is_set() => rolling.required(""),
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            int_or_percent(unavailable);
            int_or_percent(surge);
            at_most_all(unavailable);
            at_most_all(surge);
            match (amount(unavailable) != 0, amount(surge) != 0) {
                (true, true) => surge.invalid("may not be set when maxUnavailable is non-zero"),
                (false, false) => unavailable.required("cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        _ => {
            not_supported_strategy(strategy, &["RollingUpdate", "OnDelete"], &["MaxUnavailable", "MaxSurge"])
        }
    }
    non_negative(spec.get("revisionHistoryLimit"));
}

fn validate_status(new: At<'_, '_>, old: At<'_, '_>) {
    non_negatives(
        new.get("status"),
        &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
    );
    collisions(new, old);
}

fn warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_none_or(|old| !same_workload(new.pointer("/spec/template"), old.pointer("/spec/template"))) {
        template_warnings(new, out);
    }
}
