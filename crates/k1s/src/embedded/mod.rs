//! The embedded control plane: store, server, doors and clients, started and stopped as one.

mod builder;
mod door;
mod error;
#[cfg(feature = "server-tls")]
mod listen;
mod shared;
mod store;

use std::{fmt, sync::Arc, time::Duration};

use k1s_controllers::TenantControllers;
use k1s_env::{Component, Env, Task, WorkTracker};
use k1s_runtime::{Client, Connect, client::ClientOptions, manager::Companion};
use k1s_server::{ApiServer, Status, User};
use k1s_store::Store;
use kube::CustomResourceExt;
use tokio::sync::watch;

use self::door::Door;
pub(crate) use self::door::unavailable;
#[cfg(feature = "server-tls")]
pub use self::listen::write_kubeconfig;
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
/// It has a store (memory, a folder, etcd), the API server over it, and a client that reaches the server without a socket.
/// With `RuntimeBuilder::listen` (the feature `server-tls`) kubectl and everybody else can use it, too. Two of them in one process share
/// nothing.
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
/// Stop managers first, then the runtime. One that is dropped without [`stop`](Self::stop) ends too, but nobody waits for it:
/// what was acknowledged is kept, requests under way may not be answered.
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
    patience: Duration,
    /// What has to be ended; `None` when it was.
    parts: tokio::sync::Mutex<Option<Parts>>,
}

/// What a runtime ends, in this order.
struct Parts {
    plane: ControlPlane,
    serving: Option<Task<std::io::Result<()>>>,
    /// Renews the certificate.
    renewing: Option<Task<()>>,
    store: Arc<dyn Store>,
    /// Counts the tasks of all of them.
    tasks: Env,
}

impl Runtime {
    /// Begins to describe a runtime: in memory, for the tenant `default`, without a socket.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// A client of the runtime's tenant that may do everything. Its requests do not touch a socket. Clones are cheap.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// A client of another tenant of the same store, which comes into being if it is not there.
    ///
    /// # Errors
    /// If that is no name for a tenant, or the store fails.
    pub async fn tenant_client(&self, tenant: &str) -> Result<kube::Client, Status> {
        let server = self.server.tenant(tenant).await?.as_user(User::admin());
        Ok(kube::Client::new(Door::new(server, self.requests.clone()), "default"))
    }

    /// The tenant that [`client`](Self::client) and the kubeconfig are for.
    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Time, tasks and randomness.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// What is in flight: requests of its clients, and the work of managers made for it.
    #[must_use]
    pub fn work(&self) -> &WorkTracker {
        &self.work
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

    /// The control plane's controllers of a tenant, as they start and stop: for the [`Connect`] of a program with a client of its
    /// own. A manager that knows them counts their work when it waits until it is idle.
    #[must_use]
    pub fn companion(&self, tenant: &str) -> watch::Receiver<Companion> {
        self.controllers.companion(tenant)
    }

    /// Creates every object of a YAML or JSON text, or makes those that are there as it says; see [`manifests::apply`].
    ///
    /// # Errors
    /// Of the first document that cannot be read or applied.
    pub async fn apply(&self, text: &str) -> Result<Vec<Applied>, ApplyError> {
        manifests::apply(&self.plain_client(), text).await
    }

    /// Installs the definition of a custom resource and waits until the server serves it; see [`manifests::install`].
    ///
    /// # Errors
    /// If the definition is refused.
    pub async fn install<K: CustomResourceExt>(&self) -> Result<(), ApplyError> {
        manifests::install::<K>(&self.plain_client()).await
    }

    fn plain_client(&self) -> Client {
        Client::new(self.client(), ClientOptions { env: self.env.clone(), ..ClientOptions::default() })
    }

    /// Stops: takes no more requests of its clients, waits for those in flight, ends watches and connections, and closes
    /// the store last. What was acknowledged is kept. No task of the runtime is left then. A second call has nothing left to
    /// do.
    ///
    /// # Errors
    /// If requests were not answered in time, or tasks have not ended; the rest is stopped all the same. If the store could
    /// not be closed.
    pub async fn stop(&self) -> Result<(), StopError> {
        let mut parts = self.parts.lock().await;
        let Some(Parts { plane, serving, renewing, store, tasks }) = parts.take() else { return Ok(()) };
        if let Some(renewing) = renewing {
            renewing.abort();
        }
        plane.stop_controllers().await;
        self.requests.stop_accepting();
        let answered = self.requests.wait_idle(self.patience).await;
        self.server.shutdown();
        let served = match serving {
            Some(serving) => serving.await,
            None => Ok(Ok(())),
        };
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
        // Outside of a tokio runtime nobody could wait; the store is closed when the last request lets go of it.
        if tokio::runtime::Handle::try_current().is_ok() {
            drop(self.env.spawn("closing the store", async move {
                if let Some(serving) = serving {
                    let _ = serving.await;
                }
                if let Err(error) = store.close().await {
                    tracing::error!(%error, "the store of a runtime that was dropped could not be closed");
                }
            }));
        }
    }
}

/// Of a reference alone: a runtime that is given away would be dropped, and so stopped, before its manager starts.
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
