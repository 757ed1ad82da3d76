//! Conversion between autoscaling/v1 and autoscaling/v2.
//!
//! autoscaling/v1 has a field for CPU utilization only. The rest of a v2 object is stored in four annotations of
//! the v1 object, so that the conversion is lossless: metrics and conditions in the format of autoscaling/v1,
//! behavior with the names of the Go fields.

use serde_json::{Map, Value};

use super::default_metrics;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const ROUND_TRIP: [&str; 6] = [
    METRICS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
    CURRENT_METRICS,
    CONDITIONS,
];

/// Converts to autoscaling/v2.
pub fn v1_to_v2(v1: &Value) -> Value {
    let mut v2 = v1.clone();
    let Some(object) = v2.as_object_mut() else { return v2 };
    if object.contains_key("apiVersion") {
        object.insert("apiVersion".into(), "autoscaling/v2".into());
    }
    let stored = |name: &str| -> Option<Value> {
        let text = v1.get("metadata")?.get("annotations")?.get(name)?.as_str()?;
        serde_json::from_str(text).ok()
    };
    spec_to_v2(object, stored(METRICS).as_ref(), stored(BEHAVIOR).as_ref());
    status_to_v2(object, stored(CURRENT_METRICS).as_ref(), stored(CONDITIONS).as_ref());
    drop_round_trip(&mut v2);
    v2
}

/// Converts to autoscaling/v1.
pub fn v2_to_v1(v2: &Value) -> Value {
    let mut v1 = v2.clone();
    drop_round_trip(&mut v1);
    let Some(object) = v1.as_object_mut() else { return v1 };
    if object.contains_key("apiVersion") {
        object.insert("apiVersion".into(), "autoscaling/v1".into());
    }
    let mut notes = Vec::new();
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        let metrics = spec.shift_remove("metrics");
        let behavior = spec.shift_remove("behavior");
        let metrics = metrics.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if let Some(percent) = metrics.iter().find_map(cpu_utilization) {
            spec.insert("targetCPUUtilizationPercentage".into(), percent.clone());
        }
        let others: Vec<Value> =
            metrics.iter().filter(|one| cpu_utilization(one).is_none()).map(metric_to_v1).collect();
        if !others.is_empty() {
            notes.push((METRICS, Value::Array(others)));
        }
        if let Some(behavior) = behavior.as_ref().filter(|one| one.is_object()) {
            notes.push((BEHAVIOR, behavior_to_go(behavior)));
        }
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        let current = status.shift_remove("currentMetrics");
        let conditions = status.shift_remove("conditions");
        let current = current.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for metric in current.iter().filter(|one| is_cpu(one)) {
            if let Some(percent) = metric.pointer("/resource/current/averageUtilization") {
                status.insert("currentCPUUtilizationPercentage".into(), percent.clone());
            }
        }
        if !current.is_empty() {
            notes.push((CURRENT_METRICS, current.iter().map(metric_status_to_v1).collect()));
        }
        if let Some(conditions) =
            conditions.as_ref().and_then(Value::as_array).filter(|list| !list.is_empty())
        {
            notes.push((CONDITIONS, conditions.iter().map(condition).collect()));
        }
    }
    for (name, note) in notes {
        annotate(object, name, &note);
    }
    v1
}

fn annotate(object: &mut Map<String, Value>, name: &str, note: &Value) {
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else { return };
    let annotations = metadata.entry("annotations").or_insert(Value::Null);
    if annotations.is_null() {
        *annotations = Value::Object(Map::new());
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(name.into(), note.to_string().into());
    }
}

/// Removes the annotations that hold what v1 has no field for.
pub(super) fn drop_round_trip(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    let before = annotations.len();
    for name in ROUND_TRIP {
        annotations.shift_remove(name);
    }
    if annotations.is_empty() && before > 0 {
        metadata.shift_remove("annotations");
    }
}

fn is_cpu(metric: &Value) -> bool {
    metric.get("type").and_then(Value::as_str) == Some("Resource")
        && metric.pointer("/resource/name").and_then(Value::as_str) == Some("cpu")
}

