//! `VolumeAttributesClass`.

use super::storage_class::{parameters, provisioner};
use crate::rules::{
    Rules,
    helpers::{equality::unchanged, metadata::add_finalizer, text::required},
};
use k1s_object::field::At;
use serde_json::Value;

pub(super) static RULES: Rules =
    Rules { prepare_create, validate, validate_update, delete_answers_object: true, ..Rules::PLAIN };

/// The finalizer protects a class that volumes use.
fn prepare_create(class: &mut Value) {
    add_finalizer(class, "kubernetes.io/vac-protection");
}

fn validate(class: At<'_, '_>) {
    let driver = class.get("driverName");
    required(driver);
    provisioner(driver);
    parameters(class.get("parameters"));
    if class.get("parameters").is_empty() {
        class.get("parameters").required("must contain at least one key/value pair");
    }
}

fn validate_update(class: At<'_, '_>, old: At<'_, '_>) {
    for (name, why) in [
        ("driverName", "updates to driverName are forbidden."),
        ("parameters", "updates to parameters are forbidden."),
    ] {
        if !unchanged(class.get(name), old.get(name)) {
            class.get(name).forbidden(why);
        }
    }
    validate(class);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing::*;
    use serde_json::json;

    #[test]
    fn attributes_name_a_driver_and_stay() {
        assert_eq!(
            on_create(&RULES, json!({})),
            [
                "driverName: Required value",
                "parameters: Required value: must contain at least one key/value pair",
            ]
        );
        let class = |iops: &str| json!({"driverName": "d.example.com", "parameters": {"iops": iops}});
        assert_eq!(
            on_update(&RULES, class("100"), class("200")),
            ["parameters: Forbidden: updates to parameters are forbidden."]
        );
    }
}
