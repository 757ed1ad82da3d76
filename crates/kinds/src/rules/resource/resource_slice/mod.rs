//! `ResourceSlice`.

mod capacity;

use self::capacity::request_policy;
use super::{
    checks::{DeclarativeErrors, EFFECTS, label, node_selector, pool_name, qualified_name},
    remove,
    resource_claim::status::binding_conditions,
};
use crate::rules::{
    FieldLabelError, Rules, SelectableField,
    helpers::{
        equality::unchanged,
        errors::invalid_each,
        json::{default, items, pointer, text_at},
        text::driver_name,
    },
};
use k1s_object::{
    field::{At, FieldError},
    names,
};
use serde_json::Value;

pub(super) static RULES: Rules = Rules {
    prepare_create,
    prepare_update,
    stamp_times,
    validate,
    validate_update,
    warnings,
    generation: true,
    delete_answers_object: true,
    fields: &[
        SelectableField {
            path: "spec.nodeName",
            read: |slice| text_at(slice, &["spec", "nodeName"]).to_owned(),
        },
        SelectableField { path: "spec.driver", read: |slice| text_at(slice, &["spec", "driver"]).to_owned() },
        SelectableField {
            path: "spec.pool.name",
            read: |slice| text_at(slice, &["spec", "pool", "name"]).to_owned(),
        },
    ],
    field_error: FieldLabelError::NotSupportedFor("resource.k8s.io/v1, Kind=ResourceSlice"),
    ..Rules::PLAIN
};

