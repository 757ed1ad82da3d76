//! Builder of a runtime: store, tenant, listener and controllers.

#[cfg(feature = "disk")]
use std::path::PathBuf;
use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use k1s_controllers::{ControllersOptions, ProjectsOptions};
use k1s_env::{Env, WorkTracker};
use k1s_server::{AuditOptions, ServerOptions, User};
use k1s_store::{MemoryOptions, Store};
#[cfg(feature = "disk")]
use k1s_store_disk::DiskOptions;
#[cfg(feature = "etcd")]
use k1s_store_etcd::EtcdOptions;

use crate::{
    Election,
    control_plane::{ControlPlane, ControlPlaneOptions},
};

#[cfg(feature = "encryption")]
use super::encryption::Encrypt;
#[cfg(feature = "server-tls")]
use super::listen::{Bound, ListenOptions};
use super::{Door, Parts, Runtime, StartError, shared::SharedStore, store::StoreChoice};

/// Configures a [`Runtime`]. Created by [`Runtime::builder`], finished by [`start`](Self::start).
#[derive(Debug)]
#[must_use = "nothing happens before start"]
pub struct RuntimeBuilder {
    store: StoreChoice,
    tenant: Option<String>,
    env: Option<Env>,
    #[cfg(feature = "server-tls")]
    pub(super) listen: ListenOptions,
    server: ServerOptions,
    controllers: ControllersOptions,
    projects: Option<ProjectsOptions>,
    election: Election,
    #[cfg(feature = "encryption")]
    pub(super) encrypt: Encrypt,
    patience: Duration,
}

impl Default for RuntimeBuilder {
    fn default() -> RuntimeBuilder {
        RuntimeBuilder {
            store: StoreChoice::Memory(MemoryOptions::default()),
            tenant: None,
            env: None,
            #[cfg(feature = "server-tls")]
            listen: ListenOptions::default(),
            server: ServerOptions::default(),
            controllers: ControllersOptions::default(),
            projects: None,
            election: Election::default(),
            #[cfg(feature = "encryption")]
            encrypt: Encrypt::default(),
            patience: Duration::from_secs(30),
        }
    }
}

impl RuntimeBuilder {
    /// Keeps all data in memory; it is lost when the runtime stops. The default.
    pub fn memory(self) -> RuntimeBuilder {
        self.memory_with(MemoryOptions::default())
    }

    /// Keeps all data in memory, with options.
    pub fn memory_with(mut self, options: MemoryOptions) -> RuntimeBuilder {
        self.store = StoreChoice::Memory(options);
        self
    }

    /// Keeps all data in a folder, which is created if needed. Only one runtime at a time can use it. A
    /// runtime that listens also keeps its certificates and the administrator's token there,
    /// in `pki`.
    #[cfg(feature = "disk")]
    pub fn disk(self, folder: impl Into<PathBuf>) -> RuntimeBuilder {
        self.disk_with(folder, DiskOptions::default())
    }

    /// Keeps all data in a folder, with options.
    #[cfg(feature = "disk")]
    pub fn disk_with(mut self, folder: impl Into<PathBuf>, options: DiskOptions) -> RuntimeBuilder {
        self.store = StoreChoice::Disk(folder.into(), options);
        self
    }

    /// Keeps all data in etcd, at these addresses: `["http://127.0.0.1:2379"]`. Several runtimes can share
    /// it.
    #[cfg(feature = "etcd")]
    pub fn etcd(self, endpoints: impl IntoIterator<Item = impl Into<String>>) -> RuntimeBuilder {
        self.etcd_with(EtcdOptions::new(endpoints))
    }

    /// Keeps all data in etcd, with options: TLS, a root other than `/k1s`.
    #[cfg(feature = "etcd")]
    pub fn etcd_with(mut self, options: EtcdOptions) -> RuntimeBuilder {
        self.store = StoreChoice::Etcd(options);
        self
    }

    /// Keeps all data in this store, and closes it when the runtime stops.
    pub fn store(mut self, store: Arc<dyn Store>) -> RuntimeBuilder {
        self.store = StoreChoice::Given(store);
        self
    }

    /// Keeps all data in this store without closing it, so that other runtimes of this process may use it,
    /// too. Only one of them should run controllers: see [`Election::Always`], [`ControllersOptions::none`].
    pub fn shared_store(mut self, store: Arc<dyn Store>) -> RuntimeBuilder {
        self.store = StoreChoice::Given(Arc::new(SharedStore::new(store)));
        self
    }

    /// The tenant: a separate control plane in the store, isolated from others. `default` by default.
    pub fn tenant(mut self, name: impl Into<String>) -> RuntimeBuilder {
        self.tenant = Some(name.into());
        self
    }

    /// Clock, tasks and randomness; the system's by default. A simulated environment works with memory and
    /// disk; etcd is rejected, since it is outside of the simulation.
    pub fn env(mut self, env: Env) -> RuntimeBuilder {
        self.env = Some(env);
        self
    }

    /// Options of the server. The tenant and the administrator's token are added to them.
    pub fn server_options(mut self, options: ServerOptions) -> RuntimeBuilder {
        self.server = options;
        self
    }

    /// What is recorded of requests, and where. Nothing by default. The last events are written when the runtime is
    /// [stopped](Runtime::stop).
    pub fn audit(mut self, options: AuditOptions) -> RuntimeBuilder {
        self.server.audit = options;
        self
    }

