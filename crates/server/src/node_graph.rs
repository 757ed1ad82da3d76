//! Which objects the pods of each node use: what the node authorizer decides by.
//!
//! As the index of roles (`rbac::policies`), it is a function of watch caches, and brought up to date by whoever needs it. It
//! costs nothing until a node sends a request. A lookup is by object and node; it visits no pods.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use k1s_kinds::admission::pod_references::{self, Used};
use k1s_object::Status;
use k1s_store::Revision;
use parking_lot::RwLock;
use serde_json::Value;

use crate::cache::{Cache, Entry, Snapshot};

/// The resources that the graph is made of: group, version and name, in the order of their caches.
pub(crate) const RESOURCES: [(&str, &str, &str); 5] = [
    ("", "v1", "pods"),
    ("", "v1", "persistentvolumes"),
    ("storage.k8s.io", "v1", "volumeattachments"),
    ("resource.k8s.io", "v1", "resourceslices"),
    ("certificates.k8s.io", "v1", "podcertificaterequests"),
];

/// A kind of object that a node may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum What {
    Pod,
    Secret,
    ConfigMap,
    Claim,
    ServiceAccount,
    ResourceClaim,
    Volume,
    Attachment,
    Slice,
    CertificateRequest,
}

/// An object by its kind, namespace and name.
type Object = (What, Box<str>, Box<str>);

/// What one pod uses.
#[derive(Debug, Default)]
struct Pod {
    node: Box<str>,
    uses: HashSet<Object>,
}

/// A volume that is bound.
#[derive(Debug)]
struct Volume {
    claim: Object,
    secrets: Vec<Object>,
}

/// The graph of a tenant.
#[derive(Debug, Default)]
struct Graph {
    pods: HashMap<(Box<str>, Box<str>), Pod>,
    /// How many pods of each node use an object.
    users: HashMap<Object, HashMap<Box<str>, usize>>,
    volumes: HashMap<Box<str>, Volume>,
    /// The volumes that need a secret.
    volumes_of: HashMap<Object, HashSet<Box<str>>>,
    /// The nodes of attachments, slices and certificate requests.
    owners: HashMap<Object, Box<str>>,
}

fn text<'a>(of: &'a Value, path: &[&str]) -> &'a str {
    path.iter().try_fold(of, |of, field| of.get(*field)).and_then(Value::as_str).unwrap_or_default()
}

impl Graph {
    /// Whether an object is one that a node may use.
    fn reaches(&self, node: &str, object: &Object) -> bool {
        let (what, namespace, name) = object;
        match what {
            What::Pod => {
                self.pods.get(&(namespace.clone(), name.clone())).is_some_and(|pod| *pod.node == *node)
            }
            What::Volume => self.volumes.get(name).is_some_and(|volume| self.reaches(node, &volume.claim)),
            What::Attachment | What::Slice | What::CertificateRequest => {
                self.owners.get(object).is_some_and(|owner| **owner == *node)
            }
            _ => {
                self.users.get(object).is_some_and(|nodes| nodes.contains_key(node))
                    || self.volumes_of.get(object).is_some_and(|volumes| {
                        volumes
                            .iter()
                            .any(|volume| self.reaches(node, &(What::Volume, "".into(), volume.clone())))
                    })
            }
        }
    }

    /// Sets an object to its stored state, or removes it.
    fn set(&mut self, resource: &str, entry: &Entry, exists: bool) {
        let object: Value = match exists {
            true => serde_json::from_slice(entry.stored.json()).unwrap_or_default(),
            false => Value::Null,
        };
        // The namespace of an entry means nothing for objects of the cluster.
        let at = |what: What| match what {
            What::CertificateRequest => (what, entry.namespace().into(), entry.name().into()),
            _ => (what, "".into(), entry.name().into()),
        };
        let owner = match resource {
            "pods" => return self.set_pod(entry.namespace(), entry.name(), &object),
            "persistentvolumes" => return self.set_volume(entry.name(), &object),
            "volumeattachments" => (at(What::Attachment), text(&object, &["spec", "nodeName"])),
            "resourceslices" => (at(What::Slice), text(&object, &["spec", "nodeName"])),
            _ => (at(What::CertificateRequest), text(&object, &["spec", "nodeName"])),
        };
        match owner {
            (object, "") => drop(self.owners.remove(&object)),
            (object, node) => drop(self.owners.insert(object, node.into())),
        }
    }

