//! Whether the server behind an `APIService` is available.

use std::{sync::Arc, time::Duration};

use super::{
    fetch::{self, FetchError, Get},
    resolve::{self, Route},
};
use crate::{
    identity::User,
    tenant::{
        Tenant,
        apis::{Api, Availability, Backend},
    },
};

/// How long a server has to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The user that asks.
const ASKER: &str = "system:kube-aggregator";

/// The user that reads discovery: one that every aggregated server lets in.
pub(super) fn asker() -> User {
    User { name: ASKER.into(), groups: vec!["system:masters".into()], ..User::default() }
}

/// Reads the group version's discovery document, which every aggregated server has.
pub(super) async fn check(tenant: &Arc<Tenant>, api: &Api, backend: &Backend) -> Availability {
    let path = format!("/apis/{}/{}", api.group, api.version);
    let user = asker();
    let get = Get { path: &path, accept: "*/*", known: "", user: &user, timeout: TIMEOUT, max_bytes: 0 };
    let fetched = fetch::get(tenant, backend, &get).await;
    let failed = |url: &str, why: String| {
        Availability::no("FailedDiscoveryCheck", format!("failing or missing response from {url}: {why}"))
    };
    let url = match &fetched {
        Err(FetchError::Unroutable(why)) => return why.clone(),
        _ => url(tenant, backend, &path).await,
    };
    match fetched {
        Ok(answer) if (200..300).contains(&answer.code) => Availability::passed(),
        Ok(answer) => failed(&url, format!("bad status from {url}: {}", answer.code)),
        Err(FetchError::TimedOut) => {
            let why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
            failed(&url, format!("Get \"{url}\": {why}"))
        }
        Err(why) => failed(&url, format!("Get \"{url}\": {why}")),
    }
}

/// The address that was asked, for messages.
async fn url(tenant: &Arc<Tenant>, backend: &Backend, path: &str) -> String {
    match resolve::route(tenant, &backend.service).await {
        // The addresses of other tenants' Services are the administrator's business.
        Ok(Route::Address { address, .. }) if resolve::is_default(tenant) => {
            format!("https://{address}{path}")
        }
        _ => format!("https://{}:{}{path}", backend.service.host(), backend.service.port),
    }
}
