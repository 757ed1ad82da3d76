//! The control planes that the suite runs on.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use k1s_controllers::ControllersOptions;
use k1s_env::{Env, Task};
use k1s_runtime::{
    BoxError, IdleOptions, Manager, ManagerError, ManagerOptions,
    client::{Client, ClientOptions},
    manager::IdleReport,
};
use k1s_server::{ApiServer, Body, Listener, ServerOptions, TlsFiles, User, certificate, serve};
use k1s_store::{MemoryStore, Store};
use k1s_store_disk::{DiskOptions, DiskStore};
use k1s_store_etcd::{EtcdStore, testing::EtcdServer};
use parking_lot::RwLock;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::proxy::Proxy;

/// Maximum duration of any wait; longer means a hang.
pub(crate) const HANG: Duration = Duration::from_secs(120);

/// The storage of objects, and the controllers' connection to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    /// In memory.
    Memory,
    /// In memory, but over HTTPS on a network that drops connections.
    Https,
    /// On disk.
    Disk,
    /// In etcd.
    Etcd,
}

/// A control plane.
pub(crate) struct Plane {
    pub(crate) env: Env,
    backend: Keeper,
    store: Arc<dyn Store>,
    server: Switch,
    /// The controllers' client.
    kube: kube::Client,
    https: Option<Https>,
    /// The garbage collector, as in every cluster.
    collector: Option<Running>,
}

/// Resources that have to live as long as a store.
enum Keeper {
    Memory,
    Disk(TempDir),
    Etcd(EtcdServer),
}

struct Https {
    files: TlsFiles,
    proxy: Proxy,
    serving: Task<io::Result<()>>,
}

impl Plane {
    /// A new one; `None` if there is no etcd, after a message about it.
    pub(crate) async fn start(backend: Backend) -> Option<Plane> {
        let env = Env::system();
        let backend_store = match backend {
            Backend::Memory | Backend::Https => Keeper::Memory,
            Backend::Disk => Keeper::Disk(tempfile::tempdir().unwrap()),
            Backend::Etcd => Keeper::Etcd(EtcdServer::start(&env).await.unwrap()?),
        };
        let store = match &backend_store {
            Keeper::Memory => Arc::new(MemoryStore::default()),
            other => open(&env, other).await,
        };
        let server = api_server(&env, &store).await;
        let switch = Switch { server: Arc::new(RwLock::new(Some(server.clone()))) };
        let mut plane = Plane {
            kube: kube::Client::new(switch.clone(), "default"),
            env,
            backend: backend_store,
            store,
            server: switch,
            https: None,
            collector: None,
        };
        let collector = Manager::new(plane.kube.clone(), plane.options()).unwrap();
        let options = ControllersOptions { garbage_collection: true, ..ControllersOptions::none() };
        k1s_controllers::add_to_manager(&collector, &options).unwrap();
        plane.collector = Some(Running::start(collector));
        if backend == Backend::Https {
            plane.listen(server).await;
        }
        Some(plane)
    }

