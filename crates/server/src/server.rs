//! The server: a tower Service, and the way of a request through it.

use std::{
    convert::Infallible,
    fmt,
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, atomic::AtomicBool},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderValue, Method, Request, Response, header};
use k1s_env::Env;
use k1s_object::{Status, names, selector::FieldSelector};
use k1s_store::Store;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    auth::{self, Attributes, Target, User},
    body::Body,
    catalog::Catalog,
    context::Cx,
    delete, discovery,
    documents::Documents,
    flow::{self, Charge, Share, Slot},
    health,
    limits::ConnectionOptions,
    metadata,
    metrics::{Labels, Metrics},
    negotiate::{self, Media, Offer},
    openapi,
    options::ServerOptions,
    pretty, read,
    registry::{Absent, Phase, Registry, check_name},
    request::{self, Path, Query, ResourcePath},
    resource::Resource,
    respond, subresource,
    tenant::{self, Shared, Tenant},
    tenants, verbs, watch,
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
    tenants: Arc<Registry>,
}

impl ApiServer {
    /// A server over this store. The default tenant is there when this returns.
    pub async fn new(env: Env, store: Arc<dyn Store>, options: ServerOptions) -> Result<ApiServer, Status> {
        let stop = CancellationToken::new();
        let default = options.default_tenant.clone();
        let flow = flow::Flow::new(&options);
        let shared = Arc::new(Shared {
            flow,
            env,
            store,
            options,
            catalog: Catalog::new(),
            metrics: Metrics::default(),
            known: crate::cache::Known::default(),
            authorizer: Arc::new(auth::Defaults),
            signer: auth::TokenSigner::default(),
            documents: Documents::default(),
            probe: health::Probe::default(),
            stop,
        });
        let tenants = Arc::new(Registry::new(shared.clone()));
        tenants.make(&default, Absent::IsMadeAnew).await?;
        Ok(ApiServer { inner: Arc::new(Inner { shared, tenants }), tenant: None, user: None })
    }

    /// The same server, where requests without credentials are this user's: for programs in this process.
    #[must_use]
    pub fn as_user(&self, user: User) -> ApiServer {
        ApiServer { user: Some(user), ..self.clone() }
    }

    /// A handle on one tenant: paths are relative to it. The tenant comes into being if it is not there.
    pub async fn tenant(&self, name: &str) -> Result<ApiServer, Status> {
        let (tenant, _) = self.inner.tenants.make(name, Absent::IsMadeAnew).await?;
        Ok(ApiServer { tenant: Some(tenant), ..self.clone() })
    }

    /// A handle on a tenant that is there.
    ///
    /// # Errors
    /// 404 if it is not.
    pub async fn find_tenant(&self, name: &str) -> Result<ApiServer, Status> {
        let tenant = match self.inner.tenants.verified(name).await {
            Some(tenant) => tenant,
            None => self.inner.tenants.find(name, true).await?,
        };
        Ok(ApiServer { tenant: Some(tenant), ..self.clone() })
    }

    /// Makes a tenant; it is no error if it is there.
    pub async fn create_tenant(&self, name: &str) -> Result<(), Status> {
        self.inner.tenants.make(name, Absent::IsMadeAnew).await.map(|_| ())
    }

    /// Deletes a tenant and everything in it; it is no error if it is not there. Its watches end, and no write that is under
    /// way leaves anything behind, in this process or another one over the same store.
    pub async fn delete_tenant(&self, name: &str) -> Result<(), Status> {
        check_name(name)?;
        self.inner.tenants.delete(name).await.map(|_| ())
    }

    /// The tenants in the store that can be used, whoever made them.
    ///
    /// # Errors
    /// The store's.
    pub async fn stored_tenants(&self) -> Result<Vec<String>, Status> {
        let (found, _, _) = self.inner.tenants.list(None, usize::MAX).await?;
        let active = found.into_iter().filter(|tenant| tenant.mark.phase == Phase::Active);
        let mut names: Vec<String> = active.map(|tenant| tenant.name).collect();
        names.sort();
        Ok(names)
    }

    /// The tenants that were used in this process; [`ApiServer::stored_tenants`] are all.
    pub fn tenants(&self) -> Vec<String> {
        self.inner.tenants.names()
    }

    /// Ends all watches and tasks. Requests under way go on to their end.
    pub fn shutdown(&self) {
        self.inner.shared.stop.cancel();
    }

    /// Fires when [`ApiServer::shutdown`] was called.
    pub(crate) fn stopped(&self) -> &CancellationToken {
        &self.inner.shared.stop
    }

