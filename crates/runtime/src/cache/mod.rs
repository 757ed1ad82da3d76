//! Shared informers: one watch per kind, for all its readers and handlers.
//!
//! A [`Cache`] has one [`Informer`] per kind and form, started by the first read or handler and stopped when it has been
//! unused for a while. Reads return shared, immutable objects. A client reads its own writes: the server's response to
//! a write is stored in the cache at once, and handlers receive it with its event.

mod any;
mod codec;
mod index;
mod informer;
mod objects;
mod options;
mod reflector;
pub(crate) mod wire;

use std::{
    any::{Any, TypeId},
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use k1s_env::{Elapsed, Env, Task};
use kube::{api::ApiResource, client::Body};
use parking_lot::{Mutex, RwLock};
use prometheus_client::metrics::{counter::Counter, family::Family};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::any::AnyInformer;
pub use self::{
    codec::Transform,
    index::IndexFn,
    informer::{EventHandler, Informer, Registration},
    options::{ByObject, CacheOptions, InformerOptions},
};
use crate::{
    Form, Kind, Metrics, Object, ObjectKey,
    client::{ListOptions, RestMapper, RestMetrics, Written, telemetry::Telemetry},
    panics::{PanicCount, Panics},
};

/// Why a cache cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The kind cannot be listed or watched; the cache keeps retrying.
    #[error("{kind} cannot be read from the cache: {problem}")]
    NotReadable {
        /// The kind.
        kind: String,
        /// The problem.
        problem: Problem,
    },
    /// There is no informer, and reads do not start one ([`CacheOptions::fail_on_missing_informer`]).
    #[error("{kind} has no informer, and reads do not start one (fail_on_missing_informer)")]
    NoInformer {
        /// The kind.
        kind: String,
    },
    /// The list selects by a field without an index.
    #[error("{kind} has no index {field:?}; add it with the field indexer before you list by it")]
    NoIndex {
        /// The kind.
        kind: String,
        /// The field.
        field: String,
    },
    /// The read is of a namespace that is not watched: whether the object exists is unknown.
    #[error(
        "{kind} in namespace {namespace:?} is not in the cache, which holds the namespaces {} only; add the namespace to \
         the manager's or the kind's, or read from the server: api_reader(), live()",
        quoted(watched)
    )]
    OtherNamespace {
        /// The kind.
        kind: String,
        /// The namespace of the read.
        namespace: String,
        /// The namespaces that are watched.
        watched: Vec<Arc<str>>,
    },
    /// The cache was stopped.
    #[error("the cache was stopped")]
    Stopped,
}

fn quoted(names: &[Arc<str>]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

/// Why an informer cannot list or watch, or an event was not handled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The server does not serve the kind (yet).
    #[error("the server does not serve {resource}")]
    NotServed {
        /// The resource.
        resource: String,
    },
    /// Not allowed.
    #[error("not allowed to {verb} {resource}{}: {message}", in_namespace(namespace))]
    Forbidden {
        /// The verb that is not allowed.
        verb: &'static str,
        /// The resource.
        resource: String,
        /// The namespace, if the cache watches individual namespaces.
        namespace: Option<Arc<str>>,
        /// The message of the server.
        message: String,
    },
    /// User code panicked: a predicate, handler, mapper, index, transform or source. Its effect is missing, everything
    /// else continues. Reported until the same code succeeds with the same object.
    #[error("{code} panicked{}: {message}", on_object(object))]
    Panicked {
        /// The code that panicked: `the predicate of controller "web"`.
        code: String,
        /// The object that it was called for, if any.
        object: Option<ObjectKey>,
        /// The panic message.
        message: String,
    },
    /// Anything else; it may be transient.
    #[error("{message}")]
    Failed {
        /// The error message.
        message: String,
    },
}

fn on_object(object: &Option<ObjectKey>) -> String {
    object.as_ref().map(|object| format!(" on {object}")).unwrap_or_default()
}

fn in_namespace(namespace: &Option<Arc<str>>) -> String {
    namespace.as_ref().map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default()
}

impl Problem {
    /// Whether retries alone do not help: a definition or a permission is missing.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        matches!(self, Problem::NotServed { .. } | Problem::Forbidden { .. })
    }
}

