//! Forwards a request to the server behind an `APIService`, and its response to the client.
//!
//! Both bodies are forwarded as they arrive. What a server may hold is limited: the time of a request, and for each
//! `APIService` the number of requests and of streams, so that one that hangs keeps nobody but its own clients waiting.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body::Frame;
use k1s_env::{Sleep, Task, TaskError};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    headers, plain,
    resolve::{self, Route},
};
use crate::{
    body::{Body, BoxError},
    errors,
    flow::Slot,
    identity::User,
    negotiate::Media,
    pretty,
    request::escape_path,
    respond,
    services::{LocalError, RequestBody, SendError, ServicePort, Target},
    tenant::{
        Tenant,
        apis::{Api, Backend},
    },
};

/// How long a request waits for the first check of a server that was registered just now.
const FIRST_CHECK: Duration = Duration::from_secs(6);
/// Maximum duration of a request for a discovery document.
pub(super) const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// An error, as a response.
type Refused = Box<Response<Body>>;

fn refused(code: u16, text: &str) -> Refused {
    Box::new(plain(code, text))
}

/// How long a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A document of discovery.
    Discovery,
    /// Any other request.
    Plain,
    /// Its client decides: watches, `exec` and the like.
    LongRunning,
}

/// A request to be forwarded.
pub(crate) struct Incoming<'a> {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    /// The path within the tenant, decoded: what was authorized.
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) body: RequestBody,
    pub(crate) kind: Kind,
    /// Held until the response is complete.
    pub(crate) seat: Option<Slot>,
}

/// Forwards a request by a user. Errors are responses: they are plain text, as in kube-aggregator.
pub(crate) async fn forward(
    tenant: &Arc<Tenant>,
    api: &Api,
    user: &User,
    incoming: Incoming<'_>,
) -> Response<Body> {
    pretty::as_is(answer(tenant, api, user, incoming).await.unwrap_or_else(|refused| *refused))
}

async fn answer(
    tenant: &Arc<Tenant>,
    api: &Api,
    user: &User,
    mut incoming: Incoming<'_>,
) -> Result<Response<Body>, Refused> {
    let Some(backend) = &api.backend else { return Err(refused(404, "")) };
    // A server that forwards to this one again would do so for ever.
    if headers::has_been_here(&incoming.headers, &via(tenant)) {
        return Err(refused(508, "the aggregated API server has forwarded the request to this server again"));
    }
    if !is_available(tenant, backend).await {
        return Err(refused(503, "service unavailable"));
    }
    if is_ambiguous(incoming.path) {
        return Err(refused(400, "the path may not have segments that are empty, \".\" or \"..\""));
    }
    let upgrade = headers::is_upgrade(&incoming.headers);
    if upgrade {
        return Err(refused(501, "upgrades of connections to aggregated API servers are not supported"));
    }
    let slots = if incoming.kind == Kind::LongRunning { &backend.streams } else { &backend.in_flight };
    let Ok(permit) = slots.clone().try_acquire_owned() else {
        let busy =
            errors::too_many_requests("too many requests for the aggregated API, please try again later", 1);
        return Err(Box::new(respond::status(&busy, Media::Json)));
    };
    let route = resolve::route(tenant, &backend.service).await.map_err(|why| {
        tracing::debug!(api = api.name, reason = why.reason, message = why.message, "not routed");
        refused(503, "service unavailable")
    })?;
    let (kind, seat) = (incoming.kind, incoming.seat.take());
    let request = outgoing(tenant, &backend.service, user, incoming)?;
    let timeout = match kind {
        Kind::Discovery => Some(DISCOVERY_TIMEOUT),
        Kind::Plain => Some(tenant.options().aggregation.request_timeout),
        Kind::LongRunning => None,
    };
    let env = tenant.env();
    let deadline = timeout.map(|timeout| env.sleep(timeout));
    let sent = send(tenant, backend, &route, request);
    let response = match timeout {
        Some(timeout) => match env.timeout(timeout, sent).await {
            Ok(sent) => sent?,
            Err(_) if kind == Kind::Discovery => {
                return Err(refused(503, "error trying to reach service: context deadline exceeded"));
            }
            Err(_) => {
                let late = "Timeout: request did not complete within the allotted timeout";
                let late = k1s_object::Status::new(504, "Timeout", late);
                return Err(Box::new(respond::status(&late, Media::Json)));
            }
        },
        None => tokio::select! {
            sent = sent => sent?,
            () = tenant.stop.cancelled() => return Err(refused(503, "service unavailable")),
        },
    };
    Ok(incoming_response(tenant, response, deadline, Held { _permit: permit, _seat: seat }))
}

/// Whether a server is available, as its last check found. One that was not checked yet is waited for.
async fn is_available(tenant: &Arc<Tenant>, backend: &Backend) -> bool {
    let mut live = backend.live.subscribe();
    let known = async { live.wait_for(|live| live.availability.is_some()).await.map(drop) };
    if backend.live.borrow().availability.is_none() {
        let _ = tenant.env().timeout(FIRST_CHECK, known).await;
    }
    backend.live.borrow().availability.as_ref().is_some_and(|found| found.is_available())
}

/// Whether a path has segments that a server may resolve to another path than the one that was authorized.
fn is_ambiguous(path: &str) -> bool {
    let path = path.strip_suffix('/').unwrap_or(path);
    path.split('/').skip(1).any(|segment| matches!(segment, "" | "." | ".."))
}

/// Identifies this server, and the tenant, in requests that it forwards.
pub(super) fn via(tenant: &Tenant) -> String {
    format!("1.1 {}/{}", tenant.shared.forwarder.id, tenant.name)
}

