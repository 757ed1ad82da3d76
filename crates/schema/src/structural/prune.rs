//! Pruning: drops unknown fields, and coerces the metadata of embedded objects.

use std::fmt::Write as _;

use k1s_object::field::{ErrorKind, FieldError};
use serde_json::Value;

use super::{Additional, Structural};
use crate::{
    go,
    meta::{self, Malformed},
};

fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// Maximum number of recorded unknown fields; kube-apiserver reports at most 100.
const MAX_UNKNOWN: usize = 1000;

/// The path of the current value, tracked only if it is needed.
struct Trail<'r> {
    path: String,
    unknown: Option<&'r mut Vec<String>>,
}

impl Trail<'_> {
    fn key(&mut self, key: &str) -> usize {
        let length = self.path.len();
        if self.unknown.is_some() {
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(key);
        }
        length
    }

    fn index(&mut self, index: usize) -> usize {
        let length = self.path.len();
        if self.unknown.is_some() {
            let _ = write!(self.path, "[{index}]");
        }
        length
    }

    fn back(&mut self, length: usize) {
        self.path.truncate(length);
    }

    fn record(&mut self, field: &str) {
        if self.unknown.as_ref().is_some_and(|unknown| unknown.len() >= MAX_UNKNOWN) {
            return;
        }
        let length = self.key(field);
        if let Some(unknown) = self.unknown.as_deref_mut() {
            unknown.push(self.path.clone());
        }
        self.back(length);
    }
}

impl Structural {
    /// Drops from a custom resource what this schema does not specify: unknown fields, nulls that have no
    /// default and are not allowed, and unknown fields of embedded metadata.
    ///
    /// The paths of unknown fields are added to `report` in the order of kube-apiserver: sorted, those in
    /// embedded metadata last. The `apiVersion`, `kind` and `metadata` of the object itself are not changed.
    ///
    /// # Errors
    /// Embedded `apiVersion`, `kind` or `metadata` that cannot be decoded; a bad request.
    pub fn prune(&self, object: &mut Value, report: Option<&mut Vec<String>>) -> Result<(), Box<FieldError>> {
        self.prune_and_coerce(object, report, Malformed::Refuse)
    }

    /// Like [`Structural::prune`], for objects from the store: embedded metadata that cannot be decoded is
    /// dropped.
    pub fn prune_stored(&self, object: &mut Value) {
        let _ = self.prune_and_coerce(object, None, Malformed::Drop);
    }

    fn prune_and_coerce(
        &self,
        object: &mut Value,
        report: Option<&mut Vec<String>>,
        malformed: Malformed,
    ) -> Result<(), Box<FieldError>> {
        let wanted = report.is_some();
        let mut unknown = Vec::new();
        prune_value(
            object,
            Some(self),
            true,
            &mut Trail { path: String::new(), unknown: wanted.then_some(&mut unknown) },
        );
        unknown.sort();
        self.prune_nulls(object);
        let mut in_metadata = Vec::new();
        let mut path = String::new();
        coerce(object, self, false, &mut path, malformed, &mut in_metadata)?;
        in_metadata.sort();
        if let Some(report) = report {
            report.append(&mut unknown);
            report.append(&mut in_metadata);
        }
        Ok(())
    }

    /// Like [`Structural::prune`], for an object that a configuration was applied to: nulls stay, as in kube-apiserver, where
    /// validation refuses them.
    ///
    /// # Errors
    /// Embedded `apiVersion`, `kind` or `metadata` that cannot be decoded.
    pub fn prune_applied(&self, object: &mut Value) -> Result<(), Box<FieldError>> {
        prune_value(object, Some(self), true, &mut Trail { path: String::new(), unknown: None });
        coerce(object, self, false, &mut String::new(), Malformed::Refuse, &mut Vec::new())
    }

    /// Drops unknown fields from a value that is not a resource.
    pub(crate) fn prune_value(&self, value: &mut Value) {
        prune_value(value, Some(self), self.embedded, &mut Trail { path: String::new(), unknown: None });
    }

    pub(super) fn prune_default(&self, value: &mut Value) {
        let _ = coerce(value, self, self.embedded, &mut String::new(), Malformed::Drop, &mut Vec::new());
        self.prune_value(value);
        self.prune_nulls(value);
    }

    /// Like [`Structural::coerce_embedded`], for a value that is a resource whatever its schema specifies.
    pub(crate) fn coerce_embedded_root(&self, value: &mut Value) -> Result<(), Box<FieldError>> {
        coerce(value, self, true, &mut String::new(), Malformed::Refuse, &mut Vec::new())
    }

