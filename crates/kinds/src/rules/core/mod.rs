//! The core group.

mod binding;
mod component_status;
mod config_map;
mod endpoints;
pub mod event;
mod limit_range;
pub mod namespace;
mod node;
mod persistent_volume;
mod persistent_volume_claim;
pub mod pod;
mod pod_template;
mod replication_controller;
mod resource_quota;
mod secret;
pub mod service;
mod service_account;

use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "Binding" => &binding::RULES,
        "ComponentStatus" => &component_status::RULES,
        "ConfigMap" => &config_map::RULES,
        "Endpoints" => &endpoints::RULES,
        "Event" => &event::CORE,
        "LimitRange" => &limit_range::RULES,
        "Namespace" => &namespace::RULES,
        "Node" => &node::RULES,
        "PersistentVolume" => &persistent_volume::RULES,
        "PersistentVolumeClaim" => &persistent_volume_claim::RULES,
        "Pod" => &pod::RULES,
        "PodTemplate" => &pod_template::RULES,
        "ReplicationController" => &replication_controller::RULES,
        "ResourceQuota" => &resource_quota::RULES,
        "Secret" => &secret::RULES,
        "Service" => &service::RULES,
        "ServiceAccount" => &service_account::RULES,
        _ => return None,
    })
}
