//! `v2.KeyManagementService` over gRPC on a Unix socket.
//!
//! The messages are written by hand, so that building needs no protobuf compiler.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hyper_util::rt::TokioIo;
use k1s_env::{Env, Task};
use prost::Message;
use tokio::net::UnixStream;
use tonic::{
    Code, Request, Status,
    client::Grpc,
    codegen::http::uri::PathAndQuery,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;
use tower::service_fn;

use super::envelope::EncryptedObject;
use crate::error::Failure;

/// Pause before a socket that nobody listens at is tried again.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct StatusRequest {}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct StatusResponse {
    #[prost(string, tag = "1")]
    pub(super) version: String,
    #[prost(string, tag = "2")]
    pub(super) healthz: String,
    #[prost(string, tag = "3")]
    pub(super) key_id: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct DecryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    uid: String,
    #[prost(string, tag = "3")]
    key_id: String,
    #[prost(btree_map = "string, bytes", tag = "4")]
    annotations: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    plaintext: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct EncryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    plaintext: Vec<u8>,
    #[prost(string, tag = "2")]
    uid: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct EncryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(super) key_id: String,
    #[prost(btree_map = "string, bytes", tag = "3")]
    pub(super) annotations: BTreeMap<String, Vec<u8>>,
}

/// A connection to a plugin, made when it is needed.
pub(super) struct Service {
    env: Env,
    channel: Channel,
    connections: Connections,
    timeout: Duration,
}

impl Service {
    /// `endpoint`: `unix:///path`, or `unix:///@name` for an abstract socket.
    pub(super) fn new(env: &Env, endpoint: &str, timeout: Duration) -> Result<Service, String> {
        let rest = endpoint.split_once(':').map_or("", |(_, rest)| rest);
        // `//host/path`; the host counts for nothing.
        let path = match rest.strip_prefix("//") {
            Some(rest) => rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default(),
            None => rest,
        };
        let path = match path.strip_prefix("/@") {
            Some(name) => format!("\0{name}"),
            None => path.to_owned(),
        };
        let connect = service_fn(move |_| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        let connections = Connections { env: env.clone(), tasks: Arc::new(Mutex::new(Some(Vec::new()))) };
        let channel = Endpoint::from_static("http://localhost")
            .executor(connections.clone())
            .connect_with_connector_lazy(connect);
        Ok(Service { env: env.clone(), channel, connections, timeout })
    }

    /// Ends its connections; no new ones are made.
    pub(super) fn close(&self) {
        let tasks = self.connections.tasks.lock().unwrap_or_else(PoisonError::into_inner).take();
        tasks.unwrap_or_default().iter().for_each(Task::abort);
    }

    pub(super) async fn status(&self) -> Result<StatusResponse, Failure> {
        self.call("/v2.KeyManagementService/Status", StatusRequest {}).await
    }

    pub(super) async fn encrypt(&self, plaintext: Vec<u8>, uid: String) -> Result<EncryptResponse, Failure> {
        self.call("/v2.KeyManagementService/Encrypt", EncryptRequest { plaintext, uid }).await
    }

    /// The key or seed of a stored value.
    pub(super) async fn decrypt(&self, object: &EncryptedObject, uid: String) -> Result<Vec<u8>, Failure> {
        let request = DecryptRequest {
            ciphertext: object.source.clone(),
            uid,
            key_id: object.key_id.clone(),
            annotations: object.annotations.clone(),
        };
        let answer: DecryptResponse = self.call("/v2.KeyManagementService/Decrypt", request).await?;
        Ok(answer.plaintext)
    }

    /// Calls a method; waits for a plugin that does not listen yet.
    async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Failure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let deadline = self.env.now() + self.timeout;
        let attempts = async {
            loop {
                match self.once(path, request.clone()).await {
                    Err(status) if status.code() == Code::Unavailable => {
                        if self.env.now() + PAUSE > deadline {
                            return Err(status);
                        }
                        self.env.sleep(PAUSE).await;
                    }
                    outcome => return outcome,
                }
            }
        };
        match self.env.timeout(self.timeout, attempts).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(status)) => Err(failure(&status)),
            Err(_) => Err(Failure::Service(format!(
                "rpc error: code = DeadlineExceeded desc = no answer within {:?}",
                self.timeout
            ))),
        }
    }

    async fn once<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let codec = ProstCodec::<Q, A>::default();
        Ok(grpc.unary(Request::new(request), PathAndQuery::from_static(path), codec).await?.into_inner())
    }
}

/// What the plugin's error means for the value. Many plugins have no codes: only what is certainly about the value is.
fn failure(status: &Status) -> Failure {
    let text = format!("rpc error: code = {:?} desc = {}", status.code(), status.message());
    match status.code() {
        Code::InvalidArgument
        | Code::NotFound
        | Code::FailedPrecondition
        | Code::DataLoss
        | Code::OutOfRange => Failure::Value(text),
        _ => Failure::Service(text),
    }
}

/// Runs the tasks of connections, and keeps their handles to end them.
#[derive(Clone)]
struct Connections {
    env: Env,
    /// `None` when closed.
    tasks: Arc<Mutex<Option<Vec<Task<()>>>>>,
}

impl hyper::rt::Executor<Pin<Box<dyn Future<Output = ()> + Send>>> for Connections {
    fn execute(&self, work: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tasks) = tasks.as_mut() else { return };
        tasks.retain(|task| !task.is_finished());
        tasks.push(self.env.spawn("kms-connection", work));
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.close();
    }
}
