//! Warnings about objects that can be stored but have no effect yet.

use serde_json::Value;

use crate::context::Cx;

/// Warns about features of the object that the server does not implement.
pub(crate) fn warn(cx: &Cx, object: &Value) {
    let (group, kind) = (&*cx.resource.group, &*cx.resource.kind);
    match (group, kind) {
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => {
            cx.warn(format!("admission webhooks are not called by this server: the {kind} has no effect"));
        }
        ("admissionregistration.k8s.io", _) => {
            cx.warn(format!("admission policies are not evaluated by this server: the {kind} has no effect"));
        }
        ("rbac.authorization.k8s.io", _) => {
            cx.warn(format!("RBAC is not enforced by this server: the {kind} has no effect"));
        }
        ("apiregistration.k8s.io", "APIService") if object["spec"]["service"].is_object() => {
            cx.warn(
                "API aggregation is not supported by this server: requests are not forwarded to the service",
            );
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(cx, &object["spec"]),
        _ => {}
    }
}

fn definition(cx: &Cx, spec: &Value) {
    let versions = spec["versions"].as_array().into_iter().flatten();
    if versions.map(|version| &version["schema"]).any(has_rules) {
        cx.warn("validation rules (x-kubernetes-validations) are not evaluated by this server: they have no effect");
    }
    if spec["conversion"]["strategy"] == "Webhook" {
        cx.warn(
            "conversion webhooks are not called by this server: objects can only be used in the version they are stored in",
        );
    }
}

/// Whether a schema has rules anywhere.
fn has_rules(schema: &Value) -> bool {
    let mut left = vec![schema];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(map) => {
                let rules = map.get("x-kubernetes-validations").and_then(Value::as_array);
                if rules.is_some_and(|rules| !rules.is_empty()) {
                    return true;
                }
                left.extend(map.values());
            }
            Value::Array(list) => left.extend(list),
            _ => {}
        }
    }
    false
}
