//! The webhook server: handlers by path, also callable in process.

use std::{
    collections::BTreeMap,
    fmt,
    net::{IpAddr, SocketAddr},
    panic::AssertUnwindSafe,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, Request, Response, StatusCode};
use k1s_env::{Component, Env, WorkTracker};
use parking_lot::RwLock;
use tokio::sync::watch;

use super::{
    admission::AdmissionHook,
    configuration::Registration,
    conversion::{Converter, ConverterError, Converters},
    metrics::{PathMetrics, WebhookMetrics},
    paths,
    wire::{HttpHandler, TooLarge, panic_message, text},
};
use crate::{BoxError, Metrics, Object};

/// The options of a [`WebhookServer`].
#[derive(Debug, Clone)]
pub struct WebhookOptions {
    /// The address to listen on. `None`: all addresses, of both families where there are two.
    pub host: Option<IpAddr>,
    /// The port to listen on: 9443 by default. 0 picks a free one, which [`WebhookServer::bound`] returns.
    pub port: u16,
    /// Whether to use TLS, as by default. API servers require it; without it, a proxy has to terminate TLS.
    pub tls: bool,
    /// The directory of certificate and key: `k8s-webhook-server/serving-certs` in the temporary directory by default.
    pub cert_dir: PathBuf,
    /// The file name of the certificate and its chain: `tls.crt` by default.
    pub cert_name: String,
    /// The file name of the key: `tls.key` by default.
    pub key_name: String,
    /// The file of the client CAs, in `cert_dir` unless its path is absolute. If set, clients must present a certificate of
    /// one of them.
    pub client_ca_name: Option<String>,
    /// The interval at which the files are reloaded: 10 s by default. Handshakes detect most changes earlier.
    pub reload_period: Duration,
    /// Maximum size of a request body: 7 MiB by default.
    pub max_body: usize,
    /// How long a shutdown waits for requests in flight: a minute by default.
    pub shutdown_timeout: Duration,
    /// The registry of the server's metrics. Only one server per registry.
    pub metrics: Metrics,
    /// Tracks each request as a unit of work of the component `webhook`. If it accepts no more work, requests are answered
    /// with 503.
    pub tracker: Option<WorkTracker>,
}

impl Default for WebhookOptions {
    fn default() -> WebhookOptions {
        WebhookOptions {
            host: None,
            port: 9443,
            tls: true,
            cert_dir: std::env::temp_dir().join("k8s-webhook-server").join("serving-certs"),
            cert_name: "tls.crt".into(),
            key_name: "tls.key".into(),
            client_ca_name: None,
            reload_period: Duration::from_secs(10),
            max_body: 7 * 1024 * 1024,
            shutdown_timeout: Duration::from_secs(60),
            metrics: Metrics::new(),
            tracker: None,
        }
    }
}

/// Why something cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// The path already has a handler.
    #[error("can't register duplicate path: {0}")]
    Duplicate(String),
    /// The path is invalid.
    #[error(
        "{0:?} is not a valid path: it must begin with / and consist of segments of letters, digits, - and _"
    )]
    Path(String),
    /// The kind already has a converter.
    #[error("{0} already has a converter")]
    DuplicateConverter(String),
    /// The converter is invalid.
    #[error("invalid converter: {0}")]
    Converter(#[from] ConverterError),
}

/// A handler at a path: an [`AdmissionHook`], or plain HTTP.
#[derive(Clone)]
pub struct Hook(HookKind);

#[derive(Clone)]
enum HookKind {
    Admission(AdmissionHook),
    Conversion(Arc<Converters>),
    Http(Arc<dyn HttpHandler>),
}

impl Hook {
    /// Handles plain HTTP requests.
    pub fn http(handler: impl HttpHandler) -> Hook {
        Hook(HookKind::Http(Arc::new(handler)))
    }
}

impl From<AdmissionHook> for Hook {
    fn from(hook: AdmissionHook) -> Hook {
        Hook(HookKind::Admission(hook))
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            HookKind::Admission(_) => "Hook(admission)",
            HookKind::Conversion(_) => "Hook(conversion)",
            HookKind::Http(_) => "Hook(http)",
        })
    }
}

