//! Containers: regular, init and ephemeral ones.

use std::collections::{BTreeMap, BTreeSet};

use k1s_object::{At, names};

use super::{
    env, probes,
    probes::Grace,
    resources, security,
    volumes::{Volumes, is_claim},
};
use crate::rules::helpers::{
    errors::invalid_each,
    text::{descending_path, dns_label, has_backsteps, one_of, one_of_or_unset, required},
};

/// The properties of a pod that its containers are validated against.
pub(crate) struct Pod<'c, 'v> {
    /// The volumes that may be mounted.
    pub(crate) volumes: Volumes<'c, 'v>,
    /// The names of `spec.resourceClaims`.
    pub(crate) claims: BTreeSet<&'v str>,
    /// Grace period and operating system.
    pub(crate) grace: Grace<'v>,
    /// `spec.restartPolicy`
    pub(crate) restart_policy: &'v str,
    /// Whether the pod uses the user namespace of the host.
    pub(crate) host_users: bool,
}

/// `spec.containers`
pub(crate) fn regular(list: At<'_, '_>, pod: &Pod<'_, '_>) {
    if list.is_empty() {
        list.required("");
        return;
    }
    let mut seen = BTreeSet::new();
    for container in list.items() {
        common(container, pod);
        let name = container.get("name");
        if !seen.insert(name.text()) {
            name.check().push(k1s_object::FieldError::duplicate(name.path(), name.text()));
        }
        probes::all(container, pod.grace);
        restart_policy(container);
    }
    let mut ports = BTreeSet::new();
    for container in list.items() {
        host_ports(container, &mut ports);
    }
}

/// `spec.initContainers`
pub(crate) fn init(list: At<'_, '_>, regular: At<'_, '_>, pod: &Pod<'_, '_>) {
    let mut seen: BTreeSet<&str> = regular.items().map(|one| one.get("name").text()).collect();
    for container in list.items() {
        common(container, pod);
        restart_policy(container);
        let name = container.get("name");
        if seen.contains(name.text()) {
            name.duplicate();
        } else if !name.is_empty() {
            seen.insert(name.text());
        }
        // Kubernetes checks conflicts within one container, under the index 0.
        host_ports(list.index(0).with(container.value()), &mut BTreeSet::new());
        let sidecar = container.get("restartPolicy").text() == "Always";
        if sidecar {
            probes::all(container, pod.grace);
        } else {
            for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if container.get(field).is_set() {
                    container
                        .get(field)
                        .forbidden("may not be set for init containers without restartPolicy=Always");
                }
            }
            for policy in container.get("resizePolicy").items() {
                let restart = policy.get("restartPolicy");
                if restart.text() == "RestartContainer" {
                    restart.invalid("must not be set to 'RestartContainer' for non-sidecar initContainers");
                }
            }
        }
    }
}

/// `spec.ephemeralContainers`
pub(crate) fn ephemeral(spec: At<'_, '_>, pod: &Pod<'_, '_>) {
    let others: BTreeSet<&str> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| spec.get(list).items().map(|one| one.get("name").text()))
        .collect();
    let mut seen = others.clone();
    for container in spec.get("ephemeralContainers").items() {
        common(container, pod);
        image_is_trimmed(container);
        let name = container.get("name");
        if !seen.insert(name.text()) {
            name.check().push(k1s_object::FieldError::duplicate(name.path(), name.text()));
        }
        let target = container.get("targetContainerName");
        if !target.is_empty() && !others.contains(target.text()) {
            target.not_found();
        }
        for field in [
            "ports",
            "resources",
            "resizePolicy",
            "restartPolicy",
            "restartPolicyRules",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle",
        ] {
            let at = container.get(field);
            let set = if field == "resources" {
                ["limits", "requests", "claims"].iter().any(|part| !at.get(part).is_empty())
            } else {
                at.is_set() && !(at.value().is_some_and(serde_json::Value::is_array) && at.is_empty())
            };
            if set {
                at.forbidden("cannot be set for an Ephemeral Container");
            }
        }
        for mount in container.get("volumeMounts").items() {
            for field in ["subPath", "subPathExpr"] {
                if !mount.get(field).is_empty() {
                    mount.get(field).forbidden("cannot be set for an Ephemeral Container");
                }
            }
        }
    }
}

