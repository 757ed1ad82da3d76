//! `Service`: defaults, preparation and warnings; allocation is in [`crate::allocation`].

#[cfg(test)]
mod tests;
pub(crate) mod validate;

use k1s_object::ip;
use serde_json::{Value, json};

pub(crate) use self::validate::host_name;
use crate::{
    allocation::node_ports,
    rules::{
        FieldLabelError, NameRule, Rules, SelectableField, drop_status,
        helpers::{
            equality::same_pointers,
            json::{default_in, find, list_at, number_at, remove_in, set_in, strings_at, text_at},
        },
        keep_status,
    },
};

pub(super) static RULES: Rules = Rules {
    defaults,
    prepare_create: |service| {
        drop_status(service);
        drop_internal_traffic_policy(service);
    },
    prepare_update,
    validate: |service| validate::service(service, None),
    validate_update: validate::update,
    validate_status: validate::status,
    warnings,
    name: NameRule::Label,
    create_on_update: true,
    delete_answers_object: true,
    fields: &[
        SelectableField {
            path: "spec.clusterIP",
            read: |service| text_at(service, &["spec", "clusterIP"]).to_owned(),
        },
        SelectableField { path: "spec.type", read: |service| text_at(service, &["spec", "type"]).to_owned() },
    ],
    field_error: FieldLabelError::NotSupported,
    ..Rules::PLAIN
};

pub(crate) fn kind(service: &Value) -> &str {
    text_at(service, &["spec", "type"])
}

pub(crate) fn has_ports_on_nodes(kind: &str) -> bool {
    matches!(kind, "NodePort" | "LoadBalancer")
}

pub(crate) fn externally_accessible(service: &Value) -> bool {
    has_ports_on_nodes(kind(service))
        || (kind(service) == "ClusterIP" && !list_at(service, &["spec", "externalIPs"]).is_empty())
}

pub(crate) fn needs_health_check(service: &Value) -> bool {
    kind(service) == "LoadBalancer" && text_at(service, &["spec", "externalTrafficPolicy"]) == "Local"
}

pub(crate) fn needs_cluster_ip(service: &Value) -> bool {
    kind(service) != "ExternalName"
}

fn defaults(service: &mut Value) {
    default_in(service, "spec", "sessionAffinity", "None");
    match text_at(service, &["spec", "sessionAffinity"]) {
        "None" => remove_in(service, "spec", "sessionAffinityConfig"),
        "ClientIP"
            if find(service, &["spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"]).is_none() =>
        {
            set_in(service, "spec", "sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 10800}}));
        }
        _ => {}
    }
    default_in(service, "spec", "type", "ClusterIP");
    let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        if port.get("protocol").and_then(Value::as_str).unwrap_or_default().is_empty() {
            port.insert("protocol".into(), "TCP".into());
        }
        let target = port.get("targetPort");
        if target.is_none_or(|target| target.is_null() || target == 0 || target == "") {
            let number = port.get("port").cloned().unwrap_or_else(|| 0.into());
            port.insert("targetPort".into(), number);
        }
    }
    if externally_accessible(service) {
        default_in(service, "spec", "externalTrafficPolicy", "Cluster");
    }
    let kind = kind(service).to_owned();
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP")
        && find(service, &["spec", "internalTrafficPolicy"]).is_none()
    {
        set_in(service, "spec", "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        if find(service, &["spec", "allocateLoadBalancerNodePorts"]).is_none() {
            set_in(service, "spec", "allocateLoadBalancerNodePorts", true);
        }
        let ingress = service.pointer_mut("/status/loadBalancer/ingress").and_then(Value::as_array_mut);
        for one in ingress.into_iter().flatten().filter_map(Value::as_object_mut) {
            let has_ip = one.get("ip").and_then(Value::as_str).is_some_and(|ip| !ip.is_empty());
            if has_ip && !one.contains_key("ipMode") {
                one.insert("ipMode".into(), "VIP".into());
            }
        }
    }
}

fn prepare_update(new: &mut Value, old: &Value) {
    keep_status(new, old);
    drop_type_dependent_fields(new, old);
    drop_internal_traffic_policy(new);
}

