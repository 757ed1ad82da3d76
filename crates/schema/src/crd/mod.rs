//! The `CustomResourceDefinition` kind: defaults, preparation, validation and warnings.
//!
//! A decoded definition is defaulted with [`default`], prepared with one of the `prepare` functions and then
//! validated. The paths of errors are those of kube-apiserver: parts that all versions share have paths such as
//! `spec.validation.openAPIV3Schema…`, `spec.subresources…` or `spec.additionalPrinterColumns[i].JSONPath`; only
//! parts that differ have `spec.versions[i]…`.

mod cel_rules;
pub(crate) mod conversion;
mod default_rules;
mod dump;
mod schema_rules;
mod structural_rules;
#[cfg(test)]
mod tests;
mod validate;
mod view;

use std::collections::HashSet;

use serde_json::{Map, Value, json};

pub use validate::{validate_create, validate_status_update, validate_update};
use view::View;

use crate::structural::formats::Format;

/// Sets defaults: singular and list names, the conversion strategy, the port of a webhook, the first stored version.
pub fn default(crd: &mut Value) {
    let stored = crd.get("status").and_then(|status| status.get("storedVersions")).and_then(Value::as_array);
    if stored.is_none_or(Vec::is_empty)
        && let Some(version) = storage_version(crd).map(str::to_owned)
        && let Some(status) = crd
            .as_object_mut()
            .and_then(|crd| crd.entry("status").or_insert_with(|| json!({})).as_object_mut())
    {
        status.insert("storedVersions".to_owned(), json!([version]));
    }
    let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let is_empty = |names: &Map<String, Value>, key: &str| {
            names.get(key).and_then(Value::as_str).unwrap_or_default().is_empty()
        };
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !kind.is_empty() && is_empty(names, "singular") {
            names.insert("singular".to_owned(), Value::from(kind.to_lowercase()));
        }
        if !kind.is_empty() && is_empty(names, "listKind") {
            names.insert("listKind".to_owned(), Value::from(format!("{kind}List")));
        }
    }
    if !spec.contains_key("conversion") {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
    let service = spec
        .get_mut("conversion")
        .and_then(|conversion| conversion.get_mut("webhook"))
        .and_then(|webhook| webhook.get_mut("clientConfig"))
        .and_then(|config| config.get_mut("service"))
        .and_then(Value::as_object_mut);
    if let Some(service) = service {
        service.entry("port").or_insert_with(|| Value::from(443));
    }
}

fn storage_version(crd: &Value) -> Option<&str> {
    let versions = crd.get("spec")?.get("versions")?.as_array()?;
    let storage =
        versions.iter().find(|version| version.get("storage").and_then(Value::as_bool) == Some(true))?;
    Some(storage.get("name").and_then(Value::as_str).unwrap_or_default())
}

fn set(crd: &mut Value, key: &str, value: Value) {
    if let Some(map) = crd.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}

/// Sets the status of a new definition.
pub fn prepare_create(crd: &mut Value) {
    let stored = storage_version(crd).map_or(Value::Null, |version| json!([version]));
    set(
        crd,
        "status",
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}),
    );
}

/// Restores the status on update, and adds the storage version to the stored versions.
pub fn prepare_update(new: &mut Value, old: &Value) {
    let mut status = old.get("status").cloned().unwrap_or_else(|| json!({}));
    if let Some(version) = storage_version(new)
        && let Some(map) = status.as_object_mut()
    {
        let stored = map.entry("storedVersions").or_insert(Value::Null);
        match stored {
            Value::Array(stored) => {
                if !stored.iter().any(|stored| stored == version) {
                    stored.push(Value::from(version));
                }
            }
            other => *other = json!([version]),
        }
    }
    set(new, "status", status);
}

/// Restores the spec on an update of `/status`.
pub fn prepare_status(new: &mut Value, old: &Value) {
    if let Some(spec) = old.get("spec") {
        set(new, "spec", spec.clone());
    }
}

/// Warnings about an accepted definition: formats that are not validated, and sets of objects or lists. On
/// update only new ones.
pub fn warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    let known_formats: HashSet<String> =
        old.map(unrecognised_formats).unwrap_or_default().into_iter().collect();
    for format in unrecognised_formats(new) {
        if !known_formats.contains(&format) {
            out.push(format!("unrecognized format {}", k1s_object::field::quote(&format)));
        }
    }
    let known_sets = old.map(sets_of_structures).unwrap_or_default();
    for kind in sets_of_structures(new) {
        if !known_sets.contains(&kind) {
            out.push(format!(
                "x-kubernetes-list-type: set for items of type {} is not supported by server-side apply or CEL validation rules",
                k1s_object::field::quote(&kind)
            ));
        }
    }
}

fn unrecognised_formats(crd: &Value) -> Vec<String> {
    let mut formats = Vec::new();
    for schema in View::new(crd).schemas() {
        visit(schema, &mut |schema| {
            let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
            let format = text("format");
            if !format.is_empty() && !Format::is_known(text("type"), format) {
                formats.push(format.to_owned());
            }
        });
    }
    formats
}

fn sets_of_structures(crd: &Value) -> Vec<String> {
    let mut kinds = Vec::new();
    for schema in View::new(crd).schemas() {
        visit(schema, &mut |schema| {
            if schema.get("x-kubernetes-list-type").and_then(Value::as_str) == Some("set") {
                let kind = schema.get("items").and_then(|items| items.get("type")).and_then(Value::as_str);
                kinds.extend(kind.filter(|kind| matches!(*kind, "object" | "array")).map(str::to_owned));
            }
        });
    }
    kinds.sort();
    kinds.dedup();
    kinds
}

/// Calls `see` with a schema and all its subschemas.
pub(crate) fn visit<'s>(schema: &'s Value, see: &mut impl FnMut(&'s Value)) {
    see(schema);
    match schema.get("items") {
        Some(items @ Value::Object(_)) => visit(items, see),
        Some(Value::Array(list)) => list.iter().for_each(|items| visit(items, see)),
        _ => {}
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for branch in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
            visit(branch, see);
        }
    }
    if let Some(not) = schema.get("not").filter(|not| not.is_object()) {
        visit(not, see);
    }
    for property in
        schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|map| map.values())
    {
        visit(property, see);
    }
    if let Some(additional) = schema.get("additionalProperties").filter(|additional| additional.is_object()) {
        visit(additional, see);
    }
}

/// Maximum length of a property name in the path of an error.
const MAX_SHOWN_NAME: usize = 256;

/// The path of a property. Paths are built for every property, so long names are truncated.
pub(crate) fn below(path: &str, name: &str) -> String {
    if name.len() <= MAX_SHOWN_NAME {
        return format!("{path}.properties[{name}]");
    }
    let shown = name.get(..name.floor_char_boundary(MAX_SHOWN_NAME)).unwrap_or_default();
    format!("{path}.properties[{shown}...]")
}

/// The entries of an object sorted by name.
pub(crate) fn sorted(map: Option<&Value>) -> Vec<(&str, &Value)> {
    let map = map.and_then(Value::as_object);
    let mut entries: Vec<(&str, &Value)> =
        map.into_iter().flatten().map(|(key, value)| (key.as_str(), value)).collect();
    entries.sort_by_key(|(key, _)| *key);
    entries
}