struct Route {
    hook: Hook,
    metrics: PathMetrics,
    registration: Option<Registration>,
}

/// Serves webhooks: over HTTPS with [`run`](Self::run), and in process with [`handle`](Self::handle). Clones refer to the
/// same server.
#[derive(Clone)]
pub struct WebhookServer {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) env: Env,
    pub(super) options: WebhookOptions,
    pub(super) metrics: WebhookMetrics,
    pub(super) state: watch::Sender<State>,
    routes: RwLock<BTreeMap<String, Arc<Route>>>,
    converters: Arc<Converters>,
    work: Option<Component>,
}

/// The lifecycle of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    New,
    Serving(SocketAddr),
    Stopped,
}

impl WebhookServer {
    /// A server without handlers, which does not listen yet.
    pub fn new(env: &Env, options: WebhookOptions) -> WebhookServer {
        let metrics = WebhookMetrics::new(&options.metrics);
        let work = options.tracker.as_ref().map(|tracker| tracker.component("webhook"));
        let inner = Inner {
            env: env.clone(),
            options,
            metrics,
            state: watch::Sender::new(State::New),
            routes: RwLock::default(),
            converters: Arc::default(),
            work,
        };
        WebhookServer { inner: Arc::new(inner) }
    }

    /// Its options.
    #[must_use]
    pub fn options(&self) -> &WebhookOptions {
        &self.inner.options
    }

    /// Registers a handler at a path; also while the server runs.
    ///
    /// # Errors
    /// If the path is invalid or already has a handler.
    pub fn register(&self, path: &str, hook: impl Into<Hook>) -> Result<(), RegisterError> {
        self.register_all(vec![(path.to_owned(), hook.into(), None)])
    }

    /// Registers all of the handlers or, on an error, none.
    pub(super) fn register_all(
        &self,
        hooks: Vec<(String, Hook, Option<Registration>)>,
    ) -> Result<(), RegisterError> {
        let mut routes = self.inner.routes.write();
        for (index, (path, ..)) in hooks.iter().enumerate() {
            if !paths::is_valid(path) {
                return Err(RegisterError::Path(path.clone()));
            }
            if routes.contains_key(path) || hooks[..index].iter().any(|(other, ..)| other == path) {
                return Err(RegisterError::Duplicate(path.clone()));
            }
        }
        for (path, hook, registration) in hooks {
            tracing::info!(path, "registering webhook");
            let metrics = self.inner.metrics.path(&path);
            routes.insert(path, Arc::new(Route { hook, metrics, registration }));
        }
        Ok(())
    }

    /// Adds the conversions of a kind to `/convert`; also while the server runs.
    ///
    /// # Errors
    /// If the kind already has a converter, the converter is invalid, or `/convert` has a handler of another type.
    pub fn register_converter<H>(&self, converter: Converter<H>) -> Result<(), RegisterError>
    where
        H: Object<DynamicType: Default>,
    {
        let (group, kind, converter) = converter.erase()?;
        let hook = Hook(HookKind::Conversion(Arc::clone(&self.inner.converters)));
        if let Err(error) = self.register(paths::CONVERT, hook) {
            let routes = self.inner.routes.read();
            let ours = |route: &Arc<Route>| matches!(route.hook.0, HookKind::Conversion(_));
            if !routes.get(paths::CONVERT).is_some_and(ours) {
                return Err(error);
            }
        }
        let name = k1s_object::status::qualified(&group, &kind);
        if self.inner.converters.add(group, kind, converter) {
            Ok(())
        } else {
            Err(RegisterError::DuplicateConverter(name))
        }
    }

