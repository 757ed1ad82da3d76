//! Nodes: `RuntimeClass`.

use k1s_object::{
    field::{At, FieldError},
    meta::validate_labels,
    names,
};
use serde_json::Value;

use crate::rules::Rules;
use crate::rules::{
    autoscaling::horizontal_pod_autoscaler::container_resource_name,
    helpers::cluster_util::{
        deprecated_node_label, immutable, invalid_each, non_negative_quantity, unchanged,
    },
};

/// The rules of this kind.
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
        immutable(class.get("handler"));
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
        let name = Value::from(key);
        container_resource_name_at(quantity, &name);
        non_negative_quantity(quantity);
    }
    let scheduling = class.get("scheduling");
    validate_labels(scheduling.get("nodeSelector"));
    tolerations(scheduling.get("tolerations"));
}

/// The errors show the resource's name at the place of its quantity.
fn container_resource_name_at(at: At<'_, '_>, name: &Value) {
    let check = k1s_object::field::Check::new();
    container_resource_name(check.root(name));
    for error in check.take() {
        at.check().push(FieldError { field: at.path(), ..error });
    }
}

fn tolerations(at: At<'_, '_>) {
    for toleration in at.items() {
        let (key, operator) = (toleration.get("key"), toleration.get("operator"));
        let (value, effect) = (toleration.get("value"), toleration.get("effect"));
        if !key.is_empty() {
            invalid_each(key, names::is_qualified_name(key.text()));
        } else if operator.text() != "Exists" {
            operator.invalid_text(
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            );
        }
        if toleration.get("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            effect.invalid_text("effect must be 'NoExecute' when `tolerationSeconds` is set");
        }
        match operator.text() {
            "Equal" | "" => {
                let wrong = names::is_valid_label_value(value.text());
                if !wrong.is_empty() {
                    operator.invalid_as(value.text(), wrong.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                operator.invalid_as(value.text(), "value must be empty when `operator` is 'Exists'");
            }
            "Exists" => {}
            "Lt" | "Gt" => operator.not_supported(&["Equal", "Exists", "Lt", "Gt"]),
            _ => operator.not_supported(&["Equal", "Exists"]),
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if !effect.is_empty() && !effects.contains(&effect.text()) {
            effect.not_supported(&effects);
        }
    }
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
    use crate::rules::helpers::cluster_util::testing::*;

    #[test]
    fn a_runtime_class_names_a_handler_and_keeps_it() {
        assert_eq!(on_create(&RULES, json!({})), ["handler: Required value"]);
        assert_eq!(on_create(&RULES, json!({"handler": "UP/per"})).len(), 1);
        assert_eq!(
            on_update(&RULES, json!({"handler": "b"}), json!({"handler": "a"})),
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