/// The request for the server.
fn outgoing(
    tenant: &Arc<Tenant>,
    service: &ServicePort,
    user: &User,
    incoming: Incoming<'_>,
) -> Result<Request<RequestBody>, Refused> {
    let Incoming { method, mut headers, path, query, body, .. } = incoming;
    // Encoded anew, so that the server decodes what was authorized.
    let path = &*escape_path(path);
    let internal = |why: &str| refused(500, why);
    headers::strip_hop_by_hop(&mut headers);
    headers::strip_identity(&mut headers);
    let passed = HeaderValue::from_str(&via(tenant)).map_err(|why| internal(&why.to_string()))?;
    headers.append(header::VIA, passed);
    let other = (!resolve::is_default(tenant)).then_some(&*tenant.name);
    headers::set_user(&mut headers, user, other).map_err(|why| internal(&why))?;
    let authority = match service.port {
        443 => service.host(),
        port => format!("{}:{port}", service.host()),
    };
    let forwarded =
        [("x-forwarded-uri", path), ("x-forwarded-host", &authority), ("x-forwarded-proto", "https")];
    for (name, value) in forwarded {
        headers.insert(name, HeaderValue::from_str(value).map_err(|why| internal(&why.to_string()))?);
    }
    headers.remove(header::HOST);
    let path_and_query = match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let uri = Uri::builder().scheme("https").authority(authority).path_and_query(path_and_query);
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri.build().map_err(|why| internal(&why.to_string()))?;
    *request.headers_mut() = headers;
    Ok(request)
}

/// Sends a request by its route.
pub(super) async fn send(
    tenant: &Arc<Tenant>,
    backend: &Backend,
    route: &Route,
    request: Request<RequestBody>,
) -> Result<Response<Body>, Refused> {
    dispatch(tenant, backend, route, request).await.map_err(|why| match why {
        SendError::Setup(why) => refused(500, &why),
        SendError::Unreachable(why) => refused(503, &format!("error trying to reach service: {why}")),
    })
}

/// The same, with the reason of a failure.
pub(super) async fn dispatch(
    tenant: &Arc<Tenant>,
    backend: &Backend,
    route: &Route,
    request: Request<RequestBody>,
) -> Result<Response<Body>, SendError> {
    match route {
        Route::Local(service) => {
            // A task of its own: the service may be as deep as this server, and both would share a stack.
            let service = service.clone();
            let called = async move { service.stream(request).await };
            let called = Called(tenant.env().spawn("aggregated API in this process", called));
            let answered = called.await.map_err(|why| SendError::Unreachable(why.to_string()))?;
            answered.map_err(|why: LocalError| SendError::Unreachable(why.to_string()))
        }
        Route::Address { address, guarded } => {
            let target = Target {
                address,
                host: &backend.service.host(),
                ca_bundle: &backend.ca_bundle,
                insecure: backend.insecure,
                guarded: *guarded,
                upgrade: false,
            };
            tenant.shared.forwarder.send(target, request).await
        }
    }
}

/// A task that ends with whoever waits for it.
struct Called<T>(Task<T>);

impl<T> Future for Called<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for Called<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The response for the client.
fn incoming_response(
    tenant: &Arc<Tenant>,
    mut response: Response<Body>,
    deadline: Option<Sleep>,
    held: Held,
) -> Response<Body> {
    if response.status().is_redirection() && response.headers().contains_key(header::LOCATION) {
        let mut refused =
            plain(502, "the backend attempted to redirect this request, which is not permitted");
        refused.headers_mut().remove(header::CACHE_CONTROL);
        return refused;
    }
    if response.status() == StatusCode::SWITCHING_PROTOCOLS || response.status().is_informational() {
        return plain(502, "the backend switched protocols, which was not requested");
    }
    headers::strip_hop_by_hop(response.headers_mut());
    *response.version_mut() = http::Version::default();
    if !response.headers().contains_key(header::CACHE_CONTROL) {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    }
    let stopped = tenant.stop.clone();
    let stopped: BoxFuture<'static, ()> = Box::pin(async move { stopped.cancelled().await });
    let stopped = deadline.is_none().then_some(stopped);
    response.map(|body| Body::of(Forwarded { body, deadline, stopped, _held: held }))
}

/// What a request holds until its response is complete.
struct Held {
    /// One of those of the `APIService`.
    _permit: OwnedSemaphorePermit,
    _seat: Option<Slot>,
}

/// The body of a response that is being forwarded.
struct Forwarded {
    body: Body,
    /// When the response must be complete.
    deadline: Option<Sleep>,
    /// Ends a stream with the server.
    stopped: Option<BoxFuture<'static, ()>>,
    _held: Held,
}

impl http_body::Body for Forwarded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Some(deadline) = &mut this.deadline
            && Pin::new(deadline).poll(cx).is_ready()
        {
            return Poll::Ready(Some(Err(
                "the response of the aggregated API was not complete in time".into()
            )));
        }
        if let Some(stopped) = &mut this.stopped
            && stopped.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(None);
        }
        Pin::new(&mut this.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_a_server_could_read_differently() {
        for path in
            ["/apis/g/v/a/../b", "/apis/g/v/.", "/apis/g/v/..", "/apis/g/v//a", "/apis/g/v/a//", "//apis/g/v"]
        {
            assert!(is_ambiguous(path), "{path}");
        }
        for path in [
            "/apis/g/v",
            "/apis/g/v/",
            "/apis/g/v/a..b",
            "/apis/g/v/namespaces/a/x.y/...",
            "/apis/g/v/a b",
            "/apis/g/v/%2e%2e/b",
        ] {
            assert!(!is_ambiguous(path), "{path}");
        }
    }
}
