//! Wraps every request: panics become 500, errors become a Status, the response is counted, indented on request, and
//! stripped of its body for HEAD.
//!
//! These are functions and not tower layers: each layer would box its future, and a GET is cheap enough to notice.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use http::{Method, Request, Response, header};
use k1s_object::Status;

use crate::{
    audit::Trail,
    body::Body,
    catalog::Catalog,
    fairness::Flow,
    flow::RequestBody,
    metrics::Labels,
    negotiate::{self, Media},
    pretty,
    request::{Path, RequestInfo, ResourcePath},
    resource::Resource,
    respond,
    server::ApiServer,
    tenant::apis::Api,
};

/// What is known of a request when it has been answered.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) labels: Labels,
    pub(super) flow: Option<Flow>,
    /// About its credentials.
    pub(super) warning: Option<&'static str>,
}

/// Ends the trail of a request whose client does not wait for the response.
struct Abandoned<'a>(Option<&'a Arc<Trail>>);

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(trail) = self.0 {
            trail.abandon();
        }
    }
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or_default()
}

/// Answers a request, even if it panics, and counts the response.
pub(super) async fn handle(server: &ApiServer, request: Request<RequestBody>) -> Response<Body> {
    let shared = server.shared();
    let started = shared.env.now();
    let mut notes = Notes::default();
    let trail = shared.audit.as_ref().map(|auditor| auditor.receive(&request));
    let _abandoned = Abandoned(trail.as_ref());
    let outcome = AssertUnwindSafe(answer(server, request, &mut notes, trail.as_ref())).catch_unwind().await;
    let response = match outcome {
        Ok(response) => response,
        Err(panic) => {
            tracing::error!("the server panicked while handling a request; this is a bug");
            if let Some(trail) = &trail {
                trail.panicked(message(&*panic)).await;
            }
            let status = Status::internal("the server panicked while handling the request");
            respond::status(&status, Media::Json)
        }
    };
    let took = shared.env.now() - started;
    shared.metrics.answered(notes.labels, response.status().as_u16(), took);
    response
}

async fn answer(
    server: &ApiServer,
    request: Request<RequestBody>,
    notes: &mut Notes,
    trail: Option<&Arc<Trail>>,
) -> Response<Body> {
    let accept = request.headers().get(header::ACCEPT).cloned();
    let head = request.method() == Method::HEAD;
    let indented = pretty::is_wanted(&request);
    let mut response = match super::route(server, request, notes, trail).await {
        Ok(response) => response,
        Err(error) => respond::error(error, negotiate::error_media(accept.as_ref())),
    };
    if let Some(flow) = &notes.flow {
        flow.mark(response.headers_mut());
    }
    if let Some(warning) = notes.warning {
        respond::warn(response.headers_mut(), warning);
    }
    if let Some(trail) = trail {
        response = trail.finish(response).await;
    }
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

/// Labels a request that is forwarded: only the aggregated server knows which resources there are.
pub(super) fn label_aggregated(labels: &mut Labels, api: &Api) {
    labels.group.clone_from(&api.group);
    labels.version.clone_from(&api.version);
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
