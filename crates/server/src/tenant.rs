//! A tenant: a control plane of its own, which shares nothing with others but the store's revisions.
//!
//! In the store it is a prefix of keys; in memory, the caches of what is being listed or watched and the custom
//! resources it serves.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use k1s_env::{Env, Instant};
use k1s_object::Status;
use k1s_store::{Action, Error, Precondition, Revision, Store, Txn};
use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;

use crate::{
    auth::{Authorizer, TokenSigner},
    cache::{Cache, Known},
    catalog::Catalog,
    counts::Counts,
    custom::Customs,
    documents::Documents,
    errors, health,
    options::{ServerOptions, TenantEvent},
    resource::Resource,
    stored::{Stored, Unreadable},
};

/// What all tenants of a server share.
pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: ServerOptions,
    pub(crate) catalog: Catalog,
    pub(crate) metrics: crate::metrics::Metrics,
    pub(crate) flow: crate::flow::Flow,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) signer: TokenSigner,
    pub(crate) documents: Documents,
    /// What admission relies on until a transaction says otherwise.
    pub(crate) known: Known,
    pub(crate) probe: health::Probe,
    pub(crate) stop: CancellationToken,
}

/// A control plane.
pub(crate) struct Tenant {
    pub(crate) name: String,
    pub(crate) shared: Arc<Shared>,
    /// What all its keys begin with.
    prefix: String,
    caches: RwLock<HashMap<(String, String, String), Arc<Cache>>>,
    pub(crate) customs: Customs,
    /// How many objects there are, for metrics.
    pub(crate) counts: Counts,
    /// One request at a time has documents of this tenant built.
    pub(crate) building: Arc<tokio::sync::Mutex<()>>,
    mark_key: Bytes,
    /// The revision of the tenant's mark in the store, which all its writes are conditional on: no server writes to a
    /// tenant that another one has deleted.
    mark: AtomicU64,
    /// When the mark was last looked at.
    looked: Mutex<Instant>,
    /// Whether it was said that controllers are needed.
    needs_controllers: AtomicBool,
    /// Ends its watches and tasks.
    pub(crate) stop: CancellationToken,
}

/// How often a server looks whether a tenant that is in use was deleted by another server.
pub(crate) const LOOK: Duration = Duration::from_secs(10);

/// The same, where something was not found.
pub(crate) const LOOK_SOON: Duration = Duration::from_secs(1);

/// Steps that a transaction of a tenant can have: one more looks at its mark.
pub(crate) const MAX_OPS: usize = k1s_store::limits::MAX_OPS - 1;

/// The resources that admission reads from caches without asking the store: this server's own writes to them are noted.
const ADMISSION_READS: [&str; 5] = [
    "core/limitranges/",
    "networking.k8s.io/ingressclasses/",
    "node.k8s.io/runtimeclasses/",
    "scheduling.k8s.io/priorityclasses/",
    "storage.k8s.io/storageclasses/",
];

impl Tenant {
    /// A tenant whose mark was written by this revision.
    pub(crate) fn new(shared: Arc<Shared>, name: &str, mark: Revision) -> Arc<Tenant> {
        let stop = shared.stop.child_token();
        let looked = Mutex::new(shared.env.now());
        Arc::new(Tenant {
            name: name.to_owned(),
            prefix: prefix(name),
            shared,
            caches: RwLock::default(),
            customs: Customs::default(),
            counts: Counts::default(),
            building: Arc::default(),
            mark_key: mark_key(name),
            mark: AtomicU64::new(mark.get()),
            looked,
            needs_controllers: AtomicBool::new(false),
            stop,
        })
    }

