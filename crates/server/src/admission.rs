//! What stands between a decoded object and its validation: rules that look at other objects.
//!
//! This is where admission webhooks and policies will be called, in this order: the server's own mutations, mutating
//! webhooks, (validation of the object), the server's own checks, validating policies and webhooks.

use bytes::Bytes;
use k1s_kinds::rules::{cluster::csr, core::service};
use k1s_object::{Status, status::Cause};
use k1s_store::{Action, Op, Precondition};
use serde_json::Value;

use crate::{
    context::Cx,
    tenant::Tenant,
    write::{Part, meta_text},
};

/// Before an object is prepared and validated.
pub(crate) async fn before_create(cx: &Cx, object: &mut Value) -> Result<(), Status> {
    if cx.resource.namespaced {
        require_namespace(cx, meta_text(object, "name")).await?;
    }
    match (&*cx.resource.group, &*cx.resource.kind) {
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            csr::stamp(object, &cx.user.name, &cx.user.groups, &cx.user.uid, &cx.user.extra);
        }
        ("", "Pod") => resolve_priority(cx, object).await?,
        _ => {}
    }
    if let crate::resource::Source::Custom(custom) = &cx.resource.source
        && custom.is_terminating()
    {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(
            &cx.resource.group,
            &cx.resource.plural,
            meta_text(object, "name"),
            why,
        ));
    }
    Ok(())
}

/// The namespace of a new object must be there, and must stay.
async fn require_namespace(cx: &Cx, name: &str) -> Result<(), Status> {
    let namespace = &cx.namespace;
    let key = cx.tenant.keys_of("", "namespaces", "") + namespace;
    let Some(stored) = cx.tenant.get(key.as_bytes()).await? else {
        return Err(Status::not_found("", "namespaces", namespace));
    };
    // Only an object being deleted has this field; looking for the text is quicker than parsing, and parsing decides.
    let marked = memchr::memmem::find(stored.json(), b"\"deletionTimestamp\"").is_some()
        && !meta_text(&stored.to_value("Namespace", "v1")?, "deletionTimestamp").is_empty();
    if marked {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut status = Status::forbidden(&cx.resource.group, &cx.resource.plural, name, why);
        if let Some(details) = &mut status.details {
            details.causes.push(Cause {
                reason: "NamespaceTerminating".into(),
                message: format!("namespace {namespace} is being terminated"),
                field: "metadata.namespace".into(),
            });
        }
        return Err(status);
    }
    Ok(())
}