    fn set_pod(&mut self, namespace: &str, name: &str, pod: &Value) {
        let key = (Box::<str>::from(namespace), Box::<str>::from(name));
        if let Some(old) = self.pods.remove(&key) {
            for object in old.uses {
                let Some(nodes) = self.users.get_mut(&object) else { continue };
                if let Some(count) = nodes.get_mut(&old.node) {
                    *count -= 1;
                    if *count == 0 {
                        nodes.remove(&old.node);
                    }
                }
                if nodes.is_empty() {
                    self.users.remove(&object);
                }
            }
        }
        let node = text(pod, &["spec", "nodeName"]);
        if node.is_empty() {
            return;
        }
        let mut uses = HashSet::new();
        // A node makes mirror pods itself, so they give it nothing.
        if pod["metadata"]["annotations"].get("kubernetes.io/config.mirror").is_none() {
            let account = text(pod, &["spec", "serviceAccountName"]);
            if !account.is_empty() {
                uses.insert((What::ServiceAccount, namespace.into(), account.into()));
            }
            for (what, used) in [
                (What::Secret, Used::Secrets),
                (What::ConfigMap, Used::ConfigMaps),
                (What::Claim, Used::Claims),
                (What::ResourceClaim, Used::ResourceClaims),
            ] {
                let names = pod_references::used(pod, used);
                uses.extend(names.into_iter().map(|name| (what, namespace.into(), name.into())));
            }
        }
        for object in &uses {
            *self.users.entry(object.clone()).or_default().entry(node.into()).or_default() += 1;
        }
        self.pods.insert(key, Pod { node: node.into(), uses });
    }

    fn set_volume(&mut self, name: &str, volume: &Value) {
        if let Some(old) = self.volumes.remove(name) {
            for secret in old.secrets {
                if let Some(volumes) = self.volumes_of.get_mut(&secret) {
                    volumes.remove(name);
                    if volumes.is_empty() {
                        self.volumes_of.remove(&secret);
                    }
                }
            }
        }
        let claim = &volume["spec"]["claimRef"];
        if !claim.is_object() {
            return;
        }
        let namespace = text(claim, &["namespace"]);
        let secrets: Vec<Object> = volume_secrets(&volume["spec"], namespace)
            .into_iter()
            .map(|(namespace, name)| (What::Secret, namespace.into(), name.into()))
            .collect();
        for secret in &secrets {
            self.volumes_of.entry(secret.clone()).or_default().insert(name.into());
        }
        let claim = (What::Claim, namespace.into(), text(claim, &["name"]).into());
        self.volumes.insert(name.into(), Volume { claim, secrets });
    }

    fn clear(&mut self, resource: &str) {
        match resource {
            "pods" => {
                self.pods.clear();
                self.users.clear();
            }
            "persistentvolumes" => {
                self.volumes.clear();
                self.volumes_of.clear();
            }
            other => {
                let what = match other {
                    "volumeattachments" => What::Attachment,
                    "resourceslices" => What::Slice,
                    _ => What::CertificateRequest,
                };
                self.owners.retain(|(of, ..), _| *of != what);
            }
        }
    }
}

/// The secrets that a kubelet needs for a volume: namespace and name. `claim`: the namespace of its claim.
fn volume_secrets<'a>(spec: &'a Value, claim: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut secrets = Vec::new();
    let azure = text(spec, &["azureFile", "secretName"]);
    if !azure.is_empty() {
        secrets.push((text(spec, &["azureFile", "secretNamespace"]), azure));
    }
    let references = ["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"]
        .map(|source| &spec[source]["secretRef"])
        .into_iter()
        .chain(
            ["nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"]
                .map(|field| &spec["csi"][field]),
        );
    for reference in references {
        let name = text(reference, &["name"]);
        if !name.is_empty() {
            secrets.push((text(reference, &["namespace"]), name));
        }
    }
    let of_claim = |(namespace, name): (&'a str, &'a str)| match namespace {
        "" => (claim, name),
        namespace => (namespace, name),
    };
    secrets.into_iter().map(of_claim).collect()
}

/// Maximum number of events that are applied to the graph; with more, a part of it is built anew.
const MAX_EVENTS: usize = 10_000;

type Caches = [Arc<Cache>; 5];

#[derive(Default)]
struct State {
    graph: Graph,
    reached: [Revision; 5],
}

/// The graph of a tenant, kept up to date from its watch caches.
#[derive(Default)]
pub(crate) struct NodeGraph {
    caches: OnceLock<Caches>,
    state: RwLock<State>,
}

