//! Finds the tenant, authenticates the sender and authorizes the request.

use std::sync::Arc;

use http::HeaderMap;

use crate::{
    auth,
    authz::{self, Attributes},
    errors::Error,
    identity::User,
    projects::{self, Entrance},
    registry::{Absent, check_name},
    request::{Path, RequestInfo, Verb},
    server::ApiServer,
    tenant::{self, Tenant},
    tenants,
};

/// The tenant that a request for `/k1s/v1/tenants` names, empty for all of them; `None` for any other request. The path
/// exists outside of tenants only.
pub(super) fn managed_tenant<'a>(server: &ApiServer, info: &'a RequestInfo<'_>) -> Option<&'a str> {
    match &info.endpoint {
        Path::Other(path) if info.tenant.is_none() && server.bound_tenant().is_none() => tenants::parse(path),
        _ => None,
    }
}

/// The tenant whose projects have control planes at paths of this server, if any: a handle that is bound to another tenant
/// has none.
pub(super) fn projects_of(server: &ApiServer) -> Option<&str> {
    let options = &server.shared().options;
    let host = options.default_tenant.as_str();
    (options.projects && server.bound_tenant().is_none_or(|bound| bound.name == host)).then_some(host)
}

/// [`enter`] for the control plane of a project, by its path.
pub(super) async fn enter_project(
    server: &ApiServer,
    name: &str,
    headers: &HeaderMap,
    wanted: &Attributes<'_>,
) -> Result<(Arc<Tenant>, User), Error> {
    let admit = || projects::admit(server.registry(), server.shared(), name, Entrance::Project);
    match enter_named(server, name, headers, wanted, false).await {
        Ok(entered) => admit().await.map(|()| entered),
        // The sender may know: either there is no such project, or its control plane does not exist yet.
        Err(missing @ Error::NotFound { .. }) => admit().await.and(Err(missing)),
        Err(error) => Err(error),
    }
}

/// The tenant of a request, and its authenticated and authorized user. `name` is the tenant in its path; `stores`: whether
/// the request may create the tenant.
pub(super) async fn enter(
    server: &ApiServer,
    name: Option<&str>,
    headers: &HeaderMap,
    wanted: &Attributes<'_>,
    stores: bool,
) -> Result<(Arc<Tenant>, User), Error> {
    if let Some(tenant) = server.bound_tenant() {
        // A handle may outlive its tenant, and gives no access to others.
        if tenant.is_gone() || name.is_some_and(|name| name != tenant.name) {
            return Err(tenant::not_found(name.unwrap_or(&tenant.name)));
        }
        tenant.verify_every(tenant::VERIFY_INTERVAL);
        let user = authenticate_and_authorize(server, Some(tenant), headers, wanted).await?;
        return Ok((tenant.clone(), user));
    }
    let host = &server.shared().options.default_tenant;
    let entered = enter_named(server, name.unwrap_or(host), headers, wanted, stores).await?;
    if let Some(name) = name {
        projects::admit(server.registry(), server.shared(), name, Entrance::Cluster).await?;
    }
    Ok(entered)
}

/// [`enter`] for a tenant by its name, through a handle that is not bound to it.
async fn enter_named(
    server: &ApiServer,
    name: &str,
    headers: &HeaderMap,
    wanted: &Attributes<'_>,
    stores: bool,
) -> Result<(Arc<Tenant>, User), Error> {
    let (shared, registry) = (server.shared(), server.registry());
    if let Some(tenant) = registry.opened(name) {
        tenant.verify_every(tenant::VERIFY_INTERVAL);
        let user = authenticate_and_authorize(server, Some(&tenant), headers, wanted).await?;
        return Ok((tenant, user));
    }
    check_name(name)?;
    // A sender that could not be allowed this in any tenant is rejected before the store is read.
    let sender = match auth::bearer(headers) {
        Some(token) => auth::outside(shared, name, token).await?,
        None => Some(server.default_sender()),
    };
    if let Some(sender) = &sender
        && !auth::could_allow(&*shared.authorizer, sender, headers, wanted)
    {
        authenticate_and_authorize(server, None, headers, wanted).await?;
    }
    let authenticated = sender.is_none_or(|sender| sender.is_in("system:authenticated"));
    match registry.find(name, authenticated).await {
        Ok(tenant) => {
            let user = authenticate_and_authorize(server, Some(&tenant), headers, wanted).await?;
            return Ok((tenant, user));
        }
        Err(Error::NotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    let user = authenticate_and_authorize(server, None, headers, wanted).await?;
    let create = tenants::attributes(Verb::Create, name);
    if stores
        && shared.options.create_tenants
        && authz::check(&*shared.authorizer, None, &user, &create).await.is_ok()
    {
        let (tenant, _) = registry.make(name, Absent::CreateUnlessTerminating).await?;
        return Ok((tenant, user));
    }
    // Only users that may read tenants get a 404.
    authz::check(&*shared.authorizer, None, &user, &tenants::attributes(Verb::Get, name)).await?;
    Err(tenant::not_found(name))
}

/// The user of a request, from its token and impersonation headers, if authorized.
async fn authenticate_and_authorize(
    server: &ApiServer,
    tenant: Option<&Arc<Tenant>>,
    headers: &HeaderMap,
    wanted: &Attributes<'_>,
) -> Result<User, Error> {
    let shared = server.shared();
    let sender = match auth::bearer(headers) {
        Some(token) => {
            auth::authenticate(shared, tenant, token, None).await.map_err(auth::Refusal::status)?.0
        }
        None => server.default_sender(),
    };
    let user = auth::impersonate(&*shared.authorizer, tenant, sender, headers, wanted).await?;
    authz::check(&*shared.authorizer, tenant, &user, wanted).await?;
    Ok(user)
}
