//! A server in this process, the controllers on it, and helpers for tests.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of this")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request, Response, Uri};
use http_body_util::BodyExt as _;
use k1s_controllers::ControllersOptions;
use k1s_env::{Env, Task};
use k1s_runtime::Connect;
use k1s_server::{ApiServer, Body, ServerOptions, User};
use k1s_store::{MemoryOptions, MemoryStore, Store};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::Service;

pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub const SECRETS: &str = "/api/v1/namespaces/default/secrets";
pub const NODES: &str = "/api/v1/nodes";
pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What the controllers see of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Everything.
    K1s,
    /// Only the APIs of other Kubernetes servers.
    Plain,
}

pub const VIEWS: [View; 2] = [View::K1s, View::Plain];

/// A server behind an interceptor of requests.
#[derive(Clone)]
pub struct Intercepted {
    server: ApiServer,
    meets: Arc<Meeting>,
}

type Meeting = dyn Fn(&Method, &Uri) -> Intercept + Send + Sync;

/// What happens to a request.
pub enum Intercept {
    /// It is passed on to the server.
    Pass,
    /// It is answered with 404.
    NotFound,
    /// It is passed on, and the body of the response is changed.
    Changed(fn(Body) -> Body),
}

impl Intercepted {
    pub fn new(
        server: &ApiServer,
        meets: impl Fn(&Method, &Uri) -> Intercept + Send + Sync + 'static,
    ) -> Intercepted {
        Intercepted { server: server.clone(), meets: Arc::new(meets) }
    }

    /// The server without the APIs that only k1s has.
    fn plain(server: &ApiServer) -> Intercepted {
        Intercepted::new(server, |_, uri| match uri.path().starts_with("/k1s/") {
            true => Intercept::NotFound,
            false => Intercept::Pass,
        })
    }
}

impl<B> Service<Request<B>> for Intercepted
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match (self.meets)(request.method(), request.uri()) {
            Intercept::Pass => self.server.call(request),
            Intercept::NotFound => {
                let body = Body::from(b"404 page not found\n".to_vec());
                Box::pin(async move { Ok(Response::builder().status(404).body(body).unwrap()) })
            }
            Intercept::Changed(change) => {
                let answer = self.server.call(request);
                Box::pin(async move { Ok(answer.await?.map(change)) })
            }
        }
    }
}

/// The client and environment of the controllers.
pub struct Connected {
    pub client: kube::Client,
    pub env: Env,
}

impl Connect for Connected {
    fn client(&self) -> kube::Client {
        self.client.clone()
    }

    fn env(&self) -> Option<Env> {
        Some(self.env.clone())
    }
}

/// A server, and the controllers that run on it until the last clone is dropped.
#[derive(Clone)]
pub struct Api {
    pub server: ApiServer,
    pub env: Env,
    stop: CancellationToken,
    _stop: Arc<DropGuard>,
}

impl Api {
    /// A server on a store, without controllers.
    pub async fn bare(env: Env, store: Arc<dyn Store>) -> Api {
        let mut options = ServerOptions::default();
        options.root_ca = "the authority".to_owned();
        let server = ApiServer::new(env.clone(), store, options).await.unwrap();
        let stop = CancellationToken::new();
        Api { server: server.as_user(User::admin()), env, _stop: Arc::new(stop.clone().drop_guard()), stop }
    }

    /// The client and environment of the controllers.
    pub fn connect(&self, view: View) -> Connected {
        let client = match view {
            View::K1s => kube::Client::new(self.server.clone(), "default"),
            View::Plain => kube::Client::new(Intercepted::plain(&self.server), "default"),
        };
        Connected { client, env: self.env.clone() }
    }

    /// Runs controllers.
    pub fn run(&self, view: View, options: ControllersOptions) -> Task<()> {
        let connected = self.connect(view);
        let stop = self.stop.clone();
        self.env.spawn("controllers", async move {
            k1s_controllers::run(connected, options, stop).await.unwrap();
        })
    }

    /// Stops the controllers.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// A server with all controllers, in real time.
    pub async fn new(view: View) -> Api {
        let env = Env::system();
        let api = Api::bare(env.clone(), Arc::new(MemoryStore::default())).await;
        drop(api.run(view, all()));
        api
    }