/// A snapshot of an informer's state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InformerState {
    /// The kind.
    pub name: String,
    /// Whether the initial list is complete.
    pub synced: bool,
    /// Number of objects.
    pub objects: usize,
    /// Whether writes of this client have not come back as events yet.
    pub ahead: bool,
    /// Why it cannot list or watch, or a panic of code that it called.
    pub problem: Option<Problem>,
}

/// Counts objects that could not be decoded, by kind.
type Undecodable = Family<[(&'static str, String); 1], Counter>;

/// The metrics of caches, shared by those of one registry.
#[derive(Debug, Clone, Default)]
pub(crate) struct CacheMetrics {
    undecodable: Undecodable,
    panics: PanicCount,
}

impl CacheMetrics {
    pub(crate) fn register(metrics: &Metrics) -> CacheMetrics {
        let all = CacheMetrics::default();
        metrics.register(|registry| {
            registry.register(
                "k1s_cache_undecodable_objects",
                "Objects that were skipped because they could not be decoded",
                all.undecodable.clone(),
            );
            registry.register(
                "k1s_panics",
                "Panics caught in predicates, handlers, mappers, indexes, transforms and sources",
                all.panics.clone(),
            );
        });
        all
    }
}

/// Informers by kind. Clones share one cache.
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
}

/// State shared by all informers of a cache.
struct Core {
    env: Env,
    client: kube::Client,
    settings: CacheOptions,
    stop: CancellationToken,
    /// Counts changes, for tasks that wait for one.
    changes: watch::Sender<u64>,
    undecodable: Undecodable,
    telemetry: Arc<Telemetry>,
    /// Finds out which kinds are namespaced.
    mapper: RestMapper,
    panics: Panics,
}

impl Core {
    /// Sends a request, within the request timeout. Boxed: reflectors are generic, and would compile all of `kube::Client`
    /// again for each kind.
    #[inline(never)]
    fn send(&self, request: Request<Body>) -> BoxFuture<'_, Result<kube::Result<Response<Body>>, Elapsed>> {
        Box::pin(self.env.timeout(self.settings.request_timeout, self.client.send(request)))
    }
}

type Informers = Vec<Arc<dyn AnyInformer>>;

/// An [`IndexFn`] of some kind.
type AnyIndex = Box<dyn Any + Send + Sync>;

struct Shared {
    core: Arc<Core>,
    informers: RwLock<BTreeMap<Id, Arc<dyn AnyInformer>>>,
    /// The same informers by type, mostly one each: reads look here, which allocates no strings.
    by_type: RwLock<HashMap<(TypeId, Form), Informers>>,
    /// The same informers by resource, for writes.
    by_resource: RwLock<HashMap<ApiResource, Vec<Arc<dyn AnyInformer>>>>,
    /// Indexes by kind, added to each informer when it is created.
    indexes: Mutex<HashMap<Id, BTreeMap<String, AnyIndex>>>,
    reaper: Mutex<Option<Task<()>>>,
    /// Number of observed writes.
    writes: AtomicU64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Id {
    group: String,
    version: String,
    plural: String,
    form: Form,
    object: TypeId,
}

impl Id {
    fn of<K: Object>(kind: &Kind<K>) -> Id {
        let resource = kind.resource();
        Id {
            group: resource.group.clone(),
            version: resource.version.clone(),
            plural: resource.plural.clone(),
            form: kind.form(),
            object: TypeId::of::<K>(),
        }
    }
}

impl Core {
    /// Notes a change in some informer.
    fn mark_changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn undecodable(&self, kind: &str) {
        self.undecodable.get_or_create(&[("kind", kind.to_owned())]).inc();
    }
}

impl Cache {
    /// A cache that starts informers on demand.
    #[must_use]
    pub fn new(env: &Env, client: kube::Client, options: CacheOptions) -> Cache {
        Cache::connected(env, client, options, CacheMetrics::default(), None)
    }

    /// A cache that registers its metrics in `metrics`, and counts its requests in `requests`.
    #[must_use]
    pub fn with_metrics(
        env: &Env,
        client: kube::Client,
        settings: CacheOptions,
        metrics: &Metrics,
        requests: Option<RestMetrics>,
    ) -> Cache {
        Cache::connected(env, client, settings, CacheMetrics::register(metrics), requests)
    }

    fn connected(
        env: &Env,
        client: kube::Client,
        settings: CacheOptions,
        metrics: CacheMetrics,
        requests: Option<RestMetrics>,
    ) -> Cache {
        let telemetry = Arc::new(Telemetry::new(requests, "".into(), true));
        let mapper = RestMapper::for_client(client.clone(), env.clone(), Arc::clone(&telemetry));
        Cache::assemble(env, client, settings, metrics, telemetry, mapper)
    }

