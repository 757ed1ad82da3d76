//! The objects of a fresh cluster: roles and bindings, priority classes, flow schemas, priority levels,
//! `APIService`s.
//!
//! The server creates missing ones at startup.

mod api_services;
mod flow_control;
mod role_table;
mod roles;
#[cfg(test)]
mod upstream;

pub use api_services::{api_services, custom_api_service, priorities};
pub use flow_control::{flow_schemas, mandatory_flow_schema, mandatory_priority_level, priority_levels};
pub use roles::{cluster_role_bindings, cluster_roles, role_bindings, roles};
use serde_json::{Value, json};

/// The system priority classes: name and value.
pub(crate) const SYSTEM_PRIORITY_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

/// The system priority classes.
pub fn priority_classes() -> Vec<Value> {
    let descriptions = [
        "Used for system critical pods that must not be moved from their current node.",
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ];
    let class = |((name, value), description): ((&str, i64), &str)| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        })
    };
    SYSTEM_PRIORITY_CLASSES.into_iter().zip(descriptions).map(class).collect()
}

/// All bootstrap objects; referenced objects come first.
pub fn objects() -> Vec<Value> {
    [
        priority_classes(),
        priority_levels(),
        flow_schemas(),
        cluster_roles(),
        cluster_role_bindings(),
        roles(),
        role_bindings(),
        api_services(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use k1s_object::field::Check;

    use crate::bootstrap::*;

    #[test]
    fn bootstrap_objects_are_valid() {
        for object in objects() {
            let text = |name: &str| object[name].as_str().unwrap().to_owned();
            let (version, kind) = (text("apiVersion"), text("kind"));
            let (group, version) = version.split_once('/').unwrap();
            let rules = crate::rules::rules(group, version, &kind);
            let check = Check::new();
            (rules.validate)(check.root(&object));
            let wrong: Vec<_> = check.take().iter().map(ToString::to_string).collect();
            assert!(wrong.is_empty(), "{kind} {}: {wrong:?}", object["metadata"]["name"]);
        }
    }
}
