//! The `APIService`s of a fresh cluster, with the priorities of groups and versions in discovery.

use serde_json::{Map, Value, json};

const PRIORITIES: [(&str, &str, i64, i64); 22] = [
    ("", "v1", 18000, 1),
    ("apps", "v1", 17800, 15),
    ("events.k8s.io", "v1", 17750, 15),
    ("authentication.k8s.io", "v1", 17700, 15),
    ("authorization.k8s.io", "v1", 17600, 15),
    ("autoscaling", "v1", 17500, 15),
    ("autoscaling", "v2", 17500, 30),
    ("batch", "v1", 17400, 15),
    ("certificates.k8s.io", "v1", 17300, 15),
    ("networking.k8s.io", "v1", 17200, 15),
    ("policy", "v1", 17100, 15),
    ("rbac.authorization.k8s.io", "v1", 17000, 15),
    ("storage.k8s.io", "v1", 16800, 15),
    ("apiextensions.k8s.io", "v1", 16700, 15),
    ("admissionregistration.k8s.io", "v1", 16700, 15),
    ("scheduling.k8s.io", "v1", 16600, 15),
    ("coordination.k8s.io", "v1", 16500, 15),
    ("node.k8s.io", "v1", 16300, 15),
    ("discovery.k8s.io", "v1", 16200, 15),
    ("resource.k8s.io", "v1", 16200, 21),
    ("flowcontrol.apiserver.k8s.io", "v1", 16100, 21),
    ("storagemigration.k8s.io", "v1", 15800, 15),
];

fn service(group: &str, version: &str, managed: &str, priorities: (i64, i64)) -> Value {
    let mut spec = Map::new();
    if !group.is_empty() {
        spec.insert("group".into(), group.into());
    }
    spec.insert("version".into(), version.into());
    spec.insert("groupPriorityMinimum".into(), priorities.0.into());
    spec.insert("versionPriority".into(), priorities.1.into());
    json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {
            "name": format!("{version}.{group}"),
            "labels": {"kube-aggregator.kubernetes.io/automanaged": managed},
        },
        "spec": spec,
    })
}

/// The priorities of a built-in group version: of the group, and of the version in it.
pub fn priorities(group: &str, version: &str) -> Option<(i64, i64)> {
    let found = PRIORITIES.iter().find(|(g, v, ..)| *g == group && *v == version)?;
    Some((found.2, found.3))
}

/// The `APIService`s of the built-in APIs.
pub fn api_services() -> Vec<Value> {
    let built_in = |(group, version, minimum, priority): (&str, &str, i64, i64)| {
        service(group, version, "onstart", (minimum, priority))
    };
    PRIORITIES.into_iter().map(built_in).collect()
}

/// The `APIService` of a custom resource, which exists as long as its definition.
pub fn custom_api_service(group: &str, version: &str) -> Value {
    service(group, version, "true", (1000, 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_has_no_group_in_its_name() {
        let services = api_services();
        assert_eq!(services[0]["metadata"]["name"], "v1.");
        assert_eq!(
            services[0]["spec"],
            json!({"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1})
        );
        assert_eq!(custom_api_service("a.example.com", "v2")["metadata"]["name"], "v2.a.example.com");
    }
}
