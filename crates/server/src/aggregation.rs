//! Aggregated cluster roles: their rules are those of the roles that they select.
//!
//! In Kubernetes a controller sets them soon after; here the server does, before it answers the write of a cluster role.

#[cfg(test)]
mod upstream;

use std::sync::Arc;

use k1s_kinds::rules::rbac;
use k1s_object::{gvk::GroupVersionResource, selector::LabelSelector};
use serde_json::{Value, json};

use crate::{
    cache::Snapshot,
    context::Cx,
    errors::Error,
    objectmeta::{meta_text, metadata_mut},
    resource::Resource,
    tenant::Tenant,
    write,
};

/// Maximum depth of aggregated roles that select aggregated roles.
const MAX_ROUNDS: usize = 10;

/// The field manager of aggregated rules.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// Sets the rules of an aggregated role, which then belong to their manager. `now`: for a change.
pub(crate) fn set_rules(role: &mut Value, rules: Vec<Value>, now: &str) {
    let empty = rules.is_empty();
    if let Some(role) = role.as_object_mut() {
        role.insert("rules".into(), if empty { Value::Null } else { rules.into() });
    }
    let metadata = metadata_mut(role);
    let managers = metadata.entry("managedFields").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(managers) = managers.as_array_mut() {
        managers.retain(|entry| entry["manager"] != MANAGER);
        if !empty {
            managers.push(
                json!({"manager": MANAGER, "operation": "Apply", "apiVersion": "rbac.authorization.k8s.io/v1",
                "time": now, "fieldsType": "FieldsV1", "fieldsV1": "{\"f:rules\":{}}"}),
            );
        }
    }
    if metadata.get("managedFields").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        metadata.shift_remove("managedFields");
    }
}

/// Whether the rules of a role are these.
fn has_rules(role: &Value, rules: &[Value]) -> bool {
    match role.get("rules").and_then(Value::as_array) {
        Some(known) => known == rules,
        None => rules.is_empty(),
    }
}

/// Sets the rules of those of `new` that are aggregated, from each other.
pub(crate) fn aggregate_new(new: &mut [Value], now: &str) {
    for _ in 0..MAX_ROUNDS {
        let all = new.to_vec();
        let mut changed = false;
        for role in new.iter_mut() {
            if let Some(rules) = rbac::aggregated_rules(role, &all)
                && !has_rules(role, &rules)
            {
                set_rules(role, rules, now);
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

/// The aggregated roles whose rules are not those of the roles that they select, with the right rules.
fn outdated(resource: &Resource, snapshot: &Snapshot) -> Vec<(String, Vec<Value>)> {
    let read = |entry: &crate::cache::Entry| resource.read_any(&entry.stored).ok();
    let mut outdated = Vec::new();
    for entry in snapshot.entries.iter() {
        if memchr::memmem::find(entry.stored.json(), b"\"aggregationRule\":").is_none() {
            continue;
        }
        let Some(role) = read(entry) else { continue };
        let selectors = role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array);
        let selectors: Vec<LabelSelector> = selectors
            .into_iter()
            .flatten()
            .filter_map(|one| LabelSelector::from_json(Some(one)).ok())
            .collect();
        // Only the selected roles are parsed.
        let selected = snapshot
            .entries
            .iter()
            .filter(|entry| selectors.iter().any(|selector| selector.matches(|key| entry.label(key))));
        let parts: Vec<Value> = selected.filter_map(|entry| read(entry)).collect();
        if let Some(rules) = rbac::aggregated_rules(&role, &parts)
            && !has_rules(&role, &rules)
        {
            outdated.push((meta_text(&role, "name").to_owned(), rules));
        }
    }
    outdated
}

/// Updates the rules of all aggregated roles. One may select another, so this is repeated until nothing changes.
pub(crate) async fn aggregate(tenant: &Arc<Tenant>) -> Result<(), Error> {
    let gvr = GroupVersionResource::new(crate::rbac::GROUP, "v1", "clusterroles");
    let resource = tenant.shared.catalog.require(gvr)?;
    for _ in 0..MAX_ROUNDS {
        let snapshot = tenant.cache(&resource).now().await?;
        let outdated = outdated(&resource, &snapshot);
        if outdated.is_empty() {
            break;
        }
        for (name, rules) in outdated {
            let cx = Cx::internal(tenant, &resource, "", &name);
            let now = crate::time::stamp(tenant.env());
            let change = |old: &Value| {
                let mut new = old.clone();
                set_rules(&mut new, rules.clone(), &now);
                Ok(new)
            };
            write::change(&cx, &change).await?;
        }
    }
    Ok(())
}

/// The same in a separate task.
pub(crate) fn aggregate_later(tenant: &Arc<Tenant>) {
    let tenant = tenant.clone();
    let env = tenant.env().clone();
    let task = env.spawn("aggregation of cluster roles", async move {
        if let Err(error) = aggregate(&tenant).await {
            tenant.warn_of(&error, "cluster roles could not be aggregated");
        }
    });
    drop(task);
}
