//! The server as programs hold it: its tenants, its user, its end. `pipeline` makes it a tower Service.

use std::{fmt, sync::Arc};

use k1s_env::Env;
use k1s_object::Status;
use k1s_store::Store;
use tokio_util::sync::CancellationToken;

use crate::{
    authz,
    capacity::Capacity,
    catalog::Catalog,
    documents::Documents,
    errors::Error,
    identity::{TokenSigner, User},
    limits::ConnectionOptions,
    metrics::Metrics,
    options::ServerOptions,
    probe::Probe,
    registry::{Absent, Phase, Registry, check_name},
    tenant::{Shared, Tenant},
};

/// A Kubernetes API server over a store. Cheap to clone; clones are the same server.
///
/// Give it to `kube::Client::new(server, "default")` and nothing touches a socket; give it to [`crate::serve`] and
/// kubectl, client-go and everybody else can use it.
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
    /// The tenant that this handle is for; `None`: the path says it.
    tenant: Option<Arc<Tenant>>,
    /// Who requests without credentials are.
    user: Option<User>,
}

struct Inner {
    shared: Arc<Shared>,
    tenants: Arc<Registry>,
}

impl ApiServer {
    /// A server over this store. The default tenant is there when this returns.
    pub async fn new(env: Env, store: Arc<dyn Store>, options: ServerOptions) -> Result<ApiServer, Status> {
        let stop = CancellationToken::new();
        let default = options.default_tenant.clone();
        let capacity = Capacity::new(&options);
        let shared = Arc::new(Shared {
            capacity,
            env,
            store,
            options,
            catalog: Catalog::new(),
            metrics: Metrics::default(),
            known: crate::cache::Known::default(),
            authorizer: Arc::new(authz::Defaults),
            signer: TokenSigner::default(),
            documents: Documents::default(),
            probe: Probe::default(),
            stop,
        });
        let tenants = Arc::new(Registry::new(shared.clone()));
        tenants.make(&default, Absent::Create).await.map_err(Error::into_status)?;
        Ok(ApiServer { inner: Arc::new(Inner { shared, tenants }), tenant: None, user: None })
    }

    /// The same server, where requests without credentials are this user's: for programs in this process.
    #[must_use]
    pub fn as_user(&self, user: User) -> ApiServer {
        ApiServer { user: Some(user), ..self.clone() }
    }

    /// A handle on one tenant: paths are relative to it. The tenant comes into being if it is not there.
    pub async fn tenant(&self, name: &str) -> Result<ApiServer, Status> {
        let made = self.inner.tenants.make(name, Absent::Create).await;
        let (tenant, _) = made.map_err(Error::into_status)?;
        Ok(ApiServer { tenant: Some(tenant), ..self.clone() })
    }

    /// A handle on a tenant that is there.
    ///
    /// # Errors
    /// 404 if it is not.
    pub async fn find_tenant(&self, name: &str) -> Result<ApiServer, Status> {
        let tenant = match self.inner.tenants.verified(name).await {
            Some(tenant) => tenant,
            None => self.inner.tenants.find(name, true).await.map_err(Error::into_status)?,
        };
        Ok(ApiServer { tenant: Some(tenant), ..self.clone() })
    }

    /// Makes a tenant; it is no error if it is there.
    pub async fn create_tenant(&self, name: &str) -> Result<(), Status> {
        let made = self.inner.tenants.make(name, Absent::Create).await;
        made.map(|_| ()).map_err(Error::into_status)
    }

    /// Deletes a tenant and everything in it; it is no error if it is not there. Its watches end, and no write that is under
    /// way leaves anything behind, in this process or another one over the same store.
    pub async fn delete_tenant(&self, name: &str) -> Result<(), Status> {
        check_name(name)?;
        self.inner.tenants.delete(name).await.map(|_| ()).map_err(Error::into_status)
    }

    /// The tenants in the store that can be used, whoever made them.
    ///
    /// # Errors
    /// The store's.
    pub async fn stored_tenants(&self) -> Result<Vec<String>, Status> {
        let listed = self.inner.tenants.list(None, usize::MAX).await;
        let (found, _, _) = listed.map_err(Error::into_status)?;
        let active = found.into_iter().filter(|tenant| tenant.mark.phase == Phase::Active);
        let mut names: Vec<String> = active.map(|tenant| tenant.name).collect();
        names.sort();
        Ok(names)
    }

    /// The tenants that were used in this process; [`ApiServer::stored_tenants`] are all.
    pub fn tenants(&self) -> Vec<String> {
        self.inner.tenants.names()
    }

    /// Ends all watches and tasks. Requests under way go on to their end.
    pub fn shutdown(&self) {
        self.inner.shared.stop.cancel();
    }

    /// Fires when [`ApiServer::shutdown`] was called.
    pub(crate) fn stopped(&self) -> &CancellationToken {
        &self.inner.shared.stop
    }

    /// What a listener does about its connections.
    pub(crate) fn connection_options(&self) -> &ConnectionOptions {
        &self.inner.shared.options.connections
    }

    /// What everything is kept in.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.inner.shared.store
    }

    /// The server's environment.
    pub(crate) fn env(&self) -> &Env {
        &self.inner.shared.env
    }

    /// The tenant that this handle is for, if it is for one alone.
    pub(crate) fn bound_tenant(&self) -> Option<&Arc<Tenant>> {
        self.tenant.as_ref()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.inner.tenants
    }

    /// The user of a request without credentials.
    pub(crate) fn default_sender(&self) -> User {
        let known = self.user.clone().or_else(|| self.inner.shared.options.default_user.clone());
        known.unwrap_or_else(User::anonymous)
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
