//! Validation of `metadata`.
//!
//! [`validate_create`] and [`validate_update`] apply to all kinds; [`validate_kube_finalizers`] to the built-in
//! ones.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::decode::parse_group_version;
use crate::field::{At, FieldError, quote};
use crate::names::{is_qualified_name, is_valid_condition_reason, is_valid_label_value, name_is_dns_label};
use crate::time::Time;

/// Maximum total size of the annotations of an object in bytes.
pub const TOTAL_ANNOTATION_SIZE_LIMIT: usize = 256 * 1024;

/// The error detail for an immutable field.
pub const FIELD_IMMUTABLE: &str = "field is immutable";

/// The error detail for a negative number.
pub const IS_NEGATIVE: &str = "must be greater than or equal to 0";

const FIELD_MANAGER_MAX_LENGTH: usize = 128;
const MAX_SUBRESOURCE_NAME_LENGTH: usize = 256;

/// Validates the metadata of an object on create; its name has already been generated. `name_rule` gets the name
/// and whether it is a prefix (`generateName`).
pub fn validate_create(meta: At<'_, '_>, namespaced: bool, name_rule: &dyn Fn(&str, bool) -> Vec<String>) {
    let generate_name = meta.get("generateName");
    if !generate_name.is_empty() {
        for error in name_rule(generate_name.text(), true) {
            generate_name.invalid_text(error);
        }
    }
    let name = meta.get("name");
    if name.is_empty() {
        name.required("name or generateName is required");
    } else {
        for error in name_rule(name.text(), false) {
            name.invalid_text(error);
        }
    }
    let namespace = meta.get("namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => namespace.required(""),
        (true, false) => {
            for error in name_is_dns_label(namespace.text(), false) {
                namespace.invalid_text(error);
            }
        }
        (false, false) => namespace.forbidden("not allowed on this type"),
        (false, true) => {}
    }
    validate_common(meta);
}

/// Checks on create and on update.
pub fn validate_common(meta: At<'_, '_>) {
    validate_nonnegative(meta.get("generation"));
    validate_labels(meta.get("labels"));
    validate_annotations(meta.get("annotations"));
    validate_owner_references(meta.get("ownerReferences"));
    validate_finalizers(meta.get("finalizers"));
    validate_managed_fields(meta.get("managedFields"));
}

/// Validates the metadata of an object on update. Both positions are those of `metadata`.
pub fn validate_update(new: At<'_, '_>, old: At<'_, '_>) {
    if old.get("deletionTimestamp").is_set() {
        validate_no_new_finalizers(new.get("finalizers"), old.get("finalizers"));
    }
    let version = new.get("resourceVersion");
    if version.is_empty() {
        version.invalid_text("must be specified for an update");
    }
    let generation = new.get("generation");
    validate_nonnegative(generation);
    if generation.number() < old.get("generation").number() {
        generation.invalid_as(generation.number(), "must not be decremented");
    }
    for field in ["name", "namespace", "uid"] {
        if new.get(field).text() != old.get(field).text() {
            new.get(field).invalid_text(FIELD_IMMUTABLE);
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if !same_time(new.get(field), old.get(field)) {
            new.get(field).invalid(FIELD_IMMUTABLE);
        }
    }
    let grace = new.get("deletionGracePeriodSeconds");
    if grace.int() != old.get("deletionGracePeriodSeconds").int() {
        grace.invalid(FIELD_IMMUTABLE);
    }
    validate_labels(new.get("labels"));
    validate_annotations(new.get("annotations"));
    validate_owner_references(new.get("ownerReferences"));
    validate_managed_fields(new.get("managedFields"));
}

/// An additional check of built-in kinds, on create and on update: a finalizer has a domain or is a standard
/// one.
pub fn validate_kube_finalizers(meta: At<'_, '_>) {
    for finalizer in meta.get("finalizers").items() {
        let name = finalizer.text();
        if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
            finalizer.invalid_text("name is neither a standard finalizer name nor is it fully qualified");
        }
    }
}

