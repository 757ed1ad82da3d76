//! `NamespaceLifecycle`: nothing is created in a namespace that does not exist or is terminating.

use bytes::Bytes;
use k1s_kinds::admission::pod_security::LABEL_PREFIX;
use k1s_object::{Status, status::Cause};
use k1s_store::{Action, Op, Precondition};
use serde_json::Value;

use crate::{cache::Fact, context::Cx, objectmeta::meta_text, stored::Stored};

pub(super) fn key(cx: &Cx) -> Bytes {
    (cx.tenant.keys_of("", "namespaces", "") + &cx.namespace).into()
}

/// Requires that the namespace of a new object exists and is not terminating. The returned precondition is its revision,
/// so nothing is created in a namespace that is deleted concurrently. A known revision is not read again: the
/// precondition fails if it has changed.
pub(super) async fn require(cx: &Cx, object: &Value) -> Result<Op, Status> {
    let key = key(cx);
    let revision = match known(cx, &key) {
        Some(fact) => fact.revision,
        None => {
            let fact = look_up(cx, object, &key).await?;
            let revision = fact.revision;
            cx.tenant.shared.known.learn(key.clone(), fact);
            revision
        }
    };
    Ok(Op { key, precondition: Precondition::Revision(revision), action: Action::Check })
}

fn known(cx: &Cx, key: &[u8]) -> Option<Fact> {
    if super::is_dry_run(cx) { None } else { cx.tenant.shared.known.get(key) }
}

/// The namespace of a new object, if it may have pod security labels. That it has none may be known, and is then confirmed
/// by the transaction ([`require`]); labels are always read, because they can reject the object.
pub(super) async fn labelled(cx: &Cx) -> Result<Option<Stored>, Status> {
    let key = key(cx);
    match known(cx, &key) {
        Some(fact) if !fact.is_read => Ok(None),
        _ => cx.tenant.get(&key).await,
    }
}

async fn look_up(cx: &Cx, object: &Value, key: &[u8]) -> Result<Fact, Status> {
    let namespace = &cx.namespace;
    let Some(stored) = cx.tenant.get(key).await? else {
        return Err(Status::not_found("", "namespaces", namespace));
    };
    // Searching for the field is faster than parsing; the object is parsed only if it is found.
    let marked = memchr::memmem::find(stored.json(), b"\"deletionTimestamp\"").is_some()
        && !meta_text(
            &stored.to_value("Namespace", "v1").map_err(|why| cx.tenant.unreadable(key, &why))?,
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
    let is_read = memchr::memmem::find(stored.json(), LABEL_PREFIX.as_bytes()).is_some();
    Ok(Fact { revision: stored.revision, is_read })
}

/// Rejects the deletion of system namespaces.
pub(super) fn may_be_deleted(cx: &Cx, old: &Value) -> Result<(), Status> {
    let protected =
        super::is(cx, "", "Namespace") && matches!(&*cx.name, "default" | "kube-system" | "kube-public");
    if protected && !old.is_null() {
        return Err(super::refused(cx, &cx.name, "this namespace may not be deleted"));
    }
    Ok(())
}