fn prepare_create(slice: &mut Value) {
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

fn prepare_update(slice: &mut Value, _: &Value) {
    prepare_create(slice);
}

fn stamp_times(slice: &mut Value, _: Option<&Value>, now: &str) {
    let Some(spec) = pointer(slice, "spec") else { return };
    for device in items(spec, "devices") {
        for taint in items(device, "taints") {
            default(taint, "timeAdded", now);
        }
    }
}

fn warnings(slice: &Value, _: Option<&Value>, out: &mut Vec<String>) {
    let driver = text_at(slice, &["spec", "driver"]);
    if driver != driver.to_lowercase() {
        out.push(format!(
            "spec.driver: driver names should be lowercase; {driver:?} contains uppercase characters"
        ));
    }
}

const NODES: &str = "`nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`";

fn validate(slice: At<'_, '_>) {
    let later = DeclarativeErrors::default();
    validate_spec(slice.get("spec"), None, &later);
    later.report(slice);
}

fn validate_update(slice: At<'_, '_>, old: At<'_, '_>) {
    let later = DeclarativeErrors::default();
    validate_spec(slice.get("spec"), Some(old.get("spec")), &later);
    if !unchanged(slice.get("spec"), old.get("spec")) {
        later.report(slice);
    }
}

fn validate_spec(spec: At<'_, '_>, old: Option<At<'_, '_>>, later: &DeclarativeErrors) {
    let pool = spec.get("pool");
    driver_name(spec.get("driver"));
    pool_name(pool.get("name"));
    let count = pool.get("resourceSliceCount");
    if count.number() <= 0 {
        count.invalid_as(count.number(), "must be greater than zero");
    }
    if pool.get("generation").number() < 0 {
        pool.get("generation").invalid("must be greater than or equal to zero");
    }
    if let Some(old) = old {
        let fixed = [
            (pool.get("name"), old.get("pool").get("name")),
            (spec.get("driver"), old.get("driver")),
            (spec.get("nodeName"), old.get("nodeName")),
        ];
        for (new, before) in fixed {
            if !unchanged(new, before) {
                new.invalid("field is immutable");
            }
        }
    }
    which_nodes(spec);
    let (devices, counters) = (spec.get("devices"), spec.get("sharedCounters"));
    if devices.is_set() && counters.is_set() {
        spec.invalid_as("", "only one of `sharedCounters` or `devices` is allowed");
    }
    let advanced =
        |device: At<'_, '_>| !device.get("taints").is_empty() || !device.get("consumesCounters").is_empty();
    let limit = if devices.items().any(advanced) { 64 } else { 128 };
    if devices.len() > limit {
        devices.too_many(limit);
    } else {
        let per_device = spec.get("perDeviceNodeSelection").is_true();
        for one in devices.items() {
            let name = one.get("name").text();
            let before =
                old.and_then(|old| old.get("devices").items().find(|other| other.get("name").text() == name));
            device(one, before, per_device, later);
        }
        let mut seen = std::collections::HashSet::new();
        for one in devices.items() {
            let name = one.get("name").text();
            if seen.contains(&name) {
                one.check().push(FieldError::duplicate(one.path(), name));
            }
            seen.insert(name);
        }
    }
    if later.at_most(counters, 8) {
        for set in counters.items() {
            later.required(set.get("name"), names::is_dns1123_label);
            counter_map(set.get("counters"), later);
        }
        later.unique(counters, |set| set.get("name").text());
    }
}

/// Exactly one way to select nodes: one node, some, all, or per device.
fn which_nodes(spec: At<'_, '_>) {
    let mut set = Vec::new();
    let node = spec.get("nodeName");
    if node.is_set() {
        if node.is_empty() {
            node.invalid("must be either unset or set to a non-empty string");
        } else {
            set.push("`nodeName`");
            invalid_each(node, names::is_dns1123_subdomain(node.text()));
        }
    }
    let selector = spec.get("nodeSelector");
    if selector.is_set() {
        set.push("`nodeSelector`");
        node_selector(selector);
        let terms = selector.get("nodeSelectorTerms");
        if terms.len() != 1 {
            terms.invalid("must have exactly one node selector term");
        }
    }
    for (name, shown) in [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")]
    {
        match spec.get(name).bool() {
            Some(true) => set.push(shown),
            Some(false) => spec.get(name).invalid("must be either unset or set to true"),
            None => {}
        }
    }
    match set.len() {
        0 => spec.required(format!("exactly one of {NODES} is required")),
        1 => {}
        _ => spec.invalid_as(
            format!("{{{}}}", set.join(", ")),
            format!("exactly one of {NODES} is required, but multiple fields are set"),
        ),
    }
}

fn counter_map(counters: At<'_, '_>, later: &DeclarativeErrors) {
    if counters.is_empty() {
        return later.collect(counters, || counters.required(""));
    }
    if counters.len() > 32 {
        return counters.too_many(32);
    }
    for (key, _) in counters.entries() {
        later.collect(counters, || {
            for message in names::is_dns1123_label(key) {
                counters.invalid_as(key, message);
            }
        });
    }
}

fn device(at: At<'_, '_>, old: Option<At<'_, '_>>, per_device: bool, later: &DeclarativeErrors) {
    label(at.get("name"));
    let (attributes, capacity) = (at.get("attributes"), at.get("capacity"));
    let total = attributes.len() + capacity.len();
    if total > 32 {
        at.invalid_as(total, "the total number of attributes and capacities must not exceed 32");
    }
    for (key, one) in attributes.entries() {
        qualified_name(attributes, key);
        attribute(one, later);
    }
    let changed = |name: &'static str| old.is_none_or(|old| !unchanged(at.get(name), old.get(name)));
    if changed("capacity") {
        for (key, one) in capacity.entries() {
            qualified_name(capacity, key);
            if at.get("allowMultipleAllocations").is_true() {
                request_policy(one);
            } else if one.get("requestPolicy").is_set() {
                one.get("requestPolicy").forbidden("allowMultipleAllocations must be true");
            }
        }
    }
    let taints = at.get("taints");
    if changed("taints") {
        if taints.len() > 16 {
            taints.too_many(16);
        } else {
            for one in taints.items() {
                taint(one, None, later);
            }
        }
    }
    let consumed = at.get("consumesCounters");
    if later.at_most(consumed, 2) {
        for one in consumed.items() {
            later.required(one.get("counterSet"), names::is_dns1123_label);
            counter_map(one.get("counters"), later);
        }
        later.unique(consumed, |one| one.get("counterSet").text());
    }
    device_nodes(at, per_device);
    binding_conditions(at, later);
}

fn device_nodes(at: At<'_, '_>, per_device: bool) {
    let (node, selector, all) = (at.get("nodeName"), at.get("nodeSelector"), at.get("allNodes"));
    if !per_device {
        if node.is_set() || selector.is_set() || all.is_set() {
            at.invalid_as(
                Value::Null,
                "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec",
            );
        }
        return;
    }
    let mut set = Vec::new();
    if node.is_set() {
        if node.is_empty() {
            node.invalid("must not be empty");
        } else {
            set.push("`nodeName`");
            invalid_each(node, names::is_dns1123_subdomain(node.text()));
        }
    }
    if selector.is_set() {
        set.push("`nodeSelector`");
        node_selector(selector);
    }
    match all.bool() {
        Some(true) => set.push("`allNodes`"),
        Some(false) => all.invalid("must be either unset or set to true"),
        None => {}
    }
    let why = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    match set.len() {
        0 => at.required(why),
        1 => {}
        _ => at.invalid_as(format!("{{{}}}", set.join(", ")), why),
    }
}

fn attribute(at: At<'_, '_>, later: &DeclarativeErrors) {
    let (string, version) = (at.get("string"), at.get("version"));
    if version.is_set() && !is_semver(version.text()) {
        version.invalid_text("must be a string compatible with semver.org spec 2.0.0");
    }
    for text in [string, version] {
        if text.text().len() > 64 {
            text.too_long(64);
        }
    }
    // The plural fields belong to a disabled feature, but the message names them.
    let names = ["int", "bool", "string", "version", "ints", "bools", "strings", "versions"];
    let set: Vec<&str> = names.into_iter().filter(|name| at.get(name).is_set()).collect();
    let all = names.map(|name| format!("`{name}`")).join(", ");
    later.collect(at, || match set.as_slice() {
        [] => at.invalid_as("", format!("must specify one of: {all}")),
        [_] => {}
        several => at
            .invalid_as(format!("{{{}}}", several.join(", ")), format!("must specify exactly one of: {all}")),
    });
}

/// `1.2.3-rc.1+build.5`
fn is_semver(text: &str) -> bool {
    let number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    let word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let pre = |part: &str| word(part) && (!part.bytes().all(|byte| byte.is_ascii_digit()) || number(part));
    let (rest, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
    let (core, release) = rest.split_once('-').map_or((rest, None), |(core, release)| (core, Some(release)));
    core.split('.').count() == 3
        && core.split('.').all(number)
        && release.is_none_or(|release| release.split('.').all(pre))
        && build.is_none_or(|build| build.split('.').all(word))
}

pub(super) fn taint(at: At<'_, '_>, old: Option<At<'_, '_>>, later: &DeclarativeErrors) {
    let (key, value, effect) = (at.get("key"), at.get("value"), at.get("effect"));
    invalid_each(key, names::is_qualified_name(key.text()));
    if !value.is_empty() {
        invalid_each(value, names::is_valid_label_value(value.text()));
    }
    if old.is_none_or(|old| old.get("effect").text() != effect.text()) {
        match effect.text() {
            "" => later.collect(effect, || effect.required("")),
            text if EFFECTS.contains(&text) => {}
            _ => later.collect(effect, || effect.not_supported(&EFFECTS)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_semantic() {
        for good in ["1.2.3", "0.0.0-rc.1", "1.0.0-a.b-c+5.x"] {
            assert!(is_semver(good), "{good}");
        }
        for bad in ["", "1.2", "01.2.3", "1.2.3-", "1.2.3-01", "v1.2.3", "1.2.3+"] {
            assert!(!is_semver(bad), "{bad}");
        }
    }
}
