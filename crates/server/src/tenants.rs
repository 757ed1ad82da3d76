//! `/k1s/v1/tenants`: the tenants of the store.
//!
//! This is not a Kubernetes API but follows its conventions. POST creates a tenant, and DELETE deletes it with everything in
//! it. If `ServerOptions::create_tenants` is set, a write to `/clusters/{name}` by a user that may create tenants creates
//! the tenant as well; reads never do.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{Method, Response};
use k1s_object::{FieldError, Status};
use serde_json::{Value, json};

use crate::{
    authz::{Attributes, Target},
    body::Body,
    catalog::Catalog,
    errors::Error,
    registry::{Absent, Found, Mark, Owner, Registry, check_name},
    request::{Path, Query, Verb},
    respond,
    tenant::{Shared, not_found},
};

const PATH: &str = "/k1s/v1/tenants";
const GROUP: &str = "k1s.dev";
const API_VERSION: &str = "k1s.dev/v1";

/// Default `limit` of a list.
const PAGE: usize = 500;

/// The tenant name in a path, empty for the collection.
pub(crate) fn parse(path: &str) -> Option<&str> {
    let rest = path.strip_prefix(PATH)?;
    match rest.strip_prefix('/') {
        None => rest.is_empty().then_some(""),
        Some(name) => (!name.contains('/')).then_some(name),
    }
}

/// The attributes to authorize for a request for a tenant.
pub(crate) fn attributes<'a>(verb: Verb<'a>, name: &'a str) -> Attributes<'a> {
    let target = Target::Resource { group: GROUP, resource: "tenants", subresource: "", namespace: "", name };
    Attributes::new(verb, target)
}

/// Whether an action is one on tenants.
pub(crate) fn are_managed(wanted: &Attributes<'_>) -> bool {
    matches!(wanted.target, Target::Resource { group: GROUP, resource: "tenants", .. })
}

/// Whether a request to a tenant that does not exist may create it: only if it stores an object, unlike reviews and dry
/// runs.
pub(crate) fn stores(method: &Method, path: &Path, query: &Query, catalog: &Catalog) -> bool {
    let Path::Resource(path) = path else { return false };
    let found = catalog.find(path.gvr());
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
        && found.is_none_or(|resource| !resource.is_create_only())
        && query.find("dryRun").is_none()
}

/// 405 for `/clusters/{name}`, at which a tenant is neither created nor deleted.
pub(crate) fn not_here(name: &str) -> Status {
    let mut status = Status::method_not_allowed();
    status
        .message
        .push_str(&format!("; a tenant is created by POST {PATH} and deleted by DELETE {PATH}/{name}"));
    status
}

/// Answers a request; `name` is the one in its path.
pub(crate) async fn handle(
    registry: &Arc<Registry>,
    shared: &Arc<Shared>,
    method: &Method,
    name: &str,
    query: &Query,
    body: &Bytes,
) -> Result<Response<Body>, Error> {
    match (method, name.is_empty()) {
        (&Method::GET | &Method::HEAD, true) => list(registry, query).await,
        (&Method::POST, true) => create(registry, query, body).await,
        (&Method::GET | &Method::HEAD, false) => match find(registry, name).await? {
            Some(found) => Ok(respond::json(200, &tenant(&found, true))),
            None => Err(not_found(name)),
        },
        (&Method::DELETE, false) => delete(registry, shared, name, body).await,
        _ => Err(Status::method_not_allowed().into()),
    }
}

/// A tenant in the store; `None` also for an invalid name.
async fn find(registry: &Registry, name: &str) -> Result<Option<Found>, Error> {
    if check_name(name).is_err() {
        return Ok(None);
    }
    registry.get(name).await
}

fn tenant(found: &Found, alone: bool) -> Value {
    let Found { name, mark: Mark { phase, uid, created, owner }, revision } = found;
    let mut metadata = json!({ "name": name });
    for (field, value) in [("uid", uid), ("creationTimestamp", created)] {
        if !value.is_empty() {
            metadata[field] = value.as_str().into();
        }
    }
    metadata["resourceVersion"] = revision.to_string().into();
    if let Some(owner) = owner {
        metadata["ownerReferences"] = json!([owner]);
    }
    let rest = json!({"metadata": metadata, "status": {"phase": phase}});
    if !alone {
        return rest;
    }
    json!({"kind": "Tenant", "apiVersion": API_VERSION, "metadata": rest["metadata"], "status": rest["status"]})
}

