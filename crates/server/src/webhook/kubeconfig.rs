//! Webhooks of the server itself, which a kubeconfig file leads to.

use std::{fs, path::Path, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderValue, Request, header};
use http_body_util::Full;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use k1s_env::Env;
use k1s_object::{field::quote, yaml};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use serde_json::Value;

use super::{CallError, error, large::LargeAnswers, remote};
use crate::services::connect::{self, Connector};

/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// Maximum idle connections.
const MAX_IDLE: usize = 25;

/// A client of one webhook.
pub(crate) struct KubeconfigClient {
    url: String,
    /// The `Authorization` header.
    authorization: Option<HeaderValue>,
    client: HttpClient,
    large: LargeAnswers,
}

impl std::fmt::Debug for KubeconfigClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubeconfigClient").field("url", &self.url).finish_non_exhaustive()
    }
}

enum HttpClient {
    Tls(Client<Connector, Full<Bytes>>),
    Plain(Client<HttpConnector, Full<Bytes>>),
}

fn text<'a>(of: &'a Value, field: &str) -> &'a str {
    of[field].as_str().unwrap_or_default()
}

/// The entry of this name in a list of a kubeconfig.
fn named<'a>(config: &'a Value, list: &str, kind: &str, name: &str) -> Result<&'a Value, String> {
    let mut entries = config[list].as_array().into_iter().flatten();
    let found = entries.find(|entry| entry["name"] == *name).map(|entry| &entry[kind]);
    found.ok_or_else(|| format!("{kind} {} does not exist", quote(name)))
}

/// PEM in a field, in base64, or in a file.
fn pem(of: &Value, field: &str, folder: &Path) -> Result<Vec<u8>, String> {
    let data = text(of, &format!("{field}-data")).to_owned();
    if !data.is_empty() {
        return STANDARD.decode(data).map_err(|why| format!("{field}-data: {why}"));
    }
    match text(of, field) {
        "" => Ok(Vec::new()),
        file => fs::read(folder.join(file)).map_err(|why| format!("unable to read {field} {file}: {why}")),
    }
}

