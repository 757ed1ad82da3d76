//! `ResourceClaimTemplate`.

use super::{
    checks::DeclarativeErrors,
    resource_claim::{default_spec, devices::device_claim, drop_request_fields},
};
use crate::rules::{
    Rules,
    helpers::{
        equality::unchanged,
        json::{pointer, structure},
    },
};
use k1s_object::field::At;
use serde_json::Value;

pub(super) static RULES: Rules = Rules {
    defaults,
    prepare_create,
    prepare_update,
    validate,
    validate_update,
    delete_answers_object: true,
    ..Rules::PLAIN
};

fn defaults(template: &mut Value) {
    if let Some(spec) = structure(template, "spec").and_then(|spec| structure(spec, "spec")) {
        default_spec(spec);
    }
}

fn prepare_create(template: &mut Value) {
    drop_request_fields(pointer(template, "spec").and_then(|spec| pointer(spec, "spec")));
}

fn prepare_update(template: &mut Value, _: &Value) {
    prepare_create(template);
}

fn validate(template: At<'_, '_>) {
    let later = DeclarativeErrors::default();
    validate_fields(template, &later);
    later.report(template);
}

fn validate_update(template: At<'_, '_>, old: At<'_, '_>) {
    let later = DeclarativeErrors::default();
    validate_fields(template, &later);
    let spec = template.get("spec");
    if !unchanged(spec, old.get("spec")) {
        spec.invalid_as(spec.value().cloned().unwrap_or(Value::Null), "field is immutable");
        later.report(template);
    }
}

fn validate_fields(template: At<'_, '_>, later: &DeclarativeErrors) {
    let spec = template.get("spec");
    k1s_object::meta::validate_labels(spec.get("metadata").get("labels"));
    device_claim(spec.get("spec").get("devices"), later);
}