    /// Coerces embedded metadata, or returns an error at `path`.
    pub(crate) fn coerce_embedded(&self, value: &mut Value, path: &str) -> Result<(), Box<FieldError>> {
        coerce(value, self, self.embedded, &mut path.to_owned(), Malformed::Refuse, &mut Vec::new())
    }
}

fn prune_value(value: &mut Value, schema: Option<&Structural>, root: bool, trail: &mut Trail<'_>) {
    let Some(schema) = schema else {
        return prune_unknown(value, trail);
    };
    let embedded = schema.embedded || root;
    match value {
        Value::Object(map) => map.retain(|key, value| {
            if embedded && is_meta(key) {
                return true;
            }
            let child = match (schema.property(key), &schema.additional) {
                (Some(property), _) => Some(property),
                (None, Additional::Schema(schema)) => Some(schema.as_ref()),
                (None, Additional::Bool(_)) => None,
                (None, Additional::Unsaid) if schema.preserve_unknown => return true,
                (None, Additional::Unsaid) => {
                    trail.record(key);
                    return false;
                }
            };
            let length = trail.key(key);
            prune_value(value, child, false, trail);
            trail.back(length);
            true
        }),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                if schema.preserve_unknown && schema.items.is_none() {
                    return;
                }
                let length = trail.index(index);
                if schema.preserve_unknown {
                    keep_value(item, schema.items(), trail);
                } else {
                    prune_value(item, schema.items(), false, trail);
                }
                trail.back(length);
            }
        }
        _ => {}
    }
}

/// Items of a list that preserves unknown fields preserve theirs as well; known fields in them are pruned.
fn keep_value(value: &mut Value, schema: Option<&Structural>, trail: &mut Trail<'_>) {
    let Some(schema) = schema else { return };
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if schema.embedded && is_meta(key) {
                    continue;
                }
                let child = match (schema.property(key), &schema.additional) {
                    (Some(property), _) => Some(property),
                    (None, Additional::Schema(schema)) => Some(schema.as_ref()),
                    (None, Additional::Bool(_)) => None,
                    (None, Additional::Unsaid) => continue,
                };
                let length = trail.key(key);
                prune_value(value, child, false, trail);
                trail.back(length);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let length = trail.index(index);
                keep_value(item, schema.items(), trail);
                trail.back(length);
            }
        }
        _ => {}
    }
}

/// Drops all fields of a value without a schema.
fn prune_unknown(value: &mut Value, trail: &mut Trail<'_>) {
    match value {
        Value::Object(map) => {
            for key in map.keys() {
                trail.record(key);
            }
            map.clear();
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let length = trail.index(index);
                prune_unknown(item, trail);
                trail.back(length);
            }
        }
        _ => {}
    }
}

/// Coerces the type and metadata of embedded objects.
fn coerce(
    value: &mut Value,
    schema: &Structural,
    embedded: bool,
    path: &mut String,
    malformed: Malformed,
    unknown: &mut Vec<String>,
) -> Result<(), Box<FieldError>> {
    match value {
        Value::Object(map) => {
            if schema.embedded || embedded {
                for key in ["apiVersion", "kind"] {
                    match map.get(key) {
                        None | Some(Value::String(_)) => {}
                        Some(_) if malformed == Malformed::Drop => {
                            map.shift_remove(key);
                        }
                        Some(other) => {
                            return Err(Box::new(FieldError::invalid(
                                join(path, key),
                                other.clone(),
                                "must be a string",
                            )));
                        }
                    }
                }
                if let Some(metadata) = map.get_mut("metadata") {
                    let at = join(path, "metadata");
                    let before = (malformed == Malformed::Refuse).then(|| metadata.clone());
                    let mut fields = Vec::new();
                    let result = meta::coerce(metadata, malformed, &mut fields);
                    let room = MAX_UNKNOWN.saturating_sub(unknown.len());
                    unknown.extend(fields.into_iter().take(room).map(|field| format!("{at}.{field}")));
                    if let (Err(error), Some(before)) = (result, before) {
                        return Err(Box::new(FieldError::new(
                            ErrorKind::Invalid,
                            at,
                            go::shown(&before),
                            error,
                        )));
                    }
                }
            }
            for (key, value) in map.iter_mut() {
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
                coerce(value, child, false, path, malformed, unknown)?;
                path.truncate(length);
            }
        }
        Value::Array(list) => {
            let Some(items) = schema.items() else { return Ok(()) };
            for (index, item) in list.iter_mut().enumerate() {
                let length = path.len();
                let _ = write!(path, "[{index}]");
                coerce(item, items, false, path, malformed, unknown)?;
                path.truncate(length);
            }
        }
        _ => {}
    }
    Ok(())
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
