//! `LimitRanger`: the effect of the `LimitRanges` of a namespace on pods and volume claims.

use k1s_object::quantity::Quantity;
use serde_json::{Map, Value, json};

use crate::{
    admission::pod_resources::{Amounts, amounts, of_container, of_pod},
    rules::helpers::json::{find, list_at, object_in, text_at},
};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Sets the defaults of a range in the containers of a new pod, and records that in an annotation.
pub fn apply_defaults(pod: &mut Value, range: &Value) {
    let mut defaults = [("limits", Map::new()), ("requests", Map::new())];
    for limit in
        list_at(range, &["spec", "limits"]).iter().filter(|limit| text_at(limit, &["type"]) == "Container")
    {
        for ((_, to), from) in defaults.iter_mut().zip(["default", "defaultRequest"]) {
            let from = limit.get(from).and_then(Value::as_object).into_iter().flatten();
            to.extend(from.map(|(name, amount)| (name.clone(), amount.clone())));
        }
    }
    let mut notes = Vec::new();
    for (group, word) in [("containers", "container"), ("initContainers", "init container")] {
        let containers =
            pod.get_mut("spec").and_then(|spec| spec.get_mut(group)).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mut set = [Vec::new(), Vec::new()];
            for ((which, defaults), set) in defaults.iter().zip(&mut set) {
                fill(container, which, defaults, set);
            }
            let name = text_at(container, &["name"]);
            let [limits, requests] = set;
            for (mut names, what) in [(requests, "request"), (limits, "limit")] {
                if !names.is_empty() {
                    names.sort();
                    notes.push(format!("{} {what} for {word} {name}", names.join(", ")));
                }
            }
        }
    }
    if !notes.is_empty()
        && let Some(meta) = object_in(pod, "metadata")
    {
        let annotations = meta.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations
                .insert(ANNOTATION.into(), format!("LimitRanger plugin set: {}", notes.join("; ")).into());
        }
    }
}

fn fill(container: &mut Value, which: &str, defaults: &Map<String, Value>, set: &mut Vec<String>) {
    if defaults.is_empty() {
        return;
    }
    let Some(resources) = object_in(container, "resources") else { return };
    let Some(amounts) = resources.entry(which).or_insert_with(|| json!({})).as_object_mut() else { return };
    for (name, amount) in defaults {
        if !amounts.contains_key(name) {
            amounts.insert(name.clone(), amount.clone());
            set.push(name.clone());
        }
    }
}

/// The violations of a range by a pod.
pub fn check_pod(pod: &Value, range: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    for limit in list_at(range, &["spec", "limits"]) {
        match text_at(limit, &["type"]) {
            "Container" => {
                for group in ["containers", "initContainers"] {
                    for container in list_at(pod, &["spec", group]) {
                        let [requests, limits] =
                            ["requests", "limits"].map(|which| of_container(container, which));
                        check(limit, "Container", &requests, &limits, &mut errors);
                    }
                }
            }
            "Pod" => {
                let [requests, limits] = ["requests", "limits"].map(|which| of_pod(pod, which));
                check(limit, "Pod", &requests, &limits, &mut errors);
            }
            _ => {}
        }
    }
    errors
}

/// The violations of a range by a volume claim.
pub fn check_claim(claim: &Value, range: &Value) -> Vec<String> {
    let kind = "PersistentVolumeClaim";
    let requests = amounts(find(claim, &["spec", "resources", "requests"]));
    let mut errors = Vec::new();
    for limit in list_at(range, &["spec", "limits"]).iter().filter(|limit| text_at(limit, &["type"]) == kind)
    {
        for (name, min) in amounts(limit.get("min")) {
            errors.extend(too_little(kind, &name, &min, &requests, &Amounts::new()));
        }
        for (name, max) in amounts(limit.get("max")) {
            let bound = format!("maximum {name} usage per {kind} is {max}");
            match requests.get(&name) {
                None => errors.push(format!("{bound}.  No request is specified")),
                Some(request) if *request > max => errors.push(format!("{bound}, but request is {request}")),
                Some(_) => {}
            }
        }
    }
    errors
}

/// Joins several errors into one message.
pub fn together(errors: &[String]) -> String {
    match errors {
        [one] => one.clone(),
        several => {
            let mut seen = std::collections::HashSet::new();
            let texts: Vec<&str> =
                several.iter().map(String::as_str).filter(|text| seen.insert(*text)).collect();
            if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) }
        }
    }
}

