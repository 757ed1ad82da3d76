//! What happens around writes of namespaces and custom resource definitions, and when a tenant begins.
//!
//! What takes its time, such as emptying a namespace that is being deleted, is left to controllers; here it is only said that
//! they are needed. A new namespace gets its default objects from the server itself, before it is answered: who creates a
//! pod right behind it finds its service account.

use std::sync::Arc;

use k1s_object::Status;
use k1s_schema::names::{Termination, set_terminating};
use k1s_store::{Precondition, Txn};
use serde_json::{Value, json};

use crate::{
    admission::{self, mentioning},
    advertise,
    context::Cx,
    metadata,
    resource::Resource,
    tenant::{MAX_OPS, Tenant},
    write::{self, Written, finalizers, meta_text},
};

/// The finalizer that keeps a definition until its objects are gone.
pub(crate) const CRD_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The namespaces that every control plane has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

fn is(cx: &Cx, group: &str, kind: &str) -> bool {
    cx.resource.group == group && cx.resource.kind == kind
}

fn is_definition(cx: &Cx) -> bool {
    is(cx, "apiextensions.k8s.io", "CustomResourceDefinition")
}

/// Takes up what was left undone in a tenant that was there before.
pub(crate) async fn take_up(tenant: &Arc<Tenant>) -> Result<(), Status> {
    advertise(tenant).await;
    if !tenant.has_controllers() && metadata::is_anything_left(tenant).await? {
        tenant.need_controllers();
    }
    Ok(())
}

/// Creates an object, as the server itself; one that is there already is fine.
async fn ensure(
    tenant: &Arc<Tenant>,
    path: (&str, &str, &str),
    namespace: &str,
    object: Value,
) -> Result<(), Status> {
    let (group, version, plural) = path;
    let Some(resource) = tenant.shared.catalog.find(group, version, plural) else {
        return Err(Status::internal(format!("{plural} are not in the table of kinds")));
    };
    let mut object = object;
    if let Some(rules) = resource.rules() {
        (rules.defaults)(&mut object);
    }
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    }
    let cx = Cx::internal(tenant, &resource, namespace, "");
    let key = tenant.key(&resource, namespace, meta_text(&object, "name"));
    match write::create(&cx, object, false).await {
        Ok(_) => Ok(()),
        // Another server may be making the same, which takes an address before this one finds the object.
        Err(status) if status.reason == "AlreadyExists" || tenant.get(&key).await?.is_some() => {
            tracing::debug!(%status, "it is there already");
            Ok(())
        }
        Err(status) => Err(status),
    }
}

/// Has the Service `kubernetes` lead to this server. A tenant can be used without it.
async fn advertise(tenant: &Arc<Tenant>) {
    if let Err(error) = advertise::reconcile(tenant).await {
        tracing::warn!(tenant = %tenant.name, %error, "the Service kubernetes does not lead to this server");
    }
}

/// Makes what every tenant has; what is there already is left as it is.
pub(crate) async fn bootstrap(tenant: &Arc<Tenant>) -> Result<(), Status> {
    for name in NAMESPACES {
        ensure(tenant, ("", "v1", "namespaces"), "", json!({"metadata": {"name": name}})).await?;
        fill_namespace(tenant, name).await?;
    }
    let first = u32::from(tenant.options().service_network).saturating_add(1);
    let service = json!({
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": std::net::Ipv4Addr::from(first).to_string(),
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": advertise::target_port(tenant)}],
            "type": "ClusterIP"},
    });
    ensure(tenant, ("", "v1", "services"), "default", service).await?;
    ensure_all(tenant, bootstrap_objects(tenant)).await?;
    advertise(tenant).await;
    Ok(())
}

