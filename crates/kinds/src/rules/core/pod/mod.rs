//! `Pod`: the rules, and the decisions that its subresources need.

mod connect;
mod container_status;
mod containers;
pub(crate) mod defaults;
mod disabled;
mod env;
mod image;
pub(crate) mod prepare;
mod probes;
pub(crate) mod qos;
pub(crate) mod resources;
mod scheduling;
mod security;
pub(crate) mod spec;
mod subresources;
mod update;
pub(crate) mod volumes;
mod volumes_projected;
pub(crate) mod warnings;

use serde_json::Value;

pub use connect::{LogOptions, container_name, grace_period, host_of, validate_log_options};
pub use defaults::admission_defaults;
pub use prepare::{ephemeral_containers as prepare_ephemeral_containers, resize as prepare_resize};
pub(crate) use scheduling::tolerations;
pub use subresources::{
    Eviction, apply_binding, eviction_decision, mark_evicted, set_condition, validate_binding,
};
pub use update::{ephemeral_containers as validate_ephemeral_containers, resize as validate_resize};

use crate::rules::{
    FieldLabelError, Rules, SelectableField,
    helpers::json::{list_at, text_at},
};

pub(super) static RULES: Rules = Rules {
    defaults: defaults::pod,
    prepare_create: prepare::create,
    prepare_update: prepare::update,
    prepare_status: prepare::status,
    validate: update::create,
    validate_update: update::update,
    validate_status: update::status,
    warnings: warnings::pod,
    generation: true,
    delete_answers_object: true,
    fields: &FIELDS,
    field_error: FieldLabelError::NotSupported,
    ..Rules::PLAIN
};

static FIELDS: [SelectableField; 10] = [
    SelectableField { path: "spec.nodeName", read: |pod| text_at(pod, &["spec", "nodeName"]).into() },
    SelectableField { path: "spec.host", read: |pod| text_at(pod, &["spec", "nodeName"]).into() },
    SelectableField {
        path: "spec.restartPolicy",
        read: |pod| text_at(pod, &["spec", "restartPolicy"]).into(),
    },
    SelectableField {
        path: "spec.schedulerName",
        read: |pod| text_at(pod, &["spec", "schedulerName"]).into(),
    },
    SelectableField {
        path: "spec.serviceAccountName",
        read: |pod| text_at(pod, &["spec", "serviceAccountName"]).into(),
    },
    SelectableField {
        path: "spec.hostNetwork",
        read: |pod| (pod.pointer("/spec/hostNetwork") == Some(&Value::Bool(true))).to_string(),
    },
    SelectableField { path: "status.phase", read: |pod| text_at(pod, &["status", "phase"]).into() },
    SelectableField {
        path: "status.podIP",
        read: |pod| list_at(pod, &["status", "podIPs"]).first().map_or("", |ip| text_at(ip, &["ip"])).into(),
    },
    // Accepted, but always empty.
    SelectableField { path: "status.podIPs", read: |_| String::new() },
    SelectableField {
        path: "status.nominatedNodeName",
        read: |pod| text_at(pod, &["status", "nominatedNodeName"]).into(),
    },
];

#[cfg(test)]
mod tests;
