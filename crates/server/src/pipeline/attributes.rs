//! The attributes of a request for the authorizer.

use http::Method;

use crate::{
    authz::{Attributes, Selection, Target},
    metadata,
    request::{Path, RequestInfo, ResourcePath, Verb},
    tenants,
};

/// The attributes of a request. `managed` is the tenant, or empty for all, if the request is for `/k1s/v1/tenants`.
pub(super) fn of<'a>(info: &'a RequestInfo<'_>, method: &Method, managed: Option<&'a str>) -> Attributes<'a> {
    match (&info.endpoint, managed) {
        (_, Some(name)) => tenants::attributes(Verb::of_resource(method, name.is_empty()), name),
        (Path::Resource(path), _) => resource(info, path),
        (Path::Other(path), _) if path == metadata::PATH => Attributes::new(Verb::Watch, metadata::TARGET),
        _ => Attributes::new(info.verb, Target::Path(info.path)),
    }
}

fn resource<'a>(info: &'a RequestInfo<'_>, path: &'a ResourcePath) -> Attributes<'a> {
    // As in Kubernetes, a request for a namespace is one in that namespace.
    let namespace = match &*path.namespace {
        "" if path.resource == "namespaces" && path.group.is_empty() => &path.name,
        namespace => namespace,
    };
    let target = Target::Resource {
        group: &path.group,
        resource: &path.resource,
        subresource: &path.subresource,
        namespace,
        name: if path.name.is_empty() { &info.selected_name } else { &path.name },
    };
    // They are parsed when an authorizer asks for them.
    let selection = match info.verb {
        Verb::List | Verb::Watch | Verb::DeleteCollection => Selection::Sent {
            fields: info.query.get("fieldSelector"),
            labels: info.query.get("labelSelector"),
        },
        _ => Selection::All,
    };
    Attributes { version: &path.version, selection, ..Attributes::new(info.verb, target) }
}
