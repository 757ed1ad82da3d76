//! The path of a request through the server: [`route`] lists the steps in order.
//!
//! The body of a request is erased at the entrance ([`RequestBody`]): the rest is not generic, and so is compiled in this
//! crate alone, once, instead of in every program and test that calls the server.
//!
//! The order is part of the contract. A sender that cannot be authorized is rejected before the store is read (`enter`);
//! 403 comes before 404 and 405; a body is read before its request takes a seat, so a slow sender holds none. (One that is
//! forwarded to another server is not read here: its request has its seat, and a deadline.)

mod aggregated;
mod around;
mod attributes;
mod dispatch;
mod enter;
mod paths;

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::AtomicBool},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Method, Request, Response};
use parking_lot::Mutex;

use self::aggregated::{Candidate, Entered};
use crate::{
    aggregator,
    audit::Trail,
    auth,
    body::Body,
    bootstrap,
    capacity::{HeldTurn, Share},
    context::Cx,
    converted::Memo,
    errors::Error,
    flow::{self, RequestBody},
    identity::Peer,
    negotiate::{self, Offer},
    projects, rbac,
    request::{self, Path, RequestInfo, ResourcePath},
    server::ApiServer,
    tenants,
};

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        call(self.clone(), request.map(RequestBody::new))
    }
}

type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

#[inline(never)]
fn call(server: ApiServer, request: Request<RequestBody>) -> Answering {
    Box::pin(async move { Ok(around::handle(&server, request).await) })
}

/// Whether a request can be for roles and bindings that every cluster has.
fn shows_initial_policy(path: &ResourcePath) -> bool {
    path.group == rbac::GROUP && matches!(&*path.namespace, "" | "kube-public" | "kube-system")
}