/// The image of a pod's container has no surrounding spaces; templates are not checked for that.
pub(crate) fn image_is_trimmed(container: At<'_, '_>) {
    let image = container.get("image");
    if image.text().trim().len() != image.text().len() {
        image.invalid("must not have leading or trailing whitespace");
    }
}

fn common(container: At<'_, '_>, pod: &Pod<'_, '_>) {
    let name = container.get("name");
    if name.is_empty() {
        name.required("");
    } else {
        dns_label(name);
    }
    required(container.get("image"));
    one_of(container.get("terminationMessagePolicy"), &["File", "FallbackToLogsOnError"]);
    ports(container.get("ports"));
    env::variables(container.get("env"));
    env::sources(container.get("envFrom"));
    mounts(container, pod);
    devices(container, pod);
    one_of(container.get("imagePullPolicy"), &["Always", "IfNotPresent", "Never"]);
    resources::container(container.get("resources"), &pod.claims);
    resize_policy(container.get("resizePolicy"), pod.restart_policy);
    security::container(container.get("securityContext"), pod.host_users);
}

fn ports(list: At<'_, '_>) {
    let mut seen = BTreeSet::new();
    for port in list.items() {
        let name = port.get("name");
        if !name.is_empty() {
            let wrong = names::is_valid_port_name(name.text());
            if !wrong.is_empty() {
                invalid_each(name, wrong);
            } else if !seen.insert(name.text()) {
                name.duplicate();
            }
        }
        let number = port.get("containerPort");
        if number.number() == 0 {
            number.required("");
        } else {
            names::is_valid_port_num(number.number()).into_iter().for_each(|message| number.invalid(message));
        }
        let host = port.get("hostPort");
        if host.number() != 0 {
            names::is_valid_port_num(host.number()).into_iter().for_each(|message| host.invalid(message));
        }
        one_of(port.get("protocol"), &["SCTP", "TCP", "UDP"]);
    }
}

fn host_ports(container: At<'_, '_>, taken: &mut BTreeSet<String>) {
    for port in container.get("ports").items() {
        let host = port.get("hostPort");
        if host.number() == 0 {
            continue;
        }
        let key = format!("{}/{}/{}", port.get("protocol").text(), port.get("hostIP").text(), host.number());
        if !taken.insert(key.clone()) {
            host.check().push(k1s_object::FieldError::duplicate(host.path(), key));
        }
    }
}

fn by_name<'v>(list: At<'_, 'v>, path: &'v str) -> BTreeMap<&'v str, &'v str> {
    list.items().map(|one| (one.get("name").text(), one.get(path).text())).collect()
}

fn mounts(container: At<'_, '_>, pod: &Pod<'_, '_>) {
    let list = container.get("volumeMounts");
    let devices = by_name(container.get("volumeDevices"), "devicePath");
    let device_paths: BTreeSet<&str> = devices.values().copied().collect();
    let mut paths = BTreeSet::new();
    for mount in list.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        required(name);
        if !pod.volumes.contains_key(name.text()) {
            not_found(name);
        }
        required(path);
        if !paths.insert(path.text()) {
            path.invalid_text("must be unique");
        }
        if devices.contains_key(name.text()) {
            name.invalid_text("must not already exist in volumeDevices");
        }
        if device_paths.contains(path.text()) {
            path.invalid_text("must not already exist as a path in volumeDevices");
        }
        let (sub, expression) = (mount.get("subPath"), mount.get("subPathExpr"));
        // From here on errors name the list, not the mount.
        if !sub.is_empty() {
            descending_path(list.get("subPath"), sub.text());
        }
        if !expression.is_empty() {
            if !sub.is_empty() {
                expression.invalid("subPathExpr and subPath are mutually exclusive");
            }
            descending_path(list.get("subPathExpr"), expression.text());
        }
        let propagation = list.get("mountPropagation").with(mount.get("mountPropagation").value());
        one_of_or_unset(propagation, &["Bidirectional", "HostToContainer", "None"]);
        let privileged = container.get("securityContext").get("privileged").is_true();
        if propagation.text() == "Bidirectional" && !privileged {
            propagation
                .forbidden("Bidirectional mount propagation is available only to privileged containers");
        }
        let recursive = list.get("recursiveReadOnly").with(mount.get("recursiveReadOnly").value());
        match recursive.str() {
            Some("Enabled" | "IfPossible") => {
                if !mount.get("readOnly").is_true() {
                    recursive.forbidden("may only be specified when readOnly is true");
                }
                if propagation.is_set() && propagation.text() != "None" {
                    recursive
                        .forbidden("may only be specified when mountPropagation is None or not specified");
                }
            }
            Some("Disabled") | None => {}
            Some(_) => recursive.not_supported(&["Disabled", "Enabled", "IfPossible"]),
        }
        let mut seen = BTreeSet::new();
        for option in mount.get("bindMountOptions").items() {
            one_of_or_unset(option, &["noexec", "nodev", "nosuid"]);
            if !seen.insert(option.text()) {
                option.duplicate();
            }
        }
    }
}

