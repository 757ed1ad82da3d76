//! Pods and the kinds that make them: what `core`, `apps` and `batch` know of workloads.

mod apps;
mod batch;
mod check;
mod image;
mod json;
mod labels;
pub mod pod;
mod quantity;
pub mod scale;

use k1s_object::At;
use serde_json::Value;

pub use self::batch::DELETE_WARNING as JOB_DELETE_WARNING;
pub use self::scale::{scale_of, set_scale, validate_scale};
use self::{check::non_negative, json::number};
use super::{FieldLabelError, Rules, SelectableField};

/// The rules of `PodTemplate`.
static POD_TEMPLATE: Rules = Rules {
    defaults: pod::defaults::pod_template,
    validate: |object| pod::spec::template(object.get("template")),
    validate_update: |new, _| pod::spec::template(new.get("template")),
    warnings: pod_template_warnings,
    generation: true,
    delete_answers_object: true,
    ..Rules::PLAIN
};

/// The rules of `ReplicationController`.
static REPLICATION_CONTROLLER: Rules = Rules {
    defaults: pod::defaults::replication_controller,
    validate: replication_controller,
    validate_update: |new, _| replication_controller(new),
    validate_status: apps::validate::replicas_status,
    warnings: replication_controller_warnings,
    orphans_by_default: true,
    fields: &[SelectableField {
        path: "status.replicas",
        read: |controller| number(controller, "/status/replicas").to_string(),
    }],
    field_error: FieldLabelError::NotSupported,
    ..Rules::WITH_STATUS
};

fn pod_template_warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_none_or(|old| !json::same_field(new, old, "template")) {
        pod::warnings::template("template", new.get("template"), out);
    }
}

fn replication_controller_warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_none() {
        pod::warnings::name(new, "Pod names and hostnames", out);
    }
    if old.is_none_or(|old| !json::same_field(new, old, "spec")) {
        // On update Kubernetes looks at the template as it was.
        pod::warnings::template("spec.template", old.unwrap_or(new).pointer("/spec/template"), out);
    }
}

fn replication_controller(controller: At<'_, '_>) {
    let spec = controller.get("spec");
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    if selector.is_empty() {
        selector.required("");
    }
    if template.is_set() {
        let labels = template.get("metadata").get("labels");
        if !selector.is_empty() && !labels::map_matches(selector.value(), labels.value()) {
            labels.invalid_as(
                labels.value().map_or(Value::Null, check::sorted),
                "`selector` does not match template `labels`",
            );
        }
        pod::spec::template(template);
        pod::spec::always_restarts(template, "ReplicationController");
    } else {
        template.required("");
    }
    // Declarative validation speaks last.
    non_negative(spec.get("replicas"));
    non_negative(spec.get("minReadySeconds"));
}

/// The rules of a kind of these groups.
pub(super) fn rules(group: &str, _version: &str, kind: &str) -> Option<&'static Rules> {
    Some(match (group, kind) {
        ("", "Pod") => &pod::POD,
        ("", "PodTemplate") => &POD_TEMPLATE,
        ("", "ReplicationController") => &REPLICATION_CONTROLLER,
        ("apps", "Deployment") => &apps::DEPLOYMENT,
        ("apps", "ReplicaSet") => &apps::REPLICA_SET,
        ("apps", "StatefulSet") => &apps::STATEFUL_SET,
        ("apps", "DaemonSet") => &apps::DAEMON_SET,
        ("apps", "ControllerRevision") => &apps::CONTROLLER_REVISION,
        ("batch", "Job") => &batch::JOB,
        ("batch", "CronJob") => &batch::CRON_JOB,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
