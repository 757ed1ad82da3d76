//! What other servers publish, as a part of the one document of version 2.
//!
//! Nothing in it is trusted: a single schema that kubectl's parser (`k8s.io/kube-openapi/pkg/util/proto`) does not accept would
//! make the whole document useless. What is not known to be acceptable is left out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::swagger::{KINDS, definition, fields, path_item};

/// What another server publishes about the group version that it serves.
#[derive(Debug, Clone, Copy)]
pub struct Foreign<'a> {
    /// The group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// Its v3 document.
    pub document: &'a Value,
}

/// Where definitions are in version 2.
const DEFINITIONS: &str = "#/definitions/";
/// The methods of a path.
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];
/// The types of fields that are neither objects nor lists.
const PRIMITIVES: [&str; 4] = ["string", "number", "integer", "boolean"];

/// Adds the paths of the group versions, and the definitions that they need. Definitions that are known already stay as they are;
/// those that two servers describe differently are renamed.
pub(super) fn merge(
    others: &[Foreign<'_>],
    paths: &mut Map<String, Value>,
    definitions: &mut Map<String, Value>,
) {
    let mut added = Map::new();
    for other in others {
        let (mut items, mut schemas) = other.cleaned(definitions);
        let renamed = renames(&schemas, &added);
        items.values_mut().chain(schemas.values_mut()).for_each(|value| rename(value, &renamed));
        for (path, item) in items {
            paths.entry(path).or_insert(item);
        }
        for (name, schema) in schemas {
            added.entry(renamed.get(&name).cloned().unwrap_or(name)).or_insert(schema);
        }
    }
    definitions.extend(added);
}

/// New names for the definitions that another server describes differently, and for those that lead to them.
fn renames(schemas: &BTreeMap<String, Value>, added: &Map<String, Value>) -> BTreeMap<String, String> {
    let differs = |(name, schema): &(&String, &Value)| added.get(*name).is_some_and(|known| known != *schema);
    let mut found: BTreeSet<&str> = schemas.iter().filter(differs).map(|(name, _)| name.as_str()).collect();
    loop {
        let shared =
            schemas.iter().filter(|(name, _)| added.contains_key(*name) && !found.contains(name.as_str()));
        let more: Vec<&str> =
            shared.filter(|(_, schema)| leads_to(schema, &found)).map(|(name, _)| name.as_str()).collect();
        if more.is_empty() {
            break;
        }
        found.extend(more);
    }
    let is_taken = |name: &String| added.contains_key(name) || schemas.contains_key(name);
    let renamed = |name: &str| (2..).map(|n| format!("{name}_v{n}")).find(|new| !is_taken(new));
    found.into_iter().filter_map(|name| Some((name.to_owned(), renamed(name)?))).collect()
}

/// The name of the definition that is referenced, if this is a reference.
fn referenced<'a>(key: &str, value: &'a Value) -> Option<&'a str> {
    value.as_str().filter(|_| key == "$ref")?.strip_prefix(DEFINITIONS)
}

/// Whether one of the definitions is referenced.
fn leads_to(value: &Value, names: &BTreeSet<&str>) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| leads_to(item, names)),
        Value::Object(object) => object.iter().any(|(key, value)| match referenced(key, value) {
            Some(name) => names.contains(name),
            None => leads_to(value, names),
        }),
        _ => false,
    }
}

/// Changes references to definitions with new names.
fn rename(value: &mut Value, renamed: &BTreeMap<String, String>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, renamed)),
        Value::Object(object) => {
            for (key, value) in object {
                match referenced(key, value).and_then(|name| renamed.get(name)) {
                    Some(new) => *value = format!("{DEFINITIONS}{new}").into(),
                    None => rename(value, renamed),
                }
            }
        }
        _ => {}
    }
}

type Cleaned = (BTreeMap<String, Value>, BTreeMap<String, Value>);

