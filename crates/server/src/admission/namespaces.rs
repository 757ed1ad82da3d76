//! The life of a namespace: nothing is created where there is none or where it is going.

use k1s_object::{Status, status::Cause};
use k1s_store::{Action, Op, Precondition};
use serde_json::Value;

use crate::{context::Cx, objectmeta::meta_text};

/// The namespace of a new object must be there, and must stay: the condition says that it is as it was looked at, so
/// nothing comes into a namespace that is deleted at the same moment.
pub(super) async fn require(cx: &Cx, object: &Value) -> Result<Op, Status> {
    let namespace = &cx.namespace;
    let key = cx.tenant.keys_of("", "namespaces", "") + namespace;
    let Some(stored) = cx.tenant.get(key.as_bytes()).await? else {
        return Err(Status::not_found("", "namespaces", namespace));
    };
    // Only an object being deleted has this field; looking for the text is quicker than parsing, and parsing decides.
    let marked = memchr::memmem::find(stored.json(), b"\"deletionTimestamp\"").is_some()
        && !meta_text(
            &stored.to_value("Namespace", "v1").map_err(|why| cx.tenant.unreadable(key.as_bytes(), &why))?,
            "deletionTimestamp",
        )
        .is_empty();
    if marked {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut status = super::forbidden(cx, object, why);
        if let Some(details) = &mut status.details {
            details.causes.push(Cause {
                reason: "NamespaceTerminating".into(),
                message: format!("namespace {namespace} is being terminated"),
                field: "metadata.namespace".into(),
            });
        }
        return Err(status);
    }
    let precondition = Precondition::Revision(stored.revision);
    Ok(Op { key: key.into(), precondition, action: Action::Check })
}

/// The namespaces of the system stay.
pub(super) fn may_be_deleted(cx: &Cx, old: &Value) -> Result<(), Status> {
    let protected =
        super::is(cx, "", "Namespace") && matches!(&*cx.name, "default" | "kube-system" | "kube-public");
    if protected && !old.is_null() {
        return Err(super::refused(cx, &cx.name, "this namespace may not be deleted"));
    }
    Ok(())
}
