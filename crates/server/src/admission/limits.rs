//! `LimitRanger`: defaults and bounds from the limit ranges of a namespace.

use k1s_kinds::admission::limit_ranger as limiter;
use k1s_object::Status;
use serde_json::Value;

use super::{cached_others, kind, refused};
use crate::{context::Cx, objectmeta::meta_text};

async fn ranges(cx: &Cx) -> Result<Vec<Value>, Status> {
    let ranges = kind(&cx.tenant, "", "v1", "limitranges")?;
    cached_others(&cx.tenant, &ranges, &cx.namespace, "").await
}

/// Sets the default requests and limits of a new pod.
pub(super) async fn apply(cx: &Cx, pod: &mut Value) -> Result<(), Status> {
    for range in ranges(cx).await? {
        limiter::apply_defaults(pod, &range);
    }
    Ok(())
}

/// Rejects a pod or a claim outside the bounds.
pub(super) async fn check(cx: &Cx, object: &Value) -> Result<(), Status> {
    if !meta_text(object, "deletionTimestamp").is_empty() {
        return Ok(());
    }
    for range in ranges(cx).await? {
        let wrong = match &*cx.resource.kind {
            "Pod" => limiter::check_pod(object, &range),
            _ => limiter::check_claim(object, &range),
        };
        if !wrong.is_empty() {
            return Err(refused(cx, meta_text(object, "name"), limiter::together(&wrong)));
        }
    }
    Ok(())
}
