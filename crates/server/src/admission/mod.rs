//! What stands between a decoded object and the store: rules that look at other objects.
//!
//! This is where admission webhooks and policies will be called, in this order: the server's own mutations
//! ([`before_create`], [`before_update`]), mutating webhooks, (preparation and validation of the object), the server's
//! own checks ([`check_create`], [`check_update`]), validating policies and webhooks. What an object takes from others
//! (addresses, ports, quota) goes into the transaction that writes the object, so that nothing is ever taken twice.

mod classes;
mod limits;
mod namespaces;
mod pods;
mod quota;
mod roles;
mod security;
mod services;

use std::sync::Arc;

use k1s_kinds::{
    admission::pod_security as security_levels, rules::certificates::certificate_signing_request as csr,
};
use k1s_object::Status;
use k1s_store::{Op, Range};
use serde_json::Value;

use crate::{
    context::Cx,
    errors,
    resource::Resource,
    stored::{Stored, Unreadable},
    tenant::Tenant,
    write::{Part, meta_text, metadata_mut},
};

/// How long the suffix of a generated name is.
const SUFFIX: usize = 5;

/// 403 for the object of the request. Before it is stored a generated name is not known yet.
fn forbidden(cx: &Cx, object: &Value, why: impl Into<String>) -> Status {
    let (name, base) = (meta_text(object, "name"), meta_text(object, "generateName"));
    let generated = !base.is_empty() && name.len() == base.len() + SUFFIX && name.starts_with(base);
    refused(cx, if generated { base } else { name }, why)
}

/// 403 for the object of this name.
fn refused(cx: &Cx, name: &str, why: impl Into<String>) -> Status {
    Status::forbidden(&cx.resource.group, &cx.resource.plural, name, why.into())
}

fn is(cx: &Cx, group: &str, kind: &str) -> bool {
    cx.resource.group == group && cx.resource.kind == kind
}

/// A kind that rules ask about.
fn kind(tenant: &Tenant, group: &str, version: &str, plural: &str) -> Result<Arc<Resource>, Status> {
    let found = tenant.shared.catalog.find(group, version, plural);
    found.ok_or_else(|| Status::internal(format!("{plural} are not in the table of kinds")))
}

/// The objects of a kind whose encoding has this text, in a namespace or (empty) of the cluster; all for an empty text.
/// Looking for the text is quicker than parsing; who asks must look again.
pub(crate) async fn mentioning(
    tenant: &Tenant,
    resource: &Resource,
    namespace: &str,
    text: &str,
) -> Result<Vec<Stored>, Status> {
    let range = Range::prefix(tenant.keys(resource, namespace));
    let found = tenant.store().range(range).await.map_err(|error| errors::store(&error))?;
    let mut objects = Vec::new();
    for entry in found.entries {
        match Stored::new(&entry.value, entry.revision) {
            Ok(stored) if memchr::memmem::find(stored.json(), text.as_bytes()).is_some() => {
                objects.push(stored);
            }
            Ok(_) => {}
            Err(why) => left_out(&entry.key, &why),
        }
    }
    Ok(objects)
}

/// One object that cannot be read does not keep others from being written.
pub(crate) fn left_out(key: &[u8], why: &Unreadable) {
    tracing::error!(key = %key.escape_ascii(), %why, "an object cannot be read and is left out");
}

/// The same, parsed.
pub(crate) async fn others(
    tenant: &Tenant,
    resource: &Resource,
    namespace: &str,
    text: &str,
) -> Result<Vec<(Stored, Value)>, Status> {
    let mut objects = Vec::new();
    for stored in mentioning(tenant, resource, namespace, text).await? {
        match resource.read_any(&stored) {
            Ok(object) => objects.push((stored, object)),
            Err(why) => {
                tracing::error!(resource = resource.plural, namespace, revision = %stored.revision, %why, "an object cannot be read and is left out");
            }
        }
    }
    Ok(objects)
}

