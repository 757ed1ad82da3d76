//! The server: a tower Service, and the way of a request through it.

use std::{
    collections::HashMap,
    convert::Infallible,
    fmt,
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use k1s_env::Env;
use k1s_object::{Status, names, selector::FieldSelector};
use k1s_store::Store;
use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;

use crate::{
    auth::{self, Attributes, Target, User},
    body::Body,
    catalog::Catalog,
    context::Cx,
    delete, discovery, errors, health, lifecycle, metadata,
    metrics::{Labels, Metrics},
    negotiate::{self, Media, Offer},
    openapi,
    options::{ServerOptions, TenantEvent},
    read,
    request::{self, Path, Query, ResourcePath},
    resource::Resource,
    respond, subresource,
    tenant::{Shared, Tenant},
    verbs, watch,
    write::Part,
};

/// A Kubernetes API server over a store. Cheap to clone; clones are the same server.
///
/// Give it to `kube::Client::new(server, "default")` and nothing touches a socket; give it to [`crate::serve`] and
/// kubectl, client-go and everybody else can use it.
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
    /// The tenant that this handle is for; `None`: the path says it.
    tenant: Option<Arc<Tenant>>,
    /// Who requests without credentials are.
    user: Option<User>,
}

struct Inner {
    shared: Arc<Shared>,
    tenants: RwLock<HashMap<String, Arc<Tenant>>>,
    /// One tenant at a time comes into being.
    making: tokio::sync::Mutex<()>,
}

impl ApiServer {
    /// A server over this store. The default tenant is there when this returns.
    pub async fn new(env: Env, store: Arc<dyn Store>, options: ServerOptions) -> Result<ApiServer, Status> {
        let stop = CancellationToken::new();
        let default = options.default_tenant.clone();
        let shared = Arc::new(Shared {
            env,
            store,
            options,
            catalog: Catalog::new(),
            metrics: Metrics::default(),
            authorizer: Arc::new(auth::Defaults),
            signer: auth::TokenSigner::default(),
            stop,
        });
        let inner = Inner { shared, tenants: RwLock::default(), making: tokio::sync::Mutex::new(()) };
        let server = ApiServer { inner: Arc::new(inner), tenant: None, user: None };
        server.inner.tenant(&default, true).await?;
        Ok(server)
    }

    /// The same server, where requests without credentials are this user's: for programs in this process.
    #[must_use]
    pub fn as_user(&self, user: User) -> ApiServer {
        ApiServer { user: Some(user), ..self.clone() }
    }

    /// A handle on one tenant: paths are relative to it. The tenant comes into being if it is not there.
    pub async fn tenant(&self, name: &str) -> Result<ApiServer, Status> {
        let tenant = self.inner.tenant(name, true).await?;
        Ok(ApiServer { tenant: Some(tenant), ..self.clone() })
    }

    /// A handle on a tenant that is there.
    ///
    /// # Errors
    /// 404 if it is not.
    pub async fn find_tenant(&self, name: &str) -> Result<ApiServer, Status> {
        let tenant = self.inner.tenant(name, false).await?;
        Ok(ApiServer { tenant: Some(tenant), ..self.clone() })
    }

    /// Makes a tenant; it is no error if it is there.
    pub async fn create_tenant(&self, name: &str) -> Result<(), Status> {
        self.inner.tenant(name, true).await.map(|_| ())
    }

    /// Deletes a tenant and everything in it. Its watches end.
    pub async fn delete_tenant(&self, name: &str) -> Result<(), Status> {
        let making = self.inner.making.lock().await;
        let tenant = self.inner.tenants.write().remove(name);
        let tenant = tenant.unwrap_or_else(|| Tenant::new(self.inner.shared.clone(), name));
        if let Some(hook) = &self.inner.shared.options.tenant_hook {
            hook.tell(TenantEvent::Gone(name));
        }
        let deleted = tenant.delete().await;
        drop(making);
        deleted
    }

    /// The tenants of this process.
    pub fn tenants(&self) -> Vec<String> {
        let mut names: Vec<String> = self.inner.tenants.read().keys().cloned().collect();
        names.sort();
        names
    }

    /// Ends all watches and tasks. Requests under way go on to their end.
    pub fn shutdown(&self) {
        self.inner.shared.stop.cancel();
    }

