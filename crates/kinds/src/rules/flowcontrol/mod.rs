//! `flowcontrol.apiserver.k8s.io`.

mod flow_schema;
mod priority_level_configuration;

use crate::rules::{
    Rules,
    helpers::{
        equality::same,
        json::{keep, structure},
    },
    only_status,
};
use k1s_object::field::At;
use serde_json::Value;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "FlowSchema" => &flow_schema::RULES,
        "PriorityLevelConfiguration" => &priority_level_configuration::RULES,
        _ => return None,
    })
}

/// Restores all metadata.
fn prepare_status(new: &mut Value, old: &Value) {
    only_status(new, old);
    let kept = |name: &str| !matches!(name, "managedFields" | "resourceVersion");
    let (Some(meta), Some(before)) = (structure(new, "metadata"), old.get("metadata")) else { return };
    let mut names: Vec<String> = before.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect();
    names.extend(meta.as_object().into_iter().flat_map(|map| map.keys().cloned()));
    for name in names.iter().filter(|name| kept(name)) {
        keep(meta, before, name);
    }
}

fn validate_status(object: At<'_, '_>, _: At<'_, '_>) {
    let mut seen = std::collections::HashSet::new();
    for condition in object.get("status").get("conditions").items() {
        let kind = condition.get("type");
        if seen.contains(&kind.text()) {
            kind.duplicate();
        }
        seen.insert(kind.text());
        if kind.is_empty() {
            kind.required("");
        }
    }
}

fn must_be_fixed(object: At<'_, '_>, fixed: Option<Value>, but: &str) {
    let Some(fixed) = fixed else { return };
    let spec = object.get("spec");
    let without = |value: Option<&Value>| {
        let mut value = value.cloned().unwrap_or(Value::Null);
        if let Some(map) = value.as_object_mut().filter(|_| !but.is_empty()) {
            map.shift_remove(but);
        }
        value
    };
    if !same(Some(&without(spec.value())), Some(&without(fixed.get("spec")))) {
        let name = object.get("metadata").get("name").text();
        let exception =
            if but.is_empty() { String::new() } else { format!(" except the 'spec.{but}' field") };
        spec.invalid(format!("spec of '{name}'{exception} must equal the fixed value"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bootstrap, rules::helpers::testing::*};
    use serde_json::json;

    fn level(name: &str, spec: &Value) -> Value {
        json!({"metadata": {"name": name}, "spec": spec})
    }

    #[test]
    fn levels_and_schemas_have_defaults() {
        let mut object = level(
            "a",
            &json!({"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}}),
        );
        (priority_level_configuration::RULES.defaults)(&mut object);
        assert_eq!(
            object["spec"]["limited"],
            json!({"limitResponse": {"type": "Queue", "queuing": {"handSize": 8, "queues": 64, "queueLengthLimit": 50}},
                "nominalConcurrencyShares": 30, "lendablePercent": 0})
        );
        let mut schema = json!({"spec": {}});
        (flow_schema::RULES.defaults)(&mut schema);
        assert_eq!(schema["spec"]["matchingPrecedence"], 1000);
    }

    #[test]
    fn bootstrap_objects_are_valid_and_partly_immutable() {
        for object in bootstrap::flow_schemas() {
            assert_eq!(on_create(&flow_schema::RULES, object), Vec::<String>::new());
        }
        for object in bootstrap::priority_levels() {
            assert_eq!(on_create(&priority_level_configuration::RULES, object), Vec::<String>::new());
        }
        let mut object = bootstrap::mandatory_priority_level("catch-all").unwrap();
        object["spec"]["limited"]["nominalConcurrencyShares"] = 6.into();
        assert_eq!(on_create(&priority_level_configuration::RULES, object).len(), 1);
    }
}
