//! `ConfigMap`: keys, total size and immutability.

use k1s_object::{At, FieldError, names};

use crate::rules::{
    Rules,
    helpers::{equality::same_pointers, immutable::IMMUTABLE_WHEN_SET, json::bytes_len},
};

/// Maximum total size in bytes of the values of a `ConfigMap` or a Secret.
pub(super) const MAX_SIZE: usize = 1024 * 1024;

pub(super) static RULES: Rules = Rules { validate, validate_update, ..Rules::PLAIN };

fn validate(at: At<'_, '_>) {
    let mut size = 0usize;
    let binary = at.get("binaryData");
    for (key, value) in at.get("data").entries() {
        for message in names::is_config_map_key(key) {
            value.invalid_as(key, message);
        }
        if binary.map().is_some_and(|map| map.contains_key(key)) {
            value.invalid_as(key, "duplicate of key present in binaryData");
        }
        size = size.saturating_add(value.text().len());
    }
    for (key, value) in binary.entries() {
        for message in names::is_config_map_key(key) {
            value.invalid_as(key, message);
        }
        size = size.saturating_add(bytes_len(value.text()));
    }
    if size > MAX_SIZE {
        // The path of this error in Kubernetes is a single empty index.
        at.check().push(FieldError::too_long("[]", MAX_SIZE));
    }
}

fn validate_update(new: At<'_, '_>, old: At<'_, '_>) {
    if old.get("immutable").is_true() {
        if !new.get("immutable").is_true() {
            new.get("immutable").forbidden(IMMUTABLE_WHEN_SET);
        }
        for field in ["data", "binaryData"] {
            if !same_pointers(new.get(field).value(), old.get(field).value()) {
                new.get(field).forbidden(IMMUTABLE_WHEN_SET);
            }
        }
    }
    validate(new);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::testing;

    #[test]
    fn keys_are_checked_in_both_maps() {
        assert_eq!(
            testing::on_create(&RULES, json!({"data": {"..": "x", "k": "v"}, "binaryData": {"k": "YQ=="}})),
            [
                "data[..]: Invalid value: \"..\": must not be '..'",
                "data[k]: Invalid value: \"k\": duplicate of key present in binaryData",
            ]
        );
    }

    #[test]
    fn all_values_together_have_a_limit() {
        let object = json!({"data": {"k": "x".repeat(MAX_SIZE - 2)}, "binaryData": {"b": "YWJj"}});
        assert_eq!(testing::on_create(&RULES, object), ["[]: Too long: may not be more than 1048576 bytes"]);
        let object = json!({"data": {"k": "x".repeat(MAX_SIZE - 3)}, "binaryData": {"b": "YWJj"}});
        assert!(testing::on_create(&RULES, object).is_empty());
    }

    #[test]
    fn an_immutable_one_keeps_its_data() {
        let old = json!({"immutable": true, "data": {"k": "v"}, "binaryData": {"b": "YQ=="}});
        assert_eq!(
            testing::on_update(&RULES, old.clone(), json!({"data": {"k": "w"}})),
            [
                "immutable: Forbidden: field is immutable when `immutable` is set",
                "data: Forbidden: field is immutable when `immutable` is set",
                "binaryData: Forbidden: field is immutable when `immutable` is set",
            ]
        );
        assert!(testing::on_update(&RULES, old.clone(), old).is_empty());
    }
}
