//! Defaults of Deployment, `ReplicaSet`, `StatefulSet` and `DaemonSet`.

use serde_json::Value;

use crate::rules::{
    core::pod::defaults as pod,
    helpers::json::{child, default_pointer, default_value, each, existing, object, text, zero},
};

/// Fills in a Deployment.
pub(crate) fn deployment(value: &mut Value) {
    let spec = child(object(value), "spec");
    default_pointer(spec, "replicas", 1);
    let strategy = child(spec, "strategy");
    default_value(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        default_pointer(rolling, "maxUnavailable", "25%");
        default_pointer(rolling, "maxSurge", "25%");
    }
    default_pointer(spec, "revisionHistoryLimit", 10);
    default_pointer(spec, "progressDeadlineSeconds", 600);
    pod::template(spec, "template");
}

/// Fills in a `ReplicaSet`.
pub(crate) fn replica_set(value: &mut Value) {
    let spec = child(object(value), "spec");
    default_pointer(spec, "replicas", 1);
    pod::template(spec, "template");
}

/// Fills in a `DaemonSet`.
pub(crate) fn daemon_set(value: &mut Value) {
    let set = object(value);
    // Without a generation of its template it is at 0, and whoever sends it owns the annotation.
    let annotations = child(child(set, "metadata"), "annotations");
    default_value(annotations, super::TEMPLATE_GENERATION, "0");
    let spec = child(set, "spec");
    let strategy = child(spec, "updateStrategy");
    default_value(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        default_pointer(rolling, "maxUnavailable", 1);
        default_pointer(rolling, "maxSurge", 0);
    }
    default_pointer(spec, "revisionHistoryLimit", 10);
    pod::template(spec, "template");
}

/// Fills in a `StatefulSet`.
pub(crate) fn stateful_set(value: &mut Value) {
    let spec = child(object(value), "spec");
    default_value(spec, "podManagementPolicy", "OrderedReady");
    let strategy = child(spec, "updateStrategy");
    if zero(strategy, "type") {
        strategy.insert("type".into(), "RollingUpdate".into());
        child(strategy, "rollingUpdate");
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = existing(strategy, "rollingUpdate")
    {
        default_pointer(rolling, "partition", 0);
        default_pointer(rolling, "maxUnavailable", 1);
    }
    let retention = child(spec, "persistentVolumeClaimRetentionPolicy");
    default_value(retention, "whenDeleted", "Retain");
    default_value(retention, "whenScaled", "Retain");
    default_pointer(spec, "replicas", 1);
    default_pointer(spec, "revisionHistoryLimit", 10);
    pod::template(spec, "template");
    for claim in each(spec, "volumeClaimTemplates") {
        claim.insert("kind".into(), "PersistentVolumeClaim".into());
        claim.insert("apiVersion".into(), "v1".into());
        pod::claim(claim);
    }
}