impl NodeGraph {
    /// Whether a node may use an object. `caches` are those of [`RESOURCES`].
    pub(crate) async fn reaches(
        &self,
        caches: Vec<Arc<Cache>>,
        node: &str,
        (what, namespace, name): (What, &str, &str),
    ) -> Result<bool, Status> {
        let caches = Caches::try_from(caches).map_err(|_| Status::internal("there are five kinds"))?;
        let caches = self.caches.get_or_init(|| caches);
        let object = (what, namespace.into(), name.into());
        let mut snapshots = Vec::with_capacity(caches.len());
        for cache in caches {
            snapshots.push(cache.with_own_writes().await?);
        }
        self.update(caches, &snapshots);
        if self.state.read().graph.reaches(node, &object) {
            return Ok(true);
        }
        // The pod may have been bound a moment ago.
        snapshots.clear();
        for cache in caches {
            snapshots.push(cache.now().await?);
        }
        self.update(caches, &snapshots);
        Ok(self.state.read().graph.reaches(node, &object))
    }

    fn update(&self, caches: &Caches, snapshots: &[Arc<Snapshot>]) {
        {
            let state = self.state.read();
            if snapshots.iter().zip(state.reached).all(|(snapshot, reached)| snapshot.revision <= reached) {
                return;
            }
        }
        let mut state = self.state.write();
        let State { graph, reached } = &mut *state;
        for (((_, _, resource), cache), (snapshot, reached)) in
            RESOURCES.into_iter().zip(caches).zip(snapshots.iter().zip(reached))
        {
            if snapshot.revision <= *reached {
                continue;
            }
            let events = match *reached {
                never if never == Revision::default() => None,
                from => cache.ring(|ring| ring.between(from, snapshot.revision, MAX_EVENTS)),
            };
            match events {
                Some(events) => {
                    for event in &events {
                        match (&event.new, &event.old) {
                            (Some(new), _) => graph.set(resource, new, true),
                            (None, Some(old)) => graph.set(resource, old, false),
                            (None, None) => {}
                        }
                    }
                }
                None => {
                    graph.clear(resource);
                    for entry in snapshot.entries.iter() {
                        graph.set(resource, entry, true);
                    }
                }
            }
            *reached = snapshot.revision;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(what: What, namespace: &str, name: &str) -> Object {
        (what, namespace.into(), name.into())
    }

    #[test]
    fn a_node_reaches_what_its_pods_use_and_nothing_else() {
        let mut graph = Graph::default();
        let pod = |node: &str, secret: &str| {
            json!({"metadata": {"name": "p"}, "spec": {"nodeName": node, "serviceAccountName": "a",
                "volumes": [{"name": "v", "secret": {"secretName": secret}},
                    {"name": "w", "persistentVolumeClaim": {"claimName": "c"}}]}})
        };
        graph.set_pod("ns", "p", &pod("n1", "s"));
        graph.set_pod("ns", "q", &pod("n2", "t"));
        graph.set_volume(
            "pv",
            &json!({"spec": {"claimRef": {"namespace": "ns", "name": "c"},
            "csi": {"nodeStageSecretRef": {"name": "of-pv", "namespace": "x"},
                "controllerPublishSecretRef": {"name": "of-controller", "namespace": "x"}}}}),
        );
        let reaches = |graph: &Graph, node: &str| {
            [
                object(What::Pod, "ns", "p"),
                object(What::Secret, "ns", "s"),
                object(What::Secret, "other", "s"),
                object(What::ServiceAccount, "ns", "a"),
                object(What::Claim, "ns", "c"),
                object(What::Volume, "", "pv"),
                object(What::Secret, "x", "of-pv"),
                object(What::Secret, "x", "of-controller"),
            ]
            .map(|object| graph.reaches(node, &object))
        };
        assert_eq!(reaches(&graph, "n1"), [true, true, false, true, true, true, true, false]);
        assert_eq!(reaches(&graph, "n2"), [false, false, false, true, true, true, true, false]);
        graph.set_pod("ns", "p", &Value::Null);
        assert_eq!(reaches(&graph, "n1"), [false; 8]);
        graph.set_pod("ns", "q", &Value::Null);
        graph.set_volume("pv", &Value::Null);
        assert!(graph.users.is_empty() && graph.volumes_of.is_empty() && graph.pods.is_empty());
    }

    #[test]
    fn a_mirror_pod_gives_its_node_nothing() {
        let mut graph = Graph::default();
        let mut pod = json!({"spec": {"nodeName": "n", "serviceAccountName": "a"}});
        pod["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "x".into();
        graph.set_pod("ns", "p", &pod);
        assert!(graph.reaches("n", &object(What::Pod, "ns", "p")));
        assert!(!graph.reaches("n", &object(What::ServiceAccount, "ns", "a")));
    }
}