fn same_time(new: At<'_, '_>, old: At<'_, '_>) -> bool {
    let moment = |at: At<'_, '_>| Time::parse(at.text()).ok();
    new.text() == old.text() || matches!((moment(new), moment(old)), (Some(new), Some(old)) if new == old)
}

/// A number that may not be negative.
pub fn validate_nonnegative(at: At<'_, '_>) {
    if at.number() < 0 {
        at.invalid(IS_NEGATIVE);
    }
}

/// A field that may not change; the error shows the new value.
pub fn validate_immutable_field(new: At<'_, '_>, old: At<'_, '_>) {
    let set = |at: At<'_, '_>| at.value().filter(|value| !value.is_null()).cloned();
    if set(new) != set(old) {
        new.invalid(FIELD_IMMUTABLE);
    }
}

/// The key of a label.
pub fn validate_label_name(at: At<'_, '_>) {
    for error in is_qualified_name(at.text()) {
        at.invalid_text(error);
    }
}

/// Labels: keys and values. Errors name the map, not the entry.
pub fn validate_labels(at: At<'_, '_>) {
    for (key, value) in at.map().into_iter().flatten() {
        for error in is_qualified_name(key) {
            at.invalid_as(key.as_str(), error);
        }
        let value = value.as_str().unwrap_or_default();
        for error in is_valid_label_value(value) {
            at.invalid_as(value, error);
        }
    }
}

