//! Requests to a cluster of etcd members: one at a time, the next when it fails.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream};
use k1s_env::Env;
use prost::Message;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tonic::{
    Request, Status, Streaming,
    client::Grpc,
    codegen::http::uri::PathAndQuery,
    metadata::MetadataValue,
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity},
};
use tonic_prost::ProstCodec;

use crate::{
    connections::Connections,
    failure::Failure,
    options::{ConnectError, EtcdOptions, TlsOptions},
    proto,
};

/// Minimum number of attempts at an idempotent request; more if there are more endpoints.
const READ_ATTEMPTS: usize = 3;

/// Pause before an endpoint is tried again.
const PAUSE: Duration = Duration::from_millis(50);

/// Connections to the members of a cluster, one for each, made when they are needed. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    env: Env,
    members: Vec<Channel>,
    /// The member in use.
    current: AtomicUsize,
    timeout: Duration,
    stop: CancellationToken,
}

impl Client {
    /// A client with its own connections. Cancelling `stop` ends everything under way.
    pub(crate) fn new(
        env: &Env,
        options: &EtcdOptions,
        connections: &Connections,
        stop: CancellationToken,
    ) -> Result<Self, ConnectError> {
        let members = options
            .endpoints
            .iter()
            .map(|endpoint| Ok(configure(endpoint, options)?.executor(connections.clone()).connect_lazy()))
            .collect::<Result<_, ConnectError>>()?;
        Ok(Self {
            inner: Arc::new(Inner {
                env: env.clone(),
                members,
                current: AtomicUsize::new(0),
                timeout: options.request_timeout,
                stop,
            }),
        })
    }