/// An object of another kind, by its name.
async fn other(
    tenant: &Tenant,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, Status> {
    let stored = tenant.get(&tenant.key(resource, namespace, name)).await?;
    stored.map(|stored| resource.read(&stored).map_err(|why| resource.unreadable(name, &why))).transpose()
}

/// Before an object is prepared and validated.
///
/// Gives the conditions under which it may be stored.
pub(crate) async fn before_create(cx: &Cx, object: &mut Value) -> Result<Vec<Op>, Status> {
    let mut conditions = Vec::new();
    if cx.resource.namespaced {
        conditions.push(namespaces::require(cx, object).await?);
    }
    match (&*cx.resource.group, &*cx.resource.kind) {
        ("", "Pod") => {
            limits::apply(cx, object).await?;
            pods::mutate(cx, object).await?;
        }
        ("", "LimitRange") if meta_text(object, "name").is_empty() => {
            let name = cx.tenant.env().uuid().to_string();
            metadata_mut(object).insert("name".into(), name.into());
        }
        ("", "PersistentVolumeClaim") => classes::default_storage_class(cx, object).await?,
        ("networking.k8s.io", "Ingress") => classes::default_ingress_class(cx, object).await?,
        _ => {}
    }
    if let crate::resource::Source::Custom(custom) = &cx.resource.source
        && custom.is_terminating()
    {
        return Err(forbidden(
            cx,
            object,
            "create not allowed while custom resource definition is terminating",
        ));
    }
    Ok(conditions)
}

/// After an object was prepared: what the server itself writes into it.
pub(crate) fn prepared(cx: &Cx, object: &mut Value) {
    if is(cx, "certificates.k8s.io", "CertificateSigningRequest") {
        csr::stamp(object, &cx.user.name, &cx.user.groups, &cx.user.uid, &cx.user.extra);
    }
}

/// After an object was found valid. The answer is what changes with it, in the same transaction.
pub(crate) async fn check_create(cx: &Cx, object: &Value) -> Result<Vec<Op>, Status> {
    match (&*cx.resource.group, &*cx.resource.kind) {
        ("", "Pod") => {
            limits::check(cx, object).await?;
            security::check_pod(cx, object).await?;
            pods::check(cx, object).await?;
        }
        ("", "Namespace") => security::check_namespace(cx, object, None).await?,
        ("", "PersistentVolumeClaim") => limits::check(cx, object).await?,
        ("scheduling.k8s.io", "PriorityClass") => classes::one_default_priority(cx, object).await?,
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            if let Some(why) = csr::forbidden_subject(object) {
                return Err(refused(cx, meta_text(object, "name"), why));
            }
        }
        _ => security::check_template(cx, object).await?,
    }
    quota::charge(cx, object, None).await
}

/// Before a changed object is prepared and validated.
pub(crate) async fn before_update(cx: &Cx, part: Part, new: &mut Value, old: &Value) -> Result<(), Status> {
    if part == Part::Main && is(cx, "", "Pod") {
        pods::keep_priority(new, old);
    }
    Ok(())
}

/// After a changed object was found valid. The answer is what changes with it, in the same transaction.
pub(crate) async fn check_update(cx: &Cx, part: Part, new: &Value, old: &Value) -> Result<Vec<Op>, Status> {
    let pod = is(cx, "", "Pod") && matches!(part, Part::Main | Part::EphemeralContainers | Part::Resize);
    if pod && security_levels::is_significant(new, old) {
        security::check_pod(cx, new).await?;
    }
    if part == Part::Main {
        match (&*cx.resource.group, &*cx.resource.kind) {
            ("", "Namespace") => security::check_namespace(cx, new, Some(old)).await?,
            ("", "PersistentVolumeClaim") => {
                limits::check(cx, new).await?;
                classes::may_grow(cx, new, old).await?;
            }
            ("scheduling.k8s.io", "PriorityClass") => classes::one_default_priority(cx, new).await?,
            _ => security::check_template(cx, new).await?,
        }
    }
    quota::charge(cx, new, Some(old)).await
}

/// Before an object is deleted.
pub(crate) async fn before_delete(cx: &Cx, old: &Value) -> Result<(), Status> {
    namespaces::may_be_deleted(cx, old)
}

/// What an object takes and gives back with this write. Chooses what the client left to the server.
pub(crate) async fn reserve(cx: &Cx, object: &mut Value, old: Option<&Value>) -> Result<Vec<Op>, Status> {
    if is(cx, "", "Service") { services::reserve(cx, object, old).await } else { Ok(Vec::new()) }
}

/// What is given back when an object goes for good.
pub(crate) async fn release(cx: &Cx, old: &Value) -> Result<Vec<Op>, Status> {
    let mut ops = quota::give_back(cx, old).await?;
    if is(cx, "", "Service") {
        services::release(cx, old, &mut ops);
    }
    Ok(ops)
}

/// After an object was created or changed: what follows for others.
pub(crate) async fn after_write(cx: &Cx) -> Result<(), Status> {
    if is(cx, "rbac.authorization.k8s.io", "ClusterRole") {
        roles::aggregate(&cx.tenant).await?;
    } else if is(cx, "", "ResourceQuota") && cx.subresource.is_empty() {
        quota::count(&cx.tenant, &cx.namespace).await?;
        quota::count_later(&cx.tenant, &cx.namespace);
    }
    Ok(())
}

/// After an object is gone: what follows for others.
pub(crate) fn after_delete(cx: &Cx) {
    if is(cx, "rbac.authorization.k8s.io", "ClusterRole") {
        roles::aggregate_later(&cx.tenant);
    }
}
