//! Wraps every request: panics become 500, errors become a Status, the response is counted, indented on request, and
//! stripped of its body for HEAD.
//!
//! These are functions and not tower layers: each layer would box its future, and a GET is cheap enough to notice.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use http::{Method, Request, Response, header};
use k1s_object::Status;

use crate::{
    body::Body,
    catalog::Catalog,
    flow::RequestBody,
    metrics::Labels,
    negotiate::{self, Media},
    pretty,
    request::{Path, RequestInfo, ResourcePath},
    resource::Resource,
    respond,
    server::ApiServer,
};

/// Answers a request, even if it panics, and counts the response.
pub(super) async fn handle(server: &ApiServer, request: Request<RequestBody>) -> Response<Body> {
    let shared = server.shared();
    let started = shared.env.now();
    let mut labels = Labels::default();
    let outcome = AssertUnwindSafe(answer(server, request, &mut labels)).catch_unwind().await;
    let response = outcome.unwrap_or_else(|_| {
        tracing::error!("the server panicked while handling a request; this is a bug");
        let status = Status::internal("the server panicked while handling the request");
        respond::status(&status, Media::Json)
    });
    let took = shared.env.now() - started;
    shared.metrics.answered(labels, response.status().as_u16(), took);
    response
}

async fn answer(server: &ApiServer, request: Request<RequestBody>, labels: &mut Labels) -> Response<Body> {
    let accept = request.headers().get(header::ACCEPT).cloned();
    let head = request.method() == Method::HEAD;
    let indented = pretty::is_wanted(&request);
    let mut response = match super::route(server, request, labels).await {
        Ok(response) => response,
        Err(error) => respond::error(error, negotiate::error_media(accept.as_ref())),
    };
    if indented {
        response = pretty::indent(response);
    }
    if head {
        *response.body_mut() = Body::empty();
    }
    response
}

/// Labels a request for the metrics before anything can fail: its verb, and the resource if it is a built-in one.
pub(super) fn label_request(labels: &mut Labels, info: &RequestInfo<'_>, catalog: &Catalog) {
    labels.verb = info.verb.metric_name();
    if let Path::Resource(path) = &info.endpoint
        && let Some(resource) = catalog.find(path.gvr())
    {
        label_resource(labels, &resource, path);
    }
}

/// Labels a request with the resource it is for. Only resources that are served get a label: clients can make up any
/// number of others.
pub(super) fn label_resource(labels: &mut Labels, resource: &Resource, path: &ResourcePath) {
    labels.group.clone_from(&path.group);
    labels.version.clone_from(&path.version);
    labels.resource.clone_from(&path.resource);
    if resource.has_subresource(&path.subresource) {
        labels.subresource.clone_from(&path.subresource);
    }
}
