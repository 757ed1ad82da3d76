//! Validation that a schema is structural: types are specified everywhere, and value validations only restrict
//! specified fields.

use k1s_cel::go_regex::Patterns;
use k1s_object::field::{Errors, FieldError};
use serde_json::{Value, json};

use super::{below, sorted};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

fn text<'s>(schema: &'s Value, key: &str) -> &'s str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn list<'s>(schema: &'s Value, key: &str) -> &'s [Value] {
    schema.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn property<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    schema.get("properties").and_then(|properties| properties.get(name))
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// The reason why a schema cannot be converted to a structural one; other checks report it as well, except for
/// `$schema`.
pub(super) fn unsupported(schema: &Value) -> Option<String> {
    let mut found = None;
    super::visit(schema, &mut |schema| {
        if found.is_some() {
            return;
        }
        for (key, name) in [("id", "id"), ("$schema", "schema"), ("$ref", "$ref")] {
            if !text(schema, key).is_empty() {
                found = Some(format!("OpenAPIV3Schema '{name}' is not supported"));
            }
        }
        for key in ["patternProperties", "dependencies", "additionalItems", "definitions"] {
            if schema.get(key).is_some() {
                found = Some(format!("OpenAPIV3Schema '{key}' is not supported"));
            }
        }
        if schema.get("items").is_some_and(Value::is_array) {
            found = Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
        }
        if schema.get(PRESERVE).and_then(Value::as_bool) == Some(false) {
            found = Some(format!("internal error: '{PRESERVE}' must be true or undefined"));
        }
    });
    found
}

/// The errors that make a schema at `path` not structural, sorted by text.
pub(super) fn check(schema: &Value, path: &str, patterns: &mut Patterns) -> Errors {
    let mut rules = Rules { errors: Errors::new(), patterns };
    rules.invariants(schema, Level::Root, path);
    rules.complete(schema, Some(schema), path, path);
    rules.errors.sort_by_text();
    rules.errors
}

struct Rules<'p> {
    errors: Errors,
    patterns: &'p mut Patterns,
}

impl Rules<'_> {
    fn required(&mut self, path: String, detail: impl Into<String>) {
        self.errors.push(FieldError::required(path, detail));
    }

    fn forbidden(&mut self, path: String, detail: &str) {
        self.errors.push(FieldError::forbidden(path, detail));
    }

    fn invalid(&mut self, path: String, value: impl Into<Value>, detail: impl Into<String>) {
        self.errors.push(FieldError::invalid(path, value, detail));
    }

    fn invariants(&mut self, schema: &Value, level: Level, path: &str) {
        let kind = text(schema, "type");
        let embedded = flag(schema, EMBEDDED);
        let preserve = flag(schema, PRESERVE);
        let int_or_string = flag(schema, INT_OR_STRING);
        match schema.get("items") {
            Some(items) => self.invariants(items, Level::Item, &format!("{path}.items")),
            None if kind == "array" => self.required(format!("{path}.items"), "must be specified"),
            None => {}
        }
        for (name, property) in sorted(schema.get("properties")) {
            self.invariants(property, Level::Field, &below(path, name));
        }
        let additional = schema.get("additionalProperties");
        if let Some(additional) = additional {
            let at = format!("{path}.additionalProperties");
            if level == Level::Root {
                self.forbidden(at.clone(), "must not be used at the root");
            }
            if additional.is_object() {
                self.invariants(additional, Level::Field, &at);
            }
        }
        if int_or_string && preserve {
            self.invalid(
                format!("{path}.{PRESERVE}"),
                true,
                "must be false if x-kubernetes-int-or-string is true",
            );
        }
        if int_or_string && embedded {
            self.invalid(
                format!("{path}.{EMBEDDED}"),
                true,
                "must be false if x-kubernetes-int-or-string is true",
            );
        }
        let either = json!([{"type": "integer"}, {"type": "string"}]);
        let skip_any = schema.get("anyOf") == Some(&either);
        let skip_first = list(schema, "allOf").first().and_then(|first| first.get("anyOf")) == Some(&either);
        self.value_rules(schema, skip_any, skip_first, path);

        if embedded && kind != "object" {
            const DETAIL: &str = "must be object if x-kubernetes-embedded-resource is true";
            if kind.is_empty() {
                self.required(format!("{path}.type"), DETAIL);
            } else {
                self.invalid(format!("{path}.type"), kind, DETAIL);
            }
        } else if kind.is_empty() && !int_or_string && !preserve {
            self.required(
                format!("{path}.type"),
                match level {
                    Level::Root => "must not be empty at the root",
                    Level::Item => "must not be empty for specified array items",
                    Level::Field => "must not be empty for specified object fields",
                },
            );
        }
        if embedded && additional.is_some() {
            self.forbidden(
                format!("{path}.additionalProperties"),
                "must not be used if x-kubernetes-embedded-resource is set",
            );
        }
        if level == Level::Root && !kind.is_empty() && kind != "object" {
            self.invalid(format!("{path}.type"), kind, "must be object at the root");
        }
        let is_object = level == Level::Root || embedded;
        if is_object {
            for name in ["kind", "apiVersion"] {
                if let Some(property) =
                    property(schema, name).filter(|property| text(property, "type") != "string")
                {
                    self.invalid(
                        format!("{path}.properties[{name}].type"),
                        text(property, "type"),
                        "must be string",
                    );
                }
            }
        }
        if let Some(metadata) = property(schema, "metadata") {
            self.metadata(metadata, is_object, level, &format!("{path}.properties[metadata]"));
        }
        if embedded && !preserve && sorted(schema.get("properties")).is_empty() {
            self.required(
                format!("{path}.properties"),
                "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
            );
        }
    }

    fn metadata(&mut self, metadata: &Value, is_object: bool, level: Level, path: &str) {
        if is_object && text(metadata, "type") != "object" {
            self.invalid(format!("{path}.type"), text(metadata, "type"), "must be object");
        }
        if level != Level::Root {
            return;
        }
        let only_names = |properties: &Value| {
            properties
                .as_object()
                .is_some_and(|map| map.keys().all(|key| matches!(key.as_str(), "name" | "generateName")))
        };
        let other = metadata.as_object().into_iter().flatten().any(|(key, value)| match key.as_str() {
            "type" | "default" => false,
            "properties" => !only_names(value),
            _ => true,
        });
        if other {
            self.forbidden(
                path.to_owned(),
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            );
        }
    }

    fn value_rules(&mut self, schema: &Value, skip_any: bool, skip_first_any: bool, path: &str) {
        if !skip_any {
            for (index, branch) in list(schema, "anyOf").iter().enumerate() {
                self.nested(branch, false, &format!("{path}.anyOf[{index}]"));
            }
        }
        for (index, branch) in list(schema, "allOf").iter().enumerate() {
            self.nested(branch, skip_first_any && index == 0, &format!("{path}.allOf[{index}]"));
        }
        for (index, branch) in list(schema, "oneOf").iter().enumerate() {
            self.nested(branch, false, &format!("{path}.oneOf[{index}]"));
        }
        if let Some(not) = schema.get("not") {
            self.nested(not, false, &format!("{path}.not"));
        }
        let pattern = text(schema, "pattern");
        if !pattern.is_empty()
            && let Err(error) = self.patterns.check(pattern)
        {
            let detail = format!("must be a valid regular expression, but isn't: {error}");
            self.invalid(format!("{path}.pattern"), pattern, detail);
        }
    }

    fn nested(&mut self, schema: &Value, skip_any: bool, path: &str) {
        self.value_rules(schema, skip_any, false, path);
        if let Some(items) = schema.get("items") {
            self.nested(items, false, &format!("{path}.items"));
        }
        for (name, property) in sorted(schema.get("properties")) {
            self.nested(property, false, &below(path, name));
        }
        const EMPTY: &str = "must be empty to be structural";
        const UNDEFINED: &str = "must be undefined to be structural";
        const FALSE: &str = "must be false to be structural";
        let has_text = |key: &str| !text(schema, key).is_empty();
        let additional = schema.get("additionalProperties").is_some_and(|a| a.as_bool() != Some(false));
        for (key, wrong, detail) in [
            ("type", has_text("type"), EMPTY),
            ("additionalProperties", additional, UNDEFINED),
            ("default", schema.get("default").is_some(), UNDEFINED),
            ("title", has_text("title"), EMPTY),
            ("description", has_text("description"), EMPTY),
            ("nullable", flag(schema, "nullable"), FALSE),
            (PRESERVE, flag(schema, PRESERVE), FALSE),
            (EMBEDDED, flag(schema, EMBEDDED), FALSE),
            (INT_OR_STRING, flag(schema, INT_OR_STRING), FALSE),
            ("x-kubernetes-list-map-keys", !list(schema, "x-kubernetes-list-map-keys").is_empty(), EMPTY),
            ("x-kubernetes-list-type", schema.get("x-kubernetes-list-type").is_some(), UNDEFINED),
            ("x-kubernetes-map-type", schema.get("x-kubernetes-map-type").is_some(), UNDEFINED),
            ("x-kubernetes-validations", !list(schema, "x-kubernetes-validations").is_empty(), EMPTY),
        ] {
            if wrong {
                self.forbidden(format!("{path}.{key}"), detail);
            }
        }
        if property(schema, "metadata").is_some() {
            self.forbidden(
                format!("{path}.properties[metadata]"),
                "must not be specified in a nested context",
            );
        }
    }

    /// Value validations at the root may only name specified fields.
    fn complete(&mut self, rules: &Value, schema: Option<&Value>, schema_path: &str, rules_path: &str) {
        if let Some(not) = rules.get("not") {
            self.complete_nested(not, schema, schema_path, &format!("{rules_path}.not"));
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            for (index, branch) in list(rules, key).iter().enumerate() {
                self.complete_nested(branch, schema, schema_path, &format!("{rules_path}.{key}[{index}]"));
            }
        }
    }

    fn complete_nested(
        &mut self,
        rules: &Value,
        schema: Option<&Value>,
        schema_path: &str,
        rules_path: &str,
    ) {
        let Some(schema) = schema else {
            self.required(schema_path.to_owned(), format!("because it is defined in {rules_path}"));
            return;
        };
        self.complete(rules, Some(schema), schema_path, rules_path);
        if let Some(items) = rules.get("items") {
            let at = format!("{schema_path}.items");
            self.complete_nested(items, schema.get("items"), &at, &format!("{rules_path}.items"));
        }
        for (name, rules) in sorted(rules.get("properties")) {
            let at = below(schema_path, name);
            let rules_at = below(rules_path, name);
            self.complete_nested(rules, property(schema, name), &at, &rules_at);
        }
    }
}
