//! Detects objects that need controllers. The server only reports them; controllers do the work.

use std::sync::Arc;

use k1s_object::Status;
use k1s_store::Range;
use memchr::memmem;
use serde_json::Value;

use crate::{
    context::Cx,
    errors,
    keys::{self, Key, split_key},
    objectmeta::finalizers,
    options::CONTROLLERS_LEASE,
    tenant::Tenant,
};

/// Number of objects read from the store at a time.
const PAGE: usize = 1000;

/// The effect of a write on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Created,
    /// Includes setting the deletion timestamp.
    Updated,
    Deleted,
}

/// Requests controllers if this write needs them. To be called after every write.
pub(crate) fn note(cx: &Cx, object: &Value, change: Change) {
    let tenant = &cx.tenant;
    if tenant.has_controllers() {
        return;
    }
    let meta = &object["metadata"];
    let deleting = change != Change::Deleted && meta["deletionTimestamp"].is_string();
    let filled = |field: &str| meta[field].as_array().is_some_and(|list| !list.is_empty());
    let waits = |name: &Value| name == "foregroundDeletion" || name == "orphan";
    let owned = filled("ownerReferences") || deleting && finalizers(object).iter().any(waits);
    let name = meta["name"].as_str().unwrap_or_default();
    let namespace = || meta["namespace"].as_str().unwrap_or_default();
    let needed = match (&*cx.resource.kind, cx.resource.storage_group()) {
        (_, group) if is_finished_by_controllers(group, &cx.resource.plural) => deleting || owned,
        ("Event", "") => true,
        ("StorageVersionMigration", "storagemigration.k8s.io")
        | ("CertificateSigningRequest", "certificates.k8s.io") => change != Change::Deleted,
        ("Lease", "coordination.k8s.io") => !is_controllers_lease(namespace(), name),
        ("ServiceAccount", "") => change == Change::Deleted && name == "default" || owned,
        ("ConfigMap", "") => change != Change::Created && name == "kube-root-ca.crt" || owned,
        _ => owned,
    };
    if needed {
        tenant.need_controllers();
    }
}

/// Whether a tenant holds objects that need controllers.
pub(crate) async fn has_unfinished(tenant: &Arc<Tenant>) -> Result<bool, Status> {
    let prefix = keys::prefix(&tenant.name);
    let mut range = Range::prefix(prefix.clone()).limit(PAGE);
    let mut tally = Tally::default();
    loop {
        let page = tenant.store().range(range.clone()).await.map_err(|error| errors::store(&error))?;
        for entry in &page.entries {
            let Some(key) = split_key(&entry.key, &prefix) else { continue };
            if may_need_controllers(&key, &entry.value) {
                return Ok(true);
            }
            tally.count(&key);
        }
        let Some(last) = page.entries.last().filter(|_| page.more) else { return Ok(!tally.is_complete()) };
        range = range.start([&*last.key, b"\0"].concat()).at(page.revision);
    }
}

/// Whether an object has owners, or waits for its dependents. Searching the bytes is many times faster than parsing; a false
/// positive only causes an unnecessary report.
pub(crate) fn has_owners(value: &[u8]) -> bool {
    memmem::find(value, b"\"ownerReferences\"").is_some()
        || memmem::find(value, b"\"deletionTimestamp\"").is_some()
            && (memmem::find(value, b"\"foregroundDeletion\"").is_some()
                || memmem::find(value, b"\"orphan\"").is_some())
}

/// Whether an object may need a controller.
pub(crate) fn may_need_controllers(key: &Key<'_>, value: &[u8]) -> bool {
    match (key.group, key.plural) {
        ("" | "events.k8s.io", "events") | ("certificates.k8s.io", "certificatesigningrequests") => true,
        // One that has ended stays as a record.
        ("storagemigration.k8s.io", "storageversionmigrations") => {
            memmem::find(value, b"\"MigrationCompleted\"").is_none()
        }
        ("coordination.k8s.io", "leases") => !is_controllers_lease(key.namespace, key.name),
        (group, plural) if is_finished_by_controllers(group, plural) => {
            memmem::find(value, b"\"deletionTimestamp\"").is_some() || has_owners(value)
        }
        _ => has_owners(value),
    }
}

/// Whether terminating objects of this kind wait for a controller, with any finalizers.
pub(crate) fn is_finished_by_controllers(group: &str, plural: &str) -> bool {
    matches!(
        (group, plural),
        ("", "namespaces" | "persistentvolumeclaims" | "persistentvolumes")
            | ("apiextensions.k8s.io", "customresourcedefinitions")
            | ("storage.k8s.io", "volumeattributesclasses")
    )
}

/// Whether this is the Lease of the controllers themselves, which needs no controllers.
pub(crate) fn is_controllers_lease(namespace: &str, name: &str) -> bool {
    (namespace, name) == CONTROLLERS_LEASE
}

/// Whether this is a default object of a namespace, which is restored if it is changed or deleted.
pub(crate) fn is_default_object(key: &Key<'_>) -> bool {
    matches!(
        (key.group, key.plural, key.name),
        ("", "serviceaccounts", "default") | ("", "configmaps", "kube-root-ca.crt")
    )
}

/// Counts namespaces and their default objects, because a deleted default object leaves no other trace.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    namespaces: usize,
    accounts: usize,
    authorities: usize,
}

impl Tally {
    pub(crate) fn count(&mut self, key: &Key<'_>) {
        match (key.group, key.plural, key.name) {
            ("", "namespaces", _) => self.namespaces += 1,
            ("", "serviceaccounts", "default") => self.accounts += 1,
            ("", "configmaps", "kube-root-ca.crt") => self.authorities += 1,
            _ => {}
        }
    }

    /// Whether every namespace has its default objects.
    pub(crate) fn is_complete(&self) -> bool {
        self.accounts == self.namespaces && self.authorities == self.namespaces
    }
}
