//! An in-process control plane and managers for it, shared by the test binaries.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of this")]

use std::{
    collections::BTreeMap,
    sync::Arc,
    task::{Context as TaskContext, Poll},
    time::Duration,
};

use http::{Request as HttpRequest, Response};
use k1s_env::{Env, VirtualClock};
use k1s_runtime::{IdleOptions, Manager, ManagerOptions, client::Client, manager::IdleReport};
use k1s_server::{ApiServer, Body, ServerOptions, User};
use k1s_store::{MemoryOptions, MemoryStore};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Maximum duration of any wait; longer means a hang.
pub const HANG: Duration = Duration::from_secs(60);

/// A server and its clients.
pub struct World {
    pub env: Env,
    pub server: ApiServer,
    pub faults: Faults,
    pub kube: kube::Client,
}

impl World {
    /// In real time.
    pub async fn new() -> World {
        World::with(Env::system(), Arc::new(MemoryStore::default())).await
    }

    /// On a clock that stands still until it is advanced.
    pub async fn simulated(seed: u64) -> (World, VirtualClock) {
        let (env, clock) = Env::simulated(seed);
        let store = Arc::new(MemoryStore::new(env.clone(), MemoryOptions::default()));
        (World::with(env, store).await, clock)
    }

    pub async fn with(env: Env, store: Arc<dyn k1s_store::Store>) -> World {
        let server = ApiServer::new(env.clone(), store, ServerOptions::default())
            .await
            .unwrap()
            .as_user(User::admin());
        let faults = Faults::default();
        let kube = kube::Client::new(Faulty { server: server.clone(), faults: faults.clone() }, "default");
        World { env, server, faults, kube }
    }

    pub fn options(&self) -> ManagerOptions {
        let mut options = ManagerOptions::local();
        options.env = Some(self.env.clone());
        options
    }

    pub fn manager(&self) -> Manager {
        Manager::new(self.kube.clone(), self.options()).unwrap()
    }

    /// A client without a cache.
    pub fn live(&self) -> Client {
        let options = k1s_runtime::client::ClientOptions { env: self.env.clone(), ..Default::default() };
        Client::new(self.kube.clone(), options)
    }
}

/// Runs a manager in the background; dropping it requests a stop.
pub struct Running {
    pub stop: CancellationToken,
    pub task: k1s_env::Task<Result<(), k1s_runtime::ManagerError>>,
    env: Env,
}

pub fn start(manager: &Manager) -> Running {
    let (stop, running) = (CancellationToken::new(), manager.clone());
    let token = stop.clone();
    let task = manager.env().spawn("manager", async move { running.start(token).await });
    Running { stop, task, env: manager.env().clone() }
}

impl Running {
    pub async fn end(self) -> Result<(), k1s_runtime::ManagerError> {
        self.stop.cancel();
        self.task.await.unwrap()
    }
}

/// Waits until a running manager has nothing left to do.
pub async fn idle(manager: &Manager) -> IdleReport {
    manager.wait_until_idle(IdleOptions::within(HANG)).await.unwrap()
}

pub fn config_map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let data: BTreeMap<String, String> =
        data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let metadata =
        ObjectMeta { name: Some(name.into()), namespace: Some("default".into()), ..Default::default() };
    ConfigMap { metadata, data: Some(data), ..Default::default() }
}

/// Faults between a client and the server.
#[derive(Clone, Default)]
pub struct Faults {
    inner: Arc<Mutex<FaultState>>,
}

type Refuse = Box<dyn FnMut(&HttpRequest<kube::client::Body>) -> Option<u16> + Send>;

#[derive(Default)]
struct FaultState {
    /// Called with each request; a returned code is sent in place of the server's response.
    refuse: Option<Refuse>,
    /// Cancelling it cuts all responses in progress.
    cut: CancellationToken,
}

impl Faults {
    /// Refuses requests for which the function returns a code.
    pub fn refuse(
        &self,
        refuse: impl FnMut(&HttpRequest<kube::client::Body>) -> Option<u16> + Send + 'static,
    ) {
        self.inner.lock().refuse = Some(Box::new(refuse));
    }

    pub fn none(&self) {
        self.inner.lock().refuse = None;
    }

    /// Cuts all responses in progress, which are watches.
    pub fn cut(&self) {
        std::mem::take(&mut self.inner.lock().cut).cancel();
    }
}

/// The server behind a faulty network.
#[derive(Clone)]
struct Faulty {
    server: ApiServer,
    faults: Faults,
}

type BoxFuture<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;
type Answer = http_body_util::combinators::UnsyncBoxBody<bytes::Bytes, std::io::Error>;

impl tower::Service<HttpRequest<kube::client::Body>> for Faulty {
    type Response = Response<Answer>;
    type Error = k1s_runtime::BoxError;
    type Future = BoxFuture<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<kube::client::Body>) -> Self::Future {
        use http_body_util::BodyExt as _;
        let (refused, cut) = {
            let mut state = self.faults.inner.lock();
            let refused = state.refuse.as_mut().and_then(|refuse| refuse(&request));
            (refused, state.cut.clone())
        };
        let mut server = self.server.clone();
        Box::pin(async move {
            if let Some(code) = refused {
                let body = format!(
                    r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"refused by the test","reason":"Test","code":{code}}}"#
                );
                let body = http_body_util::Full::new(bytes::Bytes::from(body));
                let body = body.map_err(|never| match never {}).boxed_unsync();
                return Ok(Response::builder().status(code).body(body)?);
            }
            let answer = tower::Service::call(&mut server, request).await?;
            Ok(answer
                .map(|body: Body| Cuttable { body, cut: Box::pin(cut.cancelled_owned()) }.boxed_unsync()))
        })
    }
}

/// A body that ends with an error when it is cut.
struct Cuttable {
    body: Body,
    cut: std::pin::Pin<Box<tokio_util::sync::WaitForCancellationFutureOwned>>,
}

impl http_body::Body for Cuttable {
    type Data = bytes::Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<http_body::Frame<bytes::Bytes>, std::io::Error>>> {
        if self.cut.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(std::io::Error::other("cut by the test"))));
        }
        std::pin::Pin::new(&mut self.body).poll_frame(cx).map_err(std::io::Error::other)
    }
}
