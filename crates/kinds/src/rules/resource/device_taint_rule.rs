//! `DeviceTaintRule`.

use super::{
    checks::{DeclarativeErrors, label, pool_name},
    resource_slice::taint,
};
use crate::rules::{
    Rules,
    helpers::{
        equality::same,
        json::{default, pointer},
        metadata::status_alone,
        text::driver_name,
    },
};
use k1s_object::field::At;
use k1s_object::meta::validate_conditions as conditions;
use serde_json::Value;

pub(super) static RULES: Rules = Rules {
    stamp_times,
    prepare_status: status_alone,
    validate,
    validate_update,
    validate_status,
    unconditional_update: false,
    ..Rules::WITH_STATUS
};

/// The time of a taint changes with its effect, unless the client sets it.
fn stamp_times(rule: &mut Value, old: Option<&Value>, now: &str) {
    let Some(taint) = pointer(rule, "spec").and_then(|spec| pointer(spec, "taint")) else { return };
    if let Some(before) = old.and_then(|old| old.pointer("/spec/taint")) {
        let same = |name: &str| same(before.get(name), taint.get(name));
        if same("timeAdded")
            && !same("effect")
            && let Some(taint) = taint.as_object_mut()
        {
            taint.insert("timeAdded".into(), now.into());
        }
    }
    default(taint, "timeAdded", now);
}

fn validate(rule: At<'_, '_>) {
    validate_rule(rule, None);
}

fn validate_update(rule: At<'_, '_>, old: At<'_, '_>) {
    validate_rule(rule, Some(old));
}

fn validate_rule(rule: At<'_, '_>, old: Option<At<'_, '_>>) {
    let later = DeclarativeErrors::default();
    let spec = rule.get("spec");
    let selector = spec.get("deviceSelector");
    if selector.get("driver").is_set() {
        driver_name(selector.get("driver"));
    }
    if selector.get("pool").is_set() {
        pool_name(selector.get("pool"));
    }
    if selector.get("device").is_set() {
        label(selector.get("device"));
    }
    taint(spec.get("taint"), old.map(|old| old.get("spec").get("taint")), &later);
    later.report(rule);
}

fn validate_status(rule: At<'_, '_>, _: At<'_, '_>) {
    let list = rule.get("status").get("conditions");
    conditions(list);
    if list.len() > 8 {
        list.too_many(8);
    }
}
