//! The OpenAPI documents of aggregated API servers, read in the background after their discovery documents.
//!
//! A server that cannot be asked is described as before: otherwise its kinds would come and go in the documents of this server.

use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::Value;
use sha2::Digest as _;

use super::{
    fetch::{self, FetchError, Fetched, Get},
    proxy,
};
use crate::{
    identity::User,
    tenant::{
        Tenant,
        apis::{Api, Backend, OpenApi},
    },
};

/// Maximum size of a server's list of OpenAPI documents.
const MAX_INDEX_BYTES: usize = 1 << 20;
/// Maximum size of an OpenAPI document, and of those of all servers of a tenant.
const MAX_DOCUMENT_BYTES: usize = 4 << 20;
const MAX_BYTES_OF_ALL: usize = 16 << 20;

/// Reads the OpenAPI document of a group version, if the server has one, and makes it known.
pub(super) async fn read(tenant: &Arc<Tenant>, api: &Api, backend: &Backend) {
    let known = backend.live.borrow().openapi.clone();
    let found = match newest(tenant, api, backend, known.clone()).await {
        Ok(found) => found,
        Err(why) => {
            let (tenant, api) = (&tenant.name, &api.name);
            tracing::debug!(tenant, api, %why, "the OpenAPI documents of an aggregated API cannot be read");
            known
        }
    };
    backend.live.send_modify(|live| {
        live.openapi = found;
        live.is_described = true;
    });
}

/// The document as its server lists it now; `None`: it has none.
async fn newest(
    tenant: &Arc<Tenant>,
    api: &Api,
    backend: &Backend,
    known: Option<OpenApi>,
) -> Result<Option<OpenApi>, String> {
    let answer = get(tenant, backend, "/openapi/v3", MAX_INDEX_BYTES).await.map_err(|why| why.to_string())?;
    let index: Value = match answer.code {
        200 => serde_json::from_slice(&answer.body).map_err(|why| why.to_string())?,
        404 => return Ok(None),
        code => return Err(format!("/openapi/v3: {code}")),
    };
    let paths = index["paths"].as_object().ok_or("/openapi/v3 lists no paths")?;
    let Some(listed) = paths.get(&format!("apis/{}/{}", api.group, api.version)) else { return Ok(None) };
    let hash = hash_of(listed["serverRelativeURL"].as_str().unwrap_or_default());
    let mut found = OpenApi { hash, ..known.unwrap_or_default() };
    if found.read == found.hash && !found.hash.is_empty() {
        return Ok(Some(found));
    }
    let path = format!("/openapi/v3/apis/{}/{}", api.group, api.version);
    let problem = match get(tenant, backend, &path, MAX_DOCUMENT_BYTES).await {
        Ok(Fetched { code: 200, body, .. }) => {
            let fits = bytes_of_others(tenant, api) + body.len() <= MAX_BYTES_OF_ALL;
            let is_json = serde_json::from_slice::<IgnoredAny>(&body).is_ok();
            found.document = (fits && is_json).then(|| (sha2::Sha256::digest(&body).into(), body));
            // Others may become smaller.
            found.read = if fits { found.hash.clone() } else { String::new() };
            match (fits, is_json) {
                (true, true) => return Ok(Some(found)),
                (false, _) => "the documents of all servers are too large".to_owned(),
                (true, false) => "it is no JSON".to_owned(),
            }
        }
        Err(why @ FetchError::TooLarge(_)) => {
            found.document = None;
            found.read.clone_from(&found.hash);
            why.to_string()
        }
        // The last document stays.
        Ok(Fetched { code, .. }) => format!("{path}: {code}"),
        Err(why) => why.to_string(),
    };
    let (tenant, api) = (&tenant.name, &api.name);
    tracing::debug!(tenant, api, problem, "its newest OpenAPI document is not part of version 2");
    Ok(Some(found))
}

async fn get(
    tenant: &Arc<Tenant>,
    backend: &Backend,
    path: &str,
    max_bytes: usize,
) -> Result<Fetched, FetchError> {
    let user = User { name: "system:aggregator".into(), ..User::default() };
    let timeout = proxy::DISCOVERY_TIMEOUT;
    let accept = "application/json, */*";
    fetch::get(tenant, backend, &Get { path, accept, known: "", user: &user, timeout, max_bytes }).await
}

/// The hash in the URL of a document; empty if there is none.
fn hash_of(url: &str) -> String {
    let hash = url.split_once("hash=").map_or("", |(_, hash)| hash.split('&').next().unwrap_or_default());
    let is_plain = hash.len() <= 128 && hash.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_plain { hash.to_owned() } else { String::new() }
}

/// The size of the OpenAPI documents of the tenant's other aggregated APIs.
fn bytes_of_others(tenant: &Tenant, api: &Api) -> usize {
    let apis = tenant.api_registry.last();
    let others = apis.remote.iter().filter(|other| other.name != api.name);
    let size = |other: &Arc<Api>| {
        let live = other.backend.as_ref()?.live.borrow();
        Some(live.openapi.as_ref()?.document.as_ref()?.1.len())
    };
    others.filter_map(size).sum()
}
