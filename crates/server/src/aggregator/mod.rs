//! API aggregation: group versions that are served by other servers, as kube-aggregator does it.
//!
//! An `APIService` that names a Service hands a group version to the server behind it. Requests for it are authenticated and
//! authorized here, and forwarded with the user in their headers (`proxy`). A task per tenant that has such `APIService`s
//! checks the servers and reads their discovery documents in the background (`monitor`), so that requests for discovery wait
//! for none of them. Tenants without any have neither the task nor its costs.

mod fetch;
mod headers;
mod monitor;
mod openapi;
mod probe;
mod proxy;
mod register;
mod resolve;
mod resources;

use std::{
    fmt::Write as _,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::Response;
use k1s_object::Status;

pub(crate) use proxy::{Incoming, Kind, forward};
pub(crate) use register::{sync, sync_later};

use crate::{
    body::Body,
    documents::Fingerprint,
    respond,
    tenant::{
        Tenant,
        apis::{Api, Apis, Live},
    },
};

/// How long discovery waits for the documents of servers that were registered just now.
const FIRST_READ: Duration = Duration::from_secs(6);

/// The group of `APIService`s.
pub(crate) const GROUP: &str = "apiregistration.k8s.io";

/// The `APIService`s of a tenant; the servers behind them are checked from now on.
pub(crate) async fn registered(tenant: &Arc<Tenant>) -> Result<Arc<Apis>, Status> {
    let apis = tenant.apis().await?;
    register::complete(tenant);
    if !apis.remote.is_empty() {
        watch(tenant);
    }
    Ok(apis)
}

/// Starts the task that checks the servers of a tenant, unless it runs.
fn watch(tenant: &Arc<Tenant>) {
    let is_watched = &tenant.api_registry.is_watched;
    if !is_watched.load(Ordering::Relaxed) && !is_watched.swap(true, Ordering::AcqRel) {
        let task = tenant.env().spawn("aggregated APIs", monitor::run(tenant.clone()));
        drop(task);
    }
}

/// Waits until the discovery documents of servers that were registered just now have been read, for a limited time.
pub(crate) async fn discovered(tenant: &Arc<Tenant>, apis: &Apis) {
    first(tenant, apis, |live| live.is_current.is_some()).await;
}

/// The same for their OpenAPI documents.
pub(crate) async fn described(tenant: &Arc<Tenant>, apis: &Apis) {
    first(tenant, apis, |live| live.is_described || live.is_current == Some(false)).await;
}

async fn first(tenant: &Arc<Tenant>, apis: &Apis, is_read: fn(&Live) -> bool) {
    let unread = apis.remote.iter().filter_map(|api| {
        let mut live = api.backend.as_ref()?.live.subscribe();
        let unread = !is_read(&live.borrow());
        unread.then_some(async move { live.wait_for(is_read).await.map(drop) })
    });
    let unread: Vec<_> = unread.collect();
    if !unread.is_empty() {
        let _ = tenant.env().timeout(FIRST_READ, futures_util::future::join_all(unread)).await;
    }
}

/// The OpenAPI documents of aggregated APIs, by name, with their hashes: `apis/{group}/{version}`. A server is believed about
/// its own group version alone.
pub(crate) fn openapi_hashes(apis: &Apis) -> Vec<(String, String)> {
    let hash = |api: &Arc<Api>| {
        let live = api.backend.as_ref()?.live.borrow();
        Some((format!("apis/{}/{}", api.group, api.version), live.openapi.as_ref()?.hash.clone()))
    };
    apis.remote.iter().filter_map(hash).collect()
}

/// The OpenAPI documents themselves, and hashes of them.
pub(crate) fn openapi_documents(apis: &Apis) -> Vec<(Arc<Api>, Fingerprint, Bytes)> {
    let document = |api: &Arc<Api>| {
        let live = api.backend.as_ref()?.live.borrow();
        let (of, text) = live.openapi.as_ref()?.document.clone()?;
        Some((api.clone(), of, text))
    };
    apis.remote.iter().filter_map(document).collect()
}

/// The server of a group version that is not built in, if another one serves it.
pub(crate) async fn find(
    tenant: &Arc<Tenant>,
    group: &str,
    version: &str,
) -> Result<Option<Arc<Api>>, Status> {
    Ok(registered(tenant).await?.find(group, version).cloned())
}

/// The same at the revision up to which the tenant's definitions are known.
pub(crate) async fn find_at(
    tenant: &Arc<Tenant>,
    group: &str,
    version: &str,
) -> Result<Option<Arc<Api>>, Status> {
    if tenant.apis_at(tenant.customs.reached()).await?.find(group, version).is_none() {
        return Ok(None);
    }
    find(tenant, group, version).await
}

/// The metrics of a tenant's `APIService`s, as kube-aggregator has them.
pub(crate) fn metrics(tenant: &Tenant) -> String {
    let registry = &tenant.api_registry;
    let mut out = String::new();
    let name = "aggregator_unavailable_apiservice";
    let _ = writeln!(out, "# HELP {name} Whether an APIService is unavailable.\n# TYPE {name} gauge");
    for api in &registry.last().all {
        let is_available = api.backend.as_ref().is_none_or(|backend| {
            backend.live.borrow().availability.as_ref().is_some_and(|found| found.is_available())
        });
        let _ = writeln!(out, "{name}{{name=\"{}\"}} {}", api.name, u8::from(!is_available));
    }
    let name = "aggregator_unavailable_apiservice_total";
    let _ = writeln!(
        out,
        "# HELP {name} How often an APIService has become unavailable, by reason.\n# TYPE {name} counter"
    );
    for ((api, reason), count) in &*registry.failures.lock() {
        let _ = writeln!(out, "{name}{{name=\"{api}\",reason=\"{reason}\"}} {count}");
    }
    out
}

/// An error of the aggregator itself: plain text, as in kube-aggregator.
fn plain(code: u16, text: &str) -> Response<Body> {
    respond::text(code, format!("{text}\n"))
}
