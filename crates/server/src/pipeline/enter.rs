//! Finds the tenant, authenticates the sender and authorizes the request.

use std::sync::Arc;

use http::HeaderMap;
use k1s_object::Status;
use k1s_store::Revision;

use crate::{
    audit::{About, Trail},
    auth,
    authz::{self, Attributes, Decision},
    bootstrap,
    errors::Error,
    identity::{Peer, User},
    projects::{self, Entrance},
    registry::{Absent, check_name},
    request::{self, Path, RequestInfo, Verb},
    server::ApiServer,
    tenant::{self, Tenant},
    tenants,
};

/// What a sender is known by.
#[derive(Clone, Copy)]
pub(super) struct Sent<'a> {
    pub(super) headers: &'a HeaderMap,
    /// The path in the tenant.
    pub(super) path: &'a str,
    /// The client of the connection, by its certificate.
    pub(super) peer: Option<&'a Peer>,
    pub(super) audit: Option<Audited<'a>>,
}

/// A request that may go on.
pub(super) struct Entered {
    pub(super) tenant: Arc<Tenant>,
    pub(super) user: User,
    /// The store's revision, if it was read for the decision.
    pub(super) newest: Option<Revision>,
}

/// The same, without its tenant.
struct Admitted {
    user: User,
    newest: Option<Revision>,
}

impl Admitted {
    fn into(self, tenant: Arc<Tenant>) -> Entered {
        Entered { tenant, user: self.user, newest: self.newest }
    }
}

/// The trail of a request that may be recorded.
#[derive(Clone, Copy)]
pub(super) struct Audited<'a> {
    pub(super) trail: &'a Trail,
    pub(super) about: About<'a>,
}

/// What is recorded of a request beside its attributes.
pub(super) fn about<'a>(server: &'a ApiServer, info: &'a RequestInfo<'_>) -> About<'a> {
    let version = match &info.endpoint {
        Path::Resource(path) => &*path.version,
        _ if managed_tenant(server, info).is_some() => "v1",
        _ => "",
    };
    let tenant = info.tenant.or_else(|| server.bound_tenant().map(|bound| &*bound.name));
    let tenant = tenant.filter(|name| *name != server.shared().options.default_tenant);
    About { version, is_long: info.is_long_running(), tenant }
}

impl Sent<'_> {
    /// The same in a request to this tenant: the certificates of other tenants are not valid there.
    fn within(self, tenant: &str) -> Self {
        match self.peer {
            Some(Peer { tenant: Some(own), .. }) if **own != *tenant => {
                Sent { peer: Some(&Peer::REFUSED), ..self }
            }
            _ => self,
        }
    }

    /// The user that the connection stands for, which counts before any token: the one that a front proxy names, or that of the
    /// client's certificate.
    pub(super) fn connected(&self, server: &ApiServer) -> Option<User> {
        let peer = self.peer?;
        let now = crate::time::now(server.env()).as_second();
        let forwarded =
            peer.proxy.at(now).and_then(|()| server.shared().authenticators.headers.user(self.headers));
        forwarded.map(User::authenticated).or_else(|| peer.user.at(now).cloned())
    }

    /// The user of a request without a token. 401 if there is a certificate, which then is not valid.
    fn nobody(&self, server: &ApiServer) -> Result<User, Status> {
        let now = || crate::time::now(server.env()).as_second();
        match self.peer {
            Some(peer) if peer.is_refused(now()) => Err(Status::unauthorized()),
            _ => server.default_sender(self.path),
        }
    }
}

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

/// The project that a client means by the server's name: in `:authority`, or in the header `Host`.
pub(super) fn project_of_host(parts: &http::request::Parts) -> Option<String> {
    let host = match parts.uri.authority() {
        Some(authority) => authority.as_str(),
        None => parts.headers.get(http::header::HOST)?.to_str().ok()?,
    };
    request::project_of_host(host).map(str::to_owned)
}

