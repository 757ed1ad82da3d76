//! The server's own admission: rules about an object that depend on other objects.
//!
//! This is where admission webhooks and policies will be called, in this order: the server's own mutations
//! ([`before_create`], [`before_update`]), mutating webhooks, (preparation and validation of the object), the server's
//! own checks ([`check_create`], [`check_update`]), validating policies and webhooks. What an object allocates (addresses,
//! ports, quota) is written in the same transaction as the object, so that nothing is allocated twice.

mod classes;
mod limits;
mod namespaces;
mod pods;
mod quota;
mod security;
mod services;

use std::sync::Arc;

use k1s_kinds::{
    admission::pod_security as security_levels, rules::certificates::certificate_signing_request as csr,
};
use k1s_object::{Status, gvk::GroupVersionResource};
use k1s_store::{Action, Op, Precondition, Range};
use serde_json::Value;

use crate::{
    context::Cx,
    errors,
    objectmeta::{meta_text, metadata_mut},
    parts::Part,
    resource::Resource,
    stored::{Stored, Unreadable},
    tenant::Tenant,
};

/// The write that a check is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Write {
    /// Its transaction fails if the namespace has changed.
    Create,
    Update,
}

/// Length of the suffix of a generated name.
const SUFFIX_LEN: usize = 5;

/// 403 for the object of the request, by its generateName if the name was generated.
fn forbidden(cx: &Cx, object: &Value, why: impl Into<String>) -> Status {
    let (name, base) = (meta_text(object, "name"), meta_text(object, "generateName"));
    let generated = !base.is_empty() && name.len() == base.len() + SUFFIX_LEN && name.starts_with(base);
    refused(cx, if generated { base } else { name }, why)
}

/// 403 for the object of this name.
fn refused(cx: &Cx, name: &str, why: impl Into<String>) -> Status {
    Status::forbidden(&cx.resource.group, &cx.resource.plural, name, why.into())
}

fn is(cx: &Cx, group: &str, kind: &str) -> bool {
    cx.resource.group == group && cx.resource.kind == kind
}

/// A built-in resource.
pub(crate) fn kind(
    tenant: &Tenant,
    group: &str,
    version: &str,
    plural: &str,
) -> Result<Arc<Resource>, Status> {
    tenant.shared.catalog.require(GroupVersionResource::new(group, version, plural))
}

/// Logs an unreadable object; it does not prevent writes of other objects.
pub(crate) fn left_out(key: &[u8], why: &Unreadable) {
    tracing::error!(key = %key.escape_ascii(), %why, "an unreadable object is left out");
}

/// The objects of a kind whose encoding has this text, in a namespace or (empty) of the cluster; all for an empty text.
/// Searching for the text is faster than parsing; the caller checks the decoded object.
pub(crate) async fn others(
    tenant: &Tenant,
    resource: &Resource,
    namespace: &str,
    text: &str,
) -> Result<Vec<(Stored, Value)>, Status> {
    let range = Range::prefix(tenant.keys(resource, namespace));
    let found = tenant.store().range(range).await.map_err(|error| errors::store(&error))?;
    let mut objects = Vec::new();
    for entry in found.entries {
        let read = Stored::new(&entry.value, entry.revision).and_then(|stored| {
            let has_text = memchr::memmem::find(stored.json(), text.as_bytes()).is_some();
            let object = has_text.then(|| resource.read_any(&stored)).transpose()?;
            Ok(object.map(|object| (stored, object)))
        });
        match read {
            Ok(read) => objects.extend(read),
            Err(why) => left_out(&entry.key, &why),
        }
    }
    Ok(objects)
}

/// The same from the watch cache, which may lack recent writes of other servers.
async fn cached_others(
    tenant: &Tenant,
    resource: &Resource,
    namespace: &str,
    text: &str,
) -> Result<Vec<Value>, Status> {
    let snapshot = tenant.cache(resource).with_own_writes().await?;
    let prefix = tenant.keys(resource, namespace);
    let mut objects = Vec::new();
    for entry in snapshot.entries.under(prefix.as_bytes(), prefix.as_bytes()) {
        if memchr::memmem::find(entry.stored.json(), text.as_bytes()).is_none() {
            continue;
        }
        match resource.read_any(&entry.stored) {
            Ok(object) => objects.push(object),
            Err(why) => left_out(&entry.key, &why),
        }
    }
    Ok(objects)
}

