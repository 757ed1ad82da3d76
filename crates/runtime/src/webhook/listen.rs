//! The listener: HTTPS, with HTTP/1.1 and HTTP/2.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::{
        conn::auto,
        graceful::{GracefulShutdown, Watcher},
    },
};
use k1s_env::Env;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{WebhookServer, server::State, wire::TooLarge};
use crate::{
    BoxError,
    tls::{CertFiles, CertWatcher, CertificateError},
};

/// Maximum duration of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time to receive the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a failed accept.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Why a server cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// It was already started.
    #[error("webhook server already started")]
    AlreadyStarted,
    /// Its certificate cannot be used.
    #[error("webhook server: {0}")]
    Certificate(#[from] CertificateError),
    /// It cannot listen.
    #[error("webhook server cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}

impl WebhookServer {
    /// Listens and serves until `cancel`; then requests in flight are completed, and this returns.
    ///
    /// # Errors
    /// If it cannot listen, the certificate cannot be used, or it was already started.
    pub async fn run(&self, cancel: CancellationToken) -> Result<(), WebhookError> {
        let (env, options) = (&self.inner.env, &self.inner.options);
        if *self.inner.state.borrow() != State::New {
            return Err(WebhookError::AlreadyStarted);
        }
        let certificates = options.tls.then(|| self.certificates()).transpose()?;
        let (listener, address) = bind(options.host, options.port).await?;
        let mut first = true;
        self.inner.state.send_if_modified(|state| {
            first = *state == State::New;
            if first {
                *state = State::Serving(address);
            }
            first
        });
        if !first {
            return Err(WebhookError::AlreadyStarted);
        }
        // Marks the server as stopped, whether this returns or is dropped.
        let stopped = Stopped(self);
        tracing::info!(%address, tls = options.tls, "serving webhooks");

        let graceful = GracefulShutdown::new();
        // Cancelled at the end of this function: aborts all remaining connections.
        let end = CancellationToken::new();
        let _end = end.clone().drop_guard();
        let serve = self.accept(&listener, certificates.as_ref(), &graceful, &end);
        let reload = async {
            match &certificates {
                Some(watcher) => watcher.run(env, options.reload_period, cancel.clone()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = cancel.cancelled() => {}
            () = serve => {}
            () = reload => {}
        }
        drop(listener);
        drop(stopped);
        tracing::info!(timeout = ?options.shutdown_timeout, "shutting down webhook server");
        if env.timeout(options.shutdown_timeout, graceful.shutdown()).await.is_err() {
            tracing::warn!("some webhook requests did not end in time");
        }
        Ok(())
    }

    fn certificates(&self) -> Result<CertWatcher, CertificateError> {
        let (options, metrics) = (&self.inner.options, &self.inner.metrics);
        let files = CertFiles {
            certificate: options.cert_dir.join(&options.cert_name),
            key: options.cert_dir.join(&options.key_name),
            client_ca: options.client_ca_name.as_ref().map(|name| options.cert_dir.join(name)),
        };
        CertWatcher::counted(files, metrics.certificate_reads.clone(), metrics.certificate_errors.clone())
    }

    async fn accept(
        &self,
        listener: &TcpListener,
        certificates: Option<&CertWatcher>,
        graceful: &GracefulShutdown,
        end: &CancellationToken,
    ) {
        let env = &self.inner.env;
        let mut http = auto::Builder::new(EnvExecutor(env.clone()));
        http.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
        http.http2().timer(TokioTimer::new()).max_concurrent_streams(1000);
        let http = Arc::new(http);
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, or a connection that was reset before it was taken.
                    tracing::warn!(%error, "failed to accept a connection");
                    env.sleep(ACCEPT_RETRY_PAUSE).await;
                    continue;
                }
            };
            let _ = stream.set_nodelay(true);
            let (server, http, certificates) = (self.clone(), Arc::clone(&http), certificates.cloned());
            let watcher = graceful.watcher();
            let end = end.clone();
            let task = env.spawn("webhook-connection", async move {
                let serve = async {
                    let Some(certificates) = certificates else {
                        return server.connection(&http, stream, watcher).await;
                    };
                    let acceptor = TlsAcceptor::from(certificates.current());
                    match server.inner.env.timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
                        Ok(Ok(stream)) => server.connection(&http, stream, watcher).await,
                        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                        Err(_) => tracing::debug!("TLS handshake timed out"),
                    }
                };
                end.run_until_cancelled(serve).await;
            });
            drop(task);
        }
    }

    async fn connection<S>(&self, http: &auto::Builder<EnvExecutor>, stream: S, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let server = self.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let server = server.clone();
            async move { Ok::<_, std::convert::Infallible>(server.serve(request).await) }
        });
        let connection = http.serve_connection(TokioIo::new(stream), service).into_owned();
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(%error, "a connection ended");
        }
    }

    async fn serve(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let limit = self.inner.options.max_body;
        let body = async {
            match Limited::new(body, limit).collect().await {
                Ok(body) => Ok(Ok(body.to_bytes())),
                Err(error) if error.is::<LengthLimitError>() => Ok(Err(TooLarge { limit })),
                Err(error) => Err::<_, BoxError>(error),
            }
        };
        self.answer(parts, body).await.map(Full::new)
    }
}

/// Spawns the tasks of HTTP/2 streams in the environment, so that they are tracked.
#[derive(Clone)]
struct EnvExecutor(Env);

impl<F> hyper::rt::Executor<F> for EnvExecutor
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn execute(&self, stream: F) {
        drop(self.0.spawn("webhook-stream", stream));
    }
}

struct Stopped<'a>(&'a WebhookServer);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.inner.state.send_replace(State::Stopped);
    }
}

async fn bind(host: Option<IpAddr>, port: u16) -> Result<(TcpListener, SocketAddr), WebhookError> {
    if let Some(host) = host {
        return bind_to(SocketAddr::new(host, port)).await;
    }
    // Accepts both address families, where there are two.
    match bind_to((Ipv6Addr::UNSPECIFIED, port).into()).await {
        Err(WebhookError::Listen { source, .. }) if source.kind() != io::ErrorKind::AddrInUse => {
            bind_to((Ipv4Addr::UNSPECIFIED, port).into()).await
        }
        bound => bound,
    }
}

async fn bind_to(address: SocketAddr) -> Result<(TcpListener, SocketAddr), WebhookError> {
    let failed = |source| WebhookError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}
