//! The API, passed to the control plane in this process. Two courtesies make it easier to use by hand:
//!
//! - A PUT without a resource version replaces what is there.
//! - A POST into a namespace that does not exist makes the namespace.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header, request::Parts};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use k1s::{BoxError, object::yaml, server::Status};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::respond::{Body, JSON, failure};

/// Maximum size of a request's body, as of the server.
const MAX_BODY: usize = 3 << 20;
/// Maximum size of an error's body.
const MAX_ERROR: usize = 1 << 20;
/// How often a replacement is tried against concurrent writes.
const ATTEMPTS: usize = 20;

/// Passes a request to the API.
pub(super) async fn answer<B>(client: &kube::Client, request: Request<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    pass(client, request).await.unwrap_or_else(|status| failure(&status))
}

async fn pass<B>(client: &kube::Client, request: Request<B>) -> Result<Response<Body>, Status>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let body = collect(body, MAX_BODY).await?;
    let path = parts.uri.path().to_owned();
    let (is_put, is_post) = (parts.method == Method::PUT, parts.method == Method::POST);
    match Target::of(&path) {
        // The server reads the body first, and misses a name in it.
        Some(Target { is_collection: true, .. }) if is_put || parts.method == Method::PATCH => {
            Err(Status::method_not_allowed())
        }
        Some(target) if is_put && target.is_object => replace(client, parts, body, &target).await,
        Some(Target { namespace: Some(namespace), .. }) if is_post => {
            create(client, parts, body, namespace).await
        }
        _ => send(client, parts, body.into()).await,
    }
}

/// The parts of a path in the API.
#[derive(Debug, PartialEq, Eq)]
struct Target<'p> {
    /// The path of the object, without a subresource.
    object: &'p str,
    namespace: Option<&'p str>,
    /// Whether it is the path of an object or of its status.
    is_object: bool,
    is_collection: bool,
}

impl<'p> Target<'p> {
    fn of(path: &'p str) -> Option<Target<'p>> {
        let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        let rest = match parts.as_slice() {
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
            _ => return None,
        };
        let (namespace, rest) = match rest {
            // The subresources of a namespace look like a resource in it.
            ["namespaces", _, "status" | "finalize"] | ["namespaces", _] => (None, rest),
            ["namespaces", namespace, rest @ ..] => (Some(*namespace), rest),
            _ => (None, rest),
        };
        let (is_object, object) = match rest {
            [_, _] => (true, path),
            [_, _, "status"] => (true, path.strip_suffix("/status")?),
            _ => (false, path),
        };
        Some(Target { object, namespace, is_object, is_collection: rest.len() == 1 })
    }
}

/// PUT: adds the current resource version if there is none.
async fn replace(
    client: &kube::Client,
    mut parts: Parts,
    body: Bytes,
    target: &Target<'_>,
) -> Result<Response<Body>, Status> {
    let Some(unversioned) = Unversioned::read(&parts, &body) else {
        return send(client, parts, body.into()).await;
    };
    if matches!(unversioned, Unversioned::Value(_)) {
        parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    }
    for _ in 0..ATTEMPTS {
        let Some(version) = version(client, target.object).await? else { break };
        let versioned = unversioned.at(&body, &version);
        let answer = send(client, parts.clone(), versioned.into()).await?;
        if answer.status() != StatusCode::CONFLICT {
            return Ok(answer);
        }
    }
    // There is no such object: as the server says it.
    send(client, parts, body.into()).await
}

/// The current resource version of an object, if it exists.
async fn version(client: &kube::Client, path: &str) -> Result<Option<String>, Status> {
    let request = Request::get(path)
        .header(header::ACCEPT, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
        .body(kube::client::Body::empty())
        .map_err(Status::internal)?;
    let response = call(client, request).await?;
    if !response.status().is_success() {
        return Ok(None);
    }
    let body = collect(response.into_body(), MAX_ERROR).await?;
    let object: Value = serde_json::from_slice(&body).map_err(Status::internal)?;
    Ok(object["metadata"]["resourceVersion"].as_str().map(str::to_owned))
}

/// A body without a resource version.
enum Unversioned {
    /// JSON in which it can be inserted here: the rest stays as it was sent, so that errors in it are reported.
    Json { at: usize, is_empty: bool },
    /// Any other.
    Value(Value),
}

impl Unversioned {
    /// `None`: it has a version, or is not an object.
    fn read(parts: &Parts, body: &Bytes) -> Option<Unversioned> {
        #[derive(Deserialize)]
        struct Document<'a> {
            #[serde(borrow)]
            metadata: &'a RawValue,
        }
        #[derive(Deserialize)]
        struct Metadata {
            #[serde(rename = "resourceVersion")]
            version: Option<Value>,
        }
        let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let kind = content_type.unwrap_or(JSON).split(';').next().unwrap_or_default().trim();
        let mut value = match kind {
            JSON => {
                let document: Document<'_> = serde_json::from_slice(body).ok()?;
                let raw = document.metadata.get();
                let metadata: Metadata = serde_json::from_str(raw).ok()?;
                if !raw.contains("\"resourceVersion\"") && metadata.version.is_none() && raw.starts_with('{')
                {
                    let at = raw.as_ptr().addr().checked_sub(body.as_ptr().addr())? + 1;
                    let is_empty = raw.get(1..)?.trim_start().starts_with('}');
                    return Some(Unversioned::Json { at, is_empty });
                }
                serde_json::from_slice(body).ok()?
            }
            "application/yaml" => yaml::decode(body).ok()?.value,
            _ => return None,
        };
        let metadata = value.get_mut("metadata")?.as_object_mut()?;
        match metadata.get("resourceVersion") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.is_empty() => {}
            Some(_) => return None,
        }
        metadata.remove("resourceVersion");
        Some(Unversioned::Value(value))
    }

