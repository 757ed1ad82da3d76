//! The API server together with its controllers.

use std::sync::Arc;

use k1s_controllers::{ControllersOptions, TenantControllers, TenantSignal};
use k1s_env::{Env, Task};
use k1s_runtime::{BoxError, Client, client::ClientOptions, leader::InvalidOptions};
use k1s_server::{ApiServer, ServerOptions, Status, TenantEvent, TenantHook, User};
use k1s_store::{Revision, Store};
use tokio_util::sync::CancellationToken;

use crate::{
    election::{self, Election},
    manifests::{self, ApplyError},
};

/// The options of a [`ControlPlane`].
#[derive(Debug, Clone, Default)]
pub(crate) struct ControlPlaneOptions {
    pub(crate) server: ServerOptions,
    /// Which controllers run. `ControllersOptions::none()` runs only the server. The root CA defaults to the
    /// server's.
    pub(crate) controllers: ControllersOptions,
    /// Whether the controllers run always, or only while this control plane is the leader among those over its store.
    pub(crate) election: Election,
}

/// Why a [`ControlPlane`] could not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlPlaneError {
    #[error(transparent)]
    Server(#[from] Status),
    #[error("leader election of the control plane's controllers: {0}")]
    Election(#[from] InvalidOptions),
    #[error("the definitions of projects cannot be installed: {0}")]
    Projects(#[from] ApplyError),
}

/// An API server and the controllers of its tenants. A tenant's controllers start when there is first work for them.
///
/// Of several control planes over one store, only the leader's controllers run: see [`Election`]. A new leader looks for
/// unfinished work in every tenant.
///
/// Dropping it ends everything; [`stop_controllers`](Self::stop_controllers) also waits for the controllers.
pub(crate) struct ControlPlane {
    server: ApiServer,
    controllers: Arc<TenantControllers>,
    /// Ends `task`.
    stop: CancellationToken,
    /// The leader election, or the search for unfinished work.
    task: tokio::sync::Mutex<Option<Task<()>>>,
}

impl ControlPlane {
    /// Starts a server over a store, and its controllers.
    pub(crate) async fn start(
        env: &Env,
        store: Arc<dyn Store>,
        options: ControlPlaneOptions,
    ) -> Result<ControlPlane, ControlPlaneError> {
        let ControlPlaneOptions { mut server, mut controllers, election } = options;
        if let Some(projects) = &mut controllers.projects {
            projects.host.clone_from(&server.default_tenant);
            server.projects = true;
        }
        let projects = controllers.projects.is_some();
        if controllers.default_objects && controllers.root_ca.is_none() {
            controllers.root_ca = Some(server.root_ca.as_str().into());
        }
        let any = ControllersOptions { root_ca: None, ..controllers.clone() } != ControllersOptions::none();
        let election = election.options(&*store).filter(|_| any);
        if let Some(election) = &election {
            election.validate()?;
        }
        let controllers = Arc::new(TenantControllers::new(env, controllers));
        if any {
            let (signal, also) = (controllers.signal(), server.tenant_hook.take());
            server.tenant_hook = Some(TenantHook::new(move |event| {
                forward(&signal, event);
                if let Some(also) = &also {
                    also.tell(event);
                }
            }));
        }
        // The search below covers everything up to this revision; the tenant hook reports what comes later.
        let before = store.revision().await.map_err(|error| Status::internal(error.to_string()))?;
        let server = ApiServer::new(env.clone(), store, server).await?;
        if projects {
            if let Err(error) = install_projects(env, &server).await {
                server.shutdown();
                return Err(error);
            }
            controllers.signal().needed(server.default_tenant());
        }
        let stop = CancellationToken::new();
        let task = match election {
            Some(election) => {
                let inside = server.tenant(election::TENANT).await?.as_user(User::admin());
                let client = kube::Client::new(inside, "default");
                let (server, controllers) = (server.clone(), Arc::clone(&controllers));
                let candidate =
                    election::Candidate { env: env.clone(), client, server, controllers, options: election };
                Some(env.spawn("leader election of controllers", candidate.stand(stop.clone())))
            }
            None => {
                let connect = server.clone();
                controllers.connect(move |tenant| open(connect.clone(), tenant));
                any.then(|| {
                    let search = search(server.clone(), before, controllers.signal(), stop.clone());
                    env.spawn("search for unfinished work", search)
                })
            }
        };
        Ok(ControlPlane { server, controllers, stop, task: tokio::sync::Mutex::new(task) })
    }

    pub(crate) fn server(&self) -> &ApiServer {
        &self.server
    }

    pub(crate) fn controllers(&self) -> &Arc<TenantControllers> {
        &self.controllers
    }

    /// Stops the controllers while the server still answers them. The next start finds unfinished work again.
    ///
    /// A leader then releases its Lease, so that another control plane takes over at once.
    pub(crate) async fn stop_controllers(&self) {
        self.stop.cancel();
        if let Some(task) = self.task.lock().await.take() {
            let _ = task.await;
        }
        self.controllers.stop().await;
    }

    /// Stops the controllers, then the server.
    pub(crate) async fn stop(&self) {
        self.stop_controllers().await;
        self.server.shutdown();
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.stop.cancel();
        self.controllers.end();
        self.server.shutdown();
    }
}

/// Installs the definitions of projects in the default tenant. Definitions that are there already are updated.
async fn install_projects(env: &Env, server: &ApiServer) -> Result<(), ControlPlaneError> {
    let inside = server.tenant(server.default_tenant()).await?.as_user(User::admin());
    let options = ClientOptions { env: env.clone(), ..ClientOptions::default() };
    let client = Client::new(kube::Client::new(inside, "default"), options);
    manifests::apply(&client, k1s_controllers::projects::DEFINITIONS).await?;
    Ok(())
}

/// Forwards an event of the server's tenant hook to the controllers.
pub(crate) fn forward(signal: &TenantSignal, event: TenantEvent<'_>) {
    match event {
        TenantEvent::Needed(tenant) => signal.needed(tenant),
        TenantEvent::Gone(tenant) => signal.gone(tenant),
        _ => {}
    }
}

/// A client for a tenant's controllers; `None` if there is no such tenant.
async fn open(server: ApiServer, tenant: String) -> Result<Option<kube::Client>, BoxError> {
    let inside = find(&server, &tenant).await?;
    Ok(inside.map(|inside| kube::Client::new(inside, "default")))
}

/// A tenant, if it exists, as the administrator sees it. The default tenant's controllers see the others as well: that of
/// projects manages them.
pub(crate) async fn find(server: &ApiServer, tenant: &str) -> Result<Option<ApiServer>, BoxError> {
    match server.find_tenant(tenant).await {
        Ok(_) if tenant == server.default_tenant() => Ok(Some(server.as_user(User::admin()))),
        Ok(inside) => Ok(Some(inside.as_user(User::admin()))),
        Err(status) if status.code == 404 => Ok(None),
        Err(status) => Err(BoxError::from(status)),
    }
}

/// Looks for tenants with work left unfinished before this start. The default tenant is searched when it is opened.
async fn search(server: ApiServer, before: Revision, signal: TenantSignal, stop: CancellationToken) {
    let found = server.find_unfinished(before, |event| forward(&signal, event));
    if let Some(Err(error)) = stop.run_until_cancelled(found).await {
        tracing::warn!(%error, "could not search tenants for unfinished work; it is found when a tenant is first used");
    }
}
