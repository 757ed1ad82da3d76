//! Tests of the rules of this group.

use serde_json::{Value, json};

use super::{device_taint_rule, resource_claim, resource_slice};
use crate::rules::helpers::testing::*;

fn claim(devices: &Value) -> Value {
    json!({"metadata": {"name": "c"}, "spec": {"devices": devices}})
}

#[test]
fn a_request_is_for_one_device_by_default() {
    let mut object = claim(&json!({"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}));
    (resource_claim::RULES.defaults)(&mut object);
    assert_eq!(
        object["spec"]["devices"]["requests"][0]["exactly"],
        json!({"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1})
    );
    assert!(on_create(&resource_claim::RULES, object).is_empty());
}

#[test]
fn a_request_says_what_it_wants() {
    let devices = json!({"requests": [
        {"name": "r"},
        {"name": "r", "exactly": {"allocationMode": "Some", "selectors": [{}]}},
    ], "constraints": [{"requests": ["nope"]}]});
    assert_eq!(
        on_create(&resource_claim::RULES, claim(&devices)),
        [
            "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
            "spec.devices.requests[1].exactly.deviceClassName: Required value",
            "spec.devices.requests[1].exactly.selectors[0].cel: Required value",
            "spec.devices.constraints[0].requests[0]: Invalid value: \"nope\": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'",
            "spec.devices.constraints[0]: Required value: exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set",
            "spec.devices.requests[1].exactly.allocationMode: Unsupported value: \"Some\": supported values: \"All\", \"ExactCount\"",
            "spec.devices.requests[1]: Duplicate value: \"r\"",
        ]
    );
}

#[test]
fn the_spec_of_a_claim_is_immutable() {
    let one = claim(&json!({"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu"}}]}));
    let two = claim(&json!({"requests": [{"name": "b", "exactly": {"deviceClassName": "gpu"}}]}));
    assert_eq!(
        on_update(&resource_claim::RULES, one, two),
        ["spec: Invalid value: null: field is immutable"]
    );
}

#[test]
fn reservations_need_an_allocation() {
    let old = claim(&json!({}));
    let mut new = old.clone();
    new["status"] = json!({"reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]});
    assert_eq!(
        on_status(&resource_claim::RULES, new, &old),
        ["status.reservedFor: Forbidden: may not be specified when `allocated` is not set"]
    );
}

#[test]
fn a_slice_is_of_nodes_and_has_devices_with_names() {
    let slice = |spec: Value| on_create(&resource_slice::RULES, json!({"spec": spec}));
    assert_eq!(
        slice(json!({})),
        [
            "spec.driver: Required value",
            "spec.pool.name: Required value",
            "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
            "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
        ]
    );
    let pool = json!({"name": "p", "resourceSliceCount": 1});
    let devices = json!([{"name": "A", "attributes": {"x": {}}, "taints": [{"key": "k"}]}]);
    assert_eq!(
        slice(json!({"driver": "d.example.com", "pool": pool, "nodeName": "n", "allNodes": true, "devices": devices}))
            .iter()
            .map(|error| error.split(": ").next().unwrap_or_default())
            .collect::<Vec<_>>(),
        ["spec", "spec.devices[0].name", "spec.devices[0].attributes[x]", "spec.devices[0].taints[0].effect"]
    );
}

#[test]
fn taints_get_the_time_of_their_effect() {
    let rule = |effect: &str| json!({"spec": {"taint": {"key": "k", "effect": effect}}});
    let mut first = rule("NoSchedule");
    (device_taint_rule::RULES.stamp_times)(&mut first, None, "1");
    assert_eq!(first["spec"]["taint"]["timeAdded"], "1");
    let mut second = first.clone();
    second["spec"]["taint"]["effect"] = "NoExecute".into();
    (device_taint_rule::RULES.stamp_times)(&mut second, Some(&first), "2");
    assert_eq!(second["spec"]["taint"]["timeAdded"], "2");
}

#[test]
fn a_share_of_a_capacity_is_a_whole_number_of_steps() {
    let slice = |policy: Value| {
        let capacity = json!({"memory": {"value": "10", "requestPolicy": policy}});
        let device = json!({"name": "a", "allowMultipleAllocations": true, "capacity": capacity});
        let pool = json!({"name": "p", "resourceSliceCount": 1});
        let wrong = on_create(
            &resource_slice::RULES,
            json!({"spec": {"driver": "d", "pool": pool, "allNodes": true, "devices": [device]}}),
        );
        wrong
            .iter()
            .map(|one| one.replace("spec.devices[0].capacity[memory].requestPolicy", "policy"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        slice(json!({"default": "3", "validRange": {"min": "1", "step": "3"}})),
        [
            "policy.validRange.step: Invalid value: \"3\": value is not a multiple of a given step (3) from (1)"
        ]
    );
    assert_eq!(
        slice(json!({"default": "3", "validValues": ["2", "11"]})),
        [
            "policy.validValues[1]: Invalid value: \"11\": option is larger than capacity value: 10",
            "policy.validValues: Invalid value: \"3\": default value is not valid according to the requestPolicy",
        ]
    );
    assert_eq!(
        slice(json!({"default": "4", "validRange": {"min": "1", "max": "7", "step": "3"}})),
        Vec::<String>::new()
    );
}
