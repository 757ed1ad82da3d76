//! A tenant: an independent control plane, which shares only the store's revisions with other tenants.
//!
//! In the store it is a key prefix; in memory, the caches of resources that are listed or watched and the custom
//! resources it serves.

pub(crate) mod apis;
mod counts;
pub(crate) mod customs;
mod registrations;

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use k1s_env::{Env, Instant};
use k1s_object::{Status, gvk::GroupVersionResource};
use k1s_store::{Action, Error as StoreError, Precondition, Revision, Store, Txn};
use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;

use self::{apis::ApiRegistry, counts::Counts, customs::Customs, registrations::Registrations};
use crate::{
    authz::{Attributes, Authorizer},
    cache::{Cache, Known},
    capacity::Capacity,
    catalog::Catalog,
    closing,
    converted::Memory,
    documents::{Document, Documents, Key},
    errors::{self, Error},
    fairness::{self, Flow, Flows},
    identity::{Authenticators, TokenSigner, User},
    keys::{self, mark_key},
    node_graph::NodeGraph,
    options::{ServerOptions, TenantEvent},
    probe::Probe,
    rbac::{self, Index, Newest, Policies},
    resource::Resource,
    services::Forwarder,
    shared_call::SharedCall,
    stored::{Stored, Unreadable},
    webhook::Caller,
};

/// State shared by all tenants of a server.
pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: ServerOptions,
    pub(crate) catalog: Catalog,
    pub(crate) metrics: crate::metrics::Metrics,
    /// Records requests; `None` if nothing is to be recorded.
    pub(crate) audit: Option<Arc<crate::audit::Auditor>>,
    pub(crate) capacity: Capacity,
    pub(crate) authorizer: Arc<dyn Authorizer<Arc<Tenant>>>,
    pub(crate) authenticators: Authenticators,
    pub(crate) signer: TokenSigner,
    pub(crate) documents: Documents,
    /// Revisions that admission assumes; a transaction that conflicts corrects them.
    pub(crate) known: Known,
    pub(crate) probe: Probe,
    /// Objects that webhooks have converted.
    pub(crate) converted: Memory,
    /// Calls webhooks.
    pub(crate) caller: Caller,
    /// Sends requests to aggregated APIs.
    pub(crate) forwarder: Forwarder,
    /// The watches in projects.
    pub(crate) project_watches: closing::Watches,
    pub(crate) stop: CancellationToken,
}

/// A control plane.
pub(crate) struct Tenant {
    pub(crate) name: String,
    pub(crate) shared: Arc<Shared>,
    /// The prefix of all its keys.
    prefix: String,
    /// By storage group, version and resource. The version is empty where all versions have the same selectable fields, and
    /// therefore share a cache.
    caches: RwLock<HashMap<GroupVersionResource, Arc<Cache>>>,
    pub(crate) customs: Customs,
    /// The group versions that other servers serve.
    pub(crate) api_registry: ApiRegistry,
    /// Its roles and bindings.
    pub(crate) policies: Policies,
    /// Its flow schemas and priority levels.
    pub(crate) flows: Flows,
    /// Whether the authorities of clients have been published in it.
    #[cfg(feature = "tls")]
    pub(crate) trust_is_published: AtomicBool,
    /// What the pods of its nodes use.
    pub(crate) nodes: NodeGraph,
    /// The mode in which each user has last impersonated another one.
    pub(crate) impersonations: Mutex<HashMap<String, usize>>,
    /// What is registered for admission.
    registrations: Registrations,
    /// Object counts, for metrics.
    pub(crate) counts: Counts,
    /// Held while a document of this tenant is built.
    pub(crate) building: Arc<tokio::sync::Mutex<()>>,
    /// The store's newest revision, for those who ask for it at the same time.
    newest: SharedCall<Result<Revision, Status>>,
    mark_key: Bytes,
    /// The revision of the tenant's mark in the store, which all its writes are conditional on: no server writes to a
    /// tenant that another one has deleted.
    mark: AtomicU64,
    /// When the mark was last read.
    verified: Mutex<Instant>,
    /// Whether [`Tenant::need_controllers`] has called the tenant hook.
    needs_controllers: AtomicBool,
    /// Ends its watches and tasks.
    pub(crate) stop: CancellationToken,
}

/// Minimum interval between checks whether another server has deleted a tenant that is in use.
pub(crate) const VERIFY_INTERVAL: Duration = Duration::from_secs(10);

/// The same after a 404, which may be due to the deletion of the tenant.
pub(crate) const VERIFY_SOON_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum operations of a tenant's transaction; two more check its mark and change that of its policy.
pub(crate) const MAX_OPS: usize = k1s_store::limits::MAX_OPS - 2;