    /// Fires when [`ApiServer::shutdown`] was called.
    pub(crate) fn stopped(&self) -> &CancellationToken {
        &self.inner.shared.stop
    }

    /// What everything is kept in.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.inner.shared.store
    }

    /// The server's environment.
    pub(crate) fn env(&self) -> &Env {
        &self.inner.shared.env
    }

    async fn handle<B>(self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let shared = self.inner.shared.clone();
        let started = shared.env.now();
        let mut labels = Labels::default();
        let outcome = AssertUnwindSafe(self.answer(request, &mut labels)).catch_unwind().await;
        let response = outcome.unwrap_or_else(|_| {
            tracing::error!("a request made the server panic; this is a bug");
            respond::status(
                &Status::internal("the server panicked while it worked on the request"),
                Media::Json,
            )
        });
        let took = shared.env.now() - started;
        shared.metrics.answered(labels, response.status().as_u16(), took);
        response
    }

    async fn answer<B>(&self, request: Request<B>, labels: &mut Labels) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let media = preferred_media(&request);
        let head = request.method() == Method::HEAD;
        let mut response = match self.route(request, labels).await {
            Ok(response) => response,
            Err(status) => respond::status(&status, media),
        };
        if head {
            *response.body_mut() = Body::empty();
        }
        response
    }

    async fn route<B>(&self, request: Request<B>, labels: &mut Labels) -> Result<Response<Body>, Status>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let shared = &self.inner.shared;
        let (parts, body) = request.into_parts();
        let (tenant_name, path) = split_tenant(parts.uri.path());
        let query = Query::parse(parts.uri.query());
        let parsed = request::parse_path(path);
        let verb = match &parsed {
            Path::Resource(resource) => {
                let verb = request::verb(&parts.method, resource, &query);
                labels.verb = metric_verb(verb);
                if let Some(known) =
                    shared.catalog.find(&resource.group, &resource.version, &resource.resource)
                {
                    label(labels, &known, resource);
                }
                verb
            }
            _ => {
                let verb = path_verb(&parts.method);
                labels.verb = metric_verb(verb);
                verb
            }
        };
        let (name, create) = match tenant_name {
            Some(name) => (name, shared.options.create_tenants),
            None => (&*shared.options.default_tenant, true),
        };
        // A tenant that is not there yet comes into being for those who may do what they want to do in it.
        let found = match &self.tenant {
            // A handle may outlive its tenant.
            Some(tenant) if tenant.stop.is_cancelled() && !shared.stop.is_cancelled() => {
                return Err(Status::not_found("", "clusters", &tenant.name));
            }
            Some(tenant) => Some(tenant.clone()),
            None => match self.inner.tenant(name, false).await {
                Ok(tenant) => Some(tenant),
                Err(status) if status.code == 404 => None,
                Err(status) => return Err(status),
            },
        };
        let selected = selected_name(verb, &query);
        let wanted = match &parsed {
            Path::Resource(resource) => attributes(verb, resource, &selected),
            Path::Other(path) if path == metadata::PATH => {
                Attributes { verb: "watch", target: metadata::TARGET }
            }
            _ => Attributes { verb, target: Target::Path(path) },
        };
        let user = self.admit(found.as_ref(), &parts.headers, &wanted).await?;
        let tenant = match found {
            Some(tenant) => tenant,
            None => self.inner.tenant(name, create).await?,
        };
        let resource_path = match parsed {
            Path::Resource(path) => path,
            other => {
                let method = parts.method.clone();
                return self.route_other(&tenant, &method, &other, &parts.headers, &query).await;
            }
        };
        let long_running = verb == "watch";
        let _slot = if long_running { None } else { Some(self.slot()?) };
        let found =
            tenant.resource(&resource_path.group, &resource_path.version, &resource_path.resource).await?;
        let Some(resource) = found else {
            return discovery::no_resource(&tenant, &resource_path).await;
        };
        if resource.is_custom() && !in_scope(&resource, &resource_path, verb) {
            return Ok(respond::page_not_found());
        }
        label(labels, &resource, &resource_path);
        check_path(&resource, &resource_path)?;
        let action = choose(&resource, &resource_path, &parts.method, verb)?;
        let offer = Offer { protobuf: !resource.is_custom(), stream: long_running, forms: true };
        let accepted = negotiate::negotiate(&parts.headers, offer)?;
        let body = read_body(&shared.env, body, shared.options.max_body_bytes).await?;
        let cx = Cx {
            tenant,
            user,
            method: parts.method,
            headers: parts.headers,
            query,
            body,
            resource,
            namespace: resource_path.namespace,
            name: resource_path.name,
            subresource: resource_path.subresource,
            accepted,
            warnings: Mutex::default(),
        };
        cx.warn_deprecated();
        self.act(Arc::new(cx), action).await
    }

    async fn act(&self, cx: Arc<Cx>, action: Action) -> Result<Response<Body>, Status> {
        let outcome = match action {
            Action::Get => read::get(&cx).await,
            Action::List => read::list(&cx).await,
            Action::Watch => return watch::open(cx).await,
            Action::Create => verbs::create(&cx).await,
            Action::Update(part) => verbs::put(&cx, part).await,
            Action::Patch(part) => verbs::patch(&cx, part).await,
            Action::Delete => delete::delete(&cx).await,
            Action::DeleteCollection => delete::delete_collection(&cx).await,
            Action::Subresource => subresource::handle(&cx).await,
        };
        let mut response = match outcome {
            Ok(response) => response,
            Err(status) => respond::status(&status, cx.accepted.media),
        };
        for warning in cx.warnings.lock().drain(..) {
            let text = format!("299 - {}", k1s_object::field::quote(&warning));
            if let Ok(value) = HeaderValue::from_str(&text) {
                response.headers_mut().append(header::WARNING, value);
            }
        }
        Ok(response)
    }

    /// Everything that is no resource.
    async fn route_other(
        &self,
        tenant: &Arc<Tenant>,
        method: &Method,
        path: &Path,
        headers: &http::HeaderMap,
        query: &Query,
    ) -> Result<Response<Body>, Status> {
        match path {
            Path::CoreVersions | Path::Groups | Path::Group(_) | Path::GroupVersion(..) => {
                if matches!(*method, Method::GET | Method::DELETE) {
                    discovery::handle(tenant, path, headers).await
                } else {
                    Err(Status::method_not_allowed())
                }
            }
            Path::Other(path) => match path.as_str() {
                "/.well-known/openid-configuration" => {
                    Ok(public(&auth::configuration(tenant), "application/json"))
                }
                "/openid/v1/jwks" => {
                    let keys = tenant.shared.signer.key_set(&**tenant.store()).await?;
                    Ok(public(&keys, "application/jwk-set+json"))
                }
                "/version" => Ok(respond::json(200, &health::version(tenant.options()))),
                "/metrics" => health::metrics(tenant).await,
                "/openapi/v2" => openapi::v2(tenant, headers).await,
                path if path.starts_with("/openapi/v3") => {
                    openapi::handle(tenant, path, query, headers).await
                }
                metadata::PATH if *method == Method::GET => metadata::handle(tenant, query).await,
                metadata::PATH => Err(Status::method_not_allowed()),
                "/" => discovery::paths(tenant).await,
                path => health::handle(tenant, path, query).await,
            },
            Path::Resource(_) => Err(Status::no_such_resource()),
        }
    }

    /// Who sends a request, if they are who they say and may do what they want.
    async fn admit(
        &self,
        tenant: Option<&Arc<Tenant>>,
        headers: &http::HeaderMap,
        wanted: &Attributes<'_>,
    ) -> Result<User, Status> {
        let shared = &self.inner.shared;
        let sender = match auth::bearer(headers) {
            Some(token) => {
                auth::authenticate(shared, tenant, token, None).await.map_err(auth::Refusal::status)?.0
            }
            None => {
                let known = self.user.clone().or_else(|| shared.options.default_user.clone());
                known.unwrap_or_else(User::anonymous)
            }
        };
        let user = auth::impersonate(&*shared.authorizer, tenant, sender, headers, wanted).await?;
        auth::check(&*shared.authorizer, tenant, &user, wanted).await?;
        Ok(user)
    }

    /// A place among the requests that are worked on.
    fn slot(&self) -> Result<Slot, Status> {
        let shared = self.inner.shared.clone();
        let before = shared.metrics.in_flight.fetch_add(1, Ordering::Relaxed);
        let limit = shared.options.max_in_flight as u64;
        let slot = Slot(shared);
        if before >= limit {
            return Err(errors::too_many_requests("Too many requests, please try again later.", 1));
        }
        Ok(slot)
    }
}

