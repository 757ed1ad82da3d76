//! `PersistentVolumeClaim`.

use k1s_object::{At, names, quantity::Quantity};
use serde_json::{Value, json};

use super::persistent_volume::{access_modes, volume_mode};
use crate::rules::{
    Rules,
    helpers::{
        equality::same_struct,
        errors::{invalid_each, not_supported},
        immutable::immutable_text,
        json::{default_in, find, keep, remove_in, set_in, text_at},
        metadata::add_finalizer,
        quantities::{amount, basic_amount, is_whole, positive_amount, round_up},
        resource_names::{claim_resource_key, resource_amount},
        text::{dns_label, dns_subdomain},
    },
    keep_status,
};
use k1s_object::selector::validate_label_selector as label_selector;

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) static RULES: Rules = Rules {
    defaults,
    prepare_create: |claim| {
        if let Some(claim) = claim.as_object_mut() {
            claim.insert("status".into(), json!({"phase": "Pending"}));
        }
        data_sources(claim, None);
        // In Kubernetes an admission plugin adds it.
        add_finalizer(claim, "kubernetes.io/pvc-protection");
    },
    prepare_update: |new, old| {
        keep_status(new, old);
        data_sources(new, Some(old));
    },
    prepare_status: |new, old| {
        keep(new, old, "spec");
        // Volume health is a disabled feature.
        if find(old, &["status", "healthStatus"]).is_none() {
            remove_in(new, "status", "healthStatus");
        }
    },
    validate: |claim| validate(claim, None),
    validate_update,
    validate_status,
    warnings,
    delete_answers_object: true,
    ..Rules::PLAIN
};

fn defaults(claim: &mut Value) {
    default_in(claim, "status", "phase", "Pending");
    if find(claim, &["spec", "volumeMode"]).is_none() {
        set_in(claim, "spec", "volumeMode", "Filesystem");
    }
    for list in [
        "/spec/resources/requests",
        "/spec/resources/limits",
        "/status/capacity",
        "/status/allocatedResources",
    ] {
        round_up(claim.pointer_mut(list));
    }
}

/// Synchronizes `dataSource` and `dataSourceRef`; `dataSource` supports claims and snapshots only.
fn data_sources(claim: &mut Value, old: Option<&Value>) {
    let (source, reference) = (["spec", "dataSource"], ["spec", "dataSourceRef"]);
    let in_use = old.is_some_and(|old| find(old, &source).is_some() || find(old, &reference).is_some());
    if !in_use && find(claim, &reference).is_none() && find(claim, &source).is_some() {
        let read = |field| text_at(claim, &["spec", "dataSource", field]);
        let known = matches!(
            (read("kind"), read("apiGroup")),
            ("PersistentVolumeClaim", "") | ("VolumeSnapshot", "snapshot.storage.k8s.io")
        );
        if !known {
            remove_in(claim, "spec", "dataSource");
        }
    }
    match (find(claim, &source).cloned(), find(claim, &reference).cloned()) {
        (Some(source), None) => set_in(claim, "spec", "dataSourceRef", source),
        (None, Some(mut reference)) if text_at(&reference, &["namespace"]).is_empty() => {
            if let Some(reference) = reference.as_object_mut() {
                reference.shift_remove("namespace");
            }
            set_in(claim, "spec", "dataSource", reference);
        }
        _ => {}
    }
}

fn validate(claim: At<'_, '_>, old: Option<At<'_, '_>>) {
    let spec = claim.get("spec");
    let modes = spec.get("accessModes");
    if modes.is_empty() {
        modes.required("at least 1 access mode is required");
    }
    let before = old.map(|old| old.get("spec"));
    let bad_selector = before.is_some_and(|before| {
        let check = k1s_object::Check::new();
        label_selector(check.at("", before.get("selector").value()), false);
        !check.is_ok()
    });
    label_selector(spec.get("selector"), bad_selector);
    access_modes(modes);
    let request = spec.get("resources").get("requests").key("storage");
    let storage = spec.get("resources").key("storage").with(request.value());
    if !request.is_set() {
        storage.required("");
    } else {
        let count = storage.check().count();
        positive_amount(storage);
        if storage.check().count() == count {
            resource_amount("storage", storage);
        }
    }
    if !spec.get("storageClassName").text().is_empty() {
        dns_subdomain(spec.get("storageClassName"));
    }
    volume_mode(spec.get("volumeMode"));
    let bad_group = before.is_some_and(|before| {
        ["dataSource", "dataSourceRef"].iter().any(|field| {
            let group = before.get(field).get("apiGroup").text();
            !group.is_empty() && !names::is_dns1123_subdomain(group).is_empty()
        })
    });
    let (source, reference) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    for one in [source, reference] {
        if one.is_set() {
            data_source(one, bad_group);
        }
    }
    let namespace = reference.get("namespace");
    if !namespace.text().is_empty() {
        dns_label(namespace);
        if source.is_set() {
            spec.invalid_as(json!({}), "may not be specified when dataSourceRef.namespace is specified");
        }
    } else if source.is_set() && reference.is_set() {
        let equal = |field| source.get(field).str() == reference.get(field).str();
        if !equal("apiGroup") || !equal("kind") || !equal("name") {
            spec.invalid_as(json!({}), "must match dataSourceRef");
        }
    }
    if !spec.get("volumeAttributesClassName").text().is_empty() {
        dns_subdomain(spec.get("volumeAttributesClassName"));
    }
}

