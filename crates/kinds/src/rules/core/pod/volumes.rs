//! The volumes of a pod.

use std::collections::{BTreeMap, BTreeSet};

use k1s_object::{At, names};

use super::{env, volumes_projected};
use crate::rules::helpers::{
    errors::invalid_each,
    go_values::sorted,
    labels,
    numbers::range,
    quantities,
    text::{descending_path, dns_label, no_backsteps, non_reserved_path, one_of, one_of_or_unset, required},
};

/// The valid volumes by name, which containers may mount.
pub(crate) type Volumes<'c, 'v> = BTreeMap<&'v str, At<'c, 'v>>;

const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const PARTITION: &str = "must be between 1 and 255, inclusive";

/// The sources in the order in which Kubernetes validates them, with their names in `may not specify more than
/// 1` errors.
const SOURCES: [(&str, &str); 29] = [
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    ("downwardAPI", "downwarAPI"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];

/// All volumes. `pod` is the name of the pod, empty in a template.
pub(crate) fn all<'c, 'v>(list: At<'c, 'v>, pod: &str) -> Volumes<'c, 'v> {
    let mut good = Volumes::new();
    let created: BTreeSet<String> = if pod.is_empty() {
        BTreeSet::new()
    } else {
        let ephemeral = list.items().filter(|volume| volume.get("ephemeral").is_set());
        ephemeral.map(|volume| format!("{pod}-{}", volume.get("name").text())).collect()
    };
    for volume in list.items() {
        let before = volume.check().count();
        source(volume, pod);
        let name = volume.get("name");
        if name.is_empty() {
            name.required("");
        } else {
            dns_label(name);
        }
        if good.contains_key(name.text()) {
            name.duplicate();
        }
        if volume.check().count() == before {
            good.insert(name.text(), volume);
        }
        let claim = volume.get("persistentVolumeClaim").get("claimName");
        if created.contains(claim.text()) {
            claim.invalid("must not reference a PVC that gets created for an ephemeral volume");
        }
    }
    good
}

fn source(volume: At<'_, '_>, pod: &str) {
    let mut count = 0;
    let empty = volume.get("emptyDir");
    if empty.is_set() {
        count += 1;
        let limit = empty.get("sizeLimit");
        if quantities::parse(limit.text()).is_some_and(|limit| limit.sign() < 0) {
            limit.forbidden("SizeLimit field must be a valid resource quantity");
        }
        let mode = empty.get("mode");
        if mode.is_set() && !(0..=0o1777).contains(&mode.number()) {
            mode.invalid("must be a number between 0 and 01777 (octal), both inclusive");
        }
    }
    for (name, shown) in SOURCES {
        let source = volume.get(name);
        if !source.is_set() {
            continue;
        }
        if count > 0 {
            volume.get(shown).forbidden("may not specify more than 1 volume type");
            continue;
        }
        count += 1;
        if name == "gcePersistentDisk" {
            // Its errors use another name.
            of_kind(name, volume.get("persistentDisk").with(source.value()), volume, pod);
        } else {
            of_kind(name, source, volume, pod);
        }
    }
    let iscsi = volume.get("iscsi");
    let name = volume.get("name");
    if iscsi.get("initiatorName").is_set()
        && name.text().len() + 1 + iscsi.get("targetPortal").text().len() > 64
    {
        name.invalid_text(
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.",
        );
    }
    if count == 0 {
        volume.required("must specify a volume type");
    }
}

fn of_kind(kind: &str, at: At<'_, '_>, volume: At<'_, '_>, pod: &str) {
    match kind {
        "hostPath" => host_path(at),
        "gitRepo" => {
            required(at.get("repository"));
            descending_path(at.get("directory"), at.get("directory").text());
        }
        "gcePersistentDisk" => disk(at, "pdName"),
        "awsElasticBlockStore" => disk(at, "volumeID"),
        "secret" => {
            required(at.get("secretName"));
            default_mode(at);
            items(at.get("items"));
        }
        "configMap" => {
            required(at.get("name"));
            default_mode(at);
            items(at.get("items"));
        }
        "nfs" => {
            required(at.get("server"));
            required(at.get("path"));
            let path = at.get("path");
            if !path.text().starts_with('/') {
                path.invalid_text("must be an absolute path");
            }
        }
        "iscsi" => iscsi(at),
        "glusterfs" => each_required(at, &["endpoints", "path"]),
        "flocker" => flocker(at),
        "persistentVolumeClaim" => required(at.get("claimName")),
        "rbd" => each_required(at, &["monitors", "image"]),
        "cinder" => {
            required(at.get("volumeID"));
            secret_name(at.get("secretRef"));
        }
        "cephfs" => required(at.get("monitors")),
        "quobyte" => quobyte(at),
        "downwardAPI" => {
            default_mode(at);
            for file in at.get("items").items() {
                // The error names the volume, not the item.
                downward_file(at.with(file.value()));
            }
        }
        "fc" => fibre_channel(at),
        "flexVolume" => flex(at),
        "azureFile" => each_required(at, &["secretName", "shareName"]),
        "vsphereVolume" => required(at.get("volumePath")),
        "photonPersistentDisk" => required(at.get("pdID")),
        "portworxVolume" => required(at.get("volumeID")),
        "azureDisk" => azure_disk(at),
        "storageos" => storage_os(at),
        "projected" => {
            default_mode(at);
            volumes_projected::sources(at);
        }
        "scaleIO" => each_required(at, &["gateway", "system", "volumeName"]),
        "csi" => csi(at),
        "ephemeral" => ephemeral(at, volume, pod),
        "image" => {
            required(at.get("reference"));
            one_of(at.get("pullPolicy"), &["Always", "IfNotPresent", "Never"]);
        }
        _ => {}
    }
}

fn each_required(at: At<'_, '_>, names: &[&'static str]) {
    for name in names {
        required(at.get(name));
    }
}

fn secret_name(reference: At<'_, '_>) {
    if reference.is_set() {
        required(reference.get("name"));
    }
}

fn host_path(at: At<'_, '_>) {
    let path = at.get("path");
    if path.is_empty() {
        path.required("");
        return;
    }
    no_backsteps(path, path.text());
    one_of_or_unset(
        at.get("type"),
        &[
            "",
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket",
        ],
    );
}

fn disk(at: At<'_, '_>, id: &'static str) {
    required(at.get(id));
    let partition = at.get("partition");
    if !(0..=255).contains(&partition.number()) {
        partition.invalid(PARTITION);
    }
}

/// The mode of files.
pub(crate) fn mode(at: At<'_, '_>) {
    if at.is_set() && !(0..=0o777).contains(&at.number()) {
        at.invalid(FILE_MODE);
    }
}

/// The owner of files.
pub(crate) fn user(at: At<'_, '_>) {
    if let Some(id) = at.int() {
        for message in names::is_valid_user_id(id) {
            at.invalid(message);
        }
    }
}

fn default_mode(at: At<'_, '_>) {
    mode(at.get("defaultMode"));
    user(at.get("defaultUser"));
}

fn items(list: At<'_, '_>) {
    for item in list.items() {
        key_to_path(item);
    }
}

/// A key of a `ConfigMap` or Secret and the file it becomes.
pub(crate) fn key_to_path(item: At<'_, '_>) {
    required(item.get("key"));
    required(item.get("path"));
    non_reserved_path(item.get("path"), item.get("path").text());
    mode(item.get("mode"));
    user(item.get("user"));
}

/// A file of a downward API volume. Errors name the volume.
pub(crate) fn downward_file(file: At<'_, '_>) {
    required(file.get("path"));
    non_reserved_path(file.get("path"), file.get("path").text());
    let (field, resource) = (file.get("fieldRef"), file.get("resourceFieldRef"));
    if field.is_set() {
        env::volume_field_ref(field);
        if resource.is_set() {
            file.invalid_as("resource", "fieldRef and resourceFieldRef can not be specified simultaneously");
        }
    } else if resource.is_set() {
        env::resource_ref(resource, true);
    } else {
        file.required("one of fieldRef and resourceFieldRef is required");
    }
    mode(file.get("mode"));
    user(file.get("user"));
}

fn iscsi(at: At<'_, '_>) {
    required(at.get("targetPortal"));
    let iqn = at.get("iqn");
    if iqn.is_empty() {
        iqn.required("");
    } else {
        iscsi_name(iqn, iqn.text());
    }
    range(at.get("lun"), 0, 255);
    if (at.get("chapAuthDiscovery").is_true() || at.get("chapAuthSession").is_true())
        && !at.get("secretRef").is_set()
    {
        at.get("secretRef").required("");
    }
    if let Some(initiator) = at.get("initiatorName").str() {
        iscsi_name(at.get("initiatorname"), initiator);
    }
}

fn iscsi_name(at: At<'_, '_>, name: &str) {
    let alphanumeric = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric());
    // One arbitrary character, then letters and digits.
    let id = |rest: &str, length: usize| {
        let mut rest = rest.chars();
        rest.next().is_some() && rest.as_str().len() == length && alphanumeric(rest.as_str())
    };
    let fits = if let Some(rest) = name.strip_prefix("iqn") {
        // iqn.2001-04.com.example:storage
        rest.strip_prefix('.').is_some_and(|rest| {
            let (date, rest) = rest.split_at_checked(7).unwrap_or((rest, ""));
            let (domain, target) =
                rest.strip_prefix('.').and_then(|rest| rest.split_once(':')).unwrap_or_default();
            let digits =
                |text: &str, length| text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
            date.split_once('-').is_some_and(|(year, month)| digits(year, 4) && digits(month, 2))
                && !domain.is_empty()
                && domain.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'))
                && !target.is_empty()
                && !target.contains([',', ';', '*', '&', '$', '|'])
                && !target.contains(char::is_whitespace)
        })
    } else if let Some(rest) = name.strip_prefix("eui") {
        id(rest, 16)
    } else if let Some(rest) = name.strip_prefix("naa") {
        id(rest, 32)
    } else {
        at.invalid_as(name, "must be valid format starting with iqn, eui, or naa");
        return;
    };
    if !fits {
        at.invalid_as(name, "must be valid format");
    }
}

fn flocker(at: At<'_, '_>) {
    let (name, id) = (at.get("datasetName"), at.get("datasetUUID"));
    if name.is_empty() && id.is_empty() {
        at.required("one of datasetName and datasetUUID is required");
    }
    if !name.is_empty() && !id.is_empty() {
        at.invalid_as("resource", "datasetName and datasetUUID can not be specified simultaneously");
    }
    if name.text().contains('/') {
        name.invalid("must not contain '/'");
    }
}

fn quobyte(at: At<'_, '_>) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = at.get("registry");
    if registry.is_empty() {
        registry.required(PAIRS);
    } else if at.get("tenant").text().len() >= 65 {
        at.get("tenant").required("must be a UUID and may not exceed a length of 64 characters");
    } else {
        for pair in registry.text().split(',') {
            if !pair.rsplit_once(':').is_some_and(|(host, _)| !host.contains(':') || host.ends_with(']')) {
                registry.invalid(PAIRS);
            }
        }
    }
    required(at.get("volume"));
}

