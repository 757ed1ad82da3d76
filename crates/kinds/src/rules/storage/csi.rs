//! CSI: `CSIDriver`, `CSINode` and `CSIStorageCapacity`.

use k1s_object::{
    field::{At, FieldError},
    names,
    selector::validate_label_selector,
};
use serde_json::Value;

use crate::rules::helpers::cluster_util::{
    default, default_zero, deprecated_node_label, driver_name, has_invalid_label_value, invalid_each,
    non_negative, non_negative_quantity, nothing, one_of_if_set, same, set_generation, status_alone,
    structure, unchanged,
};
use crate::rules::{Rules, drop_status, keep_status};

static DRIVER: Rules = Rules {
    defaults: default_driver,
    prepare_update: prepare_driver_update,
    validate: driver_create,
    validate_update: driver_update,
    warnings: driver_warnings,
    unconditional_update: false,
    delete_answers_object: true,
    ..Rules::PLAIN
};

static NODE: Rules = Rules {
    prepare_create: drop_status,
    prepare_update: keep_status,
    prepare_status: prepare_node_status,
    validate: node_create,
    validate_update: node_update,
    unconditional_update: false,
    delete_answers_object: true,
    ..Rules::PLAIN
};

static CAPACITY: Rules = Rules {
    validate: capacity_create,
    validate_update: capacity_update,
    warnings: capacity_warnings,
    unconditional_update: false,
    ..Rules::PLAIN
};

pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "CSIDriver" => &DRIVER,
        "CSINode" => &NODE,
        "CSIStorageCapacity" => &CAPACITY,
        _ => return None,
    })
}

fn default_driver(driver: &mut Value) {
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

/// The generation of a driver counts changes, but not its creation.
fn prepare_driver_update(driver: &mut Value, old: &Value) {
    if !same(driver.get("spec"), old.get("spec")) {
        let before = old.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default();
        set_generation(driver, before.saturating_add(1));
    }
}

fn driver_create(driver: At<'_, '_>) {
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
    one_of_if_set(spec.get("fsGroupPolicy"), &["File", "None", "ReadWriteOnceWithFSType"]);
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
        crate::rules::reviews::token_lifetime(request.get("expirationSeconds"));
    }
}

