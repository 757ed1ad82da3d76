//! The quality of service class of a pod, computed from its resources.

use k1s_object::quantity::Quantity;
use serde_json::Value;

use crate::rules::helpers::quantities;

/// `Guaranteed`, `Burstable` or `BestEffort`.
pub(crate) fn class(pod: &Value) -> &'static str {
    if let Some(resources) = pod.pointer("/spec/resources")
        && (has_entries(resources, "limits") || has_entries(resources, "requests"))
    {
        return of_requirements(Some(resources));
    }
    let mut class = "";
    for list in ["/spec/initContainers", "/spec/containers"] {
        for container in pod.pointer(list).and_then(Value::as_array).into_iter().flatten() {
            let one = of_requirements(container.get("resources"));
            if one == "Burstable" || (!class.is_empty() && class != one) {
                return "Burstable";
            }
            class = one;
        }
    }
    if class.is_empty() { "BestEffort" } else { class }
}

fn has_entries(resources: &Value, key: &str) -> bool {
    resources.get(key).and_then(Value::as_object).is_some_and(|list| !list.is_empty())
}

fn of_requirements(resources: Option<&Value>) -> &'static str {
    let Some(resources) = resources else { return "BestEffort" };
    if !has_entries(resources, "limits") && !has_entries(resources, "requests") {
        return "BestEffort";
    }
    let amount = |list: &str, name: &str| {
        let text = resources.get(list).and_then(|list| list.get(name)).and_then(Value::as_str);
        text.and_then(quantities::parse).unwrap_or_else(|| Quantity::from_i64(0))
    };
    let of = |name: &str| {
        let (request, limit) = (amount("requests", name), amount("limits", name));
        match (request == limit, request.is_zero()) {
            (false, _) => "Burstable",
            (true, true) => "BestEffort",
            (true, false) => "Guaranteed",
        }
    };
    let (cpu, memory) = (of("cpu"), of("memory"));
    if cpu == memory { cpu } else { "Burstable" }
}
