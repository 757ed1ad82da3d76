//! The node authorizer: a kubelet reads what its pods use, and writes its own objects.
//!
//! What a new object says is unknown here; the admission plugin `NodeRestriction` looks at it.

use std::sync::{Arc, LazyLock};

use k1s_kinds::bootstrap;
use k1s_object::{field::quote, gvk::GroupVersionResource};

use crate::{
    authz::{Attributes, Decision, Rules, Target},
    identity::{User, node_of},
    node_graph::{RESOURCES, What},
    objectmeta::meta_text,
    rbac::Rule,
    tenant::Tenant,
};

/// What all nodes may do: the rules of the initial role `system:node`.
static NODE_RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let roles = bootstrap::cluster_roles();
    let node = roles.iter().find(|role| meta_text(role, "name") == "system:node");
    node.map(|role| Rule::list(&role["rules"])).unwrap_or_default()
});

fn no(reason: impl Into<Arc<str>>) -> Decision {
    Decision::because(false, reason)
}

fn allowed() -> Decision {
    Decision::plain(true)
}

/// What the node authorizer says; no opinion about anybody but nodes.
pub(super) async fn authorize(
    tenant: Option<&Arc<Tenant>>,
    user: &User,
    wanted: &Attributes<'_>,
) -> Decision {
    let Some(node) = node_of(user) else { return Decision::default() };
    if node.is_empty() {
        return no(format!("unknown node for user {}", quote(&user.name)));
    }
    let Target::Resource { group, resource, subresource, namespace, name } = wanted.target else {
        return by_rules(wanted);
    };
    let verb = wanted.verb.as_str();
    let request = Request { tenant, node, verb, subresource, namespace, name, wanted };
    match (group, resource) {
        ("", "secrets") => request.read(What::Secret).await,
        ("", "configmaps") => request.read(What::ConfigMap).await,
        ("", "persistentvolumeclaims") if subresource == "status" => match verb {
            "update" | "patch" => request.related(What::Claim).await,
            _ => no("can only get/update/patch this type"),
        },
        ("", "persistentvolumeclaims") => request.get(What::Claim).await,
        ("", "persistentvolumes") => request.get(What::Volume).await,
        ("resource.k8s.io", "resourceclaims") => request.get(What::ResourceClaim).await,
        ("storage.k8s.io", "volumeattachments") => request.get(What::Attachment).await,
        ("", "serviceaccounts") => request.service_account().await,
        ("coordination.k8s.io", "leases") => request.lease(),
        ("storage.k8s.io", "csinodes") => request.csi_node(),
        ("resource.k8s.io", "resourceslices") => request.slice().await,
        ("", "nodes") => request.node(),
        ("", "pods") => request.pod().await,
        ("certificates.k8s.io", "podcertificaterequests") => request.certificate_request().await,
        _ => by_rules(wanted),
    }
}

fn by_rules(wanted: &Attributes<'_>) -> Decision {
    Decision::plain(NODE_RULES.iter().any(|rule| rule.allows(wanted)))
}

/// The rules of a node, which cannot be listed.
pub(super) fn rules(user: &User) -> Rules {
    match node_of(user) {
        None => Rules::default(),
        Some(_) => Rules {
            error: "node authorizer does not support user rule resolution".into(),
            incomplete: true,
            ..Rules::default()
        },
    }
}

struct Request<'a> {
    tenant: Option<&'a Arc<Tenant>>,
    node: &'a str,
    verb: &'a str,
    subresource: &'a str,
    namespace: &'a str,
    name: &'a str,
    wanted: &'a Attributes<'a>,
}