impl Foreign<'_> {
    /// The paths of the group version, and the definitions that they need beside those that are known.
    fn cleaned(&self, known: &Map<String, Value>) -> Cleaned {
        let mut cleaner = Cleaner { of: self, wanted: Vec::new() };
        let prefix = format!("/apis/{}/{}/", self.group, self.version);
        let own = fields(&self.document["paths"]).filter(|(path, _)| path.starts_with(&prefix));
        let paths = own.map(|(path, item)| (path.clone(), cleaner.path_item(&path_item(item)))).collect();
        let mut schemas = BTreeMap::new();
        while let Some(name) = cleaner.wanted.pop() {
            if known.contains_key(&name) || schemas.contains_key(&name) {
                continue;
            }
            // A reference to nothing would make the whole document useless to kubectl.
            let schema = match self.document["components"]["schemas"].get(&name) {
                Some(schema) => cleaner.schema(&definition(schema)),
                None => json!({"type": "object"}),
            };
            schemas.insert(name, schema);
        }
        (paths, schemas)
    }

    /// Whether a kind is one of the group version.
    fn has(&self, kind: &Value) -> bool {
        kind["group"] == self.group && kind["version"] == self.version && kind["kind"].is_string()
    }
}

/// Copies what is acceptable of a document in version 2, and collects the names of the definitions that it references.
struct Cleaner<'a> {
    of: &'a Foreign<'a>,
    wanted: Vec<String>,
}

