//! Embedded objects in custom resources, which have their own `apiVersion`, `kind` and metadata.

use std::fmt::Write as _;

use k1s_object::{
    field::{Errors, FieldError},
    names,
};
use serde_json::{Map, Value};

use super::Structural;
use crate::meta::{self, Malformed};

impl Structural {
    /// The errors in embedded objects in `value` at `path`; `root`: the value itself is one.
    pub(crate) fn check_embedded(&self, value: &Value, path: &str, root: bool) -> Errors {
        let mut errors = Errors::new();
        walk(self, value, root, &mut path.to_owned(), &mut errors);
        errors
    }
}

/// Maximum length of a path; longer ones are not rebuilt only to be counted.
const MAX_PATH: usize = 10_000;

fn walk(schema: &Structural, value: &Value, root: bool, path: &mut String, errors: &mut Errors) {
    match value {
        Value::Object(map) => {
            if (schema.embedded || root) && !(errors.is_full() && path.len() > MAX_PATH) {
                check(map, path, errors);
            }
            for (key, value) in map {
                let Some(child) = schema.field(key) else { continue };
                let length = path.len();
                if schema.property(key).is_some() {
                    if length > 0 {
                        path.push('.');
                    }
                    path.push_str(key);
                } else {
                    let _ = write!(path, "[{key}]");
                }
                walk(child, value, false, path, errors);
                path.truncate(length);
            }
        }
        Value::Array(list) => {
            let Some(items) = schema.items() else { return };
            for (index, item) in list.iter().enumerate() {
                let length = path.len();
                let _ = write!(path, "[{index}]");
                walk(items, item, false, path, errors);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn check(object: &Map<String, Value>, path: &str, errors: &mut Errors) {
    match object.get("apiVersion") {
        None => errors.push(FieldError::required(join(path, "apiVersion"), "")),
        Some(Value::String(text)) if text.is_empty() => {
            errors.push(FieldError::invalid(join(path, "apiVersion"), "", "must not be empty"));
        }
        Some(Value::String(text)) if text.matches('/').count() > 1 => errors.push(FieldError::invalid(
            join(path, "apiVersion"),
            text.as_str(),
            format!("unexpected GroupVersion string: {text}"),
        )),
        Some(Value::String(_)) => {}
        Some(other) => {
            errors.push(FieldError::invalid(join(path, "apiVersion"), other.clone(), "must be a string"));
        }
    }
    match object.get("kind") {
        None => errors.push(FieldError::required(join(path, "kind"), "")),
        Some(Value::String(text)) if text.is_empty() => {
            errors.push(FieldError::invalid(join(path, "kind"), "", "must not be empty"));
        }
        Some(Value::String(text)) => {
            let wrong = names::is_dns1035_label(&text.to_lowercase());
            if !wrong.is_empty() {
                errors.push(FieldError::invalid(
                    join(path, "kind"),
                    text.as_str(),
                    format!("may have mixed case, but should otherwise match: {}", wrong.join(",")),
                ));
            }
        }
        Some(other) => {
            errors.push(FieldError::invalid(join(path, "kind"), other.clone(), "must be a string"))
        }
    }
    if let Some(metadata) = object.get("metadata") {
        let at = join(path, "metadata");
        let mut decoded = metadata.clone();
        match meta::coerce(&mut decoded, Malformed::Refuse, &mut Vec::new()) {
            Err(error) => errors.push(FieldError::invalid(at, metadata.clone(), error)),
            Ok(()) => check_meta(&decoded, &at, errors),
        }
    }
}

fn check_meta(metadata: &Value, path: &str, errors: &mut Errors) {
    let text = |key: &str| metadata.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut invalid = |field: String, value: &str, wrong: Vec<String>| {
        errors.extend(wrong.into_iter().map(|error| FieldError::invalid(field.clone(), value, error)));
    };
    let generate_name = text("generateName");
    invalid(format!("{path}.generateName"), generate_name, names::is_path_segment_prefix(generate_name));
    invalid(format!("{path}.name"), text("name"), names::is_path_segment_name(text("name")));
    if !text("namespace").is_empty() {
        invalid(format!("{path}.namespace"), text("namespace"), names::is_dns1123_label(text("namespace")));
    }
    for (key, value) in metadata.get("labels").and_then(Value::as_object).into_iter().flatten() {
        invalid(format!("{path}.labels"), key, names::is_qualified_name(key));
        let value = value.as_str().unwrap_or_default();
        invalid(format!("{path}.labels"), value, names::is_valid_label_value(value));
    }
    for key in
        metadata.get("annotations").and_then(Value::as_object).into_iter().flatten().map(|(key, _)| key)
    {
        invalid(format!("{path}.annotations"), key, names::is_qualified_name(&key.to_lowercase()));
    }
    for finalizer in metadata.get("finalizers").and_then(Value::as_array).into_iter().flatten() {
        let finalizer = finalizer.as_str().unwrap_or_default();
        invalid(format!("{path}.finalizers"), finalizer, names::is_qualified_name(finalizer));
    }
    for (index, owner) in
        metadata.get("ownerReferences").and_then(Value::as_array).into_iter().flatten().enumerate()
    {
        for (key, detail) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner.get(key).and_then(Value::as_str).unwrap_or_default().is_empty() {
                let at = format!("{path}.ownerReferences[{index}].{key}");
                errors.push(if key == "apiVersion" {
                    FieldError::invalid(at, "", detail)
                } else {
                    FieldError::required(at, detail)
                });
            }
        }
    }
}
