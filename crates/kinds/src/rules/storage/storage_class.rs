//! `StorageClass`.

use crate::rules::{
    Rules,
    helpers::{
        equality::unchanged, errors::invalid_each, immutable::report_immutable, json::default,
        node_labels::deprecated_node_label, text::required,
    },
};
use k1s_object::{
    field::{At, FieldError, MAX_ERRORS},
    names,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const MAX_PARAMETERS: usize = 512;

const MAX_PARAMETERS_SIZE: usize = 256 * 1024;

pub(super) static RULES: Rules =
    Rules { defaults, validate, validate_update, warnings, delete_answers_object: true, ..Rules::PLAIN };

fn defaults(class: &mut Value) {
    default(class, "reclaimPolicy", "Delete");
    default(class, "volumeBindingMode", "Immediate");
}

fn validate(class: At<'_, '_>) {
    validate_fields(class);
    required(class.get("provisioner"));
}

fn validate_update(class: At<'_, '_>, old: At<'_, '_>) {
    validate_fields(class);
    let changed = |name: &'static str| !unchanged(class.get(name), old.get(name));
    if changed("provisioner") {
        required(class.get("provisioner"));
    }
    for name in ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"] {
        if changed(name) {
            report_immutable(class.get(name));
        }
    }
}

fn validate_fields(class: At<'_, '_>) {
    provisioner(class.get("provisioner"));
    parameters(class.get("parameters"));
    let policy = class.get("reclaimPolicy");
    if !policy.is_empty() && !matches!(policy.text(), "Delete" | "Retain") {
        policy.not_supported(&["Delete", "Retain"]);
    }
    let mode = class.get("volumeBindingMode");
    if !mode.is_set() {
        mode.required("");
    } else if !matches!(mode.text(), "Immediate" | "WaitForFirstConsumer") {
        mode.not_supported(&["Immediate", "WaitForFirstConsumer"]);
    }
    topologies(class.get("allowedTopologies"));
}

pub(super) fn provisioner(at: At<'_, '_>) {
    if at.is_empty() {
        return;
    }
    let name = at.text().to_lowercase();
    for message in names::is_qualified_name(&name) {
        at.invalid_as(name.as_str(), message);
    }
}

pub(super) fn parameters(at: At<'_, '_>) {
    if at.len() > MAX_PARAMETERS {
        return at.too_long(MAX_PARAMETERS);
    }
    let mut size = 0;
    for (key, value) in at.entries() {
        if key.is_empty() {
            at.invalid_as("", "field can not be empty.");
        }
        size += key.len() + value.text().len();
    }
    if size > MAX_PARAMETERS_SIZE {
        at.too_long(MAX_PARAMETERS_SIZE);
    }
}

fn topologies(at: At<'_, '_>) {
    let mut seen: BTreeMap<BTreeMap<&str, BTreeSet<&str>>, usize> = BTreeMap::new();
    for term in at.items() {
        let expressions = term.get("matchLabelExpressions");
        let mut terms: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for expression in expressions.items() {
            let mut values = BTreeSet::new();
            if expression.get("values").is_empty() {
                expression.get("values").required("");
            }
            for value in expression.get("values").items() {
                if !values.insert(value.text()) {
                    value.duplicate();
                }
            }
            let key = expression.get("key");
            invalid_each(key, names::is_qualified_name(key.text()));
            if terms.insert(key.text(), values).is_some() {
                key.duplicate();
            }
        }
        // One error for each equal term before this one.
        let before = seen.entry(terms).or_default();
        let reported = (*before).min(MAX_ERRORS);
        for _ in 0..reported {
            expressions.check().push_with(|| FieldError::duplicate(expressions.path(), ""));
        }
        if *before > reported {
            expressions.check().push(FieldError::omitted(*before - reported));
        }
        *before += 1;
    }
}

fn warnings(class: &Value, _: Option<&Value>, out: &mut Vec<String>) {
    let list =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    for (i, term) in list(class, "allowedTopologies").iter().enumerate() {
        for (j, expression) in list(term, "matchLabelExpressions").iter().enumerate() {
            let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
            if let Some(message) = deprecated_node_label(key) {
                out.push(format!("allowedTopologies[{i}].matchLabelExpressions[{j}].key: {message}"));
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
    fn a_class_deletes_volumes_and_binds_at_once_by_default() {
        let mut class = json!({"provisioner": "example.com/p"});
        defaults(&mut class);
        assert_eq!(class["reclaimPolicy"], "Delete");
        assert_eq!(class["volumeBindingMode"], "Immediate");
        assert_eq!(on_create(&RULES, json!({})), ["provisioner: Required value"]);
        assert_eq!(
            on_create(
                &RULES,
                json!({"provisioner": "p", "reclaimPolicy": "Recycle", "volumeBindingMode": "Later", "parameters": {"": "x"}})
            ),
            [
                "parameters: Invalid value: \"\": field can not be empty.",
                "reclaimPolicy: Unsupported value: \"Recycle\": supported values: \"Delete\", \"Retain\"",
                "volumeBindingMode: Unsupported value: \"Later\": supported values: \"Immediate\", \"WaitForFirstConsumer\"",
            ]
        );
    }

    #[test]
    fn a_class_keeps_what_it_does() {
        let old = json!({"provisioner": "example.com/p"});
        let new = json!({"provisioner": "example.com/q", "parameters": {"a": "b"}, "reclaimPolicy": "Retain",
            "allowVolumeExpansion": true});
        assert_eq!(
            on_update(&RULES, old, new),
            [
                "provisioner: Invalid value: null: field is immutable",
                "parameters: Invalid value: null: field is immutable",
                "reclaimPolicy: Invalid value: null: field is immutable",
            ]
        );
    }
}