impl Cleaner<'_> {
    fn path_item(&mut self, item: &Value) -> Value {
        let mut out = Map::new();
        for (key, value) in fields(item) {
            if key == "parameters" {
                out.insert(key.clone(), self.parameters(value));
            } else if METHODS.contains(&key.as_str()) && value.get("responses").is_some() {
                out.insert(key.clone(), self.operation(value));
            }
        }
        out.into()
    }

    fn operation(&mut self, operation: &Value) -> Value {
        let mut out = Map::new();
        for (key, value) in fields(operation) {
            let value = match key.as_str() {
                "description" | "operationId" | "summary" => Some(value.clone()).filter(Value::is_string),
                "deprecated" => Some(value.clone()).filter(Value::is_boolean),
                "tags" | "consumes" | "produces" | "schemes" => texts(value),
                "parameters" => Some(self.parameters(value)),
                "responses" => Some(self.responses(value)),
                KINDS => Some(value.clone()).filter(|kind| self.of.has(kind)),
                _ => Some(value.clone()).filter(|_| key.starts_with("x-")),
            };
            out.extend(value.map(|value| (key.clone(), value)));
        }
        out.into()
    }

    fn responses(&mut self, responses: &Value) -> Value {
        let is_code = |code: &str| {
            code == "default" || code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit())
        };
        let codes = fields(responses).filter(|(code, _)| is_code(code));
        let cleaned = codes.map(|(code, response)| {
            let mut out = Map::new();
            out.insert("description".to_owned(), response["description"].as_str().unwrap_or_default().into());
            if let Some(schema) = response.get("schema") {
                out.insert("schema".to_owned(), self.schema(schema));
            }
            (code.clone(), out.into())
        });
        Value::Object(cleaned.collect())
    }

    /// Parameters without a name, or in a place that version 2 does not have, are left out.
    fn parameters(&mut self, parameters: &Value) -> Value {
        let cleaned = parameters.as_array().into_iter().flatten().filter_map(|parameter| {
            let (name, place) = (parameter["name"].as_str()?, parameter["in"].as_str()?);
            let mut out = Map::new();
            out.insert("name".to_owned(), name.into());
            out.insert("in".to_owned(), place.into());
            if let Some(text) = parameter["description"].as_str() {
                out.insert("description".to_owned(), text.into());
            }
            if place == "path" || parameter["required"] == true {
                out.insert("required".to_owned(), true.into());
            }
            match place {
                "body" => {
                    out.insert("schema".to_owned(), self.schema(&parameter["schema"]));
                }
                "path" | "query" | "header" => {
                    let ty = parameter["type"].as_str().filter(|ty| PRIMITIVES.contains(ty));
                    out.insert("type".to_owned(), ty.unwrap_or("string").into());
                    if parameter["uniqueItems"] == true {
                        out.insert("uniqueItems".to_owned(), true.into());
                    }
                }
                _ => return None,
            }
            Some(Value::Object(out))
        });
        Value::Array(cleaned.collect())
    }

    /// A schema of one known type, or of any.
    fn schema(&mut self, schema: &Value) -> Value {
        let mut out = Map::new();
        let reference = schema.get("$ref").and_then(|value| referenced("$ref", value));
        if let Some(name) = reference.filter(|name| !name.is_empty()) {
            // With a type or properties, kubectl would not accept it.
            self.wanted.push(name.to_owned());
            if let Some(text) = schema["description"].as_str() {
                out.insert("description".to_owned(), text.into());
            }
            out.insert("$ref".to_owned(), format!("{DEFINITIONS}{name}").into());
            return out.into();
        }
        let ty = schema["type"].as_str().filter(|ty| match *ty {
            "array" => schema["items"].is_object(),
            "object" => true,
            ty => PRIMITIVES.contains(&ty),
        });
        // Properties without a type are those of an object, too.
        let is_object = ty == Some("object") || schema.get("type").is_none();
        for (key, value) in fields(schema) {
            let value = match key.as_str() {
                "type" => ty.map(Value::from),
                "description" | "title" | "format" | "pattern" => {
                    Some(value.clone()).filter(Value::is_string)
                }
                "required" => texts(value).filter(|names| names != &json!([])),
                "enum" => Some(value.clone()).filter(Value::is_array),
                "maximum" | "minimum" | "multipleOf" => Some(value.clone()).filter(Value::is_number),
                "exclusiveMaximum" | "exclusiveMinimum" | "uniqueItems" | "readOnly" => {
                    Some(value.clone()).filter(Value::is_boolean)
                }
                "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties" => {
                    Some(value.clone()).filter(Value::is_u64)
                }
                "items" if ty == Some("array") => Some(self.schema(value)),
                "properties" if is_object && value.is_object() => Some(Value::Object(
                    fields(value).map(|(name, value)| (name.clone(), self.schema(value))).collect(),
                )),
                "additionalProperties" if is_object => match value {
                    Value::Bool(_) => Some(value.clone()),
                    _ => Some(self.schema(value)),
                },
                KINDS => {
                    let kinds = value.as_array().into_iter().flatten().filter(|kind| self.of.has(kind));
                    let kinds: Vec<Value> = kinds.cloned().collect();
                    (!kinds.is_empty()).then(|| kinds.into())
                }
                _ => Some(value.clone()).filter(|_| key.starts_with("x-")),
            };
            out.extend(value.map(|value| (key.clone(), value)));
        }
        out.into()
    }
}

