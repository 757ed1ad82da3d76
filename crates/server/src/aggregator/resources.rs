//! What aggregated API servers report in their discovery documents: decoded as Go does, and nothing but that.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The resources of group versions, in the form of aggregated discovery.
pub(super) type ByVersion = HashMap<(String, String), Vec<Resource>>;

/// `null` is the default value, as for Go.
fn nullable<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Kind {
    #[serde(deserialize_with = "nullable")]
    group: String,
    #[serde(deserialize_with = "nullable")]
    version: String,
    #[serde(deserialize_with = "nullable")]
    kind: String,
}

/// A resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Resource {
    #[serde(deserialize_with = "nullable")]
    resource: String,
    #[serde(deserialize_with = "nullable")]
    response_kind: Kind,
    #[serde(deserialize_with = "nullable")]
    scope: String,
    #[serde(deserialize_with = "nullable")]
    singular_resource: String,
    #[serde(deserialize_with = "nullable")]
    verbs: Vec<String>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<String>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    categories: Vec<String>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<Subresource>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Subresource {
    #[serde(deserialize_with = "nullable")]
    subresource: String,
    #[serde(deserialize_with = "nullable")]
    response_kind: Kind,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    accepted_types: Vec<Kind>,
    #[serde(deserialize_with = "nullable")]
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct GroupList {
    #[serde(default, deserialize_with = "nullable")]
    items: Vec<Group>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Group {
    #[serde(deserialize_with = "nullable")]
    metadata: Name,
    #[serde(deserialize_with = "nullable")]
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Name {
    #[serde(deserialize_with = "nullable")]
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Version {
    #[serde(deserialize_with = "nullable")]
    version: String,
    #[serde(deserialize_with = "nullable")]
    resources: Vec<Resource>,
}

/// Reads an object in JSON. Without the check, serde would take the elements of an array for its fields.
fn read<T: DeserializeOwned>(document: &[u8]) -> Result<T, String> {
    if !document.trim_ascii_start().starts_with(b"{") {
        return Err("it is not an object in JSON".to_owned());
    }
    serde_json::from_slice(document).map_err(|why| why.to_string())
}

/// Reads an `APIGroupDiscoveryList`.
pub(super) fn aggregated(document: &[u8]) -> Result<ByVersion, String> {
    let list: GroupList = read(document)?;
    let mut found = ByVersion::new();
    for group in list.items {
        for version in group.versions {
            found.insert((group.metadata.name.clone(), version.version), version.resources);
        }
    }
    Ok(found)
}

#[derive(Deserialize)]
struct LegacyList {
    #[serde(default, deserialize_with = "nullable")]
    resources: Vec<Legacy>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Legacy {
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    singular_name: String,
    #[serde(deserialize_with = "nullable")]
    namespaced: bool,
    #[serde(deserialize_with = "nullable")]
    group: String,
    #[serde(deserialize_with = "nullable")]
    version: String,
    #[serde(deserialize_with = "nullable")]
    kind: String,
    #[serde(deserialize_with = "nullable")]
    verbs: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    short_names: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    categories: Vec<String>,
}

impl Legacy {
    fn scope(&self) -> &'static str {
        if self.namespaced { "Namespaced" } else { "Cluster" }
    }

    fn response_kind(&self) -> Kind {
        Kind { group: self.group.clone(), version: self.version.clone(), kind: self.kind.clone() }
    }
}

/// Reads an `APIResourceList`, and converts it to the form of aggregated discovery.
pub(super) fn legacy(document: &[u8]) -> Result<Vec<Resource>, String> {
    let list: LegacyList = read(document)?;
    let (subresources, resources): (Vec<_>, Vec<_>) =
        list.resources.into_iter().partition(|one| one.name.contains('/'));
    let mut found: Vec<Resource> = Vec::with_capacity(resources.len());
    let mut places: HashMap<String, usize> = HashMap::new();
    for one in resources {
        places.insert(one.name.clone(), found.len());
        found.push(Resource {
            response_kind: one.response_kind(),
            scope: one.scope().into(),
            resource: one.name,
            singular_resource: one.singular_name,
            verbs: one.verbs,
            short_names: one.short_names,
            categories: one.categories,
            subresources: Vec::new(),
        });
    }
    for one in subresources {
        let (parent, name) = one.name.split_once('/').unwrap_or((&one.name, ""));
        let place = *places.entry(parent.to_owned()).or_insert_with(|| {
            found.push(Resource {
                resource: parent.into(),
                scope: one.scope().into(),
                ..Resource::default()
            });
            found.len() - 1
        });
        let Some(of) = found.get_mut(place) else { continue };
        if of.scope != one.scope() {
            return Err(format!(
                "Error: Parent {parent} (scope: {}) and subresource {name} (scope: {}) scope do not match",
                of.scope,
                one.scope()
            ));
        }
        let response_kind = if one.kind.is_empty() { Kind::default() } else { one.response_kind() };
        of.subresources.push(Subresource {
            subresource: name.into(),
            response_kind,
            accepted_types: Vec::new(),
            verbs: one.verbs.clone(),
        });
    }
    Ok(found)
}

/// Resources as JSON.
pub(super) fn to_json(resources: &[Resource]) -> Value {
    serde_json::to_value(resources).unwrap_or_else(|_| Value::Array(Vec::new()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_legacy(resources: &Value) -> Result<Value, String> {
        let list = json!({"kind": "APIResourceList", "groupVersion": "g/v1", "resources": resources});
        legacy(list.to_string().as_bytes()).map(|found| to_json(&found))
    }

    /// The cases of upstream's conversion of legacy discovery.
    #[test]
    fn legacy_lists_become_aggregated_ones() {
        let none = || json!({"group": "", "version": "", "kind": ""});
        let foos = json!({"name": "foos", "singularName": "foo", "namespaced": true, "kind": "Foo",
            "verbs": ["get", "list"], "shortNames": ["f"], "categories": ["all"], "group": "g", "version": "v1"});
        let kind = json!({"group": "g", "version": "v1", "kind": "Foo"});
        let as_foos = json!({"resource": "foos", "responseKind": kind, "scope": "Namespaced", "singularResource": "foo",
            "verbs": ["get", "list"], "shortNames": ["f"], "categories": ["all"]});
        assert_eq!(read_legacy(&json!([foos])).unwrap(), json!([as_foos]));
        // A subresource, before its resource.
        let status = json!({"name": "foos/status", "namespaced": true, "kind": "Foo", "verbs": ["get"]});
        let mut with_status = as_foos;
        let status_kind = json!({"group": "", "version": "", "kind": "Foo"});
        with_status["subresources"] =
            json!([{"subresource": "status", "responseKind": status_kind, "verbs": ["get"]}]);
        assert_eq!(read_legacy(&json!([status, foos])).unwrap(), json!([with_status]));
        // A subresource without a kind, and without its resource.
        let alone = json!({"name": "bars/proxy", "namespaced": false, "verbs": null});
        let as_alone = json!([{"resource": "bars", "responseKind": none(), "scope": "Cluster", "singularResource": "",
            "verbs": [], "subresources": [{"subresource": "proxy", "responseKind": none(), "verbs": []}]}]);
        assert_eq!(read_legacy(&json!([alone])).unwrap(), as_alone);
        // Scopes that contradict each other.
        let other = json!({"name": "foos/x", "namespaced": false, "verbs": []});
        assert_eq!(
            read_legacy(&json!([foos, other])).unwrap_err(),
            "Error: Parent foos (scope: Namespaced) and subresource x (scope: Cluster) scope do not match"
        );
        assert_eq!(read_legacy(&Value::Null).unwrap(), json!([]));
    }

    #[test]
    fn aggregated_lists_are_read_as_go_reads_them() {
        let document = json!({"kind": "APIGroupDiscoveryList", "items": [
            {"metadata": {"name": "g"}, "versions": [{"version": "v1", "freshness": "Current", "resources": [
                {"resource": "foos", "responseKind": null, "scope": "Cluster", "unknown": 1, "verbs": ["get"]}]}]},
            {"metadata": null, "versions": null}]});
        let found = aggregated(document.to_string().as_bytes()).unwrap();
        let resources = &found[&("g".to_owned(), "v1".to_owned())];
        let none = json!({"group": "", "version": "", "kind": ""});
        assert_eq!(
            to_json(resources),
            json!([{"resource": "foos", "responseKind": none, "scope": "Cluster", "singularResource": "", "verbs": ["get"]}])
        );
        for lie in ["", "[]", "{\"items\": 1}", "{\"items\": [{\"versions\": {}}]}", "<html>"] {
            assert!(aggregated(lie.as_bytes()).is_err(), "{lie}");
        }
    }
}
