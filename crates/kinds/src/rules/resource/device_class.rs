//! `DeviceClass`.

use super::{
    checks::DeclarativeErrors,
    resource_claim::devices::{configuration, selectors},
};
use crate::rules::{Rules, helpers::equality::unchanged};
use k1s_object::{field::At, names};

pub(super) static RULES: Rules =
    Rules { validate, validate_update, generation: true, delete_answers_object: true, ..Rules::PLAIN };

fn validate(class: At<'_, '_>) {
    let later = DeclarativeErrors::default();
    validate_spec(class.get("spec"), None, &later);
    later.report(class);
}

fn validate_update(class: At<'_, '_>, old: At<'_, '_>) {
    let later = DeclarativeErrors::default();
    validate_spec(class.get("spec"), Some(old.get("spec")), &later);
    if !unchanged(class.get("spec"), old.get("spec")) {
        later.report(class);
    }
}

fn validate_spec(spec: At<'_, '_>, old: Option<At<'_, '_>>, later: &DeclarativeErrors) {
    let stored = |name: &'static str| old.is_some_and(|old| unchanged(spec.get(name), old.get(name)));
    selectors(spec.get("selectors"), stored("selectors"), later);
    let list = spec.get("config");
    if later.at_most(list, 32) {
        for config in list.items() {
            configuration(config, stored("config"), later);
        }
    }
    let name = spec.get("extendedResourceName");
    if name.is_set() {
        later.collect(name, || extended_resource_name(name));
    }
}

fn extended_resource_name(at: At<'_, '_>) {
    let name = at.text();
    if !name.contains('/') {
        at.invalid_text("a name must be a domain-prefixed path, such as 'example.com/my-prop'");
    } else if name.contains("kubernetes.io/") {
        at.invalid("must not have \"kubernetes.io/\" domain");
    }
    if name.starts_with("requests.") {
        at.invalid("must not have \"requests.\" prefix");
    }
    for message in names::is_qualified_name(&format!("requests.{name}")) {
        at.invalid_text(message);
    }
}
