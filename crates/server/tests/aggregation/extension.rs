//! An extension API server: a tower service that serves the group `usage.example.com`, and tells what it was sent.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream};
use http::{Request, Response, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use parking_lot::Mutex;
use serde_json::{Value, json};

pub(crate) const GROUP: &str = "usage.example.com";
type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Body = UnsyncBoxBody<Bytes, BoxError>;

/// What an extension does with requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Well,
    /// Knows the legacy documents of discovery alone.
    Legacy,
    /// Never answers.
    Hang,
    Panic,
    /// Its discovery documents are of another kind.
    Lie,
    /// Answers everything with this.
    Refuse(u16),
    /// Sends documents without end.
    Flood,
    /// Ends in the middle of a body.
    CutOff,
    Redirect,
    /// Serves well, and publishes this as OpenAPI.
    Publish(OpenApi),
}

/// What an extension publishes at `/openapi/v3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenApi {
    Good,
    /// Another document, with another hash.
    Changed,
    /// Schemas that kubectl does not accept.
    Bad,
    NoJson,
    /// Documents of 5 MiB.
    Huge,
    /// Never answers.
    Hang,
    /// A list, and errors instead of documents.
    ListOnly,
    Refuse,
}

/// An extension. Clones are the same.
#[derive(Clone)]
pub(crate) struct Extension {
    pub(crate) way: Way,
    pub(crate) requests: Arc<AtomicUsize>,
    /// Whether a watch is open.
    pub(crate) watched: Arc<AtomicBool>,
    /// Answers like [`Way::Refuse`] while it is set.
    pub(crate) down: Arc<AtomicBool>,
    pub(crate) openapi: Arc<Mutex<OpenApi>>,
    /// The requests for the list of OpenAPI documents, and those for a document.
    pub(crate) described: Arc<[AtomicUsize; 2]>,
}

impl Extension {
    pub(crate) fn new(way: Way) -> Extension {
        let openapi = if let Way::Publish(openapi) = way { openapi } else { OpenApi::Good };
        Extension {
            way,
            requests: Arc::default(),
            watched: Arc::default(),
            down: Arc::default(),
            openapi: Arc::new(Mutex::new(openapi)),
            described: Arc::default(),
        }
    }
}

impl<B> tower::Service<Request<B>> for Extension
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let extension = self.clone();
        extension.requests.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            Ok(extension.answer(request.map(|body| body.map_err(Into::into).boxed_unsync())).await)
        })
    }
}

fn whole(bytes: impl Into<Bytes>) -> Body {
    http_body_util::Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

fn answer(code: u16, content_type: &str, value: &Value) -> Response<Body> {
    let body = whole(value.to_string().into_bytes());
    Response::builder().status(code).header(header::CONTENT_TYPE, content_type).body(body).unwrap()
}

fn usage(name: &str) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Usage", "metadata": {"name": name}})
}

/// An OpenAPI document, which also claims what is not its own.
fn openapi() -> Value {
    let usage = json!({"$ref": "#/components/schemas/com.example.usage.v1.Usage"});
    let responses = json!({"200": {"description": "OK", "content": {"application/json": {"schema": usage}}}});
    let kind = |group: &str, kind: &str| json!({"group": group, "version": "v1", "kind": kind});
    json!({
        "openapi": "3.0.0", "info": {"title": "usage", "version": "v1"},
        "paths": {
            "/apis/usage.example.com/v1/namespaces/{namespace}/usages/{name}": {"get": {"responses": responses}},
            "/apis/apps/v1/namespaces/{namespace}/deployments": {"get": {"description": "taken over"}},
        },
        "components": {"schemas": {"com.example.usage.v1.Usage": {
            "description": "How much is used.", "type": "object",
            "properties": {"metadata": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}},
            "x-kubernetes-group-version-kind": [kind(GROUP, "Usage"), kind("apps", "Deployment")],
        }}},
    })
}

