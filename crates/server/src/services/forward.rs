//! Forwards requests to Services at an address, over HTTPS.

use std::{fmt, sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use http::{Request, Response};
use k1s_env::Env;

use super::RequestBody;
use crate::body::Body;
#[cfg(feature = "tls")]
use crate::services::connect::ClientIdentity;

/// How requests are forwarded to aggregated APIs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AggregationOptions {
    /// The certificate by which this server proves to aggregated API servers that the users in its headers are authenticated.
    /// Without one, they do not know who sends a request.
    pub proxy_client: ProxyClient,
    /// Whether requests for Services without a configured address go to the addresses in their `EndpointSlices`, or to their
    /// external names. In the default tenant only: whoever may write these objects there can make this server connect to any
    /// address that is neither loopback, link-local nor of a cloud's metadata. Off by default.
    pub routing: bool,
    /// Maximum duration of a request that is no watch, with its response.
    pub request_timeout: Duration,
    /// Interval between checks whether an available API still is. An unavailable one is checked more often at first.
    pub check_interval: Duration,
}

impl Default for AggregationOptions {
    fn default() -> AggregationOptions {
        AggregationOptions {
            proxy_client: ProxyClient::default(),
            routing: false,
            request_timeout: Duration::from_secs(60),
            check_interval: Duration::from_secs(30),
        }
    }
}

/// The certificate of a proxy, which can be replaced while the server runs. Clones share it.
#[derive(Clone, Default)]
pub struct ProxyClient(Arc<ArcSwapOption<Held>>);

#[cfg_attr(not(feature = "tls"), derive(Debug))]
struct Held {
    #[cfg(feature = "tls")]
    identity: ClientIdentity,
}

impl ProxyClient {
    /// Whether there is a certificate.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load().is_some()
    }

    /// Uses this certificate, with its chain, and this key, both as PEM, from now on.
    ///
    /// # Errors
    /// If they cannot be read.
    #[cfg(feature = "tls")]
    pub fn set(&self, certificate: &str, key: &str) -> Result<(), String> {
        let identity = ClientIdentity::from_pem(certificate, key)?;
        // Also checks that they fit together.
        super::connect::tls_as(b"", true, Some(&identity))?;
        self.0.store(Some(Arc::new(Held { identity })));
        Ok(())
    }
}

impl fmt::Debug for ProxyClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProxyClient").field(&self.0.load().is_some()).finish()
    }
}

/// A server at an address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    /// `host:port` to connect to.
    pub(crate) address: &'a str,
    /// The name in its certificate.
    pub(crate) host: &'a str,
    pub(crate) ca_bundle: &'a [u8],
    pub(crate) insecure: bool,
    /// Whether addresses of this machine are refused.
    pub(crate) guarded: bool,
    /// Whether the connection is to be upgraded, for which HTTP/2 has no means.
    pub(crate) upgrade: bool,
}

/// Why a request could not be sent.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum SendError {
    /// The connection cannot be set up: `caBundle`, client certificate.
    #[error("{0}")]
    Setup(String),
    /// The server cannot be reached, or does not answer.
    #[error("{0}")]
    Unreachable(String),
}

/// Forwards requests.
pub(crate) struct Forwarder {
    /// Identifies this server, for requests that come back to it.
    pub(crate) id: String,
    #[cfg(feature = "tls")]
    proxy_client: ProxyClient,
    #[cfg(feature = "tls")]
    clients: remote::Clients,
}

impl Forwarder {
    pub(crate) fn new(env: &Env, options: &AggregationOptions) -> Forwarder {
        #[cfg(not(feature = "tls"))]
        let _ = options;
        Forwarder {
            id: format!("k1s-{:016x}", env.random()),
            #[cfg(feature = "tls")]
            proxy_client: options.proxy_client.clone(),
            #[cfg(feature = "tls")]
            clients: remote::Clients::default(),
        }
    }

