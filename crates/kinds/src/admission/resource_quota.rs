//! `ResourceQuota`: the usage of objects, and whether a quota has room for it. The server reads the quotas,
//! stores their status, and recounts when objects are deleted.

use std::collections::{BTreeMap, BTreeSet};

use k1s_object::{quantity::Quantity, selector::LabelSelector};
use serde_json::{Map, Value, json};

use crate::{
    admission::{
        pod_resources,
        pod_resources::{Amounts, amounts, has_pod_level, is_best_effort, of_container, of_pod},
    },
    rules::helpers::{
        json::{find, list_at, number_at, text_at},
        resource_names::is_native,
    },
};

const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
const DEVICE_CLASS: &str = ".deviceclass.resource.k8s.io/devices";

/// Maximum number of devices of a claim: the count for the allocation mode `All`.
const MOST_DEVICES: i64 = 32;

fn count_name(group: &str, resource: &str) -> String {
    if group.is_empty() { format!("count/{resource}") } else { format!("count/{resource}.{group}") }
}

/// The usage of an object by the resource names of quotas. `resource` is its plural name.
pub fn usage(group: &str, resource: &str, object: &Value) -> Amounts {
    let mut used = Amounts::from([(count_name(group, resource), Quantity::from_i64(1))]);
    match (group, resource) {
        ("", "pods") => used.extend(pod_usage(object)),
        ("", "services") => used.extend(service_usage(object)),
        ("", "persistentvolumeclaims") => used.extend(claim_usage(object)),
        ("resource.k8s.io", "resourceclaims") => used.extend(device_usage(object)),
        ("", "configmaps" | "resourcequotas" | "replicationcontrollers" | "secrets") => {
            used.insert(resource.to_owned(), Quantity::from_i64(1));
        }
        _ => {}
    }
    used
}

/// Of a terminated pod only the object count is used.
fn pod_usage(pod: &Value) -> Amounts {
    if matches!(text_at(pod, &["status", "phase"]), "Failed" | "Succeeded") {
        return Amounts::new();
    }
    let mut totals = ["requests", "limits"].map(|which| of_pod(pod, which));
    let overhead = amounts(find(pod, &["spec", "overhead"]));
    for (i, total) in totals.iter_mut().enumerate() {
        // Overhead adds to a limit only if there is one.
        let has = |name: &String| i == 0 || total.contains_key(name);
        let extra = overhead.clone().into_iter().filter(|(name, _)| has(name)).collect();
        pod_resources::add(total, &extra);
    }
    let [requests, limits] = totals;
    compute_usage(&requests, &limits)
}

fn compute_usage(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut used = Amounts::from([("pods".to_owned(), Quantity::from_i64(1))]);
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(request) = requests.get(name) {
            used.insert(name.to_owned(), request.clone());
            used.insert(format!("requests.{name}"), request.clone());
        }
        if let Some(limit) = limits.get(name) {
            used.insert(format!("limits.{name}"), limit.clone());
        }
    }
    for (name, request) in requests {
        if name.starts_with("hugepages-") {
            used.insert(name.clone(), request.clone());
        }
        if name.starts_with("hugepages-") || !is_native(name) {
            used.insert(format!("requests.{name}"), request.clone());
        }
    }
    used
}

fn service_usage(service: &Value) -> Amounts {
    let ports = list_at(service, &["spec", "ports"]);
    let kind = text_at(service, &["spec", "type"]);
    let allocate =
        find(service, &["spec", "allocateLoadBalancerNodePorts"]).and_then(Value::as_bool) != Some(false);
    let node_ports = match kind {
        "LoadBalancer" if !allocate => {
            ports.iter().filter(|port| number_at(port, &["nodePort"]) != 0).count()
        }
        "NodePort" | "LoadBalancer" => ports.len(),
        _ => 0,
    };
    let counted = |count: usize| Quantity::from_i64(i64::try_from(count).unwrap_or(i64::MAX));
    Amounts::from([
        ("services".to_owned(), counted(1)),
        ("services.loadbalancers".to_owned(), counted(usize::from(kind == "LoadBalancer"))),
        ("services.nodeports".to_owned(), counted(node_ports)),
    ])
}

