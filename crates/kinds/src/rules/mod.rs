//! The rules of kinds beyond their schema: defaults, fields that clients may not set, validation, warnings,
//! selectable fields. There is a module per API group, and in it a file or folder per kind.
//!
//! Rules see objects as JSON after the decoder of [`crate::table`]: fields have their types, unknown fields are
//! dropped, `null` is absent. A missing field means the zero value of Go. Error messages are those of
//! Kubernetes.
//!
//! The rules of a kind are a `static` [`Rules`]; [`rules`] finds it.

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

/// The strategy of a kind: what the server does with its objects beyond decoding them.
#[derive(Debug)]
pub struct Rules {
    /// Sets defaults. Applied to every decoded object of this kind, sent or stored.
    pub defaults: fn(&mut Value),
    /// Before a create: drops fields that a client may not set (a status), sets those of the server.
    pub prepare_create: fn(&mut Value),
    /// Before an update through the main resource: restores from `old` the fields that a client may not change
    /// (a status).
    pub prepare_update: fn(new: &mut Value, old: &Value),
    /// Before an update of `/status`: restores from `old` the fields that `/status` may not change.
    pub prepare_status: fn(new: &mut Value, old: &Value),
    /// Sets the timestamps that the server controls (`now` in the format of `metav1.Time`). Called after the
    /// preparation on create (`old` is `None`) and update, also of subresources.
    pub stamp_times: fn(new: &mut Value, old: Option<&Value>, now: &str),
    /// Validates on create. Metadata has already been validated.
    pub validate: fn(At<'_, '_>),
    /// Validates an update of `old`.
    pub validate_update: fn(new: At<'_, '_>, old: At<'_, '_>),
    /// Validates an update of `/status`.
    pub validate_status: fn(new: At<'_, '_>, old: At<'_, '_>),
    /// The warnings (`Warning` headers) on create (`old` is `None`) and update.
    pub warnings: fn(new: &Value, old: Option<&Value>, out: &mut Vec<String>),
    /// The format of `metadata.name`.
    pub name: NameRule,
    /// Whether `metadata.generation` counts the changes of the spec (everything but metadata and status).
    pub generation: bool,
    /// Whether a change of annotations through the main resource counts as well (Deployment).
    pub annotations_in_generation: bool,
    /// Whether a PUT without resourceVersion is an unconditional update (else 422).
    pub unconditional_update: bool,
    /// Whether a PUT of a missing object creates it (else 404).
    pub create_on_update: bool,
    /// Whether DELETE responds with the deleted object (else with a Status).
    pub delete_answers_object: bool,
    /// Whether a DELETE without a propagation policy orphans the dependents.
    pub orphans_by_default: bool,
    /// The fields that a field selector may name besides `metadata.name` and `metadata.namespace`.
    pub fields: &'static [SelectableField],
    /// The error for other fields.
    pub field_error: FieldLabelError,
    /// A warning on every response about this kind, whatever the verb; empty for most kinds.
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

/// The error for an unknown field in a field selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldLabelError {
    /// `"x" is not a known field selector: only "metadata.name", "metadata.namespace"`
    OnlyMetadata,
    /// `field label not supported: x`
    NotSupported,
    /// `field label "x" not supported for Job`, with the kind
    Quoted(&'static str),
    /// `field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: x`, with the kind
    NotSupportedFor(&'static str),
}

/// The format of the name of an object.
#[derive(Debug, Clone, Copy)]
pub enum NameRule {
    /// RFC 1123 subdomain: lower case, digits, `-` and `.`; at most 253.
    Subdomain,
    /// RFC 1123 label: lower case, digits and `-`; at most 63.
    Label,
    /// RFC 1035 label: begins with a letter; at most 63.
    Label1035,
    /// Any path segment: not `.` or `..`, without `/` and `%`.
    PathSegment,
    /// A format of its own: the errors in a name (`prefix`: in a generateName).
    Own(fn(name: &str, prefix: bool) -> Vec<String>),
}

fn nothing(_: &mut Value) {}
fn nothing_update(_: &mut Value, _: &Value) {}
fn no_times(_: &mut Value, _: Option<&Value>, _: &str) {}
fn no_check(_: At<'_, '_>) {}
fn no_check_update(_: At<'_, '_>, _: At<'_, '_>) {}
fn no_warnings(_: &Value, _: Option<&Value>, _: &mut Vec<String>) {}

/// Replaces all fields but the status and the metadata by those of `old`.
pub fn only_status(new: &mut Value, old: &Value) {
    let (Some(new), Some(old)) = (new.as_object_mut(), old.as_object()) else { return };
    new.retain(|key, _| key == "metadata" || key == "status" || key == "kind" || key == "apiVersion");
    for (key, value) in old {
        if !matches!(key.as_str(), "metadata" | "status" | "kind" | "apiVersion") {
            new.insert(key.clone(), value.clone());
        }
    }
}

/// Restores the status of `old`.
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

/// Removes the status, which a client may not set on create.
pub fn drop_status(new: &mut Value) {
    if let Some(new) = new.as_object_mut() {
        new.shift_remove("status");
    }
}

impl Rules {
    /// A kind without rules of its own, and the base of all others.
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

/// The rules of a kind. Kinds whose versions differ (HorizontalPodAutoscaler, Event) have rules per version.
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
