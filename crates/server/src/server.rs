//! The public handle of a server. `pipeline` implements its tower Service.

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;
use k1s_env::Env;
use k1s_object::Status;
use k1s_store::Store;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::{
    audit::Auditor,
    auth,
    authz::Authorizer,
    capacity::Capacity,
    catalog::Catalog,
    converted::Memory,
    documents::Documents,
    errors::Error,
    identity::{Authenticators, TokenSigner, User},
    limits::ConnectionOptions,
    metrics::Metrics,
    options::ServerOptions,
    probe::Probe,
    registry::{Absent, Found, Phase, Registry, check_name},
    reload,
    services::Forwarder,
    tenant::{Shared, Tenant},
    webhook::Caller,
};

/// A Kubernetes API server over a store. Cheap to clone; clones are the same server.
///
/// Pass it to `kube::Client::new(server, "default")` for a client in the same process without a socket, or to
/// [`crate::serve`] for kubectl, client-go and all other clients.
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
    /// The tenant that this handle is bound to; `None`: the path selects it.
    tenant: Option<Arc<Tenant>>,
    /// The user of requests without credentials.
    user: Option<User>,
}

struct Inner {
    shared: Arc<Shared>,
    tenants: Arc<Registry>,
}

impl ApiServer {
    /// A server over this store. Creates the default tenant if it does not exist.
    ///
    /// # Errors
    /// Those of the store, and of an audit log that cannot be opened.
    pub async fn new(env: Env, store: Arc<dyn Store>, options: ServerOptions) -> Result<ApiServer, Status> {
        let audit = Auditor::start(&env, &options.audit).map_err(Status::internal)?;
        let shared = Self::shared_parts(env, store, options, audit)?;
        let tenants = Arc::new(Registry::new(shared.clone()));
        let server = ApiServer { inner: Arc::new(Inner { shared, tenants }), tenant: None, user: None };
        server.make_tenant(&server.inner.shared.options.default_tenant).await?;
        reload::follow(&server.inner.shared);
        Ok(server)
    }

    fn shared_parts(
        env: Env,
        store: Arc<dyn Store>,
        mut options: ServerOptions,
        audit: Option<Arc<Auditor>>,
    ) -> Result<Arc<Shared>, Status> {
        options.tokens = std::mem::take(&mut options.tokens).salted(&env);
        let stop = CancellationToken::new();
        let capacity = Capacity::new(&env, &options);
        let caller = Caller::new(&env, &options.services, &options.default_tenant);
        let forwarder = Forwarder::new(&env, &options.aggregation);
        let converted = Memory::new(options.limits.max_converted_bytes);
        let authorizer: Arc<dyn Authorizer<Arc<Tenant>>> =
            Arc::new(auth::Chain::new(&options.authorization.authorizers).map_err(Status::internal)?);
        let authenticators =
            Authenticators::new(&env, &options.authentication, &stop).map_err(Status::internal)?;
        let accounts = &options.authentication.service_accounts;
        let signer = TokenSigner::new(accounts.signing_key.clone(), &accounts.keys);
        Ok(Arc::new(Shared {
            capacity,
            converted,
            caller,
            forwarder,
            env,
            store,
            options,
            catalog: Catalog::new(),
            metrics: Metrics::default(),
            audit,
            known: crate::cache::Known::default(),
            authorizer,
            authenticators,
            signer,
            documents: Documents::default(),
            probe: Probe::default(),
            project_watches: crate::closing::Watches::default(),
            stop,
        }))
    }

    /// A handle to the same server whose requests without credentials are by this user: for clients in this process.
    #[must_use]
    pub fn as_user(&self, user: User) -> ApiServer {
        ApiServer { user: Some(user), ..self.clone() }
    }

    /// A handle bound to one tenant: paths are relative to it. Creates the tenant if it does not exist.
    pub async fn tenant(&self, name: &str) -> Result<ApiServer, Status> {
        let tenant = self.make_tenant(name).await?;
        Ok(ApiServer { tenant: Some(tenant), ..self.clone() })
    }

    /// A handle bound to an existing tenant.
    ///
    /// # Errors
    /// 404 if it does not exist.
    pub async fn find_tenant(&self, name: &str) -> Result<ApiServer, Status> {
        let tenant = self.look_up_tenant(name).await?;
        Ok(ApiServer { tenant: Some(tenant), ..self.clone() })
    }

    /// Creates a tenant; it is no error if it exists.
    pub async fn create_tenant(&self, name: &str) -> Result<(), Status> {
        self.make_tenant(name).await.map(drop)
    }