impl Request<'_> {
    /// Whether the object is one that the node may use.
    async fn related(&self, what: What) -> Decision {
        if self.name.is_empty() {
            return no("No Object name found");
        }
        match self.reaches(what).await {
            Ok(true) => allowed(),
            Ok(false) => no(format!("no relationship found between node '{}' and this object", self.node)),
            Err(failure) => Decision { failure: Some(failure), ..Decision::default() },
        }
    }

    async fn reaches(&self, what: What) -> Result<bool, k1s_object::Status> {
        let Some(tenant) = self.tenant else { return Ok(false) };
        let mut caches = Vec::with_capacity(RESOURCES.len());
        for (group, version, plural) in RESOURCES {
            let resource = GroupVersionResource::new(group, version, plural);
            caches.push(tenant.cache(&*tenant.shared.catalog.require(resource)?));
        }
        tenant.nodes.reaches(caches, self.node, (what, self.namespace, self.name)).await
    }

    async fn get(&self, what: What) -> Decision {
        if self.verb != "get" {
            return no("can only get individual resources of this type");
        }
        if !self.subresource.is_empty() {
            return no("cannot get subresource");
        }
        self.related(what).await
    }

    async fn read(&self, what: What) -> Decision {
        if !matches!(self.verb, "get" | "list" | "watch") {
            return no("can only read resources of this type");
        }
        if !self.subresource.is_empty() {
            return no("cannot read subresource");
        }
        if self.namespace.is_empty() {
            return no("can only read namespaced object of this type");
        }
        self.related(what).await
    }

    async fn service_account(&self) -> Decision {
        if self.verb == "get" && self.subresource.is_empty() {
            return self.read(What::ServiceAccount).await;
        }
        if self.verb != "create" || self.name.is_empty() {
            return no("can only create tokens for individual service accounts");
        }
        if self.subresource != "token" {
            return no("can only create token subresource of serviceaccount");
        }
        self.related(What::ServiceAccount).await
    }

    fn lease(&self) -> Decision {
        if !matches!(self.verb, "get" | "create" | "update" | "patch" | "delete") {
            return no("can only get, create, update, patch, or delete a node lease");
        }
        if self.namespace != "kube-node-lease" {
            return no("can only access leases in the \"kube-node-lease\" system namespace");
        }
        // The name of a new object is not known.
        if self.verb != "create" && self.name != self.node {
            return no("can only access node lease with the same name as the requesting node");
        }
        allowed()
    }

    fn csi_node(&self) -> Decision {
        match self.subresource {
            "" => {}
            "status" => return no("CSINode status access requires CSIVolumeHealth feature"),
            _ => return no("cannot authorize CSINode subresources"),
        }
        if !matches!(self.verb, "get" | "create" | "update" | "patch" | "delete") {
            return no("can only get, create, update, patch, or delete a CSINode");
        }
        if self.verb != "create" && self.name != self.node {
            return no("can only access CSINode with the same name as the requesting node");
        }
        allowed()
    }

    /// Whether the request selects the objects of the node by this field.
    fn selects_own(&self, field: &str) -> bool {
        let selected = self.wanted.selection.field_requirements();
        selected.iter().any(|one| one.field == field && !one.negated && one.value == self.node)
    }

    async fn slice(&self) -> Decision {
        if !self.subresource.is_empty() {
            return no("cannot authorize ResourceSlice subresources");
        }
        match self.verb {
            "create" => allowed(),
            "get" | "update" | "patch" | "delete" => self.related(What::Slice).await,
            "watch" | "list" | "deletecollection" if self.selects_own("spec.nodeName") => allowed(),
            "watch" | "list" | "deletecollection" => {
                no("can only list/watch/deletecollection resourceslices with nodeName field selector")
            }
            _ => no(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection",
            ),
        }
    }

    async fn certificate_request(&self) -> Decision {
        if !self.subresource.is_empty() {
            return no("nodes may not access the status subresource of PodCertificateRequests");
        }
        match self.verb {
            "create" => allowed(),
            "get" => self.related(What::CertificateRequest).await,
            "list" | "watch" if self.selects_own("spec.nodeName") => allowed(),
            "list" | "watch" => no("can only list/watch podcertificaterequests with nodeName field selector"),
            other => no(format!("nodes may not {other} podcertificaterequests")),
        }
    }

    fn node(&self) -> Decision {
        match (self.subresource, self.verb) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => allowed(),
            ("", "get" | "list" | "watch") => match self.name {
                "" => no(format!("node '{}' cannot read all nodes, only its own Node object", self.node)),
                name if name == self.node => allowed(),
                name => no(format!("node '{}' cannot read '{name}', only its own Node object", self.node)),
            },
            _ => Decision::default(),
        }
    }

    async fn pod(&self) -> Decision {
        match (self.subresource, self.verb) {
            ("", "get") => self.get(What::Pod).await,
            ("", "list" | "watch") if self.selects_own("spec.nodeName") => allowed(),
            ("", "list" | "watch") if !self.name.is_empty() => self.related(What::Pod).await,
            ("", "list" | "watch") => no("can only list/watch pods with spec.nodeName field selector"),
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => allowed(),
            _ => Decision::default(),
        }
    }
}
