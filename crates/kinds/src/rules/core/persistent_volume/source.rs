//! The volume sources of a `PersistentVolume`.

use k1s_object::{At, names};

use crate::rules::helpers::{
    errors::invalid_each,
    text::{dns_label, dns_subdomain, no_backsteps, one_of},
};

/// The sources in the order in which Kubernetes validates them: the field, the name in the error about a second
/// source, and the name in its own errors.
const SOURCES: [(&str, &str, &str); 22] = [
    ("hostPath", "hostPath", "hostPath"),
    ("gcePersistentDisk", "gcePersistentDisk", "persistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore", "awsElasticBlockStore"),
    ("glusterfs", "glusterfs", "glusterfs"),
    ("flocker", "flocker", "flocker"),
    ("nfs", "nfs", "nfs"),
    ("rbd", "rbd", "rbd"),
    ("quobyte", "quobyte", "quobyte"),
    ("cephfs", "cephFS", "cephfs"),
    ("iscsi", "iscsi", "iscsi"),
    ("cinder", "cinder", "cinder"),
    ("fc", "fc", "fc"),
    ("flexVolume", "flexVolume", "flexVolume"),
    ("azureFile", "azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk", "azureDisk"),
    ("scaleIO", "scaleIO", "scaleIO"),
    ("local", "local", "local"),
    ("storageos", "storageos", "storageos"),
    ("csi", "csi", "csi"),
];

/// The fields that are sources.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|(name, ..)| *name)
}

/// Validates that there is exactly one source, and that source.
pub(super) fn sources(spec: At<'_, '_>, volume_name: &str) {
    let mut found = 0;
    for (field, second, own) in SOURCES {
        let source = spec.get(field);
        if !source.is_set() {
            continue;
        }
        // A flex volume is accepted besides any other source.
        if found > 0 && field != "flexVolume" {
            spec.get(second).forbidden("may not specify more than 1 volume type");
            continue;
        }
        found += 1;
        check_source(field, spec.get(own).with(source.value()), volume_name);
        if field == "local" && !spec.get("nodeAffinity").is_set() {
            spec.get("nodeAffinity").required("Local volume requires node affinity");
        }
    }
    if found == 0 {
        spec.required("must specify a volume type");
    }
}

