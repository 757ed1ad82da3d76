//! `NodeRestriction`: a node changes its own object and those of its pods alone.

use k1s_kinds::{
    admission::pod_references::{self, Used},
    rules::certificates::certificate_signing_request as csr,
};
use k1s_object::{Status, field::quote};
use serde_json::{Map, Value};

use super::{Attributes, forbidden, kind, other, refused};
use crate::{
    authz::{Attributes as Wanted, Target},
    errors::Error,
    hooks::Operation,
    identity::node_of,
    objectmeta::meta_text,
    request::Verb,
};

const MIRROR: &str = "kubernetes.io/config.mirror";
/// The labels of a node, beside those of these domains, that a kubelet may set.
const LABELS: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// Whether the request is by a node.
pub(super) fn concerns(a: &Attributes<'_>) -> bool {
    a.operation != Operation::Connect && node_of(&a.cx.user).is_some()
}

/// A request of a node, with what it sends and what there is.
struct Request<'a> {
    a: &'a Attributes<'a>,
    node: &'a str,
    object: Option<&'a Value>,
    old: Option<&'a Value>,
}

/// Rejects what a node may not do.
pub(super) async fn check(
    a: &Attributes<'_>,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<(), Error> {
    let Some(node) = node_of(&a.cx.user) else { return Ok(()) };
    let request = Request { a, node, object, old };
    if node.is_empty() {
        return request.refuse(format!("could not determine node from user {}", quote(&a.cx.user.name)));
    }
    let resource = a.resource();
    match (&*resource.group, &*resource.plural, a.subresource()) {
        ("", "pods", "") => request.pod().await,
        ("", "pods", "status") => request.pod_status(),
        // The deletion that an eviction ends with was admitted with it.
        ("", "pods", "eviction") if a.operation == Operation::Delete => Ok(()),
        ("", "pods", "eviction") => request.eviction().await,
        ("", "pods", other) => request.refuse(format!(
            "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
            quote(other)
        )),
        ("", "nodes", _) => request.node(),
        ("", "persistentvolumeclaims", "status") => request.claim_status(),
        ("", "persistentvolumeclaims", _) => request.refuse("may only update PVC status"),
        ("", "serviceaccounts", "token") if a.operation == Operation::Create => request.token().await,
        ("certificates.k8s.io", "podcertificaterequests", _) => request.pod_certificate().await,
        ("certificates.k8s.io", "certificatesigningrequests", _) => request.signing_request(),
        ("coordination.k8s.io", "leases", _) => request.lease(),
        ("storage.k8s.io", "csinodes", _) => request.csi_node(),
        ("resource.k8s.io", "resourceslices", _) => request.slice(),
        _ => Ok(()),
    }
}

fn text<'a>(of: &'a Value, path: &[&str]) -> &'a str {
    let found = path.iter().try_fold(of, |of, field| of.get(*field));
    found.and_then(Value::as_str).unwrap_or_default()
}

fn labels(of: &Value) -> Option<&Map<String, Value>> {
    of["metadata"]["labels"].as_object()
}

/// Whether two values are the same, where nothing, null and an empty list or object are the same.
fn same(one: &Value, other: &Value) -> bool {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    one == other || empty(one) && empty(other)
}

