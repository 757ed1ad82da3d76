//! `/openapi/v3` and `/openapi/v2`.

use std::{collections::BTreeMap, sync::Arc};

use http::{HeaderMap, HeaderValue, Response, header};
use k1s_kinds::openapi::{self, Document, Foreign};
use k1s_object::Status;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    aggregator,
    body::Body,
    documents::{Fingerprint, Key},
    negotiate::not_acceptable,
    objectmeta::meta_text,
    request::{Query, Verb},
    resource::Resource,
    respond,
    tenant::apis::Api,
    tenant::customs::{DEFINITIONS, Definition, Served, fingerprint},
    tenant::{Shared, Tenant},
};

/// GET of a path under `/openapi/v3`.
pub(crate) async fn handle(
    tenant: &Arc<Tenant>,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response<Body>, Status> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = path.strip_prefix("/openapi/v3").unwrap_or_default().trim_matches('/');
    if name.is_empty() {
        return index(tenant, headers).await;
    }
    let acceptable = accept.is_empty()
        || accept.split([',', ';']).any(|part| {
            let part = part.trim();
            part == "*/*" || part.starts_with("application/json") || part == "application/*"
        });
    if !acceptable {
        return Ok(respond::nothing(406));
    }
    let served = match is_built_in(name) {
        true => Arc::default(),
        false => tenant.customs.current(tenant).await?,
    };
    let Some(source) = Source::find(&served, name) else { return Ok(respond::nothing(404)) };
    let (shared, key) = (tenant.shared.clone(), source.key());
    let build = move || source.build(&shared).to_string().into_bytes();
    let document = tenant.document(key, build).await?;
    match query.find("hash") {
        Some(known) if *known == *document.hash => {
            let mut response = respond::document(&document, "application/json", headers);
            response
                .headers_mut()
                .insert(header::CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
            Ok(response)
        }
        Some(_) => {
            let mut response = respond::bytes(301, "application/json", Body::empty());
            if let Ok(location) = HeaderValue::from_str(&url(name, &document.hash)) {
                response.headers_mut().insert(header::LOCATION, location);
            }
            Ok(response)
        }
        None => Ok(respond::document(&document, "application/json", headers)),
    }
}

/// The group version in the path of a document: `/openapi/v3/apis/{group}/{version}`.
pub(crate) fn group_version(path: &str) -> Option<(&str, &str)> {
    let (group, version) = path.strip_prefix("/openapi/v3/apis/")?.split_once('/')?;
    (!version.contains('/')).then_some((group, version))
}

fn url(name: &str, hash: &str) -> String {
    format!("/openapi/v3/{name}?hash={hash}")
}

/// The sources of all documents by name.
fn sources(served: &Served) -> BTreeMap<String, Source> {
    let mut sources = BTreeMap::new();
    for (group, version, definition) in served.definitions() {
        let Source { definitions, .. } =
            sources.entry(name_of(group, version)).or_insert_with(|| Source::custom(group, version));
        definitions.push(definition.clone());
    }
    sources.extend(openapi::documents().into_iter().map(|name| (name.clone(), Source::built_in(&name))));
    sources
}

/// The source of a document.
struct Source {
    name: String,
    group: String,
    version: String,
    /// Empty for a document of built-in kinds, which all tenants share.
    definitions: Vec<Arc<Definition>>,
}

fn name_of(group: &str, version: &str) -> String {
    format!("apis/{group}/{version}")
}

/// Whether a document is of built-in kinds.
fn is_built_in(name: &str) -> bool {
    openapi::documents().iter().any(|known| known == name)
}

impl Source {
    fn built_in(name: &str) -> Source {
        Source { name: name.to_owned(), ..Source::custom("", "") }
    }

    fn custom(group: &str, version: &str) -> Source {
        let (name, group, version) = (name_of(group, version), group.to_owned(), version.to_owned());
        Source { name, group, version, definitions: Vec::new() }
    }

    /// The document of this name, if there is one.
    fn find(served: &Served, name: &str) -> Option<Source> {
        if is_built_in(name) {
            return Some(Source::built_in(name));
        }
        let (group, version) = name.strip_prefix("apis/")?.split_once('/')?;
        let mut source = Source::custom(group, version);
        let wanted = served.definitions().filter(|(g, v, _)| *g == group && *v == version);
        source.definitions = wanted.map(|(_, _, definition)| definition.clone()).collect();
        (!source.definitions.is_empty()).then_some(source)
    }

    /// Its key in the cache.
    fn key(&self) -> Key {
        Key { of: fingerprint(self.definitions.iter()), name: format!("openapi/v3/{}", self.name) }
    }

    fn build(&self, shared: &Shared) -> Value {
        if self.definitions.is_empty() {
            return openapi::document(&self.name).unwrap_or_default();
        }
        match shared.catalog.find(DEFINITIONS) {
            Some(kind) => custom_document(&kind, &self.group, &self.version, &self.definitions),
            None => Value::Null,
        }
    }
}

/// GET of `/openapi/v3`: the paths of all documents, with their hashes.
async fn index(tenant: &Arc<Tenant>, headers: &HeaderMap) -> Result<Response<Body>, Status> {
    let served = tenant.customs.current(tenant).await?;
    let shared = tenant.shared.clone();
    let apis = aggregator::registered(tenant).await?;
    aggregator::described(tenant, &apis).await;
    let others = aggregator::openapi_hashes(&apis);
    let more = others.iter().flat_map(|(name, hash)| [name.as_bytes(), hash.as_bytes()]);
    let of = with(served.fingerprint(), more);
    let all = Key { of, name: "openapi/v3".to_owned() };
    let build = move || {
        let mut paths = Map::new();
        for (name, source) in sources(&served) {
            let key = source.key();
            // Only the hash is kept: few clients fetch all documents.
            let hash = shared.documents.hash(&key).unwrap_or_else(|| {
                shared.documents.keep_hash(key, source.build(&shared).to_string().as_bytes())
            });
            let at = json!({"serverRelativeURL": url(&name, &hash)});
            paths.insert(name, at);
        }
        for (name, hash) in others {
            paths.insert(name.clone(), json!({"serverRelativeURL": url(&name, &hash)}));
        }
        json!({ "paths": paths }).to_string().into_bytes()
    };
    let document = tenant.document(all, build).await?;
    // kube-apiserver's content type for the index.
    Ok(respond::document(&document, "text/plain; charset=utf-8", headers))
}

/// A fingerprint of more. Of nothing more, it is the same: tenants with the same definitions share documents.
fn with<'a>(of: Fingerprint, more: impl Iterator<Item = &'a [u8]>) -> Fingerprint {
    let mut more = more.peekable();
    if more.peek().is_none() {
        return of;
    }
    let mut hasher = Sha256::new_with_prefix(of);
    for bytes in more {
        hasher.update(bytes.len().to_le_bytes());
        hasher.update(bytes);
    }
    hasher.finalize().into()
}