/// What a fresh cluster has besides its namespaces.
fn bootstrap_objects(tenant: &Tenant) -> Vec<Value> {
    use k1s_kinds::bootstrap;
    let now = crate::time::stamp(tenant.env());
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        let mut condition = json!({"type": kind, "status": status, "lastTransitionTime": now});
        condition["reason"] = reason.into();
        condition["message"] = message.into();
        json!({ "conditions": [condition] })
    };
    let mut apis = bootstrap::api_services();
    for api in &mut apis {
        api["status"] = condition("Available", "True", "Local", "Local APIServices are always available");
    }
    let range = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes", "finalizers": ["networking.k8s.io/service-cidr-finalizer"]},
        "spec": {"cidrs": [format!("{}/16", tenant.options().service_network)]},
        "status": condition("Ready", "True", "", "Kubernetes default Service CIDR is ready"),
    });
    let (levels, mut flows) = (bootstrap::priority_levels(), bootstrap::flow_schemas());
    for flow in &mut flows {
        let level = flow["spec"]["priorityLevelConfiguration"]["name"].as_str().unwrap_or_default();
        let message = format!(
            "This FlowSchema references the PriorityLevelConfiguration object named {level:?} and it exists"
        );
        flow["status"] = condition("Dangling", "False", "Found", &message);
    }
    [bootstrap::priority_classes(), levels, flows, apis, vec![range]].concat()
}

/// The bytes of an object that the server itself creates, complete with its status.
pub(crate) fn encode_new(
    tenant: &Tenant,
    resource: &Resource,
    mut object: Value,
) -> Result<bytes::Bytes, Status> {
    let status = object.get("status").cloned();
    if let Some(rules) = resource.rules() {
        (rules.defaults)(&mut object);
    }
    let metadata = write::metadata_mut(&mut object);
    metadata.insert("uid".into(), tenant.env().uuid().to_string().into());
    metadata.insert("creationTimestamp".into(), crate::time::stamp(tenant.env()).into());
    if resource.has_generation() {
        metadata.insert("generation".into(), 1.into());
    }
    resource.prepare_create(&mut object);
    if let Some(status) = status {
        object["status"] = status;
    }
    resource.finish(&mut object);
    resource.set_type(&mut object);
    resource.encode(&object)
}

/// Creates objects of the cluster in few transactions; those that are there already are left as they are.
async fn ensure_all(tenant: &Arc<Tenant>, objects: Vec<Value>) -> Result<(), Status> {
    let mut txn = Txn::new();
    for object in objects {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = object["kind"].as_str().unwrap_or_default();
        let found = k1s_kinds::find_kind(group, version, kind)
            .and_then(|kind| tenant.shared.catalog.find(kind.group, kind.version, kind.plural));
        let Some(resource) = found else {
            return Err(Status::internal(format!("{kind} is not in the table of kinds")));
        };
        let key = tenant.key(&resource, "", meta_text(&object, "name"));
        if tenant.get(&key).await?.is_none() {
            txn = txn.put(key, encode_new(tenant, &resource, object)?, Precondition::Any);
        }
        if txn.ops().len() == MAX_OPS {
            tenant.txn(std::mem::take(&mut txn)).await.map_err(|error| tenant.refusal(&error))?;
        }
    }
    if !txn.ops().is_empty() {
        tenant.txn(txn).await.map_err(|error| tenant.refusal(&error))?;
    }
    Ok(())
}

/// What every namespace has: a service account, and the authority that signs the server's certificate.
async fn fill_namespace(tenant: &Arc<Tenant>, namespace: &str) -> Result<(), Status> {
    let account = json!({"metadata": {"name": "default"}});
    ensure(tenant, ("", "v1", "serviceaccounts"), namespace, account).await?;
    let note = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such \
                as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
                distributions of Kubernetes clusters.";
    let authority = json!({
        "metadata": {"name": "kube-root-ca.crt", "annotations": {"kubernetes.io/description": note}},
        "data": {"ca.crt": tenant.options().root_ca},
    });
    ensure(tenant, ("", "v1", "configmaps"), namespace, authority).await
}

/// After an object was created.
pub(crate) async fn after_create(cx: &Cx, written: &Written, dry_run: bool) -> Result<(), Status> {
    if dry_run {
        return Ok(());
    }
    if is(cx, "", "Namespace") {
        let object = written.value(cx)?;
        fill_namespace(&cx.tenant, meta_text(&object, "name")).await?;
    } else if is_definition(cx) {
        let object = written.value(cx)?;
        settle_definition(cx, meta_text(&object, "name")).await?;
    }
    admission::after_write(cx).await
}

