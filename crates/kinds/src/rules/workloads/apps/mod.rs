//! Deployment, ReplicaSet, StatefulSet, DaemonSet and ControllerRevision.

pub(crate) mod defaults;

use serde_json::Value;

use super::{
    super::{FieldLabelError, Rules, SelectableField, drop_status, keep_status, only_status},
    json::{child, number, object, restore, same, text},
};

/// The annotation in which `apps/v1` keeps how often a DaemonSet's template changed.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The rules of Deployment.
pub(super) static DEPLOYMENT: Rules = Rules {
    defaults: defaults::deployment,
    prepare_status: deployment_status,
    annotations_in_generation: true,
    ..Rules::WITH_STATUS
};

/// The rules of ReplicaSet.
pub(super) static REPLICA_SET: Rules = Rules {
    defaults: defaults::replica_set,
    fields: &[SelectableField {
        path: "status.replicas",
        read: |set| number(set, "/status/replicas").to_string(),
    }],
    field_error: FieldLabelError::NotSupported,
    ..Rules::WITH_STATUS
};

/// The rules of StatefulSet.
pub(super) static STATEFUL_SET: Rules = Rules { defaults: defaults::stateful_set, ..Rules::WITH_STATUS };

/// The rules of DaemonSet.
pub(super) static DAEMON_SET: Rules = Rules {
    defaults: defaults::daemon_set,
    prepare_create: daemon_set_create,
    prepare_update: daemon_set_update,
    ..Rules::WITH_STATUS
};

/// The rules of ControllerRevision.
pub(super) static CONTROLLER_REVISION: Rules = Rules { ..Rules::PLAIN };

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

fn daemon_set_update(new: &mut Value, old: &Value) {
    keep_status(new, old);
    let changed = !same(new.pointer("/spec/template"), old.pointer("/spec/template"));
    let generation = template_generation(old).saturating_add(i64::from(changed));
    set_template_generation(new, generation);
}
