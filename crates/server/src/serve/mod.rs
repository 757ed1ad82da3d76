//! The door to the network: HTTP and HTTPS, HTTP/1.1 and HTTP/2.

mod answer;
mod connections;
mod guarded;

use std::{
    future::{Future as _, poll_fn},
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use arc_swap::ArcSwap;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use k1s_env::{Env, Instant, Sleep};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::{ApiServer, TlsFiles, limits::ConnectionOptions};
use answer::{Attended, Streams};
use connections::{Connections, Told};
use guarded::Guarded;

/// Where a server listens.
pub struct Listener {
    socket: TcpListener,
    tls: Option<ServedCertificate>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// The certificate that a listener shows: another one can take its place while the server serves.
#[derive(Clone)]
pub struct ServedCertificate(Arc<ArcSwap<rustls::ServerConfig>>);

impl ServedCertificate {
    fn new(files: &TlsFiles) -> io::Result<ServedCertificate> {
        Ok(ServedCertificate(Arc::new(ArcSwap::from_pointee(tls_config(files)?))))
    }

    /// Shows this one from the next connection on. Connections that are open are left alone.
    ///
    /// # Errors
    /// If it cannot be used; then the other one stays.
    pub fn replace(&self, files: &TlsFiles) -> io::Result<()> {
        self.0.store(Arc::new(tls_config(files)?));
        Ok(())
    }

    fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.load_full())
    }
}

impl std::fmt::Debug for ServedCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServedCertificate")
    }
}

fn tls_config(files: &TlsFiles) -> io::Result<rustls::ServerConfig> {
    let wrong = |what: &str, error: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("the {what} cannot be used: {error}"))
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(files.certificate.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| wrong("certificate", &error))?;
    if chain.is_empty() {
        return Err(wrong("certificate", &"there is none in the file"));
    }
    let key = PrivateKeyDer::from_pem_slice(files.key.as_bytes())
        .or_else(|_| PrivatePkcs8KeyDer::from_pem_slice(files.key.as_bytes()).map(PrivateKeyDer::from))
        .map_err(|error| wrong("key", &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("TLS set-up", &error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| wrong("certificate", &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

impl Listener {
    /// Plain HTTP.
    pub async fn http(address: SocketAddr) -> io::Result<Listener> {
        Ok(Listener { socket: TcpListener::bind(address).await?, tls: None })
    }

    /// HTTPS.
    pub async fn https(address: SocketAddr, files: &TlsFiles) -> io::Result<Listener> {
        let tls = Some(ServedCertificate::new(files)?);
        Ok(Listener { socket: TcpListener::bind(address).await?, tls })
    }

    /// The same address, with HTTPS: for those who have to hold the address before they know their certificate.
    ///
    /// # Errors
    /// If the certificate or the key cannot be used.
    pub fn with_tls(self, files: &TlsFiles) -> io::Result<Listener> {
        Ok(Listener { tls: Some(ServedCertificate::new(files)?), ..self })
    }

    /// The certificate that is shown, to be replaced before it expires; `None` for plain HTTP.
    #[must_use]
    pub fn served_certificate(&self) -> Option<ServedCertificate> {
        self.tls.clone()
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
        let tls = listener.tls.as_ref().map(ServedCertificate::acceptor);
        let attended = Attended { server: server.clone(), connection: entry.connection.clone() };
        let (http, task_env) = (http.clone(), env.clone());
        let task = env.spawn("connection", async move {
            let _entry = entry;
            let Some(tls) = tls else { return converse(&task_env, attended, &http, stream).await };
            // The time for the first request includes the handshake.
            let shaken = tokio::select! {
                shaken = tls.accept(stream) => shaken,
                () = attended.connection.is_told() => return,
            };
            match shaken {
                Ok(stream) => converse(&task_env, attended, &http, stream).await,
                Err(error) => tracing::debug!(%error, "no TLS handshake"),
            }
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