/// The document of a group version of custom resources; `kind` is the resource of definitions.
fn custom_document(kind: &Resource, group: &str, version: &str, definitions: &[Arc<Definition>]) -> Value {
    let mut document = Document::new(group, version);
    let resources = definitions.iter().flat_map(|definition| {
        definition.resources_of(group, version).map(|resource| (&definition.stored, resource))
    });
    for (stored, resource) in resources {
        let definition = match kind.read(stored) {
            Ok(definition) => definition,
            Err(error) => {
                tracing::error!(resource = %resource.plural, group, %error, "an unreadable definition is not published");
                continue;
            }
        };
        tracing::debug!(definition = meta_text(&definition, "name"), "published");
        let Some(schemas) = k1s_schema::openapi::openapi_v3(&definition, version) else { continue };
        let names = [schemas[0].0.clone(), schemas[1].0.clone()];
        for (name, schema) in schemas {
            document.schema(&name, schema);
        }
        let names_of = |verbs: &[Verb<'static>]| verbs.iter().map(|verb| verb.as_str()).collect::<Vec<_>>();
        let verbs = names_of(&resource.verbs);
        let subresource_verbs: Vec<_> =
            resource.subresources.iter().map(|sub| names_of(&sub.verbs)).collect();
        let subresources: Vec<openapi::ResourceSubresource<'_>> = resource
            .subresources
            .iter()
            .zip(&subresource_verbs)
            .map(|(sub, verbs)| openapi::ResourceSubresource {
                name: sub.name,
                group: if sub.group.is_empty() { group } else { &sub.group },
                version: if sub.version.is_empty() { version } else { &sub.version },
                kind: &sub.kind,
                verbs,
                schema: if sub.name == "scale" { "io.k8s.api.autoscaling.v1.Scale" } else { &names[0] },
            })
            .collect();
        document.resource(&openapi::Resource {
            group,
            version,
            kind: &resource.kind,
            plural: &resource.plural,
            namespaced: resource.namespaced,
            verbs: &verbs,
            schema: &names[0],
            list_schema: &names[1],
            subresources: &subresources,
            custom: true,
            returns_deleted: false,
        });
    }
    document.finish()
}

/// `/openapi/v2`, which kubectl requests in gnostic's protobuf.
pub(crate) async fn v2(tenant: &Arc<Tenant>, headers: &HeaderMap) -> Result<Response<Body>, Status> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let protobuf = accept.contains("com.github.proto-openapi.spec.v2");
    let json_wanted = accept.is_empty() || accept.contains("application/json") || accept.contains("*/*");
    if !protobuf && !json_wanted {
        return Err(not_acceptable("only application/json and gnostic's protobuf are available here"));
    }
    let (encoding, content_type) = match protobuf {
        true => ("protobuf", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"),
        false => ("json", "application/json"),
    };
    let served = tenant.customs.current(tenant).await?;
    let shared = tenant.shared.clone();
    let apis = aggregator::registered(tenant).await?;
    aggregator::described(tenant, &apis).await;
    let others = aggregator::openapi_documents(&apis);
    let more = others.iter().flat_map(|(api, of, _)| [api.name.as_bytes(), of.as_slice()]);
    let of = with(served.fingerprint(), more);
    let key = Key { of, name: format!("openapi/v2/{encoding}") };
    let build = move || {
        let documents: Vec<Value> = sources(&served).values().map(|source| source.build(&shared)).collect();
        let others: Vec<(&Api, Value)> = others
            .iter()
            .filter_map(|(api, _, text)| Some((&**api, serde_json::from_slice(text).ok()?)))
            .collect();
        let others: Vec<Foreign<'_>> = others
            .iter()
            .map(|(api, document)| Foreign { group: &api.group, version: &api.version, document })
            .collect();
        let swagger = openapi::v2(&documents, &others);
        if protobuf { openapi::encode_v2(&swagger) } else { swagger.to_string().into_bytes() }
    };
    let document = tenant.document(key, build).await?;
    Ok(respond::document(&document, content_type, headers))
}