/// Annotations: keys, and the total size.
pub fn validate_annotations(at: At<'_, '_>) {
    let mut size = 0_usize;
    for (key, value) in at.map().into_iter().flatten() {
        for error in is_qualified_name(&key.to_lowercase()) {
            at.invalid_as(key.as_str(), error);
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > TOTAL_ANNOTATION_SIZE_LIMIT {
        at.too_long(TOTAL_ANNOTATION_SIZE_LIMIT);
    }
}

/// An owner reference as errors show it, with its fields in Go's order.
fn shown_owner_reference(at: At<'_, '_>) -> Value {
    let mut map = Map::new();
    for field in ["apiVersion", "kind", "name", "uid"] {
        map.insert(field.into(), at.get(field).text().into());
    }
    for field in ["controller", "blockOwnerDeletion"] {
        if let Some(value) = at.get(field).bool() {
            map.insert(field.into(), value.into());
        }
    }
    Value::Object(map)
}

/// Owner references: complete, and at most one is the controller.
pub fn validate_owner_references(at: At<'_, '_>) {
    let mut controller: Option<String> = None;
    for reference in at.items() {
        let [api_version, kind, name, uid] =
            ["apiVersion", "kind", "name", "uid"].map(|field| reference.get(field));
        let parsed = parse_group_version(api_version.text());
        if api_version.is_empty() {
            api_version.required("must not be empty");
        } else if !matches!(parsed, Ok((_, version)) if !version.is_empty()) {
            api_version.invalid_text("must be <group>/<version> or <version>");
        }
        for field in [kind, name, uid] {
            if field.is_empty() {
                field.required("must not be empty");
            }
        }
        if parsed == Ok(("", "v1")) && kind.text() == "Event" {
            reference.invalid_as(
                shown_owner_reference(reference),
                "/v1, Kind=Event is disallowed from being an owner",
            );
        }
        if reference.get("controller").is_true() {
            let this = format!("{}/{}", kind.text(), name.text());
            match &controller {
                None => controller = Some(this),
                Some(_) if at.check().is_full() => at.check().push(FieldError::omitted(1)),
                Some(first) => {
                    let all: Vec<Value> = at.items().map(shown_owner_reference).collect();
                    at.invalid_as(
                        all,
                        format!(
                            "Only one reference can have Controller set to true. Found \"true\" in references for \
                             {first} and {this}"
                        ),
                    );
                }
            }
        }
    }
}

/// Finalizers: qualified names; orphaning and foreground deletion exclude each other.
pub fn validate_finalizers(at: At<'_, '_>) {
    let mut orphan = false;
    let mut foreground = false;
    for finalizer in at.items() {
        let name = finalizer.text();
        for error in is_qualified_name(name) {
            at.invalid_as(name, error);
        }
        orphan |= name == "orphan";
        foreground |= name == "foregroundDeletion";
    }
    if orphan && foreground {
        at.invalid("finalizer orphan and foregroundDeletion cannot be both set");
    }
}

fn validate_no_new_finalizers(new: At<'_, '_>, old: At<'_, '_>) {
    let old: BTreeSet<&str> = old.items().map(At::text).collect();
    let extra: BTreeSet<&str> = new.items().map(At::text).filter(|name| !old.contains(name)).collect();
    if !extra.is_empty() {
        let list: Vec<String> = extra.into_iter().map(quote).collect();
        new.forbidden(format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            list.join(", ")
        ));
    }
}

/// The name of a field manager: short and printable.
pub fn validate_field_manager(at: At<'_, '_>) {
    let manager = at.text();
    if manager.len() > FIELD_MANAGER_MAX_LENGTH {
        at.too_long(FIELD_MANAGER_MAX_LENGTH);
    }
    for (position, c) in manager.char_indices().filter(|(_, c)| !is_print(*c)) {
        let code = u32::from(c);
        at.invalid_text(format!("invalid character U+{code:04X} (at position {position})"));
    }
}

/// An approximation of Go's `unicode.IsPrint`: the only space is the ASCII one.
fn is_print(c: char) -> bool {
    let invisible = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{f0000}'..);
    c == ' ' || !(c.is_control() || c.is_whitespace() || invisible)
}

/// The form of the entries of `managedFields`.
pub fn validate_managed_fields(at: At<'_, '_>) {
    for entry in at.items() {
        let operation = entry.get("operation");
        match operation.text() {
            "" => operation.required("must not be empty"),
            "Apply" | "Update" => {}
            _ => operation.not_supported(&["Apply", "Update"]),
        }
        let fields_type = entry.get("fieldsType");
        if !fields_type.is_empty() && fields_type.text() != "FieldsV1" {
            fields_type.invalid_text("must be `FieldsV1`");
        }
        validate_field_manager(entry.get("manager"));
        if entry.get("subresource").text().len() > MAX_SUBRESOURCE_NAME_LENGTH {
            entry.get("subresource").too_long(MAX_SUBRESOURCE_NAME_LENGTH);
        }
    }
}

/// A list of `metav1.Condition`.
pub fn validate_conditions(at: At<'_, '_>) {
    let mut types = BTreeSet::new();
    for condition in at.items() {
        if !types.insert(condition.get("type").text()) {
            let path = condition.path();
            condition.check().push(FieldError::duplicate(path, condition.get("type").text()));
        }
        validate_condition(condition);
    }
}

/// A `metav1.Condition`.
pub fn validate_condition(at: At<'_, '_>) {
    if at.get("type").is_empty() {
        at.get("type").required("is required");
    } else {
        validate_label_name(at.get("type"));
    }
    let status = at.get("status");
    match status.text() {
        "" => status.required(""),
        "True" | "False" | "Unknown" => {}
        _ => status.not_supported(&["False", "True", "Unknown"]),
    }
    let generation = at.get("observedGeneration");
    if generation.number() < 0 {
        generation.invalid("must be greater than or equal to zero");
    }
    if at.get("lastTransitionTime").is_empty() {
        at.get("lastTransitionTime").required("");
    }
    let reason = at.get("reason");
    if reason.is_empty() {
        reason.required("");
    } else {
        for error in is_valid_condition_reason(reason.text()) {
            reason.invalid_text(error);
        }
        if reason.text().len() > 1024 {
            reason.too_long(1024);
        }
    }
    if at.get("message").text().len() > 32 * 1024 {
        at.get("message").too_long(32 * 1024);
    }
}

#[cfg(test)]
#[path = "meta_tests.rs"]
mod tests;
