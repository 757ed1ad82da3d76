//! `StorageVersionMigration`.

use k1s_object::{field::At, names};
use serde_json::{Value, json};

use crate::rules::{
    Rules, drop_status,
    helpers::{equality::unchanged, metadata::status_alone},
    keep_status,
};
use k1s_object::meta::validate_conditions as conditions;

pub(super) static RULES: Rules = Rules {
    prepare_create: drop_status,
    prepare_update: keep_status,
    prepare_status: status_alone,
    validate: create,
    validate_update: update,
    validate_status: status,
    unconditional_update: false,
    ..Rules::PLAIN
};

fn create(migration: At<'_, '_>) {
    let resource = migration.get("spec").get("resource");
    let (name, group) = (resource.get("resource"), resource.get("group"));
    if name.is_empty() {
        name.required("resource is required to be set");
    } else {
        let wrong = names::is_dns1035_label(name.text());
        if !wrong.is_empty() {
            name.invalid(wrong.join(","));
        }
    }
    let wrong = names::is_dns1123_subdomain(group.text());
    if !group.is_empty() && !wrong.is_empty() {
        group.invalid(wrong.join(","));
    }
}

fn update(migration: At<'_, '_>, old: At<'_, '_>) {
    create(migration);
    let spec = migration.get("spec");
    if !unchanged(spec, old.get("spec")) {
        let resource = spec.get("resource");
        let shown = json!({"Resource":
            {"Group": resource.get("group").text(), "Resource": resource.get("resource").text()}});
        spec.invalid_as(shown, "field is immutable");
    }
}

fn is_true(migration: At<'_, '_>, kind: &str) -> bool {
    let mut conditions = migration.get("status").get("conditions").items();
    conditions
        .find(|one| one.get("type").text() == kind)
        .is_some_and(|one| one.get("status").text() == "True")
}

fn status(migration: At<'_, '_>, old: At<'_, '_>) {
    let status = migration.get("status");
    let version = status.get("resourceVersion");
    let number = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0')
    };
    if !version.is_empty() && !number(version.text()) {
        version.invalid(format!("resource version is not well formed: {}", version.text()));
    }
    conditions(status.get("conditions"));
    let before = old.get("status").get("resourceVersion");
    if !before.is_empty() && before.text() != version.text() {
        version.invalid_text("field is immutable");
    }
    let wrong = |why: &str| {
        let shown = status.get("conditions").value().cloned().unwrap_or(Value::Null);
        status.get("conditions").invalid_as(shown, why);
    };
    if is_true(migration, "Succeeded") && is_true(migration, "Failed") {
        wrong("Both success and failed conditions cannot be true at the same time");
    }
    if is_true(old, "Succeeded") && !is_true(migration, "Succeeded") {
        wrong("Success condition cannot be set to false once it is true");
    }
    if is_true(old, "Failed") && !is_true(migration, "Failed") {
        wrong("Failed condition cannot be set to false once it is true");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing::*;

    #[test]
    fn a_migration_is_of_one_resource_for_ever() {
        assert_eq!(
            on_create(&RULES, json!({"spec": {}})),
            ["spec.resource.resource: Required value: resource is required to be set"]
        );
        let of = |name: &str| json!({"spec": {"resource": {"resource": name}}});
        assert_eq!(
            on_update(&RULES, of("secrets"), of("pods")),
            [
                "spec: Invalid value: {\"Resource\":{\"Group\":\"\",\"Resource\":\"pods\"}}: field is immutable"
            ]
        );
    }
}