    /// Which controllers run: garbage collection, namespaces, definitions, default objects, expiry of Events.
    /// All by default; `ControllersOptions::none()` runs only the server, like envtest.
    pub fn controllers(mut self, options: ControllersOptions) -> RuntimeBuilder {
        self.controllers = options;
        self
    }

    /// Turns projects on: installs the kinds `Project` and `ProjectControlPlane` in the runtime's tenant, gives each Project
    /// a tenant of its own, and serves that also at
    /// `/apis/resourcemanager.miloapis.com/v1alpha1/projects/{name}/control-plane`. Off by default. The
    /// [`host`](ProjectsOptions::host) is the runtime's tenant.
    pub fn projects(mut self, options: ProjectsOptions) -> RuntimeBuilder {
        self.projects = Some(options);
        self
    }

    /// Which runtime's controllers run if several share the store. By default there is an election on etcd,
    /// and none on other stores.
    pub fn election(mut self, election: Election) -> RuntimeBuilder {
        self.election = election;
        self
    }

    /// How long [`Runtime::stop`] waits for requests in flight: 30 s by default.
    pub fn stop_timeout(mut self, timeout: Duration) -> RuntimeBuilder {
        self.patience = timeout;
        self
    }

    /// Starts the runtime. When this returns it is ready: the tenant exists, and the address accepts
    /// connections.
    ///
    /// # Errors
    /// If the folder or the port is in use, etcd cannot be reached, and so on. Nothing is left running.
    pub async fn start(self) -> Result<Runtime, StartError> {
        self.run().await
    }

    /// Boxed: the body of an async function is compiled again in every crate that awaits it, and this one is large.
    #[inline(never)]
    fn run(self) -> BoxFuture<'static, Result<Runtime, StartError>> {
        Box::pin(self.open())
    }

    async fn open(self) -> Result<Runtime, StartError> {
        let RuntimeBuilder {
            store,
            tenant,
            env,
            #[cfg(feature = "server-tls")]
            listen,
            server,
            mut controllers,
            projects,
            election,
            #[cfg(feature = "encryption")]
            encrypt,
            patience,
        } = self;
        controllers.projects = projects.or(controllers.projects);
        let env = env.unwrap_or_else(Env::system);
        let tasks = env.scope();
        // The most likely failure comes first, before anything needs cleanup.
        #[cfg(feature = "server-tls")]
        let bound = listen.bind(&store).await?;
        let mut options = server;
        if let Some(tenant) = tenant {
            options.default_tenant = tenant;
        }
        #[cfg(feature = "encryption")]
        let folder = store.folder().map(std::path::Path::to_owned);
        let store = store.open(&tasks).await?;
        #[cfg(feature = "encryption")]
        let store = encrypt.wrap(&tasks, folder.as_deref(), store, &mut options).await?;
        let started = Started {
            env,
            tasks,
            store: Arc::clone(&store),
            #[cfg(feature = "server-tls")]
            bound,
            patience,
        };
        match started.serve(ControlPlaneOptions { server: options, controllers, election }).await {
            Ok(runtime) => Ok(runtime),
            Err(error) => {
                if let Err(error) = store.close().await {
                    tracing::warn!(%error, "could not close the store after a failed start");
                }
                Err(error)
            }
        }
    }
}

/// A runtime whose store is open.
struct Started {
    env: Env,
    /// The environment of the runtime's own tasks.
    tasks: Env,
    store: Arc<dyn Store>,
    #[cfg(feature = "server-tls")]
    bound: Option<Bound>,
    patience: Duration,
}

impl Started {
    async fn serve(
        self,
        #[cfg_attr(not(feature = "server-tls"), expect(unused_mut, reason = "only a listener changes them"))]
        mut options: ControlPlaneOptions,
    ) -> Result<Runtime, StartError> {
        let Started { env, tasks, store, patience, .. } = self;
        #[cfg(feature = "server-tls")]
        let ready = match self.bound {
            Some(bound) => Some(bound.identify(&tasks, &store, &mut options.server).await?),
            None => None,
        };
        #[cfg(feature = "server-tls")]
        if let (Some(ready), Some(certificates)) = (&ready, &mut options.controllers.certificates)
            && certificates.signer.is_none()
        {
            certificates.signer = ready.signer(&tasks, &options.server.default_tenant);
        }
        let tenant = options.server.default_tenant.clone();
        let services = options.server.services.local.clone();
        let plane = ControlPlane::start(&tasks, Arc::clone(&store), options).await?;
        let server = plane.server().clone();
        let inside = match server.tenant(&tenant).await {
            Ok(inside) => inside.as_user(User::admin()),
            Err(status) => {
                plane.stop().await;
                return Err(status.into());
            }
        };
        let work = WorkTracker::new(env.clone());
        let requests = work.component("requests");
        let client = kube::Client::new(Door::new(inside, requests.clone()), "default");
        let controllers = Arc::clone(plane.controllers());
        let companion = controllers.companion(&tenant);
        #[cfg(feature = "server-tls")]
        let (endpoint, serving, renewing) =
            ready.map_or((None, None, None), |ready| ready.serve(&tasks, &server));
        #[cfg(not(feature = "server-tls"))]
        let (serving, renewing) = (None, None);
        let parts = tokio::sync::Mutex::new(Some(Parts { plane, serving, renewing, store, tasks }));
        Ok(Runtime {
            env,
            work,
            requests,
            server,
            client,
            controllers,
            companion,
            #[cfg(feature = "server-tls")]
            endpoint,
            tenant,
            services,
            patience,
            parts,
        })
    }
}
