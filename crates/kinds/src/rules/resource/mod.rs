//! Devices: `DeviceClass`, `ResourceClaim`, `ResourceClaimTemplate`, `ResourceSlice` and `DeviceTaintRule`.
//!
//! Expressions (CEL) in selectors are looked at for their length alone.

mod capacity;
mod claims;
mod slices;
mod status;

use std::cell::RefCell;

use k1s_object::{
    field::{At, FieldError},
    names,
};
use serde_json::Value;

use crate::rules::helpers::cluster_util::{
    default_zero, invalid_each, items, label_requirement, pointer, status_alone, structure, text_at,
};
use crate::rules::{FieldLabelError, Rules, SelectableField, drop_status, keep_status};

static CLASS: Rules = Rules {
    validate: claims::class_create,
    validate_update: claims::class_update,
    generation: true,
    delete_answers_object: true,
    ..Rules::PLAIN
};

static CLAIM: Rules = Rules {
    defaults: default_claim,
    prepare_create: prepare_claim,
    prepare_update: prepare_claim_update,
    prepare_status: prepare_claim_status,
    validate: claims::claim_create,
    validate_update: claims::claim_update,
    validate_status: status::claim_status,
    delete_answers_object: true,
    ..Rules::PLAIN
};

static TEMPLATE: Rules = Rules {
    defaults: default_template,
    prepare_create: drop_template_fields,
    prepare_update: prepare_template_update,
    validate: claims::template_create,
    validate_update: claims::template_update,
    delete_answers_object: true,
    ..Rules::PLAIN
};

static SLICE: Rules = Rules {
    prepare_create: drop_slice_fields,
    prepare_update: prepare_slice_update,
    stamp_times: stamp_slice,
    validate: slices::slice_create,
    validate_update: slices::slice_update,
    warnings: slice_warnings,
    generation: true,
    delete_answers_object: true,
    fields: &[
        SelectableField { path: "spec.nodeName", read: |slice| text_at(slice, "/spec/nodeName") },
        SelectableField { path: "spec.driver", read: |slice| text_at(slice, "/spec/driver") },
        SelectableField { path: "spec.pool.name", read: |slice| text_at(slice, "/spec/pool/name") },
    ],
    field_error: FieldLabelError::NotSupportedFor("resource.k8s.io/v1, Kind=ResourceSlice"),
    ..Rules::PLAIN
};

static TAINT_RULE: Rules = Rules {
    stamp_times: stamp_taint_rule,
    prepare_status: status_alone,
    validate: slices::taint_rule_create,
    validate_update: slices::taint_rule_update,
    validate_status: slices::taint_rule_status,
    unconditional_update: false,
    ..Rules::WITH_STATUS
};

pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "DeviceClass" => &CLASS,
        "ResourceClaim" => &CLAIM,
        "ResourceClaimTemplate" => &TEMPLATE,
        "ResourceSlice" => &SLICE,
        "DeviceTaintRule" => &TAINT_RULE,
        _ => return None,
    })
}

fn default_claim(claim: &mut Value) {
    if let Some(spec) = structure(claim, "spec") {
        default_spec(spec);
    }
}

fn default_template(template: &mut Value) {
    if let Some(spec) = structure(template, "spec").and_then(|spec| structure(spec, "spec")) {
        default_spec(spec);
    }
}