    /// A cache that shares the REST mapper and telemetry of a client.
    pub(crate) fn assemble(
        env: &Env,
        client: kube::Client,
        settings: CacheOptions,
        metrics: CacheMetrics,
        telemetry: Arc<Telemetry>,
        mapper: RestMapper,
    ) -> Cache {
        let CacheMetrics { undecodable, panics } = metrics;
        let changes = watch::Sender::new(0);
        Cache {
            shared: Arc::new(Shared {
                core: Arc::new(Core {
                    env: env.clone(),
                    client,
                    settings,
                    stop: CancellationToken::new(),
                    panics: Panics::new(panics, changes.clone()),
                    changes,
                    undecodable,
                    telemetry,
                    mapper,
                }),
                informers: RwLock::new(BTreeMap::new()),
                by_type: RwLock::new(HashMap::new()),
                by_resource: RwLock::new(HashMap::new()),
                indexes: Mutex::new(HashMap::new()),
                reaper: Mutex::new(None),
                writes: AtomicU64::new(0),
            }),
        }
    }

    // Reading.

    /// Gets an object, or `None`. The first read of a kind starts its informer and waits until it has synced.
    ///
    /// # Errors
    /// If the kind cannot be read, or its namespace is not watched.
    pub async fn get<K: Object>(
        &self,
        kind: &Kind<K>,
        key: &ObjectKey,
    ) -> Result<Option<Arc<K>>, CacheError> {
        let informer = self.for_reading(kind)?;
        informer.readable().await?;
        informer.covers(key.namespace())?;
        Ok(informer.get(key))
    }

    /// Lists the objects that match, ordered by namespace and name.
    ///
    /// # Errors
    /// If the kind cannot be read, its namespace is not watched, or a selected field has no index.
    pub async fn list<K: Object>(
        &self,
        kind: &Kind<K>,
        options: &ListOptions,
    ) -> Result<Vec<Arc<K>>, CacheError> {
        let informer = self.for_reading(kind)?;
        informer.readable().await?;
        informer.list(options)
    }

    fn for_reading<K: Object>(&self, kind: &Kind<K>) -> Result<Arc<Informer<K>>, CacheError> {
        match self.existing(kind) {
            Some(informer) => Ok(informer),
            None if self.shared.core.settings.fail_on_missing_informer => {
                Err(CacheError::NoInformer { kind: kind.to_string() })
            }
            None => self.informer(kind),
        }
    }

    /// Whether it caches all objects of a kind in the namespaces that it watches: no selector excludes any.
    pub(crate) fn selects_all<K: Object>(&self, kind: &Kind<K>) -> bool {
        let options = self.shared.core.settings.informer_options(kind);
        options.labels.is_none() && options.fields.is_none()
    }

    // Informers.

    fn existing<K: Object>(&self, kind: &Kind<K>) -> Option<Arc<Informer<K>>> {
        let by_type = self.shared.by_type.read();
        let all = by_type.get(&(TypeId::of::<K>(), kind.form()))?;
        let informer = all.iter().find(|informer| {
            let (one, other) = (informer.resource(), kind.resource());
            one.plural == other.plural && one.version == other.version && one.group == other.group
        });
        Arc::clone(informer?).any().downcast().ok()
    }

    /// The informer of a kind, started if it does not run yet.
    ///
    /// # Errors
    /// If the cache was stopped.
    pub fn informer<K: Object>(&self, kind: &Kind<K>) -> Result<Arc<Informer<K>>, CacheError> {
        if let Some(informer) = self.existing(kind) {
            return Ok(informer);
        }
        let id = Id::of(kind);
        let mut informers = self.shared.informers.write();
        if let Some(informer) =
            informers.get(&id).cloned().and_then(|informer| informer.any().downcast().ok())
        {
            return Ok(informer);
        }
        if self.shared.core.stop.is_cancelled() {
            return Err(CacheError::Stopped);
        }
        let options = self.shared.core.settings.informer_options(kind);
        let informer = Informer::new(&self.shared.core, kind.clone(), options);
        if let Some(indexes) = self.shared.indexes.lock().get(&id) {
            for (name, values) in indexes {
                if let Some(values) = values.downcast_ref::<IndexFn<K>>() {
                    informer.add_index(name, values);
                }
            }
        }
        let any: Arc<dyn AnyInformer> = informer.clone();
        informers.insert(id, Arc::clone(&any));
        let mut by_type = self.shared.by_type.write();
        by_type.entry((TypeId::of::<K>(), kind.form())).or_default().push(Arc::clone(&any));
        drop(by_type);
        self.shared.by_resource.write().entry(kind.resource().clone()).or_default().push(any);
        drop(informers);
        informer.start();
        self.start_reaper();
        Ok(informer)
    }

