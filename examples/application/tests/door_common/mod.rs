//! A control plane with a door, and clients of it over sockets. The operator does not run, so only the test writes.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use application::{
    Application,
    door::{Door, DoorOptions},
};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use k1s::{
    CancellationToken, Client, Manager, ManagerOptions, ObjectKey, Runtime,
    controller::{changes::ChangesOptions, client::ApplyConfiguration, client::ClientOptions},
    env::{Env, Task},
};
use serde_json::{Value, json};
use tokio::net::TcpSocket;

/// Maximum duration of any wait; longer means a hang.
const HANG: Duration = Duration::from_secs(120);

pub(crate) struct World {
    env: Env,
    runtime: Runtime,
    client: Client,
    addresses: Vec<SocketAddr>,
    stop: CancellationToken,
    tasks: Vec<Task<()>>,
}

impl World {
    pub(crate) async fn start() -> World {
        World::with(None, ChangesOptions::default(), DoorOptions::default()).await
    }

    pub(crate) async fn with(folder: Option<&Path>, options: ChangesOptions, door: DoorOptions) -> World {
        let env = Env::system();
        let builder = Runtime::builder().env(env.clone());
        let runtime = match folder {
            Some(folder) => builder.disk(folder).start().await.unwrap(),
            None => builder.start().await.unwrap(),
        };
        runtime.install::<Application>().await.unwrap();
        let manager = Manager::new(&runtime, ManagerOptions::local()).unwrap();
        let client =
            Client::new(runtime.client(), ClientOptions { env: env.clone(), ..ClientOptions::default() });
        let changes = application::changes(&client, options).unwrap();
        let bound = Door::bind(0).unwrap();
        let addresses = bound.addresses();
        assert_eq!(bound.url(), format!("http://localhost:{}", addresses[0].port()));
        let stop = CancellationToken::new();
        let (recorder, token) = (changes.clone(), stop.clone());
        let recording = env.spawn("changes", async move { recorder.run(token).await });
        changes.ready().await;
        let token = stop.clone();
        let serving = env.spawn("door", async move { bound.serve(&manager, changes, door, token).await });
        World { env, runtime, client, addresses, stop, tasks: vec![recording, serving] }
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        for task in self.tasks {
            task.await.unwrap();
        }
        self.runtime.stop().await.unwrap();
    }

    pub(crate) fn port(&self) -> u16 {
        self.addresses[0].port()
    }

    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.send("GET", path, &Value::Null).await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> (StatusCode, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (code, text) = self.send_text(method, path, &[], &body).await;
        (code, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{method} {path}: {error}: {text}")))
    }

    pub(crate) async fn send_text(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (StatusCode, String) {
        let exchange = async {
            let (code, answer, _connection) =
                exchange(self.port(), method, path, headers, body).await.unwrap();
            let answer = answer.collect().await.unwrap().to_bytes();
            (code, String::from_utf8(answer.to_vec()).unwrap())
        };
        self.env.timeout(HANG, exchange).await.unwrap()
    }

    pub(crate) async fn watch(&self, path: &str, last_event_id: Option<u64>) -> Connection {
        Connection::open(self.port(), path, last_event_id).await.unwrap()
    }

    /// A metric of the door.
    async fn metric(&self, name: &str) -> usize {
        let (_, metrics) = self.send_text("GET", "/metrics", &[], "").await;
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name}: {metrics}")).parse().unwrap()
    }

    /// Waits until a metric of the door is as wanted.
    pub(crate) async fn until(&self, name: &str, wanted: impl Fn(usize) -> bool) {
        let reached = async { while !wanted(self.metric(name).await) {} };
        self.env.timeout(HANG, reached).await.unwrap_or_else(|_| panic!("{name} is never as expected"));
    }

    /// Writes an Application with a label and an annotation of some size; returns its revision.
    pub(crate) async fn write(&self, name: &str, size: &str, text: &str) -> u64 {
        let app = json!({
            "apiVersion": "cloudnative.elide.dev/v1", "kind": "Application",
            "metadata": {"name": name, "namespace": "default", "labels": {"size": size}, "annotations": {"text": text}},
            "spec": {"replicas": 1, "image": "nginx"},
        });
        let app: Application = serde_json::from_value(app).unwrap();
        let stored = self.client.apply_with(&ApplyConfiguration::of(&app), "test").await.unwrap();
        stored.metadata.resource_version.unwrap().parse().unwrap()
    }

    /// Deletes an Application; returns the revision of its deletion.
    pub(crate) async fn delete(&self, name: &str) -> u64 {
        self.client.delete::<Application>(&ObjectKey::namespaced("default", name)).await.unwrap();
        let recorded = async {
            loop {
                let (_, events) = self.get("/events?limit=1").await;
                let last = &events["items"][0];
                if last["type"] == "DELETED" && last["object"]["name"] == name {
                    return last["resourceVersion"].as_str().unwrap().parse().unwrap();
                }
            }
        };
        self.env.timeout(HANG, recorded).await.expect("a record of the deletion")
    }
}

async fn exchange(
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Option<(StatusCode, Incoming, Task<()>)> {
    let socket = TcpSocket::new_v4().unwrap();
    // A client that reads nothing is noticed soon.
    socket.set_recv_buffer_size(4096).unwrap();
    let stream = socket.connect((Ipv4Addr::LOCALHOST, port).into()).await.ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    let connection = Env::system().spawn("client", async move {
        let _ = connection.await;
    });
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", format!("localhost:{port}"));
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if !body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
    let response = sender.send_request(request).await.ok()?;
    Some((response.status(), response.into_body(), connection))
}

/// A server-sent event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) event: String,
    pub(crate) id: Option<u64>,
    pub(crate) data: Value,
}

/// A watch. Dropping it closes the connection.
pub(crate) struct Connection {
    body: Incoming,
    buffer: Vec<u8>,
    connection: Task<()>,
}

impl Connection {
    /// `None` if there is no server.
    pub(crate) async fn open(port: u16, path: &str, last_event_id: Option<u64>) -> Option<Connection> {
        let id = last_event_id.map(|id| id.to_string());
        let headers: Vec<(&str, &str)> = id.iter().map(|id| ("last-event-id", id.as_str())).collect();
        let (code, body, connection) = exchange(port, "GET", path, &headers, "").await?;
        assert_eq!(code, StatusCode::OK);
        Some(Connection { body, buffer: Vec::new(), connection })
    }

    /// The next event; `None` when the connection ends.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            let block = self.block().await?;
            if block.starts_with(':') {
                continue;
            }
            let field = |name: &str| {
                block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::to_owned)
            };
            return Some(Event {
                event: field("event").unwrap(),
                id: field("id").map(|id| id.parse().unwrap()),
                data: serde_json::from_str(&field("data").unwrap()).unwrap(),
            });
        }
    }

    /// Waits for a heartbeat.
    pub(crate) async fn heartbeat(&mut self) {
        while self.block().await.unwrap() != ": heartbeat" {}
    }

    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|two| two == b"\n\n") {
                let block = self.buffer.drain(..end + 2).collect::<Vec<u8>>();
                return Some(String::from_utf8(block[..end].to_vec()).unwrap());
            }
            let frame =
                Env::system().timeout(HANG, self.body.frame()).await.expect("an event or a heartbeat");
            if let Ok(data) = frame?.ok()?.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connection.abort();
    }
}
