//! `RuntimeClass`.

use k1s_object::{field::At, meta::validate_labels, names};
use serde_json::Value;

use crate::rules::{
    Rules,
    core::pod::tolerations as pod_tolerations,
    helpers::{
        equality::unchanged, errors::invalid_each, immutable::report_immutable,
        node_labels::deprecated_node_label, numbers::non_negative_quantity,
        resource_names::container_resource_name,
    },
};

pub(super) static RULES: Rules = Rules {
    validate: create,
    validate_update: update,
    warnings,
    create_on_update: true,
    unconditional_update: false,
    ..Rules::PLAIN
};

fn create(class: At<'_, '_>) {
    written(class);
    handler(class.get("handler"));
}

fn update(class: At<'_, '_>, old: At<'_, '_>) {
    written(class);
    if !unchanged(class.get("handler"), old.get("handler")) {
        report_immutable(class.get("handler"));
        if class.get("handler").is_empty() {
            class.get("handler").required("");
        }
    }
}

fn handler(at: At<'_, '_>) {
    if at.is_empty() {
        at.required("");
    } else {
        invalid_each(at, names::is_dns1123_label(at.text()));
    }
}

fn written(class: At<'_, '_>) {
    let overhead = class.get("overhead");
    let limits = overhead.get("limits").with(overhead.get("podFixed").value());
    for (key, quantity) in limits.entries() {
        container_resource_name(key, quantity);
        non_negative_quantity(quantity);
    }
    let scheduling = class.get("scheduling");
    validate_labels(scheduling.get("nodeSelector"));
    tolerations(scheduling.get("tolerations"));
}

fn tolerations(at: At<'_, '_>) {
    pod_tolerations(at);
    let mut seen = std::collections::HashSet::new();
    for toleration in at.items() {
        let key = ["key", "operator", "value", "effect"].map(|name| toleration.get(name).text());
        if seen.contains(&key) {
            toleration.duplicate();
        }
        seen.insert(key);
    }
}

fn warnings(class: &Value, _: Option<&Value>, out: &mut Vec<String>) {
    let selector = class.pointer("/scheduling/nodeSelector").and_then(Value::as_object);
    for key in selector.into_iter().flat_map(|map| map.keys()) {
        if let Some(message) = deprecated_node_label(key) {
            out.push(format!("scheduling.nodeSelector: {message}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::testing::*;

    #[test]
    fn a_runtime_class_names_a_handler_and_keeps_it() {
        assert_eq!(on_create(&RULES, json!({})), ["handler: Required value"]);
        assert_eq!(on_create(&RULES, json!({"handler": "UP/per"})).len(), 1);
        assert_eq!(
            on_update(&RULES, json!({"handler": "a"}), json!({"handler": "b"})),
            ["handler: Invalid value: null: field is immutable"]
        );
    }

    #[test]
    fn overhead_is_of_known_resources() {
        let class = json!({"handler": "a", "overhead": {"podFixed": {"memory": "-1", "apples": "1"}}});
        assert_eq!(
            on_create(&RULES, class),
            [
                "overhead.limits[memory]: Invalid value: \"-1\": must be greater than or equal to 0",
                "overhead.limits[apples]: Invalid value: \"apples\": must be a standard resource type or fully qualified",
                "overhead.limits[apples]: Invalid value: \"apples\": must be a standard resource for containers",
            ]
        );
    }
}
