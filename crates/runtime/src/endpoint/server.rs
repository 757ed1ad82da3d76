//! Serves routes on a socket.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
};
use k1s_env::Env;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, lookup_host},
};
#[cfg(feature = "tls")]
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{
    Certificates, InvalidAddress, Routes,
    address::{Address, everywhere},
};

/// A listening socket, which accepts connections in [`serve`](Self::serve).
#[derive(Debug)]
pub struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
    name: &'static str,
    certificates: Option<Certificates>,
}

/// Why an endpoint cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The address is invalid.
    #[error("{name}: {error}")]
    Address {
        /// The name of the endpoint.
        name: &'static str,
        /// What is wrong with the address.
        error: InvalidAddress,
    },
    /// The port is in use.
    #[error(
        "{name}: the port of {address:?} is in use by another program; choose another one, \":0\" for any, or \"0\" for none"
    )]
    InUse {
        /// The name of the endpoint.
        name: &'static str,
        /// The address.
        address: String,
    },
    /// The operating system failed to bind it.
    #[error("{name}: cannot listen at {address:?}: {error}")]
    Io {
        /// The name of the endpoint.
        name: &'static str,
        /// The address.
        address: String,
        /// The operating system's error.
        error: io::Error,
    },
}

/// Maximum duration of a TLS handshake.
#[cfg(feature = "tls")]
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time to receive the head of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
/// Maximum time for requests in flight when the endpoint stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

impl Endpoint {
    /// Listens on an address, written as in Go: `:8080` for all addresses of the machine, `127.0.0.1:0` for any free port, `0`
    /// or an empty string for no endpoint. The name is used in errors and logs.
    ///
    /// # Errors
    /// If the address is invalid, or cannot be bound.
    pub async fn bind(address: &str, name: &'static str) -> Result<Option<Endpoint>, BindError> {
        let parsed = Address::parse(address).map_err(|error| BindError::Address { name, error })?;
        let bound = match parsed {
            Address::Off => return Ok(None),
            Address::Everywhere(port) => bind_first(everywhere(port)).await,
            Address::At(host, port) => match lookup_host((host.as_str(), port)).await {
                Ok(found) => bind_first(found).await,
                Err(error) => Err(error),
            },
        };
        let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        match bound {
            Ok((address, listener)) => Ok(Some(Endpoint { listener, address, name, certificates: None })),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Err(BindError::InUse { name, address: address.to_owned() })
            }
            Err(error) => Err(BindError::Io { name, address: address.to_owned(), error }),
        }
    }

    /// The address that it listens on, with the chosen port if the given one was 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts TLS connections only.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_tls(mut self, certificates: Certificates) -> Endpoint {
        self.certificates = Some(certificates);
        self
    }

    /// Serves until `cancel`; then it accepts no more connections, waits for requests in flight, and returns.
    pub async fn serve(self, env: Env, routes: Routes, cancel: CancellationToken) {
        let tls = self.certificates.is_some();
        tracing::info!(address = %self.address, tls, "serving {}", self.name);
        let (routes, graceful) = (Arc::new(routes), GracefulShutdown::new());
        let mut http = auto::Builder::new(TokioExecutor::new());
        http.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
        http.http2().timer(TokioTimer::new()).keep_alive_interval(Some(HEADER_TIMEOUT));
        let http = Arc::new(http);
        // Closes all connections when `serve` returns, also those that are not done in time.
        let over = CancellationToken::new();
        let _end = over.clone().drop_guard();
        loop {
            let accepted = tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (http, routes) = (http.clone(), routes.clone());
                    let (over, watcher) = (over.clone(), graceful.watcher());
                    let certificates = self.certificates.clone();
                    #[cfg(feature = "tls")]
                    let connection_env = env.clone();
                    let connection = async move {
                        let _ = stream.set_nodelay(true);
                        let serve = async {
                            let Some(certificates) = certificates else {
                                return connection(&http, routes, stream, watcher).await;
                            };
                            #[cfg(not(feature = "tls"))]
                            match certificates {}
                            #[cfg(feature = "tls")]
                            let handshake = TlsAcceptor::from(certificates.current()).accept(stream);
                            #[cfg(feature = "tls")]
                            match connection_env.timeout(HANDSHAKE_TIMEOUT, handshake).await {
                                Ok(Ok(stream)) => connection(&http, routes, stream, watcher).await,
                                Ok(Err(error)) => tracing::debug!(%error, "the TLS handshake failed"),
                                Err(_) => tracing::debug!("the TLS handshake timed out"),
                            }
                        };
                        over.run_until_cancelled(serve).await;
                    };
                    drop(env.spawn(self.name, connection));
                }
                Err(error) => {
                    // Out of file descriptors, or the connection was reset before it was accepted.
                    tracing::warn!(%error, "{}: a connection could not be accepted", self.name);
                    env.sleep(Duration::from_millis(20)).await;
                }
            }
        }
        drop(self.listener);
        if env.timeout(SHUTDOWN_TIMEOUT, graceful.shutdown()).await.is_err() {
            tracing::warn!("{}: some requests in flight did not finish in time", self.name);
        }
    }
}

/// Binds the first usable address.
async fn bind_first(addresses: impl IntoIterator<Item = SocketAddr>) -> io::Result<TcpListener> {
    let mut failure = io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
    for address in addresses {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            // Not the next address: the caller asked for this one.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn connection<S>(
    http: &auto::Builder<TokioExecutor>,
    routes: Arc<Routes>,
    stream: S,
    watcher: hyper_util::server::graceful::Watcher,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let routes = routes.clone();
        async move { Ok::<_, Infallible>(routes.answer(&request).await) }
    });
    let connection = http.serve_connection(TokioIo::new(stream), service).into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended with an error");
    }
}