/// [`enter`] for the control plane of a project, by its path or host.
pub(super) async fn enter_project(
    server: &ApiServer,
    name: &str,
    sent: &Sent<'_>,
    wanted: &Attributes<'_>,
) -> Result<Entered, Error> {
    let admit = || Box::pin(projects::admit(server.registry(), server.shared(), name, Entrance::Project));
    match enter_named(server, name, sent, wanted, false).await {
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
    sent: &Sent<'_>,
    wanted: &Attributes<'_>,
    stores: bool,
) -> Result<Entered, Error> {
    if let Some(tenant) = server.bound_tenant() {
        // A handle may outlive its tenant, and gives no access to others.
        if tenant.is_gone() || name.is_some_and(|name| name != tenant.name) {
            return Err(tenant::not_found(name.unwrap_or(&tenant.name)));
        }
        tenant.verify_every(tenant::VERIFY_INTERVAL);
        let sent = &sent.within(&tenant.name);
        let admitted = authenticate_and_authorize(server, Some(tenant), sent, wanted).await?;
        return Ok(admitted.into(tenant.clone()));
    }
    let host = &server.shared().options.default_tenant;
    let entered = enter_named(server, name.unwrap_or(host), sent, wanted, stores).await?;
    if let Some(name) = name {
        Box::pin(projects::admit(server.registry(), server.shared(), name, Entrance::Cluster)).await?;
    }
    Ok(entered)
}

/// [`enter`] for a tenant by its name, through a handle that is not bound to it.
async fn enter_named(
    server: &ApiServer,
    name: &str,
    sent: &Sent<'_>,
    wanted: &Attributes<'_>,
    stores: bool,
) -> Result<Entered, Error> {
    let sent = &sent.within(name);
    if let Some(tenant) = server.registry().opened(name) {
        tenant.verify_every(tenant::VERIFY_INTERVAL);
        let admitted = authenticate_and_authorize(server, Some(&tenant), sent, wanted).await?;
        return Ok(admitted.into(tenant));
    }
    Box::pin(enter_unopened(server, name, sent, wanted, stores)).await
}

/// The same for a tenant that is not open in this process.
async fn enter_unopened(
    server: &ApiServer,
    name: &str,
    sent: &Sent<'_>,
    wanted: &Attributes<'_>,
    stores: bool,
) -> Result<Entered, Error> {
    let (shared, registry) = (server.shared(), server.registry());
    check_name(name)?;
    // A sender that could not be allowed this in any tenant is rejected before the store is read.
    let sender = match sent.connected(server) {
        Some(user) => Some(user),
        None => match auth::bearer(sent.headers) {
            Some(token) => auth::outside(shared, name, token).await?,
            None => Some(sent.nobody(server)?),
        },
    };
    if let Some(sender) = &sender
        && !auth::could_allow(&*shared.authorizer, sender, sent.headers, wanted)
    {
        authenticate_and_authorize(server, None, sent, wanted).await?;
    }
    let authenticated = sender.is_none_or(|sender| sender.is_in("system:authenticated"));
    match registry.find(name, authenticated).await {
        Ok(tenant) => {
            let admitted = authenticate_and_authorize(server, Some(&tenant), sent, wanted).await?;
            return Ok(admitted.into(tenant));
        }
        Err(Error::NotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    let admitted = authenticate_and_authorize(server, None, sent, wanted).await?;
    let create = tenants::attributes(Verb::Create, name);
    if stores
        && shared.options.create_tenants
        && authz::check(&*shared.authorizer, None, &admitted.user, &create).await.is_ok()
    {
        let (tenant, _) = registry.make(name, Absent::CreateUnlessTerminating).await?;
        return Ok(admitted.into(tenant));
    }
    // Only users that may read tenants get a 404.
    authz::check(&*shared.authorizer, None, &admitted.user, &tenants::attributes(Verb::Get, name)).await?;
    Err(tenant::not_found(name))
}

/// The user of a request, from its token and impersonation headers, if authorized.
async fn authenticate_and_authorize(
    server: &ApiServer,
    tenant: Option<&Arc<Tenant>>,
    sent: &Sent<'_>,
    wanted: &Attributes<'_>,
) -> Result<Admitted, Error> {
    let shared = server.shared();
    let sender = match sent.connected(server) {
        Some(user) => user,
        None => match auth::bearer(sent.headers) {
            Some(token) => {
                auth::authenticate(shared, tenant, token, None).await.map_err(auth::Refusal::status)?.0
            }
            None => sent.nobody(server)?,
        },
    };
    if let Some(Audited { trail, about }) = &sent.audit {
        trail.begin(&sender, sent.headers, wanted, about).await?;
    }
    let impersonates = auth::impersonates(sent.headers);
    // Tenants belong to nobody but the server's administrators, whatever the roles in the default tenant say.
    if tenants::are_managed(wanted) && !sender.is_admin() {
        if let Some(audit) = &sent.audit {
            audit.trail.decided(&Decision::plain(false));
        }
        return Err(authz::forbidden(&sender, wanted, "").into());
    }
    // Whoever is not authenticated does not cause writes.
    if let Some(tenant) = tenant
        && (impersonates || !sender.is_admin())
        && sender.is_in("system:authenticated")
    {
        bootstrap::ensure_policy(tenant).await?;
    }
    let user = match impersonates {
        true => {
            let (user, mode) =
                Box::pin(auth::impersonate(&*shared.authorizer, tenant, sender, sent.headers, wanted))
                    .await?;
            if let (Some(audit), Some(mode)) = (&sent.audit, mode) {
                audit.trail.impersonated(&user, &mode.constraint());
            }
            user
        }
        false => sender,
    };
    // An event says why the request is allowed; nobody else asks for it.
    let allowed = match &sent.audit {
        None => shared.authorizer.allows_now(tenant, &user, wanted).then(|| Decision::plain(true)),
        Some(_) => shared.authorizer.decide_now(tenant, &user, wanted),
    };
    let decision = match allowed {
        Some(allowed) => allowed,
        None => shared.authorizer.authorize(tenant, &user, wanted).await,
    };
    if let Some(audit) = &sent.audit {
        audit.trail.decided(&decision);
    }
    let newest = decision.newest;
    authz::settle(decision, &user, wanted)?;
    Ok(Admitted { user, newest })
}
