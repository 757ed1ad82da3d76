//! Validation shared by the kinds that make pods from a template.

use k1s_object::{At, names};
use serde_json::{Value, json};

use crate::rules::{
    core::pod::{spec as pod, warnings as pod_warnings},
    helpers::{
        go_values::{go_selector, sorted},
        labels,
        numbers::non_negative,
    },
};

const NO_MATCH: &str = "`selector` does not match template `labels`";

/// The selector must match the template's labels, which the error shows as a sorted map.
pub(crate) fn selects_template(selector: At<'_, '_>, template: At<'_, '_>) {
    let shown = template.get("metadata").get("labels");
    if !labels::matches(selector.value(), shown.value()) {
        shown.invalid_as(shown.value().map_or(Value::Null, sorted), NO_MATCH);
    }
}

/// A selector that is set and not empty. Returns whether it is valid.
pub(super) fn selector(at: At<'_, '_>, kind: &str) -> bool {
    if !at.is_set() {
        at.required("");
        return true;
    }
    let usable = labels::selector(at);
    if labels::is_empty(at.value()) {
        at.invalid_as(json!({}), format!("empty selector is invalid for {kind}"));
    }
    usable
}

/// The template of a `ReplicaSet` or Deployment.
pub(super) fn template(spec: At<'_, '_>) {
    let (select, template) = (spec.get("selector"), spec.get("template"));
    if !select.is_set() || !labels::is_empty(select.value()) {
        selects_template(select, template);
    }
    pod::template(template);
    pod::always_restarts(template, "ReplicaSet");
}

pub(super) fn unusable(at: At<'_, '_>, detail: &str) {
    at.invalid_as(at.value().map_or(Value::Null, go_selector), detail);
}

/// The error shows the whole strategy, by the names of the Go struct.
pub(super) fn not_supported_strategy(at: At<'_, '_>, supported: &[&str], fields: &[&str]) {
    let rolling = at.get("rollingUpdate");
    let shown = if rolling.is_set() {
        let of = |go: &str| {
            let json = format!(
                "{}{}",
                go.get(..1).unwrap_or_default().to_lowercase(),
                go.get(1..).unwrap_or_default()
            );
            rolling.value().and_then(|value| value.get(&json)).cloned().unwrap_or_else(|| json!(0))
        };
        Value::Object(fields.iter().map(|go| ((*go).to_owned(), of(go))).collect())
    } else {
        Value::Null
    };
    let error = k1s_object::FieldError::not_supported(
        at.path(),
        json!({"Type": at.get("type").text(), "RollingUpdate": shown}),
        supported,
    );
    at.check().push(error);
}

pub(super) fn int_or_percent(at: At<'_, '_>) {
    match at.str() {
        Some(text) => names::is_valid_percent(text).into_iter().for_each(|message| at.invalid(message)),
        None => non_negative(at),
    }
}

fn percent(at: At<'_, '_>) -> Option<i64> {
    at.str()
        .filter(|text| names::is_valid_percent(text).is_empty())
        .and_then(|text| text.trim_end_matches('%').parse().ok())
}

pub(super) fn amount(at: At<'_, '_>) -> i64 {
    // A string that is neither a percentage nor a number counts as 0.
    percent(at)
        .or_else(|| at.int())
        .or_else(|| at.str().and_then(|text| text.parse().ok()))
        .unwrap_or_default()
}

pub(super) fn at_most_all(at: At<'_, '_>) {
    if percent(at).is_some_and(|percent| percent > 100) {
        at.invalid("must not be greater than 100%");
    }
}

pub(super) fn non_negatives(at: At<'_, '_>, fields: &[&'static str]) {
    for field in fields {
        non_negative(at.get(field));
    }
}

/// Values that may not exceed `status.replicas`.
pub(super) fn within_replicas(at: At<'_, '_>, fields: &[&'static str]) {
    for field in fields {
        if at.get(field).number() > at.get("replicas").number() {
            at.get(field).invalid("cannot be greater than status.replicas");
        }
    }
}

pub(super) fn collisions(new: At<'_, '_>, old: At<'_, '_>) {
    let at = new.get("status").get("collisionCount");
    if old.get("status").get("collisionCount").int().is_some_and(|old| at.number() < old) {
        at.invalid_as(at.number(), "cannot be decremented");
    }
}

pub(super) fn available_within_ready(at: At<'_, '_>, detail: &str) {
    if at.get("availableReplicas").number() > at.get("readyReplicas").number() {
        at.get("availableReplicas").invalid(detail);
    }
}

pub(super) fn template_warnings(new: &Value, out: &mut Vec<String>) {
    pod_warnings::template("spec.template", new.pointer("/spec/template"), out);
}
