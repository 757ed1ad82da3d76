//! Preparation of pods for create and update: fields that the server sets or restores.

use serde_json::{Value, json};

use super::{defaults, qos, security::APP_ARMOR};
use crate::rules::helpers::json::{Object, child, each, existing, object, restore, text, unset, zero};

/// Create: sets the phase and the quality-of-service class, and applies admission defaults.
pub(crate) fn create(value: &mut Value) {
    defaults::admission_defaults(value);
    let pod = object(value);
    let gated = !zero(child(pod, "spec"), "schedulingGates");
    let labels = pod.get("metadata").and_then(|metadata| metadata.get("labels")).cloned();
    let labels = labels.as_ref().and_then(Value::as_object);
    let spec = child(pod, "spec");
    match_label_keys(spec, labels);
    app_armor_fields(pod);
    let mut status = json!({"phase": "Pending"});
    if gated {
        let now = pod.get("metadata").and_then(|metadata| metadata.get("creationTimestamp"));
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "lastProbeTime": null, "lastTransitionTime": now,
            "reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    pod.insert("status".into(), status);
    super::resources::default_pod_level(value);
    let class = qos::class(value);
    child(object(value), "status").insert("qosClass".into(), class.into());
}

/// Copies `AppArmor` profiles from annotations to fields that are not set.
fn app_armor_fields(pod: &mut Object) {
    let annotations = pod.get("metadata").and_then(|metadata| metadata.get("annotations")).cloned();
    let Some(Value::Object(annotations)) = annotations else { return };
    let spec = child(pod, "spec");
    if spec.get("os").and_then(|os| os.get("name")).and_then(Value::as_str) == Some("windows") {
        return;
    }
    let of_pod = spec.get("securityContext").and_then(|context| context.get("appArmorProfile")).cloned();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in each(spec, list) {
            let key = format!("{APP_ARMOR}{}", text(container, "name"));
            let has_field = container
                .get("securityContext")
                .and_then(|context| context.get("appArmorProfile"))
                .is_some_and(|profile| !profile.is_null());
            let Some(annotation) = annotations.get(&key).and_then(Value::as_str) else { continue };
            let profile = match (annotation, annotation.strip_prefix("localhost/")) {
                ("unconfined", _) => json!({"type": "Unconfined"}),
                ("runtime/default", _) => json!({"type": "RuntimeDefault"}),
                (_, Some(name)) if !name.is_empty() && name.trim() == name => {
                    json!({"type": "Localhost", "localhostProfile": name})
                }
                _ => continue,
            };
            if !has_field && of_pod.as_ref() != Some(&profile) {
                child(container, "securityContext").insert("appArmorProfile".into(), profile);
            }
        }
    }
}

/// Merges `matchLabelKeys` and `mismatchLabelKeys` into their selectors.
fn match_label_keys(spec: &mut Object, labels: Option<&Object>) {
    if let Some(affinity) = existing(spec, "affinity") {
        for side in ["podAffinity", "podAntiAffinity"] {
            let Some(side) = existing(affinity, side) else { continue };
            for weighted in each(side, "preferredDuringSchedulingIgnoredDuringExecution") {
                if let Some(term) = existing(weighted, "podAffinityTerm") {
                    merge_keys(term, labels);
                }
            }
            for term in each(side, "requiredDuringSchedulingIgnoredDuringExecution") {
                merge_keys(term, labels);
            }
        }
    }
    for constraint in each(spec, "topologySpreadConstraints") {
        merge_keys(constraint, labels);
    }
}

