//! Defaults of pods and of everything that has a pod template.

use serde_json::{Value, json};

use super::{disabled, image};
use crate::rules::helpers::{
    json::{Object, child, default_pointer, default_value, each, existing, object, text, unset, zero},
    quantities::round_up,
};

pub(crate) fn pod(value: &mut Value) {
    let pod = object(value);
    disabled::drop_annotations(pod.get_mut("metadata"));
    let spec = child(pod, "spec");
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|period| period < 0) {
        spec.insert("terminationGracePeriodSeconds".into(), 1.into());
    }
    for list in ["containers", "initContainers"] {
        for container in each(spec, list) {
            if let Some(resources) = existing(container, "resources") {
                requests_from_limits(resources);
            }
        }
    }
    default_pointer(spec, "enableServiceLinks", true);
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        for list in ["containers", "initContainers"] {
            for container in each(spec, list) {
                for port in each(container, "ports") {
                    if zero(port, "hostPort")
                        && let Some(number) = port.get("containerPort").cloned()
                    {
                        port.insert("hostPort".into(), number);
                    }
                }
            }
        }
    }
    pod_spec(spec);
    if let Some(status) = existing(pod, "status") {
        pod_ips(status);
        for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
            for container in each(status, list) {
                round_up(container.get_mut("allocatedResources"));
                if let Some(resources) = existing(container, "resources") {
                    resource_lists(resources);
                }
            }
        }
    }
}

/// Synchronizes `podIP` and `podIPs`; `podIP` takes precedence.
fn pod_ips(status: &mut Object) {
    let single = text(status, "podIP").to_owned();
    let first = status.get("podIPs").and_then(|list| list.pointer("/0/ip")).and_then(Value::as_str);
    match (single.is_empty(), first) {
        (false, first) if first != Some(single.as_str()) => {
            status.insert("podIPs".into(), json!([{"ip": single}]));
        }
        (true, Some(first)) => {
            let first = first.to_owned();
            status.insert("podIP".into(), first.into());
        }
        _ => {}
    }
}

fn requests_from_limits(resources: &mut Object) {
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    let requests = child(resources, "requests");
    for (name, limit) in limits {
        requests.entry(name).or_insert(limit);
    }
}

/// Defaults of a pod template that is a struct by value: created if missing, with its spec.
pub(crate) fn template(parent: &mut Object, key: &str) {
    let template = child(parent, key);
    disabled::drop_annotations(template.get_mut("metadata"));
    pod_spec(child(template, "spec"));
}

/// Defaults of the spec of a pod or a template.
fn pod_spec(spec: &mut Object) {
    disabled::drop(spec);
    let mut account = text(spec, "serviceAccountName").to_owned();
    if account.is_empty() {
        account = text(spec, "serviceAccount").to_owned();
    }
    if !account.is_empty() {
        spec.insert("serviceAccountName".into(), account.as_str().into());
        spec.insert("serviceAccount".into(), account.into());
    }
    default_value(spec, "dnsPolicy", "ClusterFirst");
    default_value(spec, "restartPolicy", "Always");
    default_pointer(spec, "securityContext", json!({}));
    default_pointer(spec, "terminationGracePeriodSeconds", 30);
    default_value(spec, "schedulerName", "default-scheduler");
    for one in each(spec, "volumes") {
        volume(one);
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for one in each(spec, list) {
            container(one);
        }
    }
    round_up(spec.get_mut("overhead"));
    if let Some(resources) = existing(spec, "resources") {
        resource_lists(resources);
    }
}

fn container(container: &mut Object) {
    if zero(container, "imagePullPolicy") {
        let policy = pull_policy(text(container, "image"));
        container.insert("imagePullPolicy".into(), policy.into());
    }
    default_value(container, "terminationMessagePath", "/dev/termination-log");
    default_value(container, "terminationMessagePolicy", "File");
    for port in each(container, "ports") {
        default_value(port, "protocol", "TCP");
    }
    for variable in each(container, "env") {
        if let Some(source) = existing(variable, "valueFrom") {
            if let Some(field) = existing(source, "fieldRef") {
                default_value(field, "apiVersion", "v1");
            }
            if let Some(file) = existing(source, "fileKeyRef") {
                default_pointer(file, "optional", false);
            }
        }
    }
    if let Some(resources) = existing(container, "resources") {
        resource_lists(resources);
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = existing(container, name) else { continue };
        default_value(probe, "timeoutSeconds", 1);
        default_value(probe, "periodSeconds", 10);
        default_value(probe, "successThreshold", 1);
        default_value(probe, "failureThreshold", 3);
        http_get(probe);
        if let Some(grpc) = existing(probe, "grpc") {
            default_pointer(grpc, "service", "");
        }
    }
    if let Some(lifecycle) = existing(container, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(handler) = existing(lifecycle, hook) {
                http_get(handler);
            }
        }
    }
}

fn pull_policy(image: &str) -> &'static str {
    if image::tag(image) == "latest" { "Always" } else { "IfNotPresent" }
}

fn http_get(handler: &mut Object) {
    if let Some(get) = existing(handler, "httpGet") {
        default_value(get, "path", "/");
        default_value(get, "scheme", "HTTP");
    }
}

