//! The embedded control plane: store, server, endpoints and clients, started and stopped together.

mod apis;
mod builder;
mod door;
#[cfg(feature = "encryption")]
mod encryption;
mod error;
#[cfg(feature = "server-tls")]
mod listen;
mod shared;
mod store;
#[cfg(feature = "webhook")]
mod webhooks;

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use k1s_controllers::TenantControllers;
use k1s_env::{Component, Env, Task, WorkTracker};
use k1s_runtime::{
    Client, Connect,
    client::{ApplyOptions, ClientOptions},
    manager::Companion,
};
use k1s_server::{ApiServer, Status, User};
use k1s_store::Store;
use kube::CustomResourceExt;
use tokio::sync::watch;

pub(crate) use self::door::{Door, unavailable};
#[cfg(feature = "server-tls")]
pub use self::listen::{
    KnownCertificate, NewUser, Pki, folder_kubeconfig, issue_kubeconfig, write_kubeconfig,
};
pub use self::{
    builder::RuntimeBuilder,
    error::{StartError, StopError},
};
use crate::{
    control_plane::ControlPlane,
    manifests::{self, Applied, ApplyError},
};

/// A control plane in this process.
///
/// It has a store (memory, a folder, etcd), the API server on it, and a client that reaches the server
/// without a socket. With `RuntimeBuilder::listen`, kubectl and other clients can use it, too.
/// Several runtimes in one process share nothing.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path().join("data");
/// use k1s::Runtime;
///
/// let runtime = Runtime::builder().disk(&folder).tenant("controller-app").start().await?;
/// let client = runtime.client(); // an ordinary kube::Client
/// // … controllers: Manager::new(&runtime, ManagerOptions::default()) …
/// runtime.stop().await?;
/// # Ok(())
/// # }
/// ```
///
/// Stop managers first, then the runtime. A runtime that is dropped without [`stop`](Self::stop) also ends,
/// but in the background: acknowledged writes are kept, requests in flight may not be answered.
pub struct Runtime {
    env: Env,
    work: WorkTracker,
    requests: Component,
    server: ApiServer,
    client: kube::Client,
    controllers: Arc<TenantControllers>,
    companion: watch::Receiver<Companion>,
    #[cfg(feature = "server-tls")]
    endpoint: Option<listen::Endpoint>,
    tenant: String,
    /// The webhooks and aggregated APIs that the server calls without a socket.
    services: k1s_server::LocalServices,
    patience: Duration,
    /// `None` when stopped.
    parts: tokio::sync::Mutex<Option<Parts>>,
}

/// The parts of a runtime, in the order in which they are stopped.
struct Parts {
    plane: ControlPlane,
    serving: Option<Task<std::io::Result<()>>>,
    /// Renews the certificate.
    renewing: Option<Task<()>>,
    store: Arc<dyn Store>,
    /// Counts the tasks of all parts.
    tasks: Env,
}

impl Runtime {
    /// Starts to configure a runtime: in memory, for the tenant `default`, without a socket.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// A client of the runtime's tenant with full access. Its requests do not use a socket. Clones are cheap.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// A client of another tenant of the same store, which is created if needed.
    ///
    /// # Errors
    /// If the tenant's name is invalid, or the store fails.
    pub async fn tenant_client(&self, tenant: &str) -> Result<kube::Client, Status> {
        let server = self.server.tenant(tenant).await?.as_user(User::admin());
        Ok(kube::Client::new(Door::new(server, self.requests.clone()), "default"))
    }

    /// The tenant that [`client`](Self::client) and the kubeconfig are for.
    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Clock, tasks and randomness.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The work in flight: requests of its clients, and work of its managers.
    #[must_use]
    pub fn work(&self) -> &WorkTracker {
        &self.work
    }

    pub(crate) fn requests(&self) -> &Component {
        &self.requests
    }

    pub(crate) fn controllers(&self) -> &Arc<TenantControllers> {
        &self.controllers
    }

    /// The API server.
    #[must_use]
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// The tenants whose controllers run: those with work for garbage collection, namespace deletion and so on.
    #[must_use]
    pub fn tenants_with_controllers(&self) -> Vec<String> {
        self.controllers.running()
    }

    /// The status of the control plane's controllers of a tenant: for the [`Connect`] of a program with its
    /// own client. A manager that has it waits for their work, too, when it runs until idle.
    #[must_use]
    pub fn companion(&self, tenant: &str) -> watch::Receiver<Companion> {
        self.controllers.companion(tenant)
    }

