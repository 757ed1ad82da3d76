//! Warnings about pods and templates.

use std::collections::{BTreeMap, BTreeSet};

use k1s_object::{At, Check, ip, names};
use serde_json::Value;

use crate::rules::helpers::{node_labels::deprecated_node_label, quantities};

const DEPRECATED_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Deprecated volume types: field, name in the warning, and message.
const DEPRECATED_VOLUMES: [(&str, &str, &str); 6] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
];

/// The name of a pod, or of an object that pods are named after.
pub(crate) fn name(object: &Value, what: &str, out: &mut Vec<String>) {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let wrong = names::is_dns1123_label(name);
    if !wrong.is_empty() {
        out.push(format!(
            "metadata.name: this is used in {what}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            wrong.join(" ")
        ));
    }
}

/// Warnings about a pod.
pub(crate) fn pod(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_some() {
        return;
    }
    name(new, "the Pod's hostname", out);
    let check = Check::new();
    let at = check.root(new);
    app_armor(at, true, out);
    all(at, false, out);
}

/// Warnings about a template at `path`.
pub(crate) fn template(path: &str, template: Option<&Value>, out: &mut Vec<String>) {
    if let Some(template) = template {
        let check = Check::new();
        all(check.at(path, Some(template)), true, out);
    }
}

fn has_annotation(object: At<'_, '_>, key: &str) -> bool {
    object.get("metadata").get("annotations").map().is_some_and(|map| map.contains_key(key))
}

fn annotation_path(object: At<'_, '_>, key: &str) -> String {
    format!("{}[{key}]", object.get("metadata").get("annotations").path())
}

fn all(object: At<'_, '_>, is_template: bool, out: &mut Vec<String>) {
    let spec = object.get("spec");
    for (key, value) in spec.get("nodeSelector").entries() {
        if let Some(message) = deprecated_node_label(key) {
            out.push(format!("{}: {message}", value.path()));
        }
    }
    let node = spec.get("affinity").get("nodeAffinity");
    for term in node.get("requiredDuringSchedulingIgnoredDuringExecution").get("nodeSelectorTerms").items() {
        node_term(term, false, out);
    }
    for preferred in node.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
        node_term(preferred.get("preference"), true, out);
    }
    for constraint in spec.get("topologySpreadConstraints").items() {
        let key = constraint.get("topologyKey");
        if let Some(message) = deprecated_node_label(key.text()) {
            out.push(format!("{}: {} is {message}", key.path(), key.text()));
        }
        null_selector(constraint.get("labelSelector"), out);
    }
    for (key, message) in DEPRECATED_ANNOTATIONS {
        if has_annotation(object, key) {
            out.push(format!("{}: {message}", annotation_path(object, key)));
        }
    }
    for volume in spec.get("volumes").items() {
        volume_kind(volume, out);
    }
    overlapping_paths(spec.get("volumes"), out);
    repeated(spec.get("hostAliases"), "ip", out);
    repeated(spec.get("imagePullSecrets"), "name", out);
    for secret in spec.get("imagePullSecrets").items() {
        if secret.get("name").is_empty() {
            out.push(format!("{}: invalid empty name \"\"", secret.get("name").path()));
        }
    }
    for resource in ["memory", "ephemeral-storage"] {
        fraction(spec.get("overhead").key(resource), out);
    }
    const SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
    let seccomp = "seccomp.security.alpha.kubernetes.io/pod";
    if !spec.get("securityContext").get("seccompProfile").is_set() && has_annotation(object, seccomp) {
        out.push(format!("{}: {SECCOMP}", annotation_path(object, seccomp)));
    }
    for container in super::spec::containers(spec) {
        let key = format!("container.seccomp.security.alpha.kubernetes.io/{}", container.get("name").text());
        if !container.get("securityContext").get("seccompProfile").is_set() && has_annotation(object, &key) {
            out.push(format!("{}: {SECCOMP}", annotation_path(object, &key)));
        }
        if is_template {
            container_app_armor(object, container, false, out);
        }
        let resources = container.get("resources");
        for resource in ["memory", "ephemeral-storage"] {
            fraction(resources.get("limits").key(resource), out);
            fraction(resources.get("requests").key(resource), out);
        }
        hidden_variables(container.get("env"), out);
    }
    ports(spec, out);
    if spec.get("terminationGracePeriodSeconds").number() < 0 {
        out.push(format!(
            "{}: must be >= 0; negative values are invalid and will be treated as 1",
            spec.get("terminationGracePeriodSeconds").path()
        ));
    }
    for side in ["podAffinity", "podAntiAffinity"] {
        let side = spec.get("affinity").get(side);
        for term in side.get("requiredDuringSchedulingIgnoredDuringExecution").items() {
            null_selector(term.get("labelSelector"), out);
        }
        for weighted in side.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
            null_selector(weighted.get("podAffinityTerm").get("labelSelector"), out);
        }
    }
    for server in spec.get("dnsConfig").get("nameservers").items() {
        out.extend(ip::get_warnings_for_ip(&server.path(), server.text()));
    }
    for alias in spec.get("hostAliases").items() {
        out.extend(ip::get_warnings_for_ip(&alias.get("ip").path(), alias.get("ip").text()));
    }
}