    pub(crate) fn env(&self) -> &Env {
        &self.shared.env
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    pub(crate) fn options(&self) -> &ServerOptions {
        &self.shared.options
    }

    /// There is something for controllers to do.
    pub(crate) fn need_controllers(&self) {
        if let Some(hook) = &self.shared.options.tenant_hook
            && !self.needs_controllers.swap(true, Ordering::Relaxed)
        {
            hook.tell(TenantEvent::Needed(&self.name));
        }
    }

    /// Whether that was said.
    pub(crate) fn has_controllers(&self) -> bool {
        self.shared.options.tenant_hook.is_none() || self.needs_controllers.load(Ordering::Relaxed)
    }

    /// What the keys of a resource's objects begin with, in one namespace or (empty) in all.
    pub(crate) fn keys(&self, resource: &Resource, namespace: &str) -> String {
        self.keys_of(resource.storage_group(), &resource.plural, namespace)
    }

    pub(crate) fn keys_of(&self, group: &str, plural: &str, namespace: &str) -> String {
        let group = if group.is_empty() { "core" } else { group };
        let mut key =
            String::with_capacity(self.prefix.len() + group.len() + plural.len() + namespace.len() + 64);
        key.push_str(&self.prefix);
        key.push_str(group);
        key.push('/');
        key.push_str(plural);
        key.push('/');
        if !namespace.is_empty() {
            key.push_str(namespace);
            key.push('/');
        }
        key
    }

    /// The key of an object.
    pub(crate) fn key(&self, resource: &Resource, namespace: &str, name: &str) -> Bytes {
        let mut key = self.keys(resource, namespace);
        key.push_str(name);
        key.into()
    }

    /// The object under a key, as it is now.
    pub(crate) async fn get(&self, key: &[u8]) -> Result<Option<Stored>, Status> {
        let found = self.store().get(key, None).await.map_err(|error| errors::store(&error))?;
        let Some(entry) = found.entry else { return Ok(None) };
        Stored::new(&entry.value, entry.revision).map(Some).map_err(|why| self.unreadable(key, &why))
    }

    /// 500 for the object under a key, which cannot be read.
    pub(crate) fn unreadable(&self, key: &[u8], why: &Unreadable) -> Status {
        match crate::metadata::split_key(key, &self.prefix) {
            Some(at) => errors::unreadable(at.group, at.plural, at.name, why),
            None => Status::internal(format!("{} cannot be read: {why}", key.escape_ascii())),
        }
    }

    /// The cache of a resource; started when it is first asked for.
    pub(crate) fn cache(&self, resource: &Resource) -> Arc<Cache> {
        // Versions that differ in what can be selected on have a cache each; others share one.
        let version =
            if resource.field_names().is_empty() { String::new() } else { resource.api_version.clone() };
        let key = (resource.storage_group().to_owned(), resource.plural.clone(), version);
        if let Some(cache) = self.caches.read().get(&key) {
            return cache.clone();
        }
        let mut caches = self.caches.write();
        let start = || {
            let prefix = self.keys(resource, "").into();
            Arc::new(Cache::start(self.env(), self.store(), prefix, resource.field_reader()))
        };
        caches.entry(key).or_insert_with(start).clone()
    }

    /// Forgets the caches of a resource, whose objects are gone or read in another way from now on.
    pub(crate) fn forget_caches(&self, group: &str, plural: &str) {
        self.caches.write().retain(|(g, p, _), _| g != group || p != plural);
    }

    /// The resource at a path, built-in or custom.
    pub(crate) async fn resource(
        self: &Arc<Self>,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Result<Option<Arc<Resource>>, Status> {
        if let Some(resource) = self.shared.catalog.find(group, version, plural) {
            return Ok(Some(resource));
        }
        if self.shared.catalog.has_group(group) && !group.contains('.') {
            return Ok(None);
        }
        self.customs.find(self, group, version, plural).await
    }

    /// Carries out a transaction, if the tenant is still there. Errors become answers by [`Tenant::refusal`].
    pub(crate) async fn txn(&self, txn: Txn) -> k1s_store::Result<Revision> {
        let expected = Precondition::Revision(Revision::new(self.mark.load(Ordering::Acquire)));
        let noted = self.noted(&txn);
        match self.store().txn(txn.check(self.mark_key.clone(), expected)).await {
            Err(Error::Conflict(conflict)) if conflict.key == self.mark_key => {
                self.lost();
                Err(Error::Closed)
            }
            Err(Error::Conflict(conflict)) => {
                if Known::is_about(&conflict.key) {
                    let current = conflict.current.as_ref().map(|current| current.revision);
                    self.shared.known.correct(&conflict.key, current);
                }
                Err(Error::Conflict(conflict))
            }
            Ok(revision) => {
                for (key, is_put) in &noted {
                    self.note(key, is_put.then_some(revision), revision);
                }
                Ok(revision)
            }
            other => other,
        }
    }

    /// The keys that a transaction changes and that admission knows without reading, and whether they get a value.
    fn noted(&self, txn: &Txn) -> Vec<(Bytes, bool)> {
        let changed = txn.ops().iter().filter(|op| op.action != Action::Check);
        let relied_on = changed.filter(|op| {
            let rest = op.key.strip_prefix(self.prefix.as_bytes()).unwrap_or_default();
            Known::is_about(&op.key) || ADMISSION_READS.iter().any(|keys| rest.starts_with(keys.as_bytes()))
        });
        relied_on.map(|op| (op.key.clone(), matches!(op.action, Action::Put(_)))).collect()
    }

    fn note(&self, key: &Bytes, value: Option<Revision>, revision: Revision) {
        if Known::is_about(key) {
            self.shared.known.correct(key, value);
            return;
        }
        for cache in self.caches.read().values().filter(|cache| key.starts_with(cache.prefix())) {
            cache.note_write(revision);
        }
    }

    /// The key that is there as long as a namespace may have quotas. It changes with each quota that is created, and
    /// writes that find no quotas are conditional on it: none is missed, and none has to be looked for.
    pub(crate) fn quota_mark(&self, namespace: &str) -> Bytes {
        (self.keys_of("k1s", "quotas", "") + namespace).into()
    }

    /// Replaces the value that revision `expected` gave to `key`, if the tenant is still there.
    pub(crate) async fn update(
        &self,
        key: Bytes,
        value: Bytes,
        expected: Revision,
    ) -> k1s_store::Result<Revision> {
        self.txn(Txn::new().put(key, value, Precondition::Revision(expected))).await
    }

    /// The answer to a write that failed.
    pub(crate) fn refusal(&self, error: &Error) -> Status {
        if self.is_gone() { not_found(&self.name) } else { errors::store(error) }
    }

    /// The mark has changed, and the tenant with it has begun.
    pub(crate) fn set_mark(&self, mark: Revision) {
        self.mark.store(mark.get(), Ordering::Release);
    }

    /// Whether it was deleted while somebody held on to it.
    pub(crate) fn is_gone(&self) -> bool {
        self.stop.is_cancelled() && !self.shared.stop.is_cancelled()
    }

    /// Ends its watches and tasks: it was deleted.
    pub(crate) fn end(&self) {
        self.stop.cancel();
        self.caches.write().clear();
    }

    /// Another server has deleted it.
    fn lost(&self) {
        self.end();
        if let Some(hook) = &self.shared.options.tenant_hook
            && self.needs_controllers.load(Ordering::Relaxed)
        {
            hook.tell(TenantEvent::Gone(&self.name));
        }
    }

    /// Has a task look whether the tenant is still the one that was opened, if that is so long ago. A write that finds it
    /// deleted needs no look.
    pub(crate) fn look(self: &Arc<Self>, every: Duration) {
        let now = self.env().now();
        {
            let mut looked = self.looked.lock();
            if now - *looked < every {
                return;
            }
            *looked = now;
        }
        let tenant = self.clone();
        drop(self.env().spawn("look at a tenant's mark", async move { tenant.verify().await }));
    }

    /// Looks whether the tenant is still the one that was opened, and ends it if not.
    pub(crate) async fn verify(&self) -> bool {
        let expected = self.mark.load(Ordering::Acquire);
        // What cannot be read is no reason to end it.
        if let Ok(found) = self.store().get(&self.mark_key, None).await
            && found.entry.is_none_or(|mark| mark.revision.get() != expected)
        {
            self.lost();
        }
        !self.is_gone()
    }

    /// The store's newest revision.
    pub(crate) async fn revision(&self) -> Result<Revision, Status> {
        self.store().revision().await.map_err(|error| errors::store(&error))
    }
}

/// The key of a tenant's mark, which says that it is there.
pub(crate) fn mark_key(tenant: &str) -> Bytes {
    format!("/{tenant}/k1s/ready/").into()
}

/// 404: `tenants.k1s.dev "a" not found`.
pub(crate) fn not_found(tenant: &str) -> Status {
    Status::not_found("k1s.dev", "tenants", tenant)
}

/// What all keys of a tenant begin with.
pub(crate) fn prefix(tenant: &str) -> String {
    format!("/{tenant}/")
}