/// After an object was changed.
pub(crate) async fn after_update(cx: &Cx, _: &Written, dry_run: bool) -> Result<(), Status> {
    if dry_run {
        return Ok(());
    }
    if is_definition(cx) {
        settle_definition(cx, &cx.name).await?;
    }
    admission::after_write(cx).await
}

/// The marks of its own that an object gets when it is deleted.
pub(crate) fn mark(cx: &Cx, object: &mut Value) {
    if is(cx, "", "Namespace") {
        object["status"]["phase"] = "Terminating".into();
    } else if is_definition(cx) && meta_text(object, "deletionTimestamp").is_empty() {
        set_terminating(object, Termination::Pending, &crate::time::stamp(cx.tenant.env()));
    }
}

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Created,
    Changed,
    Deleted,
}

/// After an object was created, changed, marked as deleted, or deleted: whether that is a matter for controllers.
pub(crate) fn after_any(cx: &Cx, object: &Value, fate: Fate) {
    let tenant = &cx.tenant;
    if tenant.has_controllers() {
        return;
    }
    let meta = &object["metadata"];
    let deleting = fate != Fate::Deleted && meta["deletionTimestamp"].is_string();
    let filled = |field: &str| meta[field].as_array().is_some_and(|list| !list.is_empty());
    let waits = |name: &Value| name == "foregroundDeletion" || name == "orphan";
    let owned = filled("ownerReferences") || deleting && finalizers(object).iter().any(waits);
    let name = meta["name"].as_str().unwrap_or_default();
    let namespace = || meta["namespace"].as_str().unwrap_or_default();
    let needed = match (&*cx.resource.kind, cx.resource.storage_group()) {
        (_, group) if metadata::is_finished_by_controllers(group, &cx.resource.plural) => deleting || owned,
        ("Event", "") => true,
        ("Lease", "coordination.k8s.io") => !metadata::is_controllers_lease(namespace(), name),
        ("ServiceAccount", "") => fate == Fate::Deleted && name == "default" || owned,
        ("ConfigMap", "") => fate != Fate::Created && name == "kube-root-ca.crt" || owned,
        _ => owned,
    };
    if needed {
        tenant.need_controllers();
    }
}

/// After an object is gone.
pub(crate) fn after_delete(cx: &Cx, object: &Value) {
    if is_definition(cx) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        cx.tenant.forget_caches(&text(&object["spec"]["group"]), &text(&object["spec"]["names"]["plural"]));
    }
    admission::after_delete(cx);
}

/// Decides on the names of all definitions of a group, and waits until this server serves what they say.
async fn settle_definition(cx: &Cx, name: &str) -> Result<(), Status> {
    let tenant = &cx.tenant;
    let resource = &cx.resource;
    let now = crate::time::stamp(tenant.env());
    // A definition is called by its plural and its group, and names are a matter of one group.
    let Some((_, group)) = name.split_once('.') else { return Ok(()) };
    let text = format!("\"group\":\"{group}\"");
    // Whole definitions, parsed, would be many times what all of them take in the store.
    let mut all: Vec<Value> = Vec::new();
    for stored in mentioning(tenant, resource, "", &text).await? {
        match k1s_schema::names::outline(stored.json()) {
            Ok(outline) => all.push(outline),
            // Its names are free: nothing is served under them.
            Err(why) => {
                tracing::error!(revision = %stored.revision, %why, "a definition cannot be read and is left out");
            }
        }
    }
    for crd in all.iter().filter(|crd| crd["spec"]["group"] == group) {
        let mut settled = crd.clone();
        let others = || all.iter().filter(|other| meta_text(other, "name") != meta_text(crd, "name"));
        let changed = k1s_schema::names::accept_names(&mut settled, others(), &now);
        if !(k1s_schema::names::establish(&mut settled, &now) || changed) {
            continue;
        }
        let status = settled["status"].clone();
        let one = Cx::internal(tenant, resource, "", meta_text(crd, "name"));
        let change = |old: &Value| {
            let mut new = old.clone();
            new["status"] = status.clone();
            Ok(new)
        };
        write::change(&one, &change).await?;
    }
    let revision = tenant.revision().await?;
    tenant.customs.reach(tenant, revision).await
}
