//! The HTTP door: the operator and its control plane for curl and for browsers, on this machine only.
//!
//! Plain HTTP without a token, so it listens on the loopback interface, and refuses requests that a web page elsewhere has
//! caused. Everything in it uses the public API: requests go to the control plane in process, changes come from
//! [`Changes`].
//!
//! - `access`: which requests are let in.
//! - `api`: the API, with two courtesies.
//! - `watch`, `events`: changes as they happen, and those that were recorded.
//! - `pages`: what there is, and the definition.

mod access;
mod api;
mod events;
mod pages;
mod respond;
mod stall;
mod watch;

use std::{
    convert::Infallible,
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use k1s::{
    CancellationToken, Client, Manager,
    controller::{
        changes::Changes,
        endpoint::{Checks, prometheus_text},
    },
    env::Env,
    server::Status,
};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::Semaphore,
};

use respond::{Body, TEXT, failure, respond};
use stall::Stall;
use watch::Clients;

/// Options of the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoorOptions {
    /// Interval between the heartbeats of a watch without events.
    pub heartbeat: Duration,
    /// Maximum number of connections; more wait.
    pub connections: usize,
    /// A connection whose client reads nothing for this long is closed.
    pub write_timeout: Duration,
}

impl Default for DoorOptions {
    fn default() -> DoorOptions {
        let (heartbeat, write_timeout) = (Duration::from_secs(15), Duration::from_secs(30));
        DoorOptions { heartbeat, connections: 2048, write_timeout }
    }
}

/// Maximum time to receive the head of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum bytes that are buffered of a connection, beyond the parts of one event.
const BUFFER: usize = 64 << 10;
/// Bytes that the system buffers of a connection.
const SEND_BUFFER: u32 = 128 << 10;
/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;
/// Time for requests in flight when the door closes.
const CLOSING: Duration = Duration::from_secs(1);

/// The door, bound to its port. Requests are answered in [`serve`](Self::serve).
pub struct Door {
    listener: TcpListener,
    address: SocketAddr,
    /// On the same port of `[::1]`, where some clients look for `localhost` first.
    other: Option<TcpListener>,
}

/// What requests are answered with.
struct Inside {
    env: Env,
    url: String,
    api: kube::Client,
    client: Client,
    manager: Manager,
    changes: Changes,
    clients: Arc<Clients>,
    options: DoorOptions,
}

