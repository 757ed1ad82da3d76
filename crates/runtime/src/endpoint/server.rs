//! A socket that answers.

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

/// A socket that listens, and answers as soon as it is [served](Self::serve).
#[derive(Debug)]
pub struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
    name: &'static str,
    certificates: Option<Certificates>,
}

/// Nobody can listen there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// It is no address.
    #[error("{name}: {error}")]
    Address {
        /// What for.
        name: &'static str,
        /// What is wrong.
        error: InvalidAddress,
    },
    /// Somebody else listens there.
    #[error(
        "{name}: the port of {address:?} is in use by another program; choose another one, \":0\" for any, or \"0\" for none"
    )]
    InUse {
        /// What for.
        name: &'static str,
        /// Where.
        address: String,
    },
    /// The operating system says no.
    #[error("{name}: cannot listen at {address:?}: {error}")]
    Io {
        /// What for.
        name: &'static str,
        /// Where.
        address: String,
        /// Why not.
        error: io::Error,
    },
}

/// A handshake has to be done by then.
#[cfg(feature = "tls")]
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The head of a request has to be there by then.
const HEAD: Duration = Duration::from_secs(32);
/// Requests under way have this long to end when the endpoint stops.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

impl Endpoint {
    /// Listens at an address as Go writes it: `:8080` for every address of the machine, `127.0.0.1:0` for any port of that
    /// one, `0` or nothing for no endpoint at all. The name is what errors and logs call it.
    ///
    /// # Errors
    /// If it is no address, or nobody can listen there.
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

    /// The address it listens at; with the port that was chosen, if any would do.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Speaks TLS, and nothing else.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_tls(mut self, certificates: Certificates) -> Endpoint {
        self.certificates = Some(certificates);
        self
    }

    /// Answers until `cancel`; then it takes no more connections, lets requests under way end, and returns.
    pub async fn serve(self, env: Env, routes: Routes, cancel: CancellationToken) {
        let tls = self.certificates.is_some();
        tracing::info!(address = %self.address, tls, "serving {}", self.name);
        let (routes, graceful) = (Arc::new(routes), GracefulShutdown::new());
        let mut http = auto::Builder::new(TokioExecutor::new());
        http.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
        http.http2().timer(TokioTimer::new()).keep_alive_interval(Some(HEAD));
        let http = Arc::new(http);
        // Connections end with this, also with those that are not done in time.
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
                    let timer = env.clone();
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
                            match timer.timeout(HANDSHAKE, handshake).await {
                                Ok(Ok(stream)) => connection(&http, routes, stream, watcher).await,
                                Ok(Err(error)) => tracing::debug!(%error, "no TLS handshake"),
                                Err(_) => tracing::debug!("no TLS handshake in time"),
                            }
                        };
                        over.run_until_cancelled(serve).await;
                    };
                    drop(env.spawn(self.name, connection));
                }
                Err(error) => {
                    // Out of file descriptors, or a connection that was reset before it was taken.
                    tracing::warn!(%error, "{}: a connection could not be taken", self.name);
                    env.sleep(Duration::from_millis(20)).await;
                }
            }
        }
        drop(self.listener);
        if env.timeout(LAST_REQUESTS, graceful.shutdown()).await.is_err() {
            tracing::warn!("{}: some requests did not end in time", self.name);
        }
    }
}

/// Listens at the first of these where it can.
async fn bind_first(addresses: impl IntoIterator<Item = SocketAddr>) -> io::Result<TcpListener> {
    let mut failure = io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
    for address in addresses {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            // The next one would be at another address: not what was asked for.
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
        tracing::debug!(%error, "a connection ended");
    }
}