    /// What a listener does about its connections.
    pub(crate) fn connection_options(&self) -> &ConnectionOptions {
        &self.inner.shared.options.connections
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
        let accept = request.headers().get(header::ACCEPT).cloned();
        let head = request.method() == Method::HEAD;
        let indented = pretty::is_wanted(&request);
        let mut response = match self.route(request, labels).await {
            Ok(response) => response,
            Err(status) => respond::error(&status, negotiate::error_media(accept.as_ref())),
        };
        if indented {
            response = pretty::indent(response);
        }
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
        if !is_long_running(verb, &parsed) {
            check_timeout(&query)?;
        }
        let selected = selected_name(verb, &query, shared.options.max_selector_bytes);
        // Tenants are the server's, and no tenant's.
        let managed = match &parsed {
            Path::Other(path) if tenant_name.is_none() && self.tenant.is_none() => tenants::parse(path),
            _ => None,
        };
        let wanted = match (&parsed, managed) {
            (_, Some(name)) => tenants::wanted(tenants::verb(&parts.method, name), name),
            (Path::Resource(resource), _) => attributes(verb, resource, &selected),
            (Path::Other(path), _) if path == metadata::PATH => {
                Attributes { verb: "watch", target: metadata::TARGET }
            }
            _ => Attributes { verb, target: Target::Path(path) },
        };
        let stores = tenants::stores(&parts.method, &parsed, &query, &shared.catalog);
        let (tenant, user) = self.enter(tenant_name, &parts.headers, &wanted, stores).await?;
        if !is_known(&parts.method) {
            return Err(Status::method_not_allowed());
        }
        let share = Share::of(&user);
        if let Some(name) = managed {
            let (body, _charge) = flow::read(shared, body, share).await?;
            let _slot = flow::slot(shared, share)?;
            return tenants::handle(&self.inner.tenants, shared, &parts.method, name, &query, &body).await;
        }
        let resource_path = match parsed {
            Path::Resource(path) => path,
            other => {
                let method = parts.method.clone();
                return self.route_other(&tenant, &method, &other, &parts.headers, &query).await;
            }
        };
        let long_running = verb == "watch";
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
        let tables = resource.has_table(&resource_path.subresource);
        let offer = Offer { protobuf: !resource.is_custom(), stream: long_running, tables };
        let accepted = negotiate::negotiate(&parts.headers, offer)?;
        // Nobody looks at the body of a GET, and a watch would keep it for hours.
        let (body, charge) = match parts.method {
            Method::GET | Method::HEAD => (Bytes::new(), None),
            _ => flow::read(shared, body, share).await.map(|(body, charge)| (body, Some(charge)))?,
        };
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
            apart: AtomicBool::new(false),
        };
        cx.warn_deprecated();
        if long_running {
            return self.act(Arc::new(cx), action).await;
        }
        self.perform(Arc::new(cx), action, share, charge).await
    }

    /// Does what a request wants done: here, or apart if it is large.
    async fn perform(
        &self,
        cx: Arc<Cx>,
        action: Action,
        share: Share,
        charge: Option<Charge>,
    ) -> Result<Response<Body>, Status> {
        let shared = self.inner.shared.clone();
        if !cx.is_large() {
            let _slot: Slot = flow::slot(&shared, share)?;
            match self.act(cx.clone(), action).await {
                Err(status) if flow::is_for_apart(&status) => {}
                done => return done,
            }
        }
        cx.go_apart();
        let server = self.clone();
        let work = async move {
            let _charge = charge;
            let _slot = flow::slot(&server.inner.shared, share)?;
            server.act(cx, action).await
        };
        flow::run(&shared, share, work).await
    }

    async fn act(&self, cx: Arc<Cx>, action: Action) -> Result<Response<Body>, Status> {
        let outcome = match action {
            Action::Get => read::get(&cx).await,
            Action::List => read::list(&cx).await,
            Action::Watch => return watch::open(cx).await.map(pretty::as_is),
            Action::Create => verbs::create(&cx).await,
            Action::Update(part) => verbs::put(&cx, part).await,
            Action::Patch(part) => verbs::patch(&cx, part).await,
            Action::Delete => delete::delete(&cx).await,
            Action::DeleteCollection => delete::delete_collection(&cx).await,
            Action::Subresource => subresource::handle(&cx).await,
        };
        let mut response = match outcome {
            Ok(response) => response,
            Err(status) if flow::is_for_apart(&status) => return Err(status),
            Err(status) => respond::error(&status, negotiate::error_media(cx.headers.get(header::ACCEPT))),
        };
        if response.status() == http::StatusCode::NOT_FOUND {
            cx.tenant.look(tenant::LOOK_SOON);
        }
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
                if *method != Method::GET && discovery::is_only_read(tenant, path) {
                    return Err(Status::method_not_allowed());
                }
                discovery::handle(tenant, path, headers).await
            }
            Path::Other(path) => match path.as_str() {
                "/.well-known/openid-configuration" | "/openid/v1/jwks" | "/version" | metadata::PATH
                    if *method != Method::GET =>
                {
                    Err(Status::method_not_allowed())
                }
                "/.well-known/openid-configuration" => {
                    Ok(public(&auth::configuration(tenant), "application/json"))
                }
                "/openid/v1/jwks" => {
                    let keys = tenant.shared.signer.key_set(&**tenant.store()).await?;
                    Ok(public(&keys, "application/jwk-set+json"))
                }
                "/version" => Ok(respond::raw_json(200, &health::version(tenant.options()))),
                "/metrics" => health::metrics(tenant).await,
                "/openapi/v2" => openapi::v2(tenant, headers).await.map(pretty::as_is),
                path if path.starts_with("/openapi/v3") => {
                    openapi::handle(tenant, path, query, headers).await.map(pretty::as_is)
                }
                metadata::PATH => metadata::handle(tenant, query).await.map(pretty::as_is),
                "/" if !matches!(*method, Method::GET | Method::HEAD) => Err(tenants::not_here(&tenant.name)),
                "/" => discovery::paths(tenant).await,
                path => health::handle(tenant, path, query).await,
            },
            Path::Resource(_) => Err(Status::no_such_resource()),
        }
    }

    /// The tenant that a request is for, and who sends it. `stores`: whether it may bring the tenant into being.
    async fn enter(
        &self,
        name: Option<&str>,
        headers: &http::HeaderMap,
        wanted: &Attributes<'_>,
        stores: bool,
    ) -> Result<(Arc<Tenant>, User), Status> {
        let (shared, registry) = (&self.inner.shared, &self.inner.tenants);
        if let Some(tenant) = &self.tenant {
            // A handle may outlive its tenant, and does not lead to others.
            if tenant.is_gone() || name.is_some_and(|name| name != tenant.name) {
                return Err(tenant::not_found(name.unwrap_or(&tenant.name)));
            }
            tenant.look(tenant::LOOK);
            let user = self.admit(Some(tenant), headers, wanted).await?;
            return Ok((tenant.clone(), user));
        }
        let name = name.unwrap_or(&shared.options.default_tenant);
        if let Some(tenant) = registry.opened(name) {
            tenant.look(tenant::LOOK);
            let user = self.admit(Some(&tenant), headers, wanted).await?;
            return Ok((tenant, user));
        }
        check_name(name)?;
        // Who is certain to be refused, is so before anything is read.
        let sender = match auth::bearer(headers) {
            Some(token) => auth::outside(shared, name, token).await?,
            None => Some(self.sender()),
        };
        if let Some(sender) = &sender
            && !auth::could_allow(&*shared.authorizer, sender, headers, wanted)
        {
            self.admit(None, headers, wanted).await?;
        }
        let known = sender.is_none_or(|sender| sender.is_in("system:authenticated"));
        match registry.find(name, known).await {
            Ok(tenant) => {
                let user = self.admit(Some(&tenant), headers, wanted).await?;
                return Ok((tenant, user));
            }
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
        }
        let user = self.admit(None, headers, wanted).await?;
        let create = tenants::wanted("create", name);
        if stores
            && shared.options.create_tenants
            && auth::check(&*shared.authorizer, None, &user, &create).await.is_ok()
        {
            let (tenant, _) = registry.make(name, Absent::IsMade).await?;
            return Ok((tenant, user));
        }
        // Whether it is there is told to those who may know.
        auth::check(&*shared.authorizer, None, &user, &tenants::wanted("get", name)).await?;
        Err(tenant::not_found(name))
    }

    /// Who sends a request without credentials.
    fn sender(&self) -> User {
        let known = self.user.clone().or_else(|| self.inner.shared.options.default_user.clone());
        known.unwrap_or_else(User::anonymous)
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
            None => self.sender(),
        };
        let user = auth::impersonate(&*shared.authorizer, tenant, sender, headers, wanted).await?;
        auth::check(&*shared.authorizer, tenant, &user, wanted).await?;
        Ok(user)
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