fn required(at: At<'_, '_>, fields: &[&'static str]) {
    for field in fields {
        if at.get(field).is_empty() {
            at.get(field).required("");
        }
    }
}

fn check_source(field: &str, at: At<'_, '_>, volume_name: &str) {
    match field {
        "hostPath" => host_path(at),
        "gcePersistentDisk" => disk(at, "pdName"),
        "awsElasticBlockStore" => disk(at, "volumeID"),
        "glusterfs" => glusterfs(at),
        "flocker" => flocker(at),
        "nfs" => {
            required(at, &["server", "path"]);
            if !at.get("path").text().starts_with('/') {
                at.get("path").invalid_text("must be an absolute path");
            }
        }
        "rbd" => required(at, &["monitors", "image"]),
        "quobyte" => quobyte(at),
        "cephfs" => required(at, &["monitors"]),
        "iscsi" => iscsi(at, volume_name),
        "cinder" => {
            required(at, &["volumeID"]);
            secret(at.get("secretRef"));
        }
        "fc" => fibre_channel(at),
        "flexVolume" => flex(at),
        "azureFile" => {
            required(at, &["secretName", "shareName"]);
            if at.get("secretNamespace").str() == Some("") {
                at.get("secretNamespace").required("");
            }
        }
        "vsphereVolume" => required(at, &["volumePath"]),
        "photonPersistentDisk" => required(at, &["pdID"]),
        "portworxVolume" => required(at, &["volumeID"]),
        "azureDisk" => azure_disk(at),
        "scaleIO" => required(at, &["gateway", "system", "volumeName"]),
        "local" => {
            if at.get("path").text().is_empty() {
                at.get("path").required("");
            } else {
                no_backsteps(at.get("path"), at.get("path").text());
            }
        }
        "storageos" => {
            required(at, &["volumeName"]);
            for field in ["volumeName", "volumeNamespace"] {
                if !at.get(field).text().is_empty() {
                    dns_label(at.get(field));
                }
            }
            secret(at.get("secretRef"));
        }
        "csi" => csi(at),
        _ => {}
    }
}

fn secret(at: At<'_, '_>) {
    if at.is_set() {
        required(at, &["name", "namespace"]);
    }
}

fn host_path(at: At<'_, '_>) {
    if at.get("path").text().is_empty() {
        return at.get("path").required("");
    }
    no_backsteps(at.get("path"), at.get("path").text());
    let supported =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    if !supported.contains(&at.get("type").text()) {
        at.get("type").not_supported(&supported);
    }
}

fn disk(at: At<'_, '_>, id: &'static str) {
    required(at, &[id]);
    if !(0..=255).contains(&at.get("partition").number()) {
        at.get("partition").invalid("must be between 1 and 255, inclusive");
    }
}

fn glusterfs(at: At<'_, '_>) {
    required(at, &["endpoints", "path"]);
    let namespace = at.get("endpointsNamespace");
    match namespace.str() {
        Some("") => {
            namespace.invalid("if the endpointnamespace is set, it must be a valid namespace name");
        }
        Some(_) => dns_label(namespace),
        None => {}
    }
}

fn flocker(at: At<'_, '_>) {
    let (name, uuid) = (at.get("datasetName"), at.get("datasetUUID"));
    match (name.text().is_empty(), uuid.text().is_empty()) {
        (true, true) => at.required("one of datasetName and datasetUUID is required"),
        (false, false) => {
            at.invalid_as("resource", "datasetName and datasetUUID can not be specified simultaneously");
        }
        _ => {}
    }
    if name.text().contains('/') {
        name.invalid("must not contain '/'");
    }
}

fn quobyte(at: At<'_, '_>) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = at.get("registry");
    if registry.text().is_empty() {
        registry.required(PAIRS);
    } else if at.get("tenant").text().len() >= 65 {
        at.get("tenant").required("must be a UUID and may not exceed a length of 64 characters");
    } else {
        let is_pair = |pair: &str| {
            pair.rsplit_once(':').is_some_and(|(host, _)| !host.contains(':') || host.ends_with(']'))
        };
        for _ in registry.text().split(',').filter(|pair| !is_pair(pair)) {
            registry.invalid(PAIRS);
        }
    }
    required(at, &["volume"]);
}

/// The formats of iSCSI initiator and target names.
fn is_iscsi_name(name: &str) -> bool {
    let alphanumeric =
        |text: &str, len: usize| text.len() == len && text.bytes().all(|b| b.is_ascii_alphanumeric());
    let after_kind = || name.get(4..).unwrap_or_default();
    match name.get(..3) {
        Some("iqn") => {
            let Some((front, back)) = name.strip_prefix("iqn.").and_then(|rest| rest.split_once(':')) else {
                return false;
            };
            let (date, domain) = (front.get(..8).unwrap_or_default(), front.get(8..).unwrap_or_default());
            let is_date = date.bytes().enumerate().all(|(i, b)| match i {
                4 => b == b'-',
                7 => b == b'.',
                _ => b.is_ascii_digit(),
            });
            date.len() == 8
                && is_date
                && !domain.is_empty()
                && domain.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.')
                && !back.is_empty()
                && !back.contains([',', ';', '*', '&', '$', '|', ' ', '\t', '\n', '\r'])
        }
        Some("eui") => alphanumeric(after_kind(), 16),
        Some("naa") => alphanumeric(after_kind(), 32),
        _ => false,
    }
}

fn iscsi(at: At<'_, '_>, volume_name: &str) {
    let (portal, initiator) = (at.get("targetPortal"), at.get("initiatorName"));
    required(at, &["targetPortal"]);
    if initiator.is_set() && volume_name.len() + 1 + portal.text().len() > 64 {
        at.get("targetportal").invalid_as(
            portal.text(),
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName \
             is specified.",
        );
    }
    let iqn = at.get("iqn");
    if iqn.text().is_empty() {
        iqn.required("");
    } else if !is_iscsi_name(iqn.text()) {
        iqn.invalid("must be valid format");
    }
    if !(0..=255).contains(&at.get("lun").number()) {
        at.get("lun").invalid("must be between 0 and 255, inclusive");
    }
    let secret = at.get("secretRef");
    if !secret.is_set() && (at.get("chapAuthDiscovery").is_true() || at.get("chapAuthSession").is_true()) {
        secret.required("");
    }
    if secret.is_set() && secret.get("name").text().is_empty() {
        secret.get("name").required("");
    }
    if let Some(name) = initiator.str()
        && !is_iscsi_name(name)
    {
        at.get("initiatorname").invalid_as(name, "must be valid format");
    }
}

