//! The API server and its controllers, put together.

use std::{fmt, sync::Arc};

use k1s_controllers::{ControllersOptions, TenantControllers};
use k1s_env::Env;
use k1s_runtime::{BoxError, manager::Companion};
use k1s_server::{ApiServer, ServerOptions, Status, TenantEvent, TenantHook, User};
use k1s_store::Store;
use tokio::sync::watch;

/// An API server, and the controllers of its tenants: each tenant's are started when there is first something for them to
/// do. [`Runtime`](crate::Runtime) has one; this is for programs that bring all the rest themselves.
///
/// They end when this is dropped; [`stop`](Self::stop) also waits for the controllers.
pub struct ControlPlane {
    server: ApiServer,
    controllers: TenantControllers,
}

impl ControlPlane {
    /// Starts a server over a store, and its controllers. `ControllersOptions::none()` is a server alone. The root CA, if
    /// the controllers are told none, is the server's.
    ///
    /// # Errors
    /// If the server does not start.
    pub async fn start(
        env: &Env,
        store: Arc<dyn Store>,
        mut server: ServerOptions,
        mut controllers: ControllersOptions,
    ) -> Result<ControlPlane, Status> {
        if controllers.default_objects && controllers.root_ca.is_none() {
            controllers.root_ca = Some(server.root_ca.as_str().into());
        }
        let any = ControllersOptions { root_ca: None, ..controllers.clone() } != ControllersOptions::none();
        let controllers = TenantControllers::new(env, controllers);
        if any {
            let (signal, also) = (controllers.signal(), server.tenant_hook.take());
            server.tenant_hook = Some(TenantHook::new(move |event| {
                match event {
                    TenantEvent::Needed(tenant) => signal.needed(tenant),
                    TenantEvent::Gone(tenant) => signal.gone(tenant),
                    _ => {}
                }
                if let Some(also) = &also {
                    also.tell(event);
                }
            }));
        }
        let server = ApiServer::new(env.clone(), store, server).await?;
        let door = server.clone();
        controllers.connect(move |tenant| {
            let door = door.clone();
            async move {
                match door.find_tenant(&tenant).await {
                    Ok(inside) => Ok(Some(kube::Client::new(inside.as_user(User::admin()), "default"))),
                    Err(status) if status.code == 404 => Ok(None),
                    Err(status) => Err(BoxError::from(status)),
                }
            }
        });
        Ok(ControlPlane { server, controllers })
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
    pub async fn stop_controllers(&self) {
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
        self.server.shutdown();
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