fn cpu_utilization(metric: &Value) -> Option<&Value> {
    if !is_cpu(metric) {
        return None;
    }
    metric.pointer("/resource/target/averageUtilization").filter(|percent| !percent.is_null())
}

fn spec_to_v2(object: &mut Map<String, Value>, others: Option<&Value>, behavior: Option<&Value>) {
    let spec = object.entry("spec").or_insert_with(|| Value::Object(Map::new()));
    let Some(spec) = spec.as_object_mut() else { return };
    let mut metrics = Vec::new();
    if let Some(Value::Array(others)) = others {
        metrics.extend(others.iter().map(metric_to_v2));
    }
    if let Some(percent) = spec.shift_remove("targetCPUUtilizationPercentage").filter(|one| !one.is_null()) {
        metrics.push(serde_json::json!({
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}},
        }));
    }
    let metrics = if metrics.is_empty() { default_metrics() } else { Value::Array(metrics) };
    spec.insert("metrics".into(), metrics);
    if let Some(behavior) = behavior.and_then(behavior_from_go) {
        spec.insert("behavior".into(), behavior);
    }
}

fn status_to_v2(object: &mut Map<String, Value>, metrics: Option<&Value>, conditions: Option<&Value>) {
    if object.get("status").is_none_or(Value::is_null) && (metrics.is_some() || conditions.is_some()) {
        object.insert("status".into(), Value::Object(Map::new()));
    }
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    let percent = status.shift_remove("currentCPUUtilizationPercentage").filter(|one| !one.is_null());
    if let Some(Value::Array(metrics)) = metrics {
        status.insert("currentMetrics".into(), metrics.iter().map(metric_status_to_v2).collect());
    } else if let Some(percent) = percent {
        let metric = serde_json::json!([{
            "type": "Resource",
            "resource": {"name": "cpu", "current": {"averageUtilization": percent}},
        }]);
        status.insert("currentMetrics".into(), metric);
    }
    if let Some(Value::Array(conditions)) = conditions {
        status.insert("conditions".into(), conditions.iter().map(condition).collect());
    }
}

/// Builds a struct with its fields in the order of Go.
#[derive(Default)]
struct Writer(Map<String, Value>);

impl Writer {
    /// A field that is always written, as `missing` if there is no value.
    fn always(mut self, name: &str, value: Option<&Value>, missing: impl Into<Value>) -> Self {
        let value = value.filter(|value| !value.is_null()).cloned().unwrap_or_else(|| missing.into());
        self.0.insert(name.into(), value);
        self
    }

    /// A field with `omitempty`.
    fn maybe(mut self, name: &str, value: Option<&Value>) -> Self {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            self.0.insert(name.into(), value.clone());
        }
        self
    }

    fn put(mut self, name: &str, value: Value) -> Self {
        self.0.insert(name.into(), value);
        self
    }

    fn done(self) -> Value {
        Value::Object(self.0)
    }
}

fn reference(value: Option<&Value>) -> Value {
    let part = |name: &str| value.and_then(|value| value.get(name));
    let version = part("apiVersion").filter(|text| text.as_str() != Some(""));
    Writer::default()
        .always("kind", part("kind"), "")
        .always("name", part("name"), "")
        .maybe("apiVersion", version)
        .done()
}

/// A label selector as Go encodes it, with sorted labels.
fn selector(value: Option<&Value>) -> Option<Value> {
    let value = value.filter(|value| value.is_object())?;
    let mut out = Map::new();
    if let Some(labels) = value.get("matchLabels").and_then(Value::as_object).filter(|map| !map.is_empty()) {
        let mut labels: Vec<_> = labels.iter().collect();
        labels.sort_by(|a, b| a.0.cmp(b.0));
        let labels = labels.into_iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        out.insert("matchLabels".into(), Value::Object(labels));
    }
    if let Some(requirements) =
        value.get("matchExpressions").and_then(Value::as_array).filter(|one| !one.is_empty())
    {
        let written = requirements.iter().map(|one| {
            let values =
                one.get("values").filter(|values| values.as_array().is_some_and(|list| !list.is_empty()));
            Writer::default()
                .always("key", one.get("key"), "")
                .always("operator", one.get("operator"), "")
                .maybe("values", values)
                .done()
        });
        out.insert("matchExpressions".into(), written.collect());
    }
    Some(Value::Object(out))
}

