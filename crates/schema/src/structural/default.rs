//! Defaulting: missing values are filled in, and nulls give way where they mean nothing.

use serde_json::Value;

use super::{Additional, Structural};

impl Structural {
    /// Drops nulls that are neither allowed nor replaced by a default, then fills in the defaults.
    pub fn default(&self, value: &mut Value) {
        self.prune_nulls(value);
        self.fill(value);
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

    fn fill(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                for (name, property) in &self.properties {
                    let Some(default) = property.default.as_deref() else { continue };
                    match map.get_mut(name.as_ref()) {
                        None => {
                            map.insert(name.as_ref().to_owned(), default.clone());
                        }
                        Some(value) if property.is_wrong_null(value) => *value = default.clone(),
                        Some(_) => {}
                    }
                }
                for (key, value) in map.iter_mut() {
                    match (self.property(key), &self.additional) {
                        (Some(property), _) => property.fill(value),
                        (None, Additional::Schema(schema)) => schema.fill_one(value),
                        _ => {}
                    }
                }
            }
            Value::Array(list) => {
                if let Some(items) = self.items() {
                    for item in list {
                        items.fill_one(item);
                    }
                }
            }
            _ => {}
        }
    }

    fn fill_one(&self, value: &mut Value) {
        if self.is_wrong_null(value)
            && let Some(default) = self.default.as_deref()
        {
            *value = default.clone();
        }
        self.fill(value);
    }
}
