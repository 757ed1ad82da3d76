//! Discovery of groups, versions and resources, unaggregated and aggregated.

mod groups;

use std::sync::Arc;

use http::{HeaderMap, Response, header};
use k1s_object::{Status, gvk::GroupVersion};
use serde_json::{Map, Value, json};

use self::groups::{Contents, Group, Order, Version};
use crate::{
    aggregator,
    body::Body,
    documents::{Document, Fingerprint, Key},
    negotiate::not_acceptable,
    request::Path,
    resource::Resource,
    respond,
    tenant::{Tenant, apis::Apis, customs::Served},
};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const MEDIA_TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The negotiated format of discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Json,
    Yaml,
    Aggregated,
}

fn wanted(headers: &HeaderMap, aggregated_here: bool) -> Result<Wanted, Status> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accept.trim().is_empty() {
        return Ok(Wanted::Json);
    }
    for clause in accept.split(',') {
        let mut parts = clause.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let parameters: Vec<&str> = parts.collect();
        let asked = parameters.iter().any(|parameter| parameter.starts_with("as="));
        if asked {
            let is = |text: &str| parameters.contains(&text);
            if aggregated_here
                && media == "application/json"
                && is("as=APIGroupDiscoveryList")
                && is("g=apidiscovery.k8s.io")
                && is("v=v2")
            {
                return Ok(Wanted::Aggregated);
            }
            continue;
        }
        match media {
            "application/json" | "*/*" | "application/*" | "application/vnd.kubernetes.protobuf" => {
                return Ok(Wanted::Json);
            }
            "application/yaml" => return Ok(Wanted::Yaml),
            _ => {}
        }
    }
    Err(not_acceptable(format!("only the following media types are accepted: {MEDIA_TYPES}")))
}

/// Whether a discovery path exists.
fn exists(tenant: &Tenant, customs: &Served, apis: &Apis, path: &Path) -> bool {
    let catalog = &tenant.shared.catalog;
    match path {
        Path::CoreVersions | Path::Groups => true,
        Path::Group(name) => {
            !name.is_empty()
                && (catalog.has_group(name)
                    || customs.resources().any(|resource| resource.group == *name)
                    || apis.all.iter().any(|api| api.group == *name))
        }
        Path::GroupVersion(group, version) => {
            let custom = |one: &Arc<Resource>| one.group == *group && one.version == *version;
            catalog.of(group, version).next().is_some() || customs.resources().any(custom)
        }
        _ => false,
    }
}

/// Whether a discovery path allows only GET. Those that kube-apiserver's aggregation layer or its handler of
/// custom resources answers allow any.
pub(crate) fn is_only_read(tenant: &Tenant, path: &Path) -> bool {
    match path {
        Path::CoreVersions => true,
        Path::Group(group) => group == "apiregistration.k8s.io",
        Path::GroupVersion(group, version) => tenant.shared.catalog.of(group, version).next().is_some(),
        _ => false,
    }
}

/// GET of a discovery path.
pub(crate) async fn handle(
    tenant: &Arc<Tenant>,
    path: &Path,
    headers: &HeaderMap,
) -> Result<Response<Body>, Status> {
    let aggregated_here = matches!(path, Path::CoreVersions | Path::Groups);
    let wanted = wanted(headers, aggregated_here)?;
    // The core group has no custom resources: its documents are the same for all tenants.
    let (served, apis, of) = match path {
        Path::CoreVersions => (None, None, Fingerprint::default()),
        Path::GroupVersion(group, _) if group.is_empty() => (None, None, Fingerprint::default()),
        Path::GroupVersion(group, _) if group.contains('.') => {
            let served = tenant.customs.fresh(tenant, group).await?;
            let of = served.fingerprint();
            (Some(served), None, of)
        }
        Path::GroupVersion(..) => {
            let served = tenant.customs.current(tenant).await?;
            let of = served.fingerprint();
            (Some(served), None, of)
        }
        _ => {
            let served = tenant.customs.current(tenant).await?;
            let apis = aggregator::registered(tenant).await?;
            if wanted == Wanted::Aggregated {
                aggregator::discovered(tenant, &apis).await;
            }
            let of = groups::fingerprint(&served, &apis);
            (Some(served), Some(apis), of)
        }
    };
    let key = Key { of, name: format!("{wanted:?} {path:?}") };
    let (served, apis) = (served.unwrap_or_default(), apis.unwrap_or_default());
    if !exists(tenant, &served, &apis, path) {
        return match path {
            Path::GroupVersion(group, _) if tenant.shared.catalog.has_group(group) => {
                Err(Status::no_such_resource())
            }
            _ => Ok(respond::page_not_found()),
        };
    }
    let build = {
        let (tenant, path) = (tenant.clone(), path.clone());
        move || {
            let value = document(&tenant, &served, &apis, &path, wanted);
            let text =
                if wanted == Wanted::Yaml { k1s_object::to_yaml(&value) } else { format!("{value}\n") };
            text.into_bytes()
        }
    };
    Ok(send(&tenant.document(key, build).await?, wanted, headers))
}

