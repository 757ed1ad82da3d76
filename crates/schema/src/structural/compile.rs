//! Compiles the JSON of a schema. Repeated names, patterns and schemas are shared.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::{Additional, Limits, ListType, Pattern, Structural, Type, formats::Format, rules::Rules};
use crate::meta::{self, Malformed};

/// Maximum nesting of a schema; a decoded document is never deeper.
const DEPTH: usize = k1s_object::depth::MAX_DEPTH;

/// Compiles the schemas of a definition with shared parts.
#[derive(Debug, Default)]
pub(crate) struct Compiler {
    names: HashMap<Box<str>, Arc<str>>,
    patterns: HashMap<Box<str>, Arc<Pattern>>,
}

impl Compiler {
    pub(crate) fn compile(&mut self, schema: &Value) -> Structural {
        let mut compiled = self.node(schema, 0);
        compiled.prune_defaults(None);
        compiled.mark_rules();
        compiled
    }

    pub(crate) fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(shared) = self.names.get(name) {
            return shared.clone();
        }
        let shared: Arc<str> = name.into();
        self.names.insert(name.into(), shared.clone());
        shared
    }

    fn node(&mut self, schema: &Value, depth: usize) -> Structural {
        let empty = Map::new();
        let map = if depth < DEPTH { schema.as_object().unwrap_or(&empty) } else { &empty };
        let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
        let flag = |key: &str| map.get(key).and_then(Value::as_bool).unwrap_or_default();
        let kind = match text("type") {
            "string" => Type::String,
            "number" => Type::Number,
            "integer" => Type::Integer,
            "boolean" => Type::Boolean,
            "array" => Type::Array,
            "object" => Type::Object,
            _ => Type::Any,
        };
        let properties: BTreeMap<&str, &Value> = map
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, schema)| (name.as_str(), schema))
            .collect();
        let properties = properties
            .into_iter()
            .map(|(name, schema)| (self.name(name), self.node(schema, depth + 1)))
            .collect();
        let additional = match map.get("additionalProperties") {
            Some(Value::Bool(allowed)) => Additional::Bool(*allowed),
            Some(schema @ Value::Object(_)) => Additional::Schema(Arc::new(self.node(schema, depth + 1))),
            _ => Additional::Unsaid,
        };
        let items = map
            .get("items")
            .filter(|items| items.is_object())
            .map(|items| Arc::new(self.node(items, depth + 1)));
        let list_keys: Box<[Arc<str>]> = strings(map, "x-kubernetes-list-map-keys", self);
        let limits = self.limits(map, kind, flag("x-kubernetes-int-or-string"), depth);
        Structural {
            kind,
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            atomic_map: text("x-kubernetes-map-type") == "atomic",
            list_type: match text("x-kubernetes-list-type") {
                "atomic" => Some(ListType::Atomic),
                "set" => Some(ListType::Set),
                "map" => Some(ListType::Map),
                _ => None,
            },
            list_keys: (!list_keys.is_empty()).then_some(list_keys),
            properties,
            additional,
            items,
            default: map.get("default").filter(|value| !value.is_null()).cloned().map(Box::new),
            limits,
            rules: Rules::read(map, schema),
        }
    }

    fn limits(
        &mut self,
        map: &Map<String, Value>,
        kind: Type,
        int_or_string: bool,
        depth: usize,
    ) -> Option<Box<Limits>> {
        const KEYS: [&str; 20] = [
            "format",
            "minimum",
            "maximum",
            "multipleOf",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "uniqueItems",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "pattern",
            "enum",
            "required",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
        ];
        if !KEYS.iter().any(|key| map.contains_key(*key)) {
            return None;
        }
        let number = |key: &str| map.get(key).and_then(Value::as_f64);
        let count = |key: &str| map.get(key).and_then(Value::as_i64);
        let flag = |key: &str| map.get(key).and_then(Value::as_bool).unwrap_or_default();
        let format = map.get("format").and_then(Value::as_str).unwrap_or_default();
        let format = match (kind, int_or_string) {
            // Two types: formats without a type-specific meaning, and strings are validated.
            (_, true) | (Type::Any | Type::String, false) => Format::of_string(format),
            (Type::Integer, false) => Format::of_integer(format),
            (Type::Number, false) => Format::of_number(format),
            _ => None,
        };
        let pattern = map.get("pattern").and_then(Value::as_str).filter(|pattern| !pattern.is_empty());
        Some(Box::new(Limits {
            format,
            minimum: number("minimum"),
            maximum: number("maximum"),
            multiple_of: number("multipleOf"),
            exclusive_minimum: flag("exclusiveMinimum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            unique_items: flag("uniqueItems"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            pattern: pattern.map(|pattern| self.pattern(pattern)),
            values: map.get("enum").and_then(Value::as_array).cloned().unwrap_or_default().into(),
            known_values: std::sync::OnceLock::new(),
            required: strings(map, "required", self),
            all_of: self.branches(map, "allOf", depth),
            any_of: self.branches(map, "anyOf", depth),
            one_of: self.branches(map, "oneOf", depth),
            not: map.get("not").filter(|not| not.is_object()).map(|not| Box::new(self.node(not, depth + 1))),
        }))
    }

    fn branches(&mut self, map: &Map<String, Value>, key: &str, depth: usize) -> Box<[Structural]> {
        let branches = map.get(key).and_then(Value::as_array);
        branches.into_iter().flatten().map(|branch| self.node(branch, depth + 1)).collect()
    }

    fn pattern(&mut self, source: &str) -> Arc<Pattern> {
        if let Some(shared) = self.patterns.get(source) {
            return shared.clone();
        }
        let shared = Arc::new(Pattern::new(source));
        self.patterns.insert(source.into(), shared.clone());
        shared
    }
}