async fn list(registry: &Registry, query: &Query) -> Result<Response<Body>, Error> {
    let limit = match query.number("limit")? {
        Some(limit) if limit > 0 => usize::try_from(limit).unwrap_or(PAGE).min(PAGE),
        _ => PAGE,
    };
    let start = match query.get("continue") {
        "" => None,
        token => {
            let wrong = |_| Status::bad_request("continue key is not valid: it was not made by this server");
            Some(Bytes::from(URL_SAFE_NO_PAD.decode(token).map_err(wrong)?))
        }
    };
    let (found, revision, next) = registry.list(start, limit).await?;
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if let Some(next) = next {
        metadata["continue"] = URL_SAFE_NO_PAD.encode(next).into();
    }
    let items: Vec<Value> = found.iter().map(|found| tenant(found, false)).collect();
    let list = json!({"kind": "TenantList", "apiVersion": API_VERSION, "metadata": metadata, "items": items});
    Ok(respond::json(200, &list))
}

async fn create(registry: &Registry, query: &Query, body: &Bytes) -> Result<Response<Body>, Error> {
    if query.find("dryRun").is_some() {
        return Err(Status::bad_request("dryRun: tenants have no dry run").into());
    }
    let sent: Value = serde_json::from_slice(body)
        .map_err(|error| Status::bad_request(format!("the body is not a Tenant in JSON: {error}")))?;
    for (field, expected) in [("kind", "Tenant"), ("apiVersion", API_VERSION)] {
        match &sent[field] {
            Value::Null => {}
            Value::String(text) if text == expected => {}
            other => {
                return Err(Status::bad_request(format!("{field}: {other} is not {expected:?}")).into());
            }
        }
    }
    let name = sent["metadata"]["name"].as_str().unwrap_or_default();
    let field = "metadata.name";
    let errors: Vec<FieldError> = match name {
        "" => vec![FieldError::required(field, "name is required")],
        name => k1s_object::names::is_dns1123_label(name)
            .into_iter()
            .map(|why| FieldError::invalid(field, name, why))
            .collect(),
    };
    if !errors.is_empty() {
        return Err(Status::invalid(GROUP, "Tenant", name, &errors).into());
    }
    let owner = owner(&sent)?;
    let absent = owner.as_ref().map_or(Absent::CreateUnlessTerminating, Absent::CreateFor);
    let (_, made) = registry.make(name, absent).await?;
    match registry.get(name).await? {
        _ if !made => Err(Status::already_exists(GROUP, "tenants", name).into()),
        Some(found) => Ok(respond::json(201, &tenant(&found, true))),
        None => Err(not_found(name)),
    }
}

/// The owner of a new tenant: none, or the only one in its metadata.
fn owner(sent: &Value) -> Result<Option<Owner>, Error> {
    let wrong = |why: String| Error::from(Status::bad_request(format!("metadata.ownerReferences: {why}")));
    match sent["metadata"]["ownerReferences"].as_array().map(Vec::as_slice) {
        None | Some([]) => Ok(None),
        Some([owner]) => {
            let owner: Owner = serde_json::from_value(owner.clone()).map_err(|why| wrong(why.to_string()))?;
            Ok(Some(owner))
        }
        Some(_) => Err(wrong("a tenant has one owner at most".to_owned())),
    }
}

/// The uid that the tenant to be deleted has to have, by the preconditions of `DeleteOptions`.
fn wanted_uid(body: &Bytes) -> Result<Option<String>, Error> {
    if body.is_empty() {
        return Ok(None);
    }
    let sent: Value = serde_json::from_slice(body)
        .map_err(|error| Status::bad_request(format!("the body is not DeleteOptions in JSON: {error}")))?;
    Ok(sent["preconditions"]["uid"].as_str().map(str::to_owned))
}

async fn delete(
    registry: &Arc<Registry>,
    shared: &Arc<Shared>,
    name: &str,
    body: &Bytes,
) -> Result<Response<Body>, Error> {
    let uid = wanted_uid(body)?;
    if *name == *shared.options.default_tenant {
        return Err(Status::forbidden(GROUP, "tenants", name, "the default tenant may not be deleted").into());
    }
    check_name(name).map_err(|_| not_found(name))?;
    if uid.is_none()
        && let Some(Found { mark: Mark { owner: Some(owner), uid, .. }, .. }) = registry.get(name).await?
    {
        let why = format!(
            "it belongs to {} {:?}: delete that, or send preconditions with the uid {uid:?}",
            owner.kind, owner.name
        );
        return Err(Status::forbidden(GROUP, "tenants", name, why).into());
    }
    // The deletion is completed even if the client disconnects.
    let deletion = {
        let (registry, name) = (registry.clone(), name.to_owned());
        async move { registry.delete(&name, uid.as_deref()).await }
    };
    let deleted = shared.env.spawn(format!("delete tenant {name}"), deletion).await;
    let Some(mark) = deleted.map_err(Status::internal)?? else { return Err(not_found(name)) };
    let mut details = json!({"name": name, "group": GROUP, "kind": "tenants"});
    if !mark.uid.is_empty() {
        details["uid"] = mark.uid.into();
    }
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
    Ok(respond::json(200, &status))
}