fn data_source(at: At<'_, '_>, bad_group: bool) {
    for field in ["name", "kind"] {
        if at.get(field).text().is_empty() {
            at.get(field).required("");
        }
    }
    let group = at.get("apiGroup");
    let kind = at.get("kind").text();
    if group.text().is_empty() {
        if kind != "PersistentVolumeClaim" {
            at.invalid_as(kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
        }
    } else if !bad_group {
        invalid_each(group, names::is_dns1123_subdomain(group.text()));
    }
}

fn validate_update(new: At<'_, '_>, old: At<'_, '_>) {
    validate(new, Some(old));
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let annotation = |claim: At<'_, '_>| {
        claim.get("metadata").get("annotations").key(CLASS_ANNOTATION).str().map(str::to_owned)
    };
    let (now_annotated, was_annotated) = (annotation(new), annotation(old));
    let (class, old_class) = (spec.get("storageClassName").str(), before.get("storageClassName").str());
    // The class may move from the annotation to the field, or be set if there was none.
    let moved = was_annotated.is_some()
        && old_class.is_none()
        && class.map(str::to_owned) == was_annotated
        && (now_annotated.is_none() || now_annotated == was_annotated);
    let set_later = class.is_some()
        && old_class.is_none()
        && (was_annotated.is_none() || class == was_annotated.as_deref());
    if !moved && now_annotated.clone().unwrap_or_default() != was_annotated.unwrap_or_default() {
        let at = new.get("metadata").get("annotations").get(CLASS_ANNOTATION);
        at.invalid_as(now_annotated.unwrap_or_default(), "field is immutable");
    }
    let storage = |spec: At<'_, '_>| amount(spec.get("resources").get("requests").key("storage"));
    let bound = new.get("status").get("phase").text() == "Bound";
    let mut left = spec.value().cloned().unwrap_or_default();
    let mut right = before.value().cloned().unwrap_or_default();
    let mut forget = |path: &str, field: &str| {
        for side in [&mut left, &mut right] {
            let parent = if path.is_empty() { Some(&mut *side) } else { side.pointer_mut(path) };
            if let Some(parent) = parent.and_then(Value::as_object_mut) {
                parent.shift_remove(field);
            }
        }
    };
    if before.get("volumeName").text().is_empty() {
        forget("", "volumeName");
    }
    let class_changed = !moved && !set_later && class != old_class;
    forget("", "storageClassName");
    if bound || storage(spec) == storage(before) {
        forget("/resources/requests", "storage");
    }
    if bound {
        forget("", "volumeAttributesClassName");
    }
    if class_changed || !same_struct(Some(&left), Some(&right)) {
        spec.forbidden(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
             claims\n",
        );
    }
    let (size, old_size) = (storage(spec), storage(before));
    if size < old_size && size <= amount(old.get("status").get("capacity").key("storage")) {
        let at = spec.get("resources").get("requests").get("storage");
        at.forbidden("field can not be less than status.capacity");
    }
    let mode = new.get("volumeMode").with(spec.get("volumeMode").value());
    immutable_text(mode, before.get("volumeMode"));
    let class = spec.get("volumeAttributesClassName");
    if class.str() != before.get("volumeAttributesClassName").str()
        && old.get("status").get("currentVolumeAttributesClassName").is_set()
    {
        let what = match class.str() {
            None => "nil",
            Some("") => "empty string",
            Some(_) => return,
        };
        class.forbidden(format!(
            "update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
        ));
    }
}

const RESIZE_STATES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

fn validate_status(new: At<'_, '_>, _: At<'_, '_>) {
    if new.get("spec").get("accessModes").is_empty() {
        new.get("Spec").get("accessModes").required("");
    }
    let status = new.get("status");
    for (_, amount) in status.get("capacity").entries() {
        basic_amount(amount);
    }
    let states = status.get("allocatedResourceStatuses");
    for (name, state) in states.entries() {
        claim_resource_key(name, states);
        if !RESIZE_STATES.contains(&state.text()) {
            not_supported(states, name, &RESIZE_STATES);
        }
    }
    let allocated = status.get("allocatedResources");
    for (name, amount) in allocated.entries() {
        if claim_resource_key(name, allocated) {
            let count = amount.check().count();
            basic_amount(amount);
            if amount.check().count() == count {
                resource_amount("storage", amount);
            }
        }
    }
}

fn warnings(claim: &Value, _: Option<&Value>, out: &mut Vec<String>) {
    if find(claim, &["metadata", "annotations", CLASS_ANNOTATION]).is_some() {
        out.push(format!(
            "metadata.annotations[{CLASS_ANNOTATION}]: deprecated since v1.8; use \"storageClassName\" attribute \
             instead"
        ));
    }
    for list in ["requests", "limits"] {
        if let Ok(amount) = Quantity::parse(text_at(claim, &["spec", "resources", list, "storage"]))
            && !is_whole(&amount)
        {
            out.push(format!(
                "spec.resources.{list}[storage]: fractional byte value \"{amount}\" is invalid, must be an integer"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing;

    fn claim(size: &str) -> Value {
        json!({"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "storageClassName": "none",
        }})
    }

    #[test]
    fn a_claim_says_how_much_and_how() {
        assert!(testing::on_create(&RULES, claim("1Gi")).is_empty());
        assert_eq!(
            testing::on_create(&RULES, json!({"spec": {}})),
            [
                "spec.accessModes: Required value: at least 1 access mode is required",
                "spec.resources[storage]: Required value",
            ]
        );
        let mut odd = claim("0");
        odd["spec"]["accessModes"] = json!(["Odd", "ReadWriteOncePod", "ReadWriteOnce"]);
        assert_eq!(
            testing::on_create(&RULES, odd),
            [
                "spec.accessModes: Unsupported value: \"Odd\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \
                 \"ReadWriteOnce\", \"ReadWriteOncePod\"",
                "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
                "spec.resources[storage]: Invalid value: \"0\": must be greater than zero",
            ]
        );
    }

    #[test]
    fn the_spec_stays_but_a_bound_claim_may_grow() {
        let stays = "spec: Forbidden: spec is immutable after creation except resources.requests and \
                     volumeAttributesClassName for bound claims\n";
        assert_eq!(testing::on_update(&RULES, claim("1Gi"), claim("2Gi")), [stays]);
        assert!(testing::on_update(&RULES, claim("1Gi"), claim("1024Mi")).is_empty());
        let mut bound = claim("1Gi");
        bound["status"] = json!({"phase": "Bound", "capacity": {"storage": "1Gi"}});
        assert!(testing::on_update(&RULES, bound.clone(), claim("2Gi")).is_empty());
        assert_eq!(
            testing::on_update(&RULES, bound.clone(), claim("500Mi")),
            ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"]
        );
        let mut named = claim("1Gi");
        named["spec"]["volumeName"] = "pv".into();
        assert!(testing::on_update(&RULES, claim("1Gi"), named.clone()).is_empty());
        assert_eq!(testing::on_update(&RULES, named, claim("1Gi")), [stays]);
        let mut other = claim("1Gi");
        other["spec"]["storageClassName"] = "".into();
        assert_eq!(testing::on_update(&RULES, claim("1Gi"), other.clone()), [stays]);
        other["spec"].as_object_mut().unwrap().shift_remove("storageClassName");
        assert_eq!(testing::on_update(&RULES, claim("1Gi"), other.clone()), [stays]);
        assert!(testing::on_update(&RULES, other, claim("1Gi")).is_empty());
    }

    #[test]
    fn both_data_sources_are_filled_in() {
        let mut from = claim("1Gi");
        from["spec"]["dataSource"] = json!({"kind": "PersistentVolumeClaim", "name": "a"});
        let created = testing::created(&RULES, from.clone());
        assert_eq!(created["spec"]["dataSourceRef"], json!({"kind": "PersistentVolumeClaim", "name": "a"}));
        from["spec"]["dataSource"] = json!({"kind": "Odd", "apiGroup": "x.y", "name": "a"});
        assert!(find(&testing::created(&RULES, from), &["spec", "dataSource"]).is_none());
    }
}
