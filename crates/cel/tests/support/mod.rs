//! Structural schemas as declared types, and values as upstream prints them.

use std::fmt::Write as _;

use k1s_cel::{
    DeclType, Field, ListType, ObjectType, Type, Value, escape,
    value::{Key, Map, Timestamp},
};
use serde_json::Value as Json;

/// The most bytes of a request.
const REQUEST: u64 = 3 * 1024 * 1024;

/// A declared type of a schema, named as upstream names types below `selfType`.
pub(crate) fn declared(schema: &Json, root: bool) -> DeclType {
    of(schema, "selfType", root).expect("a schema with a type")
}

fn of(schema: &Json, name: &str, root: bool) -> Option<DeclType> {
    let number = |key: &str| schema.get(key).and_then(Json::as_u64);
    let decl = if schema["x-kubernetes-int-or-string"] == true {
        DeclType::int_or_string(number("maxLength").map_or(REQUEST - 2, |max| max * 4))
    } else {
        match schema["type"].as_str()? {
            "boolean" => DeclType::bool(),
            "integer" => DeclType::int(),
            "number" => DeclType::double(),
            "string" => string(schema),
            "array" => {
                let items = of(schema.get("items")?, &format!("{name}.@idx"), false)?;
                let most = number("maxItems").unwrap_or((REQUEST - 2) / (items.min_serialized_size() + 1));
                let list_type = match schema["x-kubernetes-list-type"].as_str() {
                    Some("set") => ListType::Set,
                    Some("map") => {
                        let keys = schema["x-kubernetes-list-map-keys"].as_array().expect("keys");
                        ListType::Map(keys.iter().map(|key| key.as_str().expect("a key").into()).collect())
                    }
                    _ => ListType::Atomic,
                };
                DeclType::list(items, most, list_type)
            }
            _ if schema["additionalProperties"].is_object() => {
                let values = of(&schema["additionalProperties"], &format!("{name}.@elem"), false)?;
                let most =
                    number("maxProperties").unwrap_or((REQUEST - 2) / (values.min_serialized_size() + 6));
                DeclType::map(values, most)
            }
            _ => object(schema, name, root),
        }
    };
    Some(if schema["nullable"] == true { decl.nullable() } else { decl })
}

fn string(schema: &Json) -> DeclType {
    let max = schema.get("maxLength").and_then(Json::as_u64);
    match schema["format"].as_str() {
        Some("byte") => DeclType::bytes(max.unwrap_or(REQUEST - 2)),
        Some("duration") => DeclType::duration(),
        Some("date") => DeclType::date(),
        Some("date-time") => DeclType::date_time(),
        _ => {
            let longest = schema["enum"].as_array().map(|values| {
                values.iter().filter_map(Json::as_str).map(|value| value.len() as u64).max().unwrap_or(0)
            });
            DeclType::string(max.map(|max| max * 4).or(longest).unwrap_or(REQUEST - 2))
        }
    }
}

fn object(schema: &Json, name: &str, root: bool) -> DeclType {
    let mut properties = schema["properties"].as_object().cloned().unwrap_or_default();
    if root {
        let string = serde_json::json!({"type": "string"});
        properties.insert("apiVersion".into(), string.clone());
        properties.insert("kind".into(), string.clone());
        let names = serde_json::json!({"name": string, "generateName": string});
        properties.insert("metadata".into(), serde_json::json!({"type": "object", "properties": names}));
    }
    let required: Vec<&str> = schema["required"]
        .as_array()
        .map(|names| names.iter().filter_map(Json::as_str).collect())
        .unwrap_or_default();
    let mut fields = Vec::new();
    let mut least = 2;
    for (property, schema) in &properties {
        let escaped = escape(property);
        let path = format!("{name}.{}", escaped.as_deref().unwrap_or_default());
        let Some(decl) = of(schema, &path, false) else { continue };
        if required.contains(&property.as_str()) && schema.get("default").is_none() {
            least += property.len() as u64 + decl.min_serialized_size() + 4;
        }
        let Some(escaped) = escaped else { continue };
        fields.push(Field { name: escaped.into(), json: property.as_str().into(), decl });
    }
    DeclType::object(ObjectType::new(name, fields), least)
}

/// A type as upstream's `String` gives it.
pub(crate) fn type_text(ty: &Type) -> String {
    match ty {
        Type::List(items) => format!("list({})", type_text(items)),
        Type::Map(map) => format!("map({}, {})", type_text(&map.0), type_text(&map.1)),
        Type::Type(Some(of)) => format!("type({})", type_text(of)),
        Type::Opaque(opaque) if !opaque.1.is_empty() => {
            let params: Vec<_> = opaque.1.iter().map(type_text).collect();
            format!("{}({})", opaque.0, params.join(", "))
        }
        other => other.runtime_name().to_owned(),
    }
}

/// A value as upstream's `types.Format` gives it.
pub(crate) fn value_text(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => format!("{value}u"),
        Value::Double(value) if value.is_nan() => "double(\"NaN\")".to_owned(),
        Value::Double(value) if *value == f64::INFINITY => "double(\"Infinity\")".to_owned(),
        Value::Double(value) if *value == f64::NEG_INFINITY => "double(\"-Infinity\")".to_owned(),
        Value::Double(value) if value.fract() == 0.0 => format!("{value:.1}"),
        Value::Double(value) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Bytes(bytes) => {
            let mut out = "b\"".to_owned();
            bytes.iter().for_each(|byte| {
                let _ = write!(out, "\\{byte:03o}");
            });
            out + "\""
        }
        Value::Duration(nanos) => {
            let seconds = (nanos / 1_000_000_000) as f64 + (nanos % 1_000_000_000) as f64 / 1e9;
            format!("duration(\"{seconds}s\")")
        }
        Value::Timestamp(moment) => {
            // In UTC, whichever zone it was written with.
            let utc = Timestamp::new(moment.seconds(), moment.nanos()).expect("a moment within the range");
            format!("timestamp(\"{}\")", utc.to_text())
        }
        Value::List(list) => {
            let items: Vec<_> = list
                .iter()
                .map(|item| item.map_or_else(|error| error.to_string(), |item| value_text(&item)))
                .collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => map_text(map),
        Value::Object(object) => {
            let fields: Vec<_> =
                object.fields().map(|(name, value)| format!("{name}: {}", value_text(value))).collect();
            format!("{}{{{}}}", object.type_name(), fields.join(", "))
        }
        Value::Type(name) => name.to_string(),
        Value::Optional(Some(value)) => format!("optional.of({})", value_text(value)),
        Value::Optional(None) => "optional.none()".to_owned(),
        other => format!("<{}>", other.type_name()),
    }
}

fn map_text(map: &Map<'_>) -> String {
    let mut entries: Vec<String> = map
        .keys()
        .iter()
        .map(|key: &Key<'_>| {
            let value = map.get(key).map_or_else(
                || "-".to_owned(),
                |value| value.map_or_else(|error| error.to_string(), |value| value_text(&value)),
            );
            format!("{}: {value}", value_text(&key.to_value()))
        })
        .collect();
    entries.sort();
    format!("{{{}}}", entries.join(", "))
}

fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c => out.push(c),
        }
    }
    out + "\""
}