fn default_spec(spec: &mut Value) {
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

fn remove(value: &mut Value, names: &[&str]) {
    if let Some(map) = value.as_object_mut() {
        for name in names {
            map.shift_remove(*name);
        }
    }
}

/// Fields of features that are off by default do not get in.
fn drop_request_fields(spec: Option<&mut Value>) {
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

fn prepare_claim(claim: &mut Value) {
    drop_status(claim);
    drop_request_fields(pointer(claim, "spec"));
}

fn prepare_claim_update(claim: &mut Value, old: &Value) {
    keep_status(claim, old);
    drop_request_fields(pointer(claim, "spec"));
}

/// The status of devices goes with their allocation.
fn prepare_claim_status(claim: &mut Value, old: &Value) {
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

fn drop_template_fields(template: &mut Value) {
    drop_request_fields(pointer(template, "spec").and_then(|spec| pointer(spec, "spec")));
}

fn prepare_template_update(template: &mut Value, _: &Value) {
    drop_template_fields(template);
}

fn drop_slice_fields(slice: &mut Value) {
    let Some(spec) = pointer(slice, "spec") else { return };
    remove(spec, &["partitionTypeAttribute", "skipNodeOperations"]);
    for device in items(spec, "devices") {
        remove(device, &["nodeAllocatableResources"]);
        for one in items(device, "consumesCounters") {
            remove(one, &["compatibilityGroups"]);
        }
        let attributes = device.get_mut("attributes").and_then(Value::as_object_mut);
        for (_, attribute) in attributes.into_iter().flatten() {
            remove(attribute, &["bools", "ints", "strings", "versions"]);
        }
    }
}

fn prepare_slice_update(slice: &mut Value, _: &Value) {
    drop_slice_fields(slice);
}

fn stamp_slice(slice: &mut Value, _: Option<&Value>, now: &str) {
    let Some(spec) = pointer(slice, "spec") else { return };
    for device in items(spec, "devices") {
        for taint in items(device, "taints") {
            crate::rules::helpers::cluster_util::default(taint, "timeAdded", now);
        }
    }
}

/// The time of a taint follows its effect, unless the client says another.
fn stamp_taint_rule(rule: &mut Value, old: Option<&Value>, now: &str) {
    let Some(taint) = pointer(rule, "spec").and_then(|spec| pointer(spec, "taint")) else { return };
    if let Some(before) = old.and_then(|old| old.pointer("/spec/taint")) {
        let same = |name: &str| crate::rules::helpers::cluster_util::same(before.get(name), taint.get(name));
        if same("timeAdded")
            && !same("effect")
            && let Some(taint) = taint.as_object_mut()
        {
            taint.insert("timeAdded".into(), now.into());
        }
    }
    crate::rules::helpers::cluster_util::default(taint, "timeAdded", now);
}

fn slice_warnings(slice: &Value, _: Option<&Value>, out: &mut Vec<String>) {
    let driver = text_at(slice, "/spec/driver");
    if driver != driver.to_lowercase() {
        out.push(format!(
            "spec.driver: driver names should be lowercase; {driver:?} contains uppercase characters"
        ));
    }
}

/// Errors of generated checks: Kubernetes says them after all others.
#[derive(Debug, Default)]
struct Later(RefCell<Vec<FieldError>>);

impl Later {
    /// Runs a check and keeps what it finds for later.
    fn keep(&self, at: At<'_, '_>, look: impl FnOnce()) {
        let before = at.check().take();
        look();
        self.0.borrow_mut().extend(at.check().take());
        for error in before {
            at.check().push(error);
        }
    }

    /// Says what was kept.
    fn say(self, at: At<'_, '_>) {
        for error in self.0.into_inner() {
            at.check().push(error);
        }
    }

    /// Whether a list is short enough.
    fn at_most(&self, list: At<'_, '_>, limit: usize) -> bool {
        if list.len() > limit {
            self.keep(list, || list.too_many(limit));
            return false;
        }
        true
    }

    /// Items with the same key are duplicates.
    fn unique<'c, 'v>(&self, list: At<'c, 'v>, key: impl Fn(At<'c, 'v>) -> &'v str) {
        let mut seen = std::collections::HashSet::new();
        for item in list.items() {
            let key = key(item);
            if seen.contains(&key) {
                self.keep(item, || item.check().push(FieldError::duplicate(item.path(), key)));
            }
            seen.insert(key);
        }
    }

    /// A text that is there, and right.
    fn required(&self, at: At<'_, '_>, look: fn(&str) -> Vec<String>) {
        self.keep(at, || {
            if at.is_empty() {
                at.required("");
            } else {
                invalid_each(at, look(at.text()));
            }
        });
    }

    fn driver(&self, at: At<'_, '_>) {
        self.keep(at, || {
            if at.is_empty() {
                at.required("");
            } else {
                invalid_each(at, names::is_dns1123_subdomain_caseless(at.text()));
                if at.text().chars().count() > 63 {
                    at.too_long(63);
                }
            }
        });
    }
}

/// `Invalid value` unless the text is a DNS label.
fn label(at: At<'_, '_>) {
    invalid_each(at, names::is_dns1123_label(at.text()));
}

/// One or more DNS subdomains with slashes between them.
fn pool_name(at: At<'_, '_>) {
    if at.is_empty() {
        return at.required("");
    }
    if at.text().len() > 253 {
        at.too_long(253);
    }
    for part in at.text().split('/') {
        for message in names::is_dns1123_subdomain(part) {
            at.invalid_as(part, message);
        }
    }
}

/// `name` or `domain/name`, where the name is an identifier of C.
fn qualified_name(at: At<'_, '_>, name: &str) {
    let identifier = |id: &str| {
        if id.len() > 32 {
            at.too_long(32);
        }
        for message in names::is_c_identifier(id) {
            at.invalid_as(id, message);
        }
    };
    match name.split('/').collect::<Vec<_>>().as_slice() {
        [id] => identifier(id),
        [domain, id] => {
            if domain.is_empty() {
                at.invalid_as("", "the domain must not be empty");
            } else {
                if domain.len() > 63 {
                    at.too_long(63);
                }
                for message in names::is_dns1123_subdomain(&domain.to_lowercase()) {
                    at.invalid_as(*domain, message);
                }
            }
            if id.is_empty() {
                at.invalid_as("", "the name must not be empty");
            } else {
                identifier(id);
            }
        }
        _ => {}
    }
}

fn fully_qualified_name(at: At<'_, '_>) {
    qualified_name(at, at.text());
    if !at.text().contains('/') {
        at.invalid_text("a fully qualified name must be a domain and a name separated by a slash");
    }
}

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

fn toleration(at: At<'_, '_>, later: &Later) {
    let (key, operator) = (at.get("key"), at.get("operator"));
    let (value, effect) = (at.get("value"), at.get("effect"));
    if !key.is_empty() {
        later.keep(key, || invalid_each(key, names::is_qualified_name(key.text())));
    }
    match operator.text() {
        "Exists" if !value.is_empty() => value.invalid("must be empty for operator `Exists`"),
        "Exists" => {}
        "Equal" => invalid_each(value, names::is_valid_label_value(value.text())),
        "" => later.keep(operator, || operator.required("")),
        _ => later.keep(operator, || operator.not_supported(&["Equal", "Exists"])),
    }
    if !effect.is_empty() && !EFFECTS.contains(&effect.text()) {
        later.keep(effect, || effect.not_supported(&EFFECTS));
    }
}

fn node_selector(at: At<'_, '_>) {
    let terms = at.get("nodeSelectorTerms");
    if terms.is_empty() {
        return terms.required("must have at least one node selector term");
    }
    for requirement in terms.items().flat_map(|term| term.get("matchExpressions").items()) {
        match requirement.get("operator").text() {
            "Gt" | "Lt" if requirement.get("values").len() != 1 => requirement
                .get("values")
                .required("must be specified single value when `operator` is 'Lt' or 'Gt'"),
            "Gt" | "Lt" | "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => requirement.get("operator").invalid_text("not a valid selector operator"),
        }
        label_requirement(requirement);
    }
}

#[cfg(test)]
mod tests;