    /// A server with some controllers, and a stopped clock.
    pub async fn simulated(view: View, options: ControllersOptions) -> (Api, k1s_env::VirtualClock) {
        let (env, clock) = Env::simulated(7);
        let store = Arc::new(MemoryStore::new(env.clone(), MemoryOptions::default()));
        let api = Api::bare(env, store).await;
        drop(api.run(view, options));
        (api, clock)
    }

    pub async fn send(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string().into_bytes()) };
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request =
            Request::builder().method(method).uri(path).header("content-type", kind).body(body).unwrap();
        let answer = self.server.clone().call(request).await.unwrap();
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap())
    }

    /// Creates an object, and returns its uid.
    pub async fn create(&self, path: &str, name: &str, owners: &[Value]) -> String {
        self.create_with(path, json!({"metadata": {"name": name, "ownerReferences": owners}})).await
    }

    pub async fn create_with(&self, path: &str, object: Value) -> String {
        let (code, object) = self.send(Method::POST, path, object).await;
        assert_eq!(code, 201, "{object}");
        object["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    pub async fn delete(&self, path: &str, policy: &str) {
        let (code, answer) = self.send(Method::DELETE, path, json!({"propagationPolicy": policy})).await;
        assert_eq!(code, 200, "{answer}");
    }

    pub async fn patch(&self, path: &str, patch: Value) -> Value {
        let (code, answer) = self.send(Method::PATCH, path, patch).await;
        assert_eq!(code, 200, "{answer}");
        answer
    }

    pub async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, Value::Null).await.1
    }

    /// Watches until the list of a collection satisfies the condition.
    pub async fn until(&self, collection: &str, wanted: impl Fn(&[Value]) -> bool) {
        let wait = async {
            loop {
                let (code, list) = self.send(Method::GET, collection, Value::Null).await;
                assert_eq!(code, 200, "{list}");
                if wanted(list["items"].as_array().unwrap()) {
                    return;
                }
                let from = list["metadata"]["resourceVersion"].as_str().unwrap();
                let path = format!("{collection}?watch=1&resourceVersion={from}");
                let request = Request::get(path).body(Body::empty()).unwrap();
                let mut watch = self.server.clone().call(request).await.unwrap().into_body();
                let _ = watch.frame().await;
            }
        };
        // In real time: a failing test must not hang.
        if Env::system().timeout(Duration::from_secs(60), wait).await.is_err() {
            panic!("{collection} did not become as wanted: {}", self.get(collection).await);
        }
    }

    /// Waits until an object does not exist.
    pub async fn gone(&self, collection: &str, name: &str) {
        self.until(collection, |items| items.iter().all(|item| item["metadata"]["name"] != name)).await;
    }

    /// Waits until an object exists and satisfies the condition.
    pub async fn becomes(&self, collection: &str, name: &str, wanted: impl Fn(&Value) -> bool) {
        self.until(collection, |items| {
            items.iter().any(|item| item["metadata"]["name"] == name && wanted(item))
        })
        .await;
    }

    /// Waits until an object was collected that is processed after everything written before.
    pub async fn settle(&self) {
        let uid = self.create(MAPS, "settle-owner", &[]).await;
        self.create(MAPS, "settle", &[owner("settle-owner", &uid)]).await;
        self.delete(&format!("{MAPS}/settle-owner"), "Background").await;
        self.gone(MAPS, "settle").await;
    }
}

/// All controllers, with the server's CA certificate.
pub fn all() -> ControllersOptions {
    ControllersOptions { root_ca: Some("the authority".into()), ..ControllersOptions::default() }
}

pub fn owner(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid})
}

pub fn blocking(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": true})
}

pub fn held(name: &str, owners: &[Value]) -> Value {
    json!({"metadata": {"name": name, "ownerReferences": owners, "finalizers": ["example.com/hold"]}})
}

pub async fn remove_finalizers(api: &Api, path: &str) {
    api.patch(path, json!({"metadata": {"finalizers": null}})).await;
}

pub fn definition(scope: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": scope,
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}
