//! The parts of an object that can be updated separately, and their rules.

use k1s_kinds::rules::{
    certificates::certificate_signing_request as csr,
    core::{namespace, pod},
};
use k1s_object::field::At;
use serde_json::Value;

/// Which part of an object an update may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status.
    Main,
    /// `/status`
    Status,
    /// `/finalize` of a namespace.
    Finalize,
    /// `/approval` of a certificate signing request.
    Approval,
    /// `/ephemeralcontainers` of a pod.
    EphemeralContainers,
    /// `/resize` of a pod.
    Resize,
    /// Changes by a subresource with its own kind (Scale, Binding, Eviction) or by the server itself.
    Internal,
}

/// Before an update of a part with its own rules.
pub(crate) fn prepare(part: Part, new: &mut Value, old: &Value) {
    match part {
        Part::Finalize => namespace::prepare_finalize(new, old),
        Part::Approval => csr::prepare_approval(new, old),
        Part::EphemeralContainers => pod::prepare_ephemeral_containers(new, old),
        Part::Resize => pod::prepare_resize(new, old),
        Part::Main | Part::Status | Part::Internal => {}
    }
}

/// Validates an update of such a part.
pub(crate) fn validate(part: Part, new: At<'_, '_>, old: At<'_, '_>) {
    match part {
        Part::Finalize => namespace::validate_finalize(new, old),
        Part::Approval => csr::validate_approval(new, old),
        Part::EphemeralContainers => pod::validate_ephemeral_containers(new, old),
        Part::Resize => pod::validate_resize(new, old),
        Part::Main | Part::Status | Part::Internal => {}
    }
}
