//! `OpenAPI` v3 documents, one per group version, built from the table; custom resources use the same builder.
//!
//! `kubectl explain` reads the schemas; `kubectl apply` reads the merge keys of a kind, and from the PATCH
//! operations whether the server validates fields.

mod descriptions;
mod foreign;
mod gnostic;
mod paths;
mod schemas;
mod swagger;

use serde_json::{Map, Value, json};

use self::{
    descriptions::Descriptions,
    paths::operation_name,
    schemas::{describe, references, special, type_schema},
};
pub use self::{
    foreign::Foreign,
    gnostic::encode as encode_v2,
    paths::{Resource, ResourceSubresource},
    swagger::swagger as v2,
};
use crate::{
    groups, kinds,
    table::{Kind, Type},
    type_by_name,
};

/// The location of schemas in a document.
const SCHEMAS: &str = "#/components/schemas/";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The names of the documents of built-in kinds, as in `/openapi/v3`: `api/v1`, `apis/apps`, `apis/apps/v1`.
#[must_use]
pub fn documents() -> Vec<String> {
    let mut names: Vec<String> =
        ["api", "apis", "version", ".well-known/openid-configuration", "openid/v1/jwks"]
            .map(str::to_owned)
            .to_vec();
    for group in groups() {
        if !group.name.is_empty() {
            names.push(format!("apis/{}", group.name));
        }
        names.extend(group.versions.iter().map(|version| prefix(group.name, version)));
    }
    names.sort();
    names
}

/// The document of built-in kinds with this name, one of [`documents`].
#[must_use]
pub fn document(name: &str) -> Option<Value> {
    let mut parts = name.split('/');
    match (parts.next()?, parts.next(), parts.next(), parts.next()) {
        ("api", Some("v1"), None, None) => group_version("", "v1"),
        ("apis", Some(group), Some(version), None) => group_version(group, version),
        ("apis", Some(group), None, None) => {
            groups().iter().find(|known| known.name == group && !group.is_empty())?;
            let (id, tag) = operation_name(group, "");
            let mut document = Document::new(group, "");
            document.read(&format!("/apis/{group}/"), &format!("get{id}APIGroup"), &tag, "APIGroup");
            Some(document.finish())
        }
        _ => other(name),
    }
}

fn group_version(group: &str, version: &str) -> Option<Value> {
    groups().iter().find(|known| known.name == group && known.versions.contains(&version))?;
    let mut document = Document::new(group, version);
    let (id, tag) = operation_name(group, version);
    let path = format!("/{}/", prefix(group, version));
    document.read(&path, &format!("get{id}APIResources"), &tag, "APIResourceList");
    for kind in kinds().iter().filter(|kind| kind.group == group && kind.version == version) {
        document.kind(kind);
    }
    Some(document.finish())
}

/// The documents of paths outside of group versions.
fn other(name: &str) -> Option<Value> {
    let mut document = Document::new("", "");
    match name {
        "api" => document.read("/api/", "getCoreAPIVersions", "core", "APIVersions"),
        "apis" => document.read("/apis/", "getAPIVersions", "apis", "APIGroupList"),
        "version" => {
            let info = "io.k8s.apimachinery.pkg.version.Info";
            document.reference(info);
            let schema = json!({"$ref": format!("{SCHEMAS}{info}")});
            document.plain("/version/", "getCodeVersion", "version", "application/json", &schema);
        }
        ".well-known/openid-configuration" => document.plain(
            "/.well-known/openid-configuration/",
            "getServiceAccountIssuerOpenIDConfiguration",
            "WellKnown",
            "application/json",
            &json!({"type": "string"}),
        ),
        "openid/v1/jwks" => document.plain(
            "/openid/v1/jwks/",
            "getServiceAccountIssuerOpenIDKeyset",
            "openid",
            "application/jwk-set+json",
            &json!({"type": "string"}),
        ),
        _ => return None,
    }
    Some(document.finish())
}