fn null_selector(selector: At<'_, '_>, out: &mut Vec<String>) {
    if !selector.is_set() {
        out.push(format!("{}: a null labelSelector results in matching no pod", selector.path()));
    }
}

fn node_term(term: At<'_, '_>, values: bool, out: &mut Vec<String>) {
    for expression in term.get("matchExpressions").items() {
        let key = expression.get("key");
        if let Some(message) = deprecated_node_label(key.text()) {
            out.push(format!("{}: {} is {message}", key.path(), key.text()));
        }
        if values {
            for value in expression.get("values").items() {
                for message in names::is_valid_label_value(value.text()) {
                    out.push(format!("{}: {} is invalid, {message}", value.path(), value.text()));
                }
            }
        }
    }
}

fn volume_kind(volume: At<'_, '_>, out: &mut Vec<String>) {
    for (kind, shown, why) in DEPRECATED_VOLUMES {
        if volume.get(kind).is_set() {
            out.push(format!("{}: {why}", volume.get(shown).path()));
        }
    }
    let glusterfs = volume.get("glusterfs");
    if glusterfs.is_set() {
        out.push(format!("{}: deprecated in v1.25, non-functional in v1.26+", glusterfs.path()));
    }
    let template = volume.get("ephemeral").get("volumeClaimTemplate");
    if template.is_set() {
        claim(template.get("spec"), out);
    }
    for kind in ["cephfs", "rbd"] {
        if volume.get(kind).is_set() {
            out.push(format!("{}: deprecated in v1.28, non-functional in v1.31+", volume.get(kind).path()));
        }
    }
}

/// The spec of a `PersistentVolumeClaim`.
pub(crate) fn claim(spec: At<'_, '_>, out: &mut Vec<String>) {
    fraction(spec.get("resources").get("requests").key("storage"), out);
    fraction(spec.get("resources").get("limits").key("storage"), out);
}

fn fraction(at: At<'_, '_>, out: &mut Vec<String>) {
    if quantities::parse(at.text()).is_some_and(|amount| amount.milli_value() % 1000 != 0) {
        out.push(format!(
            "{}: fractional byte value {:?} is invalid, must be an integer",
            at.path(),
            at.text()
        ));
    }
}

fn repeated(list: At<'_, '_>, key: &'static str, out: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for item in list.items() {
        let at = item.get(key);
        if !seen.insert(at.text()) {
            out.push(format!("{}: duplicate {key} {:?}", at.path(), at.text()));
        }
    }
}

fn hidden_variables(list: At<'_, '_>, out: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for variable in list.items() {
        let name = variable.get("name").text();
        if seen.insert(name) {
            continue;
        }
        // A variable may refer to its own earlier value.
        let reference = format!("$({name})");
        let value = variable.get("value").text();
        if variable.get("valueFrom").is_set() || value == reference || !value.contains(&reference) {
            out.push(format!(
                "{}: hides previous definition of {name:?}, which may be dropped when using apply",
                variable.path()
            ));
        }
    }
}

/// Maximum number of port pairs, or of path pairs, compared: few warnings fit into a response anyway.
const MAX_COMPARED: usize = 50_000;