    fn at(&self, body: &Bytes, version: &str) -> Vec<u8> {
        match self {
            Unversioned::Json { at, is_empty } => {
                let comma = if *is_empty { "" } else { "," };
                let field = format!("\"resourceVersion\":{}{comma}", json!(version));
                [&body[..*at], field.as_bytes(), &body[*at..]].concat()
            }
            Unversioned::Value(value) => {
                let mut value = value.clone();
                value["metadata"]["resourceVersion"] = version.into();
                value.to_string().into_bytes()
            }
        }
    }
}

/// POST: makes the namespace if there is none, and tries again.
async fn create(
    client: &kube::Client,
    parts: Parts,
    body: Bytes,
    namespace: &str,
) -> Result<Response<Body>, Status> {
    let answer = send(client, parts.clone(), body.clone().into()).await?;
    let is_dry_run = parts.uri.query().is_some_and(|query| query.contains("dryRun"));
    if answer.status() != StatusCode::NOT_FOUND || is_dry_run {
        return Ok(answer);
    }
    let (head, answered) = answer.into_parts();
    let answered = collect(answered, MAX_ERROR).await?;
    let status: Value = serde_json::from_slice(&answered).unwrap_or_default();
    if status["details"]["kind"] != "namespaces" || status["details"]["name"] != *namespace {
        return Ok(Response::from_parts(head, whole(answered)));
    }
    let wanted = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let request = Request::post("/api/v1/namespaces")
        .header(header::CONTENT_TYPE, JSON)
        .body(kube::client::Body::from(wanted.to_string().into_bytes()))
        .map_err(Status::internal)?;
    let made = call(client, request).await?;
    // Somebody else may have made it meanwhile.
    if !made.status().is_success() && made.status() != StatusCode::CONFLICT {
        return Ok(opened(made));
    }
    send(client, parts, body.into()).await
}

async fn send(
    client: &kube::Client,
    parts: Parts,
    body: kube::client::Body,
) -> Result<Response<Body>, Status> {
    let mut request = Request::new(body);
    *request.method_mut() = parts.method;
    *request.headers_mut() = parts.headers;
    // Without the authority that a client may have sent.
    *request.uri_mut() = match parts.uri.path_and_query() {
        Some(path) => Uri::from(path.clone()),
        None => Uri::from_static("/"),
    };
    let headers = request.headers_mut();
    // The length may have changed, and there is no user but the administrator.
    for name in [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION, header::AUTHORIZATION]
    {
        headers.remove(name);
    }
    as_status(opened(call(client, request).await?)).await
}

/// Boxed, as [`collect`].
pub(super) fn call(
    client: &kube::Client,
    request: Request<kube::client::Body>,
) -> BoxFuture<'_, Result<Response<kube::client::Body>, Status>> {
    Box::pin(async move { client.send(request).await.map_err(unavailable) })
}

