//! Preconditions that requests and objects carry: resourceVersions and UIDs.

use k1s_object::{FieldError, Status, field::quote};
use serde_json::Value;

use super::{Update, modified};
use crate::{context::Cx, errors::Error, objectmeta::meta_text, parts::Part, stored::Stored};

/// The resourceVersion of an object as a number, 0 if it has none.
pub(super) fn revision_number(text: &str) -> Result<u64, Status> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        Status::new(500, "", format!("strconv.ParseUint: parsing {}: invalid syntax", quote(text)))
    })
}

/// Compares resourceVersions. `true`: the client sent one, so a conflict is returned instead of retried.
pub(super) fn check_revision(
    cx: &Cx,
    update: &Update<'_>,
    new: &Value,
    stored: &Stored,
) -> Result<bool, Error> {
    let number = revision_number(meta_text(new, "resourceVersion"))?;
    if number == 0 {
        if !cx.resource.unconditional_update() && update.part != Part::Internal && update.uid_is_precondition
        {
            let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            return Err(Status::invalid(&cx.resource.group, &cx.resource.plural, &cx.name, &[error]).into());
        }
        return Ok(false);
    }
    if number != stored.revision.get() {
        return Err(modified(cx).into());
    }
    Ok(update.uid_is_precondition)
}

pub(super) fn check_uid(cx: &Cx, update: &Update<'_>, new: &Value, old: &Value) -> Result<(), Error> {
    let (sent, kept) = (meta_text(new, "uid"), meta_text(old, "uid"));
    if update.uid_is_precondition && !sent.is_empty() && sent != kept {
        return Err(uid_conflict(cx, sent, kept).into());
    }
    Ok(())
}

/// 409: an applied configuration has a UID, and there is no object.
pub(super) fn nothing_has_uid(cx: &Cx, uid: &str) -> Status {
    let why =
        format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
    Status::conflict(&cx.resource.group, &cx.resource.plural, &cx.name, why)
}

/// 409: the UID precondition does not match.
pub(crate) fn uid_conflict(cx: &Cx, sent: &str, kept: &str) -> Status {
    let resource = &cx.resource;
    // The key in kube-apiserver's storage.
    let place = match (&*resource.group, &*resource.plural) {
        ("", "services") => "services/specs".to_owned(),
        ("", "endpoints") => "services/endpoints".to_owned(),
        ("", "nodes") => "minions".to_owned(),
        ("", "replicationcontrollers") => "controllers".to_owned(),
        ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
        (group @ ("apiextensions.k8s.io" | "apiregistration.k8s.io"), plural) => format!("{group}/{plural}"),
        (group, plural) if resource.is_custom() => format!("{group}/{plural}"),
        (_, plural) => plural.to_owned(),
    };
    let slash = if cx.namespace.is_empty() { "" } else { "/" };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{place}/{}{slash}{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {sent}, UID in object meta: {kept}",
        cx.namespace, cx.name
    );
    Status::conflict(&resource.group, &resource.plural, &cx.name, why)
}