/// A pod's priority comes from its class, or from the class that is the default.
async fn resolve_priority(cx: &Cx, pod: &mut Value) -> Result<(), Status> {
    let class_name = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    if class_name.is_empty() {
        return Ok(());
    }
    let key = cx.tenant.keys_of("scheduling.k8s.io", "priorityclasses", "") + &class_name;
    let Some(stored) = cx.tenant.get(key.as_bytes()).await? else {
        let why = format!("no PriorityClass with name {class_name} was found");
        return Err(Status::forbidden("", "pods", meta_text(pod, "name"), why));
    };
    let class = stored.to_value("PriorityClass", "scheduling.k8s.io/v1")?;
    let value = class["value"].clone();
    let sent = &pod["spec"]["priority"];
    if !sent.is_null() && *sent != value {
        let why = format!(
            "the integer value of priority ({sent}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
        );
        return Err(Status::forbidden("", "pods", meta_text(pod, "name"), why));
    }
    let policy = class["preemptionPolicy"].as_str().unwrap_or("PreemptLowerPriority").to_owned();
    let sent = pod["spec"]["preemptionPolicy"].as_str().unwrap_or_default();
    if !sent.is_empty() && sent != policy {
        let why = format!(
            "the string value of PreemptionPolicy ({sent}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        );
        return Err(Status::forbidden("", "pods", meta_text(pod, "name"), why));
    }
    pod["spec"]["priority"] = value;
    pod["spec"]["preemptionPolicy"] = policy.into();
    Ok(())
}

/// Before a changed object is prepared and validated.
pub(crate) async fn before_update(_: &Cx, _: Part, _: &mut Value, _: &Value) -> Result<(), Status> {
    Ok(())
}

/// Before an object is deleted.
pub(crate) async fn before_delete(cx: &Cx, old: &Value) -> Result<(), Status> {
    let protected = cx.resource.kind == "Namespace"
        && cx.resource.group.is_empty()
        && matches!(&*cx.name, "default" | "kube-system" | "kube-public");
    if protected && !old.is_null() {
        return Err(Status::forbidden("", "namespaces", &cx.name, "this namespace may not be deleted"));
    }
    Ok(())
}

/// The node ports that services may have.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30000..=32767;

fn is_service(cx: &Cx) -> bool {
    cx.resource.group.is_empty() && cx.resource.kind == "Service"
}

/// The key that stands for an IP or a port that a service holds. It is written with the service, in one transaction,
/// so no two services ever hold the same.
fn held(tenant: &Tenant, what: &str, which: &str) -> Bytes {
    (tenant.keys_of("k1s", what, "") + which).into()
}

/// What a service takes and gives back with this write. Chooses what the client left to the server.
pub(crate) async fn reserve(cx: &Cx, object: &mut Value, old: Option<&Value>) -> Result<Vec<Op>, Status> {
    if !is_service(cx) {
        return Ok(Vec::new());
    }
    let refuse = |error: service::AllocationError| match error {
        service::AllocationError::Invalid(errors) => {
            cx.invalid(if cx.name.is_empty() { "" } else { &cx.name }, &errors)
        }
        service::AllocationError::Internal(message) => Status::internal(message),
    };
    let name = meta_text(object, "name").to_owned();
    let invalid = |errors: &[k1s_object::FieldError]| cx.invalid(&name, errors);
    let plan = service::allocation_plan(object, old).map_err(refuse)?;
    let mut ops = Vec::new();
    let marker = Bytes::from_static(b"held");
    let take = |ops: &mut Vec<Op>, key: Bytes| {
        ops.push(Op { key, precondition: Precondition::Absent, action: Action::Put(marker.clone()) });
    };
    let network = u32::from(cx.tenant.options().service_network);
    let free = |key: Bytes| async move {
        cx.tenant
            .store()
            .get(&key, None)
            .await
            .map(|found| found.entry.is_none())
            .map_err(|error| crate::errors::store(&error))
    };
    for wanted in &plan.take_ips {
        if let Some(ip) = &wanted.ip {
            let parsed: std::net::IpAddr =
                ip.parse().map_err(|_| invalid(&[service::ip_refused(object, ip, "not a valid IP")]))?;
            let range = k1s_object::ip::Cidr { ip: std::net::IpAddr::V4(network.into()), bits: 16 };
            if let Err(why) = service::ip_in_range(parsed, range) {
                return Err(invalid(&[service::ip_refused(object, ip, &why)]));
            }
            let key = held(&cx.tenant, "serviceips", ip);
            if !free(key.clone()).await? {
                return Err(invalid(&[service::ip_refused(object, ip, service::IP_ALLOCATED)]));
            }
            take(&mut ops, key);
        } else {
            let mut chosen = None;
            for _ in 0..1000 {
                // The lower part of the range is left to those who ask for an address.
                let offset = u32::try_from(256 + cx.tenant.env().random_below(65_535 - 256)).unwrap_or(256);
                let ip = std::net::Ipv4Addr::from(network.saturating_add(offset)).to_string();
                let key = held(&cx.tenant, "serviceips", &ip);
                if free(key.clone()).await? {
                    chosen = Some((ip, key));
                    break;
                }
            }
            let Some((ip, key)) = chosen else {
                return Err(invalid(&[service::next_ip_refused(object, "range is full")]));
            };
            take(&mut ops, key);
            service::AllocationPlan::set_ip(object, wanted, &ip);
        }
    }
    for wanted in &plan.take_ports {
        if let Some(port) = wanted.port {
            let key = held(&cx.tenant, "nodeports", &port.to_string());
            if !NODE_PORTS.contains(&port) {
                return Err(refuse(service::port_refused(
                    wanted,
                    &service::port_out_of_range("30000-32767"),
                )));
            }
            if !free(key.clone()).await? {
                return Err(refuse(service::port_refused(wanted, service::PORT_ALLOCATED)));
            }
            take(&mut ops, key);
        } else {
            let mut chosen = None;
            for _ in 0..10_000 {
                let port = 30_000 + i64::try_from(cx.tenant.env().random_below(2768)).unwrap_or(0);
                let key = held(&cx.tenant, "nodeports", &port.to_string());
                if !ops.iter().any(|op| op.key == key) && free(key.clone()).await? {
                    chosen = Some((port, key));
                    break;
                }
            }
            let Some((port, key)) = chosen else {
                return Err(Status::internal("failed to allocate a nodePort: range is full"));
            };
            take(&mut ops, key);
            service::AllocationPlan::set_port(object, wanted, port);
        }
    }
    give_back(cx, &plan.free_ips, &plan.free_ports, &mut ops);
    Ok(ops)
}

fn give_back(cx: &Cx, ips: &[String], ports: &[i64], ops: &mut Vec<Op>) {
    let keys = ips.iter().map(|ip| held(&cx.tenant, "serviceips", ip));
    let keys = keys.chain(ports.iter().map(|port| held(&cx.tenant, "nodeports", &port.to_string())));
    ops.extend(keys.map(|key| Op { key, precondition: Precondition::Any, action: Action::Delete }));
}

/// What is given back when an object goes for good.
pub(crate) fn release(cx: &Cx, old: &Value) -> Vec<Op> {
    let mut ops = Vec::new();
    if is_service(cx) {
        let held = service::allocated(old);
        give_back(cx, &held.ips, &held.ports, &mut ops);
    }
    ops
}