    /// Sends an idempotent request, and retries it while there is time.
    pub(crate) async fn read<Q, A>(&self, path: &'static str, request: &Q) -> Result<A, Failure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let Inner { env, members, timeout, .. } = &*self.inner;
        let deadline = env.now() + *timeout;
        let attempts = READ_ATTEMPTS.max(members.len() + 1);
        let mut attempt = 1;
        loop {
            let left = deadline - env.now();
            // A member that hangs must leave time to try another.
            let share = if members.len() > 1 && attempt < attempts { left / 2 } else { left };
            match self.unary(path, request.clone(), share).await {
                Err(failure) if failure.may_pass() && attempt < attempts && env.now() < deadline => {
                    tracing::debug!(path, attempt, ?failure, "asking etcd again");
                    if attempt >= members.len() {
                        env.sleep(PAUSE.min(deadline - env.now())).await;
                    }
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// Sends a request that must not be carried out twice: it is sent to another member only if it certainly was not.
    pub(crate) async fn write<Q, A>(&self, path: &'static str, request: &Q) -> Result<A, Failure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let Inner { env, members, timeout, .. } = &*self.inner;
        let deadline = env.now() + *timeout;
        let mut attempt = 1;
        loop {
            match self.unary(path, request.clone(), deadline - env.now()).await {
                Err(Failure::NotSent(reason)) if attempt < members.len() && env.now() < deadline => {
                    tracing::debug!(path, attempt, reason, "trying another member of etcd");
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// Opens a watch at the first member that accepts it; the first response says that it was created, or why not.
    pub(crate) async fn watch(&self, create: proto::WatchCreateRequest) -> Result<WatchStream, Failure> {
        let mut attempt = 1;
        loop {
            match self.open_watch(create.clone()).await {
                Err(failure) if failure.may_pass() && attempt < self.inner.members.len() => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    async fn open_watch(&self, create: proto::WatchCreateRequest) -> Result<WatchStream, Failure> {
        let (open, closed) = oneshot::channel::<()>();
        let create = proto::WatchRequest { request_union: Some(proto::WatchRequestUnion::Create(create)) };
        // The stream of requests ends when the watch is dropped, and with it the exchange. A stream that
        // never ends would keep it open, with etcd sending responses that are not read.
        let requests = stream::iter([create]).chain(
            stream::once(async move {
                let _ = closed.await;
            })
            .filter_map(|()| async { None }),
        );
        let path = PathAndQuery::from_static(proto::WATCH);
        let (member, mut grpc) = self.member();
        let exchange = async {
            ready(&mut grpc).await?;
            let codec = ProstCodec::<proto::WatchRequest, proto::WatchResponse>::default();
            Ok(grpc.streaming(with_leader(requests), path, codec).await?.into_inner())
        };
        let responses = self.guard(member, self.inner.timeout, exchange).await?;
        Ok(WatchStream { responses, client: self.clone(), member, _open: open })
    }

    async fn unary<Q, A>(&self, path: &'static str, request: Q, timeout: Duration) -> Result<A, Failure>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let (member, mut grpc) = self.member();
        let exchange = async {
            ready(&mut grpc).await?;
            let path = PathAndQuery::from_static(path);
            let codec = ProstCodec::<Q, A>::default();
            Ok(grpc.unary(with_leader(request), path, codec).await?.into_inner())
        };
        self.guard(member, timeout, exchange).await
    }

    /// Bounds an exchange, and moves on to the next member if this one could not do it.
    async fn guard<A>(
        &self,
        member: usize,
        timeout: Duration,
        exchange: impl Future<Output = Result<A, Status>>,
    ) -> Result<A, Failure> {
        let Inner { env, stop, .. } = &*self.inner;
        let outcome = tokio::select! {
            biased;
            () = stop.cancelled() => return Err(Failure::Closed),
            outcome = env.timeout(timeout, exchange) => outcome,
        };
        let failure = match outcome {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(status)) => Failure::of(&status),
            Err(_) => Failure::Lost(format!("no answer from etcd within {timeout:?}")),
        };
        if failure.may_pass() {
            self.pass_over(member);
        }
        Err(failure)
    }

    fn member(&self) -> (usize, Grpc<Channel>) {
        let members = &self.inner.members;
        let member = self.inner.current.load(Ordering::Relaxed) % members.len();
        // Ranges of large values exceed any usual limit.
        (member, Grpc::new(members[member].clone()).max_decoding_message_size(usize::MAX))
    }

    /// Switches to another member, unless another request has done so already.
    fn pass_over(&self, member: usize) {
        let next = (member + 1) % self.inner.members.len();
        let _ = self.inner.current.compare_exchange(member, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// An open upstream watch.
pub(crate) struct WatchStream {
    responses: Streaming<proto::WatchResponse>,
    client: Client,
    member: usize,
    /// Ends the stream of requests when dropped.
    _open: oneshot::Sender<()>,
}

impl WatchStream {
    /// The next response. After an error there are no more.
    pub(crate) async fn next(&mut self) -> Result<proto::WatchResponse, Failure> {
        let outcome = tokio::select! {
            biased;
            () = self.client.inner.stop.cancelled() => return Err(Failure::Closed),
            outcome = self.responses.message() => outcome,
        };
        let failure = match outcome {
            Ok(Some(response)) => return Ok(response),
            Ok(None) => Failure::Lost("etcd ended the watch".into()),
            Err(status) => Failure::of(&status),
        };
        self.client.pass_over(self.member);
        Err(failure)
    }
}

async fn ready(grpc: &mut Grpc<Channel>) -> Result<(), Status> {
    grpc.ready().await.map_err(|error| Status::from_error(Box::new(error)))
}

/// Asks etcd to refuse at once when the member has no leader, instead of letting the request wait.
fn with_leader<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
    request
}

fn configure(endpoint: &str, options: &EtcdOptions) -> Result<Endpoint, ConnectError> {
    let not_one = |reason: String| ConnectError::Endpoint { endpoint: endpoint.into(), reason };
    let configured = Endpoint::from_shared(endpoint.to_owned())
        .map_err(|error| not_one(error.to_string()))?
        .connect_timeout(options.connect_timeout)
        .http2_keep_alive_interval(options.keep_alive)
        .keep_alive_timeout(options.keep_alive / 2)
        .keep_alive_while_idle(true);
    if configured.uri().host().is_none() {
        return Err(not_one("it names no host".into()));
    }
    match configured.uri().scheme_str() {
        Some("http") => Ok(configured),
        Some("https") => {
            let tls = options.tls.as_ref().ok_or_else(|| ConnectError::Tls {
                reason: format!("{endpoint:?} needs a certificate authority to trust, and none is given"),
            })?;
            let config = tls_config(tls, options.connect_timeout)?;
            configured.tls_config(config).map_err(|error| ConnectError::Tls { reason: describe(&error) })
        }
        _ => Err(not_one("it must begin with http:// or https://".into())),
    }
}

fn tls_config(tls: &TlsOptions, timeout: Duration) -> Result<ClientTlsConfig, ConnectError> {
    if tls.ca.is_empty() {
        return Err(ConnectError::Tls { reason: "the certificate authority to trust is empty".into() });
    }
    let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.ca)).timeout(timeout);
    if let Some(identity) = &tls.identity {
        config = config.identity(Identity::from_pem(&identity.certificate, &identity.key));
    }
    if let Some(domain) = &tls.domain {
        config = config.domain_name(domain);
    }
    Ok(config)
}

/// An error with its causes.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("members", &self.inner.members.len()).finish_non_exhaustive()
    }
}
