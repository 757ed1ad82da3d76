//! The door to the network: HTTP and HTTPS, HTTP/1.1 and HTTP/2.

mod answer;
mod connections;
mod guarded;
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

use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use k1s_env::{Env, Instant, Sleep};
use tokio::net::TcpListener;

use crate::{ApiServer, limits::ConnectionOptions};
use answer::{Attended, Streams};
use connections::{Connections, Told};
use guarded::Guarded;
#[cfg(feature = "tls")]
pub use tls::ServedCertificate;

/// Where a server listens.
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

/// How often it is said that connections cannot be taken, while they cannot.
const COMPLAINTS: Duration = Duration::from_secs(10);
/// How long to wait before the next attempt.
const AGAIN: Duration = Duration::from_millis(20);
/// A connection that is told to close has this long to say so to its client.
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves until [`ApiServer::shutdown`] is called: then watches end, requests under way are answered, and this returns.
pub async fn serve(server: ApiServer, listener: Listener) -> io::Result<()> {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    let env = server.env().clone();
    let options = server.connection_options().clone();
    let connections = Connections::new(&env, &options);
    let http = Arc::new(protocols(&env, &options));
    let stopped = server.stopped().clone();
    let mut complaints = Complaints::default();
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
        let stream = match accepted {
            Ok((stream, _)) => stream,
            // One that was gone before it was taken.
            Err(error) if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) => {
                continue;
            }
            Err(error) => {
                // Out of file descriptors, or of memory.
                complaints.tell(&env, &error);
                connections.close_oldest_idle();
                env.sleep(AGAIN).await;
                continue;
            }
        };
        let Some(entry) = connections.open() else {
            complaints.tell(&env, &format_args!("there are {} already, and all are in use", options.max));
            continue;
        };
        let _ = stream.set_nodelay(true);
        let stream = Guarded::new(&env, stream, entry.connection.clone(), options.write_timeout);
        #[cfg(feature = "tls")]
        let acceptor = listener.tls.as_ref().map(ServedCertificate::acceptor);
        let attended = Attended { server: server.clone(), connection: entry.connection.clone() };
        let (http, task_env) = (http.clone(), env.clone());
        let task = env.spawn("connection", async move {
            let _entry = entry;
            #[cfg(feature = "tls")]
            if let Some(acceptor) = acceptor {
                let Some(stream) = tls::accept(acceptor, stream, &attended.connection).await else { return };
                return converse(&task_env, attended, &http, stream).await;
            }
            converse(&task_env, attended, &http, stream).await;
        });
        drop(task);
    }
    drop(listener);
    connections.stop();
    if env.timeout(options.shutdown_timeout, connections.ended()).await.is_err() {
        tracing::warn!("some requests did not end in time");
        connections.close_all();
        let _ = env.timeout(FAREWELL, connections.ended()).await;
    }
    Ok(())
}

fn protocols(env: &Env, options: &ConnectionOptions) -> auto::Builder<Streams> {
    let mut http = auto::Builder::new(Streams { env: env.clone(), patience: options.write_timeout });
    let head = usize::try_from(options.max_header_bytes).unwrap_or(usize::MAX);
    // Heads that do not come are the sweep's concern, which lets a connection be idle for longer than that.
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_headers(options.max_headers)
        .max_buf_size(head.max(64 << 10));
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(options.max_streams)
        .max_header_list_size(options.max_header_bytes)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    http
}

/// Says why connections cannot be taken, once in a while.
#[derive(Default)]
struct Complaints {
    last: Option<Instant>,
    untold: u64,
}

impl Complaints {
    fn tell(&mut self, env: &Env, error: &dyn std::fmt::Display) {
        let now = env.now();
        if self.last.is_some_and(|last| now - last < COMPLAINTS) {
            self.untold += 1;
            return;
        }
        tracing::warn!(%error, untold = self.untold, "a connection could not be taken");
        *self = Complaints { last: Some(now), untold: 0 };
    }
}

/// Answers the requests of a connection until it ends, or has to.
async fn converse<S>(env: &Env, attended: Attended, http: &auto::Builder<Streams>, stream: S)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let state = attended.connection.clone();
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), attended));
    let mut known = Told::Nothing;
    // When it is cut off, if it has nothing to do then.
    let mut cut: Option<Sleep> = None;
    poll_fn(|cx| {
        loop {
            let told = state.told(cx);
            if told > known {
                // Nothing was asked, or was waited for already.
                if told == Told::Close && (known == Told::Stop || !state.has_served()) {
                    return Poll::Ready(());
                }
                known = told;
                connection.as_mut().graceful_shutdown();
                cut = Some(env.sleep(FAREWELL));
            }
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended");
                }
                return Poll::Ready(());
            }
            let Some(over) = &mut cut else { return Poll::Pending };
            if Pin::new(over).poll(cx).is_pending() {
                return Poll::Pending;
            }
            // A request that came in the last moment is answered.
            if state.is_idle() {
                return Poll::Ready(());
            }
            cut = Some(env.sleep(FAREWELL));
        }
    })
    .await;
}
