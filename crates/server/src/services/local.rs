//! Services in this process.

use std::{
    collections::HashMap, convert::Infallible, fmt, future::poll_fn, panic::AssertUnwindSafe, pin::Pin,
    sync::Arc, task::Poll,
};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use parking_lot::RwLock;
use tokio::sync::watch;
use tower::Service;

use crate::body::{Body, BoxError};

/// The body of a request that a Service in this process receives, as it arrives.
pub type RequestBody = UnsyncBoxBody<Bytes, BoxError>;

type Whole = dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> + Send + Sync;
type Streaming = dyn Fn(Request<RequestBody>) -> BoxFuture<'static, Response<Body>> + Send + Sync;

/// A tenant, all tenants if there is none, and a host.
type Key = (Option<String>, String);

/// Maximum size of the body of a request for a Service that takes it as a whole.
const MAX_WHOLE_BYTES: usize = 16 << 20;

/// A Service that is called instead of a connection.
#[derive(Clone)]
pub(crate) enum LocalService {
    Whole(Arc<Whole>),
    Streaming(Arc<Streaming>),
}

/// Services in this process, by the host of their address: `name.namespace.svc` for Services, the host of the URL for webhooks
/// that are registered with one; with `:port` for one port alone. A configuration or an `APIService` that names such a host is
/// served without a socket, and needs no `caBundle`. Clones share their content, which can change while the server runs.
#[derive(Clone, Default)]
pub struct LocalServices(Arc<Table>);

#[derive(Default)]
struct Table {
    services: RwLock<HashMap<Key, LocalService>>,
    /// Notified of every change.
    changes: watch::Sender<u64>,
}

impl LocalServices {
    /// Serves a host for one tenant, with whole bodies: for webhooks. Replaces what was there.
    pub fn serve<S>(&self, tenant: impl Into<String>, host: impl Into<String>, service: S)
    where
        S: Service<Request<Bytes>, Response = Response<Bytes>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        self.insert((Some(tenant.into()), host.into()), whole(service));
    }

    /// Serves a host for every tenant, with whole bodies.
    pub fn serve_all<S>(&self, host: impl Into<String>, service: S)
    where
        S: Service<Request<Bytes>, Response = Response<Bytes>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        self.insert((None, host.into()), whole(service));
    }

    /// Serves a host for one tenant, or for every tenant if there is none, with bodies that are streams: for aggregated APIs.
    pub fn serve_streams<S, B>(&self, tenant: Option<&str>, host: impl Into<String>, service: S)
    where
        S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let handler: Arc<Streaming> = Arc::new(move |request| {
            Box::pin(call(service.clone(), request, |response: Response<B>| response.map(Body::of)))
        });
        self.insert((tenant.map(str::to_owned), host.into()), LocalService::Streaming(handler));
    }

    fn insert(&self, key: Key, service: LocalService) {
        self.0.services.write().insert(key, service);
        self.0.changes.send_modify(|changes| *changes += 1);
    }

    /// Serves a host no longer; of every tenant, if none is given.
    pub fn remove(&self, tenant: Option<&str>, host: &str) {
        self.0.services.write().remove(&(tenant.map(str::to_owned), host.to_owned()));
        self.0.changes.send_modify(|changes| *changes += 1);
    }

    /// Notifies of every change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// The Service at the first of these hosts that has one.
    pub(crate) fn find(&self, tenant: &str, hosts: &[&str]) -> Option<LocalService> {
        let services = self.0.services.read();
        if services.is_empty() {
            return None;
        }
        let find = |tenant: Option<&str>, host: &str| {
            services.get(&(tenant.map(str::to_owned), host.to_owned())).cloned()
        };
        hosts.iter().find_map(|host| find(Some(tenant), host).or_else(|| find(None, host)))
    }
}

fn whole<S>(service: S) -> LocalService
where
    S: Service<Request<Bytes>, Response = Response<Bytes>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    LocalService::Whole(Arc::new(move |request| {
        Box::pin(call(service.clone(), request, |response| response))
    }))
}

/// Calls a service when it is ready. Not an async function: whether such a future is `Send` cannot be seen for every service.
fn call<S, Q, R, T>(mut service: S, request: Q, then: fn(R) -> T) -> impl Future<Output = T>
where
    S: Service<Q, Response = R, Error = Infallible>,
{
    let mut request = Some(request);
    let mut called: Option<Pin<Box<S::Future>>> = None;
    poll_fn(move |cx| {
        if called.is_none()
            && let Some(request) = request.take_if(|_| service.poll_ready(cx).is_ready())
        {
            called = Some(Box::pin(service.call(request)));
        }
        match called.as_mut().map(|called| called.as_mut().poll(cx)) {
            Some(Poll::Ready(Ok(response))) => Poll::Ready(then(response)),
            Some(Poll::Ready(Err(never))) => match never {},
            Some(Poll::Pending) | None => Poll::Pending,
        }
    })
}

/// Why a Service in this process did not answer.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum LocalError {
    #[error("the service panicked")]
    Panicked,
    #[error("{0}")]
    Body(String),
}

impl LocalService {
    /// Calls it with a whole body, and collects at most this many bytes of its answer. A panic is an error of the Service, not
    /// of the server.
    pub(crate) async fn call(
        &self,
        request: Request<Bytes>,
        max_bytes: usize,
    ) -> Result<Response<Bytes>, LocalError> {
        match self {
            LocalService::Whole(handler) => caught(async { handler(request).await }).await,
            LocalService::Streaming(handler) => {
                let request =
                    request.map(|body| Full::new(body).map_err(|never| match never {}).boxed_unsync());
                let (parts, body) = caught(async { handler(request).await }).await?.into_parts();
                let body = collect(body, max_bytes).await?;
                Ok(Response::from_parts(parts, body))
            }
        }
    }

    /// Calls it with a body that is a stream.
    pub(crate) async fn stream(&self, request: Request<RequestBody>) -> Result<Response<Body>, LocalError> {
        match self {
            LocalService::Streaming(handler) => caught(async { handler(request).await }).await,
            LocalService::Whole(handler) => {
                let (parts, body) = request.into_parts();
                let request = Request::from_parts(parts, collect(body, MAX_WHOLE_BYTES).await?);
                Ok(caught(async { handler(request).await }).await?.map(Body::from))
            }
        }
    }
}

async fn caught<T>(called: impl Future<Output = T>) -> Result<T, LocalError> {
    AssertUnwindSafe(called).catch_unwind().await.map_err(|_| {
        tracing::error!("a service in this process panicked");
        LocalError::Panicked
    })
}

async fn collect<B>(body: B, max_bytes: usize) -> Result<Bytes, LocalError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    Body::of(body).collect_up_to(max_bytes).await.map_err(|why| LocalError::Body(why.to_string()))
}

impl fmt::Debug for LocalServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.services.read().keys()).finish()
    }
}
