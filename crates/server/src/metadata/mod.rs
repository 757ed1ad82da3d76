//! `/k1s/v1/metadata`: the metadata of everything in a tenant, in one list or one watch.
//!
//! This is not a Kubernetes API. Controllers that follow objects of every kind (above all the garbage collector) would need
//! a watch per kind, some 70, for each tenant; this is a single store watch, and costs a position in the store's feed.
//! `k1s-controllers` uses it where it is available. It requires permission to watch everything.
//!
//! - `?watch=true`: `ADDED` for existing objects, a `BOOKMARK` with the annotation `k8s.io/initial-events-end`, then changes
//!   in the order of revisions. With `&resourceVersion=N` only the changes after N; `&progress=true` requests a `BOOKMARK`
//!   once the watch has caught up with the time it was opened.
//! - `&all=namespaces&all=configmaps/kube-root-ca.crt`: every object of these resources (with this name); of other resources
//!   only objects that have owners or wait for the deletion of their dependents; and every deletion. Without `all`,
//!   everything.
//! - without `watch`: a list; `?namespace=N` selects a namespace, `?of=widgets.example.com` a resource.
//!
//! The object of an event, and the item of a list, has `metadata` and `resource` (group and resource; in a list also the
//! version and kind in which it can be requested).

mod follow;
mod select;

use std::{collections::HashSet, sync::Arc};

use http::Response;
use k1s_object::Status;
use k1s_store::{Range, Revision};

use self::select::Selection;
use crate::{
    authz::Target,
    body::Body,
    errors,
    keys::{self, Key, split_key},
    request::{Query, Verb},
    resource::Resource,
    respond,
    stored::Stored,
    tenant::Tenant,
};

pub(crate) const PATH: &str = "/k1s/v1/metadata";

/// The target that a user must be authorized for.
pub(crate) const TARGET: Target<'static> =
    Target::Resource { group: "*", resource: "*", subresource: "", namespace: "", name: "" };

/// Number of objects read from the store at a time.
const PAGE: usize = 1000;

/// GET.
pub(crate) async fn handle(tenant: &Arc<Tenant>, query: &Query) -> Result<Response<Body>, Status> {
    if query.flag("watch") { follow::open(tenant, query).await } else { list(tenant, query).await }
}

async fn list(tenant: &Arc<Tenant>, query: &Query) -> Result<Response<Body>, Status> {
    let (namespace, of) = (query.get("namespace"), query.find("of").map(select::resource));
    let revision = tenant.revision().await?;
    tenant.customs.reach(tenant, revision).await?;
    let customs = tenant.customs.current(tenant).await?;
    let all = tenant.shared.catalog.all().iter().chain(customs.resources());
    // The storage version first, if it is served.
    let mut resources: Vec<&Arc<Resource>> = all.collect();
    resources.sort_by_key(|one| one.group != one.storage_group() || one.version != one.storage_version());
    let mut done = HashSet::new();
    let mut out = format!(
        "{{\"kind\":\"MetadataList\",\"apiVersion\":\"k1s/v1\",\"metadata\":{{\"resourceVersion\":\"{revision}\"}},\"items\":["
    )
    .into_bytes();
    let mut first = true;
    for resource in resources {
        let wanted = match of {
            Some((plural, group)) => resource.plural == plural && resource.storage_group() == group,
            None => true,
        };
        let fits = (namespace.is_empty() || resource.namespaced) && resource.verbs.contains(&Verb::List);
        if !wanted || !fits || !done.insert((resource.storage_group(), &*resource.plural)) {
            continue;
        }
        let mut range = Range::prefix(tenant.keys(resource, namespace)).limit(PAGE);
        loop {
            let page = tenant.store().range(range.clone()).await.map_err(|error| errors::store(&error))?;
            for entry in &page.entries {
                if !std::mem::take(&mut first) {
                    out.push(b',');
                }
                let Resource { group, version, plural, kind, .. } = &**resource;
                out.extend_from_slice(
                    format!(
                        "{{\"resource\":{{\"group\":\"{group}\",\"version\":\"{version}\",\"resource\":\"{plural}\",\"kind\":\"{kind}\"}},"
                    )
                    .as_bytes(),
                );
                let written = Stored::new(&entry.value, entry.revision)
                    .and_then(|stored| stored.write_metadata(&mut out));
                if let Err(why) = written {
                    // Its key is enough to delete it.
                    crate::admission::left_out(&entry.key, &why);
                    write_known(&mut out, tenant, &entry.key, entry.revision);
                }
                out.push(b'}');
            }
            let Some(last) = page.entries.last().filter(|_| page.more) else { break };
            range = range.start([&*last.key, b"\0"].concat());
        }
    }
    out.extend_from_slice(b"]}");
    Ok(respond::bytes(200, "application/json", out))
}

/// Appends `"metadata":{…}` of an unreadable object, derived from its key.
fn write_known(out: &mut Vec<u8>, tenant: &Tenant, key: &[u8], revision: Revision) {
    let prefix = keys::prefix(&tenant.name);
    let mut metadata = serde_json::json!({"resourceVersion": revision.to_string()});
    if let Some(Key { namespace, name, .. }) = split_key(key, &prefix) {
        metadata["name"] = name.into();
        if !namespace.is_empty() {
            metadata["namespace"] = namespace.into();
        }
    }
    out.extend_from_slice(b"\"metadata\":");
    out.extend_from_slice(metadata.to_string().as_bytes());
}

/// The revision after which a watch begins.
fn revision(query: &Query) -> Result<Option<Revision>, Status> {
    match query.get("resourceVersion") {
        "" | "0" => Ok(None),
        text => match text.parse() {
            Ok(number) => Ok(Some(Revision::new(number))),
            Err(_) => Err(Status::bad_request(format!("resourceVersion: {text:?} is not a number"))),
        },
    }
}
