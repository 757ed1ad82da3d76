//! `OpenAPI` v2 as protobuf, the only format that kubectl requests
//! (`application/com.github.proto-openapi.spec.v2@v1.0+protobuf`). The messages are those of gnostic,
//! `openapi.v2`.

use serde_json::{Map, Value};

/// Encodes a v2 document as protobuf.
#[must_use]
pub fn encode(swagger: &Value) -> Vec<u8> {
    let mut out = Message::default();
    out.text(1, &swagger["swagger"]);
    let mut info = Message::default();
    info.text(1, &swagger["info"]["title"]);
    info.text(2, &swagger["info"]["version"]);
    out.message(2, &info);
    let mut paths = Message::default();
    for (path, item) in fields(&swagger["paths"]) {
        paths.named(2, path, &path_item(item));
    }
    out.message(8, &paths);
    let mut definitions = Message::default();
    for (name, schema) in fields(&swagger["definitions"]) {
        definitions.named(1, name, &self::schema(schema));
    }
    out.message(9, &definitions);
    for requirement in items(&swagger["security"]) {
        let mut security = Message::default();
        for (name, _) in fields(requirement) {
            security.named(1, name, &Message::default());
        }
        out.message(12, &security);
    }
    let mut security = Message::default();
    for (name, definition) in fields(&swagger["securityDefinitions"]) {
        let mut key = Message::default();
        for (number, field) in [(1, "type"), (2, "name"), (3, "in"), (4, "description")] {
            key.text(number, &definition[field]);
        }
        let mut item = Message::default();
        item.message(2, &key);
        security.named(1, name, &item);
    }
    out.message(13, &security);
    out.0
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn path_item(item: &Value) -> Message {
    let mut out = Message::default();
    for (number, method) in
        [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (6, "options"), (7, "head"), (8, "patch")]
    {
        if let Some(operation) = item.get(method) {
            out.message(number, &self::operation(operation));
        }
    }
    out.parameters(9, &item["parameters"]);
    out
}

fn operation(operation: &Value) -> Message {
    let mut out = Message::default();
    out.texts(1, &operation["tags"]);
    out.text(3, &operation["description"]);
    out.text(5, &operation["operationId"]);
    out.texts(6, &operation["produces"]);
    out.texts(7, &operation["consumes"]);
    out.parameters(8, &operation["parameters"]);
    let mut responses = Message::default();
    for (code, response) in fields(&operation["responses"]) {
        let mut message = Message::default();
        message.text(1, &response["description"]);
        if let Some(schema) = response.get("schema") {
            let mut item = Message::default();
            item.message(1, &self::schema(schema));
            message.message(2, &item);
        }
        let mut value = Message::default();
        value.message(1, &message);
        responses.named(1, code, &value);
    }
    out.message(9, &responses);
    out.texts(10, &operation["schemes"]);
    out.extensions(13, operation);
    out
}

fn schema(schema: &Value) -> Message {
    let mut out = Message::default();
    for (number, field) in [(1, "$ref"), (2, "format"), (3, "title"), (4, "description")] {
        out.text(number, &schema[field]);
    }
    out.texts(19, &schema["required"]);
    for value in items(&schema["enum"]) {
        let mut any = Message::default();
        any.bytes(2, value.to_string().as_bytes());
        out.message(20, &any);
    }
    match schema.get("additionalProperties") {
        Some(Value::Bool(allowed)) => {
            let mut item = Message::default();
            item.tag(2, 0);
            item.varint(u64::from(*allowed));
            out.message(21, &item);
        }
        Some(other) => {
            let mut item = Message::default();
            item.message(1, &self::schema(other));
            out.message(21, &item);
        }
        None => {}
    }
    if schema["type"].is_string() {
        let mut item = Message::default();
        item.text(1, &schema["type"]);
        out.message(22, &item);
    }
    if let Some(inner) = schema.get("items") {
        let mut item = Message::default();
        item.message(1, &self::schema(inner));
        out.message(23, &item);
    }
    if let Some(properties) = schema.get("properties") {
        let mut item = Message::default();
        for (name, property) in fields(properties) {
            item.named(1, name, &self::schema(property));
        }
        out.message(25, &item);
    }
    out.extensions(31, schema);
    out
}

/// Builds a protobuf message.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, number: u64, wire: u64) {
        self.varint(number << 3 | wire);
    }

    fn bytes(&mut self, number: u64, bytes: &[u8]) {
        self.tag(number, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, number: u64, message: &Self) {
        self.bytes(number, &message.0);
    }

    /// A string, omitted if missing or empty.
    fn text(&mut self, number: u64, value: &Value) {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            self.bytes(number, text.as_bytes());
        }
    }

    fn texts(&mut self, number: u64, values: &Value) {
        for value in items(values) {
            self.text(number, value);
        }
    }

    fn flag(&mut self, number: u64, value: &Value) {
        if value == &Value::Bool(true) {
            self.tag(number, 0);
            self.varint(1);
        }
    }

    /// An entry of a map: gnostic encodes maps as lists of names and values.
    fn named(&mut self, number: u64, name: &str, value: &Self) {
        let mut entry = Self::default();
        entry.bytes(1, name.as_bytes());
        entry.message(2, value);
        self.message(number, &entry);
    }

    /// Extensions (`x-…`) are encoded as YAML; JSON is YAML.
    fn extensions(&mut self, number: u64, value: &Value) {
        for (name, value) in fields(value).filter(|(name, _)| name.starts_with("x-")) {
            let mut any = Self::default();
            any.bytes(2, value.to_string().as_bytes());
            self.named(number, name, &any);
        }
    }

    fn parameters(&mut self, number: u64, parameters: &Value) {
        for parameter in items(parameters).filter_map(Value::as_object) {
            let mut outer = Self::default();
            let place = parameter.get("in").and_then(Value::as_str).unwrap_or_default();
            if place == "body" {
                outer.message(1, &body_parameter(parameter));
            } else {
                let mut plain = Self::default();
                plain.message(if place == "path" { 4 } else { 3 }, &plain_parameter(parameter, place));
                outer.message(2, &plain);
            }
            let mut item = Self::default();
            item.message(1, &outer);
            self.message(number, &item);
        }
    }
}

fn get<'a>(object: &'a Map<String, Value>, key: &str) -> &'a Value {
    object.get(key).unwrap_or(&Value::Null)
}

fn body_parameter(parameter: &Map<String, Value>) -> Message {
    let mut out = Message::default();
    out.text(2, get(parameter, "name"));
    out.text(3, get(parameter, "in"));
    out.flag(4, get(parameter, "required"));
    out.message(5, &schema(get(parameter, "schema")));
    out
}

fn plain_parameter(parameter: &Map<String, Value>, place: &str) -> Message {
    let (ty, unique) = if place == "path" { (5, 19) } else { (6, 20) };
    let mut out = Message::default();
    out.flag(1, get(parameter, "required"));
    out.text(2, get(parameter, "in"));
    out.text(4, get(parameter, "name"));
    out.text(ty, get(parameter, "type"));
    out.flag(unique, get(parameter, "uniqueItems"));
    out
}
