//! A tenant: a control plane of its own, which shares nothing with others but the store's revisions.
//!
//! In the store it is a prefix of keys; in memory, the caches of what is being listed or watched and the custom
//! resources it serves.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use k1s_env::Env;
use k1s_object::Status;
use k1s_store::{Precondition, Range, Revision, Store, Txn};
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use crate::{
    auth::{Authorizer, TokenSigner},
    cache::Cache,
    catalog::Catalog,
    custom::Customs,
    errors,
    options::{ServerOptions, TenantEvent},
    resource::Resource,
    stored::Stored,
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
    /// Whether it was said that controllers are needed.
    needs_controllers: AtomicBool,
    /// Ends its watches and tasks.
    pub(crate) stop: CancellationToken,
}

impl Tenant {
    pub(crate) fn new(shared: Arc<Shared>, name: &str) -> Arc<Tenant> {
        let stop = shared.stop.child_token();
        Arc::new(Tenant {
            name: name.to_owned(),
            prefix: prefix(name),
            shared,
            caches: RwLock::default(),
            customs: Customs::default(),
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
        found.entry.map(|entry| Stored::new(&entry.value, entry.revision)).transpose()
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

    /// Everything under the tenant's prefix goes, and with it the tenant.
    pub(crate) async fn delete(&self) -> Result<(), Status> {
        self.stop.cancel();
        self.caches.write().clear();
        loop {
            let range = Range::prefix(self.prefix.clone()).limit(k1s_store::limits::MAX_OPS);
            let found = self.store().range(range).await.map_err(|error| errors::store(&error))?;
            if found.entries.is_empty() {
                return Ok(());
            }
            let mut txn = Txn::new();
            for entry in found.entries {
                txn = txn.delete(entry.key, Precondition::Any);
            }
            self.store().txn(txn).await.map_err(|error| errors::store(&error))?;
        }
    }

    /// The store's newest revision.
    pub(crate) async fn revision(&self) -> Result<Revision, Status> {
        self.store().revision().await.map_err(|error| errors::store(&error))
    }
}

/// What all keys of a tenant begin with.
pub(crate) fn prefix(tenant: &str) -> String {
    format!("/{tenant}/")
}