fn fibre_channel(at: At<'_, '_>) {
    let (names, ids, lun) = (at.get("targetWWNs"), at.get("wwids"), at.get("lun"));
    if names.is_empty() && ids.is_empty() {
        names.required("must specify either targetWWNs or wwids, but not both");
    }
    if !names.is_empty() && !ids.is_empty() {
        names.invalid("targetWWNs and wwids can not be specified simultaneously");
    }
    if !names.is_empty() {
        match lun.int() {
            None => lun.required("lun is required if targetWWNs is specified"),
            Some(0..=255) => {}
            Some(_) => lun.invalid("must be between 0 and 255, inclusive"),
        }
    }
}

fn flex(at: At<'_, '_>) {
    required(at, &["driver"]);
    for (key, option) in at.get("options").entries() {
        let domain = format!(".{}", key.split_once('/').map_or(key, |(domain, _)| domain).to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            option.invalid_as(key, "kubernetes.io and k8s.io namespaces are reserved");
        }
    }
}

fn azure_disk(at: At<'_, '_>) {
    required(at, &["diskName", "diskURI"]);
    if at.get("cachingMode").is_set() {
        one_of(at.get("cachingMode"), &["None", "ReadOnly", "ReadWrite"]);
    }
    let (kind, uri) = (at.get("kind"), at.get("diskURI"));
    if !kind.is_set() {
        return;
    }
    one_of(kind, &["Dedicated", "Managed", "Shared"]);
    if kind.text() == "Managed" {
        if !uri.text().starts_with("/subscriptions/") {
            uri.not_supported(&[
                "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
            ]);
        }
    } else if !uri.text().starts_with("https://") {
        uri.not_supported(&["https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"]);
    }
}

fn csi(at: At<'_, '_>) {
    let driver = at.get("driver");
    if driver.text().is_empty() {
        driver.required("");
    } else {
        if driver.text().len() > 63 {
            driver.too_long(63);
        }
        invalid_each(driver, names::is_dns1123_subdomain(&driver.text().to_lowercase()));
    }
    required(at, &["volumeHandle"]);
    for field in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let secret = at.get(field);
        if !secret.is_set() {
            continue;
        }
        for (field, rule) in
            [("name", dns_subdomain as fn(At<'_, '_>)), ("namespace", dns_label as fn(At<'_, '_>))]
        {
            let field = secret.get(field);
            if field.text().is_empty() {
                field.required("");
            } else {
                rule(field);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k1s_object::Check;
    use serde_json::{Value, json};

    fn said(spec: &Value) -> Vec<String> {
        let check = Check::new();
        super::sources(check.at("spec", Some(spec)), "pv");
        check.take().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn there_is_one_source_and_it_is_complete() {
        for (spec, errors) in [
            (json!({}), &["spec: Required value: must specify a volume type"][..]),
            (json!({"hostPath": {}}), &["spec.hostPath.path: Required value"]),
            (
                json!({"hostPath": {"path": "/a/../b", "type": "Odd"}, "nfs": {}}),
                &[
                    "spec.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
                    "spec.hostPath.type: Unsupported value: \"Odd\": supported values: \"\", \"BlockDevice\", \
                     \"CharDevice\", \"Directory\", \"DirectoryOrCreate\", \"File\", \"FileOrCreate\", \"Socket\"",
                    "spec.nfs: Forbidden: may not specify more than 1 volume type",
                ],
            ),
            (
                json!({"local": {"path": "/x"}}),
                &["spec.nodeAffinity: Required value: Local volume requires node affinity"],
            ),
            (
                json!({"csi": {"nodePublishSecretRef": {"name": "s"}}}),
                &[
                    "spec.csi.driver: Required value",
                    "spec.csi.volumeHandle: Required value",
                    "spec.csi.nodePublishSecretRef.namespace: Required value",
                ],
            ),
            (
                json!({"iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:storage.kube.sys1.xyz", "lun": 256}}),
                &["spec.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive"],
            ),
        ] {
            assert_eq!(said(&spec), errors, "{spec}");
        }
    }
}