struct Slot(Arc<Shared>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.metrics.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Inner {
    async fn tenant(&self, name: &str, create: bool) -> Result<Arc<Tenant>, Status> {
        if let Some(tenant) = self.tenants.read().get(name) {
            return Ok(tenant.clone());
        }
        let wrong = k1s_object::names::is_dns1123_label(name);
        if !wrong.is_empty() {
            return Err(Status::bad_request(format!(
                "the tenant's name {name:?} is invalid: {}",
                wrong.join("; ")
            )));
        }
        let _making = self.making.lock().await;
        if let Some(tenant) = self.tenants.read().get(name) {
            return Ok(tenant.clone());
        }
        let tenant = Tenant::new(self.shared.clone(), name);
        lifecycle::open(&tenant, create).await?;
        self.tenants.write().insert(name.to_owned(), tenant.clone());
        Ok(tenant)
    }
}

/// Names what a request is about in its metrics. Only what is served has a name: clients can make up any number of
/// others.
fn label(labels: &mut Labels, resource: &Resource, path: &ResourcePath) {
    labels.group.clone_from(&path.group);
    labels.version.clone_from(&path.version);
    labels.resource.clone_from(&path.resource);
    if resource.has_subresource(&path.subresource) {
        labels.subresource.clone_from(&path.subresource);
    }
}

/// `/clusters/{name}/…`: the tenant, and the path within it.
fn split_tenant(path: &str) -> (Option<&str>, &str) {
    let Some(rest) = path.strip_prefix("/clusters/") else { return (None, path) };
    match rest.find('/') {
        Some(at) => (rest.get(..at), rest.get(at..).unwrap_or("/")),
        None => (Some(rest), "/"),
    }
}

/// What an error is encoded as, before it is known what the answer would have been.
fn preferred_media<B>(request: &Request<B>) -> Media {
    let accept =
        request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match accept.split([',', ';']).next().map(str::trim) {
        Some("application/vnd.kubernetes.protobuf") => Media::Protobuf,
        Some("application/yaml") => Media::Yaml,
        _ => Media::Json,
    }
}

/// What everybody may know for an hour.
fn public(value: &serde_json::Value, content_type: &'static str) -> Response<Body> {
    let mut response = respond::bytes(200, content_type, value.to_string().into_bytes());
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}

/// The one object that a list or watch is about, if its field selector says so.
fn selected_name(verb: &str, query: &Query) -> String {
    if !matches!(verb, "list" | "watch") {
        return String::new();
    }
    let selector = FieldSelector::parse(query.get("fieldSelector")).unwrap_or_default();
    let name = selector.exact("metadata.name").unwrap_or_default();
    if names::is_path_segment_name(name).is_empty() { name.to_owned() } else { String::new() }
}

fn attributes<'a>(verb: &'a str, path: &'a ResourcePath, selected: &'a str) -> Attributes<'a> {
    // A namespace is asked for "in" itself.
    let namespace = match &*path.namespace {
        "" if path.resource == "namespaces" && path.group.is_empty() => &path.name,
        namespace => namespace,
    };
    let target = Target::Resource {
        group: &path.group,
        resource: &path.resource,
        subresource: &path.subresource,
        namespace,
        name: if path.name.is_empty() { selected } else { &path.name },
    };
    Attributes { verb, target }
}

