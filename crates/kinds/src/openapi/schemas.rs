//! Schemas of the types of the table.

use serde_json::{Map, Value, json};

use super::{META, SCHEMAS};
use crate::table::{Field, SchemaOther, Shape, Topology, Type};

const APIEXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// The schema of a type with these descriptions; the caller adds its group, version and kind.
pub(super) fn type_schema(ty: &Type, texts: Option<&Map<String, Value>>) -> Value {
    let mut properties = Map::new();
    let mut required: Vec<&str> = Vec::new();
    for field in ty.fields {
        let text = texts.and_then(|texts| texts.get(field.name));
        properties.insert(field.name.to_owned(), property(field, text));
        if field.required {
            required.push(field.name);
        }
    }
    let mut schema = Map::new();
    describe(&mut schema, texts.and_then(|texts| texts.get("")));
    schema.insert("type".to_owned(), "object".into());
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    if !properties.is_empty() {
        schema.insert("properties".to_owned(), properties.into());
    }
    if ty.atomic {
        schema.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
    }
    schema.into()
}

/// The schemas of types with their own encoding, which are shapes in the table.
pub(super) fn special(name: &str) -> Option<Value> {
    if let Some(name) = name.strip_prefix(META).and_then(|rest| rest.strip_prefix('.')) {
        return match name {
            "Time" | "MicroTime" => Some(json!({"type": "string", "format": "date-time"})),
            "Duration" => Some(json!({"type": "string"})),
            "FieldsV1" | "Patch" => Some(json!({"type": "object"})),
            _ => None,
        };
    }
    if let Some(name) = name.strip_prefix(APIEXTENSIONS).and_then(|rest| rest.strip_prefix('.')) {
        let any = ["JSON", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray"];
        return any.contains(&name).then(|| json!({}));
    }
    match name {
        QUANTITY => Some(json!({"oneOf": [{"type": "string"}, {"type": "number"}]})),
        INT_OR_STRING => {
            Some(json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}))
        }
        RAW_EXTENSION => Some(json!({"type": "object"})),
        _ => None,
    }
}

/// Adds the names of the schemas that `value` references, at any depth, to `found`.
pub(super) fn references(value: &Value, found: &mut Vec<String>) {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    match value.as_str().filter(|_| key == "$ref").and_then(|text| text.strip_prefix(SCHEMAS))
                    {
                        Some(name) => found.push(name.to_owned()),
                        None => left.push(value),
                    }
                }
            }
            Value::Array(items) => left.extend(items),
            _ => {}
        }
    }
}

/// Adds a description, if there is one.
pub(super) fn describe(schema: &mut Map<String, Value>, text: Option<&Value>) {
    if let Some(text) = text {
        schema.insert("description".to_owned(), text.clone());
    }
}

fn property(field: &Field, text: Option<&Value>) -> Value {
    let mut out = Map::new();
    describe(&mut out, text);
    match shape(&field.shape) {
        // Siblings of a `$ref` are ignored by readers.
        Value::Object(schema) if schema.contains_key("$ref") => {
            out.insert("allOf".to_owned(), json!([schema]));
        }
        Value::Object(schema) => out.extend(schema),
        _ => {}
    }
    add_values(&mut out, field.values);
    let mut add = |name: &str, value: Value| {
        out.insert(name.to_owned(), value);
    };
    if let Some(default) = field.openapi_default().and_then(|text| serde_json::from_str(text).ok()) {
        add("default", default);
    }
    let list = matches!(field.shape, Shape::List(_) | Shape::Bytes);
    match field.topology {
        Topology::Default => {}
        Topology::Atomic if list => add("x-kubernetes-list-type", "atomic".into()),
        Topology::Atomic => add("x-kubernetes-map-type", "atomic".into()),
        Topology::Granular => add("x-kubernetes-map-type", "granular".into()),
        Topology::Set => add("x-kubernetes-list-type", "set".into()),
        Topology::Map(keys) => {
            add("x-kubernetes-list-map-keys", keys.into());
            add("x-kubernetes-list-type", "map".into());
        }
    }
    if !field.merge.key.is_empty() {
        add("x-kubernetes-patch-merge-key", field.merge.key.into());
    }
    let strategies = [
        ("merge", field.merge.merge),
        ("retainKeys", field.merge.retain_keys),
        ("replace", field.merge.replace),
    ];
    let strategies: Vec<&str> = strategies.iter().filter(|(_, set)| *set).map(|(name, _)| *name).collect();
    if !strategies.is_empty() {
        add("x-kubernetes-patch-strategy", strategies.join(",").into());
    }
    out.into()
}

/// Adds the values of an enumeration to the schema of its strings: of the field, or of its items.
fn add_values(schema: &mut Map<String, Value>, values: &[&str]) {
    if values.is_empty() {
        return;
    }
    for items in ["items", "additionalProperties"] {
        if let Some(Value::Object(items)) = schema.get_mut(items) {
            return add_values(items, values);
        }
    }
    schema.insert("enum".to_owned(), values.into());
}

fn shape(shape: &Shape) -> Value {
    let refer = |package: &str, name: &str| json!({"$ref": format!("{SCHEMAS}{package}.{name}")});
    match shape {
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Int32 => json!({"type": "integer", "format": "int32"}),
        Shape::Int64 | Shape::Uint(..) => json!({"type": "integer", "format": "int64"}),
        Shape::Float64 => json!({"type": "number", "format": "double"}),
        Shape::String(_) => json!({"type": "string"}),
        Shape::Bytes => json!({"type": "string", "format": "byte"}),
        Shape::Time => refer(META, "Time"),
        Shape::MicroTime => refer(META, "MicroTime"),
        Shape::Duration => refer(META, "Duration"),
        Shape::FieldsV1 => refer(META, "FieldsV1"),
        Shape::Quantity => json!({"$ref": format!("{SCHEMAS}{QUANTITY}")}),
        Shape::IntOrString => json!({"$ref": format!("{SCHEMAS}{INT_OR_STRING}")}),
        Shape::RawExtension => json!({"$ref": format!("{SCHEMAS}{RAW_EXTENSION}")}),
        Shape::Json => refer(APIEXTENSIONS, "JSON"),
        Shape::SchemaOr(_, SchemaOther::Bool) => refer(APIEXTENSIONS, "JSONSchemaPropsOrBool"),
        Shape::SchemaOr(_, SchemaOther::Array) => refer(APIEXTENSIONS, "JSONSchemaPropsOrArray"),
        Shape::SchemaOr(_, SchemaOther::StringArray) => refer(APIEXTENSIONS, "JSONSchemaPropsOrStringArray"),
        Shape::Struct(ty) => json!({"$ref": format!("{SCHEMAS}{}", ty.name)}),
        Shape::List(item) => json!({"type": "array", "items": self::shape(item)}),
        Shape::Map(item) => json!({"type": "object", "additionalProperties": self::shape(item)}),
    }
}
