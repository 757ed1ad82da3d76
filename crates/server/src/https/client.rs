//! The client, with TLS.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Uri, header};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use k1s_env::Env;
use k1s_object::field::quote;
use parking_lot::Mutex;
use rustls::{ClientConfig, pki_types::ServerName};

use super::{Answer, MAX_ANSWER_BYTES};
use crate::services::connect::{self, Connector};

type HttpClient = Client<Connector, Full<Bytes>>;

/// Maximum number of servers that connections are kept for. Beyond it, all are dropped.
const MAX_SERVERS: usize = 64;
/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// Maximum number of redirects that are followed.
const MAX_REDIRECTS: usize = 10;

/// Sends requests over HTTPS.
pub(crate) struct HttpsClient {
    env: Env,
    tls: Arc<ClientConfig>,
    /// By host and port.
    servers: Mutex<HashMap<String, Arc<HttpClient>>>,
}

impl HttpsClient {
    /// A client that trusts these authorities (PEM), or without any, those of the system.
    ///
    /// # Errors
    /// If they cannot be used.
    pub(crate) fn new(env: &Env, authorities: &str) -> Result<HttpsClient, String> {
        let tls = Arc::new(connect::tls(authorities.as_bytes())?);
        Ok(HttpsClient { env: env.clone(), tls, servers: Mutex::default() })
    }

    /// The answer to a GET. Redirects are followed; a token is not sent to another server.
    ///
    /// # Errors
    /// Why there is none, as Go says it.
    pub(crate) async fn get(
        &self,
        url: &str,
        bearer: Option<&str>,
        timeout: Duration,
    ) -> Result<Answer, String> {
        let all = async {
            let mut at = parsed(url)?;
            let first = at.authority().cloned();
            for _ in 0..=MAX_REDIRECTS {
                let mut headers = HeaderMap::new();
                if let Some(token) = bearer.filter(|_| at.authority() == first.as_ref()) {
                    headers.insert(header::AUTHORIZATION, secret(&format!("Bearer {token}"))?);
                }
                let (answer, location) = self.send(&at, headers).await?;
                match location.filter(|_| answer.status.is_redirection()) {
                    Some(location) => at = joined(&at, &location)?,
                    None => return Ok(answer),
                }
            }
            Err(format!("stopped after {MAX_REDIRECTS} redirects"))
        };
        self.within(url, timeout, all).await
    }

    async fn within(
        &self,
        url: &str,
        timeout: Duration,
        sending: impl Future<Output = Result<Answer, String>>,
    ) -> Result<Answer, String> {
        let outcome = match self.env.timeout(timeout, sending).await {
            Ok(outcome) => outcome,
            Err(_) => Err("context deadline exceeded".into()),
        };
        outcome.map_err(|why| format!("Get {}: {why}", quote(url)))
    }

    fn server(&self, uri: &Uri) -> Result<Arc<HttpClient>, String> {
        let authority = uri.authority().ok_or("no Host in request URL")?;
        if uri.scheme_str() != Some("https") {
            return Err("only https is supported".into());
        }
        let key = format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(443));
        if let Some(server) = self.servers.lock().get(&key) {
            return Ok(server.clone());
        }
        let bare = authority.host().trim_start_matches('[').trim_end_matches(']');
        let server_name = ServerName::try_from(bare.to_owned()).map_err(|why| format!("{bare:?}: {why}"))?;
        let address = key.as_str().into();
        let connector = Connector { address, server_name, tls: self.tls.clone(), guarded: false };
        let server = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_timer(TokioTimer::new())
            .build(connector);
        let mut servers = self.servers.lock();
        if servers.len() >= MAX_SERVERS {
            servers.clear();
        }
        Ok(servers.entry(key).or_insert_with(|| Arc::new(server)).clone())
    }

    /// The answer, and where it redirects to.
    async fn send(&self, uri: &Uri, headers: HeaderMap) -> Result<(Answer, Option<String>), String> {
        let server = self.server(uri)?;
        let mut request = Request::new(Full::default());
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = headers;
        let agent = HeaderValue::from_static("k1s");
        request.headers_mut().insert(header::USER_AGENT, agent);
        let response = server.request(request).await.map_err(|error| connect::why(&error))?;
        let (parts, mut body) = response.into_parts();
        let too_large = || format!("the answer is larger than {MAX_ANSWER_BYTES} bytes");
        if body.size_hint().lower() > MAX_ANSWER_BYTES as u64 {
            return Err(too_large());
        }
        let mut read = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| format!("unexpected EOF: {error}"))?;
            let Ok(data) = frame.into_data() else { continue };
            if read.len() + data.len() > MAX_ANSWER_BYTES {
                return Err(too_large());
            }
            read.extend_from_slice(&data);
        }
        let location = parts.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
        Ok((Answer { status: parts.status, body: read.freeze() }, location.map(str::to_owned)))
    }
}

fn parsed(url: &str) -> Result<Uri, String> {
    url.parse().map_err(|why| format!("invalid URL: {why}"))
}

/// Where a redirect leads.
fn joined(from: &Uri, location: &str) -> Result<Uri, String> {
    let to = parsed(location)?;
    if to.authority().is_some() {
        return Ok(to);
    }
    let mut parts = from.clone().into_parts();
    parts.path_and_query = to.into_parts().path_and_query;
    Uri::from_parts(parts).map_err(|why| format!("invalid redirect: {why}"))
}

/// A header that is never shown.
fn secret(text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(text).map_err(|_| "a credential is no header value".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}