fn path_verb(method: &Method) -> &'static str {
    match *method {
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::HEAD => "head",
        Method::OPTIONS => "options",
        _ => "get",
    }
}

fn metric_verb(verb: &str) -> &'static str {
    match verb {
        "get" => "GET",
        "list" => "LIST",
        "watch" => "WATCH",
        "create" | "post" => "POST",
        "update" | "put" => "PUT",
        "patch" => "PATCH",
        "delete" => "DELETE",
        "deletecollection" => "DELETECOLLECTION",
        _ => "OTHER",
    }
}

/// Whether a custom resource is found at such a path: elsewhere there is no page.
fn in_scope(resource: &Resource, path: &ResourcePath, verb: &str) -> bool {
    match (resource.namespaced, path.namespace.is_empty()) {
        (false, in_cluster) => in_cluster,
        (true, true) => matches!(verb, "list" | "watch"),
        (true, false) => true,
    }
}

/// Whether the path has the form that the resource's scope asks for.
fn check_path(resource: &Resource, path: &ResourcePath) -> Result<(), Status> {
    let in_namespace = !path.namespace.is_empty();
    let wrong_scope =
        in_namespace && !resource.namespaced || resource.namespaced && !in_namespace && !path.name.is_empty();
    let deep = !path.rest.is_empty() && !matches!(&*path.subresource, "proxy");
    // What is only ever created has no name.
    let named = resource.verbs == ["create"] && !path.name.is_empty();
    if wrong_scope || deep || named || (path.watch && !path.subresource.is_empty()) {
        return Err(Status::no_such_resource());
    }
    if !path.subresource.is_empty() && !resource.has_subresource(&path.subresource) {
        return Err(match resource.is_custom() {
            true => resource.not_found(&path.name),
            false => Status::no_such_resource(),
        });
    }
    Ok(())
}

