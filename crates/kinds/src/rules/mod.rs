//! What a kind does beyond its schema: defaults, what a client may not set, validation, warnings, selectable fields.
//!
//! Rules see objects as JSON that has been through [`crate::table`]'s decoder: fields have their types, unknown ones
//! are gone, and `null` is absent. A missing field means Go's zero value. What is wrong is said in Kubernetes' words.
//!
//! The rules of a kind are a `static` [`Rules`] in the module of its group; [`rules`] finds it.

pub mod admissionregistration;
mod apiregistration;
mod apps;
pub mod authentication;
pub mod authorization;
pub mod autoscaling;
pub mod batch;
pub mod certificates;
mod coordination;
pub mod core;
mod discovery;
mod events;
mod flowcontrol;
pub(crate) mod helpers;
pub mod networking;
mod node;
pub mod policy;
pub mod rbac;
mod resource;
pub(crate) mod scheduling;
mod storage;
mod storagemigration;
#[cfg(test)]
mod tests;

use k1s_object::field::At;
use serde_json::Value;

/// What the server needs to know of a kind beyond its schema.
#[derive(Debug)]
pub struct Rules {
    /// Fills in what a client left out. Applied to every decoded object of this kind, sent or stored.
    pub defaults: fn(&mut Value),
    /// Before a create: drops what a client may not set (a status), sets what the server sets.
    pub prepare_create: fn(&mut Value),
    /// Before an update through the main resource: keeps from `old` what a client may not change (a status).
    pub prepare_update: fn(new: &mut Value, old: &Value),
    /// Before an update of `/status`: keeps from `old` all that `/status` may not change.
    pub prepare_status: fn(new: &mut Value, old: &Value),
    /// Sets the times that are the server's to set (`now` as `metav1.Time` prints it). Called after the preparation,
    /// on create (`old` is `None`) and update, of subresources too.
    pub stamp_times: fn(new: &mut Value, old: Option<&Value>, now: &str),
    /// Is it right, on create? Metadata was looked at before.
    pub validate: fn(At<'_, '_>),
    /// Is it right, after an update of `old`?
    pub validate_update: fn(new: At<'_, '_>, old: At<'_, '_>),
    /// Is it right, after an update of `/status`?
    pub validate_status: fn(new: At<'_, '_>, old: At<'_, '_>),
    /// What to warn about (`Warning` headers) on create (`old` is `None`) and update.
    pub warnings: fn(new: &Value, old: Option<&Value>, out: &mut Vec<String>),
    /// What `metadata.name` must look like.
    pub name: NameRule,
    /// Whether `metadata.generation` counts the changes of the spec (everything but metadata and status).
    pub generation: bool,
    /// Whether a change of the annotations through the main resource counts, too (Deployment).
    pub annotations_in_generation: bool,
    /// Whether a PUT without resourceVersion is an unconditional update (else 422).
    pub unconditional_update: bool,
    /// Whether a PUT of an object that is not there creates it (else 404).
    pub create_on_update: bool,
    /// Whether DELETE answers with the deleted object (else with a Status).
    pub delete_answers_object: bool,
    /// Whether a DELETE without a policy leaves the dependents as orphans.
    pub orphans_by_default: bool,
    /// The fields that a field selector may name besides `metadata.name` and `metadata.namespace`.
    pub fields: &'static [SelectableField],
    /// The text of the error for other fields.
    pub field_error: FieldLabelError,
    /// A warning that every answer about this kind carries, whatever the verb; empty for most.
    pub deprecated: &'static str,
}

/// A field that a field selector may name.
#[derive(Debug)]
pub struct SelectableField {
    /// `status.phase`
    pub path: &'static str,
    /// Its value in an object, empty when missing.
    pub read: fn(&Value) -> String,
}

