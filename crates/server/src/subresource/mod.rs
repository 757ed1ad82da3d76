//! Subresources with their own kind, and kinds that are answered rather than stored.

mod pod;
mod reviews;
mod scale;
mod token;

use http::Response;
use k1s_object::Status;

use crate::{body::Body, context::Cx, errors::Error, request::Verb};

/// Answers a request for a subresource, or for a create-only kind.
pub(crate) async fn handle(cx: &Cx) -> Result<Response<Body>, Error> {
    let verb = Verb::of_resource(&cx.method, false);
    let sub = cx.resource.subresources.iter().find(|sub| sub.name == cx.subresource);
    if sub.is_some_and(|sub| !sub.verbs.contains(&verb)) {
        return Err(cx.resource.not_allowed(verb).into());
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
        _ => Err(Status::method_not_allowed().into()),
    }
}
