//! Valid objects with one value replaced by an unexpected one.

use k1s_object::Check;
use serde_json::{Value, json};

use crate::{
    admission::{limit_ranger, resource_quota},
    allocation,
    rules::{Rules, core::event, find},
};

/// All objects that differ from `value` in one place.
fn variants(value: &Value) -> Vec<Value> {
    let odd = [
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(i64::MAX),
        json!(1.5),
        json!(""),
        json!("None"),
        json!("1e99999"),
        json!("é/..%ß-"),
        json!([]),
        json!(["", "", ""]),
        json!([{}, {}]),
        json!({}),
        json!({"": {"": null}}),
    ];
    let mut out = odd.to_vec();
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                for variant in variants(inner) {
                    let mut map = map.clone();
                    map.insert(key.clone(), variant);
                    out.push(Value::Object(map));
                }
            }
        }
        Value::Array(items) => {
            for (i, inner) in items.iter().enumerate() {
                for variant in variants(inner) {
                    let mut items = items.clone();
                    items[i] = variant;
                    out.push(Value::Array(items));
                }
            }
        }
        _ => {}
    }
    out
}

fn exercise(rules: &Rules, new: &Value, old: &Value) {
    let mut object = new.clone();
    (rules.defaults)(&mut object);
    for prepare in [rules.prepare_update, rules.prepare_status] {
        let mut object = object.clone();
        prepare(&mut object, old);
    }
    (rules.prepare_create)(&mut object);
    let check = Check::new();
    (rules.validate)(check.root(&object));
    (rules.validate_update)(check.root(&object), check.root(old));
    (rules.validate_status)(check.root(&object), check.root(old));
    let mut out = Vec::new();
    (rules.warnings)(&object, Some(old), &mut out);
    (rules.warnings)(&object, None, &mut out);
    out.extend(rules.fields.iter().map(|field| (field.read)(&object)));
    let _: Vec<String> = check.take().iter().map(ToString::to_string).collect();
}

