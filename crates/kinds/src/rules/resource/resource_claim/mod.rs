//! `ResourceClaim`.

pub(super) mod devices;
pub(super) mod status;

use self::devices::device_claim;
use super::{checks::DeclarativeErrors, remove};
use crate::rules::{
    Rules, drop_status,
    helpers::{
        equality::unchanged,
        immutable::report_immutable,
        json::{default_zero, items, pointer, structure},
        metadata::status_alone,
    },
    keep_status,
};
use k1s_object::field::At;
use serde_json::Value;

pub(super) static RULES: Rules = Rules {
    defaults,
    prepare_create,
    prepare_update,
    prepare_status,
    validate,
    validate_update,
    validate_status: status::validate,
    delete_answers_object: true,
    ..Rules::PLAIN
};

fn defaults(claim: &mut Value) {
    if let Some(spec) = structure(claim, "spec") {
        default_spec(spec);
    }
}

pub(super) fn default_spec(spec: &mut Value) {
    let Some(devices) = pointer(spec, "devices") else { return };
    for request in items(devices, "requests") {
        if let Some(exactly) = pointer(request, "exactly") {
            default_request(exactly);
        }
        for one in items(request, "firstAvailable") {
            default_request(one);
        }
    }
}

fn default_request(request: &mut Value) {
    default_zero(request, "allocationMode", "ExactCount");
    if request.get("allocationMode").and_then(Value::as_str) == Some("ExactCount") {
        default_zero(request, "count", 1);
    }
}

fn prepare_create(claim: &mut Value) {
    drop_status(claim);
    drop_request_fields(pointer(claim, "spec"));
}

fn prepare_update(claim: &mut Value, old: &Value) {
    keep_status(claim, old);
    drop_request_fields(pointer(claim, "spec"));
}

/// Drops the status of devices that are no longer allocated.
fn prepare_status(claim: &mut Value, old: &Value) {
    status_alone(claim, old);
    if let Some(devices) = claim.pointer_mut("/status/allocation/devices") {
        for result in items(devices, "results") {
            remove(result, &["skipNodeOperations"]);
        }
    }
    let id = |device: &Value| ["driver", "pool", "device", "shareID"].map(|name| device.get(name).cloned());
    let results = |claim: &Value| -> std::collections::HashSet<_> {
        let list = claim.pointer("/status/allocation/devices/results").and_then(Value::as_array);
        list.into_iter().flatten().map(id).collect()
    };
    let (before, now) = (results(old), results(claim));
    if let Some(devices) = claim.pointer_mut("/status/devices").and_then(Value::as_array_mut) {
        devices.retain(|device| !before.contains(&id(device)) || now.contains(&id(device)));
    }
}

/// Drops the fields of features that are disabled by default.
pub(super) fn drop_request_fields(spec: Option<&mut Value>) {
    let Some(devices) = spec.and_then(|spec| pointer(spec, "devices")) else { return };
    for request in items(devices, "requests") {
        if let Some(exactly) = pointer(request, "exactly") {
            remove(exactly, &["derivedAttributes"]);
        }
        for one in items(request, "firstAvailable") {
            remove(one, &["derivedAttributes"]);
        }
    }
}

fn validate(claim: At<'_, '_>) {
    let later = DeclarativeErrors::default();
    device_claim(claim.get("spec").get("devices"), &later);
    later.report(claim);
}

fn validate_update(claim: At<'_, '_>, old: At<'_, '_>) {
    if !unchanged(claim.get("spec"), old.get("spec")) {
        report_immutable(claim.get("spec"));
    }
}
