//! `IngressClass`.

use crate::rules::{
    Rules,
    helpers::{
        errors::invalid_each,
        immutable::immutable_text,
        text::{dns_label, dns_subdomain},
    },
};
use k1s_object::{At, names};
use serde_json::Value;

pub(super) static RULES: Rules = Rules {
    defaults,
    validate,
    validate_update: |new, old| {
        immutable_text(new.get("spec").get("controller"), old.get("spec").get("controller"));
        validate(new);
    },
    generation: true,
    ..Rules::PLAIN
};

fn defaults(class: &mut Value) {
    if let Some(parameters) = class.pointer_mut("/spec/parameters").and_then(Value::as_object_mut)
        && !parameters.contains_key("scope")
    {
        parameters.insert("scope".into(), "Cluster".into());
    }
}

fn validate(class: At<'_, '_>) {
    let spec = class.get("spec");
    let controller = spec.get("controller");
    if controller.text().len() > 250 {
        controller.too_long(250);
    }
    names::is_domain_prefixed_path(controller);
    let parameters = spec.get("parameters");
    if !parameters.is_set() {
        return;
    }
    if parameters.get("apiGroup").is_set() {
        dns_subdomain(parameters.get("apiGroup"));
    }
    for field in ["kind", "name"] {
        let field = parameters.get(field);
        if !field.text().is_empty() {
            invalid_each(field, names::is_path_segment_name(field.text()));
        }
    }
    let (scope, namespace) = (parameters.get("scope"), parameters.get("namespace"));
    match scope.text() {
        "Namespace" if !namespace.is_set() => namespace.required("`parameters.scope` is set to 'Namespace'"),
        "Namespace" => dns_label(namespace),
        "Cluster" if namespace.is_set() => namespace.forbidden("`parameters.scope` is set to 'Cluster'"),
        "Cluster" => {}
        _ => scope.not_supported(&["Cluster", "Namespace"]),
    }
    // Declarative validation is reported last.
    for field in ["kind", "name"] {
        if parameters.get(field).text().is_empty() {
            parameters.get(field).required("");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing;
    use serde_json::json;

    #[test]
    fn a_class_has_a_controller_that_stays() {
        assert_eq!(
            testing::on_create(
                &RULES,
                json!({"spec": {"controller": "no-slash", "parameters": {"name": "x", "scope": "Namespace"}}})
            ),
            [
                "spec.controller: Invalid value: \"no-slash\": must be a domain-prefixed path (such as \
                 \"acme.io/foo\")",
                "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
                "spec.parameters.kind: Required value",
            ]
        );
        assert_eq!(testing::on_create(&RULES, json!({})), ["spec.controller: Required value"]);
        assert_eq!(
            testing::on_update(
                &RULES,
                json!({"spec": {"controller": "example.com/a"}}),
                json!({"spec": {"controller": "example.com/b"}})
            ),
            ["spec.controller: Invalid value: \"example.com/b\": field is immutable"]
        );
    }
}
