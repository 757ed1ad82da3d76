//! Subresources with a kind of their own, and kinds that are asked rather than stored.

mod pod;
mod reviews;
mod scale;
mod token;

use http::Response;
use k1s_kinds::rules::{
    certificates::certificate_signing_request as csr,
    core::{namespace, pod as pod_rules},
};
use k1s_object::{Status, field::At};
use serde_json::Value;

use crate::{body::Body, context::Cx, write::Part};

/// Before an update of a part with rules of its own.
pub(crate) fn prepare(part: Part, new: &mut Value, old: &Value) {
    match part {
        Part::Finalize => namespace::prepare_finalize(new, old),
        Part::Approval => csr::prepare_approval(new, old),
        Part::EphemeralContainers => pod_rules::prepare_ephemeral_containers(new, old),
        Part::Resize => pod_rules::prepare_resize(new, old),
        Part::Main | Part::Status | Part::Internal => {}
    }
}

/// Is an update of such a part right?
pub(crate) fn validate(part: Part, new: At<'_, '_>, old: At<'_, '_>) {
    match part {
        Part::Finalize => namespace::validate_finalize(new, old),
        Part::Approval => csr::validate_approval(new, old),
        Part::EphemeralContainers => pod_rules::validate_ephemeral_containers(new, old),
        Part::Resize => pod_rules::validate_resize(new, old),
        Part::Main | Part::Status | Part::Internal => {}
    }
}

/// Answers a request for a subresource, or for a kind that is only ever created.
pub(crate) async fn handle(cx: &Cx) -> Result<Response<Body>, Status> {
    let verb = crate::request::method_verb(&cx.method);
    let sub = cx.resource.subresources.iter().find(|sub| sub.name == cx.subresource);
    if sub.is_some_and(|sub| !sub.verbs.contains(&verb)) {
        return Err(Status::method_not_allowed());
    }
    match (&*cx.resource.kind, &*cx.subresource) {
        (_, "scale") => scale::handle(cx).await,
        ("Pod", "binding") | ("Binding", "") => pod::bind(cx).await,
        ("Pod", "eviction") => pod::evict(cx).await,
        ("Pod", "log") => pod::log(cx).await,
        ("Pod", "exec" | "attach" | "portforward" | "proxy") => pod::connect(cx).await,
        ("ServiceAccount", "token") => token::create(cx).await,
        (_, "") => reviews::create(cx).await,
        ("Node" | "Service", "proxy") => pod::proxy(cx).await,
        _ => Err(Status::method_not_allowed()),
    }
}
