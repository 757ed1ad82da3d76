//! What is written: `ConfigMaps` of 2 KB, custom resources, Deployments, definitions of 20 KB.

use serde_json::{Map, Value, json};

/// A small generator of its own.
fn mixed(number: u64) -> u64 {
    let mixed =
        (number ^ (number >> 30)).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 31)
}

/// The name of an object of a run.
pub(crate) fn name(prefix: &str, number: u64) -> String {
    format!("{prefix}-{number:06}")
}

pub(crate) fn namespace(name: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#)
}

/// `ConfigMaps` of about 2 KB. Most of them is made beforehand: the client should have little to do.
pub(crate) struct ConfigMaps(Vec<String>);

impl ConfigMaps {
    pub(crate) fn new() -> ConfigMaps {
        let data = |number: u64| {
            let mut data = Map::new();
            for field in 0..24 {
                let noise =
                    (0..4).map(|part| format!("{:016x}", mixed((number << 16) | (field << 4) | part)));
                data.insert(format!("setting-{field:02}"), noise.collect::<String>().into());
            }
            Value::Object(data).to_string()
        };
        ConfigMaps((0..64).map(data).collect())
    }

    /// One with a label that one in a hundred shares.
    pub(crate) fn get(&self, name: &str, number: u64) -> String {
        let data = &self.0[(number % self.0.len() as u64) as usize];
        format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"app":"bench","shard":"{}"}}}},"data":{data}}}"#,
            number % 100
        )
    }
}

/// A Deployment as many are.
pub(crate) fn deployment(name: &str) -> String {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{
                    "name": "main", "image": "registry.example/team/app:v1.2.3",
                    "args": ["--listen=:8080", "--verbose"],
                    "env": (0..8).map(|number| json!({"name": format!("SETTING_{number}"), "value": "on"}))
                        .collect::<Vec<_>>(),
                    "ports": [{"containerPort": 8080, "name": "http"}],
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                    "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
                }]},
            },
        },
    })
    .to_string()
}

/// A custom resource for [`definition`].
pub(crate) fn widget(group: &str, kind: &str, name: &str) -> String {
    let section = json!({"name": "main", "size": 3, "mode": "Fast", "hosts": ["a.example", "b.example"],
        "settings": {"colour": "blue", "depth": "7"}});
    json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": name},
        "spec": {"replicas": 2, "section00": section, "section01": section}})
    .to_string()
}

/// A definition whose schema has about 20 KB, most of it descriptions, as generated ones have.
pub(crate) fn definition(group: &str, kind: &str) -> String {
    let about = |what: &str| {
        format!(
            "{what} tells the controller how this part of the object is to be run. It is optional; a value that \
             is left out is filled in by the controller from the defaults of its installation."
        )
    };
    let section = |number: u64| {
        json!({
            "type": "object", "description": about(&format!("Section {number}")), "required": ["name"],
            "properties": {
                "name": {"type": "string", "description": about("Name"), "maxLength": 63,
                    "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
                "size": {"type": "integer", "format": "int32", "description": about("Size"), "minimum": 0, "default": 1},
                "mode": {"type": "string", "description": about("Mode"), "enum": ["Fast", "Safe", "Off"]},
                "hosts": {"type": "array", "description": about("Hosts"), "x-kubernetes-list-type": "set", "maxItems": 32,
                    "items": {"type": "string", "maxLength": 253}},
                "settings": {"type": "object", "description": about("Settings"),
                    "additionalProperties": {"type": "string"}},
                "limits": {"type": "object", "description": about("Limits"), "properties": {
                    "cpu": {"x-kubernetes-int-or-string": true, "description": about("CPU")},
                    "memory": {"x-kubernetes-int-or-string": true, "description": about("Memory")},
                }},
            },
        })
    };
    let mut spec = Map::new();
    spec.insert("replicas".into(), json!({"type": "integer", "format": "int32", "minimum": 0}));
    for number in 0..8 {
        spec.insert(format!("section{number:02}"), section(number));
    }
    let condition = json!({
        "type": "object", "required": ["type", "status"],
        "properties": {
            "type": {"type": "string", "description": about("Type")},
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": {"type": "string"}, "message": {"type": "string"},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
        },
    });
    let status = json!({"type": "object", "properties": {
        "replicas": {"type": "integer", "format": "int32"},
        "observedGeneration": {"type": "integer", "format": "int64"},
        "phase": {"type": "string"},
        "conditions": {"type": "array", "items": condition, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"]},
    }});
    let schema = json!({"type": "object", "description": about(kind), "properties": {
        "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
        "spec": {"type": "object", "properties": Value::Object(spec)}, "status": status,
    }});
    let plural = plural(kind);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}],
        },
    })
    .to_string()
}

pub(crate) fn plural(kind: &str) -> String {
    format!("{}s", kind.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_the_size_that_the_measurements_say() {
        let size = ConfigMaps::new().get(&name("cm", 7), 7).len();
        assert!((1950..2150).contains(&size), "{size}");
        let size = definition("bench.example", "Widget").len();
        assert!((19_000..22_000).contains(&size), "{size}");
    }
}
