//! Objects that the server itself creates: the initial objects of a tenant, and the default objects of each namespace.

mod policy;
#[cfg(feature = "tls")]
mod trust;
#[cfg(test)]
mod upstream;

use std::sync::Arc;

use k1s_object::{
    Status,
    gvk::{GroupVersion, GroupVersionResource},
};
use k1s_store::{Precondition, Txn};
use serde_json::{Value, json};

pub(crate) use policy::ensure_policy;
#[cfg(feature = "tls")]
pub(crate) use trust::{ensure_trust, shows_trust};

use crate::{
    advertise,
    context::Cx,
    controllers,
    errors::Error,
    managed::{self, CONTROLLERS, SERVER},
    objectmeta::meta_text,
    tenant::{MAX_OPS, Tenant},
    write,
};

/// The namespaces that every control plane has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// A resource of the core group.
const fn core(resource: &str) -> GroupVersionResource<&str> {
    GroupVersionResource::new("", "v1", resource)
}

/// Resumes an existing tenant: advertises this server, and requests controllers if they have work.
pub(crate) async fn resume(tenant: &Arc<Tenant>) -> Result<(), Error> {
    advertise(tenant).await;
    if !tenant.has_controllers() && controllers::has_unfinished(tenant).await? {
        tenant.need_controllers();
    }
    Ok(())
}

/// Creates an object as the server itself, unless it exists.
pub(crate) async fn ensure(
    tenant: &Arc<Tenant>,
    gvr: GroupVersionResource<&str>,
    namespace: &str,
    manager: &str,
    object: Value,
) -> Result<(), Error> {
    let resource = tenant.shared.catalog.require(gvr)?;
    let mut object = object;
    managed::on_own_create(&resource, tenant.env(), manager, &mut object);
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    }
    let cx = Cx::internal(tenant, &resource, namespace, "");
    let key = tenant.key(&resource, namespace, meta_text(&object, "name"));
    match write::create(&cx, object, false).await {
        Ok(_) => Ok(()),
        // Another server may be creating the same object, and have taken its address before the object is visible here.
        Err(Error::AlreadyExists(_)) => Ok(()),
        Err(error) => match tenant.get(&key).await? {
            Some(_) => Ok(()),
            None => Err(error),
        },
    }
}

/// Points the Service `kubernetes` to this server. Errors are only logged: a tenant can be used without it.
async fn advertise(tenant: &Arc<Tenant>) {
    if let Err(error) = advertise::reconcile(tenant).await {
        tenant.warn_of(&error, "the Service kubernetes could not be pointed to this server");
    }
}

/// Creates the initial objects of a tenant; existing ones are not changed.
pub(crate) async fn bootstrap(tenant: &Arc<Tenant>) -> Result<(), Error> {
    for name in NAMESPACES {
        ensure(tenant, core("namespaces"), "", SERVER, json!({"metadata": {"name": name}})).await?;
        fill_namespace(tenant, name).await?;
    }
    let first = u32::from(tenant.options().service_network).saturating_add(1);
    let service = json!({
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": std::net::Ipv4Addr::from(first).to_string(),
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": advertise::target_port(tenant)}],
            "type": "ClusterIP"},
    });
    ensure(tenant, core("services"), "default", SERVER, service).await?;
    ensure_all(tenant, bootstrap_objects(tenant)).await?;
    advertise(tenant).await;
    Ok(())
}

/// The objects of a new cluster besides its namespaces.
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

/// Creates cluster-scoped objects in few transactions; existing ones are not changed.
async fn ensure_all(tenant: &Arc<Tenant>, objects: Vec<Value>) -> Result<(), Error> {
    let mut txn = Txn::new();
    for object in objects {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let GroupVersion { group, version } = GroupVersion::split(api_version);
        let kind = object["kind"].as_str().unwrap_or_default();
        let found = k1s_kinds::find_kind(group, version, kind).and_then(|kind| {
            tenant.shared.catalog.find(GroupVersionResource::new(kind.group, kind.version, kind.plural))
        });
        let Some(resource) = found else {
            return Err(Status::internal(format!("{kind} is not in the table of kinds")).into());
        };
        let key = tenant.key(&resource, "", meta_text(&object, "name"));
        if tenant.get(&key).await?.is_none() {
            let mut object = object;
            managed::on_own_create(&resource, tenant.env(), SERVER, &mut object);
            txn = txn.put(key, resource.encode_new(tenant.env(), object)?, Precondition::Any);
        }
        if txn.ops().len() == MAX_OPS {
            tenant.txn(std::mem::take(&mut txn)).await.map_err(|error| tenant.refusal(error))?;
        }
    }
    if !txn.ops().is_empty() {
        tenant.txn(txn).await.map_err(|error| tenant.refusal(error))?;
    }
    Ok(())
}

/// Creates the default objects of a namespace: a service account, and the authority of the server's certificate.
pub(crate) async fn fill_namespace(tenant: &Arc<Tenant>, namespace: &str) -> Result<(), Error> {
    let account = json!({"metadata": {"name": "default"}});
    ensure(tenant, core("serviceaccounts"), namespace, CONTROLLERS, account).await?;
    let note = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such \
                as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
                distributions of Kubernetes clusters.";
    let authority = json!({
        "metadata": {"name": "kube-root-ca.crt", "annotations": {"kubernetes.io/description": note}},
        "data": {"ca.crt": tenant.options().root_ca},
    });
    ensure(tenant, core("configmaps"), namespace, CONTROLLERS, authority).await
}