#[test]
fn no_variant_makes_a_rule_panic() {
    let resources = json!({"requests": {"cpu": "1", "storage": "1Gi"}, "limits": {"cpu": "2"}});
    for (group, kind, object) in [
        ("", "ConfigMap", json!({"data": {"a": "b"}, "binaryData": {"c": "YQ=="}, "immutable": true})),
        (
            "",
            "Secret",
            json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "YQ=="}, "stringData": {"k": "v"}}),
        ),
        ("", "Secret", json!({"type": "kubernetes.io/dockercfg", "data": {".dockercfg": "e30="}})),
        ("", "ServiceAccount", json!({"secrets": [{"name": "s"}]})),
        (
            "",
            "Namespace",
            json!({"metadata": {"name": "n", "labels": {}}, "spec": {"finalizers": ["x.y/z"]}, "status": {"phase": "Active"}}),
        ),
        (
            "",
            "Node",
            json!({
                "spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24", "x"], "taints": [{"key": "a", "effect": "NoSchedule"}]},
                "status": {"capacity": {"cpu": "1"}, "addresses": [{"type": "Hostname", "address": "h"}]},
            }),
        ),
        (
            "",
            "Event",
            json!({"involvedObject": {"namespace": "n"}, "eventTime": "x", "series": {"count": 1}}),
        ),
        (
            "events.k8s.io",
            "Event",
            json!({"regarding": {"namespace": "n"}, "eventTime": "x", "series": {"count": 1}, "note": "n"}),
        ),
        (
            "",
            "Service",
            json!({
                "spec": {
                    "type": "LoadBalancer", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "::1"], "selector": {"a": "b"},
                    "ports": [{"port": 80, "name": "a", "nodePort": 30000}, {"port": 80, "protocol": "UDP"}],
                    "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "PreferDualStack", "externalIPs": ["1.2.3.4"],
                    "sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {}}, "externalTrafficPolicy": "Local",
                    "loadBalancerSourceRanges": ["10.0.0.0/8"], "healthCheckNodePort": 30001,
                },
                "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4", "hostname": "x"}]}},
            }),
        ),
        (
            "",
            "Endpoints",
            json!({"subsets": [{"addresses": [{"ip": "1.2.3.4", "nodeName": "n"}], "ports": [{"port": 1}]}]}),
        ),
        (
            "",
            "PersistentVolume",
            json!({
                "spec": {
                    "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                    "iscsi": {"targetPortal": "x", "iqn": "iqn.2001-04.com:x", "initiatorName": "eui.1"},
                    "quobyte": {"registry": "a:1"}, "flexVolume": {"options": {"a/b": "c"}}, "csi": {"driver": "x"},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt"}], "matchFields": [{}]}]}},
                },
            }),
        ),
        (
            "",
            "PersistentVolumeClaim",
            json!({
                "spec": {"resources": resources, "accessModes": ["ReadWriteOnce"], "dataSource": {"kind": "X", "name": "y"}, "selector": {"matchLabels": {"a": "b"}}},
                "status": {"allocatedResources": {"storage": "1"}, "allocatedResourceStatuses": {"storage": "x"}},
            }),
        ),
        (
            "",
            "ResourceQuota",
            json!({"spec": {"hard": {"pods": "1", "cpu": "0.0001"}, "scopes": ["BestEffort"], "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["x"]}]}}}),
        ),
        (
            "",
            "LimitRange",
            json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "0"}, "maxLimitRequestRatio": {"cpu": "2"}}]}}),
        ),
        ("coordination.k8s.io", "Lease", json!({"spec": {"leaseDurationSeconds": 1, "leaseTransitions": 1}})),
        (
            "discovery.k8s.io",
            "EndpointSlice",
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"], "hints": {"forZones": [{"name": "z"}]}}], "ports": [{"port": 1}]}),
        ),
        (
            "networking.k8s.io",
            "Ingress",
            json!({"spec": {"rules": [{"host": "*.x", "http": {"paths": [{"path": "/", "pathType": "Exact", "backend": {"service": {"name": "s", "port": {"number": 1}}}}]}}], "tls": [{"hosts": ["x"]}]}}),
        ),
        (
            "networking.k8s.io",
            "IngressClass",
            json!({"spec": {"controller": "a.b/c", "parameters": {"kind": "k", "name": "n"}}}),
        ),
        (
            "networking.k8s.io",
            "NetworkPolicy",
            json!({"spec": {"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}], "ports": [{"port": 1, "endPort": 2}]}]}}),
        ),
        ("networking.k8s.io", "IPAddress", json!({"spec": {"parentRef": {"resource": "r", "name": "n"}}})),
        ("networking.k8s.io", "ServiceCIDR", json!({"spec": {"cidrs": ["10.0.0.0/8", "::/64"]}})),
    ] {
        let rules = find(group, "v1", kind).unwrap();
        for variant in variants(&object) {
            exercise(rules, &variant, &object);
            exercise(rules, &object, &variant);
            if kind == "Service" {
                for (mut new, old) in [
                    (variant.clone(), None),
                    (variant.clone(), Some(&object)),
                    (object.clone(), Some(&variant)),
                ] {
                    (rules.defaults)(&mut new);
                    if let Ok(plan) = allocation::allocation_plan(&mut new, old) {
                        for take in &plan.take_ips {
                            allocation::AllocationPlan::set_ip(&mut new, take, "10.0.0.9");
                        }
                        for take in &plan.take_ports {
                            allocation::AllocationPlan::set_port(&mut new, take, 30002);
                        }
                    }
                }
            }
            if kind == "Event" {
                let _ = (event::to_core(&variant), event::to_events(&variant));
            }
            let pod = json!({"spec": {"containers": [{"name": "c", "resources": resources}]}});
            if kind == "LimitRange" {
                limit_ranger::apply_defaults(&mut pod.clone(), &variant);
                let _ = (limit_ranger::check_pod(&pod, &variant), limit_ranger::check_claim(&pod, &variant));
            }
            if kind == "ResourceQuota" {
                let mut quota = variant.clone();
                if let (Some(quota), Some(spec)) = (quota.as_object_mut(), variant.get("spec")) {
                    quota
                        .insert("status".into(), json!({"hard": spec.get("hard"), "used": spec.get("hard")}));
                }
                let _ = resource_quota::charge(&[quota], "", "pods", &pod, None);
                resource_quota::status(&variant, [("", "pods", &pod)].into_iter());
            }
        }
    }
}
