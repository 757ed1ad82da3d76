//! Pods and the kinds that make them: what `core`, `apps` and `batch` know of workloads.

mod apps;
mod batch;
mod check;
mod image;
mod json;
mod labels;
pub mod pod;
mod quantity;

use self::json::number;
use super::{FieldLabelError, Rules, SelectableField};

/// The rules of PodTemplate.
static POD_TEMPLATE: Rules = Rules {
    defaults: pod::defaults::pod_template,
    generation: true,
    delete_answers_object: true,
    ..Rules::PLAIN
};

/// The rules of ReplicationController.
static REPLICATION_CONTROLLER: Rules = Rules {
    defaults: pod::defaults::replication_controller,
    orphans_by_default: true,
    fields: &[SelectableField {
        path: "status.replicas",
        read: |controller| number(controller, "/status/replicas").to_string(),
    }],
    field_error: FieldLabelError::NotSupported,
    ..Rules::WITH_STATUS
};

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
