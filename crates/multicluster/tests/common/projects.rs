//! Projects and their control planes, as objects.

use k1s::{
    Runtime,
    kube::{
        self, Api,
        api::{DynamicObject, Patch, PatchParams},
    },
};
use serde_json::json;

/// Definitions of Projects and their control planes, with as much schema as the provider needs.
pub async fn install(runtime: &Runtime) {
    for (group, kind, plural) in [
        ("resourcemanager.miloapis.com", "Project", "projects"),
        ("infrastructure.miloapis.com", "ProjectControlPlane", "projectcontrolplanes"),
    ] {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group,
                "names": {"kind": kind, "plural": plural},
                "scope": "Cluster",
                "versions": [{
                    "name": "v1alpha1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        });
        runtime.apply(&definition.to_string()).await.unwrap();
    }
}

pub fn all(client: kube::Client, internal: bool) -> Api<DynamicObject> {
    let (group, kind) = if internal {
        ("infrastructure.miloapis.com", "ProjectControlPlane")
    } else {
        ("resourcemanager.miloapis.com", "Project")
    };
    let gvk = kube::core::GroupVersionKind::gvk(group, "v1alpha1", kind);
    Api::all_with(client, &kube::api::ApiResource::from_gvk(&gvk))
}

pub async fn put(api: &Api<DynamicObject>, kind: &str, name: &str, condition: &str, ready: bool) {
    let group = if kind == "Project" { "resourcemanager" } else { "infrastructure" };
    let status = if ready { "True" } else { "False" };
    let object = json!({
        "apiVersion": format!("{group}.miloapis.com/v1alpha1"),
        "kind": kind,
        "metadata": {"name": name, "labels": {"of": name}},
        "status": {"conditions": [{"type": condition, "status": status}]},
    });
    let force = PatchParams::apply("test").force();
    api.patch(name, &force, &Patch::Apply(object)).await.unwrap();
}
