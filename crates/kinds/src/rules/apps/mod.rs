//! Deployment, `ReplicaSet`, `StatefulSet`, `DaemonSet` and `ControllerRevision`.

pub(crate) mod defaults;
pub(crate) mod validate;

use k1s_object::Check;
use serde_json::Value;

use crate::rules::{
    NameRule, Rules,
    core::pod::warnings,
    drop_status,
    helpers::json::{child, object, restore, same, same_field, text},
    keep_status, only_status,
};

/// The annotation in which `apps/v1` keeps how often a `DaemonSet`'s template changed.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The rules of Deployment.
pub(super) static DEPLOYMENT: Rules = Rules {
    defaults: defaults::deployment,
    validate: validate::deployment,
    validate_update: validate::deployment_update,
    validate_status: validate::deployment_status,
    warnings: deployment_warnings,
    prepare_status: deployment_status,
    annotations_in_generation: true,
    ..Rules::WITH_STATUS
};

/// The rules of `ReplicaSet`.
pub(super) static REPLICA_SET: Rules = Rules {
    defaults: defaults::replica_set,
    validate: validate::replica_set,
    validate_update: validate::replica_set_update,
    validate_status: validate::replicas_status,
    warnings: replica_set_warnings,
    ..Rules::WITH_STATUS
};

/// The rules of `StatefulSet`.
pub(super) static STATEFUL_SET: Rules = Rules {
    defaults: defaults::stateful_set,
    validate: validate::stateful_set,
    validate_update: validate::stateful_set_update,
    validate_status: validate::stateful_set_status,
    warnings: stateful_set_warnings,
    name: NameRule::Label,
    ..Rules::WITH_STATUS
};

/// The rules of `DaemonSet`.
pub(super) static DAEMON_SET: Rules = Rules {
    defaults: defaults::daemon_set,
    prepare_create: daemon_set_create,
    prepare_update: daemon_set_update,
    prepare_status: daemon_set_status,
    validate: validate::daemon_set,
    validate_update: validate::daemon_set_update,
    validate_status: validate::daemon_set_status,
    warnings: daemon_set_warnings,
    ..Rules::WITH_STATUS
};

/// The rules of `ControllerRevision`.
pub(super) static CONTROLLER_REVISION: Rules = Rules {
    validate: validate::controller_revision,
    validate_update: validate::controller_revision_update,
    ..Rules::PLAIN
};

fn template_warnings(new: &Value, out: &mut Vec<String>) {
    warnings::template("spec.template", new.pointer("/spec/template"), out);
}

fn deployment_warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    replica_set_warnings(new, old, out);
    let annotations = |object: &Value| object.pointer("/metadata/annotations").cloned();
    // Annotations count as a change of a Deployment.
    if let Some(old) = old
        && same_field(new, old, "spec")
        && !same(annotations(new).as_ref(), annotations(old).as_ref())
    {
        template_warnings(new, out);
    }
}

fn replica_set_warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_none() {
        warnings::name(new, "Pod names and hostnames", out);
    }
    if old.is_none_or(|old| !same_field(new, old, "spec")) {
        template_warnings(new, out);
    }
}

fn daemon_set_warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_none_or(|old| !same(new.pointer("/spec/template"), old.pointer("/spec/template"))) {
        template_warnings(new, out);
    }
}

fn stateful_set_warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_none_or(|old| !same_field(new, old, "spec")) {
        template_warnings(new, out);
    }
    let check = Check::new();
    let spec = check.root(new).get("spec");
    for claim in spec.get("volumeClaimTemplates").items() {
        // The path lacks the `spec` on create and has Go's name for it on update.
        let at = if old.is_some() { claim.get("Spec") } else { claim };
        warnings::claim(at.with(claim.get("spec").value()), out);
    }
    if spec.get("revisionHistoryLimit").number() < 0 {
        out.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
                .into(),
        );
    }
}

/// Labels stay as they were: an update of the status may change annotations only.
fn deployment_status(new: &mut Value, old: &Value) {
    only_status(new, old);
    let metadata = child(object(new), "metadata");
    restore(metadata, old.get("metadata").and_then(Value::as_object), "labels");
}

fn template_generation(set: &Value) -> i64 {
    let annotations = set.pointer("/metadata/annotations").and_then(Value::as_object);
    annotations
        .and_then(|annotations| text(annotations, TEMPLATE_GENERATION).parse().ok())
        .unwrap_or_default()
}

fn set_template_generation(set: &mut Value, generation: i64) {
    let annotations = child(child(object(set), "metadata"), "annotations");
    annotations.insert(TEMPLATE_GENERATION.into(), generation.to_string().into());
}

fn daemon_set_create(set: &mut Value) {
    drop_status(set);
    let generation = template_generation(set).max(1);
    set_template_generation(set, generation);
}

fn daemon_set_status(new: &mut Value, old: &Value) {
    only_status(new, old);
    set_template_generation(new, template_generation(old));
}

fn daemon_set_update(new: &mut Value, old: &Value) {
    keep_status(new, old);
    let changed = !same(new.pointer("/spec/template"), old.pointer("/spec/template"));
    let generation = template_generation(old).saturating_add(i64::from(changed));
    set_template_generation(new, generation);
}

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "Deployment" => &DEPLOYMENT,
        "ReplicaSet" => &REPLICA_SET,
        "StatefulSet" => &STATEFUL_SET,
        "DaemonSet" => &DAEMON_SET,
        "ControllerRevision" => &CONTROLLER_REVISION,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