fn volume(volume: &mut Object) {
    if !volume.iter().any(|(key, value)| key != "name" && !value.is_null()) {
        volume.insert("emptyDir".into(), json!({}));
    }
    if let Some(image) = existing(volume, "image")
        && zero(image, "pullPolicy")
    {
        let policy = pull_policy(text(image, "reference"));
        image.insert("pullPolicy".into(), policy.into());
    }
    if let Some(path) = existing(volume, "hostPath") {
        default_pointer(path, "type", "");
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = existing(volume, source) {
            default_pointer(source, "defaultMode", 0o644);
        }
    }
    if let Some(iscsi) = existing(volume, "iscsi") {
        default_value(iscsi, "iscsiInterface", "default");
    }
    if let Some(rbd) = existing(volume, "rbd") {
        default_value(rbd, "pool", "rbd");
        default_value(rbd, "user", "admin");
        default_value(rbd, "keyring", "/etc/ceph/keyring");
    }
    if let Some(downward) = existing(volume, "downwardAPI") {
        downward_items(downward);
    }
    if let Some(disk) = existing(volume, "azureDisk") {
        default_pointer(disk, "cachingMode", "ReadWrite");
        default_pointer(disk, "fsType", "ext4");
        default_pointer(disk, "readOnly", false);
        default_pointer(disk, "kind", "Shared");
    }
    if let Some(projected) = existing(volume, "projected") {
        for source in each(projected, "sources") {
            if let Some(downward) = existing(source, "downwardAPI") {
                downward_items(downward);
            }
            if let Some(token) = existing(source, "serviceAccountToken") {
                default_pointer(token, "expirationSeconds", 3600);
            }
        }
    }
    if let Some(scale_io) = existing(volume, "scaleIO") {
        default_value(scale_io, "storageMode", "ThinProvisioned");
        default_value(scale_io, "fsType", "xfs");
    }
    if let Some(ephemeral) = existing(volume, "ephemeral")
        && let Some(claim) = existing(ephemeral, "volumeClaimTemplate")
    {
        claim_spec(child(claim, "spec"));
    }
}

fn downward_items(source: &mut Object) {
    for item in each(source, "items") {
        if let Some(field) = existing(item, "fieldRef") {
            default_value(field, "apiVersion", "v1");
        }
    }
}

/// Defaults of the spec of a `PersistentVolumeClaim`.
fn claim_spec(spec: &mut Object) {
    default_pointer(spec, "volumeMode", "Filesystem");
    if let Some(resources) = existing(spec, "resources") {
        resource_lists(resources);
    }
}

/// Defaults of a `PersistentVolumeClaim` in a `StatefulSet`.
pub(crate) fn claim(claim: &mut Object) {
    default_value(child(claim, "status"), "phase", "Pending");
    claim_spec(child(claim, "spec"));
}

fn resource_lists(resources: &mut Object) {
    for key in ["limits", "requests"] {
        round_up(resources.get_mut(key));
    }
}

/// The default tolerations: pods leave an unready or unreachable node after five minutes.
pub(crate) fn tolerations(spec: &mut Object) {
    const KEYS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    let missing: Vec<&str> = KEYS
        .into_iter()
        .filter(|taint| {
            !each(spec, "tolerations").any(|one| {
                let (key, effect) = (text(one, "key"), text(one, "effect"));
                (key == *taint || key.is_empty()) && (effect == "NoExecute" || effect.is_empty())
            })
        })
        .collect();
    if missing.is_empty() {
        return;
    }
    let list = spec.entry("tolerations").or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([]);
    }
    if let Some(list) = list.as_array_mut() {
        list.extend(missing.into_iter().map(
            |key| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
        ));
    }
}

/// The defaults of admission plugins that need no other objects: tolerations, priority and preemption policy.
pub fn admission_defaults(pod: &mut Value) {
    let spec = child(object(pod), "spec");
    tolerations(spec);
    if text(spec, "priorityClassName").is_empty() {
        default_pointer(spec, "priority", 0);
        default_pointer(spec, "preemptionPolicy", "PreemptLowerPriority");
    }
}

/// Defaults that Jobs and the Job templates of `CronJobs` share.
pub(crate) fn job_policies(spec: &mut Object) {
    // The field of a disabled feature.
    spec.shift_remove("scheduling");
    if let Some(policy) = existing(spec, "podFailurePolicy") {
        for rule in each(policy, "rules") {
            for pattern in each(rule, "onPodConditions") {
                default_value(pattern, "status", "True");
            }
        }
    }
}

/// Defaults of a `ReplicationController`.
pub(crate) fn replication_controller(value: &mut Value) {
    let labels = value.pointer("/spec/template/metadata/labels").filter(|labels| labels.is_object()).cloned();
    let controller = object(value);
    if let Some(labels) = labels {
        if zero(child(controller, "spec"), "selector") {
            child(controller, "spec").insert("selector".into(), labels.clone());
        }
        if zero(child(controller, "metadata"), "labels") {
            child(controller, "metadata").insert("labels".into(), labels);
        }
    }
    let spec = child(controller, "spec");
    default_pointer(spec, "replicas", 1);
    if !unset(spec, "template") {
        template(spec, "template");
    }
}

/// Defaults of a `PodTemplate`.
pub(crate) fn pod_template(value: &mut Value) {
    template(object(value), "template");
}