fn condition(value: &Value) -> Value {
    let text = |name: &str| value.get(name).filter(|text| text.as_str() != Some(""));
    Writer::default()
        .always("type", value.get("type"), "")
        .always("status", value.get("status"), "")
        .always("lastTransitionTime", value.get("lastTransitionTime"), Value::Null)
        .maybe("reason", text("reason"))
        .maybe("message", text("message"))
        .maybe("observedGeneration", value.get("observedGeneration"))
        .done()
}

/// The sources in the order of the fields of both types.
const SOURCES: [&str; 5] = ["object", "pods", "resource", "containerResource", "external"];

fn each_source(metric: &Value, convert: fn(&str, &Value) -> Value) -> Value {
    let mut out = Writer::default().always("type", metric.get("type"), "");
    for name in SOURCES {
        if let Some(source) = metric.get(name).filter(|source| source.is_object()) {
            out = out.put(name, convert(name, source));
        }
    }
    out.done()
}

fn metric_to_v1(metric: &Value) -> Value {
    each_source(metric, |name, source| {
        let target = |part: &str| source.get("target").and_then(|target| target.get(part));
        let metric_name = source.pointer("/metric/name");
        let selector = selector(source.pointer("/metric/selector"));
        let out = Writer::default();
        match name {
            "object" => out
                .put("target", reference(source.get("describedObject")))
                .always("metricName", metric_name, "")
                .always("targetValue", target("value"), "0")
                .maybe("selector", selector.as_ref())
                .maybe("averageValue", target("averageValue")),
            "pods" => out
                .always("metricName", metric_name, "")
                .always("targetAverageValue", target("averageValue"), "0")
                .maybe("selector", selector.as_ref()),
            "external" => out
                .always("metricName", metric_name, "")
                .maybe("metricSelector", selector.as_ref())
                .maybe("targetValue", target("value"))
                .maybe("targetAverageValue", target("averageValue")),
            _ => {
                let out = out
                    .always("name", source.get("name"), "")
                    .maybe("targetAverageUtilization", target("averageUtilization"))
                    .maybe("targetAverageValue", target("averageValue"));
                if name == "resource" { out } else { out.always("container", source.get("container"), "") }
            }
        }
        .done()
    })
}

fn identifier(name: Option<&Value>, selector: Option<&Value>) -> Value {
    Writer::default().always("name", name, "").maybe("selector", selector).done()
}

fn metric_to_v2(metric: &Value) -> Value {
    each_source(metric, |name, source| {
        let part = |name: &str| source.get(name).filter(|part| !part.is_null());
        let target = Writer::default();
        let out = Writer::default();
        match name {
            "object" => {
                let average = part("averageValue");
                let (kind, value) = match average {
                    None => ("Value", Some(part("targetValue").cloned().unwrap_or_else(|| "0".into()))),
                    Some(_) => {
                        let value = part("targetValue").filter(|value| value.as_str() != Some("0"));
                        ("AverageValue", value.cloned())
                    }
                };
                let target = target
                    .put("type", kind.into())
                    .maybe("value", value.as_ref())
                    .maybe("averageValue", average);
                out.put("describedObject", reference(part("target")))
                    .put("target", target.done())
                    .put("metric", identifier(part("metricName"), part("selector")))
            }
            "pods" => {
                let target = target.put("type", "AverageValue".into()).always(
                    "averageValue",
                    part("targetAverageValue"),
                    "0",
                );
                out.put("metric", identifier(part("metricName"), part("selector")))
                    .put("target", target.done())
            }
            "external" => {
                let value = part("targetValue");
                let kind = if value.is_some() { "Value" } else { "AverageValue" };
                let target = target
                    .put("type", kind.into())
                    .maybe("value", value)
                    .maybe("averageValue", part("targetAverageValue"));
                out.put("metric", identifier(part("metricName"), part("metricSelector")))
                    .put("target", target.done())
            }
            _ => {
                let percent = part("targetAverageUtilization");
                let kind = if percent.is_some() { "Utilization" } else { "AverageValue" };
                let target = target
                    .put("type", kind.into())
                    .maybe("averageValue", part("targetAverageValue"))
                    .maybe("averageUtilization", percent);
                let out = out.always("name", part("name"), "").put("target", target.done());
                if name == "resource" { out } else { out.always("container", part("container"), "") }
            }
        }
        .done()
    })
}

