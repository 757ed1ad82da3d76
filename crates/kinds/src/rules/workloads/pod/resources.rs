//! Resource requirements of pods and containers.

use serde_json::Value;

use super::super::json::{child, existing, object, zero};

/// Pod-level requests follow from the pod-level limits.
pub(crate) fn default_pod_level(pod: &mut Value) {
    let spec = child(object(pod), "spec");
    let Some(resources) = existing(spec, "resources") else { return };
    if zero(resources, "limits") {
        return;
    }
    let limits = resources.get("limits").and_then(Value::as_object).cloned().unwrap_or_default();
    let requests = child(resources, "requests");
    for (name, limit) in limits {
        requests.entry(name).or_insert(limit);
    }
}
