//! One connection: made, kept alive, and measured.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{future::poll_fn, task::AtomicWaker};
use http::Uri;
use hyper::client::conn::http2;
use hyper_util::{
    client::legacy::connect::HttpConnector,
    rt::{TokioIo, TokioTimer},
};
use k1s_env::Env;
use kube::client::Body;
use rustls::pki_types::ServerName;
use tokio::{net::TcpStream, sync::oneshot};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tower::ServiceExt as _;

use crate::BoxError;

/// Pings on a connection without traffic, and how long their answers may take: as those of Go's client.
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// What a response and all responses of a connection may send ahead of their readers. A watch that nobody reads for a while
/// must not stop the others.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 1 << 28;
/// The limit of concurrent requests before the server has said what it is. Nothing is sent before.
const UNKNOWN: usize = usize::MAX / 2;

/// Why a server cannot be connected to.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("cannot connect to {server}: {source}")]
    Tcp { server: String, source: BoxError },
    #[error("the TLS handshake with {server} failed: {source}")]
    Tls { server: String, source: io::Error },
    #[error("{server} closed the connection before it was established: {source}")]
    Http2 { server: String, source: hyper::Error },
    #[error("{server} closed the connection before it was established")]
    Closed { server: String },
    #[error("{server} allows no requests on a connection")]
    NoRequests { server: String },
    #[error("{server} did not answer within {} s", .after.as_secs_f64())]
    TimedOut { server: String, after: Duration, source: io::Error },
}

/// Connects to a server.
pub(super) struct Dialer {
    pub(super) env: Env,
    pub(super) server: Uri,
    pub(super) name: ServerName<'static>,
    pub(super) tls: TlsConnector,
    pub(super) timeout: Option<Duration>,
}

/// What a server speaks.
#[derive(Clone)]
pub(super) enum Dialed {
    Http2(Arc<Connection>),
    Http1,
}

/// A connection and the requests on it.
pub(super) struct Connection {
    sender: http2::SendRequest<Body>,
    /// How many requests the server allows at a time.
    limit: Arc<AtomicUsize>,
    running: AtomicUsize,
}

impl Dialer {
    pub(super) async fn dial(&self) -> Result<Dialed, ConnectError> {
        let Some(after) = self.timeout else { return self.connect().await };
        let timed_out = |_| {
            let source = io::ErrorKind::TimedOut.into();
            ConnectError::TimedOut { server: self.server(), after, source }
        };
        self.env.timeout(after, self.connect()).await.map_err(timed_out)?
    }

    fn server(&self) -> String {
        self.server.authority().map_or_else(String::new, ToString::to_string)
    }

    async fn connect(&self) -> Result<Dialed, ConnectError> {
        let tcp: HttpConnector = super::tcp(self.timeout);
        let tcp = tcp.oneshot(self.server.clone()).await;
        let tcp = tcp.map_err(|source| ConnectError::Tcp { server: self.server(), source: source.into() })?;
        let tls = self.tls.connect(self.name.clone(), tcp.into_inner()).await;
        let tls = tls.map_err(|source| ConnectError::Tls { server: self.server(), source })?;
        if tls.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Ok(Dialed::Http1);
        }
        let progress = Arc::new(AtomicWaker::new());
        let handshake =
            http2::Builder::new(Executor { env: self.env.clone(), progress: Arc::clone(&progress) })
                .timer(TokioTimer::new())
                .keep_alive_interval(PING_AFTER)
                .keep_alive_timeout(PING_TIMEOUT)
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .initial_max_send_streams(UNKNOWN)
                .handshake(TokioIo::new(tls))
                .await;
        let (sender, io) =
            handshake.map_err(|source| ConnectError::Http2 { server: self.server(), source })?;
        let limit = Arc::new(AtomicUsize::new(UNKNOWN));
        let (established, wait) = oneshot::channel();
        let driver = Driver { io, limit: Arc::clone(&limit), progress, established: Some(established) };
        drop(self.env.spawn("http2-requests", driver));
        wait.await.map_err(|_| ConnectError::Closed { server: self.server() })?;
        if limit.load(Ordering::Relaxed) == 0 {
            return Err(ConnectError::NoRequests { server: self.server() });
        }
        Ok(Dialed::Http2(Arc::new(Connection { sender, limit, running: AtomicUsize::new(0) })))
    }
}

impl Connection {
    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Takes a place for a request, if there is one. The caller serializes calls.
    pub(super) fn enter(&self) -> bool {
        if self.running.load(Ordering::Relaxed) >= self.limit.load(Ordering::Relaxed) {
            return false;
        }
        self.running.fetch_add(1, Ordering::Relaxed);
        true
    }

    pub(super) fn leave(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn sender(&self) -> http2::SendRequest<Body> {
        self.sender.clone()
    }
}

/// Sends the requests of a connection, until nobody has a sender any more or it fails: requests on it fail with the reason.
struct Driver {
    io: http2::Connection<TokioIo<TlsStream<TcpStream>>, Body, Executor>,
    limit: Arc<AtomicUsize>,
    progress: Arc<AtomicWaker>,
    established: Option<oneshot::Sender<()>>,
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.established.is_some() {
            self.progress.register(cx.waker());
        }
        let done = Pin::new(&mut self.io).poll(cx);
        let limit = self.io.current_max_send_streams();
        self.limit.store(limit, Ordering::Relaxed);
        if limit != UNKNOWN
            && let Some(established) = self.established.take()
        {
            // Fails if nobody waits any more, who would then not use the connection either.
            established.send(()).ok();
        }
        done.map(drop)
    }
}

/// Spawns the tasks of a connection in the environment, so that they are tracked.
#[derive(Clone)]
struct Executor {
    env: Env,
    /// Whoever waits for the server's settings. The task that reads them does not say so.
    progress: Arc<AtomicWaker>,
}

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn execute(&self, task: F) {
        let progress = Arc::clone(&self.progress);
        let mut task = Box::pin(task);
        let observed = poll_fn(move |cx| {
            let result = task.as_mut().poll(cx);
            progress.wake();
            result
        });
        drop(self.env.spawn("http2-connection", observed));
    }
}
