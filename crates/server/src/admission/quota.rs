//! Quotas: what objects use is counted in the transactions that write them.

use std::{sync::Arc, time::Duration};

use k1s_kinds::admission::resource_quota::{self as quota_usage, Charge};
use k1s_object::Status;
use k1s_store::{Action, Error, Op, Precondition};
use serde_json::Value;

use super::{kind, others, refused};
use crate::{context::Cx, resource::Resource, stored::Stored, tenant::Tenant, write::meta_text};

/// Whether objects of this kind count at all.
fn is_counted(cx: &Cx) -> bool {
    let resource = &cx.resource;
    resource.namespaced && !(resource.plural == "events" && matches!(&*resource.group, "" | "events.k8s.io"))
}

/// The quotas of a namespace as they are stored, and as they read.
struct Quotas {
    resource: Arc<Resource>,
    stored: Vec<Stored>,
    values: Vec<Value>,
}

async fn quotas(tenant: &Tenant, namespace: &str) -> Result<Quotas, Status> {
    let resource = kind(tenant, "", "v1", "resourcequotas")?;
    let (stored, values) = others(tenant, &resource, namespace, "").await?.into_iter().unzip();
    Ok(Quotas { resource, stored, values })
}

/// What writes the new usage, if nobody wrote one in between.
fn write(cx: &Cx, quotas: &Quotas, charges: Vec<Charge>) -> Result<Vec<Op>, Status> {
    let mut ops = Vec::new();
    for charge in charges {
        let (Some(stored), Some(value)) = (quotas.stored.get(charge.quota), quotas.values.get(charge.quota))
        else {
            continue;
        };
        let mut quota = value.clone();
        quota["status"]["used"] = charge.used;
        ops.push(Op {
            key: cx.tenant.key(&quotas.resource, &cx.namespace, meta_text(&quota, "name")),
            precondition: Precondition::Revision(stored.revision),
            action: Action::Put(quotas.resource.encode(&quota)?),
        });
    }
    Ok(ops)
}

/// Charges the quotas of a namespace for a new object, or for what an update changes.
pub(super) async fn charge(cx: &Cx, new: &Value, old: Option<&Value>) -> Result<Vec<Op>, Status> {
    let (group, plural) = (&*cx.resource.group, &*cx.resource.plural);
    if !is_counted(cx) {
        return Ok(Vec::new());
    }
    if let Some(old) = old {
        // What only counts does not change with an update.
        let measured = group.is_empty() && matches!(plural, "pods" | "services" | "persistentvolumeclaims");
        if !measured || new["spec"] == old["spec"] && new["status"]["phase"] == old["status"]["phase"] {
            return Ok(Vec::new());
        }
    }
    let quotas = quotas(&cx.tenant, &cx.namespace).await?;
    if quotas.values.is_empty() {
        return Ok(Vec::new());
    }
    quota_usage::charge(&quotas.values, group, plural, new, old)
        .map_err(|why| refused(cx, meta_text(new, "name"), why))?;
    write(cx, &quotas, quota_usage::moved(&quotas.values, group, plural, Some(new), old))
}

/// Gives back what an object used that goes for good.
pub(super) async fn give_back(cx: &Cx, old: &Value) -> Result<Vec<Op>, Status> {
    if !is_counted(cx) {
        return Ok(Vec::new());
    }
    let mut quotas = quotas(&cx.tenant, &cx.namespace).await?;
    if super::is(cx, "", "ResourceQuota") {
        // One that goes is not written once more.
        let kept: Vec<bool> = quotas.values.iter().map(|quota| meta_text(quota, "name") != cx.name).collect();
        let mut keep = kept.iter();
        quotas.values.retain(|_| keep.next() == Some(&true));
        let mut keep = kept.iter();
        quotas.stored.retain(|_| keep.next() == Some(&true));
    }
    if quotas.values.is_empty() {
        return Ok(Vec::new());
    }
    let (group, plural) = (&*cx.resource.group, &*cx.resource.plural);
    write(cx, &quotas, quota_usage::moved(&quotas.values, group, plural, None, Some(old)))
}

/// Counts again what the quotas of a namespace are used for.
pub(super) async fn count(tenant: &Arc<Tenant>, namespace: &str) -> Result<(), Status> {
    let resource = kind(tenant, "", "v1", "resourcequotas")?;
    for (_, quota) in others(tenant, &resource, namespace, "").await? {
        count_one(tenant, &resource, namespace, meta_text(&quota, "name")).await?;
    }
    Ok(())
}

async fn count_one(
    tenant: &Arc<Tenant>,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<(), Status> {
    let key = tenant.key(resource, namespace, name);
    loop {
        // The quota first: every write that is missing in what is counted changes it.
        let Some(stored) = tenant.get(&key).await? else { return Ok(()) };
        let mut quota = resource.read(&stored).map_err(|why| tenant.unreadable(&key, &why))?;
        let customs = tenant.customs.current(tenant).await?;
        let mut counted: Vec<(String, String, Value)> = Vec::new();
        let mut seen = Vec::new();
        for one in tenant.shared.catalog.all().iter().chain(customs.resources()) {
            let name = (one.group.clone(), one.plural.clone());
            if one.namespaced && !seen.contains(&name) && quota_usage::counts(&quota, &one.group, &one.plural)
            {
                let objects = others(tenant, one, namespace, "").await?;
                counted
                    .extend(objects.into_iter().map(|(_, object)| (name.0.clone(), name.1.clone(), object)));
                seen.push(name);
            }
        }
        let objects = counted.iter().map(|(group, plural, object)| (&**group, &**plural, object));
        let status = quota_usage::status(&quota, objects);
        if quota["status"] == status {
            return Ok(());
        }
        quota["status"] = status;
        match tenant.update(key.clone(), resource.encode(&quota)?, stored.revision).await {
            Ok(_) => return Ok(()),
            Err(Error::Conflict(_)) => {}
            Err(error) => return Err(tenant.refusal(&error)),
        }
    }
}

/// Counts once more when writes that began before a quota was there have come to their end.
pub(super) fn count_later(tenant: &Arc<Tenant>, namespace: &str) {
    let (tenant, namespace) = (tenant.clone(), namespace.to_owned());
    let env = tenant.env().clone();
    let task = env.spawn(format!("quotas of {namespace}"), async move {
        tokio::select! {
            () = tenant.env().sleep(Duration::from_secs(2)) => {}
            () = tenant.stop.cancelled() => return,
        }
        if let Err(error) = count(&tenant, &namespace).await {
            tracing::warn!(namespace, %error, "quotas could not be counted");
        }
    });
    drop(task);
}
