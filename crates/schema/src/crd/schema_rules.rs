//! Validation of every schema in a definition: unsupported keywords, and extensions that depend on each other.

use std::collections::HashSet;

use k1s_object::field::{Errors, FieldError};
use serde_json::Value;

use super::{
    below,
    cel_rules::{Costs, Place},
    sorted,
};
use crate::{field_path, structural::Structural};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Constraints from enclosing schemas.
#[derive(Clone, Copy)]
struct Context<'c> {
    /// The reason why a default may not be set here.
    no_defaults: Option<&'c str>,
    in_metadata: bool,
}

/// The errors in a schema at `path` and in its subschemas. With the compiled schema also its rules are compiled;
/// `tolerate`: they may cost more than they may otherwise.
pub(super) fn check(schema: &Value, path: &str, compiled: Option<&Structural>, tolerate: bool) -> Errors {
    let mut rules = Rules { errors: Errors::new(), rule_errors: Errors::new(), costs: Costs::new(tolerate) };
    let place = compiled.filter(|compiled| compiled.has_rules()).map(Place::root);
    rules.schema(schema, path, true, Context { no_defaults: None, in_metadata: false }, place);
    let mut errors = rules.errors;
    errors.extend(rules.rule_errors.into_vec());
    errors.extend(rules.costs.check_total(path).into_vec());
    errors
}

struct Rules {
    errors: Errors,
    /// The errors of the expressions of rules, which are reported after all others.
    rule_errors: Errors,
    costs: Costs,
}