impl Request<'_> {
    fn refuse(&self, why: impl Into<String>) -> Result<(), Error> {
        Err(match self.object.filter(|_| self.a.name.is_empty()) {
            Some(object) => forbidden(self.a.cx, object, why),
            None => refused(self.a.cx, &self.a.name, why),
        }
        .into())
    }

    /// The name of the requested object.
    fn name(&self) -> &str {
        match self.object {
            Some(object) if self.a.name.is_empty() => meta_text(object, "name"),
            _ => &self.a.name,
        }
    }

    fn operation(&self) -> &'static str {
        self.a.operation.name()
    }

    async fn find(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Result<Value, Error> {
        let tenant = &self.a.cx.tenant;
        let resource = kind(tenant, group, "v1", plural)?;
        let found = other(tenant, &resource, namespace, name).await?;
        found.ok_or_else(|| Error::not_found(group, plural, name))
    }

    async fn find_pod(&self, name: &str) -> Result<Value, Error> {
        self.find("", "pods", &self.a.namespace, name).await
    }

    async fn pod(&self) -> Result<(), Error> {
        let node = quote(self.node);
        match self.a.operation {
            Operation::Create => self.new_pod(self.object.unwrap_or(&Value::Null)).await,
            Operation::Delete => {
                let old = self.old.unwrap_or(&Value::Null);
                match text(old, &["spec", "nodeName"]) == self.node {
                    true => Ok(()),
                    false => self
                        .refuse(format!("node {node} can only delete pods with spec.nodeName set to itself")),
                }
            }
            _ => self.refuse(format!(
                "unexpected operation {}, node {node} can only create and delete mirror pods",
                quote(self.operation())
            )),
        }
    }

    async fn new_pod(&self, pod: &Value) -> Result<(), Error> {
        let node = quote(self.node);
        if pod["metadata"]["annotations"].get(MIRROR).is_none() {
            return self.refuse(format!(
                "pod does not have \"{MIRROR}\" annotation, node {node} can only create mirror pods"
            ));
        }
        if text(pod, &["spec", "nodeName"]) != self.node {
            return self.refuse(format!("node {node} can only create pods with spec.nodeName set to itself"));
        }
        let owners = pod["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
        let owner = match owners {
            [] => {
                return self.refuse(format!(
                    "node {node} can only create pods with an owner reference set to itself"
                ));
            }
            [owner] => owner,
            _ => {
                return self.refuse(format!(
                    "node {node} can only create pods with a single owner reference set to itself"
                ));
            }
        };
        if owner["apiVersion"] != "v1" || owner["kind"] != "Node" || owner["name"] != *self.node {
            return self
                .refuse(format!("node {node} can only create pods with an owner reference set to itself"));
        }
        if owner["controller"] != true {
            return self.refuse(format!(
                "node {node} can only create pods with a controller owner reference set to itself"
            ));
        }
        if owner["blockOwnerDeletion"] == true {
            return self.refuse(format!("node {node} must not set blockOwnerDeletion on an owner reference"));
        }
        let found = self.find("", "nodes", "", self.node).await?;
        let (uid, expected) = (meta_text(&found, "uid"), text(owner, &["uid"]));
        if uid != expected {
            return self.refuse(format!("node {} UID mismatch: expected {expected} got {uid}", self.node));
        }
        match pod_references::api_reference(pod) {
            Ok(None) => Ok(()),
            Ok(Some(what)) => self.refuse(format!("node {node} can not create pods that reference {what}")),
            Err(why) => self.refuse(format!("error checking mirror pod for API references: {why}")),
        }
    }

    fn pod_status(&self) -> Result<(), Error> {
        let node = quote(self.node);
        let (Some(new), Some(old)) = (self.object, self.old) else {
            return self.refuse(format!("unexpected operation {}", quote(self.operation())));
        };
        if text(old, &["spec", "nodeName"]) != self.node {
            return self.refuse(format!(
                "node {node} can only update pod status for pods with spec.nodeName set to itself"
            ));
        }
        if !same(&new["metadata"]["labels"], &old["metadata"]["labels"]) {
            return self.refuse(format!("node {node} cannot update labels through pod status"));
        }
        for (field, what) in [
            ("resourceClaimStatuses", "resource claim statues"),
            ("extendedResourceClaimStatus", "extended resource claim status"),
            ("nodeAllocatableResourceClaimStatuses", "node allocatable resource claim statuses"),
        ] {
            if !same(&new["status"][field], &old["status"][field]) {
                return self.refuse(format!("node {node} cannot update {what}"));
            }
        }
        Ok(())
    }

    async fn eviction(&self) -> Result<(), Error> {
        if self.a.operation != Operation::Create {
            return self.refuse(format!("unexpected operation {}", self.operation()));
        }
        if self.name().is_empty() {
            return self.refuse("could not determine pod from request data");
        }
        let pod = self.find_pod(self.name()).await?;
        match text(&pod, &["spec", "nodeName"]) == self.node {
            true => Ok(()),
            false => self
                .refuse(format!("node {} can only evict pods with spec.nodeName set to itself", self.node)),
        }
    }

    fn claim_status(&self) -> Result<(), Error> {
        let (Some(new), Some(old)) = (self.object, self.old) else {
            return self.refuse(format!("unexpected operation {}", quote(self.operation())));
        };
        let rest = |claim: &Value| {
            let mut rest = claim.clone();
            for field in ["resourceVersion", "managedFields"] {
                if let Some(metadata) = rest["metadata"].as_object_mut() {
                    metadata.shift_remove(field);
                }
            }
            for field in ["capacity", "conditions", "allocatedResourceStatuses", "allocatedResources"] {
                if let Some(status) = rest["status"].as_object_mut() {
                    status.shift_remove(field);
                }
            }
            if rest["status"].as_object().is_some_and(Map::is_empty)
                && let Some(claim) = rest.as_object_mut()
            {
                claim.shift_remove("status");
            }
            rest
        };
        let (new, old) = (rest(new), rest(old));
        if new == old {
            return Ok(());
        }
        let changed: Vec<String> = ["metadata", "spec", "status"]
            .iter()
            .filter(|part| !same(&new[**part], &old[**part]))
            .map(|part| (*part).to_owned())
            .collect();
        match changed.is_empty() {
            true => Ok(()),
            false => self.refuse(format!(
                "node {} is not allowed to update fields other than status.quantity and status.conditions: {}",
                quote(self.node),
                changed.join(", ")
            )),
        }
    }

    fn node(&self) -> Result<(), Error> {
        let (node, name) = (quote(self.node), self.name());
        if name != self.node {
            return self.refuse(format!("node {node} is not allowed to modify node {}", quote(name)));
        }
        let Some(new) = self.object else { return Ok(()) };
        let source = &new["spec"]["configSource"];
        let Some(old) = self.old else {
            if !source.is_null() {
                return self.refuse(format!(
                    "node {node} is not allowed to create pods with a non-nil configSource"
                ));
            }
            return match forbidden_labels(labels(new), None) {
                none if none.is_empty() => Ok(()),
                some => self.refuse(format!(
                    "node {node} is not allowed to set the following labels: {}",
                    some.join(", ")
                )),
            };
        };
        if !source.is_null() && !same(source, &old["spec"]["configSource"]) {
            return self.refuse(format!(
                "node {node} is not allowed to update configSource to a new non-nil configSource"
            ));
        }
        if !same(&new["spec"]["taints"], &old["spec"]["taints"]) {
            return self.refuse(format!("node {node} is not allowed to modify taints"));
        }
        if !same(&new["metadata"]["ownerReferences"], &old["metadata"]["ownerReferences"]) {
            return self.refuse(format!("node {node} is not allowed to modify ownerReferences"));
        }
        match forbidden_labels(labels(new), labels(old)) {
            none if none.is_empty() => Ok(()),
            some => self.refuse(format!("is not allowed to modify labels: {}", some.join(", "))),
        }
    }

    async fn token(&self) -> Result<(), Error> {
        let request = self.object.unwrap_or(&Value::Null);
        let bound = &request["spec"]["boundObjectRef"];
        if bound["apiVersion"] != "v1" || bound["kind"] != "Pod" || text(bound, &["name"]).is_empty() {
            return self.refuse("node requested token not bound to a pod");
        }
        let uid = text(bound, &["uid"]);
        if uid.is_empty() {
            return self.refuse("node requested token with a pod binding without a uid");
        }
        let pod = self.find_pod(text(bound, &["name"])).await?;
        if uid != meta_text(&pod, "uid") {
            return self.refuse(format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
            ));
        }
        if text(&pod, &["spec", "nodeName"]) != self.node {
            return self.refuse("node requested token bound to a pod scheduled on a different node");
        }
        self.audience(&pod, &request["spec"]["audiences"]).await
    }

    /// A node may request tokens for the audiences that its pods mount, or that it was given.
    async fn audience(&self, pod: &Value, audiences: &Value) -> Result<(), Error> {
        let audience = match audiences.as_array().map_or(&[][..], Vec::as_slice) {
            [] => "",
            [one] => one.as_str().unwrap_or_default(),
            _ => return self.refuse("node may only request 0 or 1 audiences"),
        };
        let (mut found, mut problems) = (false, Vec::new());
        for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
            match self.has_audience(pod, volume, audience).await {
                Ok(has) => found |= has,
                Err(Error::NotFound { .. }) if volume.get("csi").is_none() => {
                    problems.push(format!("volume {}: not found", quote(text(volume, &["name"]))));
                }
                Err(error) => problems.push(error.into_status().message),
            }
        }
        if found {
            return Ok(());
        }
        if !problems.is_empty() {
            let why = crate::errors::aggregate(&problems);
            return self.refuse(format!("error validating audience {}: {why}", quote(audience)));
        }
        let (allowed, failure) =
            self.may("request-serviceaccounts-token-audience", audience, &self.a.cx.name).await;
        let (user, audience) = (&self.a.cx.user.name, quote(audience));
        match (allowed, failure) {
            (true, _) => Ok(()),
            (false, Some(why)) => self
                .refuse(format!("error authorizing {user} to request tokens for audience {audience}: {why}")),
            (false, None) => {
                self.refuse(format!("{user} is not authorized to request tokens for audience {audience}"))
            }
        }
    }

    /// Whether a volume needs tokens for an audience: by itself, or for its driver.
    async fn has_audience(&self, pod: &Value, volume: &Value, audience: &str) -> Result<bool, Error> {
        let sources = volume["projected"]["sources"].as_array();
        let own = |source: &Value| {
            let token = &source["serviceAccountToken"];
            token.is_object() && text(token, &["audience"]) == audience
        };
        if sources.into_iter().flatten().any(own) {
            return Ok(true);
        }
        let driver = if volume["csi"].is_object() {
            text(volume, &["csi", "driver"]).to_owned()
        } else {
            let of_volume = serde_json::json!({"metadata": pod["metadata"], "spec": {"volumes": [volume]}});
            let names = pod_references::used(&of_volume, Used::Claims);
            let Some(claim) = names.first() else { return Ok(false) };
            let claim = self.find("", "persistentvolumeclaims", &self.a.namespace, claim).await?;
            let volume = text(&claim, &["spec", "volumeName"]);
            let volume = self.find("", "persistentvolumes", "", volume).await?;
            text(&volume, &["spec", "csi", "driver"]).to_owned()
        };
        if driver.is_empty() {
            return Ok(false);
        }
        let driver = self.find("storage.k8s.io", "csidrivers", "", &driver).await?;
        let requests = driver["spec"]["tokenRequests"].as_array();
        Ok(requests.into_iter().flatten().any(|request| text(request, &["audience"]) == audience))
    }

    /// Whether the authorizer allows the node a special verb, and why it could not tell.
    async fn may(&self, verb: &str, resource: &str, name: &str) -> (bool, Option<String>) {
        let cx = self.a.cx;
        let target = Target::Resource {
            group: &cx.resource.group,
            resource,
            subresource: "",
            namespace: &self.a.namespace,
            name,
        };
        let wanted = Wanted::new(Verb::named(verb), target);
        let decision = cx.tenant.shared.authorizer.authorize(Some(&cx.tenant), &cx.user, &wanted).await;
        (decision.allowed, decision.failure.map(|status| status.message))
    }

    async fn pod_certificate(&self) -> Result<(), Error> {
        if self.a.operation != Operation::Create {
            return self.refuse(format!("unexpected operation {}", self.operation()));
        }
        if !self.a.subresource().is_empty() {
            return self.refuse(format!("unexpected subresource {}", self.a.subresource()));
        }
        let request = self.object.unwrap_or(&Value::Null);
        let spec = |field: &str| text(request, &["spec", field]);
        let (node, pod) =
            (quote(spec("nodeName")), quote(&format!("{}/{}", self.a.namespace, spec("podName"))));
        if spec("nodeName") != self.node {
            let own = quote(self.node);
            return self.refuse(format!(
                "PodCertificateRequest.Spec.NodeName={node}, which is not the requesting node {own}"
            ));
        }
        // What may be due to a cache that lags is not forbidden: the node tries it again.
        let again = |why: String| Err(Status::internal(why).into());
        let named = |what: &str, error: Error| -> Error {
            let why = error.into_status().message;
            Status::internal(format!("while retrieving {what} named in the PodCertificateRequest: {why}"))
                .into()
        };
        let found = self.find("", "nodes", "", self.node).await;
        let found = found.map_err(|error| named(&format!("node {node}"), error))?;
        let uid = meta_text(&found, "uid");
        if uid != spec("nodeUID") {
            return again(format!(
                "PodCertificateRequest for pod {pod} names node UID {}, inconsistent with the running node ({})",
                quote(spec("nodeUID")),
                quote(uid)
            ));
        }
        let found =
            self.find_pod(spec("podName")).await.map_err(|error| named(&format!("pod {pod}"), error))?;
        let uid = meta_text(&found, "uid");
        if uid != spec("podUID") {
            return again(format!(
                "PodCertificateRequest for pod {pod} contains pod UID ({}) which differs from running pod {}",
                quote(spec("podUID")),
                quote(uid)
            ));
        }
        if text(&found, &["spec", "nodeName"]) != self.node {
            return self.refuse(format!(
                "pod {pod} is not running on node {node} named in the PodCertificateRequest"
            ));
        }
        if found["metadata"]["annotations"].get(MIRROR).is_some() {
            return self.refuse(format!("pod {pod} is a mirror pod"));
        }
        let (wanted, account) = (spec("serviceAccountName"), text(&found, &["spec", "serviceAccountName"]));
        if wanted != account {
            return self.refuse(format!(
                "PodCertificateRequest for pod {pod} contains serviceAccountName ({}) that differs from running pod ({})",
                quote(wanted),
                quote(account)
            ));
        }
        let account = quote(&format!("{}/{wanted}", self.a.namespace));
        let owner = self.find("", "serviceaccounts", &self.a.namespace, wanted).await;
        let owner = owner.map_err(|error| named(&format!("service account {account}"), error))?;
        let uid = meta_text(&owner, "uid");
        if uid != spec("serviceAccountUID") {
            return again(format!(
                "PodCertificateRequest for pod {pod} names service account UID {}, which differs from the running service account ({})",
                quote(spec("serviceAccountUID")),
                quote(uid)
            ));
        }
        self.signer(&found, spec("signerName"), wanted, &pod).await
    }

    /// A node may request certificates of the signers that its pods mount, or that it was given.
    async fn signer(&self, pod: &Value, signer: &str, account: &str, shown: &str) -> Result<(), Error> {
        let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let sources =
            volumes.flat_map(|volume| volume["projected"]["sources"].as_array().into_iter().flatten());
        if sources.into_iter().any(|source| source["podCertificate"]["signerName"] == *signer) {
            return Ok(());
        }
        let verb = "request-serviceaccounts-podcertificate-signer";
        let (allowed, failure) = self.may(verb, &signer.replace('/', ":"), account).await;
        match (allowed, failure) {
            (true, _) => Ok(()),
            (false, Some(why)) => self.refuse(format!(
                "error authorizing {} to request podcertificaterequests for signer {}: {why}",
                self.a.cx.user.name,
                quote(signer)
            )),
            (false, None) => self.refuse(format!(
                "pod {shown} does not mount a podCertificate projected volume for signer {}",
                quote(signer)
            )),
        }
    }

    fn lease(&self) -> Result<(), Error> {
        if self.a.namespace != "kube-node-lease" {
            return self.refuse("can only access leases in the \"kube-node-lease\" system namespace");
        }
        match self.name() == self.node {
            true => Ok(()),
            false => self.refuse("can only access node lease with the same name as the requesting node"),
        }
    }

    fn csi_node(&self) -> Result<(), Error> {
        if self.name() != self.node {
            return self.refuse("can only access CSINode with the same name as the requesting node");
        }
        Ok(())
    }

    fn slice(&self) -> Result<(), Error> {
        let (slice, verb) = match self.a.operation {
            Operation::Create => (self.object, "create"),
            Operation::Delete => (self.old, "delete"),
            _ => return Ok(()),
        };
        match text(slice.unwrap_or(&Value::Null), &["spec", "nodeName"]) == self.node {
            true => Ok(()),
            false => self.refuse(format!(
                "can only {verb} ResourceSlice with the same NodeName as the requesting node"
            )),
        }
    }

    fn signing_request(&self) -> Result<(), Error> {
        let request = match self.object {
            Some(request) if self.a.operation == Operation::Create => request,
            _ => return Ok(()),
        };
        let signer = text(request, &["spec", "signerName"]);
        if !matches!(signer, "kubernetes.io/kubelet-serving" | "kubernetes.io/kube-apiserver-client-kubelet")
        {
            return Ok(());
        }
        match csr::parse(text(request, &["spec", "request"])) {
            Err(why) => self.refuse(format!("unable to parse csr: {why}")),
            Ok(parsed) if parsed.subject.common_name() != self.a.cx.user.name => {
                self.refuse(format!("can only create a node CSR with CN=system:node:{}", self.node))
            }
            Ok(_) => Ok(()),
        }
    }
}

/// The labels that differ and that a node may not set.
fn forbidden_labels(new: Option<&Map<String, Value>>, old: Option<&Map<String, Value>>) -> Vec<String> {
    let value = |of: Option<&Map<String, Value>>, key: &str| of.and_then(|of| of.get(key)).cloned();
    let keys = new.into_iter().chain(old).flat_map(Map::keys);
    let mut found: Vec<String> =
        keys.filter(|key| value(new, key) != value(old, key) && is_forbidden(key)).cloned().collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn is_forbidden(label: &str) -> bool {
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let within = |of: &str| domain == of || domain.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
    let is_kubelets =
        || LABELS.contains(&label) || within("kubelet.kubernetes.io") || within("node.kubernetes.io");
    within("node-restriction.kubernetes.io")
        || (within("kubernetes.io") || within("k8s.io")) && !is_kubelets()
}