fn claim_usage(claim: &Value) -> Amounts {
    let mut own = Amounts::from([("persistentvolumeclaims".to_owned(), Quantity::from_i64(1))]);
    if let Some(storage) = amounts(find(claim, &["spec", "resources", "requests"])).remove("storage") {
        let promised = amounts(find(claim, &["status", "allocatedResources"])).remove("storage");
        let most = promised.filter(|promised| *promised > storage).unwrap_or(storage);
        own.insert("requests.storage".to_owned(), most);
    }
    let annotation = text_at(claim, &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
    let class =
        if annotation.is_empty() { text_at(claim, &["spec", "storageClassName"]) } else { annotation };
    let mut used = own.clone();
    if !class.is_empty() {
        used.extend(own.into_iter().map(|(name, amount)| (format!("{class}{STORAGE_CLASS}{name}"), amount)));
    }
    used
}

/// The devices that a claim may get, by class. Of alternatives, the largest request counts for each class.
fn device_usage(claim: &Value) -> Amounts {
    let asked = |request: &Value| match text_at(request, &["allocationMode"]) {
        "All" => MOST_DEVICES,
        "ExactCount" => number_at(request, &["count"]),
        _ => 0,
    };
    let mut devices: BTreeMap<String, i64> = BTreeMap::new();
    for request in list_at(claim, &["spec", "devices", "requests"]) {
        let alternatives = list_at(request, &["firstAvailable"]);
        let exactly = request.get("exactly").filter(|exactly| !exactly.is_null());
        let choices = if alternatives.is_empty() {
            exactly.into_iter().collect()
        } else {
            Vec::from_iter(alternatives)
        };
        let mut most: BTreeMap<&str, i64> = BTreeMap::new();
        for choice in choices {
            let count = most.entry(text_at(choice, &["deviceClassName"])).or_default();
            *count = (*count).max(asked(choice));
        }
        for (class, count) in most {
            let total = devices.entry(format!("{class}{DEVICE_CLASS}")).or_default();
            *total = total.saturating_add(count);
        }
    }
    devices.into_iter().map(|(name, count)| (name, Quantity::from_i64(count))).collect()
}

/// Whether objects of this resource count for a resource name of a quota.
fn matters(group: &str, resource: &str, name: &str) -> bool {
    if name == count_name(group, resource) {
        return true;
    }
    let computed = ["cpu", "memory", "ephemeral-storage"];
    match (group, resource) {
        ("", "pods") => {
            let short =
                name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
            name == "pods"
                || computed.contains(&short)
                || name.starts_with("hugepages-")
                || name.starts_with("requests.hugepages-")
                || (name.starts_with("requests.") && !is_native(name))
        }
        ("", "services") => matches!(name, "services" | "services.nodeports" | "services.loadbalancers"),
        ("", "persistentvolumeclaims") => {
            let short = name.split_once(STORAGE_CLASS).map_or(name, |(_, short)| short);
            matches!(short, "persistentvolumeclaims" | "requests.storage")
        }
        ("", "configmaps" | "resourcequotas" | "replicationcontrollers" | "secrets") => name == resource,
        ("resource.k8s.io", "resourceclaims") => name.ends_with(DEVICE_CLASS),
        _ => false,
    }
}

/// Whether an object is in all scopes of a quota.
fn in_scopes(quota: &Value, group: &str, resource: &str, object: &Value) -> bool {
    let plain = list_at(quota, &["spec", "scopes"]).iter().filter_map(Value::as_str);
    let mut plain = plain.map(|scope| json!({"scopeName": scope, "operator": "Exists"}));
    let selected = list_at(quota, &["spec", "scopeSelector", "matchExpressions"]);
    let fits = |requirement: &Value| match (group, resource) {
        ("", "pods") => pod_in_scope(requirement, object),
        ("", "persistentvolumeclaims") => claim_in_scope(requirement, object),
        _ => false,
    };
    plain.all(|requirement| fits(&requirement)) && selected.iter().all(fits)
}

fn named_in_scope(requirement: &Value, name: &str) -> bool {
    if text_at(requirement, &["operator"]) == "Exists" {
        return !name.is_empty();
    }
    let scope = text_at(requirement, &["scopeName"]);
    let selector = json!({"matchExpressions": [{
        "key": scope, "operator": requirement.get("operator"), "values": requirement.get("values"),
    }]});
    LabelSelector::from_json(Some(&selector))
        .is_ok_and(|selector| selector.matches(|key| (key == scope && !name.is_empty()).then_some(name)))
}

fn pod_in_scope(requirement: &Value, pod: &Value) -> bool {
    let terminating =
        || find(pod, &["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64).is_some_and(|s| s >= 0);
    match text_at(requirement, &["scopeName"]) {
        "Terminating" => terminating(),
        "NotTerminating" => !terminating(),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => named_in_scope(requirement, text_at(pod, &["spec", "priorityClassName"])),
        "CrossNamespacePodAffinity" => looks_into_namespaces(pod),
        _ => false,
    }
}

fn claim_in_scope(requirement: &Value, claim: &Value) -> bool {
    text_at(requirement, &["scopeName"]) == "VolumeAttributesClass"
        && named_in_scope(requirement, text_at(claim, &["spec", "volumeAttributesClassName"]))
}

fn looks_into_namespaces(pod: &Value) -> bool {
    let other =
        |term: &Value| !list_at(term, &["namespaces"]).is_empty() || term.get("namespaceSelector").is_some();
    ["podAffinity", "podAntiAffinity"].into_iter().any(|affinity| {
        let path = ["spec", "affinity", affinity];
        let terms = |name| find(pod, &path).map_or(&[][..], |affinity| list_at(affinity, &[name]));
        terms("requiredDuringSchedulingIgnoredDuringExecution").iter().any(other)
            || terms("preferredDuringSchedulingIgnoredDuringExecution")
                .iter()
                .any(|term| term.get("podAffinityTerm").is_some_and(other))
    })
}

/// Whether a quota limits this object. Only resources in its status count: a quota without a status is not
/// enforced yet.
fn applies(quota: &Value, group: &str, resource: &str, object: &Value) -> bool {
    let hard = find(quota, &["status", "hard"]).and_then(Value::as_object);
    hard.is_some_and(|hard| hard.keys().any(|name| matters(group, resource, name)))
        && in_scopes(quota, group, resource, object)
}

/// The resources that the containers of a pod must specify because a quota limits them.
fn unsaid(pod: &Value, required: &[&str]) -> Option<String> {
    if has_pod_level(pod) {
        return None;
    }
    let checked = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for group in ["containers", "initContainers"] {
        for container in list_at(pod, &["spec", group]) {
            let [requests, limits] = ["requests", "limits"].map(|which| of_container(container, which));
            let said = compute_usage(&requests, &limits);
            for name in required.iter().filter(|name| checked.contains(name) && !said.contains_key(**name)) {
                missing.entry(name).or_default().insert(text_at(container, &["name"]));
            }
        }
    }
    let parts: Vec<String> = missing
        .into_iter()
        .map(|(name, containers)| {
            format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
        })
        .collect();
    (!parts.is_empty()).then(|| format!("must specify {}", parts.join("; ")))
}

/// A quota's new `status.used`, to be stored before the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// The index of the quota.
    pub quota: usize,
    /// Its `status.used` including the object.
    pub used: Value,
}

/// Charges the quotas of a namespace for a new object, or for the increase by an update of `old`. The error is
/// the text after `is forbidden: `. Only pods, services and claims are charged on update.
pub fn charge(
    quotas: &[Value],
    group: &str,
    resource: &str,
    new: &Value,
    old: Option<&Value>,
) -> Result<Vec<Charge>, String> {
    let updates = group.is_empty() && matches!(resource, "services" | "persistentvolumeclaims");
    let deadline = |pod| find(pod, &["spec", "activeDeadlineSeconds"]).is_some();
    let moves = |old| group.is_empty() && resource == "pods" && deadline(new) != deadline(old);
    if old.is_some_and(|old| !updates && !moves(old)) {
        return Ok(Vec::new());
    }
    let mut interesting = Vec::new();
    for (i, quota) in quotas.iter().enumerate().filter(|(_, quota)| applies(quota, group, resource, new)) {
        let name = text_at(quota, &["metadata", "name"]);
        let (hard, used) =
            (amounts(find(quota, &["status", "hard"])), amounts(find(quota, &["status", "used"])));
        let required: Vec<&str> =
            hard.keys().map(String::as_str).filter(|name| matters(group, resource, name)).collect();
        if resource == "pods"
            && let Some(error) = unsaid(new, &required)
        {
            return Err(format!("failed quota: {name}: {error}"));
        }
        if required.iter().any(|name| !used.contains_key(*name)) {
            return Err(format!("status unknown for quota: {name}, resources: {}", required.join(",")));
        }
        interesting.push((i, name, hard, used));
    }
    let needed = usage(group, resource, new);
    let mut charges = Vec::new();
    for (i, name, hard, used) in interesting {
        let counted_before =
            old.filter(|old| quotas.get(i).is_some_and(|quota| applies(quota, group, resource, old)));
        let mut asked = needed.clone();
        if let Some(old) = counted_before {
            for (name, before) in usage(group, resource, old) {
                if let Some(amount) = asked.get_mut(&name) {
                    *amount = amount.sub(&before);
                }
            }
        }
        asked.retain(|name, amount| amount.sign() > 0 && hard.contains_key(name));
        let mut total = used.clone();
        pod_resources::add(&mut total, &asked);
        let exceeded: Vec<&String> = asked.keys().filter(|name| total.get(*name) > hard.get(*name)).collect();
        if !exceeded.is_empty() {
            let shown = |list: &Amounts| {
                let parts = exceeded.iter().filter_map(|name| Some(format!("{name}={}", list.get(*name)?)));
                parts.collect::<Vec<_>>().join(",")
            };
            return Err(format!(
                "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
                shown(&asked),
                shown(&used),
                shown(&hard)
            ));
        }
        if !asked.is_empty() {
            charges.push(Charge { quota: i, used: to_json(&total) });
        }
    }
    Ok(charges)
}

fn to_json(amounts: &Amounts) -> Value {
    Value::Object(
        amounts.iter().map(|(name, amount)| (name.clone(), amount.to_string().into())).collect::<Map<_, _>>(),
    )
}

/// The new `status.used` of the quotas that a create, update or delete of an object changes. Unlike [`charge`]
/// it also releases usage, and never fails.
pub fn moved(
    quotas: &[Value],
    group: &str,
    resource: &str,
    new: Option<&Value>,
    old: Option<&Value>,
) -> Vec<Charge> {
    let mut charges = Vec::new();
    for (i, quota) in quotas.iter().enumerate() {
        let counted = |object: Option<&Value>| {
            let object = object.filter(|object| applies(quota, group, resource, object));
            object.map(|object| usage(group, resource, object)).unwrap_or_default()
        };
        let before = amounts(find(quota, &["status", "used"]));
        let mut used = before.clone();
        let (more, less) = (counted(new), counted(old));
        for (name, amount) in &mut used {
            let zero = Quantity::from_i64(0);
            let sum = amount.add(more.get(name).unwrap_or(&zero)).sub(less.get(name).unwrap_or(&zero));
            *amount = if sum.sign() < 0 { zero } else { sum };
        }
        if used != before {
            charges.push(Charge { quota: i, used: to_json(&used) });
        }
    }
    charges
}

/// Whether objects of a resource count for a quota.
pub fn counts(quota: &Value, group: &str, resource: &str) -> bool {
    let hard = find(quota, &["spec", "hard"]).and_then(Value::as_object);
    hard.is_some_and(|hard| hard.keys().any(|name| matters(group, resource, name)))
}

/// The status of a quota, computed from all objects of its namespace: (group, plural, object).
pub fn status<'a>(quota: &Value, objects: impl Iterator<Item = (&'a str, &'a str, &'a Value)>) -> Value {
    let hard = amounts(find(quota, &["spec", "hard"]));
    let mut used: Amounts = hard.keys().map(|name| (name.clone(), Quantity::from_i64(0))).collect();
    for (group, resource, object) in objects {
        if hard.keys().any(|name| matters(group, resource, name)) && in_scopes(quota, group, resource, object)
        {
            let mut more = usage(group, resource, object);
            more.retain(|name, _| hard.contains_key(name));
            pod_resources::add(&mut used, &more);
        }
    }
    json!({"hard": to_json(&hard), "used": to_json(&used)})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(hard: &Value, used: &Value) -> Value {
        json!({"metadata": {"name": "q"}, "spec": {"hard": hard}, "status": {"hard": hard, "used": used}})
    }

    fn pod(cpu: &str) -> Value {
        json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}})
    }

    #[test]
    fn pods_are_charged_for_what_they_request() {
        let hard = json!({"pods": "1", "requests.cpu": "1"});
        let empty = [quota(&hard, &json!({"pods": "0", "requests.cpu": "0"}))];
        assert_eq!(
            charge(&empty, "", "pods", &json!({"spec": {"containers": [{"name": "c"}]}}), None),
            Err("failed quota: q: must specify requests.cpu for: c".into())
        );
        let charges = charge(&empty, "", "pods", &pod("600m"), None).unwrap();
        assert_eq!(charges, [Charge { quota: 0, used: json!({"pods": "1", "requests.cpu": "600m"}) }]);
        let full = [quota(&hard, &charges[0].used)];
        assert_eq!(
            charge(&full, "", "pods", &pod("600m"), None),
            Err(
                "exceeded quota: q, requested: pods=1,requests.cpu=600m, used: pods=1,requests.cpu=600m, limited: \
                 pods=1,requests.cpu=1"
                    .into()
            )
        );
        assert_eq!(charge(&full, "", "secrets", &json!({}), None), Ok(vec![]));
    }

    #[test]
    fn objects_are_counted_by_name_and_group() {
        let full = [quota(&json!({"count/deployments.apps": "1"}), &json!({"count/deployments.apps": "1"}))];
        assert_eq!(
            charge(&full, "apps", "deployments", &json!({}), None),
            Err("exceeded quota: q, requested: count/deployments.apps=1, used: count/deployments.apps=1, limited: \
                 count/deployments.apps=1"
                .into())
        );
        assert_eq!(charge(&full, "apps", "deployments", &json!({}), Some(&json!({}))), Ok(vec![]));
        assert_eq!(charge(&full, "", "configmaps", &json!({}), None), Ok(vec![]));
    }

    #[test]
    fn devices_are_counted_by_their_class() {
        let claim = |requests: &Value| json!({"spec": {"devices": {"requests": requests}}});
        let exact = |class: &str, count: i64| json!({"deviceClassName": class, "allocationMode": "ExactCount", "count": count});
        let used = |requests: Value| {
            let mut used = usage("resource.k8s.io", "resourceclaims", &claim(&requests));
            assert_eq!(used.remove("count/resourceclaims.resource.k8s.io"), Some(Quantity::from_i64(1)));
            to_json(&used)
        };
        let (gpu, nic) =
            ("gpu.deviceclass.resource.k8s.io/devices", "nic.deviceclass.resource.k8s.io/devices");
        assert_eq!(
            used(
                json!([{"exactly": exact("gpu", 2)}, {"exactly": exact("gpu", 1)}, {"exactly": exact("nic", 1)}])
            ),
            json!({gpu: "3", nic: "1"})
        );
        let all = json!({"deviceClassName": "gpu", "allocationMode": "All"});
        assert_eq!(used(json!([{"exactly": all}])), json!({gpu: "32"}));
        let alternatives = json!([exact("gpu", 1), exact("gpu", 4), exact("nic", 2)]);
        assert_eq!(
            used(json!([{"firstAvailable": alternatives}, {"exactly": exact("gpu", 1)}])),
            json!({gpu: "5", nic: "2"})
        );
        let full = [quota(&json!({gpu: "1"}), &json!({gpu: "0"}))];
        let two = claim(&json!([{"exactly": exact("gpu", 2)}]));
        assert_eq!(
            charge(&full, "resource.k8s.io", "resourceclaims", &two, None),
            Err(format!("exceeded quota: q, requested: {gpu}=2, used: {gpu}=0, limited: {gpu}=1"))
        );
    }

    #[test]
    fn scopes_narrow_a_quota_down() {
        let mut only = quota(&json!({"pods": "0"}), &json!({"pods": "0"}));
        only["spec"]["scopes"] = json!(["BestEffort"]);
        let only = [only];
        assert_eq!(charge(&only, "", "pods", &pod("1"), None), Ok(vec![]));
        assert_eq!(
            charge(&only, "", "pods", &json!({"spec": {"containers": [{}]}}), None),
            Err("exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0".into())
        );
        let mut classes = quota(&json!({"pods": "0"}), &json!({"pods": "0"}));
        classes["spec"]["scopeSelector"] =
            json!({"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["hi"]}]});
        let classes = [classes];
        assert_eq!(charge(&classes, "", "pods", &pod("1"), None), Ok(vec![]));
        assert!(charge(&classes, "", "pods", &json!({"spec": {"priorityClassName": "hi"}}), None).is_err());
    }

    #[test]
    fn an_update_is_charged_for_the_difference() {
        let quotas = [quota(&json!({"services.nodeports": "1"}), &json!({"services.nodeports": "0"}))];
        let service = |kind: &str| json!({"spec": {"type": kind, "ports": [{"port": 80}]}});
        let charges =
            charge(&quotas, "", "services", &service("NodePort"), Some(&service("ClusterIP"))).unwrap();
        assert_eq!(charges, [Charge { quota: 0, used: json!({"services.nodeports": "1"}) }]);
        assert_eq!(
            charge(&quotas, "", "services", &service("NodePort"), Some(&service("NodePort"))),
            Ok(vec![])
        );
    }

    #[test]
    fn deleted_and_terminated_pods_release_their_usage() {
        let hard = json!({"pods": "2", "requests.cpu": "2"});
        let full = [quota(&hard, &json!({"pods": "1", "requests.cpu": "600m"}))];
        let used = |charges: Vec<Charge>| charges.into_iter().map(|charge| charge.used).collect::<Vec<_>>();
        assert_eq!(
            used(moved(&full, "", "pods", None, Some(&pod("600m")))),
            [json!({"pods": "0", "requests.cpu": "0"})]
        );
        let mut ended = pod("600m");
        ended["status"] = json!({"phase": "Succeeded"});
        assert_eq!(
            used(moved(&full, "", "pods", Some(&ended), Some(&pod("600m")))),
            [json!({"pods": "0", "requests.cpu": "0"})]
        );
        assert_eq!(
            used(moved(&full, "", "pods", Some(&pod("1")), None)),
            [json!({"pods": "2", "requests.cpu": "1600m"})]
        );
        assert!(moved(&full, "", "secrets", None, Some(&json!({}))).is_empty());
    }

    #[test]
    fn a_status_is_counted_from_all_objects() {
        let quota = quota(&json!({"pods": "5", "requests.cpu": "2", "count/secrets": "3"}), &json!({}));
        let (one, two, secret) = (pod("600m"), pod("600m"), json!({}));
        let objects = [("", "pods", &one), ("", "pods", &two), ("", "secrets", &secret)];
        assert_eq!(
            status(&quota, objects.into_iter()),
            json!({
                "hard": {"count/secrets": "3", "pods": "5", "requests.cpu": "2"},
                "used": {"count/secrets": "1", "pods": "2", "requests.cpu": "1200m"},
            })
        );
    }
}
