//! Dispatch: finds the resource and the action, and decides where the action runs.

use std::sync::Arc;

use http::{Method, Response, header};
use k1s_object::Status;

use crate::{
    body::Body,
    capacity::{Charge, Share},
    context::Cx,
    delete,
    errors::Error,
    fairness::Flow,
    flow, negotiate,
    parts::Part,
    pretty, read,
    request::{ResourcePath, Verb},
    resource::Resource,
    respond, subresource,
    tenant::{self, Tenant},
    verbs, watch,
};

/// Rejects methods that no endpoint supports.
pub(super) fn check_method(method: &Method) -> Result<(), Error> {
    let with_body = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    match with_body.contains(method) || [Method::GET, Method::HEAD, Method::OPTIONS].contains(method) {
        true => Ok(()),
        false => Err(Status::method_not_allowed().into()),
    }
}

/// The resource at a path.
///
/// # Errors
/// 404: in JSON within the groups of Kubernetes, in plain text elsewhere.
pub(super) async fn find_resource(
    tenant: &Arc<Tenant>,
    path: &ResourcePath,
    verb: Verb<'_>,
) -> Result<Arc<Resource>, Error> {
    let Some(resource) = tenant.resource(path.gvr()).await? else {
        return Err(match tenant.shared.catalog.has_group(&path.group) {
            true => Status::no_such_resource().into(),
            false => Error::PageNotFound,
        });
    };
    if resource.is_custom() && !in_scope(&resource, path, verb) {
        return Err(Error::PageNotFound);
    }
    Ok(resource)
}

/// Whether the scope of a custom resource fits the path; if not, the path is unknown.
fn in_scope(resource: &Resource, path: &ResourcePath, verb: Verb<'_>) -> bool {
    match (resource.namespaced, path.namespace.is_empty()) {
        (false, in_cluster) => in_cluster,
        (true, true) => matches!(verb, Verb::List | Verb::Watch),
        (true, false) => true,
    }
}

/// Rejects a path whose form does not fit the resource's scope.
pub(super) fn check_path(resource: &Resource, path: &ResourcePath) -> Result<(), Error> {
    let in_namespace = !path.namespace.is_empty();
    let wrong_scope =
        in_namespace && !resource.namespaced || resource.namespaced && !in_namespace && !path.name.is_empty();
    let deep = !path.rest.is_empty() && !matches!(&*path.subresource, "proxy");
    // Reviews, which can only be created, have no name.
    let named = resource.is_create_only() && !path.name.is_empty();
    if wrong_scope || deep || named || (path.watch && !path.subresource.is_empty()) {
        return Err(Status::no_such_resource().into());
    }
    if !path.subresource.is_empty() && !resource.has_subresource(&path.subresource) {
        return Err(match resource.is_custom() {
            true => resource.not_found(&path.name),
            false => Status::no_such_resource().into(),
        });
    }
    Ok(())
}

/// An action on a resource.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
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

impl Action {
    pub(super) fn is_watch(self) -> bool {
        matches!(self, Action::Watch)
    }
}

/// The action of a verb, if the resource supports the verb and the path has the right form.
pub(super) fn choose(
    resource: &Resource,
    path: &ResourcePath,
    method: &Method,
    verb: Verb<'_>,
) -> Result<Action, Error> {
    let known = matches!(*method, Method::GET | Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
    if !known {
        return Err(Status::method_not_allowed().into());
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
            _ if !allowed => Err(resource.not_allowed(verb).into()),
            Verb::Get => Ok(Action::Get),
            Verb::Update => Ok(Action::Update(part)),
            Verb::Patch => Ok(Action::Patch(part)),
            _ => Err(resource.not_allowed(verb).into()),
        };
    }
    if resource.is_custom() && path.name.is_empty() && matches!(verb, Verb::Update | Verb::Patch) {
        return Err(Status::bad_request("name must be provided").into());
    }
    // The deprecated watch paths take GET only, and a create has no name.
    let shape = match verb {
        Verb::Create => path.name.is_empty(),
        Verb::Update | Verb::Patch => !path.name.is_empty(),
        _ => true,
    };
    let scope =
        !resource.namespaced || !path.namespace.is_empty() || matches!(verb, Verb::List | Verb::Watch);
    if !shape || !scope || !resource.verbs.contains(&verb) || (path.watch && *method != Method::GET) {
        return Err(Status::method_not_allowed().into());
    }
    Ok(match verb {
        Verb::Get => Action::Get,
        Verb::List => Action::List,
        Verb::Watch => Action::Watch,
        Verb::Create if resource.is_create_only() => Action::Subresource,
        Verb::Create => Action::Create,
        Verb::Update => Action::Update(Part::Main),
        Verb::Patch => Action::Patch(Part::Main),
        Verb::Delete => Action::Delete,
        _ => Action::DeleteCollection,
    })
}

/// Runs an action: here, or on a blocking thread if the request is large. A watch has a seat until it has started.
pub(super) async fn dispatch(
    cx: Arc<Cx>,
    action: Action,
    flow: Flow,
    share: Share,
    charge: Option<Charge>,
) -> Result<Response<Body>, Error> {
    let shared = cx.tenant.shared.clone();
    if !cx.is_large() {
        let _slot = flow::slot(&shared, &flow).await?;
        match act(cx.clone(), action).await {
            Err(Error::Apart) => {}
            done => return done,
        }
    }
    cx.go_apart();
    let (turn, hash) = (cx.turn.clone(), cx.flow);
    let work = Box::pin(async move {
        let _charge = charge;
        let _slot = flow::slot_now(&cx.tenant.shared, &flow);
        act(cx, action).await
    });
    Box::pin(flow::run(&shared, share, hash, turn, work)).await
}

/// What is done is boxed, so that a GET does not carry the state of a write, which is many times as large.
async fn act(cx: Arc<Cx>, action: Action) -> Result<Response<Body>, Error> {
    let outcome = match action {
        Action::Get => read::get(&cx).await,
        Action::List => Box::pin(read::list(&cx)).await,
        Action::Watch => return Ok(Box::pin(watch::open(cx)).await.map(pretty::as_is)?),
        Action::Create => Box::pin(verbs::create(&cx)).await,
        Action::Update(part) => Box::pin(verbs::update(&cx, part)).await,
        Action::Patch(part) => Box::pin(verbs::patch(&cx, part)).await,
        Action::Delete => Box::pin(delete::delete(&cx)).await,
        Action::DeleteCollection => Box::pin(delete::delete_collection(&cx)).await,
        Action::Subresource => Box::pin(subresource::handle(&cx)).await,
    };
    let mut response = match outcome {
        Ok(response) => response,
        Err(Error::Apart) => return Err(Error::Apart),
        Err(error) => respond::error(error, negotiate::error_media(cx.headers.get(header::ACCEPT))),
    };
    if response.status() == http::StatusCode::NOT_FOUND {
        cx.tenant.verify_every(tenant::VERIFY_SOON_INTERVAL);
    }
    for warning in cx.warnings.lock().drain(..) {
        respond::warn(response.headers_mut(), &warning);
    }
    Ok(response)
}