/// How the server refuses an unknown field in a field selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldLabelError {
    /// `"x" is not a known field selector: only "metadata.name", "metadata.namespace"`
    OnlyMetadata,
    /// `field label not supported: x`
    NotSupported,
    /// `field label "x" not supported for Job`, with the kind
    Quoted(&'static str),
    /// `field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: x`: of this kind
    NotSupportedFor(&'static str),
}

/// What the name of an object must look like.
#[derive(Debug, Clone, Copy)]
pub enum NameRule {
    /// RFC 1123 subdomain: lower case, digits, `-` and `.`; at most 253.
    Subdomain,
    /// RFC 1123 label: lower case, digits and `-`; at most 63.
    Label,
    /// RFC 1035 label: begins with a letter; at most 63.
    Label1035,
    /// Anything that fits into a path segment: not `.` or `..`, no `/` and no `%`.
    PathSegment,
    /// A rule of its own: what is wrong with a name (`prefix` when it is a generateName).
    Own(fn(name: &str, prefix: bool) -> Vec<String>),
}

fn nothing(_: &mut Value) {}
fn nothing_update(_: &mut Value, _: &Value) {}
fn no_times(_: &mut Value, _: Option<&Value>, _: &str) {}
fn no_check(_: At<'_, '_>) {}
fn no_check_update(_: At<'_, '_>, _: At<'_, '_>) {}
fn no_warnings(_: &Value, _: Option<&Value>, _: &mut Vec<String>) {}

/// Everything of `old` but the new status, and the new metadata (as the server lets metadata change).
pub fn only_status(new: &mut Value, old: &Value) {
    let (Some(new), Some(old)) = (new.as_object_mut(), old.as_object()) else { return };
    new.retain(|key, _| key == "metadata" || key == "status" || key == "kind" || key == "apiVersion");
    for (key, value) in old {
        if !matches!(key.as_str(), "metadata" | "status" | "kind" | "apiVersion") {
            new.insert(key.clone(), value.clone());
        }
    }
}

/// The status of `old` instead of what was sent.
pub fn keep_status(new: &mut Value, old: &Value) {
    let Some(new) = new.as_object_mut() else { return };
    match old.get("status") {
        Some(status) => {
            new.insert("status".into(), status.clone());
        }
        None => {
            new.shift_remove("status");
        }
    }
}

/// Removes the status: a client cannot create an object with one.
pub fn drop_status(new: &mut Value) {
    if let Some(new) = new.as_object_mut() {
        new.shift_remove("status");
    }
}

impl Rules {
    /// A kind without rules of its own: what other rules start from.
    pub const PLAIN: Rules = Rules {
        defaults: nothing,
        prepare_create: nothing,
        prepare_update: nothing_update,
        prepare_status: only_status,
        stamp_times: no_times,
        validate: no_check,
        validate_update: no_check_update,
        validate_status: no_check_update,
        warnings: no_warnings,
        name: NameRule::Subdomain,
        generation: false,
        annotations_in_generation: false,
        unconditional_update: true,
        create_on_update: false,
        delete_answers_object: false,
        orphans_by_default: false,
        fields: &[],
        field_error: FieldLabelError::OnlyMetadata,
        deprecated: "",
    };

    /// A kind with a spec, a status subresource and a generation that counts changes of the spec.
    pub const WITH_STATUS: Rules =
        Rules { prepare_create: drop_status, prepare_update: keep_status, generation: true, ..Rules::PLAIN };
}

static PLAIN: Rules = Rules::PLAIN;

/// The rules of a kind. Kinds with several versions that differ (HorizontalPodAutoscaler, Event) have rules per version.
pub fn rules(group: &str, version: &str, kind: &str) -> &'static Rules {
    find(group, version, kind).unwrap_or(&PLAIN)
}

fn find(group: &str, version: &str, kind: &str) -> Option<&'static Rules> {
    match group {
        "" => core::rules(kind),
        "admissionregistration.k8s.io" => admissionregistration::rules(kind),
        "apiregistration.k8s.io" => apiregistration::rules(kind),
        "apps" => apps::rules(kind),
        "authentication.k8s.io" => authentication::rules(kind),
        "authorization.k8s.io" => authorization::rules(kind),
        "autoscaling" => autoscaling::rules(version, kind),
        "batch" => batch::rules(kind),
        "certificates.k8s.io" => certificates::rules(kind),
        "coordination.k8s.io" => coordination::rules(kind),
        "discovery.k8s.io" => discovery::rules(kind),
        "events.k8s.io" => events::rules(kind),
        "flowcontrol.apiserver.k8s.io" => flowcontrol::rules(kind),
        "networking.k8s.io" => networking::rules(kind),
        "node.k8s.io" => node::rules(kind),
        "policy" => policy::rules(kind),
        "rbac.authorization.k8s.io" => rbac::rules(kind),
        "resource.k8s.io" => resource::rules(kind),
        "scheduling.k8s.io" => scheduling::rules(kind),
        "storage.k8s.io" => storage::rules(kind),
        "storagemigration.k8s.io" => storagemigration::rules(kind),
        _ => None,
    }
}