/// Whether this is a dry run: no transaction will confirm a [`Known`](crate::cache::Known) fact.
fn is_dry_run(cx: &Cx) -> bool {
    cx.query.find("dryRun").is_some()
}

/// An object of another kind by its name: from the watch cache, or from the store if the cache does not have it.
async fn other(
    tenant: &Tenant,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, Status> {
    let key = tenant.key(resource, namespace, name);
    let snapshot = tenant.cache(resource).with_own_writes().await?;
    let stored = match snapshot.entries.get(&key) {
        Some(entry) => Some(entry.stored.clone()),
        None => tenant.get(&key).await?,
    };
    stored.map(|stored| resource.read(&stored).map_err(|why| resource.unreadable(name, &why))).transpose()
}

/// Mutates a new object before it is prepared and validated.
///
/// Returns preconditions of the transaction that stores it.
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

/// Sets the fields that the server fills in from the request, after an object was prepared.
pub(crate) fn prepared(cx: &Cx, object: &mut Value) {
    if is(cx, "certificates.k8s.io", "CertificateSigningRequest") {
        csr::stamp(object, &cx.user.name, &cx.user.groups, &cx.user.uid, &cx.user.extra);
    }
}

/// Checks a new, valid object. Returns further operations of its transaction.
pub(crate) async fn check_create(cx: &Cx, object: &Value) -> Result<Vec<Op>, Status> {
    match (&*cx.resource.group, &*cx.resource.kind) {
        ("", "Pod") => {
            limits::check(cx, object).await?;
            security::check_pod(cx, object, Write::Create).await?;
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
        _ => security::check_template(cx, object, Write::Create).await?,
    }
    quota::charge(cx, object, None).await
}

/// Mutates a changed object before it is prepared and validated.
pub(crate) async fn before_update(cx: &Cx, part: Part, new: &mut Value, old: &Value) -> Result<(), Status> {
    if part == Part::Main && is(cx, "", "Pod") {
        pods::keep_priority(new, old);
    }
    Ok(())
}

/// Checks a changed, valid object. Returns further operations of its transaction.
pub(crate) async fn check_update(cx: &Cx, part: Part, new: &Value, old: &Value) -> Result<Vec<Op>, Status> {
    let pod = is(cx, "", "Pod") && matches!(part, Part::Main | Part::EphemeralContainers | Part::Resize);
    if pod && security_levels::is_significant(new, old) {
        security::check_pod(cx, new, Write::Update).await?;
    }
    if part == Part::Main {
        match (&*cx.resource.group, &*cx.resource.kind) {
            ("", "Namespace") => security::check_namespace(cx, new, Some(old)).await?,
            ("", "PersistentVolumeClaim") => {
                limits::check(cx, new).await?;
                classes::may_grow(cx, new, old).await?;
            }
            ("scheduling.k8s.io", "PriorityClass") => classes::one_default_priority(cx, new).await?,
            _ => security::check_template(cx, new, Write::Update).await?,
        }
    }
    quota::charge(cx, new, Some(old)).await
}

/// Checks whether an object may be deleted.
pub(crate) async fn before_delete(cx: &Cx, old: &Value) -> Result<(), Status> {
    namespaces::may_be_deleted(cx, old)
}

/// Allocates and releases what an object holds (cluster IPs, node ports), and sets what the client left to the server.
/// Returns further operations of its transaction.
pub(crate) async fn reserve(cx: &Cx, object: &mut Value, old: Option<&Value>) -> Result<Vec<Op>, Status> {
    if is(cx, "", "Service") { services::reserve(cx, object, old).await } else { Ok(Vec::new()) }
}

/// Releases what an object holds when it is removed. Returns further operations of its transaction.
pub(crate) async fn release(cx: &Cx, old: &Value) -> Result<Vec<Op>, Status> {
    let mut ops = quota::give_back(cx, old).await?;
    if is(cx, "", "Service") {
        services::release(cx, old, &mut ops);
    } else if is(cx, "", "Namespace") {
        let key = cx.tenant.quota_mark(&cx.name);
        ops.push(Op { key, precondition: Precondition::Any, action: Action::Delete });
    }
    Ok(ops)
}

/// Updates the usage of a quota that was created or changed.
pub(crate) async fn after_write(cx: &Cx) -> Result<(), Status> {
    if is(cx, "", "ResourceQuota") && cx.subresource.is_empty() {
        quota::count(&cx.tenant, &cx.namespace).await?;
        quota::count_later(&cx.tenant, &cx.namespace);
    }
    Ok(())
}
