//! `PersistentVolume`.

use k1s_object::At;
use serde_json::{Value, json};

use crate::rules::{
    NameRule, Rules,
    helpers::{
        equality::same_struct,
        errors::not_supported,
        immutable::immutable_text,
        json::{default_in, find, keep, list_at, set_in, text_at},
        metadata::add_finalizer,
        node_labels::deprecated_node_label,
        node_selector::node_selector,
        quantities::{basic_amount, positive_amount, round_up},
        text::dns_subdomain,
    },
    keep_status,
};
mod source;

const STORAGE_CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const MOUNT_OPTIONS_ANNOTATION: &str = "volume.beta.kubernetes.io/mount-options";

/// The modes in which volumes can be accessed.
pub(super) const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(super) static RULES: Rules = Rules {
    defaults,
    prepare_create: |volume| {
        if let Some(volume) = volume.as_object_mut() {
            volume.insert("status".into(), json!({"phase": "Pending"}));
        }
        // In Kubernetes an admission plugin adds it.
        add_finalizer(volume, "kubernetes.io/pv-protection");
    },
    prepare_update: keep_status,
    prepare_status: |new, old| keep(new, old, "spec"),
    stamp_times: stamp_phase,
    validate: |volume| validate(volume, None),
    validate_update,
    warnings,
    name: NameRule::Subdomain,
    delete_answers_object: true,
    ..Rules::PLAIN
};

/// Sets the time of the last phase change, on create and on an update of `/status`. `now` is in JSON format.
fn stamp_phase(new: &mut Value, old: Option<&Value>, now: &str) {
    let read = |volume: &Value| find(volume, &["status", "lastPhaseTransitionTime"]).cloned();
    let Some(old) = old else {
        return set_in(new, "status", "lastPhaseTransitionTime", now);
    };
    let unchanged = text_at(new, &["status", "phase"]) == text_at(old, &["status", "phase"]);
    match (read(new), read(old)) {
        (None, Some(before)) if unchanged => set_in(new, "status", "lastPhaseTransitionTime", before),
        (time, before) if !unchanged && (time.is_none() || time == before) => {
            set_in(new, "status", "lastPhaseTransitionTime", now);
        }
        _ => {}
    }
}

fn defaults(volume: &mut Value) {
    default_in(volume, "status", "phase", "Pending");
    default_in(volume, "spec", "persistentVolumeReclaimPolicy", "Retain");
    if find(volume, &["spec", "volumeMode"]).is_none() {
        set_in(volume, "spec", "volumeMode", "Filesystem");
    }
    round_up(volume.pointer_mut("/spec/capacity"));
    // Source, field, default, and whether an empty string counts as missing.
    let fields = [
        ("hostPath", "type", json!(""), false),
        ("rbd", "pool", json!("rbd"), true),
        ("rbd", "user", json!("admin"), true),
        ("rbd", "keyring", json!("/etc/ceph/keyring"), true),
        ("iscsi", "iscsiInterface", json!("default"), true),
        ("azureDisk", "cachingMode", json!("ReadWrite"), false),
        ("azureDisk", "fsType", json!("ext4"), false),
        ("azureDisk", "readOnly", json!(false), false),
        ("azureDisk", "kind", json!("Shared"), false),
        ("scaleIO", "storageMode", json!("ThinProvisioned"), true),
        ("scaleIO", "fsType", json!("xfs"), true),
    ];
    for (source, field, default, empty_too) in fields {
        let source =
            volume.get_mut("spec").and_then(|spec| spec.get_mut(source)).and_then(Value::as_object_mut);
        if let Some(source) = source {
            let missing = match source.get(field) {
                None | Some(Value::Null) => true,
                Some(value) => empty_too && value == "",
            };
            if missing {
                source.insert(field.into(), default);
            }
        }
    }
}