    async fn listen(&mut self, server: ApiServer) {
        let files = certificate(&["127.0.0.1".to_owned()]).unwrap();
        let (address, serving) = serve_https(&self.env, server, &files).await;
        let proxy = Proxy::start(&self.env, address).await;
        let mut config = kube::Config::new(format!("https://{}", proxy.address).parse().unwrap());
        config.root_cert = Some(
            rustls::pki_types::pem::PemObject::pem_slice_iter(files.authority.as_bytes())
                .map(|one: Result<rustls::pki_types::CertificateDer<'_>, _>| one.unwrap().to_vec())
                .collect(),
        );
        self.kube = kube::Client::try_from(config).unwrap();
        self.https = Some(Https { files, proxy, serving });
    }

    /// Waits until the garbage is collected.
    pub(crate) async fn collected(&self) {
        self.collector.as_ref().unwrap().idle().await;
    }

    /// Whether connections are dropped, so that valid requests may fail.
    pub(crate) fn is_shaky(&self) -> bool {
        self.https.is_some()
    }

    /// Stops the server and starts another one on the same store.
    pub(crate) async fn restart(&mut self) {
        let old = self.server.server.write().take();
        old.unwrap().shutdown();
        if !matches!(self.backend, Keeper::Memory) {
            // No handle to the closed store may remain: the folder is locked until it is dropped.
            let old = std::mem::replace(&mut self.store, Arc::new(MemoryStore::default()));
            old.close().await.unwrap();
            drop(old);
            let nothing = std::mem::replace(&mut self.store, open(&self.env, &self.backend).await);
            nothing.close().await.unwrap();
        }
        let server = api_server(&self.env, &self.store).await;
        if let Some(https) = &mut self.https {
            let (address, serving) = serve_https(&self.env, server.clone(), &https.files).await;
            https.proxy.set_target(address);
            std::mem::replace(&mut https.serving, serving).await.unwrap().unwrap();
        }
        *self.server.server.write() = Some(server);
    }

    /// Stops everything and checks that no task is left.
    pub(crate) async fn end(mut self) {
        self.collector.take().unwrap().end().await;
        self.server.server.write().take().unwrap().shutdown();
        if let Some(https) = self.https {
            https.proxy.end().await;
            https.serving.await.unwrap().unwrap();
        }
        self.store.close().await.unwrap();
        drop((self.server, self.kube, self.store));
        let ended = self.env.timeout(HANG, self.env.tasks_ended()).await;
        assert!(ended.is_ok(), "left over: {:?}", self.env.tasks());
    }

    pub(crate) fn options(&self) -> ManagerOptions {
        let mut options = ManagerOptions { env: Some(self.env.clone()), ..ManagerOptions::local() };
        options.cache.retry_initial = Duration::from_millis(5);
        options.cache.retry_max = Duration::from_millis(100);
        options
    }

    pub(crate) fn manager(&self) -> Manager {
        self.manager_with(self.options())
    }

    pub(crate) fn manager_with(&self, options: ManagerOptions) -> Manager {
        Manager::new(self.kube.clone(), options).unwrap()
    }

    /// A user's client, whose connection is reliable.
    pub(crate) fn user(&self) -> Client {
        let kube = kube::Client::new(self.server.clone(), "default");
        Client::new(kube, ClientOptions { env: self.env.clone(), ..Default::default() })
    }
}

async fn api_server(env: &Env, store: &Arc<dyn Store>) -> ApiServer {
    let server = ApiServer::new(env.clone(), store.clone(), ServerOptions::default()).await.unwrap();
    server.as_user(User::admin())
}

async fn open(env: &Env, backend: &Keeper) -> Arc<dyn Store> {
    match backend {
        Keeper::Memory => Arc::new(MemoryStore::default()),
        Keeper::Etcd(etcd) => Arc::new(EtcdStore::connect(env.clone(), etcd.options()).await.unwrap()),
        Keeper::Disk(folder) => {
            let opened = env.timeout(HANG, async {
                loop {
                    // Work in progress of the old server may hold the file lock for a while; there is no
                    // notification for it.
                    match DiskStore::open(env.clone(), folder.path(), DiskOptions::default()) {
                        Ok(store) => return store,
                        Err(_) => env.sleep(Duration::from_millis(5)).await,
                    }
                }
            });
            Arc::new(opened.await.expect("the folder is free"))
        }
    }
}

async fn serve_https(env: &Env, server: ApiServer, files: &TlsFiles) -> (SocketAddr, Task<io::Result<()>>) {
    let listener = Listener::https("127.0.0.1:0".parse().unwrap(), files).await.unwrap();
    let address = listener.address().unwrap();
    (address, env.spawn("server", serve(server, listener)))
}

/// The current server, if there is one.
#[derive(Clone)]
struct Switch {
    server: Arc<RwLock<Option<ApiServer>>>,
}

impl tower::Service<Request<kube::client::Body>> for Switch {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let server = self.server.read().clone();
        Box::pin(async move {
            let mut server = server.ok_or("connection refused")?;
            Ok(tower::Service::call(&mut server, request).await?)
        })
    }
}

/// A running manager.
pub(crate) struct Running {
    pub(crate) manager: Manager,
    pub(crate) stop: CancellationToken,
    pub(crate) task: Task<Result<(), ManagerError>>,
}

impl Running {
    pub(crate) fn start(manager: Manager) -> Running {
        let (stop, started) = (CancellationToken::new(), manager.clone());
        let token = stop.clone();
        let task = manager.env().spawn("manager", async move { started.start(token).await });
        Running { manager, stop, task }
    }

    /// Waits until the manager is idle and reports no problems.
    pub(crate) async fn idle(&self) -> IdleReport {
        loop {
            let report = self.manager.wait_until_idle(IdleOptions::within(HANG)).await.unwrap();
            if report.problems.is_empty() {
                return report;
            }
        }
    }

    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}