    /// Adds an index on a kind: lists can select by `name` as by a field. An index of the same name is replaced.
    pub fn index_field<K: Object>(
        &self,
        kind: &Kind<K>,
        name: &str,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) {
        let values: IndexFn<K> = Arc::new(values);
        self.index_field_shared(kind, name, &values);
    }

    /// As [`index_field`](Cache::index_field), with a function that other caches may have, too. If this cache has it already under
    /// that name, nothing is done: objects are not indexed again.
    pub fn index_field_shared<K: Object>(&self, kind: &Kind<K>, name: &str, values: &IndexFn<K>) {
        let id = Id::of(kind);
        let informers = self.shared.informers.read();
        // Held until the informer has it: of two calls, the later one wins in both places.
        let mut indexes = self.shared.indexes.lock();
        let informer =
            informers.get(&id).map(|informer| Arc::clone(informer).any().downcast::<Informer<K>>());
        drop(informers);
        let of_kind = indexes.entry(id).or_default();
        let has_it = |index: &AnyIndex| {
            index.downcast_ref::<IndexFn<K>>().is_some_and(|index| Arc::ptr_eq(index, values))
        };
        if of_kind.get(name).is_some_and(has_it) {
            return;
        }
        of_kind.insert(name.to_owned(), Box::new(Arc::clone(values)));
        if let Some(Ok(informer)) = informer {
            informer.add_index(name, values);
        }
    }

    /// Stops and removes the informer of a kind.
    pub fn remove_informer<K: Object>(&self, kind: &Kind<K>) {
        self.remove(&Id::of(kind));
    }

    fn remove(&self, id: &Id) {
        let Some(informer) = self.shared.informers.write().remove(id) else { return };
        if let Some(all) = self.shared.by_type.write().get_mut(&(id.object, id.form)) {
            all.retain(|other| !Arc::ptr_eq(other, &informer));
        }
        let mut by_resource = self.shared.by_resource.write();
        if let Some(all) = by_resource.get_mut(informer.resource()) {
            all.retain(|other| !Arc::ptr_eq(other, &informer));
        }
        by_resource.retain(|_, all| !all.is_empty());
        drop(by_resource);
        drop(informer.stop());
    }

