//! A `kube::Client` that sends all of its requests over one connection.
//!
//! kube's own client speaks HTTP/1.1, which needs a connection for each watch. A manager of many clusters behind one server
//! has thousands of them.

mod connection;
mod pool;
mod share;
mod silence;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, Version, header, uri::Scheme};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use k1s_env::Env;
use kube::{
    Config,
    client::{Body, ConfigExt as _, retry::RetryPolicy},
};
use rustls::pki_types::ServerName;
use tower::{Service, ServiceExt as _, retry::RetryLayer, util::BoxCloneSyncService};

pub use self::share::Http2Connections;
use self::silence::Silence;
use self::{
    connection::Dialer,
    pool::{Lease, Pool, Way},
};
use crate::BoxError;

/// How often a request is sent again that a closing connection did not take.
const ATTEMPTS: usize = 3;

/// A client for a configuration, over HTTP/2: one connection to the server, and more only while the server's limit of
/// concurrent requests on one is reached. Like `kube::Client::try_from` in everything else; a server that speaks HTTP/1.1
/// only, or one behind a proxy or without TLS, is connected to as with that.
///
/// # Errors
/// Credentials or certificates that cannot be used.
pub fn http2(env: &Env, config: Config) -> Result<kube::Client, kube::Error> {
    match address(&config) {
        None => kube::Client::try_from(config),
        Some(name) => client(env, &connect(env, name, &config)?, config),
    }
}

/// The name of a server that HTTP/2 can be tried with.
fn address(config: &Config) -> Option<ServerName<'static>> {
    let is_https = config.cluster_url.scheme() == Some(&Scheme::HTTPS);
    server_name(config).filter(|_| is_https && config.proxy_url.is_none())
}

/// The connections of a configuration; none is open yet.
fn connect(env: &Env, name: ServerName<'static>, config: &Config) -> Result<Arc<Shared>, kube::Error> {
    let mut tls = config.rustls_client_config()?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let dialer = Dialer {
        env: env.clone(),
        server: config.cluster_url.clone(),
        name,
        tls: Arc::new(tls).into(),
        timeout: config.connect_timeout,
    };
    let http1 = legacy::Client::builder(TokioExecutor::new())
        .build::<_, Body>(config.rustls_https_connector_with_connector(tcp(config.connect_timeout))?);
    Ok(Arc::new(Shared {
        pool: Pool::new(dialer),
        http1: BoxCloneSyncService::new(http1.map_err(BoxError::from)),
    }))
}

/// A client over these connections.
fn client(env: &Env, shared: &Arc<Shared>, config: Config) -> Result<kube::Client, kube::Error> {
    let silence = config.read_timeout.map(|limit| Silence::new(env, limit));
    let sender = Sender { shared: Arc::clone(shared), silence };
    let retries = config.default_retry.then(|| RetryLayer::new(RetryPolicy::server_retry()));
    let auth = config.auth_layer()?;
    // The last layer is the first to see a request.
    let service = tower::ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(retries)
        .option_layer(auth)
        .layer(config.extra_headers_layer()?)
        .service(sender);
    Ok(kube::Client::new(service, config.default_namespace))
}

/// The name that the server's certificate has to be for.
fn server_name(config: &Config) -> Option<ServerName<'static>> {
    let host = config.tls_server_name.as_deref().or_else(|| config.cluster_url.host())?;
    ServerName::try_from(host.trim_start_matches('[').trim_end_matches(']').to_owned()).ok()
}

fn tcp(timeout: Option<std::time::Duration>) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(timeout);
    connector
}

/// Sends requests over the connections of a pool.
#[derive(Clone)]
struct Sender {
    shared: Arc<Shared>,
    /// How long the server may be silent in the middle of an answer, or before it.
    silence: Option<Silence>,
}

struct Shared {
    pool: Pool,
    /// For a server that does not speak HTTP/2.
    http1: BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>,
}

impl Service<Request<Body>> for Sender {
    type Response = Response<Reply>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Reply>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (shared, silence) = (Arc::clone(&self.shared), self.silence.clone());
        Box::pin(async move {
            let Some(silence) = silence else { return shared.send(request).await };
            let response = silence.limit(shared.send(request)).await??;
            Ok(response.map(|reply| Reply { silence: Some(silence), ..reply }))
        })
    }
}

impl Shared {
    async fn send(&self, mut request: Request<Body>) -> Result<Response<Reply>, BoxError> {
        let mut attempts = ATTEMPTS;
        loop {
            let lease = match self.pool.lease().await? {
                Way::Http2(lease) => lease,
                Way::Http1 => {
                    let response = self.http1.clone().oneshot(request).await?;
                    return Ok(response.map(|body| Reply { body, silence: None, _lease: None }));
                }
            };
            // HTTP/2 has the host in the URI.
            *request.version_mut() = Version::HTTP_2;
            request.headers_mut().remove(header::HOST);
            attempts -= 1;
            match lease.sender().try_send_request(request).await {
                Ok(response) => {
                    return Ok(response.map(|body| Reply { body, silence: None, _lease: Some(lease) }));
                }
                Err(mut error) => match error.take_message() {
                    // The connection was closed before the request was sent.
                    Some(unsent) if attempts > 0 => request = unsent,
                    _ => return Err(error.into_error().into()),
                },
            }
        }
    }
}

/// The body of a response. It occupies a place on its connection until it ends.
struct Reply {
    body: Incoming,
    silence: Option<Silence>,
    _lease: Option<Lease>,
}

impl http_body::Body for Reply {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx).map(|frame| frame.map(|frame| Ok(frame?)));
        match &mut self.silence {
            None => frame,
            Some(silence) => silence.watch(cx, frame),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http::Uri;

    use super::*;

    #[test]
    fn the_name_of_the_server_is_that_of_its_url_unless_another_one_is_configured() {
        let name = |url: &'static str, configured: Option<&str>| {
            let mut config = Config::new(Uri::from_static(url));
            config.tls_server_name = configured.map(str::to_owned);
            server_name(&config).map(|name| name.to_str().into_owned())
        };
        assert_eq!(name("https://api.example:6443/clusters/a", None).as_deref(), Some("api.example"));
        assert_eq!(name("https://[::1]:6443", None).as_deref(), Some("::1"));
        assert_eq!(name("https://10.0.0.1", Some("api.example")).as_deref(), Some("api.example"));
    }
}
