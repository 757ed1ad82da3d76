//! Effects of a write on other objects: default objects of a namespace, names of definitions, aggregated roles, checks of
//! policies, conditions of flow schemas, quotas.
//!
//! A new namespace gets its default objects before its create is answered, so that a pod created right after it finds its
//! service account. Longer work, such as emptying a namespace that is being deleted, is left to controllers
//! (`controllers`).

use k1s_object::gvk::GroupKind;
use serde_json::Value;

use crate::{
    admission, aggregation, aggregator,
    bootstrap::fill_namespace,
    context::Cx,
    dangling,
    errors::Error,
    fairness, managed,
    objectmeta::meta_text,
    type_checking,
    write::{self, Updated, Written},
};

/// The definitions of custom resources.
const DEFINITION: GroupKind<&str> = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
const NAMESPACE: GroupKind<&str> = GroupKind::new("", "Namespace");
const FLOW_SCHEMA: GroupKind<&str> = GroupKind::new(fairness::GROUP, "FlowSchema");
const PRIORITY_LEVEL: GroupKind<&str> = GroupKind::new(fairness::GROUP, "PriorityLevelConfiguration");
const API_SERVICE: GroupKind<&str> = GroupKind::new("apiregistration.k8s.io", "APIService");
const CLUSTER_ROLE: GroupKind<&str> = GroupKind::new("rbac.authorization.k8s.io", "ClusterRole");

/// After an object was created.
pub(crate) async fn after_create(cx: &Cx, written: &Written, dry_run: bool) -> Result<(), Error> {
    if dry_run {
        return Ok(());
    }
    match cx.resource.group_kind() {
        NAMESPACE => Box::pin(fill_namespace(&cx.tenant, meta_text(&written.value(cx)?, "name"))).await?,
        DEFINITION => Box::pin(settle_definition(cx, meta_text(&written.value(cx)?, "name"))).await?,
        type_checking::POLICY => {
            Box::pin(type_checking::check(cx, meta_text(&written.value(cx)?, "name"))).await?
        }
        _ => {}
    }
    after_write(cx).await
}

/// After an object was updated. If the update removed the last finalizer, the object is gone.
pub(crate) async fn after_update(cx: &Cx, updated: &Updated, dry_run: bool) -> Result<(), Error> {
    if dry_run {
        return Ok(());
    }
    if updated.removed {
        after_delete(cx);
    }
    match cx.resource.group_kind() {
        DEFINITION => Box::pin(settle_definition(cx, &cx.name)).await?,
        type_checking::POLICY => Box::pin(type_checking::check(cx, &cx.name)).await?,
        _ => {}
    }
    after_write(cx).await
}

async fn after_write(cx: &Cx) -> Result<(), Error> {
    match cx.resource.group_kind() {
        CLUSTER_ROLE => Box::pin(aggregation::aggregate(&cx.tenant)).await?,
        FLOW_SCHEMA | PRIORITY_LEVEL => Box::pin(dangling::reconcile(&cx.tenant)).await?,
        DEFINITION => Box::pin(aggregator::sync(&cx.tenant)).await?,
        API_SERVICE => {
            aggregator::registered(&cx.tenant).await?;
            aggregator::sync_later(&cx.tenant);
        }
        _ => {}
    }
    Ok(admission::after_write(cx).await?)
}

/// After an object is gone.
pub(crate) fn after_delete(cx: &Cx) {
    match cx.resource.group_kind() {
        DEFINITION => {
            // A definition's name is its plural and its group.
            if let Some((plural, group)) = cx.name.split_once('.') {
                cx.tenant.forget_caches(group, plural);
            }
            aggregator::sync_later(&cx.tenant);
        }
        API_SERVICE => aggregator::sync_later(&cx.tenant),
        CLUSTER_ROLE => aggregation::aggregate_later(&cx.tenant),
        PRIORITY_LEVEL => dangling::reconcile_later(&cx.tenant),
        _ => {}
    }
}

/// Accepts or rejects the names of all definitions of a group, and waits until this server serves the result.
async fn settle_definition(cx: &Cx, name: &str) -> Result<(), Error> {
    let tenant = &cx.tenant;
    let resource = &cx.resource;
    let now = crate::time::stamp(tenant.env());
    // Names are unique within a group.
    let Some((_, group)) = name.split_once('.') else { return Ok(()) };
    let of_group = format!(".{group}");
    let snapshot = tenant.cache(resource).now().await?;
    // Only outlines are parsed: whole definitions take many times their stored size in memory.
    let mut all: Vec<Value> = Vec::new();
    for entry in snapshot.entries.iter().filter(|entry| entry.name().ends_with(&of_group)) {
        match k1s_schema::names::outline(entry.stored.json()) {
            Ok(outline) => all.push(outline),
            // Its names are free: an unreadable definition is not served.
            Err(why) => {
                tracing::error!(definition = entry.name(), %why, "an unreadable definition is ignored when names are accepted");
            }
        }
    }
    for crd in all.iter().filter(|crd| crd["spec"]["group"] == group) {
        let mut settled = crd.clone();
        let others = || all.iter().filter(|other| meta_text(other, "name") != meta_text(crd, "name"));
        let changed = k1s_schema::names::accept_names(&mut settled, others(), &now);
        if !(k1s_schema::names::establish(&mut settled, &now) || changed) {
            continue;
        }
        let status = settled["status"].clone();
        let one = Cx::internal(tenant, resource, "", meta_text(crd, "name"));
        let change = |old: &Value| {
            let mut new = old.clone();
            new["status"] = status.clone();
            managed::on_own_status(&one, old, &mut new);
            Ok(new)
        };
        write::change(&one, &change).await?;
    }
    let revision = tenant.revision().await?;
    Ok(tenant.customs.reach(tenant, revision).await?)
}
