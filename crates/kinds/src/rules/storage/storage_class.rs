//! Storage: `StorageClass`, `VolumeAttributesClass` and `VolumeAttachment`.

use std::collections::{BTreeMap, BTreeSet};

use k1s_object::{
    field::{At, FieldError, MAX_ERRORS},
    names,
};
use serde_json::Value;

use crate::rules::helpers::cluster_util::{
    default, deprecated_node_label, driver_name, immutable, invalid_each, same, status_alone, structure,
    unchanged,
};
use crate::rules::{Rules, drop_status, keep_status};

const MAX_PARAMETERS: usize = 512;
const MAX_PARAMETERS_SIZE: usize = 256 * 1024;

static CLASS: Rules = Rules {
    defaults: default_class,
    validate: class_create,
    validate_update: class_update,
    warnings: class_warnings,
    delete_answers_object: true,
    ..Rules::PLAIN
};

static ATTRIBUTES_CLASS: Rules = Rules {
    prepare_create: protect,
    validate: attributes_create,
    validate_update: attributes_update,
    delete_answers_object: true,
    ..Rules::PLAIN
};

static ATTACHMENT: Rules = Rules {
    prepare_create: drop_status,
    prepare_update: keep_status,
    prepare_status: status_alone,
    validate: attachment_create,
    validate_update: attachment_update,
    validate_status: attachment_update,
    unconditional_update: false,
    delete_answers_object: true,
    ..Rules::PLAIN
};

pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "StorageClass" => &CLASS,
        "VolumeAttributesClass" => &ATTRIBUTES_CLASS,
        "VolumeAttachment" => &ATTACHMENT,
        _ => return None,
    })
}

fn default_class(class: &mut Value) {
    default(class, "reclaimPolicy", "Delete");
    default(class, "volumeBindingMode", "Immediate");
}

fn class_create(class: At<'_, '_>) {
    class_written(class);
    required(class.get("provisioner"));
}

fn class_update(class: At<'_, '_>, old: At<'_, '_>) {
    class_written(class);
    let changed = |name: &'static str| !unchanged(class.get(name), old.get(name));
    if changed("provisioner") {
        required(class.get("provisioner"));
    }
    for name in ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"] {
        if changed(name) {
            immutable(class.get(name));
        }
    }
}

fn required(at: At<'_, '_>) {
    if at.is_empty() {
        at.required("");
    }
}

fn class_written(class: At<'_, '_>) {
    provisioner(class.get("provisioner"));
    parameters(class.get("parameters"));
    let policy = class.get("reclaimPolicy");
    if !policy.is_empty() && !matches!(policy.text(), "Delete" | "Retain") {
        policy.not_supported(&["Delete", "Retain"]);
    }
    let mode = class.get("volumeBindingMode");
    if !mode.is_set() {
        mode.required("");
    } else if !matches!(mode.text(), "Immediate" | "WaitForFirstConsumer") {
        mode.not_supported(&["Immediate", "WaitForFirstConsumer"]);
    }
    topologies(class.get("allowedTopologies"));
}

fn provisioner(at: At<'_, '_>) {
    if at.is_empty() {
        return;
    }
    let name = at.text().to_lowercase();
    for message in names::is_qualified_name(&name) {
        at.invalid_as(name.as_str(), message);
    }
}

fn parameters(at: At<'_, '_>) {
    if at.len() > MAX_PARAMETERS {
        return at.too_long(MAX_PARAMETERS);
    }
    let mut size = 0;
    for (key, value) in at.entries() {
        if key.is_empty() {
            at.invalid_as("", "field can not be empty.");
        }
        size += key.len() + value.text().len();
    }
    if size > MAX_PARAMETERS_SIZE {
        at.too_long(MAX_PARAMETERS_SIZE);
    }
}

fn topologies(at: At<'_, '_>) {
    let mut seen: BTreeMap<BTreeMap<&str, BTreeSet<&str>>, usize> = BTreeMap::new();
    for term in at.items() {
        let expressions = term.get("matchLabelExpressions");
        let mut terms: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for expression in expressions.items() {
            let mut values = BTreeSet::new();
            if expression.get("values").is_empty() {
                expression.get("values").required("");
            }
            for value in expression.get("values").items() {
                if !values.insert(value.text()) {
                    value.duplicate();
                }
            }
            let key = expression.get("key");
            invalid_each(key, names::is_qualified_name(key.text()));
            if terms.insert(key.text(), values).is_some() {
                key.duplicate();
            }
        }
        // One error for each term that was there before.
        let before = seen.entry(terms).or_default();
        let told = (*before).min(MAX_ERRORS);
        for _ in 0..told {
            expressions.check().push_with(|| FieldError::duplicate(expressions.path(), ""));
        }
        if *before > told {
            expressions.check().push(FieldError::omitted(*before - told));
        }
        *before += 1;
    }
}

fn class_warnings(class: &Value, _: Option<&Value>, out: &mut Vec<String>) {
    let list =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    for (i, term) in list(class, "allowedTopologies").iter().enumerate() {
        for (j, expression) in list(term, "matchLabelExpressions").iter().enumerate() {
            let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
            if let Some(message) = deprecated_node_label(key) {
                out.push(format!("allowedTopologies[{i}].matchLabelExpressions[{j}].key: {message}"));
            }
        }
    }
}