fn fibre_channel(at: At<'_, '_>) {
    let (targets, ids) = (at.get("targetWWNs"), at.get("wwids"));
    if targets.is_empty() && ids.is_empty() {
        targets.required("must specify either targetWWNs or wwids, but not both");
    }
    if !targets.is_empty() && !ids.is_empty() {
        targets.invalid("targetWWNs and wwids can not be specified simultaneously");
    }
    if !targets.is_empty() {
        if at.get("lun").is_set() {
            range(at.get("lun"), 0, 255);
        } else {
            at.get("lun").required("lun is required if targetWWNs is specified");
        }
    }
}

fn flex(at: At<'_, '_>) {
    required(at.get("driver"));
    for (key, option) in at.get("options").entries() {
        let namespace = key.split_once('/').map_or(key, |(namespace, _)| namespace);
        let dotted = format!(".{}", namespace.to_lowercase());
        if dotted.ends_with(".kubernetes.io") || dotted.ends_with(".k8s.io") {
            option.invalid_as(key, "kubernetes.io and k8s.io namespaces are reserved");
        }
    }
}

fn azure_disk(at: At<'_, '_>) {
    required(at.get("diskName"));
    required(at.get("diskURI"));
    one_of_or_unset(at.get("cachingMode"), &["None", "ReadOnly", "ReadWrite"]);
    one_of_or_unset(at.get("kind"), &["Dedicated", "Managed", "Shared"]);
    let (kind, uri) = (at.get("kind"), at.get("diskURI"));
    if kind.text() == "Managed" && !uri.text().starts_with("/subscriptions/") {
        uri.not_supported(&[
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ]);
    }
    if kind.is_set() && kind.text() != "Managed" && !uri.text().starts_with("https://") {
        uri.not_supported(&["https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"]);
    }
}

