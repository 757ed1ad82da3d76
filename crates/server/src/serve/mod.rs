//! Listeners and connections: HTTP and HTTPS, HTTP/1.1 and HTTP/2.

mod answer;
mod connections;
mod guarded;
#[cfg(feature = "tls")]
mod sni;
#[cfg(feature = "tls")]
mod suites;
#[cfg(feature = "tls")]
mod tls;

use std::{
    future::{Future as _, poll_fn},
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use futures_util::future::BoxFuture;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use k1s_env::{Env, Instant, Sleep};
use tokio::net::TcpListener;

use crate::{ApiServer, audit::Remote, limits::ConnectionOptions};
use answer::{ConnectionService, StreamExecutor};
use connections::{CloseSignal, Connections};
use guarded::Guarded;
#[cfg(feature = "tls")]
pub use sni::NamedCertificate;
#[cfg(feature = "tls")]
pub use suites::{TlsNameError, TlsProtocol, TlsVersion};
#[cfg(feature = "tls")]
pub use tls::{ClientTrust, ServedCertificate, TlsOptions};

/// A bound address, with or without TLS.
pub struct Listener {
    socket: TcpListener,
    #[cfg(feature = "tls")]
    tls: Option<ServedCertificate>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Listener {
    /// Plain HTTP.
    pub async fn http(address: SocketAddr) -> io::Result<Listener> {
        let socket = TcpListener::bind(address).await?;
        Ok(Listener {
            socket,
            #[cfg(feature = "tls")]
            tls: None,
        })
    }

    /// The address it listens at.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

/// Minimum interval between log messages about connections that are not accepted.
const REJECTION_LOG_INTERVAL: Duration = Duration::from_secs(10);
/// Delay after a failed accept.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(20);
/// Maximum size of the part of an HTTP/2 response that waits to be sent: a client may have many responses that it does not
/// read. Two frames, so that the next one is ready when one is sent.
const SEND_BUFFER_BYTES: usize = 2 * answer::MAX_FRAME_BYTES;
/// Time for a closing connection to notify its client.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// Serves until [`ApiServer::shutdown`] is called: then watches end, requests in flight are answered, and this returns.
pub async fn serve(server: ApiServer, listener: Listener) -> io::Result<()> {
    run(server, listener).await
}

#[inline(never)]
fn run(server: ApiServer, listener: Listener) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(accept_loop(server, listener))
}

async fn accept_loop(server: ApiServer, listener: Listener) -> io::Result<()> {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    let env = server.env().clone();
    let options = server.connection_options().clone();
    let connections = Connections::new(&env, &options);
    let http = Arc::new(protocols(&env, &options));
    let stopped = server.stopped().clone();
    let mut rejections = RejectionLog::default();
    let mut sweep_at = env.now() + connections.sweep_interval();
    loop {
        let accepted = tokio::select! {
            accepted = listener.socket.accept() => accepted,
            () = stopped.cancelled() => break,
            () = env.sleep_until(sweep_at) => {
                connections.sweep();
                sweep_at = env.now() + connections.sweep_interval();
                continue;
            }
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            // The client disconnected before the accept.
            Err(error) if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) => {
                continue;
            }
            Err(error) => {
                // Out of file descriptors, or of memory.
                rejections.warn(&env, &error);
                connections.close_idle();
                env.sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        let Some(entry) = connections.open(address.ip()) else {
            rejections.warn(
                &env,
                &format_args!(
                    "the limit of {} connections, or of {} for {}, is reached, and none is idle",
                    options.max,
                    options.max_per_peer,
                    address.ip()
                ),
            );
            continue;
        };
        let _ = stream.set_nodelay(true);
        let stream = Guarded::new(&env, stream, entry.connection.clone(), options.write_timeout);
        #[cfg(feature = "tls")]
        let tls = listener.tls.as_ref().map(ServedCertificate::current);
        #[cfg_attr(not(feature = "tls"), expect(unused_mut, reason = "certificates come with TLS"))]
        let mut service = ConnectionService {
            server: server.clone(),
            connection: entry.connection.clone(),
            peer: None,
            remote: Remote(address.ip()),
        };
        let (http, task_env) = (http.clone(), env.clone());
        let task = env.spawn("connection", async move {
            let _entry = entry;
            #[cfg(feature = "tls")]
            if let Some(tls) = tls {
                let accepted = tls::accept(tls.acceptor(), stream, &service.connection).await;
                let Some(stream) = accepted else { return };
                service.peer = tls.peer(&task_env, &stream).map(Arc::new);
                return serve_connection(&task_env, service, &http, stream).await;
            }
            serve_connection(&task_env, service, &http, stream).await;
        });
        drop(task);
    }
    drop(listener);
    connections.stop();
    if env.timeout(options.shutdown_timeout, connections.ended()).await.is_err() {
        tracing::warn!("requests were still in flight at the shutdown timeout; closing their connections");
        connections.close_all();
        let _ = env.timeout(CLOSE_GRACE, connections.ended()).await;
    }
    Ok(())
}

fn protocols(env: &Env, options: &ConnectionOptions) -> auto::Builder<StreamExecutor> {
    let mut http =
        auto::Builder::new(StreamExecutor { env: env.clone(), write_timeout: options.write_timeout });
    let head = usize::try_from(options.max_header_bytes).unwrap_or(usize::MAX);
    // The sweep enforces the head timeout, because idle connections are allowed to wait longer than that.
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_headers(options.max_headers)
        .max_buf_size(head.max(64 << 10));
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(options.max_streams)
        .max_header_list_size(options.max_header_bytes)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    http
}

/// Logs why connections are not accepted, at a limited rate.
#[derive(Default)]
struct RejectionLog {
    last: Option<Instant>,
    suppressed: u64,
}

impl RejectionLog {
    fn warn(&mut self, env: &Env, error: &dyn std::fmt::Display) {
        let now = env.now();
        if self.last.is_some_and(|last| now - last < REJECTION_LOG_INTERVAL) {
            self.suppressed += 1;
            return;
        }
        tracing::warn!(%error, suppressed = self.suppressed, "a connection could not be accepted");
        *self = RejectionLog { last: Some(now), suppressed: 0 };
    }
}

/// Answers the requests of a connection until it ends or is closed.
async fn serve_connection<S>(
    env: &Env,
    service: ConnectionService,
    http: &auto::Builder<StreamExecutor>,
    stream: S,
) where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let state = service.connection.clone();
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let mut known = CloseSignal::None;
    // When the connection is dropped, if it is idle by then.
    let mut cut: Option<Sleep> = None;
    poll_fn(|cx| {
        loop {
            let signal = state.signal(cx);
            if signal > known {
                // There is no request to answer, or the time to answer it has passed.
                if signal == CloseSignal::Close && (known == CloseSignal::Drain || !state.has_served()) {
                    return Poll::Ready(());
                }
                known = signal;
                connection.as_mut().graceful_shutdown();
                cut = Some(env.sleep(CLOSE_GRACE));
            }
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended with an error");
                }
                return Poll::Ready(());
            }
            let Some(over) = &mut cut else { return Poll::Pending };
            if Pin::new(over).poll(cx).is_pending() {
                return Poll::Pending;
            }
            // A request that arrived after the signal is still answered.
            if state.is_idle() {
                return Poll::Ready(());
            }
            cut = Some(env.sleep(CLOSE_GRACE));
        }
    })
    .await;
}