fn driver_update(driver: At<'_, '_>, old: At<'_, '_>) {
    driver_create(driver);
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

fn driver_warnings(driver: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    let requests = driver.pointer("/spec/tokenRequests");
    let touched = old.is_none_or(|old| !same(requests, old.pointer("/spec/tokenRequests")));
    let unset = driver.pointer("/spec/serviceAccountTokenInSecrets").is_none_or(Value::is_null);
    if touched && unset && requests.is_some_and(|requests| !nothing(requests)) {
        out.push(
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to \
             prevent possible logging of tokens in volume attributes"
                .into(),
        );
    }
}

fn node_create(node: At<'_, '_>) {
    let mut seen = std::collections::HashSet::new();
    for driver in node.get("spec").get("drivers").items() {
        let name = driver.get("name");
        driver_name(name);
        let id = driver.get("nodeID");
        if id.is_empty() {
            id.required("");
        }
        if id.text().len() > 256 {
            id.invalid("must be 256 characters or less");
        }
        non_negative(driver.get("allocatable").get("count"));
        if seen.contains(&name.text()) {
            name.check().push(FieldError::duplicate(name.path(), name.text()));
        }
        seen.insert(name.text());
        let mut keys = std::collections::HashSet::new();
        for key in driver.get("topologyKeys").items() {
            let text = key.text();
            if text.is_empty() {
                driver.required("");
            }
            if keys.contains(&text) {
                driver.check().push(FieldError::duplicate(driver.path(), text));
            }
            keys.insert(text);
            for message in names::is_qualified_name(text) {
                driver.invalid_as(text, message);
            }
        }
    }
}

fn node_update(node: At<'_, '_>, old: At<'_, '_>) {
    node_create(node);
    let drivers = node.get("spec").get("drivers");
    for before in old.get("spec").get("drivers").items() {
        for driver in drivers.items().filter(|one| one.get("name").text() == before.get("name").text()) {
            let kept = ["nodeID", "topologyKeys"];
            if !kept.iter().all(|name| unchanged(driver.get(name), before.get(name))) {
                let mut shown = crate::rules::helpers::cluster_util::go_struct(
                    driver,
                    &[("Name", "name"), ("NodeID", "nodeID"), ("TopologyKeys", "topologyKeys")],
                );
                if let Some(shown) = shown.as_object_mut() {
                    shown.insert("Allocatable".into(), Value::Null);
                }
                drivers.invalid_as(shown, "field is immutable");
            }
        }
    }
}

/// What a node says of the health of its storage is not taken yet.
fn prepare_node_status(node: &mut Value, old: &Value) {
    status_alone(node, old);
    if let Some(status) = node.get_mut("status").and_then(Value::as_object_mut) {
        status.shift_remove("storageHealth");
    }
}

fn capacity_create(capacity: At<'_, '_>) {
    capacity_written(capacity, false);
}

fn capacity_written(capacity: At<'_, '_>, any_value: bool) {
    validate_label_selector(capacity.get("nodeTopology"), any_value);
    let class = capacity.get("storageClassName");
    invalid_each(class, names::is_dns1123_subdomain(class.text()));
    non_negative_quantity(capacity.get("capacity"));
}

fn capacity_update(capacity: At<'_, '_>, old: At<'_, '_>) {
    let any_value = has_invalid_label_value(old.get("nodeTopology"));
    capacity_written(capacity, any_value);
    if !unchanged(capacity.get("nodeTopology"), old.get("nodeTopology")) {
        capacity.get("nodeTopology").invalid("field is immutable");
    }
    if !unchanged(capacity.get("storageClassName"), old.get("storageClassName")) {
        capacity.get("storageClassName").invalid_text("field is immutable");
    }
}

fn capacity_warnings(capacity: &Value, _: Option<&Value>, out: &mut Vec<String>) {
    let Some(topology) = capacity.get("nodeTopology") else { return };
    let expressions = topology.get("matchExpressions").and_then(Value::as_array);
    for (i, expression) in expressions.into_iter().flatten().enumerate() {
        let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
        if let Some(message) = deprecated_node_label(key) {
            out.push(format!("nodeTopology.matchExpressions[{i}].key: {key} is {message}"));
        }
    }
    for key in topology.get("matchLabels").and_then(Value::as_object).into_iter().flat_map(|map| map.keys()) {
        if let Some(message) = deprecated_node_label(key) {
            out.push(format!("nodeTopology.matchLabels.{key}: {message}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::cluster_util::testing::*;

    #[test]
    fn a_driver_has_every_switch_set() {
        let mut driver = json!({"spec": {}});
        default_driver(&mut driver);
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
            on_update(&DRIVER, new, json!({"spec": {}})),
            ["spec.attachedRequired: Invalid value: false: field is immutable"]
        );
        let wrong = json!({"spec": {"fsGroupPolicy": "Huh", "volumeLifecycleModes": ["Eternal"]}});
        assert_eq!(
            on_create(&DRIVER, wrong),
            [
                "spec.fsGroupPolicy: Unsupported value: \"Huh\": supported values: \"File\", \"None\", \"ReadWriteOnceWithFSType\"",
                "spec.volumeLifecycleModes: Unsupported value: \"Eternal\": supported values: \"Persistent\", \"Ephemeral\"",
            ]
        );
    }

    #[test]
    fn a_node_lists_drivers_with_ids() {
        let node =
            json!({"spec": {"drivers": [{}, {"name": "x", "nodeID": "n", "allocatable": {"count": -1}}]}});
        assert_eq!(
            on_create(&NODE, node),
            [
                "spec.drivers[0].name: Required value",
                "spec.drivers[0].nodeID: Required value",
                "spec.drivers[1].allocatable.count: Invalid value: -1: must be greater than or equal to 0",
            ]
        );
    }

    #[test]
    fn a_capacity_belongs_to_its_class() {
        let capacity = |class: &str| json!({"storageClassName": class, "capacity": "10Gi"});
        assert_eq!(
            on_update(&CAPACITY, capacity("b"), capacity("a")),
            ["storageClassName: Invalid value: \"b\": field is immutable"]
        );
        let wrong = on_create(&CAPACITY, json!({"storageClassName": "a", "capacity": "-1"}));
        assert_eq!(wrong, ["capacity: Invalid value: \"-1\": must be greater than or equal to 0"]);
    }
}
