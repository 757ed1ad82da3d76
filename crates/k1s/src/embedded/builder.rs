//! Builder of a runtime: store, tenant, listener and controllers.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use k1s_controllers::ControllersOptions;
use k1s_env::{Env, WorkTracker};
use k1s_server::{ServerOptions, TlsFiles, User, serve};
use k1s_store::{MemoryOptions, Store};
use k1s_store_disk::DiskOptions;
use k1s_store_etcd::EtcdOptions;

use crate::{
    Election,
    control_plane::{ControlPlane, ControlPlaneOptions},
};

use super::{
    Door, Endpoint, Parts, Runtime, StartError,
    endpoint::{Bound, EndpointOptions, Ready, Transport, advertised},
    identity::Keep,
    shared::SharedStore,
    store::StoreChoice,
};

/// Configures a [`Runtime`]. Created by [`Runtime::builder`], finished by [`start`](Self::start).
#[derive(Debug)]
#[must_use = "nothing happens before start"]
pub struct RuntimeBuilder {
    store: StoreChoice,
    tenant: Option<String>,
    env: Option<Env>,
    endpoint: EndpointOptions,
    cert_dir: Option<PathBuf>,
    server: ServerOptions,
    controllers: ControllersOptions,
    election: Election,
    patience: Duration,
}

impl Default for RuntimeBuilder {
    fn default() -> RuntimeBuilder {
        RuntimeBuilder {
            store: StoreChoice::Memory(MemoryOptions::default()),
            tenant: None,
            env: None,
            endpoint: EndpointOptions::default(),
            cert_dir: None,
            server: ServerOptions::default(),
            controllers: ControllersOptions::default(),
            election: Election::default(),
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
    /// runtime that [listens](Self::listen) also keeps its certificates and the administrator's token there,
    /// in `pki`.
    pub fn disk(self, folder: impl Into<PathBuf>) -> RuntimeBuilder {
        self.disk_with(folder, DiskOptions::default())
    }

    /// Keeps all data in a folder, with options.
    pub fn disk_with(mut self, folder: impl Into<PathBuf>, options: DiskOptions) -> RuntimeBuilder {
        self.store = StoreChoice::Disk(folder.into(), options);
        self
    }

    /// Keeps all data in etcd, at these addresses: `["http://127.0.0.1:2379"]`. Several runtimes can share
    /// it.
    pub fn etcd(self, endpoints: impl IntoIterator<Item = impl Into<String>>) -> RuntimeBuilder {
        self.etcd_with(EtcdOptions::new(endpoints))
    }

    /// Keeps all data in etcd, with options: TLS, a root other than `/k1s`.
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

    /// Also serves HTTPS at this address; port 0 chooses a free one. The certificate is generated, unless
    /// [`tls`](Self::tls) is used.
    ///
    /// The certificate authority and the administrator's token are kept with the data: a kubeconfig stays
    /// valid after a restart, and for every runtime on the same etcd. In memory they are created at each
    /// start. The certificate itself is renewed before it expires.
    ///
    /// Anyone who reaches the address and has the token has full access: prefer loopback.
    pub fn listen(mut self, address: impl Into<SocketAddr>) -> RuntimeBuilder {
        self.endpoint.address = Some(address.into());
        self
    }

    /// The serving certificate, its key, and its certificate authority.
    pub fn tls(mut self, files: TlsFiles) -> RuntimeBuilder {
        self.endpoint.transport = Transport::Https(files);
        self
    }

    /// Additional names and addresses for the generated certificate.
    pub fn tls_names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> RuntimeBuilder {
        self.endpoint.names.extend(names.into_iter().map(Into::into));
        self
    }

    /// Keeps the generated certificates and the administrator's token in this folder, for any store:
    /// `ca.crt`, `ca.key`, `apiserver.crt`, `apiserver.key` and `admin.token`. Existing files are used;
    /// missing ones are created. Runtimes that share a certificate authority may have copies of `ca.crt` and
    /// `ca.key`. An `apiserver.crt` and `apiserver.key` issued by another authority are used, and never
    /// replaced.
    pub fn cert_dir(mut self, folder: impl Into<PathBuf>) -> RuntimeBuilder {
        self.cert_dir = Some(folder.into());
        self
    }

    /// Serves plain HTTP instead of HTTPS.
    pub fn plain_http(mut self) -> RuntimeBuilder {
        self.endpoint.transport = Transport::Http;
        self
    }

    /// The administrator's bearer token. By default the stored one, or else a random one.
    pub fn token(mut self, token: impl Into<String>) -> RuntimeBuilder {
        self.endpoint.token = Some(token.into());
        self
    }

    /// Options of the server. The tenant and the administrator's token are added to them.
    pub fn server_options(mut self, options: ServerOptions) -> RuntimeBuilder {
        self.server = options;
        self
    }

    /// Which controllers run: garbage collection, namespaces, definitions, default objects, expiry of Events.
    /// All by default; `ControllersOptions::none()` runs only the server, like envtest.
    pub fn controllers(mut self, options: ControllersOptions) -> RuntimeBuilder {
        self.controllers = options;
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
        let RuntimeBuilder {
            store,
            tenant,
            env,
            endpoint,
            cert_dir,
            server,
            controllers,
            election,
            patience,
        } = self;
        let env = env.unwrap_or_else(Env::system);
        let tasks = env.scope();
        // The most likely failure comes first, before anything needs cleanup.
        let bound = endpoint.bind().await?;
        let keep = cert_dir.map_or_else(|| store.keep(), Keep::Folder);
        let mut options = server;
        if let Some(tenant) = tenant {
            options.default_tenant = tenant;
        }
        let store = store.open(&tasks).await?;
        let started = Started { env, tasks, store: Arc::clone(&store), bound, keep, patience };
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
    bound: Option<Bound>,
    keep: Keep,
    patience: Duration,
}

impl Started {
    async fn serve(self, mut options: ControlPlaneOptions) -> Result<Runtime, StartError> {
        let Started { env, tasks, store, bound, keep, patience } = self;
        let ready = match bound {
            Some(bound) => Some(bound.identify(&tasks, &*store, keep).await?),
            None => None,
        };
        if let Some(Ready { endpoint: Endpoint { address, token, authority, .. }, .. }) = &ready {
            let server = &mut options.server;
            server.advertise_address.get_or_insert_with(|| advertised(*address));
            server.tokens.insert(token.clone(), User::admin());
            if server.root_ca.is_empty() {
                server.root_ca = authority.clone().unwrap_or_default();
            }
        }
        let tenant = options.server.default_tenant.clone();
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
        let (mut endpoint, mut serving, mut renewing) = (None, None, None);
        if let Some(ready) = ready {
            endpoint = Some(ready.endpoint);
            serving = Some(tasks.spawn("listener", serve(server.clone(), ready.listener)));
            renewing = ready.renewal.map(|(renewal, files, slot)| {
                tasks.spawn("certificate renewal", renewal.run(tasks.clone(), files, slot))
            });
        }
        let parts = tokio::sync::Mutex::new(Some(Parts { plane, serving, renewing, store, tasks }));
        Ok(Runtime {
            env,
            work,
            requests,
            server,
            client,
            controllers,
            companion,
            endpoint,
            tenant,
            patience,
            parts,
        })
    }
}
