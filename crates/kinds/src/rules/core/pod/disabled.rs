//! Fields of features that are disabled by default: dropped silently, as in Kubernetes.

use serde_json::Value;

use crate::rules::helpers::json::{Object, each, existing};

/// Drops them from a spec.
pub(crate) fn drop(spec: &mut Object) {
    for key in ["schedulingGroup", "evictionResponders"] {
        spec.shift_remove(key);
    }
    for volume in each(spec, "volumes") {
        if let Some(empty) = existing(volume, "emptyDir") {
            empty.shift_remove("mode");
        }
        for kind in ["secret", "configMap", "downwardAPI", "projected"] {
            if let Some(source) = existing(volume, kind) {
                files(source);
            }
        }
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in each(spec, list) {
            for mount in each(container, "volumeMounts") {
                mount.shift_remove("bindMountOptions");
            }
            for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
                if let Some(probe) = existing(container, probe) {
                    handler(probe);
                }
            }
            if let Some(lifecycle) = existing(container, "lifecycle") {
                lifecycle.shift_remove("stopSignal");
                for hook in ["postStart", "preStop"] {
                    if let Some(hook) = existing(lifecycle, hook) {
                        handler(hook);
                    }
                }
            }
        }
    }
}

fn handler(handler: &mut Object) {
    if let Some(get) = existing(handler, "httpGet") {
        get.shift_remove("protocol");
    }
    if let Some(grpc) = existing(handler, "grpc") {
        grpc.shift_remove("mode");
    }
}

/// Drops the owner of files.
fn files(source: &mut Object) {
    source.shift_remove("defaultUser");
    for item in each(source, "items") {
        item.shift_remove("user");
    }
    for projection in each(source, "sources") {
        for inner in projection.values_mut().filter_map(Value::as_object_mut) {
            inner.shift_remove("user");
            for item in each(inner, "items") {
                item.shift_remove("user");
            }
        }
    }
}

/// Drops the annotations that once held init containers.
pub(crate) fn drop_annotations(metadata: Option<&mut Value>) {
    let annotations =
        metadata.and_then(|metadata| metadata.get_mut("annotations")).and_then(Value::as_object_mut);
    let Some(annotations) = annotations else { return };
    for version in ["alpha", "beta"] {
        for what in ["init-containers", "init-container-statuses"] {
            annotations.shift_remove(&format!("pod.{version}.kubernetes.io/{what}"));
        }
    }
}
