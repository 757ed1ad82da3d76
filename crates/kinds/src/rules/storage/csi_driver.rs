//! `CSIDriver`.

use crate::rules::{
    Rules,
    helpers::{
        equality::same,
        json::{default, default_zero, is_empty, structure},
        metadata::set_generation,
        text::one_of_or_unset,
    },
};
use k1s_object::field::{At, FieldError};
use serde_json::Value;

pub(super) static RULES: Rules = Rules {
    defaults,
    prepare_update,
    validate,
    validate_update,
    warnings,
    unconditional_update: false,
    delete_answers_object: true,
    ..Rules::PLAIN
};

fn defaults(driver: &mut Value) {
    let Some(spec) = structure(driver, "spec") else { return };
    default(spec, "attachRequired", true);
    default(spec, "podInfoOnMount", false);
    default(spec, "storageCapacity", false);
    default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    default_zero(spec, "volumeLifecycleModes", vec!["Persistent"]);
    default(spec, "requiresRepublish", false);
    default(spec, "seLinuxMount", false);
    default(spec, "preventPodSchedulingIfMissing", false);
}

/// The generation is incremented on changes, but not set on create.
fn prepare_update(driver: &mut Value, old: &Value) {
    if !same(driver.get("spec"), old.get("spec")) {
        let before = old.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default();
        set_generation(driver, before.saturating_add(1));
    }
}

fn validate(driver: At<'_, '_>) {
    let spec = driver.get("spec");
    for (name, shown) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ] {
        if !spec.get(name).is_set() {
            spec.get(shown).required("");
        }
    }
    one_of_or_unset(spec.get("fsGroupPolicy"), &["File", "None", "ReadWriteOnceWithFSType"]);
    token_requests(spec.get("tokenRequests"));
    for mode in spec.get("volumeLifecycleModes").items() {
        if !matches!(mode.text(), "Persistent" | "Ephemeral") {
            let modes = spec.get("volumeLifecycleModes").path();
            mode.check().push(FieldError::not_supported(modes, mode.text(), &["Persistent", "Ephemeral"]));
        }
    }
    let period = spec.get("nodeAllocatableUpdatePeriodSeconds");
    if period.int().is_some_and(|period| period < 10) {
        period.invalid("must be greater than or equal to 10 seconds");
    }
    let secrets = spec.get("serviceAccountTokenInSecrets");
    if secrets.is_set() && spec.get("tokenRequests").is_empty() {
        secrets.invalid("serviceAccountTokenInSecrets is set but no tokenRequests are specified");
    }
}

fn token_requests(at: At<'_, '_>) {
    let mut audiences = std::collections::HashSet::new();
    for request in at.items() {
        let audience = request.get("audience").text();
        if audiences.contains(&audience) {
            let path = request.get("audience").path();
            request.check().push(FieldError::duplicate(path, audience));
            continue;
        }
        audiences.insert(audience);
        crate::rules::authentication::token_request::token_lifetime(request.get("expirationSeconds"));
    }
}

fn validate_update(driver: At<'_, '_>, old: At<'_, '_>) {
    validate(driver);
    let (spec, before) = (driver.get("spec"), old.get("spec"));
    for (name, shown) in
        [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
    {
        let value = spec.get(name).value();
        if !same(value, before.get(name).value()) {
            spec.get(shown).invalid_as(value.cloned().unwrap_or(Value::Null), "field is immutable");
        }
    }
}

fn warnings(driver: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    let requests = driver.pointer("/spec/tokenRequests");
    let touched = old.is_none_or(|old| !same(requests, old.pointer("/spec/tokenRequests")));
    let unset = driver.pointer("/spec/serviceAccountTokenInSecrets").is_none_or(Value::is_null);
    if touched && unset && requests.is_some_and(|requests| !is_empty(requests)) {
        out.push(
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to \
             prevent possible logging of tokens in volume attributes"
                .into(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing::*;
    use serde_json::json;

    #[test]
    fn a_driver_has_every_switch_set() {
        let mut driver = json!({"spec": {}});
        defaults(&mut driver);
        assert_eq!(
            driver["spec"],
            json!({"attachRequired": true, "podInfoOnMount": false, "storageCapacity": false,
                "fsGroupPolicy": "ReadWriteOnceWithFSType", "volumeLifecycleModes": ["Persistent"],
                "requiresRepublish": false, "seLinuxMount": false, "preventPodSchedulingIfMissing": false})
        );
    }

    #[test]
    fn a_driver_keeps_how_volumes_attach() {
        let new = json!({"spec": {"attachRequired": false, "fsGroupPolicy": "None"}});
        assert_eq!(
            on_update(&RULES, json!({"spec": {}}), new),
            ["spec.attachedRequired: Invalid value: false: field is immutable"]
        );
        let wrong = json!({"spec": {"fsGroupPolicy": "Huh", "volumeLifecycleModes": ["Eternal"]}});
        assert_eq!(
            on_create(&RULES, wrong),
            [
                "spec.fsGroupPolicy: Unsupported value: \"Huh\": supported values: \"File\", \"None\", \"ReadWriteOnceWithFSType\"",
                "spec.volumeLifecycleModes: Unsupported value: \"Eternal\": supported values: \"Persistent\", \"Ephemeral\"",
            ]
        );
    }
}