    /// Sends a request, whose URI names the target.
    #[cfg(feature = "tls")]
    pub(crate) async fn send(
        &self,
        target: Target<'_>,
        request: Request<RequestBody>,
    ) -> Result<Response<Body>, SendError> {
        let identity = self.proxy_client.0.load_full();
        let client = self.clients.client(&target, identity).map_err(SendError::Setup)?;
        let answered = client.request(request).await;
        let answered = answered.map_err(|error| SendError::Unreachable(super::connect::why(&error)))?;
        Ok(answered.map(Body::of))
    }

    #[cfg(not(feature = "tls"))]
    pub(crate) async fn send(
        &self,
        _: Target<'_>,
        _: Request<RequestBody>,
    ) -> Result<Response<Body>, SendError> {
        Err(SendError::Setup(
            "this server is built without TLS, and can only forward to services in its own process".into(),
        ))
    }
}

#[cfg(feature = "tls")]
mod remote {
    use std::{collections::HashMap, sync::Arc, time::Duration};

    use hyper_util::{
        client::legacy,
        rt::{TokioExecutor, TokioTimer},
    };
    use parking_lot::Mutex;
    use rustls::pki_types::ServerName;

    use super::{Held, RequestBody, Target};
    use crate::services::connect::{self, Connector};

    pub(super) type HttpClient = legacy::Client<Connector, RequestBody>;

    /// Maximum number of clients. Beyond it, all are dropped: each is made again when it is needed, and a request in flight
    /// keeps its own.
    const MAX_CLIENTS: usize = 200;
    /// Maximum idle connections to one server.
    const MAX_IDLE: usize = 25;
    /// How long an idle connection is kept.
    const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
    /// Interval of pings on HTTP/2 connections, and how long one is waited for.
    const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(15));

    /// The clients in use, by everything that a connection depends on.
    #[derive(Default)]
    pub(super) struct Clients(Mutex<HashMap<Key, Client>>);

    /// A client, and the certificate that it shows.
    type Client = (Arc<HttpClient>, Option<Arc<Held>>);

    #[derive(PartialEq, Eq, Hash)]
    struct Key {
        address: String,
        host: String,
        ca_bundle: Vec<u8>,
        insecure: bool,
        guarded: bool,
        upgrade: bool,
    }

    impl Clients {
        pub(super) fn client(
            &self,
            target: &Target<'_>,
            identity: Option<Arc<Held>>,
        ) -> Result<Arc<HttpClient>, String> {
            let key = Key {
                address: target.address.to_owned(),
                host: target.host.to_owned(),
                ca_bundle: target.ca_bundle.to_vec(),
                insecure: target.insecure,
                guarded: target.guarded,
                upgrade: target.upgrade,
            };
            let same = |known: &Option<Arc<Held>>| match (known, &identity) {
                (Some(known), Some(now)) => Arc::ptr_eq(known, now),
                (None, None) => true,
                _ => false,
            };
            if let Some((client, _)) = self.0.lock().get(&key).filter(|(_, known)| same(known)) {
                return Ok(client.clone());
            }
            let held = identity.as_ref().map(|held| &held.identity);
            let mut tls = connect::tls_as(target.ca_bundle, target.insecure, held)?;
            if !target.upgrade {
                tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            }
            let server_name = ServerName::try_from(target.host.to_owned())
                .map_err(|why| format!("{:?}: {why}", target.host))?;
            let connector = Connector {
                address: target.address.into(),
                server_name,
                tls: Arc::new(tls),
                guarded: target.guarded,
            };
            let client = legacy::Client::builder(TokioExecutor::new())
                .pool_idle_timeout(IDLE_TIMEOUT)
                .pool_max_idle_per_host(MAX_IDLE)
                .pool_timer(TokioTimer::new())
                .timer(TokioTimer::new())
                .http2_keep_alive_interval(PING.0)
                .http2_keep_alive_timeout(PING.1)
                .build(connector);
            let client = Arc::new(client);
            let mut clients = self.0.lock();
            if clients.len() >= MAX_CLIENTS {
                clients.clear();
            }
            clients.insert(key, (client.clone(), identity));
            Ok(client)
        }
    }
}
