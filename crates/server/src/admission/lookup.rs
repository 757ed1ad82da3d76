//! How the plugins find other objects.

use std::sync::Arc;

use k1s_object::{Status, gvk::GroupVersionResource};
use k1s_store::Range;
use serde_json::Value;

use super::Attributes;
use crate::{
    context::Cx,
    errors::{self, Error},
    resource::Resource,
    stored::{Stored, Unreadable},
    tenant::Tenant,
};

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
pub(super) async fn cached_others(
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
pub(super) fn is_dry_run(cx: &Cx) -> bool {
    cx.query.find("dryRun").is_some()
}

/// An object of another kind by its name: from the watch cache, or from the store if the cache does not have it.
pub(super) async fn other(
    tenant: &Tenant,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, Status> {
    let stored = stored_other(tenant, resource, namespace, name).await?;
    stored.map(|stored| resource.read(&stored).map_err(|why| resource.unreadable(name, &why))).transpose()
}

/// The same as it is stored.
async fn stored_other(
    tenant: &Tenant,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<Option<Stored>, Status> {
    let key = tenant.key(resource, namespace, name);
    let snapshot = tenant.cache(resource).with_own_writes().await?;
    match snapshot.entries.get(&key) {
        Some(entry) => Ok(Some(entry.stored.clone())),
        None => tenant.get(&key).await,
    }
}

/// The namespace of a request, for selectors and policies of users: it is read by each request that they match.
pub(super) async fn namespace_of(a: &Attributes<'_>) -> Result<(Arc<Resource>, Stored), Error> {
    let found = stored_namespace(a).await?;
    found.ok_or_else(|| Error::not_found("", "namespaces", &a.namespace))
}

/// The same, if it exists.
pub(super) async fn stored_namespace(a: &Attributes<'_>) -> Result<Option<(Arc<Resource>, Stored)>, Error> {
    let tenant = &a.cx.tenant;
    let namespaces = kind(tenant, "", "v1", "namespaces")?;
    let stored = stored_other(tenant, &namespaces, "", &a.namespace).await?;
    Ok(stored.map(|stored| (namespaces, stored)))
}