fn metric_status_to_v1(metric: &Value) -> Value {
    each_source(metric, |name, source| {
        let current = |part: &str| source.get("current").and_then(|current| current.get(part));
        let metric_name = source.pointer("/metric/name");
        let selector = selector(source.pointer("/metric/selector"));
        let out = Writer::default();
        match name {
            "object" => out
                .put("target", reference(source.get("describedObject")))
                .always("metricName", metric_name, "")
                .always("currentValue", current("value"), "0")
                .maybe("selector", selector.as_ref())
                .maybe("averageValue", current("averageValue")),
            "pods" => out
                .always("metricName", metric_name, "")
                .always("currentAverageValue", current("averageValue"), "0")
                .maybe("selector", selector.as_ref()),
            "external" => out
                .always("metricName", metric_name, "")
                .maybe("metricSelector", selector.as_ref())
                .always("currentValue", current("value"), "0")
                .maybe("currentAverageValue", current("averageValue")),
            _ => {
                let out = out
                    .always("name", source.get("name"), "")
                    .maybe("currentAverageUtilization", current("averageUtilization"))
                    .always("currentAverageValue", current("averageValue"), "0");
                if name == "resource" { out } else { out.always("container", source.get("container"), "") }
            }
        }
        .done()
    })
}

fn metric_status_to_v2(metric: &Value) -> Value {
    each_source(metric, |name, source| {
        let part = |name: &str| source.get(name).filter(|part| !part.is_null());
        let current = Writer::default();
        let out = Writer::default();
        match name {
            "object" => {
                let current = current
                    .always("value", part("currentValue"), "0")
                    .maybe("averageValue", part("averageValue"));
                out.put("metric", identifier(part("metricName"), part("selector")))
                    .put("current", current.done())
                    .put("describedObject", reference(part("target")))
            }
            "pods" => {
                let current = current.always("averageValue", part("currentAverageValue"), "0");
                out.put("metric", identifier(part("metricName"), part("selector")))
                    .put("current", current.done())
            }
            "external" => {
                let current = current
                    .always("value", part("currentValue"), "0")
                    .maybe("averageValue", part("currentAverageValue"));
                out.put("metric", identifier(part("metricName"), part("metricSelector")))
                    .put("current", current.done())
            }
            _ => {
                let current = current
                    .always("averageValue", part("currentAverageValue"), "0")
                    .maybe("averageUtilization", part("currentAverageUtilization"));
                let out = out.always("name", part("name"), "").put("current", current.done());
                if name == "resource" { out } else { out.always("container", part("container"), "") }
            }
        }
        .done()
    })
}

fn behavior_to_go(behavior: &Value) -> Value {
    let mut out = Writer::default();
    for (go, name) in [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")] {
        let rules = behavior.get(name).filter(|rules| rules.is_object()).map_or(Value::Null, |rules| {
            let policies = rules.get("policies").and_then(Value::as_array).map(|policies| {
                let policy = |one: &Value| {
                    Writer::default()
                        .always("Type", one.get("type"), "")
                        .always("Value", one.get("value"), 0)
                        .always("PeriodSeconds", one.get("periodSeconds"), 0)
                        .done()
                };
                policies.iter().map(policy).collect::<Value>()
            });
            Writer::default()
                .always("StabilizationWindowSeconds", rules.get("stabilizationWindowSeconds"), Value::Null)
                .always("SelectPolicy", rules.get("selectPolicy"), Value::Null)
                .always("Policies", policies.as_ref(), Value::Null)
                .always("Tolerance", rules.get("tolerance"), Value::Null)
                .done()
        });
        out = out.put(go, rules);
    }
    out.done()
}