    /// Starts the task that stops unused informers.
    fn start_reaper(&self) {
        let Some(idle) = self.shared.core.settings.idle_timeout else { return };
        let mut reaper = self.shared.reaper.lock();
        if reaper.is_some() {
            return;
        }
        let (shared, env, stop) =
            (Arc::downgrade(&self.shared), self.shared.core.env.clone(), self.shared.core.stop.clone());
        *reaper = Some(self.shared.core.env.spawn("cache: unused informers", async move {
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = env.sleep(idle / 2) => {}
                }
                let Some(shared) = shared.upgrade() else { return };
                let cache = Cache { shared };
                let unused: Vec<Id> = {
                    let informers = cache.shared.informers.read();
                    informers
                        .iter()
                        .filter(|(_, one)| one.unused_for(idle))
                        .map(|(id, _)| id.clone())
                        .collect()
                };
                for id in unused {
                    tracing::debug!(kind = %id.plural, "stopping an unused informer");
                    cache.remove(&id);
                }
            }
        }));
    }

    // Writes.

    /// Stores the server's response to a write, so that the next read shows it.
    pub fn observe_write(&self, resource: &ApiResource, written: &Written) {
        self.shared.writes.fetch_add(1, Ordering::Relaxed);
        self.observe(resource, written);
    }

    /// Stores an object that was read from the server: as with a write of this client, its event is still to come.
    pub(crate) fn observe_read(&self, resource: &ApiResource, raw: &Bytes) {
        self.observe(resource, &Written::Stored(raw.clone()));
    }

    fn observe(&self, resource: &ApiResource, written: &Written) {
        let by_resource = self.shared.by_resource.read();
        let Some(informers) = by_resource.get(resource) else { return };
        for informer in informers {
            match written {
                Written::Stored(raw) => informer.wrote(raw),
                Written::Deleted { key, uid } => informer.removed(key, uid.as_deref().unwrap_or_default()),
            }
        }
        drop(by_resource);
        self.shared.core.mark_changed();
    }

    /// Number of writes passed to [`observe_write`](Self::observe_write).
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.shared.writes.load(Ordering::Relaxed)
    }

    // All informers.

    fn all(&self) -> Vec<Arc<dyn AnyInformer>> {
        self.shared.informers.read().values().cloned().collect()
    }

    /// Waits until every informer that exists now has synced.
    pub async fn wait_for_sync(&self) {
        for informer in self.all() {
            informer.synced().await;
        }
    }

    /// The kinds that have not synced yet, and the reason if it is known.
    #[must_use]
    pub fn unsynced(&self) -> Vec<(String, Option<Problem>)> {
        let all = self.all();
        let unsynced = all.iter().filter(|informer| !informer.has_synced());
        unsynced.map(|informer| (informer.name(), informer.problem())).collect()
    }

    /// Waits until every informer that exists now has synced or has a lasting problem. Returns those problems.
    pub(crate) async fn readable(&self) -> Vec<(String, Problem)> {
        let mut problems = Vec::new();
        for informer in self.all() {
            if let Err(CacheError::NotReadable { kind, problem }) = informer.readable().await {
                problems.push((kind, problem));
            }
        }
        problems
    }

    /// The kinds that have a problem, with the problem.
    #[must_use]
    pub fn problems(&self) -> Vec<(String, Problem)> {
        self.all().iter().filter_map(|informer| Some((informer.name(), informer.problem()?))).collect()
    }

    /// Panics of predicates, handlers, mappers, indexes, transforms and sources ([`Problem::Panicked`]), with the kind or
    /// source that each concerns.
    #[must_use]
    pub fn panics(&self) -> Vec<(String, Problem)> {
        self.shared.core.panics.problems()
    }

    pub(crate) fn panic_log(&self) -> &Panics {
        &self.shared.core.panics
    }

    pub(crate) fn rest_mapper(&self) -> &RestMapper {
        &self.shared.core.mapper
    }

    /// The state of every informer.
    #[must_use]
    pub fn informer_states(&self) -> Vec<InformerState> {
        let mut states: Vec<InformerState> = self
            .all()
            .iter()
            .map(|informer| InformerState {
                name: informer.name(),
                synced: informer.has_synced(),
                objects: informer.objects(),
                ahead: informer.has_pending_writes(),
                problem: informer.problem(),
            })
            .collect();
        states.sort_by(|a, b| a.name.cmp(&b.name));
        states
    }

    /// Counts changes: while it is constant, no event is delivered to a handler, and no problem appears or disappears.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.core.changes()
    }

    /// Waits until handlers have received the current state of the server from every informer. Returns the problems of
    /// informers that cannot deliver it, and panics of user code.
    pub async fn catch_up(&self) -> Vec<(String, Problem)> {
        let mut problems = Vec::new();
        for informer in self.all() {
            if !informer.has_synced() {
                if let Some(problem) = informer.problem().filter(Problem::is_lasting) {
                    problems.push((informer.name(), problem));
                    continue;
                }
                informer.synced().await;
            }
            let mut changes = self.changes();
            while informer.has_pending_writes() {
                if changes.changed().await.is_err() {
                    break;
                }
            }
            if let Err(problem) = informer.catch_up().await {
                problems.push((informer.name(), problem));
            }
        }
        problems.extend(self.panics());
        problems
    }

    /// Stops all informers, and waits until they have stopped.
    pub async fn stop(&self) {
        self.shared.core.stop.cancel();
        let mut tasks: Vec<Task<()>> = self.all().iter().flat_map(|informer| informer.stop()).collect();
        tasks.extend(self.shared.reaper.lock().take());
        for task in tasks {
            let _ = task.await;
        }
        self.shared.informers.write().clear();
        self.shared.by_type.write().clear();
        self.shared.by_resource.write().clear();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.core.stop.cancel();
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.all().iter().map(|informer| informer.name()).collect();
        f.debug_struct("Cache").field("informers", &names).finish_non_exhaustive()
    }
}
