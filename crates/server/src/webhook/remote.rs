//! Clients of webhooks outside of this process.

use std::{collections::HashMap, error::Error as _, io, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use parking_lot::Mutex;
use rustls::pki_types::ServerName;

use super::{
    CallError, ClientConfig, MAX_ANSWER_BYTES, Place,
    endpoint::Endpoint,
    large::{LARGE_ANSWER_BYTES, LargeAnswer, LargeAnswers},
    too_large,
};
use crate::services::connect::{self, Connector, why};

type HttpClient = Client<Connector, Full<Bytes>>;

/// Maximum number of clients. Beyond it, all are dropped: each is made again when it is needed, and a call in flight keeps its
/// own.
const MAX_CLIENTS: usize = 200;
/// Maximum idle connections to one webhook.
const MAX_IDLE: usize = 25;
/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// The clients in use, by configuration: a new caBundle makes a new client, so that no old connection is used. A guarded one
/// does not use the connections of another.
#[derive(Default)]
pub(super) struct Remote(Mutex<HashMap<Key, Arc<HttpClient>>>);

#[derive(PartialEq, Eq, Hash)]
struct Key {
    host: String,
    address: String,
    ca_bundle: Vec<u8>,
    guarded: bool,
}

impl Remote {
    /// The client of a configuration.
    pub(super) fn client(
        &self,
        config: &ClientConfig,
        endpoint: &Endpoint,
        place: Place<'_>,
    ) -> Result<Arc<HttpClient>, CallError> {
        let own = || match endpoint.host.contains(':') {
            true => format!("[{}]:{}", endpoint.host, endpoint.port),
            false => format!("{}:{}", endpoint.host, endpoint.port),
        };
        let address = place.address.map_or_else(own, str::to_owned);
        let (host, guarded) = (endpoint.host.clone(), place.guarded);
        let key = Key { host, address, ca_bundle: config.ca_bundle.clone(), guarded };
        if let Some(client) = self.0.lock().get(&key) {
            return Ok(client.clone());
        }
        let tls = connect::tls(&config.ca_bundle).map_err(CallError::Failed)?;
        let server_name = ServerName::try_from(endpoint.host.clone())
            .map_err(|why| CallError::Failed(format!("{:?}: {why}", endpoint.host)))?;
        let connector =
            Connector { address: key.address.as_str().into(), server_name, tls: Arc::new(tls), guarded };
        // HTTP/1.1, as kube-apiserver: the replicas behind one address share the load of several connections.
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE)
            .pool_timer(TokioTimer::new())
            .build(connector);
        let client = Arc::new(client);
        let mut clients = self.0.lock();
        if clients.len() >= MAX_CLIENTS {
            clients.clear();
        }
        Ok(clients.entry(key).or_insert(client).clone())
    }
}

/// Sends a request.
pub(super) async fn send(
    client: &HttpClient,
    request: Request<Bytes>,
    url: &str,
) -> Result<Response<Incoming>, CallError> {
    let request = request.map(Full::new);
    client.request(request).await.map_err(|error| CallError::post(url, &why(&error)))
}

/// Whether a connection ended within a body.
fn is_cut_off(error: &hyper::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            return error.kind() == io::ErrorKind::UnexpectedEof;
        }
        source = cause.source();
    }
    error.is_incomplete_message()
}

/// Reads a body up to the limit. Large ones need a permit.
pub(super) async fn collect(
    mut body: Incoming,
    url: &str,
    (large, tenant): (&LargeAnswers, &str),
) -> Result<(Bytes, Option<LargeAnswer>), CallError> {
    let failed =
        |why: &dyn std::fmt::Display| CallError::Failed(format!("failed to read the answer of {url}: {why}"));
    if body.size_hint().lower() > MAX_ANSWER_BYTES as u64 {
        return Err(too_large());
    }
    let (mut read, mut permit) = (BytesMut::new(), None);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| match is_cut_off(&error) {
            true => failed(&"unexpected EOF"),
            false => failed(&error),
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > MAX_ANSWER_BYTES {
            return Err(too_large());
        }
        if permit.is_none() && read.len() + data.len() > LARGE_ANSWER_BYTES {
            permit = Some(large.take(tenant).await.map_err(|why| failed(&why))?);
        }
        read.extend_from_slice(&data);
    }
    Ok((read.freeze(), permit))
}
