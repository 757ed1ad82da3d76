//! `CSINode`.

use crate::rules::{
    Rules, drop_status,
    helpers::{equality::unchanged, metadata::status_alone, numbers::non_negative, text::driver_name},
    keep_status,
};
use k1s_object::{
    field::{At, FieldError},
    names,
};
use serde_json::Value;

pub(super) static RULES: Rules = Rules {
    prepare_create: drop_status,
    prepare_update: keep_status,
    prepare_status,
    validate,
    validate_update,
    unconditional_update: false,
    delete_answers_object: true,
    ..Rules::PLAIN
};

/// Drops the storage health, the field of a disabled feature.
fn prepare_status(node: &mut Value, old: &Value) {
    status_alone(node, old);
    if let Some(status) = node.get_mut("status").and_then(Value::as_object_mut) {
        status.shift_remove("storageHealth");
    }
}

fn validate(node: At<'_, '_>) {
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

fn validate_update(node: At<'_, '_>, old: At<'_, '_>) {
    validate(node);
    let drivers = node.get("spec").get("drivers");
    for before in old.get("spec").get("drivers").items() {
        for driver in drivers.items().filter(|one| one.get("name").text() == before.get("name").text()) {
            let kept = ["nodeID", "topologyKeys"];
            if !kept.iter().all(|name| unchanged(driver.get(name), before.get(name))) {
                let mut shown = crate::rules::helpers::go_values::go_pointers(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing::*;
    use serde_json::json;

    #[test]
    fn a_node_lists_drivers_with_ids() {
        let node =
            json!({"spec": {"drivers": [{}, {"name": "x", "nodeID": "n", "allocatable": {"count": -1}}]}});
        assert_eq!(
            on_create(&RULES, node),
            [
                "spec.drivers[0].name: Required value",
                "spec.drivers[0].nodeID: Required value",
                "spec.drivers[1].allocatable.count: Invalid value: -1: must be greater than or equal to 0",
            ]
        );
    }
}