    /// Applies every object of a YAML or JSON text, and takes their fields from other managers; see [`manifests::apply`].
    ///
    /// # Errors
    /// Of the first document that cannot be parsed or applied.
    pub async fn apply(&self, text: &str) -> Result<Vec<Applied>, ApplyError> {
        manifests::apply(&self.plain_client(), text).await
    }

    /// [`apply`](Runtime::apply) as another field manager, as a dry run, or not forced; see [`manifests::apply_with`].
    ///
    /// # Errors
    /// As there.
    pub async fn apply_with(
        &self,
        text: &str,
        options: impl Into<ApplyOptions>,
    ) -> Result<Vec<Applied>, ApplyError> {
        manifests::apply_with(&self.plain_client(), text, options).await
    }

    /// Installs the definition of a custom resource and waits until the server serves it; see [`manifests::install`].
    ///
    /// # Errors
    /// If the definition is rejected.
    pub async fn install<K: CustomResourceExt>(&self) -> Result<(), ApplyError> {
        manifests::install::<K>(&self.plain_client()).await
    }

    fn plain_client(&self) -> Client {
        Client::new(self.client(), ClientOptions { env: self.env.clone(), ..ClientOptions::default() })
    }

    /// Stops: rejects new requests of its clients, waits for those in flight, ends watches and connections,
    /// and closes the store last. Acknowledged writes are kept, and no task of the runtime remains. A second
    /// call does nothing.
    ///
    /// # Errors
    /// If requests were not answered in time, or tasks have not ended; everything else is stopped anyway. If
    /// the store could not be closed.
    pub async fn stop(&self) -> Result<(), StopError> {
        self.end().await
    }

    /// Boxed, as [`RuntimeBuilder::start`].
    #[inline(never)]
    fn end(&self) -> BoxFuture<'_, Result<(), StopError>> {
        Box::pin(self.stop_parts())
    }

    async fn stop_parts(&self) -> Result<(), StopError> {
        let mut parts = self.parts.lock().await;
        let Some(Parts { plane, serving, renewing, store, tasks }) = parts.take() else { return Ok(()) };
        if let Some(renewing) = renewing {
            renewing.abort();
        }
        #[cfg(feature = "server-tls")]
        self.withdraw();
        plane.stop_controllers().await;
        self.requests.stop_accepting();
        let answered = self.requests.wait_idle(self.patience).await;
        self.server.shutdown();
        let served = match serving {
            Some(serving) => serving.await,
            None => Ok(Ok(())),
        };
        self.server.close_audit().await;
        let closed = store.close().await;
        drop((plane, store));
        let ended = self.env.timeout(self.patience, tasks.tasks_ended()).await;
        closed?;
        answered?;
        served
            .map_err(|error| StopError::Listener(error.to_string()))?
            .map_err(|error| StopError::Listener(error.to_string()))?;
        ended.map_err(|_| StopError::Tasks(tasks.tasks().iter().map(|task| task.name.to_string()).collect()))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let Some(Parts { plane, serving, renewing, store, .. }) = self.parts.get_mut().take() else { return };
        if let Some(renewing) = renewing {
            renewing.abort();
        }
        drop(plane);
        self.requests.stop_accepting();
        self.server.shutdown();
        // Outside of a tokio runtime this cannot wait; the store is closed when the last request drops it.
        if tokio::runtime::Handle::try_current().is_ok() {
            let server = self.server.clone();
            drop(self.env.spawn("closing the store", async move {
                if let Some(serving) = serving {
                    let _ = serving.await;
                }
                server.close_audit().await;
                if let Err(error) = store.close().await {
                    tracing::error!(%error, "could not close the store of a dropped runtime");
                }
            }));
        }
    }
}

/// Only for a reference: a runtime passed by value would be dropped, and stopped, before its manager starts.
impl Connect for &Runtime {
    fn client(&self) -> kube::Client {
        Runtime::client(self)
    }

    fn env(&self) -> Option<Env> {
        Some(self.env.clone())
    }

    fn work(&self) -> Option<WorkTracker> {
        Some(self.work.clone())
    }

    fn companion(&self) -> Option<watch::Receiver<Companion>> {
        Some(self.companion.clone())
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Runtime");
        fields.field("tenant", &self.tenant);
        #[cfg(feature = "server-tls")]
        fields.field("address", &self.address());
        fields.finish_non_exhaustive()
    }
}
