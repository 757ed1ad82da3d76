//! `OpenAPI` v2, one document for all groups, converted from the v3 documents. kubectl before 1.29 requires it.

use serde_json::{Map, Value, json};

use super::{
    SCHEMAS,
    foreign::{self, Foreign},
};

/// Converts v3 documents to one v2 document, with those of other servers after this server's own. v2 as Kubernetes
/// publishes it has neither defaults, alternatives nor `nullable`.
#[must_use]
pub fn swagger<'a>(documents: impl IntoIterator<Item = &'a Value>, others: &[Foreign<'_>]) -> Value {
    let mut paths = Map::new();
    let mut definitions = Map::new();
    for document in documents {
        for (path, item) in fields(&document["paths"]) {
            paths.insert(path.clone(), path_item(item));
        }
        for (name, schema) in fields(&document["components"]["schemas"]) {
            let schema = definition(schema);
            match definitions.get_mut(name) {
                Some(known) => add_kinds(known, schema),
                None => {
                    definitions.insert(name.clone(), schema);
                }
            }
        }
    }
    foreign::merge(others, &mut paths, &mut definitions);
    paths.sort_keys();
    definitions.sort_keys();
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "definitions": definitions,
        "securityDefinitions": {"BearerToken": {"description": "Bearer Token authentication", "type": "apiKey",
            "name": "authorization", "in": "header"}},
        "security": [{"BearerToken": []}],
    })
}

pub(super) fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

pub(super) const KINDS: &str = "x-kubernetes-group-version-kind";
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// A definition. A custom resource that preserves unknown fields gets an empty one, without metadata: otherwise
/// kubectl would reject every other field.
pub(super) fn definition(schema: &Value) -> Value {
    if schema[PRESERVE] != true {
        return self::schema(schema);
    }
    let mut out = Map::new();
    out.insert("type".to_owned(), "object".into());
    let kept = [KINDS, "x-kubernetes-selectable-fields"];
    out.extend(
        fields(schema)
            .filter(|(key, _)| kept.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone())),
    );
    out.into()
}

/// A type that belongs to every group lists the kinds of all documents it came from.
fn add_kinds(known: &mut Value, schema: Value) {
    let Some(known) = known.get_mut(KINDS).and_then(Value::as_array_mut) else { return };
    let Value::Object(mut schema) = schema else { return };
    if let Some(Value::Array(kinds)) = schema.shift_remove(KINDS) {
        for kind in kinds {
            if !known.contains(&kind) {
                known.push(kind);
            }
        }
    }
}

