//! ResourceQuota: usage is updated in the transactions that write the objects.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use k1s_kinds::admission::resource_quota::{self as quota_usage, Charge};
use k1s_object::Status;
use k1s_store::{Action, Error, Op, Precondition};
use serde_json::Value;

use super::{kind, others, refused};
use crate::{context::Cx, errors, objectmeta::meta_text, resource::Resource, stored::Stored, tenant::Tenant};

/// Maximum attempts to write a recounted quota while other writes are charged to it; then 409.
const COUNT_ATTEMPTS: usize = 1000;

/// Whether quotas apply to objects of this kind.
fn is_counted(cx: &Cx) -> bool {
    let resource = &cx.resource;
    resource.namespaced && !(resource.plural == "events" && matches!(&*resource.group, "" | "events.k8s.io"))
}

/// The quotas of a namespace, stored and decoded.
struct Quotas {
    resource: Arc<Resource>,
    stored: Vec<Stored>,
    values: Vec<Value>,
    /// The precondition under which these are all quotas.
    mark: Op,
}

/// The quotas of the request's namespace. They are read only where the mark of quotas is known to exist
/// ([`Tenant::quota_mark`]): otherwise its absence is a precondition, and the transaction that fails makes it known.
async fn quotas(cx: &Cx) -> Result<Quotas, Status> {
    let tenant = &cx.tenant;
    let resource = kind(tenant, "", "v1", "resourcequotas")?;
    let key = tenant.quota_mark(&cx.namespace);
    let known = tenant.shared.known.get(&key).map(|fact| fact.revision);
    let found = match known {
        None if !super::is_dry_run(cx) => Vec::new(),
        _ => others(tenant, &resource, &cx.namespace, "").await?,
    };
    let precondition = known.map_or(Precondition::Absent, Precondition::Revision);
    let mark = Op { key, precondition, action: Action::Check };
    let (stored, values) = found.into_iter().unzip();
    Ok(Quotas { resource, stored, values, mark })
}

/// The value of a mark.
const MARK: &[u8] = b"quotas";

/// Operations that write the new usage, conditional on the quotas' revisions.
fn write(cx: &Cx, quotas: &Quotas, charges: Vec<Charge>) -> Result<Vec<Op>, Status> {
    let mut ops = vec![quotas.mark.clone()];
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

/// Charges the quotas of a namespace for a new object, or for the difference of an update.
pub(super) async fn charge(cx: &Cx, new: &Value, old: Option<&Value>) -> Result<Vec<Op>, Status> {
    let (group, plural) = (&*cx.resource.group, &*cx.resource.plural);
    if !is_counted(cx) {
        return Ok(Vec::new());
    }
    if let Some(old) = old {
        // An update does not change object counts.
        let measured = group.is_empty() && matches!(plural, "pods" | "services" | "persistentvolumeclaims");
        if !measured || new["spec"] == old["spec"] && new["status"]["phase"] == old["status"]["phase"] {
            return Ok(Vec::new());
        }
    }
    let mut quotas = quotas(cx).await?;
    if old.is_none() && super::is(cx, "", "ResourceQuota") {
        quotas.mark.action = Action::Put(Bytes::from_static(MARK));
    }
    quota_usage::charge(&quotas.values, group, plural, new, old)
        .map_err(|why| refused(cx, meta_text(new, "name"), why))?;
    write(cx, &quotas, quota_usage::moved(&quotas.values, group, plural, Some(new), old))
}

/// Releases the usage of an object that is removed.
pub(super) async fn give_back(cx: &Cx, old: &Value) -> Result<Vec<Op>, Status> {
    if !is_counted(cx) {
        return Ok(Vec::new());
    }
    let mut quotas = quotas(cx).await?;
    if super::is(cx, "", "ResourceQuota") {
        // A quota that is removed is not updated.
        let kept: Vec<bool> = quotas.values.iter().map(|quota| meta_text(quota, "name") != cx.name).collect();
        let mut keep = kept.iter();
        quotas.values.retain(|_| keep.next() == Some(&true));
        let mut keep = kept.iter();
        quotas.stored.retain(|_| keep.next() == Some(&true));
        if quotas.values.is_empty() && quotas.mark.precondition != Precondition::Absent {
            quotas.mark.action = Action::Delete;
        }
    }
    let (group, plural) = (&*cx.resource.group, &*cx.resource.plural);
    write(cx, &quotas, quota_usage::moved(&quotas.values, group, plural, None, Some(old)))
}

/// Recalculates the usage of the quotas of a namespace.
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
    for _ in 0..COUNT_ATTEMPTS {
        // The quota is read first: a write that the count misses changes the quota, and the update below conflicts.
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
            Err(error) => return Err(tenant.refusal(error).into_status()),
        }
    }
    Err(errors::modified(&resource.group, &resource.plural, name))
}

/// Recalculates again after a while: writes in flight when the quota was created have ended by then.
pub(super) fn count_later(tenant: &Arc<Tenant>, namespace: &str) {
    let (tenant, namespace) = (tenant.clone(), namespace.to_owned());
    let env = tenant.env().clone();
    let task = env.spawn(format!("quotas of {namespace}"), async move {
        tokio::select! {
            () = tenant.env().sleep(Duration::from_secs(2)) => {}
            () = tenant.stop.cancelled() => return,
        }
        if let Err(error) = count(&tenant, &namespace).await {
            tenant.warn_of(
                &error,
                format_args!("the usage of quotas in {namespace} could not be recalculated"),
            );
        }
    });
    drop(task);
}