    /// Deletes a tenant and everything in it; it is no error if it does not exist. Its watches end, and no write in flight
    /// leaves anything behind, in this process or another one over the same store.
    pub async fn delete_tenant(&self, name: &str) -> Result<(), Status> {
        self.remove_tenant(name).await
    }

    /// The active tenants in the store, including those created by other servers.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn stored_tenants(&self) -> Result<Vec<String>, Status> {
        let found = self.list_tenants().await?;
        let active = found.into_iter().filter(|tenant| tenant.mark.phase == Phase::Active);
        let mut names: Vec<String> = active.map(|tenant| tenant.name).collect();
        names.sort();
        Ok(names)
    }

    // Boxed behind functions that are not inlined: the body of an async function is compiled again in every crate that awaits
    // it, and with these bodies comes the whole server.

    #[inline(never)]
    fn make_tenant<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Tenant>, Status>> {
        Box::pin(async move {
            let made = self.inner.tenants.make(name, Absent::Create).await;
            made.map(|(tenant, _)| tenant).map_err(Error::into_status)
        })
    }

    #[inline(never)]
    fn look_up_tenant<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Tenant>, Status>> {
        Box::pin(async move {
            match self.inner.tenants.verified(name).await {
                Some(tenant) => Ok(tenant),
                None => self.inner.tenants.find(name, true).await.map_err(Error::into_status),
            }
        })
    }

    #[inline(never)]
    fn remove_tenant<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            check_name(name)?;
            self.inner.tenants.delete(name, None).await.map(drop).map_err(Error::into_status)
        })
    }

    #[inline(never)]
    fn list_tenants(&self) -> BoxFuture<'_, Result<Vec<Found>, Status>> {
        Box::pin(async move {
            let listed = self.inner.tenants.list(None, usize::MAX).await;
            listed.map(|(found, _, _)| found).map_err(Error::into_status)
        })
    }

    /// The names of tenants that this server creates and deletes from now on. It tells nothing of other servers over the same
    /// store.
    #[must_use]
    pub fn tenant_changes(&self) -> broadcast::Receiver<Arc<str>> {
        self.inner.tenants.changes()
    }

    /// Whether other processes may use the same store.
    #[must_use]
    pub fn has_shared_store(&self) -> bool {
        self.inner.shared.store.is_shared()
    }

    /// The tenants that are open in this process; [`ApiServer::stored_tenants`] returns all.
    pub fn tenants(&self) -> Vec<String> {
        self.inner.tenants.names()
    }

    /// The tenant that paths without `/clusters/{name}` belong to.
    pub fn default_tenant(&self) -> &str {
        &self.inner.shared.options.default_tenant
    }

    /// Ends all watches and tasks. Requests in flight are completed.
    pub fn shutdown(&self) {
        self.inner.shared.stop.cancel();
    }

    /// Writes out the audit events of all requests so far, and ends auditing. Call it when no more requests come, after
    /// [`ApiServer::shutdown`]: events of later requests are lost.
    pub async fn close_audit(&self) {
        if let Some(auditor) = &self.inner.shared.audit {
            auditor.close().await;
        }
    }

    /// Cancelled by [`ApiServer::shutdown`].
    pub(crate) fn stopped(&self) -> &CancellationToken {
        &self.inner.shared.stop
    }

    /// The limits on the connections of a listener.
    pub(crate) fn connection_options(&self) -> &ConnectionOptions {
        &self.inner.shared.options.connections
    }

    /// The store.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.inner.shared.store
    }

    /// The server's environment.
    pub(crate) fn env(&self) -> &Env {
        &self.inner.shared.env
    }

    /// The tenant that this handle is bound to, if any.
    pub(crate) fn bound_tenant(&self) -> Option<&Arc<Tenant>> {
        self.tenant.as_ref()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.inner.tenants
    }

    /// The user of a request without credentials for a path.
    ///
    /// # Errors
    /// 401 if anonymous requests are not allowed there.
    pub(crate) fn default_sender(&self, path: &str) -> Result<User, Status> {
        let shared = &self.inner.shared;
        match self.user.as_ref().or(shared.options.default_user.as_ref()) {
            Some(user) => Ok(user.clone()),
            None if shared.authenticators.anonymous.allows(path) => Ok(User::anonymous()),
            None => Err(Status::unauthorized()),
        }
    }
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer")
            .field("tenant", &self.tenant.as_ref().map(|tenant| &tenant.name))
            .field("tenants", &self.tenants())
            .finish_non_exhaustive()
    }
}