/// A field of a struct without JSON tags, which Go matches case-insensitively.
fn any_case<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let map = value.as_object()?;
    let found = map
        .get(name)
        .or_else(|| map.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value));
    found.filter(|value| !value.is_null())
}

fn behavior_from_go(behavior: &Value) -> Option<Value> {
    let mut out = Writer::default();
    for name in ["scaleUp", "scaleDown"] {
        let Some(rules) = any_case(behavior, name).filter(|rules| rules.is_object()) else { continue };
        let policies = any_case(rules, "policies").and_then(Value::as_array).map(|policies| {
            let policy = |one: &Value| {
                Writer::default()
                    .always("type", any_case(one, "type"), "")
                    .always("value", any_case(one, "value"), 0)
                    .always("periodSeconds", any_case(one, "periodSeconds"), 0)
                    .done()
            };
            policies.iter().map(policy).collect::<Value>()
        });
        let rules = Writer::default()
            .maybe("stabilizationWindowSeconds", any_case(rules, "stabilizationWindowSeconds"))
            .maybe("selectPolicy", any_case(rules, "selectPolicy"))
            .maybe("policies", policies.as_ref())
            .maybe("tolerance", any_case(rules, "tolerance"));
        out = out.put(name, rules.done());
    }
    (!out.0.is_empty()).then(|| out.done())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_v1_has_no_field_for_travels_in_annotations() {
        let v2 = json!({
            "apiVersion": "autoscaling/v2",
            "metadata": {"name": "two"},
            "spec": {"maxReplicas": 4, "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
                {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}}},
            ]},
        });
        let v1 = v2_to_v1(&v2);
        assert_eq!(
            v1,
            json!({
                "apiVersion": "autoscaling/v1",
                "metadata": {"name": "two", "annotations": {
                    METRICS: r#"[{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"10"}}]"#,
                }},
                "spec": {"maxReplicas": 4, "targetCPUUtilizationPercentage": 50},
            })
        );
        let back = v1_to_v2(&v1);
        assert_eq!(back["metadata"], json!({"name": "two"}));
        assert_eq!(back["spec"]["metrics"][0], v2["spec"]["metrics"][1]);
        assert_eq!(back["spec"]["metrics"][1], v2["spec"]["metrics"][0]);
    }

    #[test]
    fn every_metric_comes_back_from_v1() {
        let selector = json!({"matchLabels": {"a": "b"}});
        let metrics = json!([
            {"type": "Object", "object": {"describedObject": {"kind": "K", "name": "n", "apiVersion": "g/v1"},
                "target": {"type": "Value", "value": "3"}, "metric": {"name": "m", "selector": selector}}},
            {"type": "External", "external": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}}},
            {"type": "ContainerResource", "containerResource": {"name": "memory",
                "target": {"type": "Utilization", "averageUtilization": 3}, "container": "c"}},
        ]);
        let behavior = json!({"scaleUp": {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 2}]}});
        let status = json!({
            "currentReplicas": 1,
            "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "1", "averageUtilization": 9}}}],
            "conditions": [{"type": "T", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        });
        let v2 =
            json!({"metadata": {}, "spec": {"metrics": metrics, "behavior": behavior}, "status": status});
        let v1 = v2_to_v1(&v2);
        assert_eq!(v1["status"], json!({"currentReplicas": 1, "currentCPUUtilizationPercentage": 9}));
        assert_eq!(v1_to_v2(&v1), v2);
    }

    #[test]
    fn a_v1_object_without_a_target_aims_at_80_percent() {
        let v2 = v1_to_v2(&json!({"spec": {"maxReplicas": 1}}));
        assert_eq!(v2["spec"]["metrics"], default_metrics());
    }
}
