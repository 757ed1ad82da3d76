//! Validation of an update of a Job: nearly all of its spec is immutable.

use k1s_object::At;
use serde_json::Value;

use super::{
    policies::{POD_FAILURE_POLICY, SUCCESS_POLICY, immutable_struct},
    spec::{pod_names, spec_with_selector},
};
use crate::rules::helpers::{
    equality::same_workload,
    go_values::sorted,
    immutable::{immutable, immutable_selector},
    json::{child, object, restore},
};

pub(crate) fn validate(new: At<'_, '_>, old: At<'_, '_>) {
    let (spec, before) = (new.get("spec"), old.get("spec"));
    spec_with_selector(spec);
    completions(spec, before);
    immutable_selector(spec.get("selector"), before.get("selector").value());
    template_update(spec, old);
    immutable(spec.get("completionMode"), before.get("completionMode").value());
    immutable_struct(
        spec.get("podFailurePolicy"),
        before.get("podFailurePolicy").value(),
        POD_FAILURE_POLICY,
    );
    immutable(spec.get("backoffLimitPerIndex"), before.get("backoffLimitPerIndex").value());
    immutable(spec.get("managedBy"), before.get("managedBy").value());
    immutable_struct(spec.get("successPolicy"), before.get("successPolicy").value(), SUCCESS_POLICY);
    pod_names(new);
}

fn completions(spec: At<'_, '_>, before: At<'_, '_>) {
    let at = spec.get("completions");
    if spec.get("completionMode").text() != "Indexed" {
        immutable(at, before.get("completions").value());
        return;
    }
    if at.is_set()
        && at.value() != before.get("completions").value()
        && at.number() != spec.get("parallelism").number()
    {
        at.invalid("can only be modified in tandem with spec.parallelism");
    }
}

/// The template is immutable, except that scheduling fields and resources may change while the Job is suspended
/// and has no active pods.
fn template_update(spec: At<'_, '_>, old: At<'_, '_>) {
    let at = spec.get("template");
    let suspended = old.get("spec").get("suspend").is_true();
    let status = old.get("status");
    let condition = status
        .get("conditions")
        .items()
        .any(|one| one.get("type").text() == "Suspended" && one.get("status").text() == "True");
    let free =
        suspended && (!status.get("startTime").is_set() || condition) && status.get("active").number() == 0;
    let mut before = old.get("spec").get("template").value().cloned().unwrap_or_default();
    let Some(now) = at.value() else { return };
    if !free {
        if !same_workload(Some(now), Some(&before)) {
            at.invalid_as(sorted(now), "field is immutable");
        }
        return;
    }
    let template = object(&mut before);
    let metadata = now.get("metadata").and_then(Value::as_object);
    for key in ["annotations", "labels"] {
        restore(child(template, "metadata"), metadata, key);
    }
    let inner = child(template, "spec");
    let new_spec = now.get("spec").and_then(Value::as_object);
    for key in ["nodeSelector", "tolerations", "schedulingGates"] {
        restore(inner, new_spec, key);
    }
    let affinity = now.pointer("/spec/affinity").and_then(Value::as_object);
    restore(child(inner, "affinity"), affinity, "nodeAffinity");
    if child(inner, "affinity").is_empty() && affinity.is_none() {
        inner.shift_remove("affinity");
    }
    for list in ["containers", "initContainers"] {
        let sent = now.pointer("/spec").and_then(|spec| spec.get(list)).and_then(Value::as_array);
        let Some(Value::Array(items)) = inner.get_mut(list) else { continue };
        if sent.is_none_or(|sent| sent.len() != items.len()) {
            continue;
        }
        for (item, sent) in items.iter_mut().zip(sent.into_iter().flatten()) {
            if item.get("name") == sent.get("name") {
                restore(object(item), sent.as_object(), "resources");
            }
        }
    }
    if !same_workload(now.get("spec"), before.get("spec")) {
        at.check().push(k1s_object::FieldError::invalid(
            format!("{}.spec", at.path()),
            now.get("spec").map_or(Value::Null, sorted),
            "field is immutable",
        ));
    }
}