/// A class that volumes use is not deleted under them.
fn protect(class: &mut Value) {
    const PROTECTION: &str = "kubernetes.io/vac-protection";
    let Some(metadata) = structure(class, "metadata") else { return };
    default(metadata, "finalizers", Vec::<Value>::new());
    if let Some(list) = metadata.get_mut("finalizers").and_then(Value::as_array_mut)
        && !list.iter().any(|one| one == PROTECTION)
    {
        list.push(PROTECTION.into());
    }
}

fn attributes_create(class: At<'_, '_>) {
    let driver = class.get("driverName");
    required(driver);
    provisioner(driver);
    parameters(class.get("parameters"));
    if class.get("parameters").is_empty() {
        class.get("parameters").required("must contain at least one key/value pair");
    }
}

fn attributes_update(class: At<'_, '_>, old: At<'_, '_>) {
    for (name, why) in [
        ("driverName", "updates to driverName are forbidden."),
        ("parameters", "updates to parameters are forbidden."),
    ] {
        if !unchanged(class.get(name), old.get(name)) {
            class.get(name).forbidden(why);
        }
    }
    attributes_create(class);
}

fn attachment_create(attachment: At<'_, '_>) {
    attachment_written(attachment);
    driver(attachment.get("spec").get("attacher"));
}

fn attachment_update(attachment: At<'_, '_>, old: At<'_, '_>) {
    attachment_written(attachment);
    if !same(attachment.get("spec").value(), old.get("spec").value()) {
        immutable(attachment.get("spec"));
    }
}

/// As [`driver_name`], in the words and the order of generated checks.
fn driver(at: At<'_, '_>) {
    let name = at.text();
    if name.is_empty() {
        return driver_name(at);
    }
    invalid_each(at, names::is_dns1123_subdomain_caseless(name));
    if name.chars().count() > 63 {
        at.too_long(63);
    }
}

fn attachment_written(attachment: At<'_, '_>) {
    let spec = attachment.get("spec");
    let source = spec.get("source");
    let (volume, inline) = (source.get("persistentVolumeName"), source.get("inlineVolumeSpec"));
    let exactly_one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (volume.is_set(), inline.is_set()) {
        (false, false) => source.required(exactly_one),
        (true, true) => source.forbidden(exactly_one),
        (true, false) if volume.is_empty() => volume.required("must specify non empty persistentVolumeName"),
        _ => {}
    }
    invalid_each(spec.get("nodeName"), names::is_dns1123_subdomain(spec.get("nodeName").text()));
    let status = attachment.get("status");
    let metadata = status.get("attachmentMetadata");
    if metadata.entries().map(|(key, value)| key.len() + value.text().len()).sum::<usize>() > 256 * 1024 {
        metadata.too_long(256 * 1024);
    }
    for name in ["attachError", "detachError"] {
        let error = status.get(name);
        if error.get("message").text().len() > 1024 {
            error.get("message").too_long(1024);
        }
        if error.get("errorCode").number() < 0 {
            error.get("errorCode").invalid(names::inclusive_range_error(0, i32::MAX));
        }
    }
    if volume.is_set() {
        invalid_each(volume, names::is_dns1123_subdomain(volume.text()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::cluster_util::testing::*;

    #[test]
    fn a_class_deletes_volumes_and_binds_at_once_by_default() {
        let mut class = json!({"provisioner": "example.com/p"});
        default_class(&mut class);
        assert_eq!(class["reclaimPolicy"], "Delete");
        assert_eq!(class["volumeBindingMode"], "Immediate");
        assert_eq!(on_create(&CLASS, json!({})), ["provisioner: Required value"]);
        assert_eq!(
            on_create(
                &CLASS,
                json!({"provisioner": "p", "reclaimPolicy": "Recycle", "volumeBindingMode": "Later", "parameters": {"": "x"}})
            ),
            [
                "parameters: Invalid value: \"\": field can not be empty.",
                "reclaimPolicy: Unsupported value: \"Recycle\": supported values: \"Delete\", \"Retain\"",
                "volumeBindingMode: Unsupported value: \"Later\": supported values: \"Immediate\", \"WaitForFirstConsumer\"",
            ]
        );
    }

    #[test]
    fn a_class_keeps_what_it_does() {
        let old = json!({"provisioner": "example.com/p"});
        let new = json!({"provisioner": "example.com/q", "parameters": {"a": "b"}, "reclaimPolicy": "Retain",
            "allowVolumeExpansion": true});
        assert_eq!(
            on_update(&CLASS, new, old),
            [
                "provisioner: Invalid value: null: field is immutable",
                "parameters: Invalid value: null: field is immutable",
                "reclaimPolicy: Invalid value: null: field is immutable",
            ]
        );
    }

    #[test]
    fn attributes_name_a_driver_and_stay() {
        assert_eq!(
            on_create(&ATTRIBUTES_CLASS, json!({})),
            [
                "driverName: Required value",
                "parameters: Required value: must contain at least one key/value pair",
            ]
        );
        let class = |iops: &str| json!({"driverName": "d.example.com", "parameters": {"iops": iops}});
        assert_eq!(
            on_update(&ATTRIBUTES_CLASS, class("200"), class("100")),
            ["parameters: Forbidden: updates to parameters are forbidden."]
        );
    }

    #[test]
    fn an_attachment_has_one_source() {
        let attachment = json!({"spec": {"attacher": "a", "nodeName": "n", "source": {}}});
        assert_eq!(
            on_create(&ATTACHMENT, attachment),
            [
                "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName"
            ]
        );
    }
}