/// What everybody may know for an hour.
fn public(value: &serde_json::Value, content_type: &'static str) -> Response<Body> {
    let mut response = respond::bytes(200, content_type, value.to_string().into_bytes());
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    pretty::as_is(response)
}

/// The one object that a list or watch is about, if its field selector says so. One that is too long to be accepted is not
/// looked at: nobody knows yet who sent it.
fn selected_name(verb: &str, query: &Query, longest: usize) -> String {
    let selector = query.get("fieldSelector");
    if !matches!(verb, "list" | "watch") || selector.len() > longest {
        return String::new();
    }
    let selector = FieldSelector::parse(selector).unwrap_or_default();
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

/// Whether a method means anything anywhere.
fn is_known(method: &Method) -> bool {
    let with_body = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    with_body.contains(method) || [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}

/// Whether a request takes as long as its client wants. Such requests have no deadline.
fn is_long_running(verb: &str, path: &Path) -> bool {
    let streams = |path: &ResourcePath| {
        matches!(&*path.subresource, "attach" | "exec" | "log" | "portforward" | "proxy")
    };
    verb == "watch" || matches!(path, Path::Resource(path) if streams(path))
}

/// The `timeout` of the query has to be a duration.
fn check_timeout(query: &Query) -> Result<(), Status> {
    let Some(text) = query.find("timeout").filter(|text| !text.is_empty()) else { return Ok(()) };
    k1s_object::time::Duration::parse(text)
        .map(|_| ())
        .map_err(|why| Status::bad_request(format!("invalid timeout specified in the request URL - {why}")))
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