/// What a request wants done.
#[derive(Debug, Clone, Copy)]
enum Action {
    Get,
    List,
    Watch,
    Create,
    Update(Part),
    Patch(Part),
    Delete,
    DeleteCollection,
    Subresource,
}

fn choose(resource: &Resource, path: &ResourcePath, method: &Method, verb: &str) -> Result<Action, Status> {
    let known = matches!(*method, Method::GET | Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
    if !known {
        return Err(Status::method_not_allowed());
    }
    if !path.subresource.is_empty() {
        let part = match &*path.subresource {
            "status" => Part::Status,
            "finalize" => Part::Finalize,
            "approval" => Part::Approval,
            "ephemeralcontainers" => Part::EphemeralContainers,
            "resize" => Part::Resize,
            _ => return Ok(Action::Subresource),
        };
        let allowed =
            resource.subresources.iter().any(|sub| sub.name == path.subresource && sub.verbs.contains(&verb));
        return match verb {
            _ if !allowed => Err(Status::method_not_allowed()),
            "get" => Ok(Action::Get),
            "update" => Ok(Action::Update(part)),
            "patch" => Ok(Action::Patch(part)),
            _ => Err(Status::method_not_allowed()),
        };
    }
    // The old watch paths are GETs, and creating takes no name.
    let shape = match verb {
        "create" => path.name.is_empty(),
        "update" | "patch" => !path.name.is_empty(),
        _ => true,
    };
    let scope = !resource.namespaced || !path.namespace.is_empty() || matches!(verb, "list" | "watch");
    if !shape || !scope || !resource.verbs.contains(&verb) || (path.watch && *method != Method::GET) {
        return Err(Status::method_not_allowed());
    }
    Ok(match verb {
        "get" => Action::Get,
        "list" => Action::List,
        "watch" => Action::Watch,
        "create" if resource.verbs == ["create"] => Action::Subresource,
        "create" => Action::Create,
        "update" => Action::Update(Part::Main),
        "patch" => Action::Patch(Part::Main),
        "delete" => Action::Delete,
        _ => Action::DeleteCollection,
    })
}

/// A body has to be there by then.
const BODY: Duration = Duration::from_secs(60);

async fn read_body<B>(env: &Env, body: B, limit: usize) -> Result<Bytes, Status>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let read = Limited::new(body, limit).collect();
    let Ok(read) = env.timeout(BODY, read).await else {
        let message = "Timeout: request did not complete within the allotted timeout";
        return Err(Status::new(504, "Timeout", message));
    };
    match read {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(errors::request_entity_too_large(format!("Request entity too large: limit is {limit}")))
        }
        Err(error) => Err(Status::bad_request(format!("the body of the request could not be read: {error}"))),
    }
}

impl Cx {
    /// Versions that are on their way out say so.
    fn warn_deprecated(&self) {
        let warning = match &self.resource.source {
            crate::resource::Source::Custom(custom) => custom.deprecation().unwrap_or_default(),
            crate::resource::Source::BuiltIn(built_in) => built_in.rules.deprecated.to_owned(),
        };
        if !warning.is_empty() {
            self.warn(warning);
        }
    }
}

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer")
            .field("tenant", &self.tenant.as_ref().map(|tenant| &tenant.name))
            .field("tenants", &self.tenants())
            .finish_non_exhaustive()
    }
}
