//! The API server and its controllers, put together.

use std::{fmt, sync::Arc};

use k1s_controllers::{ControllersOptions, TenantControllers, TenantSignal};
use k1s_env::{Env, Task};
use k1s_runtime::{BoxError, leader::InvalidOptions, manager::Companion};
use k1s_server::{ApiServer, ServerOptions, Status, TenantEvent, TenantHook, User};
use k1s_store::{Revision, Store};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::election::{self, Election};

/// What a [`ControlPlane`] can be told.
#[derive(Debug, Clone, Default)]
pub struct ControlPlaneOptions {
    /// The server.
    pub server: ServerOptions,
    /// Which controllers run. `ControllersOptions::none()` is a server alone. The root CA, if none is said, is the
    /// server's.
    pub controllers: ControllersOptions,
    /// Whether the controllers run always, or only while this control plane is the leader among those over its store.
    pub election: Election,
}

/// Why a [`ControlPlane`] does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlPlaneError {
    /// The server does not start.
    #[error(transparent)]
    Server(#[from] Status),
    /// The election cannot work.
    #[error("the election of whose controllers run: {0}")]
    Election(#[from] InvalidOptions),
}

/// An API server, and the controllers of its tenants: each tenant's are started when there is first something for them to
/// do. [`Runtime`](crate::Runtime) has one; this is for programs that bring all the rest themselves.
///
/// Of several over one store, the controllers of one run, the leader's: see [`Election`]. When they start, at first or
/// after another leader, they look for what was left undone in every tenant.
///
/// They end when this is dropped; [`stop`](Self::stop) also waits for the controllers.
pub struct ControlPlane {
    server: ApiServer,
    controllers: Arc<TenantControllers>,
    /// Ends the task.
    stop: CancellationToken,
    /// The election, or the search for what was left undone.
    task: tokio::sync::Mutex<Option<Task<()>>>,
}

impl ControlPlane {
    /// Starts a server over a store, and its controllers. `ControllersOptions::none()` is a server alone. The root CA, if
    /// the controllers are told none, is the server's. Whose controllers run, if others use the store too, is decided as
    /// [`Election::IfShared`] says.
    ///
    /// # Errors
    /// If the server does not start.
    pub async fn start(
        env: &Env,
        store: Arc<dyn Store>,
        server: ServerOptions,
        controllers: ControllersOptions,
    ) -> Result<ControlPlane, Status> {
        let options = ControlPlaneOptions { server, controllers, ..ControlPlaneOptions::default() };
        match ControlPlane::start_with(env, store, options).await {
            Ok(plane) => Ok(plane),
            Err(ControlPlaneError::Server(status)) => Err(status),
            Err(error @ ControlPlaneError::Election(_)) => Err(Status::internal(error.to_string())),
        }
    }

    /// Starts a server over a store, and its controllers.
    ///
    /// # Errors
    /// If the server does not start, or the election is not described as it must be.
    pub async fn start_with(
        env: &Env,
        store: Arc<dyn Store>,
        options: ControlPlaneOptions,
    ) -> Result<ControlPlane, ControlPlaneError> {
        let ControlPlaneOptions { mut server, mut controllers, election } = options;
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
                tell(&signal, event);
                if let Some(also) = &also {
                    also.tell(event);
                }
            }));
        }
        // What was there before anybody could ask for something: what happens from here on is told by the hook.
        let before = store.revision().await.map_err(|error| Status::internal(error.to_string()))?;
        let server = ApiServer::new(env.clone(), store, server).await?;
        let stop = CancellationToken::new();
        let task = match election {
            Some(election) => {
                let inside = server.tenant(election::TENANT).await?.as_user(User::admin());
                let client = kube::Client::new(inside, "default");
                let (server, controllers) = (server.clone(), Arc::clone(&controllers));
                let candidate =
                    election::Candidate { env: env.clone(), client, server, controllers, options: election };
                Some(env.spawn("election of the controllers", candidate.stand(stop.clone())))
            }
            None => {
                let door = server.clone();
                controllers.connect(move |tenant| open(door.clone(), tenant));
                any.then(|| {
                    let search = search(server.clone(), before, controllers.signal(), stop.clone());
                    env.spawn("search for what was left undone", search)
                })
            }
        };
        Ok(ControlPlane { server, controllers, stop, task: tokio::sync::Mutex::new(task) })
    }

    /// The server.
    #[must_use]
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// The tenants whose controllers run.
    #[must_use]
    pub fn tenants_with_controllers(&self) -> Vec<String> {
        self.controllers.running()
    }

    /// The controllers of a tenant, now and as they come and go: for the [`Connect`](k1s_runtime::Connect) of programs that
    /// bring their own. A manager that knows them counts their work when it waits until it is idle.
    #[must_use]
    pub fn companion(&self, tenant: &str) -> watch::Receiver<Companion> {
        self.controllers.companion(tenant)
    }

    /// Stops the controllers in good order, while the server still answers them. What they have not done is found again at
    /// the next start.
    ///
    /// A leader ceases to be one when they have ended, so that another can begin at once.
    pub async fn stop_controllers(&self) {
        self.stop.cancel();
        if let Some(task) = self.task.lock().await.take() {
            let _ = task.await;
        }
        self.controllers.stop().await;
    }

    /// Stops the controllers, then the server.
    pub async fn stop(&self) {
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

/// Passes on what a hook hears.
pub(crate) fn tell(signal: &TenantSignal, event: TenantEvent<'_>) {
    match event {
        TenantEvent::Needed(tenant) => signal.needed(tenant),
        TenantEvent::Gone(tenant) => signal.gone(tenant),
        _ => {}
    }
}

/// The door of a tenant, for its controllers.
async fn open(server: ApiServer, tenant: String) -> Result<Option<kube::Client>, BoxError> {
    let inside = find(&server, &tenant).await?;
    Ok(inside.map(|inside| kube::Client::new(inside, "default")))
}

/// A tenant, if it is there, as the administrator sees it.
pub(crate) async fn find(server: &ApiServer, tenant: &str) -> Result<Option<ApiServer>, BoxError> {
    match server.find_tenant(tenant).await {
        Ok(inside) => Ok(Some(inside.as_user(User::admin()))),
        Err(status) if status.code == 404 => Ok(None),
        Err(status) => Err(BoxError::from(status)),
    }
}

/// Looks for tenants in which something was left undone before this start; the default one is looked at when it is opened.
async fn search(server: ApiServer, before: Revision, signal: TenantSignal, stop: CancellationToken) {
    let found = server.find_unfinished(before, |event| tell(&signal, event));
    if let Some(Err(error)) = stop.run_until_cancelled(found).await {
        tracing::warn!(%error, "what was left undone in tenants is found when they are first used");
    }
}

impl fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlPlane")
            .field("server", &self.server)
            .field("controllers", &self.controllers)
            .finish()
    }
}