/// Answers a request. An error becomes a response in [`around`].
async fn route(
    server: &ApiServer,
    request: Request<RequestBody>,
    notes: &mut around::Notes,
    trail: Option<&Arc<Trail>>,
) -> Result<Response<Body>, Error> {
    let shared = server.shared();
    let (mut parts, body) = request.into_parts();
    // Resolve: tenant, path, verb.
    let path = request::decode_path(parts.uri.path())?;
    let (query, longest) = (parts.uri.query(), shared.options.max_selector_bytes);
    let (projects_of, of_host) = (enter::projects_of(server), enter::project_of_host(&parts));
    let info = RequestInfo::resolve(&parts.method, &path, query, longest, projects_of, of_host.as_deref());
    around::label_request(&mut notes.labels, &info, &shared.catalog);
    let managed = enter::managed_tenant(server, &info);
    // A handle that is bound to a tenant has not come in by its name.
    let entered_by_name = info.is_project || server.bound_tenant().is_none();
    let entrance = info.tenant.filter(|_| entered_by_name).map(str::to_owned);
    // Authenticate and authorize, in the tenant.
    let wanted = attributes::of(&info, &parts.method, managed);
    let peer = parts.extensions.get::<Arc<Peer>>().map(|peer| &**peer);
    let audit = trail.map(|trail| enter::Audited { trail, about: enter::about(server, &info) });
    let sent = enter::Sent { headers: &parts.headers, path: info.path, peer, audit };
    notes.warning = auth::spaced_token(&parts.headers).filter(|_| sent.connected(server).is_none());
    let entered = match info.check_timeout() {
        Err(status) => Err(status.into()),
        Ok(()) if info.is_project => {
            enter::enter_project(server, info.tenant.unwrap_or_default(), &sent, &wanted).await
        }
        Ok(()) => {
            let stores = tenants::stores(&parts.method, &info.endpoint, &info.query, &shared.catalog);
            enter::enter(server, info.tenant, &sent, &wanted, stores).await
        }
    };
    if let (Err(_), Some(audit)) = (&entered, &sent.audit) {
        audit.trail.refuse(&parts.headers, &wanted, &audit.about);
    }
    let enter::Entered { tenant, user, newest } = entered?;
    // Somebody who may impersonate in one tenant may do so as an administrator.
    let is_trusted = user.is_admin() && !auth::impersonates(&parts.headers);
    // What has named the user is of no use to anything behind this.
    shared.authenticators.headers.strip(&mut parts.headers);
    let share = Share::of(&user);
    let flow = tenant.flow(&user, &wanted, is_trusted).await;
    notes.flow = Some(flow.clone());
    dispatch::check_method(&parts.method)?;
    // Endpoints other than resources of a tenant.
    if let Some(name) = managed {
        let (body, _charge) = flow::read(shared, body, share).await?;
        let _slot = flow::slot(shared, &flow).await?;
        let (registry, method, query) = (server.registry(), &parts.method, &info.query);
        return Box::pin(tenants::handle(registry, shared, method, name, query, &body)).await;
    }
    // Group versions of other servers.
    let candidate = Candidate::of(&info, &shared.catalog);
    if let Some(candidate) = &candidate
        && let Some(api) = candidate.server(&tenant).await?
    {
        let entered = Entered { user: &user, flow: &flow, parts: &parts, body };
        return Box::pin(candidate.forward(&tenant, &api, entered, &mut notes.labels)).await;
    }
    let RequestInfo { endpoint, query, verb, .. } = info;
    let path = match endpoint {
        Path::Resource(path) => path,
        other => {
            let slot = flow::slot(shared, &flow).await?;
            let answered = paths::handle(&tenant, &parts.method, &other, &parts.headers, &query).await;
            drop(slot);
            if let Some(candidate) = candidate.filter(|_| aggregated::is_missing(&answered))
                && let Some(api) = candidate.late_server(&tenant).await?
            {
                let entered = Entered { user: &user, flow: &flow, parts: &parts, body };
                return Box::pin(candidate.forward(&tenant, &api, entered, &mut notes.labels)).await;
            }
            return answered;
        }
    };
    // Find the resource and the action.
    let resource = match (dispatch::find_resource(&tenant, &path, verb).await, candidate) {
        (Ok(resource), _) => resource,
        (Err(missing), Some(candidate)) => match candidate.late_server(&tenant).await? {
            Some(api) => {
                let entered = Entered { user: &user, flow: &flow, parts: &parts, body };
                return Box::pin(candidate.forward(&tenant, &api, entered, &mut notes.labels)).await;
            }
            None => return Err(missing),
        },
        (Err(missing), None) => return Err(missing),
    };
    around::label_resource(&mut notes.labels, &resource, &path);
    dispatch::check_path(&resource, &path)?;
    if path.group == aggregator::GROUP {
        aggregator::registered(&tenant).await?;
    }
    if shows_initial_policy(&path) {
        bootstrap::ensure_policy(&tenant).await?;
    }
    #[cfg(feature = "tls")]
    if bootstrap::shows_trust(&path) {
        Box::pin(bootstrap::ensure_trust(&tenant, &path.name)).await?;
    }
    let action = dispatch::choose(&resource, &path, &parts.method, verb)?;
    // Negotiate the format of the response.
    let tables = resource.has_table(&path.subresource);
    let offer = Offer { protobuf: !resource.is_custom(), stream: action.is_watch(), tables };
    let accepted = negotiate::negotiate(&parts.headers, offer)?;
    // Read the body. That of a GET is ignored: a watch would hold it for hours.
    let (body, charge) = match parts.method {
        Method::GET | Method::HEAD => (Bytes::new(), None),
        _ => flow::read(shared, body, share).await.map(|(body, charge)| (body, Some(charge)))?,
    };
    let closing = match entrance.filter(|_| action.is_watch()) {
        Some(name) => Box::pin(projects::watch(server.registry(), shared, &name)).await?,
        None => None,
    };
    let cx = Arc::new(Cx {
        tenant,
        user,
        method: parts.method,
        headers: parts.headers,
        query,
        body,
        resource,
        namespace: path.namespace,
        name: path.name,
        subresource: path.subresource,
        accepted,
        warnings: Mutex::default(),
        own: false,
        apart: AtomicBool::new(false),
        turn: HeldTurn::default(),
        flow: flow.hash(),
        converted: Memo::default(),
        closing,
        newest,
        trail: trail.cloned(),
    });
    // Dispatch.
    cx.warn_deprecated();
    dispatch::dispatch(cx, action, flow, share, charge).await
}