/// Reads a body. Boxed: otherwise the compiler cannot prove that the futures here are `Send` for all lifetimes.
fn collect<B>(body: B, max: usize) -> BoxFuture<'static, Result<Bytes, Status>>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    Box::pin(async move {
        match Limited::new(body, max).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => {
                let message = format!("Request entity too large: limit is {max}");
                Err(Status::new(413, "RequestEntityTooLarge", message))
            }
            Err(error) => Err(Status::bad_request(format!("unable to read the body: {error}"))),
        }
    })
}

/// Errors that the server sends as plain text become a Status.
async fn as_status(response: Response<Body>) -> Result<Response<Body>, Status> {
    let content_type = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_text = content_type.is_none_or(|kind| kind.starts_with(b"text/plain"));
    let code = response.status();
    if !(code.is_client_error() || code.is_server_error()) || !is_text {
        return Ok(response);
    }
    let text = collect(response.into_body(), MAX_ERROR).await?;
    Err(match code {
        StatusCode::NOT_FOUND => Status::no_such_resource(),
        StatusCode::METHOD_NOT_ALLOWED => Status::method_not_allowed(),
        code => Status::new(code.as_u16(), "", String::from_utf8_lossy(&text).trim().to_owned()),
    })
}

fn opened(response: Response<kube::client::Body>) -> Response<Body> {
    response.map(|body| body.map_err(Into::into).boxed_unsync())
}

fn whole(body: Bytes) -> Body {
    http_body_util::Full::new(body).map_err(|never| match never {}).boxed_unsync()
}

fn unavailable(error: impl std::fmt::Display) -> Status {
    Status::new(503, "ServiceUnavailable", format!("the control plane does not answer: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_a_namespace_and_an_object() {
        let target =
            |path| Target::of(path).map(|target| (target.namespace, target.is_object, target.object));
        let app = "/apis/g/v1/namespaces/a/apps/x";
        assert_eq!(target(app), Some((Some("a"), true, app)));
        assert_eq!(target("/apis/g/v1/namespaces/a/apps/x/status"), Some((Some("a"), true, app)));
        assert_eq!(target("/apis/g/v1/namespaces/a/apps/x/scale").map(|target| target.1), Some(false));
        assert_eq!(
            target("/apis/g/v1/namespaces/a/apps"),
            Some((Some("a"), false, "/apis/g/v1/namespaces/a/apps"))
        );
        assert_eq!(target("/api/v1/namespaces/a"), Some((None, true, "/api/v1/namespaces/a")));
        assert_eq!(target("/api/v1/namespaces/a/status"), Some((None, true, "/api/v1/namespaces/a")));
        assert_eq!(target("/api/v1/nodes/n"), Some((None, true, "/api/v1/nodes/n")));
        assert_eq!(target("/version"), None);
    }

    fn versioned(content_type: &str, body: &'static str) -> Option<String> {
        let request = Request::put("/").header(header::CONTENT_TYPE, content_type).body(()).unwrap();
        let (parts, ()) = request.into_parts();
        let body = Bytes::from_static(body.as_bytes());
        let unversioned = Unversioned::read(&parts, &body)?;
        Some(String::from_utf8(unversioned.at(&body, "7")).unwrap())
    }

    #[test]
    fn a_missing_resource_version_is_added() {
        assert_eq!(
            versioned("application/json", r#"{"a": 1.0, "metadata" : { "name": "x"}, "a": 2}"#).as_deref(),
            Some(r#"{"a": 1.0, "metadata" : {"resourceVersion":"7", "name": "x"}, "a": 2}"#)
        );
        assert_eq!(
            versioned("application/json; charset=utf-8", r#"{"metadata":{ }}"#).as_deref(),
            Some(r#"{"metadata":{"resourceVersion":"7" }}"#)
        );
        assert_eq!(
            versioned("application/json", r#"{"metadata":{"resourceVersion":"","name":"x"}}"#).as_deref(),
            Some(r#"{"metadata":{"name":"x","resourceVersion":"7"}}"#)
        );
        assert_eq!(
            versioned("application/yaml", "metadata: {name: x}").as_deref(),
            Some(r#"{"metadata":{"name":"x","resourceVersion":"7"}}"#)
        );
    }

    #[test]
    fn other_bodies_are_left_to_the_server() {
        assert_eq!(versioned("application/json", r#"{"metadata":{"resourceVersion":"3"}}"#), None);
        assert_eq!(versioned("application/json", r#"{"metadata":[]}"#), None);
        assert_eq!(versioned("application/json", r#"{"metadata":"#), None);
        assert_eq!(versioned("application/json", "[]"), None);
        assert_eq!(versioned("text/plain", r#"{"metadata":{}}"#), None);
    }
}
