//! Binding a pod to a node, and evicting it.

use k1s_object::{
    Check, FieldError, Status,
    status::{Cause, Details},
};
use serde_json::{Map, Value, json};

use crate::rules::{
    core::binding,
    helpers::{
        json::{child, each, number_at, object, text, text_at, zero},
        labels,
    },
};

/// The errors in a Binding.
pub fn validate_binding(binding: &Value) -> Vec<FieldError> {
    let check = Check::new();
    binding::validate(check.root(binding));
    check.take()
}

/// Assigns a pod to the node of a Binding. `now` is in JSON format.
pub fn apply_binding(pod: &mut Value, binding: &Value, now: &str) -> Result<(), Status> {
    let wrong = validate_binding(binding);
    if !wrong.is_empty() {
        // Kubernetes returns these errors as an internal error.
        let texts: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        let message = match texts.as_slice() {
            [one] => one.clone(),
            _ => format!("[{}]", texts.join(", ")),
        };
        return Err(Status::new(500, "", message));
    }
    let name = text_at(pod, &["metadata", "name"]).to_owned();
    let conflict = |why: String| Err(Status::conflict("", "pods/binding", &name, why));
    if pod.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null()) {
        return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = text_at(pod, &["spec", "nodeName"]);
    if !node.is_empty() {
        return conflict(format!("pod {name} is already assigned to node {node:?}"));
    }
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array);
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return conflict(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    let pod = object(pod);
    child(pod, "spec").insert("nodeName".into(), text_at(binding, &["target", "name"]).into());
    for key in ["annotations", "labels"] {
        let entries =
            binding.pointer("/metadata").and_then(|metadata| metadata.get(key)).and_then(Value::as_object);
        if let Some(entries) = entries.filter(|entries| !entries.is_empty()) {
            let map = child(child(pod, "metadata"), key);
            for (key, value) in entries {
                map.insert(key.clone(), value.clone());
            }
        }
    }
    let status = child(pod, "status");
    status.shift_remove("nominatedNodeName");
    set_condition(status, "PodScheduled", &json!({"status": "True"}), now);
    Ok(())
}

/// Sets a condition of a pod; its transition time changes only with its status.
pub fn set_condition(status: &mut Map<String, Value>, kind: &str, condition: &Value, now: &str) {
    let new_status = condition.get("status").and_then(Value::as_str).unwrap_or_default();
    let mut full = Map::new();
    full.insert("type".into(), kind.into());
    full.insert("status".into(), new_status.into());
    full.insert("lastProbeTime".into(), Value::Null);
    full.insert("lastTransitionTime".into(), now.into());
    for key in ["reason", "message"] {
        if let Some(value) = condition.get(key) {
            full.insert(key.into(), value.clone());
        }
    }
    for old in each(status, "conditions") {
        if text(old, "type") == kind {
            if text(old, "status") == new_status
                && let Some(time) = old.get("lastTransitionTime")
            {
                full.insert("lastTransitionTime".into(), time.clone());
            }
            *old = full;
            return;
        }
    }
    match status.get_mut("conditions") {
        Some(Value::Array(list)) => list.push(Value::Object(full)),
        _ => {
            status.insert("conditions".into(), json!([full]));
        }
    }
}

/// Sets the condition of an evicted pod, before it is deleted.
pub fn mark_evicted(pod: &mut Value, now: &str) {
    let condition =
        json!({"status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"});
    set_condition(child(object(pod), "status"), "DisruptionTarget", &condition, now);
}

/// The decision on an eviction.
#[derive(Debug, Clone, PartialEq)]
pub enum Eviction {
    /// Delete; no budget applies.
    Delete,
    /// Delete with the resourceVersion of the pod as a precondition.
    DeleteUnchanged,
    /// Store this budget's new status, then delete the pod.
    Spend(Box<Value>),
}

const VIOLATES: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

fn too_many(retry_after: u32, budget_message: String) -> Status {
    let mut details = Details { retry_after_seconds: retry_after, ..Details::default() };
    details.causes.push(Cause {
        reason: "DisruptionBudget".into(),
        message: budget_message,
        field: String::new(),
    });
    Status::new(429, "TooManyRequests", VIOLATES).with(details)
}

fn budget_forbids(name: &str, why: &str, message: String) -> Status {
    let mut status = Status::forbidden("policy", "poddisruptionbudget", name, why);
    if let Some(details) = status.details.as_mut() {
        details.causes.push(Cause { reason: "DisruptionBudget".into(), message, field: String::new() });
    }
    status
}

