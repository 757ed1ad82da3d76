//! The `APIService`s of group versions that this server serves itself: those of custom resources come and go with their
//! definitions, and those of built-in ones are completed once per start.
//!
//! Only `APIService`s with the label that says so are changed. One that a user has made for a custom group version stays: its
//! priorities count, and if it names a Service, that serves the group version instead.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

use k1s_kinds::bootstrap;
use k1s_store::{Error as StoreError, Precondition, Txn};
use serde_json::Value;

use crate::{
    bootstrap::ensure,
    context::Cx,
    errors::Error,
    managed::{self, SERVER},
    objectmeta::meta_text,
    tenant::{
        Tenant,
        apis::{API_SERVICES, Api},
    },
    write,
};

/// The labels of those that are kept always, and of those that are completed once per start.
const ALWAYS: &str = "true";
const ON_START: &str = "onstart";

/// Brings the `APIService`s of custom group versions in step with the definitions.
pub(crate) async fn sync(tenant: &Arc<Tenant>) -> Result<(), Error> {
    let _one = tenant.api_registry.syncing.lock().await;
    let served = tenant.customs.current(tenant).await?;
    let mut wanted = BTreeMap::new();
    for resource in served.resources() {
        let service = || bootstrap::custom_api_service(&resource.group, &resource.version);
        wanted.entry(format!("{}.{}", resource.version, resource.group)).or_insert_with(service);
    }
    keep(tenant, wanted, ALWAYS).await
}

/// The same in a task.
pub(crate) fn sync_later(tenant: &Arc<Tenant>) {
    let held = tenant.clone();
    let task = tenant.env().spawn("APIServices of custom resources", async move {
        let synced = async {
            // What has changed may not have reached the definitions yet.
            let revision = held.revision().await?;
            held.customs.reach(&held, revision).await?;
            sync(&held).await
        };
        if let Err(error) = synced.await {
            held.warn_of(&error, "APIServices of custom resources are not in step");
        }
    });
    drop(task);
}

/// Does all of it once per start, in a task: an older server may have left the tenant without some.
pub(super) fn complete(tenant: &Arc<Tenant>) {
    if tenant.api_registry.is_complete.swap(true, Ordering::AcqRel) {
        return;
    }
    let held = tenant.clone();
    let task = tenant.env().spawn("APIServices", async move {
        let built_in = async {
            let _one = held.api_registry.syncing.lock().await;
            let name = |service: &Value| meta_text(service, "name").to_owned();
            let wanted = bootstrap::api_services().into_iter().map(|service| (name(&service), service));
            keep(&held, wanted.collect(), ON_START).await
        };
        if let Err(error) = built_in.await {
            held.warn_of(&error, "APIServices of built-in resources are not complete");
        }
        sync_later(&held);
    });
    drop(task);
}

/// Creates, changes and deletes the `APIService`s with a label, so that they are the wanted ones.
async fn keep(tenant: &Arc<Tenant>, mut wanted: BTreeMap<String, Value>, label: &str) -> Result<(), Error> {
    for api in &tenant.newest_apis().await?.all {
        match wanted.remove(&api.name) {
            // Somebody else's, or as it should be.
            Some(service) if api.managed != label || is_right(api, &service) => {}
            Some(service) => restore(tenant, api, service).await?,
            None if api.managed == label => remove(tenant, api).await?,
            None => {}
        }
    }
    for service in wanted.into_values() {
        ensure(tenant, API_SERVICES, "", SERVER, service).await?;
    }
    Ok(())
}

fn is_right(api: &Api, wanted: &Value) -> bool {
    let spec = &wanted["spec"];
    api.backend.is_none()
        && spec["groupPriorityMinimum"] == api.group_priority
        && spec["versionPriority"] == api.version_priority
}

async fn restore(tenant: &Arc<Tenant>, api: &Api, wanted: Value) -> Result<(), Error> {
    let resource = tenant.shared.catalog.require(API_SERVICES)?;
    let cx = Cx::internal(tenant, &resource, "", &api.name);
    let change = |old: &Value| {
        let mut new = old.clone();
        if meta_text(old, "uid") == api.uid {
            new["spec"] = wanted["spec"].clone();
            managed::on_own_status(&cx, old, &mut new);
        }
        Ok(new)
    };
    write::change(&cx, &change).await.map(drop)
}

async fn remove(tenant: &Arc<Tenant>, api: &Api) -> Result<(), Error> {
    let resource = tenant.shared.catalog.require(API_SERVICES)?;
    let key = tenant.key(&resource, "", &api.name);
    match tenant.txn(Txn::new().delete(key, Precondition::Revision(api.revision))).await {
        // Changed meanwhile: the next change of a definition looks again.
        Ok(_) | Err(StoreError::Conflict(_)) => Ok(()),
        Err(error) => Err(tenant.refusal(error)),
    }
}
