//! `Scale`, and the scale subresource of Deployment, `ReplicaSet`, `StatefulSet` and `ReplicationController`.

use k1s_object::At;
use serde_json::{Map, Value, json};

use crate::rules::{
    Rules,
    helpers::{
        json::{child, number_at, object},
        labels,
        numbers::non_negative,
    },
};

/// The rules of `Scale`, the body of a PUT or PATCH of `/scale`.
pub(super) static RULES: Rules =
    Rules { validate, validate_update: |scale, _| validate(scale), ..Rules::PLAIN };

fn validate(scale: At<'_, '_>) {
    non_negative(scale.get("spec").get("replicas"));
}

/// The `autoscaling/v1` Scale of an object; None for kinds without the subresource.
pub fn scale_of(kind: &str, value: &Value) -> Option<Value> {
    let selector = match kind {
        "Deployment" | "ReplicaSet" | "StatefulSet" => labels::text(value.pointer("/spec/selector")),
        "ReplicationController" => {
            labels::map_text(value.pointer("/spec/selector").and_then(Value::as_object))
        }
        _ => return None,
    };
    let mut metadata = Map::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(field) = value.pointer("/metadata").and_then(|metadata| metadata.get(key)) {
            metadata.insert(key.into(), field.clone());
        }
    }
    let mut spec = Map::new();
    let replicas = number_at(value, &["spec", "replicas"]);
    if replicas != 0 {
        spec.insert("replicas".into(), replicas.into());
    }
    let mut status = json!({"replicas": number_at(value, &["status", "replicas"])});
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    Some(json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status,
    }))
}

/// Sets the replicas of a Scale that [`validate_scale`] accepted.
pub fn set_scale(value: &mut Value, scale: &Value) {
    let replicas = number_at(scale, &["spec", "replicas"]);
    child(object(value), "spec").insert("replicas".into(), replicas.into());
}

/// The errors in a Scale.
pub fn validate_scale(scale: &Value) -> Vec<k1s_object::FieldError> {
    let check = k1s_object::Check::new();
    validate(check.root(scale));
    check.take()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{scale_of, set_scale, validate_scale};

    #[test]
    fn a_scale_shows_replicas_and_the_selector_as_text() {
        let mut deployment = json!({
            "metadata": {"name": "d", "labels": {"x": "y"}},
            "spec": {
                "replicas": 1,
                "selector": {
                    "matchLabels": {"app": "a"},
                    "matchExpressions": [{"key": "tier", "operator": "In", "values": ["x", "b"]}],
                },
            },
        });
        set_scale(&mut deployment, &json!({"spec": {"replicas": 4}}));
        assert_eq!(
            scale_of("Deployment", &deployment),
            Some(json!({
                "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "d"},
                "spec": {"replicas": 4}, "status": {"replicas": 0, "selector": "app=a,tier in (b,x)"},
            }))
        );
        assert_eq!(scale_of("DaemonSet", &deployment), None);
        let wrong = validate_scale(&json!({"spec": {"replicas": -1}}));
        assert_eq!(
            wrong[0].to_string(),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0"
        );
    }

    #[test]
    fn a_scale_is_not_negative() {
        let check = k1s_object::Check::new();
        let scale = json!({"spec": {"replicas": -1}});
        (super::RULES.validate)(check.root(&scale));
        let errors: Vec<String> = check.take().iter().map(ToString::to_string).collect();
        assert_eq!(errors, ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]);
    }
}
