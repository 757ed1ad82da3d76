//! `HorizontalPodAutoscaler`, served as autoscaling/v1 and autoscaling/v2.
//!
//! Validation is that of v2. What v1 has no field for is in annotations of the v1 object ([`v1_to_v2`],
//! [`v2_to_v1`]).

mod convert;
mod metrics;
mod validation;

pub use convert::{v1_to_v2, v2_to_v1};
use k1s_object::field::{At, Check};
use serde_json::{Map, Value, json};

use crate::rules::{
    Rules,
    helpers::json::{default, pointer, structure},
};

/// The rules of autoscaling/v2.
pub(super) static V2: Rules = Rules {
    defaults: default_v2,
    validate: validation::create,
    validate_update: validation::update,
    validate_status: validation::status,
    ..Rules::WITH_STATUS
};

/// The rules of autoscaling/v1.
pub(super) static V1: Rules = Rules {
    defaults: default_v1,
    validate: v1_create,
    validate_update: v1_update,
    validate_status: v1_status,
    ..Rules::WITH_STATUS
};

/// The default metrics.
fn default_metrics() -> Value {
    json!([{
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }])
}

fn default_v1(autoscaler: &mut Value) {
    if let Some(spec) = structure(autoscaler, "spec") {
        default(spec, "minReplicas", 1);
    }
}

fn default_v2(autoscaler: &mut Value) {
    convert::drop_round_trip(autoscaler);
    let Some(spec) = structure(autoscaler, "spec") else { return };
    default(spec, "minReplicas", 1);
    if spec.get("metrics").is_none_or(crate::rules::helpers::json::is_empty)
        && let Some(spec) = spec.as_object_mut()
    {
        spec.insert("metrics".into(), default_metrics());
    }
    if let Some(behavior) = pointer(spec, "behavior") {
        default_rules(
            behavior,
            "scaleUp",
            json!({"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [
                {"type": "Pods", "value": 4, "periodSeconds": 15},
                {"type": "Percent", "value": 100, "periodSeconds": 15},
            ]}),
        );
        default_rules(
            behavior,
            "scaleDown",
            json!({"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}),
        );
    }
}

fn default_rules(behavior: &mut Value, name: &str, defaults: Value) {
    let Some(rules) = structure(behavior, name).and_then(Value::as_object_mut) else { return };
    let Value::Object(defaults) = defaults else { return };
    let given: Map<String, Value> = std::mem::take(rules);
    *rules = defaults;
    rules.extend(given.into_iter().filter(|(_, value)| !value.is_null()));
}

/// Validates a v1 object by converting it to v2.
fn as_v2(new: At<'_, '_>, old: Option<At<'_, '_>>, look: fn(At<'_, '_>, Option<At<'_, '_>>)) {
    let Some(value) = new.value() else { return };
    let converted = v1_to_v2(value);
    let before = old.and_then(At::value).map(v1_to_v2);
    let (check, check_before) = (Check::new(), Check::new());
    look(check.root(&converted), before.as_ref().map(|before| check_before.root(before)));
    for error in check.take() {
        new.check().push(error);
    }
}

fn v1_create(new: At<'_, '_>) {
    as_v2(new, None, |new, _| validation::create(new));
}

fn v1_update(new: At<'_, '_>, old: At<'_, '_>) {
    as_v2(new, Some(old), |new, old| match old {
        Some(old) => validation::update(new, old),
        None => validation::create(new),
    });
}

fn v1_status(new: At<'_, '_>, old: At<'_, '_>) {
    as_v2(new, Some(old), |new, _| validation::status(new, new));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing::*;

    fn hpa(mut spec: Value) -> Value {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
        default(&mut spec, "scaleTargetRef", target);
        json!({"metadata": {"name": "h"}, "spec": spec})
    }

    #[test]
    fn an_autoscaler_follows_the_processor_by_default() {
        let mut object = hpa(json!({"maxReplicas": 5}));
        default_v2(&mut object);
        assert_eq!(object["spec"]["minReplicas"], 1);
        assert_eq!(object["spec"]["metrics"], default_metrics());
        assert_eq!(object["spec"].get("behavior"), None);
    }

    #[test]
    fn behavior_is_filled_in_around_what_is_given() {
        let mut object =
            hpa(json!({"maxReplicas": 5, "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}}));
        default_v2(&mut object);
        let behavior = &object["spec"]["behavior"];
        assert_eq!(behavior["scaleUp"]["policies"][1]["value"], 100);
        assert_eq!(behavior["scaleDown"]["stabilizationWindowSeconds"], 60);
        assert_eq!(behavior["scaleDown"]["selectPolicy"], "Max");
    }

    #[test]
    fn replicas_stay_within_bounds_in_both_versions() {
        let wrong = "spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`";
        let spec = json!({"minReplicas": 9, "maxReplicas": 5});
        assert_eq!(on_create(&V2, hpa(spec.clone())), [wrong]);
        assert_eq!(on_create(&V1, hpa(spec)), [wrong]);
        assert_eq!(
            on_create(&V2, hpa(json!({"minReplicas": -1}))),
            [
                "spec.minReplicas: Invalid value: -1: must be greater than or equal to 0",
                "spec.maxReplicas: Required value",
            ]
        );
    }

    #[test]
    fn a_metric_says_where_it_comes_from_and_what_to_aim_for() {
        let metrics = json!([{"type": "Pods", "pods": {"metric": {}, "target": {"type": "Value"}}}, {"type": "Object"}]);
        assert_eq!(
            on_create(&V2, hpa(json!({"maxReplicas": 2, "metrics": metrics}))),
            [
                "spec.metrics[0].pods.metric.name: Required value: must specify a metric name",
                "spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue",
                "spec.metrics[1].object: Required value: must populate information for the given metric source",
            ]
        );
    }

    #[test]
    fn annotations_of_v1_mean_nothing_in_v2() {
        let mut object = hpa(json!({"maxReplicas": 2}));
        object["metadata"]["annotations"] =
            json!({"autoscaling.alpha.kubernetes.io/behavior": "{}", "a": "b"});
        default_v2(&mut object);
        assert_eq!(object["metadata"]["annotations"], json!({"a": "b"}));
    }
}