/// The strings of a list; `None`: it is no list.
fn texts(value: &Value) -> Option<Value> {
    let items = value.as_array()?.iter().filter(|item| item.is_string());
    Some(items.cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::{super::SCHEMAS, *};
    use crate::openapi::v2;

    #[test]
    fn a_foreign_document_speaks_of_its_group_version_alone() {
        let kind = |group: &str, kind: &str| json!([{"group": group, "version": "v1", "kind": kind}]);
        let schema = |name: &str| json!({"$ref": format!("{SCHEMAS}{name}")});
        let responses = |name: &str| json!({"200": {"description": "OK", "content": {"application/json": {"schema": schema(name)}}}});
        let own = json!({
            "paths": {"/apis/apps/v1/x": {"get": {"responses": responses("own.Meta")}}},
            "components": {"schemas": {"own.Meta": {"type": "object"}}},
        });
        let foreign = json!({
            "paths": {
                "/apis/tides.example/v1/tides": {"get": {
                    "x-kubernetes-group-version-kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
                    "responses": responses("tides.Tide")}},
                "/apis/apps/v1/x": {"get": {"description": "taken over"}},
                "/apis/tides.example/v2/tides": {"get": {}},
            },
            "components": {"schemas": {
                "tides.Tide": {"type": "object", KINDS: [
                    {"group": "apps", "version": "v1", "kind": "Deployment"}, kind("tides.example", "Tide")[0]],
                    "properties": {"metadata": schema("own.Meta"), "next": schema("tides.Tide"), "gone": schema("tides.Gone"),
                        "elsewhere": {"$ref": "https://tides.example/schema"}}},
                "own.Meta": {"type": "string"},
                "tides.Unused": {"type": "object"},
            }},
        });
        let foreign = Foreign { group: "tides.example", version: "v1", document: &foreign };
        let swagger = v2([&own], &[foreign]);
        let names = |of: &str| fields(&swagger[of]).map(|(name, _)| name.as_str()).collect::<Vec<_>>();
        assert_eq!(names("paths"), ["/apis/apps/v1/x", "/apis/tides.example/v1/tides"]);
        assert_eq!(names("definitions"), ["own.Meta", "tides.Gone", "tides.Tide"]);
        assert_eq!(swagger["paths"]["/apis/apps/v1/x"]["get"]["description"], Value::Null);
        let get = &swagger["paths"]["/apis/tides.example/v1/tides"]["get"];
        assert_eq!(get.get(KINDS), None);
        assert_eq!(get["responses"]["200"]["schema"], json!({"$ref": "#/definitions/tides.Tide"}));
        let tide = &swagger["definitions"]["tides.Tide"];
        assert_eq!(tide[KINDS], kind("tides.example", "Tide"));
        assert_eq!(tide["properties"]["elsewhere"], json!({}));
        assert_eq!(swagger["definitions"]["own.Meta"], json!({"type": "object"}));
    }

    /// What kubectl's parser of version 2 accepts, and what the type of a document needs.
    fn check(swagger: &Value) -> Result<(), String> {
        for (name, schema) in fields(&swagger["definitions"]) {
            check_schema(schema, swagger).map_err(|why| format!("{name}: {why}"))?;
        }
        for (path, item) in fields(&swagger["paths"]) {
            check_path(item, swagger).map_err(|why| format!("{path}: {why}"))?;
        }
        Ok(())
    }

    fn check_path(item: &Value, swagger: &Value) -> Result<(), String> {
        for (method, operation) in item.as_object().ok_or("a path is no object")? {
            if method == "parameters" {
                check_parameters(operation, swagger)?;
                continue;
            }
            if !METHODS.contains(&method.as_str()) {
                return Err(format!("unknown method {method}"));
            }
            if let Some(parameters) = operation.get("parameters") {
                check_parameters(parameters, swagger)?;
            }
            for (code, response) in operation["responses"].as_object().ok_or("no responses")? {
                if !response["description"].is_string() || code.len() != 3 {
                    return Err(format!("bad response {code}: {response}"));
                }
                response.get("schema").map_or(Ok(()), |schema| check_schema(schema, swagger))?;
            }
        }
        Ok(())
    }

    fn check_parameters(parameters: &Value, swagger: &Value) -> Result<(), String> {
        for parameter in parameters.as_array().ok_or("parameters are no list")? {
            match parameter["in"].as_str() {
                Some("body") => check_schema(&parameter["schema"], swagger)?,
                Some("path" | "query" | "header") if parameter["name"].is_string() => {
                    let ty = parameter["type"].as_str().unwrap_or_default();
                    PRIMITIVES.contains(&ty).then_some(()).ok_or("a parameter without a type")?;
                }
                _ => return Err(format!("bad parameter {parameter}")),
            }
        }
        Ok(())
    }

    /// The rules of `ParseSchema` in `k8s.io/kube-openapi/pkg/util/proto/document.go`.
    fn check_schema(schema: &Value, swagger: &Value) -> Result<(), String> {
        let fail = |why: &str| Err(format!("{why}: {schema}"));
        let Some(object) = schema.as_object() else { return fail("no object") };
        if let Some(reference) = object.get("$ref") {
            if object.contains_key("type") || object.contains_key("properties") {
                return fail("a reference with a type");
            }
            let name =
                reference.as_str().and_then(|text| text.strip_prefix(DEFINITIONS)).ok_or("bad reference")?;
            return if swagger["definitions"].get(name).is_some() { Ok(()) } else { fail("unknown model") };
        }
        for inner in ["items", "additionalProperties"].map(|key| object.get(key)).into_iter().flatten() {
            if !inner.is_boolean() {
                check_schema(inner, swagger)?;
            }
        }
        if let Some(properties) = object.get("properties") {
            for (_, property) in properties.as_object().ok_or("properties are no object")? {
                check_schema(property, swagger)?;
            }
        }
        if object.get("required").is_some_and(|names| !names.is_array()) {
            return fail("required is no list");
        }
        match object.get("type").map(|ty| ty.as_str().unwrap_or_default()) {
            None | Some("object") => Ok(()),
            Some("array") if object.get("items").is_some_and(Value::is_object) => Ok(()),
            Some(ty) if PRIMITIVES.contains(&ty) => Ok(()),
            Some(_) => fail("unknown type"),
        }
    }

    /// A document with everything that is read of one.
    fn tides() -> Value {
        let schema = |name: &str| json!({"$ref": format!("{SCHEMAS}{name}")});
        let content = json!({"application/json": {"schema": schema("tides.Tide")}});
        json!({
            "paths": {"/apis/tides.example/v1/tides/{name}": {
                "parameters": [{"name": "name", "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}}],
                "put": {
                    "tags": ["tides"], "description": "Replaces.", "operationId": "replaceTide", "deprecated": false,
                    KINDS: {"group": "tides.example", "version": "v1", "kind": "Tide"},
                    "parameters": [{"name": "force", "in": "query", "description": "Whether.", "schema": {"type": "boolean"}}],
                    "requestBody": {"required": true, "content": content},
                    "responses": {"200": {"description": "OK", "content": content}},
                },
            }},
            "components": {"schemas": {
                "tides.Tide": {
                    "type": "object", "description": "A tide.", "required": ["spec"],
                    KINDS: [{"group": "tides.example", "version": "v1", "kind": "Tide"}],
                    "properties": {
                        "spec": {"allOf": [schema("tides.Spec")], "default": {}},
                        "heights": {"type": "array", "items": {"type": "number", "format": "double", "minimum": 0}},
                        "labels": {"type": "object", "additionalProperties": {"type": "string", "enum": ["a", "b"]}},
                    },
                },
                "tides.Spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }},
        })
    }

    fn alone(document: &Value) -> Value {
        v2([], &[Foreign { group: "tides.example", version: "v1", document }])
    }

    /// All places in a value, as JSON pointers.
    fn places(value: &Value, at: &str, found: &mut Vec<String>) {
        found.push(at.to_owned());
        let escape = |name: &str| name.replace('~', "~0").replace('/', "~1");
        match value {
            Value::Object(object) => {
                object.iter().for_each(|(key, value)| places(value, &format!("{at}/{}", escape(key)), found));
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(n, value)| places(value, &format!("{at}/{n}"), found));
            }
            _ => {}
        }
    }

    #[test]
    fn no_mistake_of_another_server_makes_the_document_useless() {
        let good = tides();
        let swagger = alone(&good);
        check(&swagger).unwrap();
        let put = &swagger["paths"]["/apis/tides.example/v1/tides/{name}"]["put"];
        assert_eq!(put["parameters"][0]["schema"]["$ref"], "#/definitions/tides.Tide");
        assert_eq!((&put[KINDS]["kind"], &put["deprecated"]), (&json!("Tide"), &json!(false)));
        let tide = &swagger["definitions"]["tides.Tide"];
        assert_eq!(tide["properties"]["spec"], json!({"$ref": "#/definitions/tides.Spec"}));
        assert_eq!(
            tide["properties"]["heights"],
            good["components"]["schemas"]["tides.Tide"]["properties"]["heights"]
        );

        let bad = [
            json!(null),
            json!(true),
            json!(-1.5),
            json!("file"),
            json!("null"),
            json!(""),
            json!([]),
            json!({}),
            json!([null, 1]),
            json!(["string", "null"]),
            json!({"type": "file"}),
            json!({"type": ["object", "null"]}),
            json!({"type": "array"}),
            json!({"type": "array", "items": [{"type": "string"}]}),
            json!({"type": "object", "properties": []}),
            json!({"type": "object", "properties": {"a": null, "b": {"type": "any"}}}),
            json!({"$ref": "#/components/schemas/"}),
            json!({"$ref": "#/components/schemas/tides.Tide", "type": "object", "properties": {"a": {}}}),
            json!({"$ref": {"$ref": 1}}),
            json!({"$ref": "#/components/parameters/p"}),
            json!([{"in": "cookie", "name": "a"}]),
            json!({"2xx": null, "200": {"content": []}}),
            json!({"trace": {"responses": {}}, "get": [], "summary": "s"}),
        ];
        let mut all = Vec::new();
        places(&good, "", &mut all);
        assert!(all.len() > 50, "{}", all.len());
        for place in &all {
            for bad in &bad {
                let mut document = good.clone();
                *document.pointer_mut(place).unwrap() = bad.clone();
                check(&alone(&document)).unwrap_or_else(|why| panic!("{place} = {bad}: {why}"));
            }
        }
    }

    #[test]
    fn definitions_of_one_name_that_differ_are_renamed() {
        let document = |group: &str, leaf: &str| {
            let schema = |name: &str| json!({"$ref": format!("{SCHEMAS}{name}")});
            let responses = json!({"200": {"description": "OK", "content": {"application/json": {"schema": schema("Root")}}}});
            json!({
                "paths": {format!("/apis/{group}/v1/x"): {"get": {"responses": responses}}},
                "components": {"schemas": {
                    "Root": {"type": "object", "properties": {"leaf": schema("Leaf"), "same": schema("Same")}},
                    "Leaf": {"type": leaf},
                    "Same": {"type": "boolean"},
                }},
            })
        };
        let (a, b) = (document("a.example", "string"), document("b.example", "integer"));
        let foreign = |group, document| Foreign { group, version: "v1", document };
        let swagger = v2([], &[foreign("a.example", &a), foreign("b.example", &b)]);
        check(&swagger).unwrap();
        let of = |group: &str| {
            let schema =
                &swagger["paths"][format!("/apis/{group}/v1/x")]["get"]["responses"]["200"]["schema"];
            let name = |reference: &Value| {
                reference["$ref"].as_str().unwrap().strip_prefix(DEFINITIONS).unwrap().to_owned()
            };
            let root = &swagger["definitions"][name(schema)]["properties"];
            (name(schema), swagger["definitions"][name(&root["leaf"])]["type"].clone(), name(&root["same"]))
        };
        assert_eq!(of("a.example"), ("Root".into(), "string".into(), "Same".into()));
        assert_eq!(of("b.example"), ("Root_v2".into(), "integer".into(), "Same".into()));
        // The same documents share their definitions.
        let again = document("b.example", "string");
        let swagger = v2([], &[foreign("a.example", &a), foreign("b.example", &again)]);
        assert_eq!(swagger["definitions"].as_object().unwrap().len(), 3);
    }
}