fn strings(map: &Map<String, Value>, key: &str, compiler: &mut Compiler) -> Box<[Arc<str>]> {
    let list = map.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(|text| compiler.name(text)).collect()
}

/// Where a schema is below the `metadata` of an embedded object.
enum Place<'a> {
    Metadata,
    Field(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>),
}

impl Place<'_> {
    /// The metadata with this value at the place, and nothing else.
    fn around(&self, value: Value) -> Value {
        match self {
            Place::Metadata => value,
            Place::Field(above, name) => {
                above.around(Value::Object(Map::from_iter([((*name).to_owned(), value)])))
            }
            Place::Item(above) => above.around(Value::Array(vec![value])),
        }
    }

    /// The value at the place in metadata.
    fn within(&self, metadata: Value) -> Option<Value> {
        match self {
            Place::Metadata => Some(metadata),
            Place::Field(above, name) => above.within(metadata)?.as_object_mut()?.shift_remove(*name),
            Place::Item(above) => above.within(metadata)?.as_array_mut()?.pop(),
        }
    }
}

impl Structural {
    /// Prunes the defaults themselves. `place`: the schema is that of embedded metadata, or of a part of it, whose defaults are
    /// dropped if Kubernetes does not know them.
    fn prune_defaults(&mut self, place: Option<&Place<'_>>) {
        if let Some(mut default) = self.default.take() {
            self.default = match place {
                None => {
                    self.prune_default(&mut default);
                    Some(default)
                }
                // What the schema does not specify of metadata stays.
                Some(place) => {
                    let mut metadata = place.around(*default);
                    // What is malformed is dropped, so that there is no error.
                    let _ = meta::coerce(&mut metadata, Malformed::Drop, &mut Vec::new());
                    place.within(metadata).map(Box::new)
                }
            };
        }
        let embedded = self.embedded;
        for (name, property) in &mut self.properties {
            match place {
                None if embedded && &**name == "metadata" => property.prune_defaults(Some(&Place::Metadata)),
                None => property.prune_defaults(None),
                Some(place) => property.prune_defaults(Some(&Place::Field(place, name))),
            }
        }
        if let Additional::Schema(schema) = &mut self.additional
            && let Some(schema) = Arc::get_mut(schema)
        {
            match place {
                None => schema.prune_defaults(None),
                Some(place) => schema.prune_defaults(Some(&Place::Field(place, "*"))),
            }
        }
        if let Some(items) = self.items.as_mut().and_then(Arc::get_mut) {
            match place {
                None => items.prune_defaults(None),
                Some(place) => items.prune_defaults(Some(&Place::Item(place))),
            }
        }
    }
}
