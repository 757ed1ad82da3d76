//! `CSIStorageCapacity`.

use crate::rules::{
    Rules,
    helpers::{
        equality::unchanged, errors::invalid_each, labels::has_invalid_label_value,
        node_labels::deprecated_node_label, numbers::non_negative_quantity,
    },
};
use k1s_object::{field::At, names, selector::validate_label_selector};
use serde_json::Value;

pub(super) static RULES: Rules =
    Rules { validate, validate_update, warnings, unconditional_update: false, ..Rules::PLAIN };

fn validate(capacity: At<'_, '_>) {
    validate_fields(capacity, false);
}

fn validate_fields(capacity: At<'_, '_>, any_value: bool) {
    validate_label_selector(capacity.get("nodeTopology"), any_value);
    let class = capacity.get("storageClassName");
    invalid_each(class, names::is_dns1123_subdomain(class.text()));
    non_negative_quantity(capacity.get("capacity"));
}

fn validate_update(capacity: At<'_, '_>, old: At<'_, '_>) {
    let any_value = has_invalid_label_value(old.get("nodeTopology"));
    validate_fields(capacity, any_value);
    if !unchanged(capacity.get("nodeTopology"), old.get("nodeTopology")) {
        capacity.get("nodeTopology").invalid("field is immutable");
    }
    if !unchanged(capacity.get("storageClassName"), old.get("storageClassName")) {
        capacity.get("storageClassName").invalid_text("field is immutable");
    }
}

fn warnings(capacity: &Value, _: Option<&Value>, out: &mut Vec<String>) {
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
    use super::*;
    use crate::rules::helpers::testing::*;
    use serde_json::json;

    #[test]
    fn a_capacity_belongs_to_its_class() {
        let capacity = |class: &str| json!({"storageClassName": class, "capacity": "10Gi"});
        assert_eq!(
            on_update(&RULES, capacity("a"), capacity("b")),
            ["storageClassName: Invalid value: \"b\": field is immutable"]
        );
        let wrong = on_create(&RULES, json!({"storageClassName": "a", "capacity": "-1"}));
        assert_eq!(wrong, ["capacity: Invalid value: \"-1\": must be greater than or equal to 0"]);
    }
}
