//! Normalizes answers for comparison: uids, versions, times and generated names differ from run to run.

use std::{collections::HashMap, sync::LazyLock};

use regex::Regex;
use serde_json::{Map, Value};

static TIME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$").unwrap());

static UUID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").unwrap());

/// Placeholders for the values of one scenario. Equal values get equal placeholders.
pub(crate) struct Placeholders {
    namespace: String,
    uids: HashMap<String, String>,
}

impl Placeholders {
    pub(crate) fn new(namespace: &str) -> Placeholders {
        Placeholders { namespace: namespace.to_owned(), uids: HashMap::new() }
    }

    pub(crate) fn text(&mut self, text: &str) -> String {
        if TIME.is_match(text) {
            return "<time>".into();
        }
        let uids = &mut self.uids;
        let replaced = UUID.replace_all(text, |found: &regex::Captures<'_>| {
            let next = uids.len() + 1;
            uids.entry(found[0].to_owned()).or_insert_with(|| format!("<uid{next}>")).clone()
        });
        replaced.replace(&self.namespace, "<ns>")
    }

    pub(crate) fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let generated = fields.get("generateName").and_then(Value::as_str);
                let mut normal = Map::new();
                for (key, value) in fields {
                    let text = value.as_str();
                    let (key, value) = match (key.as_str(), text) {
                        ("resourceVersion", Some("" | "0")) => (key.clone(), value.clone()),
                        ("resourceVersion", Some(_)) => (key.clone(), "<rv>".into()),
                        ("continue", Some(token)) if !token.is_empty() => (key.clone(), "<continue>".into()),
                        ("name", Some(name)) if generated.is_some_and(|prefix| name.starts_with(prefix)) => {
                            (key.clone(), format!("{}<suffix>", generated.unwrap_or_default()).into())
                        }
                        ("selfLink", _) => continue,
                        _ => {
                            let value = self.value(value);
                            (self.text(key), value)
                        }
                    };
                    normal.insert(key, value);
                }
                Value::Object(normal)
            }
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::String(text) => self.text(text).into(),
            other => other.clone(),
        }
    }
}

/// Removes the field at a path like `metadata.annotations.*`, where `*` is every key or element.
pub(crate) fn remove(value: &mut Value, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else { return };
    match value {
        Value::Array(items) => {
            let path = if *first == "*" { rest } else { path };
            items.iter_mut().for_each(|item| remove(item, path));
        }
        Value::Object(fields) if rest.is_empty() => {
            fields.retain(|key, _| *first != "*" && key != first);
        }
        Value::Object(fields) => {
            let chosen = fields.iter_mut().filter(|(key, _)| *first == "*" || key == first);
            chosen.for_each(|(_, value)| remove(value, rest));
        }
        _ => {}
    }
}

/// Sorts lists without a defined order, the managers and the causes of an error, and removes all fields named
/// in `left_out`.
pub(crate) fn settle(value: &mut Value, left_out: &[&str]) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !left_out.contains(&key.as_str()));
            for (key, value) in fields {
                settle(value, left_out);
                if let ("managedFields" | "causes", Value::Array(items)) = (key.as_str(), value) {
                    items.sort_by_cached_key(sorted_text);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| settle(item, left_out)),
        _ => {}
    }
}

/// JSON with sorted keys, indented, for comparison and display.
pub(crate) fn sorted_text(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let mut entries: Vec<_> =
                    fields.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
                entries.sort_by(|one, other| one.0.cmp(&other.0));
                Value::Object(entries.into_iter().collect())
            }
            Value::Array(items) => items.iter().map(sorted).collect(),
            // The recorder treated 1 and 1.0 as equal.
            Value::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                    Value::from(float as i64)
                }
                _ => value.clone(),
            },
            other => other.clone(),
        }
    }
    serde_json::to_string_pretty(&sorted(value)).unwrap()
}
