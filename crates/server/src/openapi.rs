//! `/openapi/v3` and `/openapi/v2`.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use http::{HeaderMap, HeaderValue, Response, header};
use k1s_kinds::openapi::{self, Document};
use k1s_object::Status;
use serde_json::{Map, Value, json};

use crate::{
    body::Body, context::Cx, negotiate::not_acceptable, request::Query, respond, tenant::Tenant,
    write::meta_text,
};

/// Answers a path under `/openapi/v3`.
pub(crate) async fn handle(
    tenant: &Arc<Tenant>,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response<Body>, Status> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = path.strip_prefix("/openapi/v3").unwrap_or_default().trim_matches('/');
    if name.is_empty() {
        return index(tenant).await;
    }
    let acceptable = accept.is_empty()
        || accept.split([',', ';']).any(|part| {
            let part = part.trim();
            part == "*/*" || part.starts_with("application/json") || part == "application/*"
        });
    if !acceptable {
        return Ok(respond::nothing(406));
    }
    let Some(document) = document(tenant, name).await? else { return Ok(respond::nothing(404)) };
    let body = document.to_string();
    let hash = hash(&body);
    match query.find("hash") {
        Some(known) if known == hash => {
            let mut response = respond::bytes(200, "application/json", body.into_bytes());
            response
                .headers_mut()
                .insert(header::CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
            Ok(response)
        }
        Some(_) => {
            let mut response = respond::bytes(301, "application/json", Body::empty());
            if let Ok(location) = HeaderValue::from_str(&url(name, &hash)) {
                response.headers_mut().insert(header::LOCATION, location);
            }
            Ok(response)
        }
        None => Ok(respond::bytes(200, "application/json", body.into_bytes())),
    }
}

fn url(name: &str, hash: &str) -> String {
    format!("/openapi/v3/{name}?hash={hash}")
}

fn hash(body: &str) -> String {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    format!("{:016X}", hasher.finish())
}

/// The documents there are, with their hashes.
async fn index(tenant: &Arc<Tenant>) -> Result<Response<Body>, Status> {
    let mut paths = Map::new();
    let mut names = openapi::documents();
    for (group, version) in custom_versions(tenant).await? {
        names.push(format!("apis/{group}/{version}"));
    }
    names.sort();
    names.dedup();
    for name in names {
        if let Some(document) = document(tenant, &name).await? {
            let hash = hash(&document.to_string());
            paths.insert(name.clone(), json!({"serverRelativeURL": url(&name, &hash)}));
        }
    }
    // The real server has always called its index plain text.
    let body = json!({ "paths": paths }).to_string();
    Ok(respond::bytes(200, "text/plain; charset=utf-8", body.into_bytes()))
}

async fn custom_versions(tenant: &Arc<Tenant>) -> Result<Vec<(String, String)>, Status> {
    let served = tenant.customs.current(tenant).await?;
    Ok(served.resources().map(|resource| (resource.group.clone(), resource.version.clone())).collect())
}

async fn document(tenant: &Arc<Tenant>, name: &str) -> Result<Option<Value>, Status> {
    if let Some(document) = openapi::document(name) {
        return Ok(Some(document));
    }
    let mut words = name.split('/');
    let (Some("apis"), Some(group), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Ok(None);
    };
    custom_document(tenant, group, version).await
}

/// The document of a version of custom resources.
async fn custom_document(tenant: &Arc<Tenant>, group: &str, version: &str) -> Result<Option<Value>, Status> {
    let served = tenant.customs.current(tenant).await?;
    let resources: Vec<_> =
        served.resources().filter(|one| one.group == group && one.version == version).cloned().collect();
    if resources.is_empty() {
        return Ok(None);
    }
    let Some(definitions) =
        tenant.shared.catalog.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    else {
        return Ok(None);
    };
    let mut document = Document::new(group, version);
    for resource in resources {
        let name = format!("{}.{group}", resource.plural);
        let cx = Cx::internal(tenant, &definitions, "", &name);
        let Some(stored) = tenant.get(&cx.key()).await.unwrap_or_else(|why| {
            tracing::error!(definition = name, %why, "a definition is not published");
            None
        }) else {
            continue;
        };
        let Ok(definition) = definitions.read(&stored) else { continue };
        tracing::debug!(definition = meta_text(&definition, "name"), "published");
        let Some(schemas) = k1s_schema::openapi::openapi_v3(&definition, version) else { continue };
        let names = [schemas[0].0.clone(), schemas[1].0.clone()];
        for (name, schema) in schemas {
            document.schema(&name, schema);
        }
        let subresources: Vec<openapi::ResourceSubresource<'_>> = resource
            .subresources
            .iter()
            .map(|sub| openapi::ResourceSubresource {
                name: sub.name,
                group: if sub.group.is_empty() { group } else { &sub.group },
                version: if sub.version.is_empty() { version } else { &sub.version },
                kind: &sub.kind,
                verbs: &sub.verbs,
                schema: if sub.name == "scale" { "io.k8s.api.autoscaling.v1.Scale" } else { &names[0] },
            })
            .collect();
        document.resource(&openapi::Resource {
            group,
            version,
            kind: &resource.kind,
            plural: &resource.plural,
            namespaced: resource.namespaced,
            verbs: &resource.verbs,
            schema: &names[0],
            list_schema: &names[1],
            subresources: &subresources,
            custom: true,
            returns_deleted: false,
        });
    }
    Ok(Some(document.finish()))
}

/// `/openapi/v2`, which kubectl asks for in gnostic's protobuf.
pub(crate) async fn v2(tenant: &Arc<Tenant>, headers: &HeaderMap) -> Result<Response<Body>, Status> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let protobuf = accept.contains("com.github.proto-openapi.spec.v2");
    let json_wanted = accept.is_empty() || accept.contains("application/json") || accept.contains("*/*");
    if !protobuf && !json_wanted {
        return Err(not_acceptable("only application/json and gnostic's protobuf are to be had here"));
    }
    let mut documents = Vec::new();
    let mut names = openapi::documents();
    names.extend(
        custom_versions(tenant).await?.into_iter().map(|(group, version)| format!("apis/{group}/{version}")),
    );
    names.sort();
    names.dedup();
    for name in names {
        documents.extend(document(tenant, &name).await?);
    }
    let swagger = openapi::v2(&documents);
    if protobuf {
        let content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
        return Ok(respond::bytes(200, content_type, openapi::encode_v2(&swagger)));
    }
    Ok(respond::json(200, &swagger))
}