fn storage_os(at: At<'_, '_>) {
    let name = at.get("volumeName");
    if name.is_empty() {
        name.required("");
    } else {
        dns_label(name);
    }
    if !at.get("volumeNamespace").is_empty() {
        dns_label(at.get("volumeNamespace"));
    }
    secret_name(at.get("secretRef"));
}

fn csi(at: At<'_, '_>) {
    let driver = at.get("driver");
    if driver.is_empty() {
        driver.required("");
    } else {
        if driver.text().len() > 63 {
            driver.too_long(63);
        }
        invalid_each(driver, names::is_dns1123_subdomain(&driver.text().to_lowercase()));
    }
    let secret = at.get("nodePublishSecretRef");
    if secret.is_set() {
        let name = secret.get("name");
        if name.is_empty() {
            name.required("");
        } else {
            for message in names::is_dns1123_subdomain(name.text()) {
                at.get("name").invalid_as(name.text(), message);
            }
        }
    }
}

fn ephemeral(at: At<'_, '_>, volume: At<'_, '_>, pod: &str) {
    let template = at.get("volumeClaimTemplate");
    if template.is_set() {
        let metadata = template.get("metadata");
        labels::annotations(metadata.get("annotations"));
        labels::labels(metadata.get("labels"));
        for (key, _) in metadata.map().into_iter().flatten() {
            if key != "annotations" && key != "labels" && metadata.get(key).is_set() {
                metadata.get(key).forbidden("cannot be set");
            }
        }
        claim_spec(template.get("spec"));
    } else {
        template.required("");
    }
    let name = volume.get("name");
    if !pod.is_empty() && !name.is_empty() {
        let claim = format!("{pod}-{}", name.text());
        for message in names::is_dns1123_subdomain(&claim) {
            name.invalid(format!("PVC name {claim:?}: {message}"));
        }
    }
}

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// The spec of a `PersistentVolumeClaim`, in ephemeral volumes and `StatefulSets`.
pub(crate) fn claim_spec(spec: At<'_, '_>) {
    let modes = spec.get("accessModes");
    if modes.is_empty() {
        modes.required("at least 1 access mode is required");
    }
    labels::selector(spec.get("selector"));
    let (mut once_pod, mut other) = (false, false);
    for mode in modes.items() {
        let text = mode.text();
        if !ACCESS_MODES.contains(&text) {
            modes.with(mode.value()).not_supported(&ACCESS_MODES);
        } else if text == "ReadWriteOncePod" {
            once_pod = true;
        } else {
            other = true;
        }
    }
    if once_pod && other {
        modes.forbidden("may not use ReadWriteOncePod with other access modes");
    }
    let storage = spec.get("resources").get("requests").get("storage");
    let shown = spec.get("resources").key("storage").with(storage.value());
    match quantities::parse(storage.text()) {
        None => shown.required(""),
        Some(amount) if amount.sign() <= 0 => shown.invalid("must be greater than zero"),
        Some(_) => {}
    }
    if !spec.get("storageClassName").is_empty() {
        invalid_each(
            spec.get("storageClassName"),
            names::is_dns1123_subdomain(spec.get("storageClassName").text()),
        );
    }
    one_of_or_unset(spec.get("volumeMode"), &["Block", "Filesystem"]);
    let (source, reference) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    for at in [source, reference] {
        if at.is_set() {
            data_source(at);
        }
    }
    let namespace = reference.get("namespace");
    if !namespace.is_empty() {
        invalid_each(namespace, names::is_dns1123_label(namespace.text()));
        if source.is_set() {
            spec.invalid_verbatim(
                source.path(),
                "may not be specified when dataSourceRef.namespace is specified",
            );
        }
    } else if source.is_set()
        && reference.is_set()
        && source.value().map(sorted) != reference.value().map(sorted)
    {
        spec.invalid_verbatim(source.path(), "must match dataSourceRef");
    }
    let class = spec.get("volumeAttributesClassName");
    if !class.is_empty() {
        invalid_each(class, names::is_dns1123_subdomain(class.text()));
    }
}

fn data_source(at: At<'_, '_>) {
    required(at.get("name"));
    required(at.get("kind"));
    let (group, kind) = (at.get("apiGroup"), at.get("kind"));
    if group.is_empty() && kind.text() != "PersistentVolumeClaim" {
        at.invalid_as(kind.text(), "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
    }
    if !group.is_empty() {
        invalid_each(group, names::is_dns1123_subdomain(group.text()));
    }
}

/// Whether a volume can be used as a block device.
pub(crate) fn is_claim(volume: At<'_, '_>) -> bool {
    volume.get("persistentVolumeClaim").is_set() || volume.get("ephemeral").is_set()
}