fn not_found(at: At<'_, '_>) {
    if at.is_set() {
        at.not_found();
    } else {
        at.check().push(k1s_object::FieldError::new(
            k1s_object::field::ErrorKind::NotFound,
            at.path(),
            k1s_object::field::Shown::Json("".into()),
            "",
        ));
    }
}

fn devices(container: At<'_, '_>, pod: &Pod<'_, '_>) {
    let mounts = by_name(container.get("volumeMounts"), "mountPath");
    let mount_paths: BTreeSet<&str> = mounts.values().copied().collect();
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for device in container.get("volumeDevices").items() {
        let (name, path) = (device.get("name"), device.get("devicePath"));
        required(name);
        if names.contains(name.text()) {
            name.invalid("must be unique");
        }
        match pod.volumes.get(name.text()) {
            None => not_found(name),
            Some(volume) if !is_claim(*volume) => name.invalid(
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
            ),
            Some(_) => {}
        }
        required(path);
        if paths.contains(path.text()) {
            path.invalid_text("must be unique");
        }
        if has_backsteps(path.text()) {
            path.invalid("can not contain backsteps ('..')");
        } else {
            paths.insert(path.text());
        }
        if mounts.contains_key(name.text()) {
            name.invalid_text("must not already exist in volumeMounts");
        }
        if mount_paths.contains(path.text()) {
            path.invalid_text("must not already exist as a path in volumeMounts");
        }
        if !name.is_empty() {
            names.insert(name.text());
        }
    }
}

fn resize_policy(list: At<'_, '_>, pod_restart_policy: &str) {
    let mut seen = BTreeSet::new();
    for policy in list.items() {
        let (resource, restart) = (policy.get("resourceName"), policy.get("restartPolicy"));
        if !seen.insert(resource.text()) {
            policy.with(resource.value()).duplicate();
        }
        // The error names the list.
        one_of(list.with(resource.value()), &["cpu", "memory"]);
        one_of(list.with(restart.value()), &["NotRequired", "RestartContainer"]);
        if pod_restart_policy == "Never" && restart.text() != "NotRequired" {
            list.invalid_as(restart.text(), "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
        }
    }
}

fn restart_policy(container: At<'_, '_>) {
    let (policy, rules) = (container.get("restartPolicy"), container.get("restartPolicyRules"));
    if policy.is_set() {
        one_of_or_unset(policy, &["Always", "Never", "OnFailure"]);
    } else if rules.is_empty() {
        return;
    } else {
        policy.required("must specify restartPolicy when restart rules are used");
    }
    if rules.len() > 20 {
        rules.too_many(20);
    }
    for rule in rules.items() {
        let action = rule.get("action");
        if !matches!(action.text(), "Restart" | "RestartAllContainers") {
            action.not_supported(&["Restart", "RestartAllContainers"]);
        }
        let codes = rule.get("exitCodes");
        if codes.is_set() {
            let operator = codes.get("operator");
            if !matches!(operator.text(), "In" | "NotIn") {
                operator.not_supported(&["In", "NotIn"]);
            }
            if codes.get("values").len() > 255 {
                codes.get("values").too_many(255);
            }
        } else {
            codes.required("must be specified");
        }
    }
}