/// `api/v1`, `apis/apps/v1`
fn prefix(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// The schema of a type of the table by its name in documents (`io.k8s.api.core.v1.Pod`), with references to other types.
#[must_use]
pub fn component(name: &str) -> Option<Value> {
    special(name).or_else(|| type_by_name(name).map(|ty| type_schema(ty, None)))
}

/// Builds a document. Types that are referenced are added automatically.
#[derive(Debug)]
pub struct Document {
    group: String,
    version: String,
    paths: Map<String, Value>,
    schemas: Map<String, Value>,
    descriptions: Descriptions,
}

impl Document {
    /// An empty document for a group version.
    #[must_use]
    pub fn new(group: &str, version: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            paths: Map::new(),
            schemas: Map::new(),
            descriptions: Descriptions::default(),
        }
    }

    /// Adds a schema under this name, and the types of the table that it references. A custom resource has two:
    /// its own and its list.
    pub fn schema(&mut self, name: &str, schema: Value) {
        let mut wanted = Vec::new();
        references(&schema, &mut wanted);
        self.schemas.insert(name.to_owned(), schema);
        for name in wanted {
            self.reference(&name);
        }
    }

    /// Adds the paths of a resource with all operations, and the types of the table that they reference.
    pub fn resource(&mut self, resource: &Resource<'_>) {
        for (path, item) in resource.paths() {
            let mut wanted = Vec::new();
            references(&item, &mut wanted);
            self.paths.insert(path, item);
            for name in wanted {
                self.reference(&name);
            }
        }
    }

    /// Adds a type of the table, if there is one with this name, and all types it references.
    pub fn reference(&mut self, name: &str) {
        let mut wanted = vec![name.to_owned()];
        while let Some(name) = wanted.pop() {
            if self.schemas.contains_key(&name) {
                continue;
            }
            let schema = match (special(&name), type_by_name(&name)) {
                (Some(Value::Object(schema)), _) => {
                    let mut described = Map::new();
                    describe(&mut described, self.descriptions.of(&name).and_then(|texts| texts.get("")));
                    described.extend(schema);
                    described.into()
                }
                (None, Some(ty)) => self.type_schema(ty),
                _ => continue,
            };
            references(&schema, &mut wanted);
            self.schemas.insert(name, schema);
        }
    }

    /// The document.
    #[must_use]
    pub fn finish(self) -> Value {
        let (mut paths, mut schemas) = (self.paths, self.schemas);
        paths.sort_keys();
        schemas.sort_keys();
        let mut components = Map::new();
        if !schemas.is_empty() {
            components.insert("schemas".to_owned(), schemas.into());
        }
        components.insert(
            "securitySchemes".to_owned(),
            json!({"BearerToken": {"type": "apiKey", "description": "Bearer Token authentication",
                "name": "authorization", "in": "header"}}),
        );
        json!({
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": "unversioned"},
            "paths": paths,
            "components": components,
        })
    }

    fn kind(&mut self, kind: &Kind) {
        let subresources: Vec<ResourceSubresource<'_>> = kind
            .subresources
            .iter()
            .map(|subresource| ResourceSubresource {
                name: subresource.name,
                group: subresource.group,
                version: subresource.version,
                kind: subresource.kind,
                verbs: subresource.verbs,
                schema: subresource.ty.map_or("", |ty| ty.name),
            })
            .collect();
        self.resource(&Resource {
            group: kind.group,
            version: kind.version,
            kind: kind.kind,
            plural: kind.plural,
            namespaced: kind.namespaced,
            verbs: kind.verbs,
            subresources: &subresources,
            schema: kind.ty.name,
            list_schema: kind.list_ty.map_or("", |ty| ty.name),
            custom: false,
            returns_deleted: kind.returns_deleted,
        });
    }

    /// A path with a GET operation that returns a type of `meta/v1`.
    fn read(&mut self, path: &str, id: &str, tag: &str, ty: &str) {
        let name = format!("{META}.{ty}");
        self.reference(&name);
        self.paths.insert(path.to_owned(), json!({"get": paths::read_operation(id, tag, &name)}));
    }

    fn plain(&mut self, path: &str, id: &str, tag: &str, media: &str, schema: &Value) {
        let operation = json!({
            "tags": [tag],
            "operationId": id,
            "responses": {
                "200": {"description": "OK", "content": {media: {"schema": schema}}},
                "401": {"description": "Unauthorized"},
            },
        });
        self.paths.insert(path.to_owned(), json!({"get": operation}));
    }

    fn type_schema(&mut self, ty: &'static Type) -> Value {
        let mut schema = type_schema(ty, self.descriptions.of(ty.name));
        let kinds = self.group_version_kinds(ty);
        if let (false, Some(schema)) = (kinds.is_empty(), schema.as_object_mut()) {
            schema.insert("x-kubernetes-group-version-kind".to_owned(), kinds.into());
        }
        schema
    }

    /// The kinds whose type or list this is. Some bodies belong to every group.
    fn group_version_kinds(&self, ty: &'static Type) -> Vec<Value> {
        let gvk = |group: &str, version: &str, kind: &str| json!({"group": group, "kind": kind, "version": version});
        if let Some(name) = ty.name.strip_prefix(META).and_then(|rest| rest.strip_prefix('.')) {
            return match name {
                "APIGroup" | "APIGroupList" | "APIResourceList" | "APIVersions" | "Status" => {
                    vec![gvk("", "v1", name)]
                }
                "DeleteOptions" | "WatchEvent" if self.group.is_empty() => vec![gvk("", "v1", name)],
                "DeleteOptions" | "WatchEvent" => {
                    vec![gvk("", "v1", name), gvk(&self.group, &self.version, name)]
                }
                _ => Vec::new(),
            };
        }
        for kind in kinds() {
            if std::ptr::eq(kind.ty, ty) {
                return vec![gvk(kind.group, kind.version, kind.kind)];
            }
            if kind.list_ty.is_some_and(|list| std::ptr::eq(list, ty)) {
                return vec![gvk(kind.group, kind.version, &format!("{}List", kind.kind))];
            }
            let body = kind.subresources.iter().find(|sub| sub.ty.is_some_and(|body| std::ptr::eq(body, ty)));
            // A subresource with the kind of its parent is listed with the parent.
            if let Some(sub) = body.filter(|sub| sub.group != kind.group || sub.kind != kind.kind) {
                return vec![gvk(sub.group, sub.version, sub.kind)];
            }
        }
        Vec::new()
    }
}
