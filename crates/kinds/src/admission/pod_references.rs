//! The other objects that a pod uses, by their names.

use serde_json::Value;

/// The objects of one kind that a pod uses in its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Used {
    /// Secrets.
    Secrets,
    /// `ConfigMaps`.
    ConfigMaps,
    /// `PersistentVolumeClaims`, also those made for the pod.
    Claims,
    /// `ResourceClaims`, also those made for the pod.
    ResourceClaims,
}

/// The lists of containers in a pod.
pub const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

fn items<'a>(of: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    of.get(list).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(of: &'a Value, path: &[&str]) -> Option<&'a str> {
    let found = path.iter().try_fold(of, |of, field| of.get(*field))?;
    found.as_str().filter(|text| !text.is_empty())
}

/// The volumes that name a secret, and where.
const VOLUME_SECRETS: [&[&str]; 10] = [
    &["azureFile", "secretName"],
    &["cephfs", "secretRef", "name"],
    &["cinder", "secretRef", "name"],
    &["flexVolume", "secretRef", "name"],
    &["rbd", "secretRef", "name"],
    &["secret", "secretName"],
    &["scaleIO", "secretRef", "name"],
    &["iscsi", "secretRef", "name"],
    &["storageos", "secretRef", "name"],
    &["csi", "nodePublishSecretRef", "name"],
];

/// The names of the objects of a kind that a pod uses; a name can come more than once.
pub fn used(pod: &Value, what: Used) -> Vec<String> {
    let spec = &pod["spec"];
    let mut names: Vec<&str> = Vec::new();
    match what {
        Used::Secrets => {
            names.extend(items(spec, "imagePullSecrets").filter_map(|one| text(one, &["name"])));
            names.extend(of_containers(spec, "secretKeyRef", "secretRef"));
            for volume in items(spec, "volumes") {
                names.extend(VOLUME_SECRETS.iter().filter_map(|path| text(volume, path)));
                names.extend(projected(volume, &["secret", "name"]));
            }
        }
        Used::ConfigMaps => {
            names.extend(of_containers(spec, "configMapKeyRef", "configMapRef"));
            for volume in items(spec, "volumes") {
                names.extend(text(volume, &["configMap", "name"]));
                names.extend(projected(volume, &["configMap", "name"]));
            }
        }
        Used::Claims => return claims(pod),
        Used::ResourceClaims => return resource_claims(pod),
    }
    names.into_iter().map(str::to_owned).collect()
}

fn projected<'a>(volume: &'a Value, path: &'a [&str]) -> impl Iterator<Item = &'a str> {
    items(&volume["projected"], "sources").filter_map(move |source| text(source, path))
}

fn of_containers<'a>(spec: &'a Value, key: &'a str, all: &'a str) -> impl Iterator<Item = &'a str> {
    let containers = CONTAINERS.iter().flat_map(move |list| items(spec, list));
    containers.flat_map(move |container| {
        let keys = items(container, "env").filter_map(move |one| text(one, &["valueFrom", key, "name"]));
        keys.chain(items(container, "envFrom").filter_map(move |one| text(one, &[all, "name"])))
    })
}

fn claims(pod: &Value) -> Vec<String> {
    let name = text(pod, &["metadata", "name"]).unwrap_or_default();
    let of = |volume: &Value| {
        if let Some(claim) = text(volume, &["persistentVolumeClaim", "claimName"]) {
            return Some(claim.to_owned());
        }
        let own = text(volume, &["name"])?;
        volume.get("ephemeral").filter(|made| made.is_object()).map(|_| format!("{name}-{own}"))
    };
    items(&pod["spec"], "volumes").filter_map(of).collect()
}

fn resource_claims(pod: &Value) -> Vec<String> {
    let statuses = || items(&pod["status"], "resourceClaimStatuses");
    let of = |claim: &Value| {
        if let Some(name) = text(claim, &["resourceClaimName"]) {
            return Some(name.to_owned());
        }
        let own = text(claim, &["name"])?;
        let made = statuses().find(|status| text(status, &["name"]) == Some(own))?;
        text(made, &["resourceClaimName"]).map(str::to_owned)
    };
    let extended = text(pod, &["status", "extendedResourceClaimStatus", "resourceClaimName"]);
    let named = items(&pod["spec"], "resourceClaims").filter_map(of);
    named.chain(extended.map(str::to_owned)).collect()
}

