//! Requests to an API server: plain HTTP and JSON through `kube::Client`, whether the server is in this process or not.

pub(crate) mod discovery;
pub(crate) mod error;

use http::{HeaderName, HeaderValue, Method, Request, Response, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;

pub(crate) use self::{discovery::Resource, error::Error};

/// Ask for a Table.
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
pub(crate) const JSON: &str = "application/json";
pub(crate) const YAML_APPLY: &str = "application/apply-patch+yaml";

/// A connection to a server, and what is sent with every request.
#[derive(Clone)]
pub(crate) struct Api {
    client: kube::Client,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Its host and port, for errors.
    server: String,
    /// Whether warnings are not printed.
    quiet: bool,
}

/// A request's path with its query.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
}

impl Path {
    pub(crate) fn new(path: impl Into<String>) -> Path {
        Path { path: path.into(), query: Vec::new() }
    }

    /// Adds a parameter; an empty one is left out.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: &str) -> Path {
        if !value.is_empty() {
            self.query.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    fn into_uri(self) -> String {
        if self.query.is_empty() {
            return self.path;
        }
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(self.query).finish();
        format!("{}?{query}", self.path)
    }
}

impl Api {
    pub(crate) fn new(
        client: kube::Client,
        headers: Vec<(HeaderName, HeaderValue)>,
        server: impl Into<String>,
    ) -> Api {
        Api { client, headers, server: server.into(), quiet: false }
    }

    /// The same without warnings: for requests that the user has not asked for.
    pub(crate) fn quiet(&self) -> Api {
        Api { quiet: true, ..self.clone() }
    }

    pub(crate) async fn get(&self, path: Path, accept: &str) -> Result<Value, Error> {
        self.send(Method::GET, path, accept, None).await
    }

    /// Sends a request; an answer that is not 2xx is an error.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: Path,
        accept: &str,
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<Value, Error> {
        let response = self.open(method, path, accept, body).await?;
        let bytes = self.whole(response).await?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| Error::failed(format!("the server's answer is not JSON: {error}")))
    }

    /// The answer as text, whatever it is.
    pub(crate) async fn text(&self, path: Path) -> Result<String, Error> {
        let response = self.open(Method::GET, path, "*/*", None).await?;
        Ok(String::from_utf8_lossy(&self.whole(response).await?).into_owned())
    }

    /// Sends a request and returns the response with its body unread: for watches.
    pub(crate) async fn open(
        &self,
        method: Method,
        path: Path,
        accept: &str,
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<Response<Body>, Error> {
        let mut request =
            Request::builder().method(method).uri(path.into_uri()).header(header::ACCEPT, accept);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let body = match body {
            Some((content_type, bytes)) => {
                request = request.header(header::CONTENT_TYPE, content_type);
                Body::from(bytes)
            }
            None => Body::empty(),
        };
        let request = request.body(body).map_err(|error| Error::failed(error.to_string()))?;
        let response =
            self.client.send(request).await.map_err(|error| error::unreached(&error, &self.server))?;
        if !self.quiet {
            warn(&response);
        }
        if response.status().is_success() {
            return Ok(response);
        }
        let code = response.status();
        let bytes = self.whole(response).await?;
        let status = match serde_json::from_slice::<Value>(&bytes) {
            Ok(status) if status["kind"] == "Status" => status,
            _ if code == http::StatusCode::NOT_FOUND => serde_json::json!({
                "kind": "Status",
                "code": 404,
                "reason": "NotFound",
                "message": "the server could not find the requested resource",
            }),
            _ => serde_json::json!({
                "kind": "Status",
                "code": code.as_u16(),
                "message": format!("{} ({code})", String::from_utf8_lossy(&bytes).trim()),
            }),
        };
        Err(Error::Refused { status })
    }

    async fn whole(&self, response: Response<Body>) -> Result<Vec<u8>, Error> {
        let body = response.into_body().collect().await;
        Ok(body.map_err(|error| error::unreached(&error, &self.server))?.to_bytes().to_vec())
    }
}

/// Prints the server's warnings, as kubectl does.
fn warn(response: &Response<Body>) {
    for warning in response.headers().get_all(header::WARNING) {
        let Ok(text) = warning.to_str() else { continue };
        // `299 - "text"`, with quotes and backslashes escaped.
        let Some((_, quoted)) = text.split_once('"') else { continue };
        let quoted = quoted.rsplit_once('"').map_or(quoted, |(inside, _)| inside);
        let mut words = String::with_capacity(quoted.len());
        let mut characters = quoted.chars();
        while let Some(character) = characters.next() {
            words.push(if character == '\\' { characters.next().unwrap_or('\\') } else { character });
        }
        crate::say::complain(&format!("Warning: {words}"), false);
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}