impl KubeconfigClient {
    /// The client that the current context of a kubeconfig file describes.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub(crate) fn load(path: &Path) -> Result<KubeconfigClient, String> {
        let wrong = |why: String| format!("{}: {why}", path.display());
        let read = fs::read(path).map_err(|why| wrong(why.to_string()))?;
        Self::parse(&read, path.parent().unwrap_or(Path::new("."))).map_err(wrong)
    }

    fn parse(bytes: &[u8], folder: &Path) -> Result<KubeconfigClient, String> {
        let config = yaml::decode(bytes).map_err(|why| why.to_string())?.value;
        let context = named(&config, "contexts", "context", text(&config, "current-context"))?;
        let cluster = named(&config, "clusters", "cluster", text(context, "cluster"))?;
        let nobody = Value::Null;
        let user = match text(context, "user") {
            "" => &nobody,
            name => named(&config, "users", "user", name)?,
        };
        for field in ["exec", "auth-provider"] {
            if user[field].is_object() {
                return Err(format!("{field} is not supported here: use a certificate or a token"));
            }
        }
        let server = text(cluster, "server");
        let server = if server.contains("://") { server.to_owned() } else { format!("https://{server}") };
        let uri: http::Uri = server.parse().map_err(|why| format!("server {}: {why}", quote(&server)))?;
        let authority =
            uri.authority().ok_or_else(|| format!("server {}: it has no host", quote(&server)))?;
        let client = match uri.scheme_str() {
            Some("http") => {
                let client = Client::builder(TokioExecutor::new())
                    .pool_idle_timeout(IDLE_TIMEOUT)
                    .pool_max_idle_per_host(MAX_IDLE)
                    .pool_timer(TokioTimer::new())
                    .build_http();
                HttpClient::Plain(client)
            }
            _ => {
                let host = authority.host().trim_start_matches('[').trim_end_matches(']');
                let shown = match text(cluster, "tls-server-name") {
                    "" => host,
                    name => name,
                };
                let server_name = ServerName::try_from(shown.to_owned())
                    .map_err(|why| format!("server name {}: {why}", quote(shown)))?;
                let address = format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(443));
                let tls = Arc::new(tls(cluster, user, folder)?);
                let connector = Connector { address: address.into(), server_name, tls, guarded: false };
                let client = Client::builder(TokioExecutor::new())
                    .pool_idle_timeout(IDLE_TIMEOUT)
                    .pool_max_idle_per_host(MAX_IDLE)
                    .pool_timer(TokioTimer::new())
                    .build(connector);
                HttpClient::Tls(client)
            }
        };
        Ok(KubeconfigClient {
            url: server,
            authorization: authorization(user, folder)?,
            client,
            large: LargeAnswers::default(),
        })
    }

    /// Sends JSON, and returns the body of an answer with status 2xx.
    pub(crate) async fn post(&self, env: &Env, body: Bytes, timeout: Duration) -> Result<Bytes, CallError> {
        match env.timeout(timeout, self.send(body)).await {
            Ok(answered) => answered,
            Err(_) => Err(CallError::post(&self.url, "context deadline exceeded")),
        }
    }

    async fn send(&self, body: Bytes) -> Result<Bytes, CallError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.url.parse().map_err(|why| CallError::post(&self.url, &format!("{why}")))?;
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, */*"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static("kube-apiserver"));
        if let Some(authorization) = &self.authorization {
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        let answered = match &self.client {
            HttpClient::Tls(client) => client.request(request).await,
            HttpClient::Plain(client) => client.request(request).await,
        };
        let response = answered.map_err(|error| CallError::post(&self.url, &connect::why(&error)))?;
        let (parts, body) = response.into_parts();
        let (body, _large) = remote::collect(body, &self.url, (&self.large, "")).await?;
        error::check(parts.status, &body).map(|()| body)
    }
}

/// The credential that a user sends in a header.
fn authorization(user: &Value, folder: &Path) -> Result<Option<HeaderValue>, String> {
    let file = text(user, "tokenFile");
    let token = match file {
        "" => text(user, "token").to_owned(),
        file => fs::read_to_string(folder.join(file))
            .map_err(|why| format!("unable to read tokenFile {file}: {why}"))?
            .trim()
            .to_owned(),
    };
    let sent = match text(user, "username") {
        _ if !token.is_empty() => format!("Bearer {token}"),
        "" => return Ok(None),
        name => format!("Basic {}", STANDARD.encode(format!("{name}:{}", text(user, "password")))),
    };
    // The value is a secret, and not shown.
    let mut value = HeaderValue::from_str(&sent).map_err(|_| "the credentials are no text for a header")?;
    value.set_sensitive(true);
    Ok(Some(value))
}

fn tls(cluster: &Value, user: &Value, folder: &Path) -> Result<ClientConfig, String> {
    if cluster["insecure-skip-tls-verify"] == true {
        return Err("insecure-skip-tls-verify is not supported here: name the certificate-authority".into());
    }
    let authority = pem(cluster, "certificate-authority", folder)?;
    let (certificate, key) = (pem(user, "client-certificate", folder)?, pem(user, "client-key", folder)?);
    if certificate.is_empty() {
        return connect::tls(&authority);
    }
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&certificate)
        .collect::<Result<_, _>>()
        .map_err(|why| format!("client-certificate: {why}"))?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|why| format!("client-key: {why}"))?;
    let mut roots = RootCertStore::empty();
    if authority.is_empty() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for root in CertificateDer::pem_slice_iter(&authority) {
        root.map_err(|why| why.to_string())
            .and_then(|root| roots.add(root).map_err(|why| why.to_string()))
            .map_err(|why| format!("certificate-authority: {why}"))?;
    }
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|why| why.to_string())?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(|why| format!("client-certificate: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_kubeconfig_is_said() {
        let refused = |text: &str| KubeconfigClient::parse(text.as_bytes(), Path::new("/")).unwrap_err();
        assert_eq!(refused("{}"), "context \"\" does not exist");
        let with = |cluster: &str, user: &str| {
            format!(
                "current-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
                 clusters: [{{name: c, cluster: {cluster}}}]\nusers: [{{name: u, user: {user}}}]"
            )
        };
        let good = KubeconfigClient::parse(
            with("{server: 'http://127.0.0.1:1/authorize'}", "{token: secret}").as_bytes(),
            Path::new("/"),
        )
        .unwrap();
        assert_eq!(good.url, "http://127.0.0.1:1/authorize");
        assert!(!format!("{good:?} {:?}", good.authorization).contains("secret"));
        assert_eq!(
            refused(&with("{server: 'https://a'}", "{exec: {command: x}}")),
            "exec is not supported here: use a certificate or a token"
        );
        assert!(
            refused(&with("{server: 'https://a', certificate-authority: /no/such}", "{}"))
                .starts_with("unable to read certificate-authority /no/such: ")
        );
    }
}