/// Drops a valid internal traffic policy from `ExternalName` services, which have no internal traffic.
fn drop_internal_traffic_policy(service: &mut Value) {
    let policy = text_at(service, &["spec", "internalTrafficPolicy"]);
    if kind(service) == "ExternalName" && matches!(policy, "Cluster" | "Local") {
        remove_in(service, "spec", "internalTrafficPolicy");
    }
}

/// On a change of type, drops fields that only the old type needs, if the client sent them back unchanged.
fn drop_type_dependent_fields(new: &mut Value, old: &Value) {
    let unchanged =
        |new: &Value, field: &str| same_pointers(find(new, &["spec", field]), find(old, &["spec", field]));
    if needs_cluster_ip(old) && !needs_cluster_ip(new) {
        if text_at(new, &["spec", "clusterIP"]) == text_at(old, &["spec", "clusterIP"])
            && unchanged(new, "clusterIPs")
        {
            remove_in(new, "spec", "clusterIP");
            remove_in(new, "spec", "clusterIPs");
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if unchanged(new, field) {
                remove_in(new, "spec", field);
            }
        }
    }
    if has_ports_on_nodes(kind(old)) && !has_ports_on_nodes(kind(new)) {
        let before = node_ports(old);
        if node_ports(new).iter().all(|port| before.contains(port)) {
            let ports = new.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
                port.shift_remove("nodePort");
            }
        }
    }
    if needs_health_check(old) && !needs_health_check(new) {
        let read = |service| number_at(service, &["spec", "healthCheckNodePort"]);
        if read(new) == read(old) {
            remove_in(new, "spec", "healthCheckNodePort");
        }
    }
    if kind(old) == "LoadBalancer" && kind(new) != "LoadBalancer" {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if unchanged(new, field) {
                remove_in(new, "spec", field);
            }
        }
    }
    if externally_accessible(old) && !externally_accessible(new) && unchanged(new, "externalTrafficPolicy") {
        remove_in(new, "spec", "externalTrafficPolicy");
    }
    if kind(new) != "LoadBalancer" {
        remove_in(new, "status", "loadBalancer");
    }
}

fn warnings(service: &Value, _: Option<&Value>, out: &mut Vec<String>) {
    let spec = |field| text_at(service, &["spec", field]);
    if find(service, &["metadata", "annotations", "service.kubernetes.io/topology-aware-hints"]).is_some() {
        out.push(
            "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
             service.kubernetes.io/topology-mode instead"
                .into(),
        );
    }
    let headless = kind(service) == "ClusterIP" && spec("clusterIP") == "None";
    if !matches!(spec("clusterIP"), "" | "None") {
        for (i, ip) in strings_at(service, &["spec", "clusterIPs"]).into_iter().enumerate() {
            out.extend(ip::get_warnings_for_ip(&format!("spec.clusterIPs[{i}]"), ip));
        }
    }
    let external_ips = strings_at(service, &["spec", "externalIPs"]);
    if headless {
        if !spec("loadBalancerIP").is_empty() {
            out.push("spec.loadBalancerIP is ignored for headless services".into());
        }
        if !external_ips.is_empty() {
            out.push("spec.externalIPs is ignored for headless services".into());
        }
        if spec("sessionAffinity") != "None" {
            out.push("spec.SessionAffinity is ignored for headless services".into());
        }
    }
    for (i, ip) in external_ips.iter().enumerate() {
        out.extend(ip::get_warnings_for_ip(&format!("spec.externalIPs[{i}]"), ip));
    }
    let external_name = kind(service) == "ExternalName";
    if !external_ips.is_empty() && !headless && !external_name {
        out.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".into());
    }
    if !spec("loadBalancerIP").is_empty() {
        out.extend(ip::get_warnings_for_ip("spec.loadBalancerIP", spec("loadBalancerIP")));
    }
    for (i, cidr) in strings_at(service, &["spec", "loadBalancerSourceRanges"]).into_iter().enumerate() {
        out.extend(ip::get_warnings_for_cidr(&format!("spec.loadBalancerSourceRanges[{i}]"), cidr));
    }
    if external_name && !external_ips.is_empty() {
        out.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".into());
    }
    if !external_name && !spec("externalName").is_empty() {
        out.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".into());
    }
    if spec("trafficDistribution") == "PreferClose" {
        out.push("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".into());
    }
}
