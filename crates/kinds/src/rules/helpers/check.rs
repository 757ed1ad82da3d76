//! Checks that many rules share: names, numbers, choices, paths.

use k1s_object::{At, FieldError, field::ErrorKind, field::Shown, names};
use serde_json::{Map, Value};

/// Says of the text here what is wrong with it.
pub(crate) fn messages(at: At<'_, '_>, messages: Vec<String>) {
    for message in messages {
        at.invalid_text(message);
    }
}

/// A DNS label.
pub(crate) fn dns_label(at: At<'_, '_>) {
    messages(at, names::is_dns1123_label(at.text()));
}

/// A DNS subdomain.
pub(crate) fn dns_subdomain(at: At<'_, '_>) {
    messages(at, names::is_dns1123_subdomain(at.text()));
}

/// A qualified name: `name` or `example.com/name`.
pub(crate) fn qualified_name(at: At<'_, '_>) {
    messages(at, names::is_qualified_name(at.text()));
}

/// Not below zero; a missing number is zero.
pub(crate) fn non_negative(at: At<'_, '_>) {
    if at.number() < 0 {
        at.invalid("must be greater than or equal to 0");
    }
}

/// Above zero.
pub(crate) fn positive(at: At<'_, '_>) {
    if at.number() <= 0 {
        at.invalid_as(at.number(), "must be greater than zero");
    }
}

/// One of these; nothing at all is `Required`.
pub(crate) fn one_of(at: At<'_, '_>, supported: &[&str]) {
    if at.text().is_empty() {
        at.required("");
    } else {
        one_of_or_unset(at, supported);
    }
}

/// One of these, or not set.
pub(crate) fn one_of_or_unset(at: At<'_, '_>, supported: &[&str]) {
    if at.is_set() && !supported.contains(&at.text()) {
        at.not_supported(supported);
    }
}

/// Must not be empty.
pub(crate) fn required(at: At<'_, '_>) {
    if at.is_empty() {
        at.required("");
    }
}

/// A relative path without `..`.
pub(crate) fn descending_path(at: At<'_, '_>, path: &str) {
    if path.starts_with('/') {
        at.invalid_as(path, "must be a relative path");
    }
    no_backsteps(at, path);
}

/// A path without `..`.
pub(crate) fn no_backsteps(at: At<'_, '_>, path: &str) {
    if has_backsteps(path) {
        at.invalid_as(path, "must not contain '..'");
    }
}

/// Whether a part of the path is `..`.
pub(crate) fn has_backsteps(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// A relative path without `..` that does not begin with two dots.
pub(crate) fn non_reserved_path(at: At<'_, '_>, path: &str) {
    descending_path(at, path);
    if path.starts_with("..") && !path.starts_with("../") {
        at.invalid_as(path, "must not start with '..'");
    }
}

/// `Invalid value` without a value.
pub(crate) fn invalid_omitted(at: At<'_, '_>, detail: impl Into<String>) {
    at.check().push(FieldError::new(ErrorKind::Invalid, at.path(), Shown::Nothing, detail));
}

/// The field may not change; the new value is shown, as Go would: maps sorted.
pub(crate) fn immutable(new: At<'_, '_>, old: Option<&Value>) {
    if !super::json::same(new.value(), old) {
        new.invalid_as(new.value().map_or(Value::Null, sorted), "field is immutable");
    }
}

/// The value with all maps sorted by key.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            Value::Object(entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// A label selector with its fields in Go's order.
pub(crate) fn go_selector(selector: &Value) -> Value {
    let mut shown = Map::new();
    if let Some(labels) = selector.get("matchLabels") {
        shown.insert("matchLabels".into(), sorted(labels));
    }
    if let Some(expressions) = selector.get("matchExpressions") {
        // key, operator, values: the alphabet's order is Go's.
        shown.insert("matchExpressions".into(), sorted(expressions));
    }
    Value::Object(shown)
}

/// The selector may not change.
pub(crate) fn immutable_selector(new: At<'_, '_>, old: Option<&Value>) {
    if !super::json::same(new.value(), old) {
        let set = new.value().filter(|selector| !selector.is_null());
        new.invalid_as(set.map_or(Value::Null, go_selector), "field is immutable");
    }
}

/// A Go struct as its messages show it: all fields, by their Go names, in their order. Values come from a JSON
/// object with other names.
pub(crate) fn go_struct(value: &Value, fields: &[(&str, &str, GoField)]) -> Value {
    let mut shown = Map::new();
    for (go, json, field) in fields {
        let inner = value.get(json).filter(|inner| !inner.is_null());
        shown.insert(
            (*go).into(),
            match (inner, field) {
                (Some(inner), GoField::Struct(fields)) => go_struct(inner, fields),
                (Some(Value::Array(items)), GoField::List(fields)) => {
                    items.iter().map(|item| go_struct(item, fields)).collect()
                }
                (Some(inner), _) => inner.clone(),
                (None, GoField::Text) => "".into(),
                (None, _) => Value::Null,
            },
        );
    }
    Value::Object(shown)
}

/// What a field of a Go struct holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GoField {
    /// A string, empty when missing.
    Text,
    /// A pointer, a list or a map: null when missing.
    Pointer,
    /// A list of structs.
    List(&'static [(&'static str, &'static str, GoField)]),
    /// A pointer to a struct.
    Struct(&'static [(&'static str, &'static str, GoField)]),
}

/// Whole seconds, counts and the like in messages.
pub(crate) fn range(at: At<'_, '_>, low: i64, high: i64) {
    if !(low..=high).contains(&at.number()) {
        at.invalid_as(at.number(), names::inclusive_range_error(low, high));
    }
}

/// A port number, or the name of a port.
pub(crate) fn port_number_or_name(at: At<'_, '_>) {
    match at.str() {
        Some(name) => messages(at, names::is_valid_port_name(name)),
        None => {
            for message in names::is_valid_port_num(at.number()) {
                at.invalid_as(at.number(), message);
            }
        }
    }
}