fn schema(schema: &Value) -> Value {
    let Some(from) = schema.as_object() else { return schema.clone() };
    let is = |key: &str| from.get(key) == Some(&Value::Bool(true));
    let mut out = Map::new();
    for (key, value) in from {
        let value = match key.as_str() {
            "$ref" => reference(value),
            "items" => self::schema(value),
            "additionalProperties" if value.is_object() => self::schema(value),
            "properties" => Value::Object(
                fields(value).map(|(name, value)| (name.clone(), self::schema(value))).collect(),
            ),
            "default" | "oneOf" | "anyOf" | "not" | "nullable" => continue,
            "allOf" => match value.as_array().map(Vec::as_slice) {
                Some([only]) if only.get("$ref").is_some() => {
                    out.insert("$ref".to_owned(), reference(&only["$ref"]));
                    continue;
                }
                _ => continue,
            },
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    leave_open(&mut out, from);
    if from.contains_key("oneOf")
        && !from.contains_key("type")
        && !is(PRESERVE)
        && !is("x-kubernetes-int-or-string")
    {
        // Quantities and the int-or-strings of built-in kinds are strings here.
        out.insert("type".to_owned(), "string".into());
    }
    out.into()
}

/// Removes what v2 cannot express exactly; otherwise kubectl would reject valid objects.
fn leave_open(out: &mut Map<String, Value>, from: &Map<String, Value>) {
    let is = |key: &str| from.get(key) == Some(&Value::Bool(true));
    let (nullable, preserve) = (is("nullable"), is(PRESERVE));
    if nullable || preserve {
        out.retain(|key, _| !matches!(key.as_str(), "items" | "properties"));
    }
    let untyped = match from.get("type").and_then(Value::as_str) {
        Some("array") => !out.contains_key("items"),
        Some("object") => preserve,
        _ => false,
    };
    if nullable || untyped || is("x-kubernetes-int-or-string") {
        out.shift_remove("type");
    }
    // Nullable fields cannot be required.
    let can_be_null = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        from.get("properties").and_then(|all| all.get(name)).is_some_and(|one| one["nullable"] == true)
            // The type fields of an embedded object are not shown in v2 if it preserves unknown fields.
            || preserve && is("x-kubernetes-embedded-resource") && matches!(name, "kind" | "apiVersion")
    };
    let any_null = from.get("additionalProperties").is_some_and(|one| one["nullable"] == true);
    if let Some(Value::Array(required)) = out.get_mut("required") {
        required.retain(|name| !any_null && !can_be_null(name));
        if required.is_empty() {
            out.shift_remove("required");
        }
    }
}

fn reference(value: &Value) -> Value {
    match value.as_str().and_then(|text| text.strip_prefix(SCHEMAS)) {
        Some(name) => format!("#/definitions/{name}").into(),
        None => value.clone(),
    }
}

pub(super) fn path_item(item: &Value) -> Value {
    let mut out = Map::new();
    for (key, value) in fields(item) {
        let value = if key == "parameters" { parameters(value).into() } else { operation(value) };
        out.insert(key.clone(), value);
    }
    out.into()
}

fn parameters(parameters: &Value) -> Vec<Value> {
    let flat = |parameter: &Value| {
        let mut out = Map::new();
        for (key, value) in fields(parameter) {
            match key.as_str() {
                "schema" => out.extend(fields(value).map(|(key, value)| (key.clone(), value.clone()))),
                _ => {
                    out.insert(key.clone(), value.clone());
                }
            }
        }
        out.into()
    };
    parameters.as_array().into_iter().flatten().map(flat).collect()
}

fn operation(operation: &Value) -> Value {
    let mut out = Map::new();
    let mut parameters = self::parameters(&operation["parameters"]);
    for (key, value) in fields(operation) {
        match key.as_str() {
            "parameters" => {}
            "requestBody" => {
                let content = &value["content"];
                let media: Vec<&String> = fields(content).map(|(media, _)| media).collect();
                out.insert("consumes".to_owned(), json!(media));
                let mut body = json!({"in": "body", "name": "body"});
                if let Some(body) = body.as_object_mut() {
                    if value["required"] == true {
                        body.insert("required".to_owned(), true.into());
                    }
                    if let Some((_, first)) = fields(content).next() {
                        body.insert("schema".to_owned(), schema(&first["schema"]));
                    }
                }
                parameters.insert(0, body);
            }
            "responses" => {
                let media: Vec<&String> = fields(&value["200"]["content"]).map(|(media, _)| media).collect();
                out.insert("produces".to_owned(), json!(media));
                out.insert("schemes".to_owned(), json!(["https"]));
                out.insert("responses".to_owned(), responses(value));
            }
            _ => {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    if !parameters.is_empty() {
        out.insert("parameters".to_owned(), parameters.into());
    }
    out.into()
}

fn responses(responses: &Value) -> Value {
    let flat = |response: &Value| {
        let mut out = Map::new();
        out.insert("description".to_owned(), response["description"].clone());
        if let Some((_, first)) = fields(&response["content"]).next() {
            out.insert("schema".to_owned(), schema(&first["schema"]));
        }
        Value::Object(out)
    };
    Value::Object(fields(responses).map(|(code, response)| (code.clone(), flat(response))).collect())
}