/// The access modes of a volume or a claim.
pub(super) fn access_modes(modes: At<'_, '_>) {
    let (mut alone, mut others) = (false, false);
    for mode in modes.items() {
        let known = ACCESS_MODES.contains(&mode.text());
        if !known {
            not_supported(modes, mode.text(), &ACCESS_MODES);
        }
        if mode.text() == "ReadWriteOncePod" {
            alone = true;
        } else if known {
            others = true;
        }
    }
    if alone && others {
        modes.forbidden("may not use ReadWriteOncePod with other access modes");
    }
}

/// The mode of a volume or a claim.
pub(super) fn volume_mode(mode: At<'_, '_>) {
    if mode.is_set() && !matches!(mode.text(), "Block" | "Filesystem") {
        mode.not_supported(&["Block", "Filesystem"]);
    }
}

fn validate(volume: At<'_, '_>, old: Option<At<'_, '_>>) {
    let spec = volume.get("spec");
    let modes = spec.get("accessModes");
    if modes.is_empty() {
        modes.required("");
    }
    access_modes(modes);
    let capacity = spec.get("capacity");
    if capacity.is_empty() {
        capacity.required("");
    }
    if !capacity.key("storage").is_set() || capacity.len() > 1 {
        not_supported(capacity, capacity.value().cloned().unwrap_or_default(), &["storage"]);
    }
    for (_, amount) in capacity.entries() {
        basic_amount(amount);
        positive_amount(amount);
    }
    let policy = spec.get("persistentVolumeReclaimPolicy");
    if !matches!(policy.text(), "" | "Delete" | "Recycle" | "Retain") {
        policy.not_supported(&["Delete", "Recycle", "Retain"]);
    }
    let affinity = spec.get("nodeAffinity");
    if affinity.is_set() {
        let required = affinity.get("required");
        if required.is_set() {
            let wrong_before = old.is_some_and(|old| {
                let check = k1s_object::Check::new();
                let before = old.get("spec").get("nodeAffinity").get("required");
                before.is_set() && {
                    node_selector(check.at("", before.value()), false);
                    check.take().iter().any(|error| error.field.contains("values["))
                }
            });
            node_selector(required, wrong_before);
        } else {
            required.required("must specify required node constraints");
        }
    }
    source::sources(spec, volume.get("metadata").get("name").text());
    let path = spec.get("hostPath").get("path").text();
    let is_root = path.starts_with('/') && path.split('/').all(|part| matches!(part, "" | "."));
    if is_root && policy.text() == "Recycle" {
        policy.forbidden("may not be 'recycle' for a hostPath mount of '/'");
    }
    if !spec.get("storageClassName").text().is_empty() {
        dns_subdomain(spec.get("storageClassName"));
    }
    volume_mode(spec.get("volumeMode"));
    let class = spec.get("volumeAttributesClassName");
    if class.is_set() {
        if class.text().is_empty() {
            class.required("an empty string is disallowed");
        } else {
            dns_subdomain(class);
        }
        if !spec.get("csi").is_set() {
            spec.get("csi").required("has to be specified when using volumeAttributesClassName");
        }
    }
    mount_options(volume);
}

/// Only some volume types support mount options in an annotation.
fn mount_options(volume: At<'_, '_>) {
    let without =
        ["hostPath", "flocker", "fc", "flexVolume", "portworxVolume", "scaleIO", "local", "storageos", "csi"];
    let spec = volume.get("spec");
    let annotated = volume.get("metadata").get("annotations").key(MOUNT_OPTIONS_ANNOTATION).is_set();
    if annotated
        && source::names().filter(|name| !without.contains(name)).all(|name| !spec.get(name).is_set())
    {
        let at = volume.get("metadata").get("annotations").get(MOUNT_OPTIONS_ANNOTATION);
        at.forbidden("may not specify mount options for this volume type");
    }
}