fn text<'s>(schema: &'s Value, key: &str) -> &'s str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn texts<'s>(schema: &'s Value, key: &str) -> Vec<&'s str> {
    let list = schema.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

impl Rules {
    fn required(&mut self, path: String, detail: &str) {
        self.errors.push(FieldError::required(path, detail));
    }

    fn forbidden(&mut self, path: String, detail: impl Into<String>) {
        self.errors.push(FieldError::forbidden(path, detail));
    }

    fn invalid(&mut self, path: String, value: impl Into<Value>, detail: &str) {
        self.errors.push(FieldError::invalid(path, value, detail));
    }

    /// `place`: what rules see of the schema, if it is one whose rules are compiled.
    fn schema(
        &mut self,
        schema: &Value,
        path: &str,
        root: bool,
        context: Context<'_>,
        mut place: Option<Place<'_>>,
    ) {
        let before = self.errors.len();
        if let Some(place) = &mut place {
            place.enter();
        }
        self.keywords(schema, path, context);
        if flag(schema, "uniqueItems") {
            self.forbidden(
                format!("{path}.uniqueItems"),
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            );
        }
        let properties = sorted(schema.get("properties"));
        if let Some(additional) = schema.get("additionalProperties") {
            let at = format!("{path}.additionalProperties");
            if !properties.is_empty() && additional.as_bool() != Some(true) {
                self.forbidden(at.clone(), "additionalProperties and properties are mutual exclusive");
            }
            if additional.is_object() {
                let no_defaults = if context.in_metadata {
                    Some("inside additionalProperties applying to object metadata")
                } else {
                    context.no_defaults
                };
                let place = place.as_ref().and_then(|place| place.additional(schema));
                self.schema(additional, &at, false, Context { no_defaults, ..context }, place);
            }
        }
        for (name, property) in properties {
            let mut inner = context;
            let reason = format!("in top-level {name}");
            if (root || flag(schema, "x-kubernetes-embedded-resource"))
                && matches!(name, "metadata" | "kind" | "apiVersion")
            {
                inner.in_metadata = true;
                if root {
                    inner.no_defaults = Some(&reason);
                }
            }
            let place = place.as_ref().and_then(|place| place.property(name, schema));
            self.schema(property, &below(path, name), false, inner, place);
        }
        if let Some(not) = schema.get("not") {
            self.schema(not, &format!("{path}.not"), false, context, None);
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            for (index, branch) in schema.get(key).and_then(Value::as_array).into_iter().flatten().enumerate()
            {
                self.schema(branch, &format!("{path}.{key}[{index}]"), false, context, None);
            }
        }
        for (name, definition) in sorted(schema.get("definitions")) {
            self.schema(definition, &format!("{path}.definitions[{name}]"), false, context, None);
        }
        match schema.get("items") {
            Some(Value::Array(list)) => {
                for (index, items) in list.iter().enumerate() {
                    self.schema(items, &format!("{path}.items[{index}]"), false, context, None);
                }
            }
            Some(items) => {
                let place = place.as_ref().and_then(|place| place.items(schema, path));
                self.schema(items, &format!("{path}.items"), false, context, place);
            }
            None => {}
        }
        for (name, dependency) in sorted(schema.get("dependencies")) {
            if dependency.is_object() {
                self.schema(dependency, &format!("{path}.dependencies[{name}]"), false, context, None);
            }
        }
        self.extensions(schema, path);
        self.list_map(schema, path);
        self.rules(schema, path);
        // Rules are not compiled in a schema with errors: their types might be wrong.
        if self.errors.len() == before
            && let Some(place) = &place
            && let Some(rules) = schema.get("x-kubernetes-validations").and_then(Value::as_array)
            && !rules.is_empty()
        {
            self.costs.check(place, rules, path, &mut self.rule_errors);
        }
    }

    /// Unsupported keywords of JSON schema.
    fn keywords(&mut self, schema: &Value, path: &str, context: Context<'_>) {
        let kind = text(schema, "type");
        if !kind.is_empty() && !TYPES.contains(&kind) {
            self.errors.push(FieldError::not_supported(format!("{path}.type"), kind, &TYPES));
        }
        if let Some(reason) = context.no_defaults.filter(|_| schema.get("default").is_some()) {
            self.forbidden(format!("{path}.default"), format!("must not be set {reason}"));
        }
        for key in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
            if schema.get(key).is_some() {
                self.forbidden(format!("{path}.{key}"), format!("{key} is not supported"));
            }
        }
        if kind == "null" {
            self.forbidden(
                format!("{path}.type"),
                "type cannot be set to null, use nullable as an alternative",
            );
        }
        if schema.get("items").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
            self.forbidden(format!("{path}.items"), "items must be a schema object and not an array");
        }
        if context.in_metadata && flag(schema, "x-kubernetes-embedded-resource") {
            self.forbidden(
                format!("{path}.x-kubernetes-embedded-resource"),
                "must not be used inside of resource meta",
            );
        }
    }

    fn extensions(&mut self, schema: &Value, path: &str) {
        const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
        let kind = text(schema, "type");
        if schema.get(PRESERVE).and_then(Value::as_bool) == Some(false) {
            self.invalid(format!("{path}.{PRESERVE}"), false, "must be true or undefined");
        }
        let map_type = schema.get("x-kubernetes-map-type").and_then(Value::as_str);
        let list_type = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
        if let Some(map_type) = map_type {
            if kind != "object" {
                self.type_must(path, kind, "must be object if x-kubernetes-map-type is specified");
            }
            if !matches!(map_type, "atomic" | "granular") {
                let at = format!("{path}.x-kubernetes-map-type");
                self.errors.push(FieldError::not_supported(at, map_type, &["atomic", "granular"]));
            }
        }
        let items = schema.get("items").filter(|items| items.is_object());
        if let Some(list_type) = list_type {
            if kind != "array" {
                self.type_must(path, kind, "must be array if x-kubernetes-list-type is specified");
            } else if let (true, Some(items)) = (list_type == "set", items) {
                const DETAIL: &str = "must be atomic as item of a list with x-kubernetes-list-type=set";
                let item_list = items.get("x-kubernetes-list-type");
                match text(items, "type") {
                    "array" if item_list.is_some_and(|kind| kind != "atomic") => {
                        let shown = item_list.cloned().unwrap_or_default();
                        self.invalid(format!("{path}.items.x-kubernetes-list-type"), shown, DETAIL);
                    }
                    "object" if text(items, "x-kubernetes-map-type") != "atomic" => {
                        // The error shows the list type, as in kube-apiserver.
                        let shown = item_list.cloned().unwrap_or_default();
                        self.invalid(format!("{path}.items.x-kubernetes-map-type"), shown, DETAIL);
                    }
                    _ => {}
                }
            }
            if !matches!(list_type, "atomic" | "set" | "map") {
                let at = format!("{path}.x-kubernetes-list-type");
                self.errors.push(FieldError::not_supported(at, list_type, &["atomic", "set", "map"]));
            }
        }
        if !texts(schema, "x-kubernetes-list-map-keys").is_empty() && list_type != Some("map") {
            const DETAIL: &str = "must be map if x-kubernetes-list-map-keys is non-empty";
            let at = format!("{path}.x-kubernetes-list-type");
            match list_type {
                None => self.required(at, DETAIL),
                Some(other) => self.invalid(at, other, DETAIL),
            }
        }
    }

    fn type_must(&mut self, path: &str, kind: &str, detail: &str) {
        if kind.is_empty() {
            self.required(format!("{path}.type"), detail);
        } else {
            self.invalid(format!("{path}.type"), kind, detail);
        }
    }

    /// Lists of type map.
    fn list_map(&mut self, schema: &Value, path: &str) {
        let list_type = text(schema, "x-kubernetes-list-type");
        let keys = texts(schema, "x-kubernetes-list-map-keys");
        let items = schema.get("items");
        if list_type == "map" {
            if keys.is_empty() {
                self.required(
                    format!("{path}.x-kubernetes-list-map-keys"),
                    "must not be empty if x-kubernetes-list-type is map",
                );
            }
            match items {
                None => self
                    .required(format!("{path}.items"), "must have a schema if x-kubernetes-list-type is map"),
                Some(Value::Array(list)) => {
                    let shown = serde_json::json!({
                        "Schema": null,
                        "JSONSchemas": list.iter().map(super::dump::schema).collect::<Vec<_>>(),
                    });
                    self.invalid(
                        format!("{path}.items"),
                        shown,
                        "must only have a single schema if x-kubernetes-list-type is map",
                    );
                }
                Some(items) if text(items, "type") != "object" => self.invalid(
                    format!("{path}.items.type"),
                    text(items, "type"),
                    "must be object if parent array's x-kubernetes-list-type is map",
                ),
                Some(items) => self.map_keys(items, &keys, path),
            }
        }
        let Some(items) = items.filter(|items| items.is_object() && matches!(list_type, "map" | "set"))
        else {
            return;
        };
        if flag(items, "nullable") {
            self.forbidden(
                format!("{path}.items.nullable"),
                format!("cannot be nullable when x-kubernetes-list-type is {list_type}"),
            );
        }
        if list_type != "map" {
            return;
        }
        let required: HashSet<&str> = texts(items, "required").into_iter().collect();
        for key in keys {
            let Some(property) = items.get("properties").and_then(|properties| properties.get(key)) else {
                continue;
            };
            let at = format!("{path}.items.properties[{key}]");
            if !required.contains(&key) && property.get("default").is_none() {
                self.required(
                    format!("{at}.default"),
                    "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
                );
            }
            if flag(property, "nullable") {
                self.forbidden(
                    format!("{at}.nullable"),
                    "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
                );
            }
        }
    }

    fn map_keys(&mut self, items: &Value, keys: &[&str], path: &str) {
        let at = format!("{path}.x-kubernetes-list-map-keys");
        let mut seen = HashSet::new();
        for key in keys {
            match items.get("properties").and_then(|properties| properties.get(key)) {
                Some(property) if matches!(text(property, "type"), "array" | "object") => self.invalid(
                    format!("{path}.items.properties[{key}].type"),
                    text(items, "type"),
                    "must be a scalar type if parent array's x-kubernetes-list-type is map",
                ),
                Some(_) => {}
                None => self.errors.push_with(|| {
                    let detail = "entries must all be names of item properties";
                    FieldError::invalid(at.clone(), Value::from(keys.to_vec()), detail)
                }),
            }
            if !seen.insert(key) {
                self.errors.push_with(|| {
                    let detail = "must not contain duplicate entries";
                    FieldError::invalid(at.clone(), Value::from(keys.to_vec()), detail)
                });
            }
        }
    }

    /// The form of `x-kubernetes-validations`.
    fn rules(&mut self, schema: &Value, path: &str) {
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        for (index, rule) in rules.into_iter().flatten().enumerate() {
            let at = |key: &str| format!("{path}.x-kubernetes-validations[{index}].{key}");
            let has_lines = |text: &str| text.contains(['\n', '\r']);
            let message = text(rule, "message");
            if text(rule, "rule").trim().is_empty() {
                self.required(at("rule"), "rule is not specified");
            } else if !message.is_empty() && message.trim().is_empty() {
                self.invalid(at("message"), message, "must be non-empty if specified");
            } else if has_lines(message.trim()) {
                self.invalid(at("message"), message, "must not contain line breaks");
            } else if has_lines(text(rule, "rule").trim()) && message.trim().is_empty() {
                self.required(at("message"), "message must be specified if rule contains line breaks");
            }
            let expression = text(rule, "messageExpression");
            if !expression.is_empty() && expression.trim().is_empty() {
                self.required(at("messageExpression"), "messageExpression must be non-empty if specified");
            }
            if let Some(reason) = rule.get("reason").and_then(Value::as_str)
                && !REASONS.contains(&reason)
            {
                self.errors.push(FieldError::not_supported(at("reason"), reason, &REASONS));
            }
            let field = text(rule, "fieldPath");
            if !field.is_empty() {
                if field.trim().is_empty() {
                    self.invalid(at("fieldPath"), field, "must be non-empty if specified");
                }
                if has_lines(field) {
                    self.invalid(at("fieldPath"), field, "must not contain line breaks");
                }
                if field_path::follow(field, schema, true).is_err() {
                    self.invalid(at("fieldPath"), field, "must be a valid path");
                }
            }
        }
    }
}