impl Door {
    /// Listens on a port of the loopback interface: on `127.0.0.1`, and on `[::1]` if the machine has it and the port is free
    /// there.
    ///
    /// # Errors
    /// If the port of `127.0.0.1` is in use.
    pub fn bind(port: u16) -> io::Result<Door> {
        let listener = listen((Ipv4Addr::LOCALHOST, port).into())?;
        let address = listener.local_addr()?;
        let other = listen((Ipv6Addr::LOCALHOST, address.port()).into());
        let other = other.inspect_err(|error| tracing::debug!(%error, "not listening on [::1]")).ok();
        Ok(Door { listener, address, other })
    }

    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let other = self.other.as_ref().and_then(|listener| listener.local_addr().ok());
        [Some(self.address), other].into_iter().flatten().collect()
    }

    /// The next connection, on either address.
    async fn accept(&self) -> io::Result<TcpStream> {
        let other = async {
            match &self.other {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        let (stream, _) = tokio::select! {
            accepted = self.listener.accept() => accepted?,
            accepted = other => accepted?,
        };
        Ok(stream)
    }

    /// `http://localhost:3000`
    #[must_use]
    pub fn url(&self) -> String {
        access::url(self.address)
    }

    /// Serves until `stop` is cancelled: the API of the manager's control plane, and the changes. The first of the recorded
    /// kinds is what `/watch` shows by default.
    pub async fn serve(
        self,
        manager: &Manager,
        changes: Changes,
        options: DoorOptions,
        stop: CancellationToken,
    ) {
        let env = manager.env().clone();
        let inside = Arc::new(Inside {
            env: env.clone(),
            url: self.url(),
            api: manager.kube_client(),
            client: manager.client().without_cache(),
            manager: manager.clone(),
            changes: changes.clone(),
            clients: Arc::default(),
            options,
        });
        let sweep = env.spawn("slow clients", inside.clients.clone().drop_slow(changes));
        let permits = Arc::new(Semaphore::new(options.connections));
        let graceful = GracefulShutdown::new();
        // Cancelled when `serve` returns: closes what is still open.
        let over = CancellationToken::new();
        let _over = over.clone().drop_guard();
        let accept = async {
            loop {
                let Ok(permit) = permits.clone().acquire_owned().await else { return };
                match self.accept().await {
                    Ok(stream) => {
                        let connection = over.child_token();
                        let stream = Stall::new(stream, env.clone(), options.write_timeout);
                        let served = serve_connection(inside.clone(), stream, connection.clone());
                        let served = graceful.watch(served);
                        drop(env.spawn("door", async move {
                            if let Some(Err(error)) = connection.run_until_cancelled(served).await {
                                tracing::debug!(%error, "a connection ended with an error");
                            }
                            drop(permit);
                        }));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        env.sleep(Duration::from_millis(20)).await;
                    }
                }
            }
        };
        stop.run_until_cancelled(accept).await;
        sweep.abort();
        let _ = env.timeout(CLOSING, graceful.shutdown()).await;
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address.ip() {
        IpAddr::V4(_) => TcpSocket::new_v4()?,
        IpAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Another process may have used the port a moment ago.
    socket.set_reuseaddr(!cfg!(windows))?;
    // Connections inherit it. By default, the system holds megabytes for a client that reads nothing.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn serve_connection(
    inside: Arc<Inside>,
    stream: Stall<TcpStream>,
    connection: CancellationToken,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> {
    let service = service_fn(move |request| {
        let (inside, connection) = (inside.clone(), connection.clone());
        async move { Ok::<_, Infallible>(inside.answer(request, &connection).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service)
}

impl Inside {
    /// Boxed: the compiler cannot prove for all lifetimes that the future is `Send`.
    fn answer<'a>(
        &'a self,
        request: Request<Incoming>,
        connection: &'a CancellationToken,
    ) -> BoxFuture<'a, Response<Body>> {
        Box::pin(self.route(request, connection))
    }

    async fn route(&self, request: Request<Incoming>, connection: &CancellationToken) -> Response<Body> {
        if let Err(status) = access::check(request.method(), request.uri(), request.headers()) {
            return failure(&status);
        }
        let (path, query) = (request.uri().path(), request.uri().query());
        let headers = request.headers();
        let is_own =
            matches!(path, "/" | "/crd" | "/metrics" | "/watch" | "/events" | "/healthz" | "/readyz");
        if is_own && !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = failure(&Status::method_not_allowed());
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let answered = match path {
            "/" => Ok(pages::root(&self.url, headers)),
            "/crd" => pages::crd(query, headers),
            "/metrics" => self.metrics().await,
            "/healthz" => Ok(pages::checks(&failures(self.manager.healthz()).await, "healthz")),
            "/readyz" => Ok(pages::checks(&self.unready().await, "readyz")),
            "/events" => match events::Query::parse(query, &self.env) {
                Ok(query) if query.is_of_controller() => query.reported(self.client.live()).await,
                Ok(query) => query.recorded(&self.changes),
                Err(status) => Err(status),
            },
            "/watch" => {
                let context = watch::Context {
                    env: &self.env,
                    changes: &self.changes,
                    clients: &self.clients,
                    heartbeat: self.options.heartbeat,
                    connection,
                };
                watch::answer(&context, query, headers)
            }
            _ => return api::answer(&self.api, request).await,
        };
        answered.unwrap_or_else(|status| failure(&status))
    }

    async fn unready(&self) -> Vec<(Arc<str>, String)> {
        let mut failures = failures(self.manager.readyz()).await;
        if !self.changes.is_ready() {
            failures.push(("changes".into(), "the objects are being listed".to_owned()));
        }
        failures
    }

    /// The metrics of the manager, of the control plane and of the door.
    async fn metrics(&self) -> Result<Response<Body>, Status> {
        let (clients, dropped) = self.clients.count();
        let mut text = prometheus_text(self.manager.metrics());
        text.push_str(&format!(
            "# HELP door_watch_clients Clients of /watch that are connected.\n# TYPE door_watch_clients gauge\n\
             door_watch_clients {clients}\n\
             # HELP door_watch_dropped_total Clients of /watch that were dropped because they were too slow.\n\
             # TYPE door_watch_dropped_total counter\ndoor_watch_dropped_total {dropped}\n"
        ));
        let request = Request::get("/metrics").body(kube::client::Body::empty()).map_err(Status::internal)?;
        let server = api::call(&self.api, request).await?;
        let server = server.into_body().collect().await.map_err(Status::internal)?.to_bytes();
        text.push_str(&String::from_utf8_lossy(&server));
        Ok(respond(StatusCode::OK, TEXT, text))
    }
}

/// Boxed, as [`Inside::answer`].
fn failures(checks: &Checks) -> BoxFuture<'_, Vec<(Arc<str>, String)>> {
    Box::pin(checks.failures())
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("address", &self.address).finish_non_exhaustive()
    }
}
