//! Defaults of a Job, and the selector that the server generates for it.

use serde_json::{Value, json};

use crate::rules::{
    core::pod::defaults as pod_defaults,
    helpers::json::{child, default_pointer, object, text, unset, zero},
};

pub(crate) fn job(value: &mut Value) {
    let job = object(value);
    let spec = child(job, "spec");
    if unset(spec, "completions") && unset(spec, "parallelism") {
        spec.insert("completions".into(), 1.into());
    }
    default_pointer(spec, "parallelism", 1);
    let limit = if unset(spec, "backoffLimitPerIndex") { 6 } else { i32::MAX };
    default_pointer(spec, "backoffLimit", limit);
    default_pointer(spec, "completionMode", "NonIndexed");
    default_pointer(spec, "suspend", false);
    let replacement = if unset(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
    default_pointer(spec, "podReplacementPolicy", replacement);
    default_pointer(spec, "manualSelector", false);
    pod_defaults::job_policies(spec);
    pod_defaults::template(spec, "template");
    // On create, the labels of the template are copied after the server has added its own.
    if !text(child(job, "metadata"), "uid").is_empty() {
        labels_from_template(value);
    }
}

/// Copies the labels of the template to a Job without labels.
pub(crate) fn labels_from_template(value: &mut Value) {
    let Some(labels) = value.pointer("/spec/template/metadata/labels").filter(|labels| labels.is_object())
    else {
        return;
    };
    let labels = labels.clone();
    let metadata = child(object(value), "metadata");
    if zero(metadata, "labels") {
        metadata.insert("labels".into(), labels);
    }
}

/// Generates the selector and the labels that match it.
pub(crate) fn generate_selector(value: &mut Value) {
    let (name, uid) = match value.get("metadata").and_then(Value::as_object) {
        Some(metadata) => (text(metadata, "name").to_owned(), text(metadata, "uid").to_owned()),
        None => return,
    };
    let spec = child(object(value), "spec");
    if spec.get("manualSelector") == Some(&json!(true)) {
        return;
    }
    let labels = child(child(child(spec, "template"), "metadata"), "labels");
    for key in ["job-name", "batch.kubernetes.io/job-name"] {
        labels.entry(key).or_insert_with(|| name.as_str().into());
    }
    for key in ["controller-uid", "batch.kubernetes.io/controller-uid"] {
        labels.entry(key).or_insert_with(|| uid.as_str().into());
    }
    let selector = child(child(spec, "selector"), "matchLabels");
    selector.entry("batch.kubernetes.io/controller-uid").or_insert_with(|| uid.into());
}
