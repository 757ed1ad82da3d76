//! The door to the network: HTTP and HTTPS, HTTP/1.1 and HTTP/2.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::{ApiServer, TlsFiles};

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

/// A handshake has to be done by then.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The head of a request has to be there by then.
const HEAD: Duration = Duration::from_secs(30);
/// Requests under way have this long to end when the server stops.
const LAST_REQUESTS: Duration = Duration::from_secs(10);

/// Serves until [`ApiServer::shutdown`] is called: then watches end, requests under way are answered, and this returns.
pub async fn serve(server: ApiServer, listener: Listener) -> io::Result<()> {
    let env = server.env().clone();
    let graceful = GracefulShutdown::new();
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(1000)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    let http = Arc::new(http);
    let stopped = server.stopped().clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.socket.accept() => accepted,
            () = stopped.cancelled() => break,
        };
        let (stream, _) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, or a connection that was reset before it was taken.
                tracing::warn!(%error, "a connection could not be taken");
                env.sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let tls = listener.tls.as_ref().map(ServedCertificate::acceptor);
        let (server, http) = (server.clone(), http.clone());
        let watcher = graceful.watcher();
        let task_env = env.clone();
        let task = env.spawn("connection", async move {
            match tls {
                None => connection(server, &http, stream, watcher).await,
                Some(tls) => match task_env.timeout(HANDSHAKE, tls.accept(stream)).await {
                    Ok(Ok(stream)) => connection(server, &http, stream, watcher).await,
                    Ok(Err(error)) => tracing::debug!(%error, "no TLS handshake"),
                    Err(_) => tracing::debug!("no TLS handshake in time"),
                },
            }
        });
        drop(task);
    }
    drop(listener);
    if env.timeout(LAST_REQUESTS, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time");
    }
    Ok(())
}

async fn connection<S>(
    server: ApiServer,
    http: &auto::Builder<TokioExecutor>,
    stream: S,
    watcher: hyper_util::server::graceful::Watcher,
) where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(server);
    let connection = http.serve_connection(TokioIo::new(stream), service).into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended");
    }
}