/// Decides on an eviction. `budgets` are all `PodDisruptionBudgets` of the namespace, `now` is in JSON format.
pub fn eviction_decision(pod: &Value, budgets: &[Value], now: &str) -> Result<Eviction, Status> {
    let phase = text_at(pod, &["status", "phase"]);
    let deleting = pod.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null());
    if deleting || matches!(phase, "Succeeded" | "Failed") {
        return Ok(Eviction::Delete);
    }
    if phase == "Pending" {
        return Ok(Eviction::DeleteUnchanged);
    }
    let pod_labels = pod.pointer("/metadata/labels");
    let mut mine =
        budgets.iter().filter(|budget| labels::matches(budget.pointer("/spec/selector"), pod_labels));
    let Some(budget) = mine.next() else { return Ok(Eviction::Delete) };
    if mine.next().is_some() {
        return Err(Status::new(
            500,
            "",
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        ));
    }
    let (healthy, desired) =
        (number_at(budget, &["status", "currentHealthy"]), number_at(budget, &["status", "desiredHealthy"]));
    if !is_ready(pod) {
        let always = text_at(budget, &["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow";
        if always || (healthy >= desired && desired > 0) {
            return Ok(Eviction::DeleteUnchanged);
        }
    }
    spend(budget, text_at(pod, &["metadata", "name"]), now)
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|one| text_at(one, &["type"]) == "Ready" && text_at(one, &["status"]) == "True")
}

fn spend(budget: &Value, pod: &str, now: &str) -> Result<Eviction, Status> {
    let name = text_at(budget, &["metadata", "name"]);
    if number_at(budget, &["status", "observedGeneration"]) < number_at(budget, &["metadata", "generation"]) {
        return Err(too_many(
            10,
            format!("The disruption budget {name} is still being processed by the server."),
        ));
    }
    let allowed = number_at(budget, &["status", "disruptionsAllowed"]);
    if allowed < 0 {
        return Err(budget_forbids(
            name,
            "pdb disruptions allowed is negative",
            format!(
                "The disruption budget {name} does not allow evicting pods currently: pdb disruptions allowed is negative"
            ),
        ));
    }
    let disrupted = budget.pointer("/status/disruptedPods").and_then(Value::as_object).map_or(0, Map::len);
    if disrupted > 2000 {
        return Err(budget_forbids(
            name,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            format!(
                "The disruption budget {name} does not allow evicting pods currently: too many pending evictions not confirmed by PDB controller"
            ),
        ));
    }
    if allowed == 0 {
        return Err(too_many(0, why_not(budget, name)));
    }
    let mut budget = budget.clone();
    let generation = number_at(&budget, &["metadata", "generation"]);
    let status = child(object(&mut budget), "status");
    status.insert("disruptionsAllowed".into(), (allowed - 1).into());
    if allowed == 1 {
        disruption_condition(status, generation, now);
    }
    child(status, "disruptedPods").insert(pod.to_owned(), now.into());
    Ok(Eviction::Spend(Box::new(budget)))
}

fn why_not(budget: &Value, name: &str) -> String {
    let conditions = budget.pointer("/status/conditions").and_then(Value::as_array);
    let condition = conditions
        .into_iter()
        .flatten()
        .find(|one| text_at(one, &["type"]) == "DisruptionAllowed")
        .filter(|one| text_at(one, &["status"]) == "False" && !text_at(one, &["message"]).is_empty());
    let (healthy, desired) =
        (number_at(budget, &["status", "currentHealthy"]), number_at(budget, &["status", "desiredHealthy"]));
    match condition {
        Some(one) if text_at(one, &["reason"]) == "SyncFailed" => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            text_at(one, &["message"])
        ),
        _ if healthy <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
        }
        Some(one) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({}): {}",
            text_at(one, &["reason"]),
            text_at(one, &["message"])
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// Sets the condition of a budget that allows no further disruption.
fn disruption_condition(status: &mut Map<String, Value>, generation: i64, now: &str) {
    let mut full = json!({
        "type": "DisruptionAllowed", "status": "False", "observedGeneration": generation,
        "lastTransitionTime": now, "reason": "InsufficientPods", "message": "",
    });
    for old in each(status, "conditions") {
        if text(old, "type") == "DisruptionAllowed" {
            if text(old, "status") == "False"
                && let Some(time) = old.get("lastTransitionTime")
            {
                full["lastTransitionTime"] = time.clone();
            }
            *old = object(&mut full).clone();
            return;
        }
    }
    if zero(status, "conditions") {
        status.insert("conditions".into(), json!([]));
    }
    if let Some(Value::Array(list)) = status.get_mut("conditions") {
        list.push(full);
    }
}