fn merge_keys(term: &mut Object, labels: Option<&Object>) {
    let mut expressions = Vec::new();
    for (list, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in term.get(list).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if let Some(value) = labels.and_then(|labels| labels.get(key)) {
                expressions.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    if expressions.is_empty() {
        return;
    }
    let Some(selector) = existing(term, "labelSelector") else { return };
    match selector.get_mut("matchExpressions") {
        Some(Value::Array(list)) => list.extend(expressions),
        _ => {
            selector.insert("matchExpressions".into(), expressions.into());
        }
    }
}

/// Update through the main resource.
pub(crate) fn update(new: &mut Value, old: &Value) {
    crate::rules::keep_status(new, old);
    let old_spec = old.get("spec").and_then(Value::as_object);
    let spec = child(object(new), "spec");
    defaults::tolerations(spec);
    for key in ["priority", "preemptionPolicy", "resources"] {
        if unset(spec, key) {
            restore(spec, old_spec, key);
        }
    }
}

/// Update of `/status`.
pub(crate) fn status(new: &mut Value, old: &Value) {
    crate::rules::only_status(new, old);
    let old_status = old.get("status").and_then(Value::as_object);
    let pod = object(new);
    let metadata = child(pod, "metadata");
    let old_metadata = old.get("metadata").and_then(Value::as_object);
    restore(metadata, old_metadata, "ownerReferences");
    restore(metadata, old_metadata, "deletionTimestamp");
    let status = child(pod, "status");
    for key in [
        "qosClass",
        "resourceClaimStatuses",
        "extendedResourceClaimStatus",
        "nodeAllocatableResourceClaimStatuses",
    ] {
        if unset(status, key) || (key == "qosClass" && zero(status, key)) {
            restore(status, old_status, key);
        }
    }
    if zero(status, "observedGeneration") {
        restore(status, old_status, "observedGeneration");
    }
    // There may be several conditions of one type: each keeps the generation of its counterpart.
    let mut known: Vec<(String, Option<Value>)> = old_status
        .and_then(|status| status.get("conditions"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .map(|one| (text(one, "type").to_owned(), one.get("observedGeneration").cloned()))
        .collect();
    for condition in each(status, "conditions") {
        let kind = text(condition, "type");
        let Some(at) = known.iter().position(|(known, _)| known == kind) else { continue };
        let (_, generation) = known.remove(at);
        if zero(condition, "observedGeneration")
            && let Some(generation) = generation
        {
            condition.insert("observedGeneration".into(), generation);
        }
    }
}

/// Restores labels, annotations and other metadata, which subresources of pods may not change.
fn reset_metadata(new: &mut Object, old: &Value) {
    let old = old.get("metadata").and_then(Value::as_object);
    let metadata = child(new, "metadata");
    for key in [
        "deletionTimestamp",
        "generation",
        "selfLink",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
    ] {
        restore(metadata, old, key);
    }
}

/// Update of `/ephemeralcontainers`: nothing else may change.
pub fn ephemeral_containers(new: &mut Value, old: &Value) {
    let containers = new.pointer("/spec/ephemeralContainers").cloned();
    let pod = object(new);
    reset_metadata(pod, old);
    restore(pod, old.as_object(), "status");
    restore(pod, old.as_object(), "spec");
    let spec = child(pod, "spec");
    match containers {
        Some(containers) => {
            spec.insert("ephemeralContainers".into(), containers);
        }
        None => {
            spec.shift_remove("ephemeralContainers");
        }
    }
}

/// Update of `/resize`: only resources and resize policies may change.
pub fn resize(new: &mut Value, old: &Value) {
    let length = |pod: &Value, list: &str| pod.pointer(list).and_then(Value::as_array).map_or(0, Vec::len);
    let lists = ["/spec/containers", "/spec/initContainers"];
    if lists.iter().all(|list| length(new, list) == length(old, list)) {
        let resources = new.pointer("/spec/resources").cloned();
        let containers = merged(new, old, "/spec/containers");
        let init = merged(new, old, "/spec/initContainers");
        let pod = object(new);
        reset_metadata(pod, old);
        restore(pod, old.as_object(), "status");
        restore(pod, old.as_object(), "spec");
        let spec = child(pod, "spec");
        for (key, value) in [("containers", containers), ("initContainers", init), ("resources", resources)] {
            match value {
                Some(value) => {
                    spec.insert(key.into(), value);
                }
                None => {
                    spec.shift_remove(key);
                }
            }
        }
    }
    let old_spec = old.get("spec").and_then(Value::as_object);
    let spec = child(object(new), "spec");
    if unset(spec, "resources") {
        restore(spec, old_spec, "resources");
    }
    if !unset(spec, "resources") {
        super::resources::default_pod_level(new);
    }
}

fn merged(new: &Value, old: &Value, list: &str) -> Option<Value> {
    let sent = new.pointer(list).and_then(Value::as_array).filter(|list| !list.is_empty())?;
    let mut kept = old.pointer(list).and_then(Value::as_array)?.clone();
    for (kept, sent) in kept.iter_mut().zip(sent) {
        if kept.get("name") != sent.get("name") {
            return Some(Value::Array(sent_list(new, list)));
        }
        let kept = object(kept);
        for key in ["resources", "resizePolicy"] {
            restore(kept, sent.as_object(), key);
        }
    }
    Some(Value::Array(kept))
}

fn sent_list(new: &Value, list: &str) -> Vec<Value> {
    new.pointer(list).and_then(Value::as_array).cloned().unwrap_or_default()
}