/// The document at a discovery path that exists.
fn document(tenant: &Tenant, served: &Served, apis: &Apis, path: &Path, wanted: Wanted) -> Value {
    let groups = |order| groups::groups(tenant, served, apis, order);
    match path {
        Path::CoreVersions if wanted == Wanted::Aggregated => {
            let contents = Contents::Own(tenant.shared.catalog.of("", "v1").cloned().collect());
            let core = Group { name: String::new(), versions: vec![Version { name: "v1".into(), contents }] };
            aggregated(&[core])
        }
        Path::Groups if wanted == Wanted::Aggregated => aggregated(&groups(Order::ByGroup)),
        Path::CoreVersions => json!({"kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]}),
        Path::Groups => {
            let groups: Vec<Value> =
                groups(Order::ByApiService).iter().map(|group| group_json(group, false)).collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        Path::Group(name) => groups(Order::ByApiService)
            .iter()
            .find(|group| group.name == *name)
            .map(|group| group_json(group, true))
            .unwrap_or_default(),
        Path::GroupVersion(group, version) => {
            resource_list(tenant, served, group, version).unwrap_or_default()
        }
        _ => Value::Null,
    }
}

fn send(document: &Document, wanted: Wanted, headers: &HeaderMap) -> Response<Body> {
    match wanted {
        Wanted::Aggregated => respond::document(document, AGGREGATED, headers),
        Wanted::Yaml => respond::bytes(200, "application/yaml", document.body.clone()),
        Wanted::Json => respond::bytes(200, "application/json", document.body.clone()),
    }
}

fn group_json(group: &Group, alone: bool) -> Value {
    let version = |name: &str| json!({"groupVersion": GroupVersion::new(&*group.name, name).to_string(), "version": name});
    let versions: Vec<Value> = group.versions.iter().map(|one| version(&one.name)).collect();
    let preferred = versions.first().cloned().unwrap_or_default();
    let mut out = Map::new();
    if alone {
        out.insert("kind".into(), "APIGroup".into());
        out.insert("apiVersion".into(), "v1".into());
    }
    out.insert("name".into(), group.name.as_str().into());
    out.insert("versions".into(), versions.into());
    out.insert("preferredVersion".into(), preferred);
    Value::Object(out)
}

fn resource_list(tenant: &Tenant, customs: &Served, group: &str, version: &str) -> Option<Value> {
    let mut resources: Vec<Arc<Resource>> = tenant.shared.catalog.of(group, version).cloned().collect();
    if group.contains('.') {
        let mut more: Vec<Arc<Resource>> = customs
            .resources()
            .filter(|resource| resource.group == group && resource.version == version)
            .cloned()
            .collect();
        more.sort_by(|a, b| a.plural.cmp(&b.plural));
        resources.extend(more);
    }
    if resources.is_empty() {
        return None;
    }
    let mut list = Vec::new();
    for resource in &resources {
        let mut item = json!({"name": resource.plural, "singularName": resource.singular,
            "namespaced": resource.namespaced, "kind": resource.kind, "verbs": resource.verbs});
        if !resource.short_names.is_empty() {
            item["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            item["categories"] = json!(resource.categories);
        }
        if !resource.storage_hash.is_empty() {
            item["storageVersionHash"] = json!(resource.storage_hash);
        }
        list.push(item);
        for sub in &resource.subresources {
            let mut item = json!({"name": format!("{}/{}", resource.plural, sub.name), "singularName": "",
                "namespaced": resource.namespaced});
            if !sub.version.is_empty() && (sub.group != resource.group || sub.version != resource.version) {
                if !sub.group.is_empty() {
                    item["group"] = json!(sub.group);
                }
                item["version"] = json!(sub.version);
            }
            item["kind"] = json!(sub.kind);
            item["verbs"] = json!(sub.verbs);
            list.push(item);
        }
    }
    let mut out = Map::new();
    out.insert("kind".into(), "APIResourceList".into());
    // The core group's list has no apiVersion in Kubernetes.
    if !group.is_empty() {
        out.insert("apiVersion".into(), "v1".into());
    }
    out.insert("groupVersion".into(), GroupVersion::new(group, version).to_string().into());
    out.insert("resources".into(), list.into());
    Some(Value::Object(out))
}

fn aggregated(groups: &[Group]) -> Value {
    let items: Vec<Value> = groups
        .iter()
        .map(|group| {
            let versions: Vec<Value> = group.versions.iter().map(aggregated_version).collect();
            let metadata = if group.name.is_empty() { json!({}) } else { json!({ "name": group.name }) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": items})
}

fn aggregated_version(version: &Version) -> Value {
    let (resources, is_current) = match &version.contents {
        Contents::Own(resources) => {
            let resources: Vec<Value> =
                resources.iter().map(|resource| aggregated_resource(resource)).collect();
            (Some(resources.into()), true)
        }
        Contents::Other { resources, is_current } => (resources.as_deref().cloned(), *is_current),
        Contents::Nothing => (None, true),
    };
    let mut out = json!({"version": version.name});
    // Like an empty list in Go.
    if let Some(resources) =
        resources.filter(|list: &Value| list.as_array().is_some_and(|list| !list.is_empty()))
    {
        out["resources"] = resources;
    }
    out["freshness"] = if is_current { "Current" } else { "Stale" }.into();
    out
}

fn aggregated_resource(resource: &Resource) -> Value {
    // A kind of the resource's own group version leaves both empty, except for custom resources.
    let kind = |group: &str, version: &str, kind: &str| {
        let own = !resource.is_custom() && group == resource.group && version == resource.version;
        let (group, version) = if own { ("", "") } else { (group, version) };
        json!({"group": group, "version": version, "kind": kind})
    };
    let mut item = json!({"resource": resource.plural,
        "responseKind": kind(&resource.group, &resource.version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular, "verbs": resource.verbs});
    if !resource.short_names.is_empty() {
        item["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        item["categories"] = json!(resource.categories);
    }
    if !resource.subresources.is_empty() {
        let subresources: Vec<Value> = resource
            .subresources
            .iter()
            .map(|sub| {
                let (group, version) = match (&*sub.group, &*sub.version) {
                    ("", "") => (&*resource.group, &*resource.version),
                    other => other,
                };
                json!({"subresource": sub.name, "responseKind": kind(group, version, &sub.kind), "verbs": sub.verbs})
            })
            .collect();
        item["subresources"] = subresources.into();
    }
    item
}

/// GET of `/`: the served paths.
pub(crate) async fn paths(tenant: &Arc<Tenant>) -> Result<Response<Body>, Status> {
    let mut paths: Vec<String> = ["/api", "/api/v1", "/apis", "/apis/"].map(str::to_owned).to_vec();
    let served = tenant.customs.current(tenant).await?;
    let apis = aggregator::registered(tenant).await?;
    for group in groups::groups(tenant, &served, &apis, Order::ByApiService) {
        paths.push(format!("/apis/{}", group.name));
        paths.extend(group.versions.iter().map(|version| format!("/apis/{}/{}", group.name, version.name)));
    }
    let others = ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"];
    paths.extend(others.map(str::to_owned));
    paths.extend(["/.well-known/openid-configuration", "/openid/v1/jwks"].map(str::to_owned));
    paths.sort();
    Ok(respond::raw_json(200, &json!({ "paths": paths })))
}
