//! Environment variables and their sources.

use k1s_object::{At, names};

use crate::rules::helpers::{
    errors::invalid_each,
    quantities,
    text::{dns_label, no_backsteps},
};

const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

const VOLUME_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// The variables of a container.
pub(crate) fn variables(list: At<'_, '_>) {
    for variable in list.items() {
        let name = variable.get("name");
        if name.is_empty() {
            name.required("");
        } else {
            invalid_each(name, names::is_relaxed_env_var_name(name.text()));
        }
        value_from(variable);
    }
}

fn value_from(variable: At<'_, '_>) {
    let from = variable.get("valueFrom");
    if !from.is_set() {
        return;
    }
    let mut sources = 0;
    let mut source = |name| {
        let at = from.get(name);
        sources += usize::from(at.is_set());
        at
    };
    let field = source("fieldRef");
    if field.is_set() {
        field_ref(field, &FIELDS);
    }
    let resource = source("resourceFieldRef");
    if resource.is_set() {
        resource_ref(resource, false);
    }
    for key in ["configMapKeyRef", "secretKeyRef"] {
        let key_ref = source(key);
        if key_ref.is_set() {
            let name = key_ref.get("name");
            invalid_each(name, names::is_dns1123_subdomain(name.text()));
            let key = key_ref.get("key");
            if key.is_empty() {
                key.required("");
            } else {
                invalid_each(key, names::is_config_map_key(key.text()));
            }
        }
    }
    let file = source("fileKeyRef");
    if file.is_set() {
        file_ref(file);
    }
    if sources == 0 {
        from.invalid_as(
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        );
    } else if !variable.get("value").is_empty() {
        from.invalid_as("", "may not be specified when `value` is not empty");
    } else if sources > 1 {
        from.invalid_as("", "may not have more than one field specified at a time");
    }
}

fn file_ref(file: At<'_, '_>) {
    let key = file.get("key");
    if key.is_empty() {
        key.required("");
    } else {
        invalid_each(key, names::is_relaxed_env_var_name(key.text()));
    }
    let volume = file.get("volumeName");
    if volume.is_empty() {
        volume.required("");
    } else {
        dns_label(volume);
    }
    let path = file.get("path");
    if path.is_empty() {
        path.required("");
    } else {
        no_backsteps(path, path.text());
    }
}

/// A file of a downward API volume: its `fieldRef`.
pub(crate) fn volume_field_ref(field: At<'_, '_>) {
    field_ref(field, &VOLUME_FIELDS);
}

/// A reference to a field of the pod.
fn field_ref(field: At<'_, '_>, supported: &[&str]) {
    if field.get("apiVersion").is_empty() {
        field.get("apiVersion").required("");
        return;
    }
    let path = field.get("fieldPath");
    if path.is_empty() {
        path.required("");
        return;
    }
    let label = match converted(field.get("apiVersion").text(), path.text()) {
        Ok(label) => label,
        Err(why) => {
            path.invalid(format!("error converting fieldPath: {why}"));
            return;
        }
    };
    match subscripted(label) {
        Some((map, key)) => {
            let key = if map == "metadata.annotations" { key.to_lowercase() } else { key.to_owned() };
            for message in names::is_qualified_name(&key) {
                field.invalid_as(key.as_str(), message);
            }
        }
        None if supported.contains(&label) => {}
        None => {
            let error = k1s_object::FieldError::not_supported(path.path(), label, supported);
            field.check().push(error);
        }
    }
}

fn converted<'a>(version: &str, label: &'a str) -> Result<&'a str, String> {
    if version != "v1" {
        return Err(format!("unsupported pod version: {version}"));
    }
    if let Some((map, _)) = subscripted(label) {
        return match map {
            "metadata.annotations" | "metadata.labels" => Ok(label),
            _ => Err(format!("field label does not support subscript: {label}")),
        };
    }
    match label {
        "spec.host" => Ok("spec.nodeName"),
        "metadata.annotations"
        | "metadata.labels"
        | "spec.restartPolicy"
        | "spec.schedulerName"
        | "status.phase" => Ok(label),
        _ if FIELDS.contains(&label) => Ok(label),
        _ => Err(format!("field label not supported: {label}")),
    }
}

/// `metadata.labels['a']` as `metadata.labels` and `a`.
fn subscripted(path: &str) -> Option<(&str, &str)> {
    let (map, key) = path.strip_suffix("']")?.split_once("['")?;
    (!map.is_empty()).then_some((map, key))
}

/// A reference to a resource of a container.
pub(crate) fn resource_ref(reference: At<'_, '_>, volume: bool) {
    let resource = reference.get("resource");
    let name = resource.text();
    let huge = name.starts_with("limits.hugepages-") || name.starts_with("requests.hugepages-");
    if volume && reference.get("containerName").is_empty() {
        reference.get("containerName").required("");
    } else if name.is_empty() {
        resource.required("");
    } else if !RESOURCES.contains(&name) && !huge {
        resource.not_supported(&RESOURCES);
    }
    let divisor = reference.get("divisor");
    let text = divisor.text();
    if text.is_empty() || quantities::parse(text).is_none_or(|divisor| divisor.is_zero()) {
        return;
    }
    let byte_sizes = matches!(text, "1" | "1k" | "1M" | "1G" | "1T" | "1P" | "1E")
        || matches!(text, "1Ki" | "1Mi" | "1Gi" | "1Ti" | "1Pi" | "1Ei");
    let sizes = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
    let kind = match name {
        "limits.cpu" | "requests.cpu" => {
            if !matches!(text, "1" | "1m") {
                divisor
                    .invalid_as(name, "only divisor's values 1m and 1 are supported with the cpu resource");
            }
            return;
        }
        "limits.memory" | "requests.memory" => "memory",
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => "local ephemeral storage",
        _ if huge => "hugepages",
        _ => return,
    };
    if !byte_sizes {
        divisor.invalid_as(
            name,
            format!("only divisor's values {sizes} are supported with the {kind} resource"),
        );
    }
}

/// `envFrom`
pub(crate) fn sources(list: At<'_, '_>) {
    for source in list.items() {
        let prefix = source.get("prefix");
        if !prefix.is_empty() {
            invalid_each(prefix, names::is_relaxed_env_var_name(prefix.text()));
        }
        let mut count = 0;
        for name in ["configMapRef", "secretRef"] {
            let reference = source.get(name);
            if !reference.is_set() {
                continue;
            }
            count += 1;
            let name = reference.get("name");
            if name.is_empty() {
                name.required("");
            } else {
                invalid_each(name, names::name_is_dns_subdomain(name.text(), true));
            }
        }
        if count == 0 {
            list.invalid_as("", "must specify one of: `configMapRef` or `secretRef`");
        } else if count > 1 {
            list.invalid_as("", "may not have more than one field specified at a time");
        }
    }
}
