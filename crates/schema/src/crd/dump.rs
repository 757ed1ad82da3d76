//! Versions and schemas as Go prints its internal types, for error messages.

use serde_json::{Map, Value, json};

use super::{sorted, view::Version};
use crate::go;

/// A JSON value, which Go holds as a map and encodes sorted.
fn raw(value: Option<&Value>) -> Value {
    value.map_or(Value::Null, go::sorted)
}

fn or_null(value: Option<&Value>) -> Value {
    value.cloned().unwrap_or(Value::Null)
}

fn text(value: Option<&Value>) -> Value {
    value.cloned().unwrap_or_else(|| Value::from(""))
}

fn flag(value: Option<&Value>) -> Value {
    value.cloned().unwrap_or(Value::Bool(false))
}

/// The list of versions, without shared parts.
pub(super) fn versions(versions: &[Version<'_>]) -> Value {
    Value::Array(
        versions
            .iter()
            .map(|version| {
                json!({
                    "Name": version.name,
                    "Served": version.served,
                    "Storage": version.storage,
                    "Deprecated": version.deprecated,
                    "DeprecationWarning": version.warning,
                    "Schema": version.shared.validation.map(|validation| {
                        json!({"OpenAPIV3Schema": validation.get("openAPIV3Schema").map(schema)})
                    }),
                    "Subresources": version.shared.subresources.map(subresources),
                    "AdditionalPrinterColumns": version.shared.columns.and_then(Value::as_array).map(|columns| {
                        columns.iter().map(column).collect::<Vec<_>>()
                    }),
                    "SelectableFields": version.shared.selectable.and_then(Value::as_array).map(|fields| {
                        fields.iter().map(|field| json!({"JSONPath": text(field.get("jsonPath"))})).collect::<Vec<_>>()
                    }),
                })
            })
            .collect(),
    )
}

fn subresources(value: &Value) -> Value {
    json!({
        "Status": value.get("status").map(|_| json!({})),
        "Scale": value.get("scale").map(|scale| json!({
            "SpecReplicasPath": text(scale.get("specReplicasPath")),
            "StatusReplicasPath": text(scale.get("statusReplicasPath")),
            "LabelSelectorPath": or_null(scale.get("labelSelectorPath")),
        })),
    })
}

fn column(value: &Value) -> Value {
    json!({
        "Name": text(value.get("name")),
        "Type": text(value.get("type")),
        "Format": text(value.get("format")),
        "Description": text(value.get("description")),
        "Priority": value.get("priority").cloned().unwrap_or_else(|| Value::from(0)),
        "JSONPath": text(value.get("jsonPath")),
    })
}

fn schemas(list: Option<&Value>) -> Value {
    match list.and_then(Value::as_array) {
        None => Value::Null,
        Some(list) => Value::Array(list.iter().map(schema).collect()),
    }
}

fn schema_map(map: Option<&Value>) -> Value {
    match map {
        None => Value::Null,
        Some(_) => {
            let entries: Map<String, Value> =
                sorted(map).into_iter().map(|(key, value)| (key.to_owned(), schema(value))).collect();
            Value::Object(entries)
        }
    }
}

fn schema_or_bool(value: Option<&Value>) -> Value {
    match value {
        None => Value::Null,
        Some(Value::Bool(allows)) => json!({"Allows": allows, "Schema": null}),
        Some(other) => json!({"Allows": true, "Schema": schema(other)}),
    }
}

/// A schema.
pub(super) fn schema(value: &Value) -> Value {
    let get = |key: &str| value.get(key);
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| {
        out.insert(key.to_owned(), value);
    };
    put("ID", text(get("id")));
    put("Schema", text(get("$schema")));
    put("Ref", or_null(get("$ref")));
    put("Description", text(get("description")));
    put("Type", text(get("type")));
    put("Nullable", flag(get("nullable")));
    put("Format", text(get("format")));
    put("Title", text(get("title")));
    put("Default", raw(get("default")));
    put("Maximum", or_null(get("maximum")));
    put("ExclusiveMaximum", flag(get("exclusiveMaximum")));
    put("Minimum", or_null(get("minimum")));
    put("ExclusiveMinimum", flag(get("exclusiveMinimum")));
    put("MaxLength", or_null(get("maxLength")));
    put("MinLength", or_null(get("minLength")));
    put("Pattern", text(get("pattern")));
    put("MaxItems", or_null(get("maxItems")));
    put("MinItems", or_null(get("minItems")));
    put("UniqueItems", flag(get("uniqueItems")));
    put("MultipleOf", or_null(get("multipleOf")));
    put("Enum", raw(get("enum")));
    put("MaxProperties", or_null(get("maxProperties")));
    put("MinProperties", or_null(get("minProperties")));
    put("Required", or_null(get("required")));
    put(
        "Items",
        match get("items") {
            None => Value::Null,
            Some(Value::Array(list)) => {
                json!({"Schema": null, "JSONSchemas": list.iter().map(schema).collect::<Vec<_>>()})
            }
            Some(one) => json!({"Schema": schema(one), "JSONSchemas": null}),
        },
    );
    put("AllOf", schemas(get("allOf")));
    put("OneOf", schemas(get("oneOf")));
    put("AnyOf", schemas(get("anyOf")));
    put("Not", get("not").map_or(Value::Null, schema));
    put("Properties", schema_map(get("properties")));
    put("AdditionalProperties", schema_or_bool(get("additionalProperties")));
    put("PatternProperties", schema_map(get("patternProperties")));
    put("Dependencies", or_null(get("dependencies")));
    put("AdditionalItems", schema_or_bool(get("additionalItems")));
    put("Definitions", schema_map(get("definitions")));
    put(
        "ExternalDocs",
        get("externalDocs").map_or(
            Value::Null,
            |docs| json!({"Description": text(docs.get("description")), "URL": text(docs.get("url"))}),
        ),
    );
    put("Example", raw(get("example")));
    put("XPreserveUnknownFields", or_null(get("x-kubernetes-preserve-unknown-fields")));
    put("XEmbeddedResource", flag(get("x-kubernetes-embedded-resource")));
    put("XIntOrString", flag(get("x-kubernetes-int-or-string")));
    put("XListMapKeys", or_null(get("x-kubernetes-list-map-keys")));
    put("XListType", or_null(get("x-kubernetes-list-type")));
    put("XMapType", or_null(get("x-kubernetes-map-type")));
    put(
        "XValidations",
        get("x-kubernetes-validations")
            .and_then(Value::as_array)
            .map_or(Value::Null, |rules| Value::Array(rules.iter().map(rule).collect())),
    );
    Value::Object(out)
}

fn rule(value: &Value) -> Value {
    json!({
        "Rule": text(value.get("rule")),
        "Message": text(value.get("message")),
        "MessageExpression": text(value.get("messageExpression")),
        "Reason": or_null(value.get("reason")),
        "FieldPath": text(value.get("fieldPath")),
        "OptionalOldSelf": or_null(value.get("optionalOldSelf")),
    })
}