/// What objects of the API a pod refers to, if any: what the pod of a node's own manifest may not do.
///
/// # Errors
/// For a volume of an unknown type.
pub fn api_reference(pod: &Value) -> Result<Option<&'static str>, String> {
    let spec = &pod["spec"];
    if text(spec, &["serviceAccountName"]).is_some() {
        return Ok(Some("serviceaccounts"));
    }
    if !used(pod, Used::Secrets).is_empty() {
        return Ok(Some("secrets"));
    }
    if !used(pod, Used::ConfigMaps).is_empty() {
        return Ok(Some("configmaps"));
    }
    if items(spec, "resourceClaims").next().is_some() {
        return Ok(Some("resourceclaims"));
    }
    for volume in items(spec, "volumes") {
        let name = text(volume, &["name"]).unwrap_or_default();
        let source = volume.as_object().into_iter().flatten().find(|(key, _)| *key != "name");
        let found = match source.map(|(key, _)| key.as_str()) {
            Some(
                "awsElasticBlockStore"
                | "azureDisk"
                | "cephfs"
                | "cinder"
                | "downwardAPI"
                | "emptyDir"
                | "fc"
                | "flexVolume"
                | "flocker"
                | "gcePersistentDisk"
                | "gitRepo"
                | "hostPath"
                | "image"
                | "iscsi"
                | "nfs"
                | "photonPersistentDisk"
                | "portworxVolume"
                | "quobyte"
                | "rbd"
                | "scaleIO"
                | "storageos"
                | "vsphereVolume",
            ) => continue,
            Some("configMap") => "configmaps (via configmap volumes)",
            Some("secret") => "secrets (via secret volumes)",
            Some("csi") => "csidrivers (via CSI volumes)",
            Some("glusterfs") => "endpoints (via glusterFS volumes)",
            Some("persistentVolumeClaim") => "persistentvolumeclaims",
            Some("ephemeral") => "persistentvolumeclaims (via ephemeral volumes)",
            Some("azureFile") => "secrets (via azureFile volumes)",
            Some("projected") => match projection(volume, name)? {
                Some(found) => found,
                None => continue,
            },
            _ => return Err(format!("unknown volume type for volume  {}", k1s_object::field::quote(name))),
        };
        return Ok(Some(found));
    }
    Ok(None)
}

fn projection(volume: &Value, name: &str) -> Result<Option<&'static str>, String> {
    for source in items(&volume["projected"], "sources") {
        let kind = source.as_object().and_then(|source| source.keys().next());
        return Ok(Some(match kind.map(String::as_str) {
            Some("downwardAPI") => continue,
            Some("configMap") => "configmaps (via projected volumes)",
            Some("secret") => "secrets (via projected volumes)",
            Some("serviceAccountToken") => "serviceaccounts (via projected volumes)",
            Some("clusterTrustBundle") => "clustertrustbundles",
            Some("podCertificate") => "podcertificates",
            _ => {
                let name = k1s_object::field::quote(name);
                return Err(format!("unknown source for projected volume {name}"));
            }
        }));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_found_wherever_a_pod_names_them() {
        let env = |kind: &str, name: &str| json!({"valueFrom": {kind: {"name": name}}});
        let pod = json!({
            "metadata": {"name": "p"},
            "spec": {
                "imagePullSecrets": [{"name": "s1"}, {"name": ""}],
                "initContainers": [{"env": [env("secretKeyRef", "s2")]}],
                "containers": [{"envFrom": [{"secretRef": {"name": "s3"}}, {"configMapRef": {"name": "c1"}}]}],
                "ephemeralContainers": [{"env": [env("configMapKeyRef", "c2")]}],
                "volumes": [
                    {"name": "a", "secret": {"secretName": "s4"}},
                    {"name": "b", "csi": {"nodePublishSecretRef": {"name": "s5"}}},
                    {"name": "c", "projected": {"sources": [{"secret": {"name": "s6"}}, {"configMap": {"name": "c3"}}]}},
                    {"name": "d", "configMap": {"name": "c4"}},
                    {"name": "e", "persistentVolumeClaim": {"claimName": "v1"}},
                    {"name": "f", "ephemeral": {"volumeClaimTemplate": {}}},
                ],
                "resourceClaims": [{"name": "x", "resourceClaimName": "r1"}, {"name": "y"}, {"name": "z"}],
            },
            "status": {"resourceClaimStatuses": [{"name": "y", "resourceClaimName": "r2"}],
                "extendedResourceClaimStatus": {"resourceClaimName": "r3"}},
        });
        assert_eq!(used(&pod, Used::Secrets), ["s1", "s2", "s3", "s4", "s5", "s6"]);
        assert_eq!(used(&pod, Used::ConfigMaps), ["c1", "c2", "c3", "c4"]);
        assert_eq!(used(&pod, Used::Claims), ["v1", "p-f"]);
        assert_eq!(used(&pod, Used::ResourceClaims), ["r1", "r2", "r3"]);
        assert_eq!(used(&json!({}), Used::Secrets), [""; 0]);
    }

    #[test]
    fn a_mirror_pod_may_not_refer_to_the_api() {
        let volume = |source: Value| json!({"spec": {"volumes": [source]}});
        let cases = [
            (json!({"spec": {"serviceAccountName": "a"}}), Ok(Some("serviceaccounts"))),
            (volume(json!({"name": "a", "emptyDir": {}})), Ok(None)),
            (volume(json!({"name": "a", "secret": {}})), Ok(Some("secrets (via secret volumes)"))),
            (volume(json!({"name": "a", "secret": {"secretName": "s"}})), Ok(Some("secrets"))),
            (volume(json!({"name": "a", "glusterfs": {}})), Ok(Some("endpoints (via glusterFS volumes)"))),
            (
                volume(
                    json!({"name": "a", "projected": {"sources": [{"downwardAPI": {}}, {"podCertificate": {}}]}}),
                ),
                Ok(Some("podcertificates")),
            ),
            (
                volume(json!({"name": "a", "new": {}})),
                Err("unknown volume type for volume  \"a\"".to_owned()),
            ),
        ];
        for (pod, expected) in cases {
            assert_eq!(api_reference(&pod), expected, "{pod}");
        }
    }
}
