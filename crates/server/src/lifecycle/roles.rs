//! Aggregated cluster roles.

use std::sync::Arc;

use k1s_kinds::rules::rbac;
use serde_json::Value;

use crate::{
    admission::{kind, others},
    context::Cx,
    errors::Error,
    objectmeta::meta_text,
    tenant::Tenant,
    write,
};

/// Maximum depth of aggregated roles that select aggregated roles.
const MAX_ROUNDS: usize = 10;

/// Updates the rules of all aggregated roles. One may select another, so this is repeated until nothing changes.
pub(super) async fn aggregate(tenant: &Arc<Tenant>) -> Result<(), Error> {
    let resource = kind(tenant, "rbac.authorization.k8s.io", "v1", "clusterroles")?;
    if others(tenant, &resource, "", "\"aggregationRule\":").await?.is_empty() {
        return Ok(());
    }
    for _ in 0..MAX_ROUNDS {
        let all: Vec<Value> =
            others(tenant, &resource, "", "").await?.into_iter().map(|(_, role)| role).collect();
        let changed: Vec<_> = all
            .iter()
            .filter_map(|role| {
                Some((meta_text(role, "name"), role.get("rules"), rbac::aggregated_rules(role, &all)?))
            })
            .filter(|(_, known, rules)| match known.and_then(|known| known.as_array()) {
                Some(known) => known != rules,
                None => !rules.is_empty(),
            })
            .collect();
        if changed.is_empty() {
            break;
        }
        for (name, _, rules) in changed {
            let cx = Cx::internal(tenant, &resource, "", name);
            let change = |old: &Value| {
                let mut new = old.clone();
                new["rules"] = rules.clone().into();
                Ok(new)
            };
            write::change(&cx, &change).await?;
        }
    }
    Ok(())
}

/// The same in a separate task.
pub(super) fn aggregate_later(tenant: &Arc<Tenant>) {
    let tenant = tenant.clone();
    let env = tenant.env().clone();
    let task = env.spawn("aggregation of cluster roles", async move {
        if let Err(error) = aggregate(&tenant).await {
            tracing::warn!(%error, "cluster roles could not be aggregated");
        }
    });
    drop(task);
}
