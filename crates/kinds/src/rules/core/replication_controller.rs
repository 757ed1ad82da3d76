//! `ReplicationController`.

use k1s_object::At;
use serde_json::Value;

use crate::rules::{
    FieldLabelError, Rules, SelectableField, apps,
    core::pod,
    helpers::{
        equality::same_workload_field, go_values::sorted, json::number_at, labels, numbers::non_negative,
    },
};

pub(super) static RULES: Rules = Rules {
    defaults: pod::defaults::replication_controller,
    validate,
    validate_update: |new, _| validate(new),
    validate_status: apps::replica_set::validate_status,
    warnings,
    orphans_by_default: true,
    fields: &[SelectableField {
        path: "status.replicas",
        read: |controller| number_at(controller, &["status", "replicas"]).to_string(),
    }],
    field_error: FieldLabelError::NotSupported,
    ..Rules::WITH_STATUS
};

fn warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_none() {
        pod::warnings::name(new, "Pod names and hostnames", out);
    }
    if old.is_none_or(|old| !same_workload_field(new, old, "spec")) {
        // On update Kubernetes warns about the old template.
        pod::warnings::template("spec.template", old.unwrap_or(new).pointer("/spec/template"), out);
    }
}

fn validate(controller: At<'_, '_>) {
    let spec = controller.get("spec");
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    if selector.is_empty() {
        selector.required("");
    }
    if template.is_set() {
        let labels = template.get("metadata").get("labels");
        if !selector.is_empty() && !labels::map_matches(selector.value(), labels.value()) {
            labels.invalid_as(
                labels.value().map_or(Value::Null, sorted),
                "`selector` does not match template `labels`",
            );
        }
        pod::spec::template(template);
        pod::spec::always_restarts(template, "ReplicationController");
    } else {
        template.required("");
    }
    // Declarative validation is reported last.
    non_negative(spec.get("replicas"));
    non_negative(spec.get("minReadySeconds"));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::RULES;
    use crate::rules::helpers::testing::{created, on_create};

    fn with_errors(object: Value) -> (Value, Vec<String>) {
        (created(&RULES, object.clone()), on_create(&RULES, object))
    }

    #[test]
    fn a_replication_controller_takes_its_labels_from_the_template() {
        let template = json!({
            "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        let (object, errors) = with_errors(json!({"spec": {"template": template}}));
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!(object["spec"]["selector"], json!({"app": "a"}));
        assert_eq!(object["metadata"]["labels"], json!({"app": "a"}));
        assert_eq!(object["spec"]["replicas"], 1);
        assert_eq!(
            with_errors(json!({"spec": {"replicas": -1}})).1,
            [
                "spec.selector: Required value",
                "spec.template: Required value",
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            ]
        );
    }
}