fn validate_update(new: At<'_, '_>, old: At<'_, '_>) {
    validate(new, Some(old));
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let secret = "controllerExpandSecretRef";
    let changed = |name: &'static str| {
        let (now, before) = (spec.get(name), before.get(name));
        if name == "csi" && before.is_set() && !before.get(secret).is_set() {
            // This secret may be added later.
            let mut now = now.value().cloned().unwrap_or_default();
            if let Some(now) = now.as_object_mut() {
                now.shift_remove(secret);
            }
            return !same_struct(Some(&now), before.value());
        }
        now.is_set() != before.is_set() || !same_struct(now.value(), before.value())
    };
    if source::names().any(changed) {
        let at = spec.get("persistentvolumesource");
        at.forbidden("spec.persistentvolumesource is immutable after creation\n");
    }
    let mode = new.get("volumeMode").with(spec.get("volumeMode").value());
    immutable_text(mode, before.get("volumeMode"));
    let class = spec.get("volumeAttributesClassName");
    if before.get("volumeAttributesClassName").is_set() && !class.is_set() {
        class.forbidden("update from non-nil value to nil is forbidden");
    }
}

fn warnings(volume: &Value, _: Option<&Value>, out: &mut Vec<String>) {
    for (annotation, message) in [
        (STORAGE_CLASS_ANNOTATION, "deprecated since v1.8; use \"storageClassName\" attribute instead"),
        (MOUNT_OPTIONS_ANNOTATION, "deprecated since v1.31; use \"mountOptions\" attribute instead"),
    ] {
        if find(volume, &["metadata", "annotations", annotation]).is_some() {
            out.push(format!("metadata.annotations[{annotation}]: {message}"));
        }
    }
    if text_at(volume, &["spec", "persistentVolumeReclaimPolicy"]) == "Recycle" {
        out.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended \
             approach is to use dynamic provisioning."
                .into(),
        );
    }
    let terms = ["spec", "nodeAffinity", "required", "nodeSelectorTerms"];
    for (i, term) in list_at(volume, &terms).iter().enumerate() {
        for (j, expression) in list_at(term, &["matchExpressions"]).iter().enumerate() {
            let key = text_at(expression, &["key"]);
            if let Some(message) = deprecated_node_label(key) {
                out.push(format!("{}[{i}].matchExpressions[{j}].key: {key} is {message}", terms.join(".")));
            }
        }
    }
    for (source, shown, message) in [
        ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ] {
        if find(volume, &["spec", source]).is_some() {
            out.push(format!("spec.{shown}: {message}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing;

    fn volume() -> Value {
        json!({"spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp/x"},
        }})
    }

    #[test]
    fn a_new_one_is_pending_and_protected() {
        assert_eq!(
            testing::created(&RULES, volume()),
            json!({
                "spec": {
                    "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                    "hostPath": {"path": "/tmp/x", "type": ""}, "persistentVolumeReclaimPolicy": "Retain",
                    "volumeMode": "Filesystem",
                },
                "status": {"phase": "Pending"},
                "metadata": {"finalizers": ["kubernetes.io/pv-protection"]},
            })
        );
        assert!(testing::on_create(&RULES, volume()).is_empty());
    }

    #[test]
    fn source_and_mode_stay() {
        let mut new = volume();
        new["spec"]["volumeMode"] = "Block".into();
        assert_eq!(
            testing::on_update(&RULES, volume(), new.clone()),
            ["volumeMode: Invalid value: \"Block\": field is immutable"]
        );
        new = volume();
        new["spec"]["hostPath"]["path"] = "/other".into();
        new["spec"]["capacity"]["storage"] = "2Gi".into();
        let errors = testing::on_update(&RULES, volume(), new);
        assert_eq!(errors.len(), 1);
        assert!(errors[0].starts_with(
            "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"
        ));
    }

    #[test]
    fn the_phase_has_a_time() {
        let time = |volume: &Value| text_at(volume, &["status", "lastPhaseTransitionTime"]).to_owned();
        let mut old = json!({"status": {"phase": "Pending"}});
        stamp_phase(&mut old, None, "t1");
        assert_eq!(time(&old), "t1");
        let mut new = json!({"status": {"phase": "Pending"}});
        stamp_phase(&mut new, Some(&old), "t2");
        assert_eq!(time(&new), "t1");
        let mut new = old.clone();
        new["status"]["phase"] = "Available".into();
        stamp_phase(&mut new, Some(&old), "t2");
        assert_eq!(time(&new), "t2");
    }
}
