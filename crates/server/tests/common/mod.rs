//! A server in this process and a client without sockets, for all test binaries.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of this")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use k1s_controllers::{ControllersOptions, TenantControllers};
use k1s_env::{Env, Task, VirtualClock};
use k1s_server::{ApiServer, Body, ServerOptions, TenantEvent, TenantHook, User};
use k1s_store::{MemoryOptions, MemoryStore, Store};
use parking_lot::Mutex;
use serde_json::Value;
use tower::Service as _;

/// Timeout for anything that should not hang.
pub const HANG: Duration = Duration::from_secs(60);

/// A server over its own store, in real time.
pub async fn server() -> ApiServer {
    server_with(&Env::system(), Arc::new(MemoryStore::default()), ServerOptions::default()).await
}

/// A server that starts controllers when they are needed; requests without credentials are by the administrator.
pub async fn server_with(env: &Env, store: Arc<dyn Store>, mut options: ServerOptions) -> ApiServer {
    let controllers = TenantControllers::new(env, ControllersOptions::default());
    let signal = controllers.signal();
    options.tenant_hook = Some(TenantHook::new(move |event| match event {
        TenantEvent::Needed(tenant) => signal.needed(tenant),
        TenantEvent::Gone(tenant) => signal.gone(tenant),
        _ => {}
    }));
    let server = bare(env, store, options).await;
    let door = server.clone();
    controllers.connect(move |tenant| {
        let door = door.clone();
        async move { Ok(Some(kube::Client::new(door.find_tenant(&tenant).await?, "default"))) }
    });
    // The controllers and the server live as long as the test process.
    std::mem::forget(controllers);
    server
}

/// A server without controllers; requests without credentials are by the administrator.
pub async fn bare(env: &Env, store: Arc<dyn Store>, options: ServerOptions) -> ApiServer {
    ApiServer::new(env.clone(), store, options).await.unwrap().as_user(User::admin())
}

/// A server in simulated time.
pub async fn simulated(options: ServerOptions) -> (Client, VirtualClock) {
    let (env, clock) = Env::simulated(7);
    let store = Arc::new(MemoryStore::new(env.clone(), MemoryOptions::default()));
    let server = server_with(&env, store, options).await;
    (Client { server, env }, clock)
}

/// A client of a server in real time.
pub fn client(server: &ApiServer) -> Client {
    Client { server: server.clone(), env: Env::system() }
}

/// A client that calls the server as a function.
#[derive(Clone)]
pub struct Client {
    pub server: ApiServer,
    pub env: Env,
}

/// A complete response.
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {}", self.body.escape_ascii()))
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Client {
    /// Sends and receives JSON. The body determines the type of a patch: an array is a JSON patch, otherwise a merge patch.
    pub async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let content_type = match (method, &body) {
            ("PATCH", Value::Array(_)) => "application/json-patch+json",
            ("PATCH", _) => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer = self.send(method, path, &[("content-type", content_type)], body).await;
        (answer.status, answer.json())
    }

    /// GET, which has to succeed.
    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call("GET", path, Value::Null).await;
        assert_eq!(status, 200, "GET {path}: {body}");
        body
    }

    /// POST, which has to succeed.
    pub async fn post(&self, path: &str, body: Value) -> Value {
        let (status, body) = self.call("POST", path, body).await;
        assert_eq!(status, 201, "POST {path}: {body}");
        body
    }

    /// Sends a request and reads the whole response.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let response = self.open(method, path, headers, body).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// Sends a request and returns the response with its body unread.
    pub async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Response<Body> {
        let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        self.server.clone().call(request).await.unwrap()
    }

    /// Opens a watch, which has to succeed; `path` includes the query without `watch=true`.
    pub async fn watch(&self, path: &str) -> Watch {
        let path = format!("{path}{}watch=true", if path.contains('?') { '&' } else { '?' });
        let response = self.open("GET", &path, &[], Bytes::new()).await;
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json", "{path}");
        Watch { body: response.into_body(), read: Vec::new(), env: self.env.clone() }
    }
}

/// A stream of events, read one at a time.
pub struct Watch {
    body: Body,
    read: Vec<u8>,
    env: Env,
}

impl Watch {
    /// The next event; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            match self.body.frame().await {
                Some(frame) => self.read.extend_from_slice(&frame.unwrap().into_data().unwrap()),
                None => {
                    assert!(self.read.is_empty(), "a watch ended in the middle of a line");
                    return None;
                }
            }
        }
    }

    /// The next event, which has to come.
    pub async fn event(&mut self) -> Value {
        let next = Env::system().timeout(HANG, self.next()).await.expect("a watch is silent");
        next.expect("a watch ended")
    }

    /// The next event's type, name and resourceVersion.
    pub async fn brief(&mut self) -> (String, String, u64) {
        brief(&self.event().await)
    }

    /// Reads in a task, so that simulated time can advance meanwhile.
    pub fn collect(mut self) -> Collected {
        let events = Arc::new(Mutex::new(Vec::new()));
        let task = self.env.clone().spawn("reader", {
            let events = events.clone();
            async move {
                while let Some(event) = self.next().await {
                    events.lock().push(event);
                }
            }
        });
        Collected { events, task }
    }
}

/// The events that a watch has sent so far.
pub struct Collected {
    events: Arc<Mutex<Vec<Value>>>,
    task: Task<()>,
}

impl Collected {
    /// The events since the last call.
    pub fn take(&self) -> Vec<Value> {
        std::mem::take(&mut *self.events.lock())
    }

    /// The types of the events since the last call.
    pub fn types(&self) -> Vec<String> {
        self.take().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// Whether the stream has ended.
    pub fn ended(&self) -> bool {
        self.task.is_finished()
    }
}

/// An event's type, name and resourceVersion.
pub fn brief(event: &Value) -> (String, String, u64) {
    let meta = &event["object"]["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&event["type"]), text(&meta["name"]), revision(&event["object"]))
}

/// The resourceVersion of an object or a list; 0 if there is none.
pub fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// The names of a list's objects.
pub fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().expect("a list");
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Polls until a condition holds.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let env = Env::system();
    let until = env.now() + HANG;
    while !holds().await {
        assert!(env.now() < until, "it never happened that {what}");
        env.sleep(Duration::from_millis(5)).await;
    }
}

/// A ConfigMap.
pub fn config_map(name: &str) -> Value {
    serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// The definition of a namespaced custom resource with any content: `things.{group}`.
pub fn definition(group: &str) -> Value {
    serde_json::json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group,
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}