fn check(limit: &Value, kind: &str, requests: &Amounts, limits: &Amounts, errors: &mut Vec<String>) {
    for (name, min) in amounts(limit.get("min")) {
        errors.extend(too_little(kind, &name, &min, requests, limits));
    }
    for (name, max) in amounts(limit.get("max")) {
        errors.extend(too_much(kind, &name, &max, requests, limits));
    }
    for (name, ratio) in amounts(limit.get("maxLimitRequestRatio")) {
        errors.extend(ratio_exceeded(kind, &name, &ratio, requests, limits));
    }
}

fn too_little(
    kind: &str,
    name: &str,
    min: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let bound = format!("minimum {name} usage per {kind} is {min}");
    match (requests.get(name), limits.get(name)) {
        (None, _) => Some(format!("{bound}.  No request is specified")),
        (Some(request), _) if request < min => Some(format!("{bound}, but request is {request}")),
        (_, Some(limit)) if limit < min => Some(format!("{bound}, but limit is {limit}")),
        _ => None,
    }
}

fn too_much(kind: &str, name: &str, max: &Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let bound = format!("maximum {name} usage per {kind} is {max}");
    match (requests.get(name), limits.get(name)) {
        (_, None) => Some(format!("{bound}.  No limit is specified")),
        (_, Some(limit)) if limit > max => Some(format!("{bound}, but limit is {limit}")),
        (Some(request), _) if request > max => Some(format!("{bound}, but request is {request}")),
        _ => None,
    }
}

fn ratio_exceeded(
    kind: &str,
    name: &str,
    most: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let bound = format!("{name} max limit to request ratio per {kind} is {most}");
    let Some(request) = requests.get(name).filter(|amount| !amount.is_zero()) else {
        return Some(format!("{bound}, but no request is specified or request is 0"));
    };
    let Some(limit) = limits.get(name).filter(|amount| !amount.is_zero()) else {
        return Some(format!("{bound}, but no limit is specified or limit is 0"));
    };
    let ratio = limit.milli_value() as f64 / request.milli_value() as f64;
    (ratio * 1000.0 > most.milli_value() as f64).then(|| format!("{bound}, but provided ratio is {ratio:.6}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(limits: &Value) -> Value {
        json!({"spec": {"limits": [limits]}})
    }

    #[test]
    fn defaults_are_given_and_noted() {
        let range = range(&json!({
            "type": "Container", "default": {"cpu": "500m", "memory": "256Mi"},
            "defaultRequest": {"cpu": "100m", "memory": "256Mi"},
        }));
        let mut pod = json!({"spec": {"containers": [
            {"name": "c"}, {"name": "d", "resources": {"requests": {"cpu": "50m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}},
        ]}});
        apply_defaults(&mut pod, &range);
        assert_eq!(
            pod["metadata"]["annotations"][ANNOTATION],
            "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c; cpu limit \
             for container d"
        );
        assert_eq!(
            pod["spec"]["containers"][1]["resources"]["limits"],
            json!({"memory": "1Gi", "cpu": "500m"})
        );
    }

    #[test]
    fn bounds_of_pods_are_those_of_their_containers_together() {
        let range = range(&json!({"type": "Pod", "max": {"cpu": "1"}, "min": {"memory": "64Mi"}}));
        let pod = |resources: &[Value]| {
            let containers: Vec<Value> = resources.iter().map(|one| json!({"resources": one})).collect();
            together(&check_pod(&json!({"spec": {"containers": containers}}), &range))
        };
        assert_eq!(
            pod(&[json!({})]),
            "[minimum memory usage per Pod is 64Mi.  No request is specified, maximum cpu usage per Pod is 1.  No limit \
             is specified]"
        );
        let one = json!({
            "requests": {"cpu": "600m", "memory": "64Mi"}, "limits": {"cpu": "600m", "memory": "64Mi"},
        });
        assert_eq!(pod(&[one.clone(), one]), "maximum cpu usage per Pod is 1, but limit is 1200m");
        assert_eq!(
            pod(&[json!({"requests": {"memory": "32Mi", "cpu": "1"}, "limits": {"cpu": "1"}})]),
            "minimum memory usage per Pod is 64Mi, but request is 32Mi"
        );
    }

    #[test]
    fn ratios_and_claims_have_bounds() {
        let ratio = range(&json!({"type": "Container", "maxLimitRequestRatio": {"memory": "2"}}));
        let pod = json!({"spec": {"containers": [
            {"resources": {"requests": {"memory": "64Mi"}, "limits": {"memory": "256Mi"}}},
        ]}});
        assert_eq!(
            check_pod(&pod, &ratio),
            ["memory max limit to request ratio per Container is 2, but provided ratio is 4.000000"]
        );
        let storage = range(&json!({"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}}));
        let claim = json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}});
        assert_eq!(
            check_claim(&claim, &storage),
            ["maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"]
        );
    }
}
