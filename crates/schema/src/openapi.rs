//! The published `OpenAPI` v3 schema of a custom resource.

use serde_json::{Map, Value, json};

const META_REF: &str = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META_REF: &str = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const META: &str = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_META: &str = "Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const EMBEDDED_API_VERSION: &str = "apiVersion defines the versioned schema of this representation of an object. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const EMBEDDED_KIND: &str = "kind is a string value representing the type of this object. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// The name of a schema: `com.example.v1.CronTab`.
pub fn model_name(group: &str, version: &str, kind: &str) -> String {
    let group: Vec<&str> = group.split('.').rev().collect();
    format!("{}.{version}.{kind}", group.join("."))
}

fn meta_ref(reference: &str, description: &str) -> Value {
    json!({"description": description, "allOf": [{"$ref": reference}]})
}

fn typed(description: &str) -> Value {
    json!({"description": description, "type": "string"})
}

fn text<'v>(value: Option<&'v Value>, key: &str) -> &'v str {
    value.and_then(|value| value.get(key)).and_then(Value::as_str).unwrap_or_default()
}

/// The component schemas of a version of a definition and of its list, by name. `None` if there is no such
/// version.
///
/// Built from the definition, not the compiled kind: descriptions and examples are published but not kept in
/// memory.
pub fn openapi_v3(crd: &Value, version: &str) -> Option<[(String, Value); 2]> {
    let spec = crd.get("spec")?;
    let group = text(Some(spec), "group");
    let names = spec.get("names");
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    let versions = spec.get("versions")?.as_array()?;
    let found = versions.iter().find(|other| text(Some(other), "name") == version)?;
    let schema = found.get("schema").and_then(|schema| schema.get("openAPIV3Schema"));
    let mut published = match schema {
        None => json!({"type": "object"}),
        Some(schema) => {
            let mut published = schema.clone();
            unfold(&mut published);
            embed(&mut published);
            properties(
                &mut published,
                [
                    ("apiVersion", typed(API_VERSION)),
                    ("kind", typed(KIND)),
                    ("metadata", meta_ref(META_REF, META)),
                ],
            );
            published
        }
    };
    let selectable: Vec<Value> = found
        .get("selectableFields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|field| json!({"fieldPath": text(Some(field), "jsonPath").trim_start_matches('.')}))
        .collect();
    let name = model_name(group, version, kind);
    let mut of_list = json!({
        "description": format!("{list_kind} is a list of {kind}"),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": typed(API_VERSION),
            "items": {
                "description": format!(
                    "List of {}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
                    text(names, "plural")
                ),
                "type": "array",
                "items": {"$ref": format!("#/components/schemas/{name}")},
            },
            "kind": typed(KIND),
            "metadata": meta_ref(LIST_META_REF, LIST_META),
        },
    });
    for (schema, kind) in [(&mut published, kind), (&mut of_list, list_kind)] {
        if let Some(map) = schema.as_object_mut() {
            map.insert(
                "x-kubernetes-group-version-kind".to_owned(),
                json!([{"group": group, "kind": kind, "version": version}]),
            );
            if !selectable.is_empty() {
                map.insert("x-kubernetes-selectable-fields".to_owned(), Value::from(selectable.clone()));
            }
        }
    }
    Some([(name, published), (model_name(group, version, list_kind), of_list)])
}

fn properties(schema: &mut Value, add: [(&str, Value); 3]) {
    let Some(map) = schema.as_object_mut() else { return };
    let properties = map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Some(properties) = properties.as_object_mut() {
        for (name, value) in add {
            properties.insert(name.to_owned(), value);
        }
    }
}

/// Expands `x-kubernetes-int-or-string` to its `OpenAPI` form.
fn unfold(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(unfold);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key) {
            unfold(inner);
        }
    }
    if map.get("x-kubernetes-int-or-string").and_then(Value::as_bool) != Some(true) {
        return;
    }
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let said = map.get("anyOf") == Some(&either)
        || map.get("allOf").and_then(|all| all.get(0)).is_some_and(|first| first["anyOf"] == either);
    if said {
        return;
    }
    if map.get("anyOf").is_none_or(Value::is_null) {
        map.insert("anyOf".to_owned(), either);
        return;
    }
    let all = map.entry("allOf").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(all) = all.as_array_mut() {
        all.insert(0, json!({ "anyOf": either }));
    }
}

/// Adds type and metadata fields to embedded objects, whether their schema has them or not.
fn embed(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(embed);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key) {
            embed(inner);
        }
    }
    if map.get("x-kubernetes-embedded-resource").and_then(Value::as_bool) != Some(true) {
        return;
    }
    let required = map.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(required) = required.as_array_mut() {
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|other| other == name) {
                required.push(Value::from(name));
            }
        }
    }
    properties(
        schema,
        [
            ("apiVersion", typed(EMBEDDED_API_VERSION)),
            ("kind", typed(EMBEDDED_KIND)),
            ("metadata", meta_ref(META_REF, META)),
        ],
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_int_or_string_is_either() {
        let mut schema = json!({"type": "object", "properties": {
            "plain": {"x-kubernetes-int-or-string": true},
            "said": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "more": {"type": "array", "items": {"x-kubernetes-int-or-string": true, "anyOf": [{"pattern": "x"}], "allOf": [{"pattern": "y"}]}},
            "map": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}},
        }});
        unfold(&mut schema);
        let either = json!([{"type": "integer"}, {"type": "string"}]);
        let properties = &schema["properties"];
        assert_eq!(properties["plain"]["anyOf"], either);
        assert_eq!(properties["said"]["anyOf"], either);
        assert!(properties["said"].get("allOf").is_none());
        assert_eq!(properties["more"]["items"]["allOf"], json!([{"anyOf": either}, {"pattern": "y"}]));
        assert_eq!(properties["map"]["additionalProperties"]["anyOf"], either);
    }

    #[test]
    fn a_version_is_published_with_its_type_and_metadata() {
        let crd = json!({"spec": {"group": "stable.example.com", "names": {"kind": "CronTab", "listKind": "CronTabList", "plural": "crontabs"},
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}}}}]}});
        let [(name, schema), (list_name, list)] = openapi_v3(&crd, "v1").unwrap();
        assert_eq!(name, "com.example.stable.v1.CronTab");
        assert_eq!(list_name, "com.example.stable.v1.CronTabList");
        assert_eq!(schema["properties"]["metadata"], meta_ref(META_REF, META));
        assert_eq!(schema["properties"]["spec"]["required"], json!(["kind", "apiVersion"]));
        assert_eq!(
            schema["x-kubernetes-group-version-kind"],
            json!([{"group": "stable.example.com", "kind": "CronTab", "version": "v1"}])
        );
        assert_eq!(
            list["properties"]["items"]["items"],
            json!({"$ref": "#/components/schemas/com.example.stable.v1.CronTab"})
        );
        assert!(openapi_v3(&crd, "v2").is_none());
    }
}
