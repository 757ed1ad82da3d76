//! Defaulting: sets missing values, and drops nulls that are not allowed.

use serde_json::Value;

use super::{Additional, Structural};

/// Maximum total size of the defaults set in one object: more than can be stored.
const MAX_DEFAULT_BYTES: usize = 8 << 20;

/// The defaults of an object exceed the maximum size of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the defaults of the schema add more than {MAX_DEFAULT_BYTES} bytes to the object")]
pub struct DefaultsTooLarge;

/// A copy of a default, as long as there is room.
fn copy(default: &Value, room: &mut usize) -> Value {
    *room = room.saturating_sub(size(default));
    if *room == 0 { Value::Null } else { default.clone() }
}

/// The approximate size of a value in bytes.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => 16 + text.len(),
        Value::Array(items) => 16 + items.iter().map(size).sum::<usize>(),
        Value::Object(map) => 16 + map.iter().map(|(key, value)| 16 + key.len() + size(value)).sum::<usize>(),
        _ => 16,
    }
}

impl Structural {
    /// Drops nulls that are neither allowed nor replaced by a default, then sets the defaults.
    ///
    /// # Errors
    /// The defaults exceed the maximum size of objects: each item of a list may get a copy of a large default.
    /// The object is incomplete then.
    pub fn default(&self, value: &mut Value) -> Result<(), DefaultsTooLarge> {
        self.prune_nulls(value);
        self.set_defaults(value)
    }

    /// Sets the defaults.
    ///
    /// # Errors
    /// As [`Structural::default`].
    pub fn set_defaults(&self, value: &mut Value) -> Result<(), DefaultsTooLarge> {
        let mut room = MAX_DEFAULT_BYTES;
        self.fill(value, &mut room);
        if room == 0 { Err(DefaultsTooLarge) } else { Ok(()) }
    }

    fn is_wrong_null(&self, value: &Value) -> bool {
        value.is_null() && !self.nullable
    }

    /// Drops nulls from objects where the schema neither allows null nor has a default.
    pub(super) fn prune_nulls(&self, value: &mut Value) {
        match value {
            Value::Object(map) => map.retain(|key, value| {
                let Some(schema) = self.field(key) else { return true };
                if schema.is_wrong_null(value) && schema.default.is_none() {
                    return false;
                }
                schema.prune_nulls(value);
                true
            }),
            Value::Array(list) => {
                if let Some(items) = self.items() {
                    for item in list {
                        items.prune_nulls(item);
                    }
                }
            }
            _ => {}
        }
    }

    fn fill(&self, value: &mut Value, room: &mut usize) {
        match value {
            Value::Object(map) => {
                for (name, property) in &self.properties {
                    let Some(default) = property.default.as_deref() else { continue };
                    match map.get_mut(name.as_ref()) {
                        None => {
                            map.insert(name.as_ref().to_owned(), copy(default, room));
                        }
                        Some(value) if property.is_wrong_null(value) => *value = copy(default, room),
                        Some(_) => {}
                    }
                }
                for (key, value) in map.iter_mut() {
                    match (self.property(key), &self.additional) {
                        (Some(property), _) => property.fill(value, room),
                        (None, Additional::Schema(schema)) => schema.fill_one(value, room),
                        _ => {}
                    }
                }
            }
            Value::Array(list) => {
                if let Some(items) = self.items() {
                    for item in list {
                        items.fill_one(item, room);
                    }
                }
            }
            _ => {}
        }
    }

    fn fill_one(&self, value: &mut Value, room: &mut usize) {
        if self.is_wrong_null(value)
            && let Some(default) = self.default.as_deref()
        {
            *value = copy(default, room);
        }
        self.fill(value, room);
    }
}