    /// The paths that have a handler, sorted.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        self.inner.routes.read().keys().cloned().collect()
    }

    /// The webhooks that were registered by [`Webhook::complete`](super::Webhook::complete), sorted by path.
    #[must_use]
    pub fn registrations(&self) -> Vec<Registration> {
        self.inner.routes.read().values().filter_map(|route| route.registration.clone()).collect()
    }

    /// Handles a request in process, exactly as over HTTPS.
    pub async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (parts, body) = request.into_parts();
        let body = self.check_size(body);
        self.answer(parts, async { Ok(body) }).await
    }

    pub(super) fn check_size(&self, body: Bytes) -> Result<Bytes, TooLarge> {
        let limit = self.inner.options.max_body;
        if body.len() > limit { Err(TooLarge { limit }) } else { Ok(body) }
    }

    /// Handles a request whose body is still to be read.
    pub(super) async fn answer(
        &self,
        parts: http::request::Parts,
        body: impl Future<Output = Result<Result<Bytes, TooLarge>, BoxError>>,
    ) -> Response<Bytes> {
        let path = parts.uri.path();
        let Some(route) = self.inner.routes.read().get(path).cloned() else {
            return text(StatusCode::NOT_FOUND, "404 page not found\n");
        };
        let metrics = route.metrics.begin(&self.inner.env);
        let work = match self.inner.work.as_ref().map(|work| work.begin(path.to_owned())) {
            Some(Err(refused)) => {
                metrics.answered(503);
                return text(StatusCode::SERVICE_UNAVAILABLE, refused.to_string());
            }
            Some(Ok(work)) => Some(work),
            None => None,
        };
        let response = match body.await {
            Ok(body) => self.dispatch(&route, parts, body).await,
            Err(error) => text(StatusCode::BAD_REQUEST, format!("cannot read the body: {error}")),
        };
        metrics.answered(response.status().as_u16());
        if let Some(work) = work {
            if response.status().is_server_error() { work.fail() } else { work.succeed() }
        }
        response
    }

    async fn dispatch(
        &self,
        route: &Route,
        parts: http::request::Parts,
        body: Result<Bytes, TooLarge>,
    ) -> Response<Bytes> {
        let metrics = &self.inner.metrics;
        let headers: &HeaderMap = &parts.headers;
        match &route.hook.0 {
            HookKind::Admission(hook) => hook.call(parts.uri.path(), headers, body, &metrics.panics).await,
            HookKind::Conversion(converters) => converters.call(body, &metrics.conversion_panics),
            HookKind::Http(handler) => match body {
                Ok(body) => {
                    let path = parts.uri.path().to_owned();
                    let request = Request::from_parts(parts, body);
                    let called = AssertUnwindSafe(async { handler.call(request).await }).catch_unwind().await;
                    called.unwrap_or_else(|panic| {
                        metrics.panics.inc();
                        let message = panic_message(panic.as_ref());
                        tracing::error!(path, message, "recovered a panic in a webhook");
                        text(StatusCode::INTERNAL_SERVER_ERROR, format!("panic: {message} [recovered]"))
                    })
                }
                Err(error) => text(StatusCode::PAYLOAD_TOO_LARGE, error.to_string()),
            },
        }
    }

    /// The address it listens on, once it does. Waits for ever if it is never run.
    pub async fn bound(&self) -> SocketAddr {
        let mut state = self.inner.state.subscribe();
        loop {
            if let State::Serving(address) = *state.borrow_and_update() {
                return address;
            }
            // Never fails: the sender is in `self`.
            let _ = state.changed().await;
        }
    }

    /// The address it listens on, if it does.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match *self.inner.state.borrow() {
            State::Serving(address) => Some(address),
            State::New | State::Stopped => None,
        }
    }

    /// A readiness check that succeeds while the server accepts connections.
    pub fn started_checker(&self) -> impl Fn() -> Result<(), BoxError> + Clone + Send + Sync + use<> {
        let server = self.clone();
        move || match *server.inner.state.borrow() {
            State::Serving(_) => Ok(()),
            State::New => Err("webhook server has not been started yet".into()),
            State::Stopped => Err("webhook server has been stopped".into()),
        }
    }
}

impl fmt::Debug for WebhookServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookServer")
            .field("state", &*self.inner.state.borrow())
            .field("paths", &self.paths())
            .finish_non_exhaustive()
    }
}