/// A container port with its host IP and host port.
type Port<'c, 'v> = (At<'c, 'v>, &'v str, i64);

fn ports(spec: At<'_, '_>, out: &mut Vec<String>) {
    let mut seen: BTreeMap<(i64, &str), Vec<Port<'_, '_>>> = BTreeMap::new();
    let mut compared = 0;
    for container in super::spec::containers(spec) {
        for port in container.get("ports").items() {
            let (ip, host) = (port.get("hostIP").text(), port.get("hostPort").number());
            if !ip.is_empty() && host == 0 {
                out.push(format!(
                    "{}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} Protocol:{} HostIP:{ip}}}",
                    port.path(),
                    port.get("name").text(),
                    port.get("containerPort").number(),
                    port.get("protocol").text(),
                ));
            }
            let key = (port.get("containerPort").number(), port.get("protocol").text());
            let others = seen.entry(key).or_default();
            for (other, other_ip, other_host) in others.iter().copied() {
                compared += 1;
                if compared > MAX_COMPARED {
                    break;
                }
                let how = if ip == other_ip && host == other_host {
                    "duplicate"
                } else if host == 0 || other_host == 0 {
                    "overlapping"
                } else if host == other_host && ip.is_empty() != other_ip.is_empty() {
                    "dangerously ambiguous"
                } else {
                    continue;
                };
                out.push(format!("{}: {how} port definition with {}", port.path(), other.path()));
            }
            others.push((port, ip, host));
        }
    }
    let mut named: BTreeMap<&str, String> = BTreeMap::new();
    for container in super::spec::containers(spec) {
        for port in container.get("ports").items() {
            let name = port.get("name").text();
            if name.is_empty() {
                continue;
            }
            match named.get(name) {
                Some(other) => out.push(format!(
                    "{}: duplicate port name {name:?} with {other}, services and probes that select ports by name will use {other}",
                    port.path()
                )),
                None => {
                    named.insert(name, port.path());
                }
            }
        }
    }
}

fn app_armor(object: At<'_, '_>, is_pod: bool, out: &mut Vec<String>) {
    if object.get("spec").get("os").get("name").text() == "windows" {
        return;
    }
    for container in super::spec::containers(object.get("spec")) {
        container_app_armor(object, container, is_pod, out);
    }
}

fn container_app_armor(object: At<'_, '_>, container: At<'_, '_>, is_pod: bool, out: &mut Vec<String>) {
    let key = format!("{}{}", super::security::APP_ARMOR, container.get("name").text());
    let own = container.get("securityContext").get("appArmorProfile");
    let annotation = object.get("metadata").get("annotations").map().and_then(|map| map.get(&key));
    let known = annotation.and_then(Value::as_str).is_some_and(|text| {
        matches!(text, "unconfined" | "runtime/default")
            || text.strip_prefix("localhost/").is_some_and(|name| !name.is_empty())
    });
    // The field was copied from the annotation, unless the profile of the whole pod is the same.
    let warn = if is_pod { own.is_set() || !known } else { !own.is_set() };
    if annotation.is_some() && warn {
        out.push(format!(
            "{}: deprecated since v1.30; use the \"appArmorProfile\" field instead",
            annotation_path(object, &key)
        ));
    }
}

fn overlapping_paths(volumes: At<'_, '_>, out: &mut Vec<String>) {
    let mut compared = 0;
    for volume in volumes.items() {
        let name = volume.get("name").text();
        let mut overlap = |what: &str, taken: &mut Vec<(String, String)>, path: &str, source: &str| {
            let path = path.trim_end_matches('/').to_owned();
            let shown = |path: &str, source: &str| {
                if source.is_empty() { format!("{path:?}") } else { format!("{path:?} ({source})") }
            };
            if !path.is_empty() {
                let within = |inner: &str, outer: &str| {
                    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                };
                for (other, other_source) in taken.iter().filter(|(other, _)| !other.is_empty()) {
                    compared += 1;
                    if compared > MAX_COMPARED {
                        break;
                    }
                    if within(other, &path) || within(&path, other) {
                        out.push(format!(
                            "volume {name:?} ({what}): overlapping paths: {} with {}",
                            shown(&path, source),
                            shown(other, other_source)
                        ));
                    }
                }
            }
            taken.push((path, source.to_owned()));
        };
        for (kind, label, key) in [
            ("configMap", "ConfigMap", "name"),
            ("secret", "Secret", "secretName"),
            ("downwardAPI", "DownwardAPI", ""),
        ] {
            let at = volume.get(kind);
            let what =
                if key.is_empty() { label.to_owned() } else { format!("{label} {:?}", at.get(key).text()) };
            let mut taken = Vec::new();
            for item in at.get("items").items() {
                overlap(&what, &mut taken, item.get("path").text(), "");
            }
        }
        let mut taken = Vec::new();
        for source in volume.get("projected").get("sources").items() {
            if source.map().is_none_or(serde_json::Map::is_empty) {
                continue;
            }
            for (kind, label) in
                [("configMap", "ConfigMap"), ("secret", "Secret"), ("downwardAPI", "DownwardAPI")]
            {
                let at = source.get(kind);
                let from = match kind {
                    "downwardAPI" => label.to_owned(),
                    _ => format!("{label} {:?}", at.get("name").text()),
                };
                for item in at.get("items").items() {
                    overlap("Projected", &mut taken, item.get("path").text(), &from);
                }
            }
            let token = source.get("serviceAccountToken");
            if token.is_set() {
                overlap("Projected", &mut taken, token.get("path").text(), "ServiceAccountToken");
            }
        }
    }
}