/// The objects that are registered for admission; their cache is apart ([`Registrations`]).
const REGISTRATIONS: &str = "admissionregistration.k8s.io/";

/// The resources that authorization, fairness, admission, aggregation and the entrance to projects read from caches without checking
/// the store's revision. To read this server's own writes, their caches are notified of them.
const ADMISSION_READS: [&str; 14] = [
    REGISTRATIONS,
    "apiregistration.k8s.io/apiservices/",
    "core/limitranges/",
    "flowcontrol.apiserver.k8s.io/flowschemas/",
    "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations/",
    "networking.k8s.io/ingressclasses/",
    "node.k8s.io/runtimeclasses/",
    "rbac.authorization.k8s.io/clusterrolebindings/",
    "rbac.authorization.k8s.io/clusterroles/",
    "rbac.authorization.k8s.io/rolebindings/",
    "rbac.authorization.k8s.io/roles/",
    "resourcemanager.miloapis.com/projects/",
    "scheduling.k8s.io/priorityclasses/",
    "storage.k8s.io/storageclasses/",
];

impl Tenant {
    /// A tenant whose mark was written by this revision.
    pub(crate) fn new(shared: Arc<Shared>, name: &str, mark: Revision) -> Arc<Tenant> {
        let stop = shared.stop.child_token();
        let verified = Mutex::new(shared.env.now());
        Arc::new(Tenant {
            name: name.to_owned(),
            prefix: keys::prefix(name),
            shared,
            caches: RwLock::default(),
            customs: Customs::default(),
            api_registry: ApiRegistry::default(),
            policies: Policies::default(),
            flows: Flows::default(),
            #[cfg(feature = "tls")]
            trust_is_published: AtomicBool::new(false),
            nodes: NodeGraph::default(),
            impersonations: Mutex::default(),
            registrations: Registrations::default(),
            counts: Counts::default(),
            building: Arc::default(),
            newest: SharedCall::default(),
            mark_key: mark_key(name),
            mark: AtomicU64::new(mark.get()),
            verified,
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

    /// Reports to the tenant hook that the tenant needs controllers.
    pub(crate) fn need_controllers(&self) {
        if let Some(hook) = &self.shared.options.tenant_hook
            && !self.needs_controllers.swap(true, Ordering::Relaxed)
        {
            hook.tell(TenantEvent::Needed(&self.name));
        }
    }

    /// Whether that was reported, or there is no hook.
    pub(crate) fn has_controllers(&self) -> bool {
        self.shared.options.tenant_hook.is_none() || self.needs_controllers.load(Ordering::Relaxed)
    }

    /// The key prefix of a resource's objects, in one namespace or (empty) in all.
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

    /// The current object under a key.
    pub(crate) async fn get(&self, key: &[u8]) -> Result<Option<Stored>, Status> {
        let found = self.store().get(key, None).await.map_err(|error| errors::store(&error))?;
        let Some(entry) = found.entry else { return Ok(None) };
        Stored::new(&entry.value, entry.revision).map(Some).map_err(|why| self.unreadable(key, &why))
    }

    /// 500 for an unreadable object.
    pub(crate) fn unreadable(&self, key: &[u8], why: &Unreadable) -> Status {
        match keys::split_key(key, &self.prefix) {
            Some(at) => errors::unreadable(at.group, at.plural, at.name, why),
            None => Status::internal(format!("{} cannot be read: {why}", key.escape_ascii())),
        }
    }

    /// The cache of a resource, if there is one.
    pub(crate) fn started_cache(&self, resource: &Resource) -> Option<Arc<Cache>> {
        self.caches.read().get(&cache_key(resource)).cloned()
    }

    /// The cache of a resource, started on first use.
    pub(crate) fn cache(&self, resource: &Resource) -> Arc<Cache> {
        let key = cache_key(resource);
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

    /// Reads the policy: all roles and bindings.
    pub(crate) async fn read_policy<T>(&self, read: impl Fn(&Index) -> T) -> Result<T, Status> {
        let newest = self.newest_policy().await?;
        self.read_policy_at(newest.policy, read).await
    }

    /// The newest policy there is in the store.
    pub(crate) async fn newest_policy(&self) -> Result<Newest, Status> {
        self.policies.newest(&**self.store(), &self.policy_mark()).await
    }

    /// Reads the policy as of a revision, or a later one.
    pub(crate) async fn read_policy_at<T>(
        &self,
        at: Revision,
        read: impl Fn(&Index) -> T,
    ) -> Result<T, Status> {
        if let Some(found) = self.policies.try_read(at, &read) {
            return Ok(found);
        }
        let mut caches = Vec::with_capacity(rbac::RESOURCES.len());
        for plural in rbac::RESOURCES {
            let resource = GroupVersionResource::new(rbac::GROUP, "v1", plural);
            caches.push(self.cache(&*self.shared.catalog.require(resource)?));
        }
        self.policies.read(caches, at, read).await
    }

    /// The flow of a request. `is_trusted`: by the server's administrators, who need no seat.
    pub(crate) async fn flow(&self, user: &User, wanted: &Attributes<'_>, is_trusted: bool) -> Flow {
        let fairness = &self.shared.capacity.fairness;
        if is_trusted {
            return self.flows.classify_exempt(fairness, user, wanted);
        }
        let load = || {
            let gvr = |plural| GroupVersionResource::new(fairness::GROUP, "v1", plural);
            let caches = fairness::RESOURCES
                .iter()
                .map(|plural| Ok(self.cache(&*self.shared.catalog.require(gvr(plural))?)));
            caches.collect()
        };
        let flow = self.flows.classify(fairness, load, user, wanted).await;
        // The server's own tenant divides the server; any other one divides only what it may use.
        if self.name == self.shared.options.default_tenant { flow.trust() } else { flow }
    }

    /// Drops the caches of a resource whose objects are gone, or are decoded differently from now on.
    pub(crate) fn forget_caches(&self, group: &str, plural: &str) {
        self.caches.write().retain(|key, _| key.group != group || key.resource != plural);
    }

    /// The resource at a path, built-in or custom.
    pub(crate) async fn resource(
        self: &Arc<Self>,
        gvr: GroupVersionResource<&str>,
    ) -> Result<Option<Arc<Resource>>, Status> {
        if let Some(resource) = self.shared.catalog.find(gvr) {
            return Ok(Some(resource));
        }
        if self.shared.catalog.has_group(gvr.group) && !gvr.group.contains('.') {
            return Ok(None);
        }
        self.customs.find(self, gvr).await
    }

    /// Runs a transaction, if the tenant still exists. [`Tenant::refusal`] turns errors into responses.
    pub(crate) async fn txn(&self, txn: Txn) -> k1s_store::Result<Revision> {
        let expected = Precondition::Revision(Revision::new(self.mark.load(Ordering::Acquire)));
        let noted = self.noted(&txn);
        let txn = match self.store().is_shared() && self.changes_policy(&txn) {
            true => txn.put(self.policy_mark(), Bytes::new(), Precondition::Any),
            false => txn,
        };
        match self.store().txn(txn.check(self.mark_key.clone(), expected)).await {
            Err(StoreError::Conflict(conflict)) if conflict.key == self.mark_key => {
                self.lost();
                Err(StoreError::Closed)
            }
            Err(StoreError::Conflict(conflict)) => {
                if Known::is_about(&conflict.key) {
                    let current = conflict.current.as_ref().map(|current| current.revision);
                    self.shared.known.correct(&conflict.key, current);
                }
                Err(StoreError::Conflict(conflict))
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

    /// A key that changes with every role and binding, where several servers write: its revision is that of the policy, and
    /// reading it is all that a server needs in order to know that it has the newest one.
    fn policy_mark(&self) -> Bytes {
        self.keys_of("k1s", "policy", "").into()
    }

    fn changes_policy(&self, txn: &Txn) -> bool {
        let is_policy = |key: &Bytes| {
            let rest = key
                .strip_prefix(self.prefix.as_bytes())
                .and_then(|rest| rest.strip_prefix(rbac::GROUP.as_bytes()));
            rest.is_some_and(|rest| rest.starts_with(b"/"))
        };
        txn.ops().iter().any(|op| op.action != Action::Check && is_policy(&op.key))
    }

    /// The keys changed by a transaction that admission relies on without reading the store, and whether they are put.
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
        }
        let rest = key.strip_prefix(self.prefix.as_bytes()).unwrap_or_default();
        if rest.starts_with(REGISTRATIONS.as_bytes()) {
            self.registrations.note_write(revision);
        }
        for cache in self.caches.read().values().filter(|cache| key.starts_with(cache.prefix())) {
            cache.note_write(revision);
        }
    }

    /// A key that exists as long as a namespace may have quotas. It changes whenever a quota is created, and writes that
    /// assume no quotas are conditional on it, so that they miss none without listing quotas.
    pub(crate) fn quota_mark(&self, namespace: &str) -> Bytes {
        (self.keys_of("k1s", "quotas", "") + namespace).into()
    }

    /// Replaces the value that revision `expected` gave to `key`, if the tenant still exists.
    pub(crate) async fn update(
        &self,
        key: Bytes,
        value: Bytes,
        expected: Revision,
    ) -> k1s_store::Result<Revision> {
        self.txn(Txn::new().put(key, value, Precondition::Revision(expected))).await
    }

    /// The error of a write that failed.
    pub(crate) fn refusal(&self, error: StoreError) -> Error {
        if self.is_gone() { not_found(&self.name) } else { error.into() }
    }

    /// Sets the revision of the mark after bootstrap has rewritten it.
    pub(crate) fn set_mark(&self, mark: Revision) {
        self.mark.store(mark.get(), Ordering::Release);
    }

    /// Whether the tenant was deleted while a request still holds it.
    pub(crate) fn is_gone(&self) -> bool {
        self.stop.is_cancelled() && !self.shared.stop.is_cancelled()
    }

    /// Logs that work beside requests has failed. Not when the tenant or the server is ending: then it is no longer wanted, or
    /// the next start does it.
    pub(crate) fn warn_of(&self, error: &impl fmt::Display, failed: impl fmt::Display) {
        if !self.stop.is_cancelled() {
            tracing::warn!(tenant = self.name, %error, "{failed}");
        }
    }

    /// Ends its watches and tasks, after it was deleted.
    pub(crate) fn end(&self) {
        self.stop.cancel();
        self.registrations.clear();
        self.caches.write().clear();
    }

    /// Ends a tenant that another server has deleted.
    fn lost(&self) {
        self.end();
        if let Some(hook) = &self.shared.options.tenant_hook
            && self.needs_controllers.load(Ordering::Relaxed)
        {
            hook.tell(TenantEvent::Gone(&self.name));
        }
    }

    /// Verifies in a task that the tenant still exists, unless that was done less than `interval` ago. Writes need none:
    /// their transactions check the mark.
    pub(crate) fn verify_every(self: &Arc<Self>, interval: Duration) {
        let now = self.env().now();
        {
            let mut verified = self.verified.lock();
            if now - *verified < interval {
                return;
            }
            *verified = now;
        }
        let tenant = self.clone();
        drop(self.env().spawn("verify a tenant's mark", async move { tenant.verify().await }));
    }

    /// Reads the mark, and ends the tenant if the mark has changed. Returns whether the tenant still exists.
    pub(crate) async fn verify(&self) -> bool {
        let expected = self.mark.load(Ordering::Acquire);
        // A failed read does not end the tenant.
        if let Ok(found) = self.store().get(&self.mark_key, None).await
            && found.entry.is_none_or(|mark| mark.revision.get() != expected)
        {
            self.lost();
        }
        !self.is_gone()
    }

    /// A document, built if it is not cached: on a blocking thread, one at a time, and one request of each tenant at a
    /// time. A build that has begun is completed even if its client disconnects.
    pub(crate) async fn document(
        self: &Arc<Self>,
        key: Key,
        build: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) -> Result<Document, Status> {
        let shared = self.shared.clone();
        if let Some(document) = shared.documents.find(&key) {
            return Ok(document);
        }
        let turn = self.building.clone().lock_owned().await;
        let permit = shared.documents.builder.clone().acquire_owned().await.map_err(Status::internal)?;
        // Another request may have built it in the meantime.
        if let Some(document) = shared.documents.find(&key) {
            return Ok(document);
        }
        let env = shared.env.clone();
        let building = env.spawn_blocking("build a document", move || {
            let document = shared.documents.keep_built(key, build().into());
            drop((permit, turn));
            document
        });
        building.await.map_err(Status::internal)
    }

    /// The store's newest revision. Concurrent requests share a read of it, where it is more than a look at memory.
    pub(crate) async fn revision(&self) -> Result<Revision, Status> {
        let read = || async { self.store().revision().await.map_err(|error| errors::store(&error)) };
        if self.store().is_shared() { self.newest.call(read).await } else { read().await }
    }
}

fn cache_key(resource: &Resource) -> GroupVersionResource<String> {
    let version =
        if resource.field_names().is_empty() { String::new() } else { resource.api_version.clone() };
    GroupVersionResource::new(resource.storage_group().to_owned(), version, resource.plural.clone())
}

/// 404: `tenants.k1s.dev "a" not found`.
pub(crate) fn not_found(tenant: &str) -> Error {
    Error::not_found("k1s.dev", "tenants", tenant)
}
