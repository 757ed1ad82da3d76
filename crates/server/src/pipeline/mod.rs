//! The path of a request through the server: [`route`] lists the steps in order.
//!
//! The body of a request is erased at the entrance ([`RequestBody`]): the rest is not generic, and so is compiled in this
//! crate alone, once, instead of in every program and test that calls the server.
//!
//! The order is part of the contract. A sender that cannot be authorized is rejected before the store is read (`enter`);
//! 403 comes before 404 and 405; a body is read before its request takes a slot, so a slow sender holds no slot.

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

use crate::{
    body::Body,
    capacity::Share,
    context::Cx,
    errors::Error,
    flow::{self, RequestBody},
    metrics::Labels,
    negotiate::{self, Offer},
    request::{Path, RequestInfo},
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

/// Answers a request. An error becomes a response in [`around`].
async fn route(
    server: &ApiServer,
    request: Request<RequestBody>,
    labels: &mut Labels,
) -> Result<Response<Body>, Error> {
    let shared = server.shared();
    let (parts, body) = request.into_parts();
    // Resolve: tenant, path, verb.
    let longest = shared.options.max_selector_bytes;
    let info = RequestInfo::resolve(&parts.method, &parts.uri, longest, enter::projects_of(server));
    around::label_request(labels, &info, &shared.catalog);
    info.check_timeout()?;
    let managed = enter::managed_tenant(server, &info);
    // Authenticate and authorize, in the tenant.
    let wanted = attributes::of(&info, &parts.method, managed);
    let (tenant, user) = if info.is_project {
        enter::enter_project(server, info.tenant.unwrap_or_default(), &parts.headers, &wanted).await?
    } else {
        let stores = tenants::stores(&parts.method, &info.endpoint, &info.query, &shared.catalog);
        enter::enter(server, info.tenant, &parts.headers, &wanted, stores).await?
    };
    let share = Share::of(&user);
    dispatch::check_method(&parts.method)?;
    // Endpoints other than resources of a tenant.
    if let Some(name) = managed {
        let (body, _charge) = flow::read(shared, body, share).await?;
        let _slot = flow::slot(shared, share)?;
        return tenants::handle(server.registry(), shared, &parts.method, name, &info.query, &body).await;
    }
    let RequestInfo { endpoint, query, verb, .. } = info;
    let path = match endpoint {
        Path::Resource(path) => path,
        other => return paths::handle(&tenant, &parts.method, &other, &parts.headers, &query).await,
    };
    // Find the resource and the action.
    let resource = dispatch::find_resource(&tenant, &path, verb).await?;
    around::label_resource(labels, &resource, &path);
    dispatch::check_path(&resource, &path)?;
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
        apart: AtomicBool::new(false),
    });
    // Dispatch.
    cx.warn_deprecated();
    dispatch::dispatch(cx, action, share, charge).await
}