/// Frames, then never an end; `watched` is set until the body is dropped.
fn endless(lines: Vec<Bytes>, watched: Arc<AtomicBool>) -> Body {
    struct Open(Arc<AtomicBool>);
    impl Drop for Open {
        fn drop(&mut self) {
            self.0.store(false, Ordering::SeqCst);
        }
    }
    watched.store(true, Ordering::SeqCst);
    let open = Open(watched);
    let frames = stream::unfold((lines.into_iter(), open), |(mut lines, open)| async move {
        match lines.next() {
            Some(line) => Some((Ok(Frame::data(line)), (lines, open))),
            None => std::future::pending().await,
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

impl Extension {
    async fn answer(self, request: Request<Body>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        if self.down.load(Ordering::SeqCst) {
            return answer(500, "application/json", &json!({}));
        }
        match self.way {
            Way::Hang => return std::future::pending().await,
            Way::Panic => panic!("as it is told"),
            Way::Refuse(code) => return answer(code, "application/json", &json!({})),
            Way::Redirect => {
                let to = "https://169.254.169.254/latest";
                let built = Response::builder().status(302).header(header::LOCATION, to).body(whole(""));
                return built.unwrap();
            }
            Way::Flood => {
                let frames = stream::repeat_with(|| Ok(Frame::data(Bytes::from(vec![b' '; 1 << 16]))));
                return Response::new(StreamBody::new(frames).boxed_unsync());
            }
            Way::Lie if path.starts_with("/apis") => {
                return answer(200, "application/json", &json!({"kind": 1, "resources": "none"}));
            }
            _ => {}
        }
        let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{GROUP}/v1"), "resources": [
            {"name": "usages", "singularName": "usage", "namespaced": true, "kind": "Usage", "verbs": ["get", "list", "watch"]},
            {"name": "usages/detail", "singularName": "", "namespaced": true, "kind": "Detail", "verbs": ["get"]}]});
        let kind = |kind: &str| json!({"group": GROUP, "version": "v1", "kind": kind});
        let accept = request.headers().get(header::ACCEPT).map_or("", |accept| accept.to_str().unwrap());
        match path.as_str() {
            "/apis" if self.way == Way::Legacy => answer(404, "application/json", &json!({})),
            "/apis" if accept.contains("as=APIGroupDiscoveryList") => {
                let detail =
                    json!({"subresource": "detail", "responseKind": kind("Detail"), "verbs": ["get"]});
                let usages = json!({"resource": "usages", "responseKind": kind("Usage"), "scope": "Namespaced",
                    "singularResource": "usage", "verbs": ["get", "list", "watch"], "subresources": [detail]});
                let document = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [
                    {"metadata": {"name": GROUP}, "versions": [{"version": "v1", "resources": [usages]}]}]});
                answer(200, super::AGGREGATED, &document)
            }
            path if path.starts_with("/openapi/v3") => self.describe(path).await,
            "/apis/usage.example.com/v1" => answer(200, "application/json", &list),
            path if path.starts_with("/apis/usage.example.com/v1/") => self.resource(request, &query).await,
            _ => answer(404, "application/json", &json!({})),
        }
    }

    async fn describe(&self, path: &str) -> Response<Body> {
        let is_list = path == "/openapi/v3";
        let published = *self.openapi.lock();
        self.described[usize::from(!is_list)].fetch_add(1, Ordering::SeqCst);
        let mut document = openapi();
        let usage = &mut document["components"]["schemas"]["com.example.usage.v1.Usage"];
        match published {
            OpenApi::Hang => return std::future::pending().await,
            OpenApi::Refuse => return answer(500, "application/json", &json!({})),
            _ if is_list => {
                let hash = if published == OpenApi::Changed { "CD34" } else { "AB12" };
                let of =
                    |group: &str| json!({"serverRelativeURL": format!("/openapi/v3/{group}?hash={hash}")});
                let paths = json!({"apis/usage.example.com/v1": of("apis/usage.example.com/v1"),
                    "apis/apps/v1": of("apis/apps/v1")});
                return answer(200, "application/json", &json!({"paths": paths}));
            }
            OpenApi::ListOnly => return answer(500, "application/json", &json!({})),
            OpenApi::NoJson => return Response::new(whole("<html>")),
            OpenApi::Huge => usage["description"] = "x".repeat(5 << 20).into(),
            OpenApi::Changed => usage["description"] = "How much is used now.".into(),
            OpenApi::Bad => {
                usage["properties"]["a"] = json!({"type": "file"});
                usage["properties"]["b"] = json!({"type": ["string", "null"]});
                usage["properties"]["c"] = json!({"type": "array", "items": [1]});
                usage["properties"]["d"] = json!("none");
            }
            OpenApi::Good => {}
        }
        answer(200, "application/json", &document)
    }

    async fn resource(self, request: Request<Body>, query: &str) -> Response<Body> {
        if self.way == Way::CutOff {
            let frames = [Ok(Frame::data(Bytes::from_static(b"{\"kind\":"))), Err("gone".into())];
            return Response::new(StreamBody::new(stream::iter(frames)).boxed_unsync());
        }
        if query.contains("watch=true") {
            let event =
                |kind: &str| Bytes::from(format!("{}\n", json!({"type": kind, "object": usage("a")})));
            let body = endless(vec![event("ADDED"), event("MODIFIED")], self.watched);
            return Response::builder().header(header::CONTENT_TYPE, "application/json").body(body).unwrap();
        }
        if query.contains("hang") {
            return Response::new(endless(vec![Bytes::from_static(b"{")], self.watched));
        }
        // What it was sent.
        let (parts, body) = request.into_parts();
        let headers: Vec<Value> = parts
            .headers
            .iter()
            .map(|(name, value)| json!([name.as_str(), String::from_utf8_lossy(value.as_bytes())]))
            .collect();
        let sent = match body.collect().await {
            Ok(body) => body.to_bytes().len().into(),
            Err(why) => json!(why.to_string()),
        };
        let told = json!({"method": parts.method.as_str(), "path": parts.uri.path(), "query": query, "headers": headers,
            "body": sent});
        let mut response = answer(if parts.method == "POST" { 201 } else { 200 }, "application/json", &told);
        let headers = response.headers_mut();
        headers.insert("connection", "close, x-hop".parse().unwrap());
        headers.insert("x-hop", "1".parse().unwrap());
        headers.insert("warning", "299 - \"from the extension\"".parse().unwrap());
        response
    }
}
