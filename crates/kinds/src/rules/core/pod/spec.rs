//! The spec of a pod, in a pod or in a template.

use k1s_object::{At, ip, names};

use super::{containers, containers::Pod, probes::Grace, resources, scheduling, security, volumes};
use crate::rules::helpers::{
    errors::invalid_each,
    labels,
    numbers::{non_negative, range},
    text::{dns_label, dns_subdomain, one_of},
};

/// All containers: init, regular, ephemeral.
pub(crate) fn containers<'c, 'v>(spec: At<'c, 'v>) -> impl Iterator<Item = At<'c, 'v>> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(move |list| spec.get(list).items())
}

/// Checks shared by pods and templates. `name` is the name of the pod, empty in a template.
pub(crate) fn spec(spec: At<'_, '_>, name: &str, is_pod: bool) {
    let period = spec.get("terminationGracePeriodSeconds");
    if !period.is_set() {
        period.required("");
    }
    let host_users = spec.get("hostUsers").bool() != Some(false);
    let volumes = volumes::all(spec.get("volumes"), name);
    let claims = resources::claims(spec.get("resourceClaims"));
    let os = spec.get("os");
    let pod = Pod {
        volumes,
        claims,
        grace: Grace { period: period.int(), os: os.is_set().then(|| os.get("name").text()) },
        restart_policy: spec.get("restartPolicy").text(),
        host_users,
    };
    containers::regular(spec.get("containers"), &pod);
    containers::init(spec.get("initContainers"), spec.get("containers"), &pod);
    containers::ephemeral(spec, &pod);
    resources::pod_level(spec);
    host_network_ports(spec, is_pod);
    one_of(spec.get("restartPolicy"), &["Always", "OnFailure", "Never"]);
    one_of(spec.get("dnsPolicy"), &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    labels::labels(spec.get("nodeSelector"));
    security::pod(spec);
    if spec.get("shareProcessNamespace").is_true() && spec.get("hostPID").is_true() {
        spec.get("shareProcessNamespace").invalid("ShareProcessNamespace and HostPID cannot both be enabled");
    }
    scheduling::affinity(spec.get("affinity"));
    dns_config(spec);
    scheduling::gates(spec);
    scheduling::topology_spread(spec.get("topologySpreadConstraints"));
    security::host_process(spec);
    host_users_only(spec);
    hostname_override(spec);
    for name in ["serviceAccountName", "nodeName"] {
        let at = spec.get(name);
        if !at.is_empty() {
            invalid_each(at, names::is_dns1123_subdomain(at.text()));
        }
    }
    if spec.get("activeDeadlineSeconds").is_set() {
        range(spec.get("activeDeadlineSeconds"), 1, i64::from(i32::MAX));
    }
    for name in ["hostname", "subdomain"] {
        if !spec.get(name).is_empty() {
            dns_label(spec.get(name));
        }
    }
    scheduling::tolerations(spec.get("tolerations"));
    for alias in spec.get("hostAliases").items() {
        ip::is_valid_ip_for_legacy_field(alias.get("ip"), true, &[]);
        for hostname in alias.get("hostnames").items() {
            dns_subdomain(hostname);
        }
    }
    for name in ["priorityClassName", "runtimeClassName"] {
        let at = spec.get(name);
        if !at.is_empty() || (name == "runtimeClassName" && at.is_set()) {
            invalid_each(at, names::is_dns1123_subdomain(at.text()));
        }
    }
    let preemption = spec.get("preemptionPolicy");
    if preemption.is_set() {
        one_of(preemption, &["PreemptLowerPriority", "Never"]);
    }
    if spec.get("overhead").is_set() {
        resources::overhead(spec.get("overhead"));
    }
    security::operating_system(spec);
    file_keys(spec);
}

fn host_network_ports(spec: At<'_, '_>, is_pod: bool) {
    if !spec.get("hostNetwork").is_true() {
        return;
    }
    for container in spec.get("containers").items() {
        for port in container.get("ports").items() {
            let (host, inner) = (port.get("hostPort"), port.get("containerPort"));
            if (is_pod || host.number() != 0) && host.number() != inner.number() {
                host.invalid_as(host.number(), "must match `containerPort` when `hostNetwork` is true");
            }
        }
    }
}

fn dns_config(spec: At<'_, '_>) {
    let config = spec.get("dnsConfig");
    let servers = config.get("nameservers");
    if spec.get("dnsPolicy").text() == "None" {
        if !config.is_set() {
            config.required("must provide `dnsConfig` when `dnsPolicy` is None");
            return;
        }
        if servers.is_empty() {
            servers.required("must provide at least one DNS nameserver when `dnsPolicy` is None");
            return;
        }
    }
    if servers.len() > 3 {
        servers.invalid("must not have more than 3 nameservers");
    }
    for server in servers.items() {
        ip::is_valid_ip_for_legacy_field(server, true, &[]);
    }
    let searches = config.get("searches");
    if searches.len() > 32 {
        searches.invalid("must not have more than 32 search paths");
    }
    let length: usize = searches.items().map(|search| search.text().len() + 1).sum();
    if length > 2048 + 1 {
        searches.invalid("must not have more than 2048 characters (including spaces) in the search list");
    }
    for search in searches.items() {
        let text = search.text();
        if text != "." {
            let text = text.strip_suffix('.').unwrap_or(text);
            for message in names::is_dns1123_subdomain_with_underscore(text) {
                search.invalid_as(text, message);
            }
        }
    }
    for option in config.get("options").items() {
        if option.get("name").is_empty() {
            option.required("must not be empty");
        }
    }
}

fn host_users_only(spec: At<'_, '_>) {
    if spec.get("hostUsers").bool() != Some(false) {
        return;
    }
    const WHY: &str = "when `hostUsers` is false";
    if spec.get("hostNetwork").is_true() {
        spec.get("hostNetwork").forbidden(WHY);
    }
    // Kubernetes uses the names of the Go fields here.
    if spec.get("hostPID").is_true() {
        spec.get("HostPID").forbidden(WHY);
    }
    if spec.get("hostIPC").is_true() {
        spec.get("HostIPC").forbidden(WHY);
    }
    for container in containers(spec) {
        if !container.get("volumeDevices").is_empty() {
            container.get("volumeDevices").forbidden(WHY);
        }
    }
}

fn hostname_override(spec: At<'_, '_>) {
    let at = spec.get("hostnameOverride");
    if !at.is_set() {
        return;
    }
    if spec.get("setHostnameAsFQDN").is_true() {
        at.forbidden("may not be specified when setHostnameAsFQDN is true");
    }
    if spec.get("hostNetwork").is_true() {
        at.forbidden("may not be specified when hostNetwork is true");
    }
    if at.text().len() > 64 {
        at.too_long(64);
    }
    dns_subdomain(at);
}

/// Environment variables from files: their volume must be an `emptyDir`.
fn file_keys(spec: At<'_, '_>) {
    for container in containers(spec) {
        for variable in container.get("env").items() {
            let file = variable.get("valueFrom").get("fileKeyRef");
            if !file.is_set() {
                continue;
            }
            let name = file.get("volumeName");
            let volume =
                spec.get("volumes").items().filter(|one| one.get("name").text() == name.text()).last();
            match volume {
                None => name.not_found(),
                Some(volume) if !volume.get("emptyDir").is_set() => {
                    name.invalid("referenced volume must be of type emptyDir");
                }
                Some(_) => {}
            }
        }
    }
}

/// Validates a pod, on create and on update.
pub(crate) fn pod(pod: At<'_, '_>) {
    let (metadata, spec_at) = (pod.get("metadata"), pod.get("spec"));
    security::annotations(metadata.get("annotations"), spec_at);
    spec(spec_at, metadata.get("name").text(), true);
    if spec_at.get("serviceAccountName").is_empty() {
        for volume in spec_at.get("volumes").items() {
            for source in volume.get("projected").get("sources").items() {
                let token = source.get("serviceAccountToken");
                if token.is_set() {
                    token.forbidden("must not be specified when serviceAccountName is not set");
                }
            }
        }
    }
    non_negative(spec_at.get("terminationGracePeriodSeconds"));
    for list in ["containers", "initContainers"] {
        for container in spec_at.get(list).items() {
            containers::image_is_trimmed(container);
        }
    }
}

/// Validates a pod template. Paths of `labels` and `annotations` lack `metadata`, as in Kubernetes.
pub(crate) fn template(template: At<'_, '_>) {
    let metadata = template.get("metadata");
    let spec_at = template.get("spec");
    let annotations = template.get("annotations").with(metadata.get("annotations").value());
    labels::labels(template.get("labels").with(metadata.get("labels").value()));
    labels::annotations(annotations);
    security::annotations(annotations, spec_at);
    spec(spec_at, "", false);
    security::annotations_match_fields(metadata, spec_at);
    if !spec_at.get("ephemeralContainers").is_empty() {
        spec_at.get("ephemeralContainers").forbidden("ephemeral containers not allowed in pod template");
    }
}

/// The restart policy of the template of a long-running workload.
pub(crate) fn always_restarts(template: At<'_, '_>, kind: &str) {
    let policy = template.get("spec").get("restartPolicy");
    if policy.text() != "Always" {
        policy.not_supported(&["Always"]);
    }
    let deadline = template.get("spec").get("activeDeadlineSeconds");
    if deadline.is_set() {
        deadline.forbidden(format!("activeDeadlineSeconds in {kind} is not Supported"));
    }
}
