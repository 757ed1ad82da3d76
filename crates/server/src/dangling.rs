//! The condition `Dangling` of flow schemas: whether the priority level that they refer to exists.
//!
//! In Kubernetes a controller sets it soon after; here the server does, before it answers the write of a schema or a level.

use std::{collections::HashSet, sync::Arc};

use k1s_object::gvk::GroupVersionResource;
use serde_json::{Value, json};

use crate::{
    cache::Entry, context::Cx, errors::Error, fairness, managed, resource::Resource, tenant::Tenant, write,
};

fn resource_of(tenant: &Tenant, plural: &str) -> Result<Arc<Resource>, Error> {
    Ok(tenant.shared.catalog.require(GroupVersionResource::new(fairness::GROUP, "v1", plural))?)
}

/// The condition of a schema that refers to a level; without its time.
fn condition(level: &str, exists: bool) -> Value {
    let (status, reason, what) = match exists {
        true => ("False", "Found", "and it exists"),
        false => ("True", "NotFound", "but there is no such object"),
    };
    let message =
        format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?} {what}");
    json!({"type": "Dangling", "status": status, "reason": reason, "message": message})
}

/// The status of a schema with this condition; `None` if it has it.
fn with_condition(schema: &Value, wanted: &Value, now: &str) -> Option<Value> {
    let conditions = schema.pointer("/status/conditions").and_then(Value::as_array);
    let conditions = conditions.map_or(&[][..], Vec::as_slice);
    let known = conditions.iter().find(|one| one["type"] == "Dangling");
    let has = |field: &str| known.is_some_and(|known| known[field] == wanted[field]);
    if ["status", "reason", "message"].into_iter().all(has) {
        return None;
    }
    let mut new: Vec<Value> = conditions.iter().filter(|one| one["type"] != "Dangling").cloned().collect();
    let mut condition = wanted.clone();
    condition["lastTransitionTime"] = now.into();
    new.push(condition);
    Some(json!({ "conditions": new }))
}

/// Sets the condition of all schemas of a tenant.
pub(crate) async fn reconcile(tenant: &Arc<Tenant>) -> Result<(), Error> {
    let [schemas, levels] = fairness::RESOURCES;
    let (schemas, levels) = (resource_of(tenant, schemas)?, resource_of(tenant, levels)?);
    let level_names = tenant.cache(&levels).now().await?;
    let level_names: HashSet<&str> = level_names.entries.iter().map(|entry| Entry::name(entry)).collect();
    let snapshot = tenant.cache(&schemas).now().await?;
    let now = crate::time::stamp(tenant.env());
    for entry in snapshot.entries.iter() {
        let Ok(schema) = schemas.read_any(&entry.stored) else { continue };
        let level = schema.pointer("/spec/priorityLevelConfiguration/name").and_then(Value::as_str);
        let level = level.unwrap_or_default();
        let wanted = condition(level, level_names.contains(level));
        if with_condition(&schema, &wanted, &now).is_none() {
            continue;
        }
        let cx = Cx::internal(tenant, &schemas, "", entry.name());
        let change = |old: &Value| {
            let mut new = old.clone();
            // It may refer to another level by now; then it is reconciled once more.
            if old.pointer("/spec/priorityLevelConfiguration/name").and_then(Value::as_str) == Some(level)
                && let Some(status) = with_condition(old, &wanted, &now)
            {
                new["status"] = status;
                managed::on_own_status(&cx, old, &mut new);
            }
            Ok(new)
        };
        write::change(&cx, &change).await?;
    }
    Ok(())
}

/// The same in a separate task.
pub(crate) fn reconcile_later(tenant: &Arc<Tenant>) {
    let tenant = tenant.clone();
    let env = tenant.env().clone();
    let task = env.spawn("conditions of flow schemas", async move {
        if let Err(error) = reconcile(&tenant).await {
            tenant.warn_of(&error, "the conditions of flow schemas could not be set");
        }
    });
    drop(task);
}
