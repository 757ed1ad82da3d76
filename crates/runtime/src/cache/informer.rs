//! An informer: the objects of one kind, kept up to date, and the handlers of their events.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use k1s_env::{Env, Task};
use kube::discovery::Scope;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    CacheError, Core, InformerOptions, Problem,
    codec::{Codec, Kept},
    index::IndexFn,
    objects::Objects,
    reflector,
};
use crate::{
    Event, Kind, Object, ObjectKey,
    client::ListOptions,
    kind::static_scope,
    panics::{Panics, Site},
};

/// Receives every event of a kind, in order. It must not block; it may read the cache.
///
/// A panic is caught and reported ([`Problem::Panicked`]); the handler misses that event and receives the next ones.
pub type EventHandler<K> = Box<dyn Fn(&Event<K>) + Send + Sync>;

/// The cached objects of one kind. Shared by all readers of the kind.
pub struct Informer<K: Object> {
    pub(super) core: Arc<Core>,
    pub(super) codec: Arc<Codec<K>>,
    pub(super) options: InformerOptions<K>,
    /// One per watched namespace; a single one if all namespaces are watched or the kind is cluster-scoped. Unset until
    /// the scope is known.
    parts: OnceLock<Vec<Part<K>>>,
    /// For parts that are created later. Locked while they are created.
    indexes: Mutex<Vec<(String, IndexFn<K>)>>,
    /// Locked while handlers are called, so that events are ordered and a new handler receives each object once. Always
    /// locked before a part's objects.
    handlers: Mutex<Handlers<K>>,
    pub(super) status: watch::Sender<Status>,
    /// Time of the last read, in milliseconds since `started`.
    last_read: AtomicU64,
    started: k1s_env::Instant,
    pub(super) stop: CancellationToken,
    pub(super) tasks: Mutex<Vec<Task<()>>>,
}

pub(super) struct Part<K: Object> {
    pub(super) namespace: Option<Arc<str>>,
    pub(super) objects: RwLock<Objects<K>>,
}

struct Handlers<K> {
    next_id: u64,
    all: BTreeMap<u64, (Site, EventHandler<K>)>,
    panics: Panics,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// Number of parts that have been listed.
    pub(super) synced: usize,
    /// The problem of each part that has one.
    pub(super) problems: BTreeMap<usize, Problem>,
    /// Objects that could not be decoded, and why.
    pub(super) undecodable: BTreeMap<ObjectKey, String>,
}

impl<K: Object> Informer<K> {
    pub(super) fn new(core: &Arc<Core>, kind: Kind<K>, options: InformerOptions<K>) -> Arc<Informer<K>> {
        let panics = core.panics.clone();
        let codec = Arc::new(Codec {
            transform: options.transform.clone(),
            lean: options.lean,
            strip_managed_fields: options.strip_managed_fields,
            site: panics
                .site(if options.transform.is_some() { "transform" } else { "decoder" }, &kind.to_string()),
            panics: panics.clone(),
            kind,
        });
        let informer = Arc::new(Informer {
            core: Arc::clone(core),
            codec,
            options,
            parts: OnceLock::new(),
            indexes: Mutex::default(),
            handlers: Mutex::new(Handlers { next_id: 0, all: BTreeMap::new(), panics }),
            status: watch::Sender::new(Status::default()),
            last_read: AtomicU64::new(0),
            started: core.env.now(),
            stop: core.stop.child_token(),
            tasks: Mutex::new(Vec::new()),
        });
        let limited = informer.options.namespaces.as_ref().is_some_and(|namespaces| !namespaces.is_empty());
        match static_scope::<K>() {
            Some(scope) => informer.divide(scope == Scope::Namespaced),
            // All objects are watched, whatever the scope.
            None if !limited => informer.divide(false),
            None => {}
        }
        informer
    }

    /// Creates the parts, now that the scope is known.
    fn divide(&self, namespaced: bool) {
        let mut namespaces: Vec<Option<Arc<str>>> = match &self.options.namespaces {
            Some(namespaces) if namespaced && !namespaces.is_empty() => {
                namespaces.iter().cloned().map(Some).collect()
            }
            _ => vec![None],
        };
        namespaces.sort();
        namespaces.dedup();
        let indexes = self.indexes.lock();
        let part = |namespace| {
            let mut objects = Objects::new(Arc::clone(&self.codec));
            for (name, values) in &*indexes {
                objects.add_index(name.clone(), Arc::clone(values));
            }
            Part { namespace, objects: RwLock::new(objects) }
        };
        // The scope is found out once, so the parts are not set yet.
        let _ = self.parts.set(namespaces.into_iter().map(part).collect());
    }

    pub(super) fn start(self: &Arc<Self>) {
        let env = &self.core.env;
        if self.parts.get().is_some() {
            self.start_parts();
        } else {
            let task = env.spawn(format!("scope of {}", self.codec.kind), Arc::clone(self).find_scope());
            self.tasks.lock().push(task);
        }
        if let Some(period) = self.options.resync_period {
            let resync = Self::resync(Arc::downgrade(self), env.clone(), period, self.stop.clone());
            self.tasks.lock().push(env.spawn(format!("resync {}", self.codec.kind), resync));
        }
    }

    /// Discovers whether the kind is namespaced, and starts the parts.
    async fn find_scope(self: Arc<Self>) {
        let found = self.stop.run_until_cancelled(reflector::is_namespaced(&self)).await;
        if let Some(namespaced) = found {
            self.divide(namespaced);
            self.report(0, None);
            self.start_parts();
        }
    }

    fn start_parts(self: &Arc<Self>) {
        let mut tasks = self.tasks.lock();
        // `stop` cancels first and takes the tasks afterwards.
        if self.stop.is_cancelled() {
            return;
        }
        for part in 0..self.parts().len() {
            let name = format!("informer {}", self.codec.kind);
            let run = reflector::run(Arc::clone(self), part, self.stop.clone());
            tasks.push(self.core.env.spawn(name, run));
        }
    }

    /// Empty until the scope is known.
    pub(super) fn parts(&self) -> &[Part<K>] {
        self.parts.get().map(Vec::as_slice).unwrap_or_default()
    }

    fn is_synced(&self, status: &Status) -> bool {
        self.parts.get().is_some_and(|parts| status.synced == parts.len())
    }

    /// Delivers every object to the handlers again, once per period.
    async fn resync(informer: Weak<Self>, env: Env, period: Duration, stop: CancellationToken) {
        loop {
            // Jitter of ± 10 %, so that informers do not resync together.
            let period = period.mul_f64(0.9 + 0.2 * env.random_f64());
            tokio::select! {
                () = stop.cancelled() => return,
                () = env.sleep(period) => {}
            }
            let Some(informer) = informer.upgrade() else { return };
            let handlers = informer.handlers.lock();
            for part in informer.parts() {
                let delivered: Vec<Kept<K>> =
                    part.objects.read().delivered().map(|(_, kept)| kept.clone()).collect();
                for object in delivered.iter().filter_map(|kept| informer.codec.open(kept)) {
                    handlers.call(&[Event::Updated { old: Arc::clone(&object), new: object, resync: true }]);
                }
            }
        }
    }

    // For readers.

    /// The kind of its objects.
    #[must_use]
    pub fn kind(&self) -> &Kind<K> {
        &self.codec.kind
    }

    /// Whether the initial list is complete.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.is_synced(&self.status.borrow())
    }

    /// Waits until the initial list is complete, however long it fails.
    pub async fn synced(&self) {
        let mut status = self.status.subscribe();
        let _ = status.wait_for(|status| self.is_synced(status)).await;
    }

    /// Why it cannot list or watch, or else a panic of code that it called.
    #[must_use]
    pub fn problem(&self) -> Option<Problem> {
        let own = self.status.borrow().problems.values().next().cloned();
        own.or_else(|| self.core.panics.problem_of(&self.codec.kind.to_string()))
    }

    /// The objects that could not be decoded, and why. Reads return their last good state, if there is one.
    #[must_use]
    pub fn undecodable(&self) -> BTreeMap<ObjectKey, String> {
        self.status.borrow().undecodable.clone()
    }

    /// Waits until it can be read, or fails with the reason why it cannot.
    pub(super) async fn readable(&self) -> Result<(), CacheError> {
        if self.has_synced() {
            return Ok(());
        }
        let mut status = self.status.subscribe();
        let ready = status
            .wait_for(|status| self.is_synced(status) || status.problems.values().any(Problem::is_lasting));
        let reached = tokio::select! {
            () = self.stop.cancelled() => return Err(CacheError::Stopped),
            reached = ready => reached.map_err(|_| CacheError::Stopped)?,
        };
        if self.is_synced(&reached) {
            return Ok(());
        }
        let problem = reached.problems.values().find(|problem| problem.is_lasting()).cloned();
        Err(problem.map_or(CacheError::Stopped, |problem| CacheError::NotReadable {
            kind: self.codec.kind.to_string(),
            problem,
        }))
    }

    fn mark_read(&self) {
        let now = self.core.env.now() - self.started;
        self.last_read.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn part_of(&self, key: &ObjectKey) -> Option<&Part<K>> {
        match self.parts() {
            [only] if only.namespace.is_none() => Some(only),
            parts => parts.iter().find(|part| part.namespace.as_deref() == key.namespace()),
        }
    }

    /// Fails if a namespace is not watched.
    pub(super) fn covers(&self, namespace: Option<&str>) -> Result<(), CacheError> {
        let (Some(namespace), parts) = (namespace, self.parts()) else { return Ok(()) };
        let here = |part: &Part<K>| part.namespace.as_deref().is_none_or(|watched| watched == namespace);
        if parts.is_empty() || parts.iter().any(here) {
            return Ok(());
        }
        Err(CacheError::OtherNamespace {
            kind: self.codec.kind.to_string(),
            namespace: namespace.to_owned(),
            watched: parts.iter().filter_map(|part| part.namespace.clone()).collect(),
        })
    }

    /// Gets an object. Returns `None` for a namespace that is not watched, where [`Cache::get`](super::Cache::get) fails.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.mark_read();
        let kept = self.part_of(key)?.objects.read().get(key).cloned()?;
        self.codec.open(&kept)
    }

    /// Number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts().iter().map(|part| part.objects.read().len()).sum()
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lists the objects that match, ordered by namespace and name.
    ///
    /// # Errors
    /// If a selected field has no index, or the namespace is not watched.
    pub fn list(&self, options: &ListOptions) -> Result<Vec<Arc<K>>, CacheError> {
        self.mark_read();
        let mut found = Vec::new();
        let namespace = options.namespace.as_deref();
        self.covers(namespace)?;
        for part in self.parts() {
            if namespace.is_some() && part.namespace.is_some() && part.namespace.as_deref() != namespace {
                continue;
            }
            self.select(&part.objects.read(), options, &mut found)?;
        }
        // Objects of a lean cache are decoded after the locks are released.
        Ok(found.iter().filter_map(|kept| self.codec.open(kept)).collect())
    }

    fn select(
        &self,
        objects: &Objects<K>,
        options: &ListOptions,
        found: &mut Vec<Kept<K>>,
    ) -> Result<(), CacheError> {
        let limit = options.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let namespace = options.namespace.as_deref();
        let fields = options.fields.as_ref().map(|fields| fields.requirements()).unwrap_or_default();
        let (indexed, plain): (Vec<_>, Vec<_>) = fields.iter().partition(|one| objects.has_index(&one.field));
        if let Some(one) = plain.iter().find(|one| key_field(&one.field).is_none()) {
            return Err(CacheError::NoIndex { kind: self.codec.kind.to_string(), field: one.field.clone() });
        }
        let by_key = |key: &ObjectKey| {
            plain.iter().all(|one| {
                key_field(&one.field).is_some_and(|field| (field(key) == one.value) != one.negated)
            })
        };
        let by_labels = |kept: &Kept<K>| {
            options.labels.as_ref().is_none_or(|selector| self.codec.labels_match(kept, selector))
        };
        let mut take = |kept: &Kept<K>| {
            let more = found.len() < limit;
            if more && by_labels(kept) {
                found.push(kept.clone());
            }
            more
        };
        // The first equality on an index yields the keys, other indexes filter them; without one, all objects are scanned.
        let lead = indexed.iter().position(|one| !one.negated);
        let others: Vec<(bool, BTreeSet<&ObjectKey>)> = indexed
            .iter()
            .enumerate()
            .filter(|(at, _)| Some(*at) != lead)
            .map(|(_, one)| (one.negated, objects.indexed(&one.field, &one.value).collect()))
            .collect();
        let by_index = |key: &ObjectKey| others.iter().all(|(negated, keys)| keys.contains(key) != *negated);
        if let Some(lead) = lead {
            let _ = objects
                .indexed(&indexed[lead].field, &indexed[lead].value)
                .filter(|key| namespace.is_none_or(|namespace| key.namespace() == Some(namespace)))
                .filter(|key| by_key(key) && by_index(key))
                .filter_map(|key| objects.get(key))
                .all(&mut take);
        } else {
            let _ = objects
                .range(namespace)
                .filter(|(key, _)| by_key(key) && by_index(key))
                .all(|(_, kept)| take(kept));
        }
        Ok(())
    }

    /// Adds an index: objects are found by the values that `values` returns for them.
    ///
    /// An object on which `values` panics is skipped like one that cannot be decoded: its last good state stays, and the
    /// panic is reported ([`Problem::Panicked`]).
    pub fn add_index(&self, name: &str, values: &IndexFn<K>) {
        let mut indexes = self.indexes.lock();
        for part in self.parts() {
            part.objects.write().add_index(name.to_owned(), Arc::clone(values));
        }
        indexes.retain(|(other, _)| other != name);
        indexes.push((name.to_owned(), Arc::clone(values)));
    }

    // For handlers.

    /// Calls `handler` for every existing object, then for every event, until the registration is dropped.
    #[must_use = "a handler is called as long as its registration lives"]
    pub fn add_handler(self: &Arc<Self>, handler: EventHandler<K>) -> Registration {
        let mut handlers = self.handlers.lock();
        let site = handlers.panics.site("handler", &self.codec.kind.to_string());
        self.for_each_delivered(|event| handlers.call_one(&site, &handler, event));
        let id = handlers.next_id;
        handlers.next_id += 1;
        handlers.all.insert(id, (site, handler));
        let informer = Arc::downgrade(self);
        Registration::new(move || {
            let Some(informer) = informer.upgrade() else { return };
            let removed = informer.handlers.lock().all.remove(&id);
            if let Some((site, _)) = removed {
                informer.core.panics.forget(&site, |_| true);
            }
            informer.mark_read();
        })
    }

    /// Calls `handle` for every existing object, as for a new handler. Ordered with the events of handlers.
    pub(crate) fn replay(&self, handle: impl Fn(&Event<K>)) {
        let _handlers = self.handlers.lock();
        self.for_each_delivered(handle);
    }

    /// Requires the lock of the handlers.
    fn for_each_delivered(&self, handle: impl Fn(&Event<K>)) {
        for part in self.parts() {
            let delivered: Vec<Kept<K>> =
                part.objects.read().delivered().map(|(_, kept)| kept.clone()).collect();
            for object in delivered.iter().filter_map(|kept| self.codec.open(kept)) {
                handle(&Event::Created { object, initial: true });
            }
        }
    }

    /// Whether it has no handlers, and was not read for this long.
    pub(super) fn unused_for(&self, idle: Duration) -> bool {
        let now = self.core.env.now() - self.started;
        self.handlers.lock().all.is_empty()
            && now >= Duration::from_millis(self.last_read.load(Ordering::Relaxed)) + idle
    }

    // For the reflector.

    /// Changes the objects of a part, and delivers the events to the handlers.
    pub(super) fn apply(&self, part: usize, change: impl FnOnce(&mut Objects<K>, &mut Vec<Event<K>>)) {
        let mut events = Vec::new();
        let handlers = self.handlers.lock();
        change(&mut self.parts()[part].objects.write(), &mut events);
        handlers.call(&events);
        drop(handlers);
        self.core.mark_changed();
    }

    /// Sets or clears the problem of a part.
    pub(super) fn report(&self, part: usize, problem: Option<Problem>) {
        let changed = self.status.send_if_modified(|status| match problem {
            Some(problem) if status.problems.get(&part) != Some(&problem) => {
                status.problems.insert(part, problem);
                true
            }
            Some(_) => false,
            None => status.problems.remove(&part).is_some(),
        });
        if changed {
            self.core.mark_changed();
        }
    }

    /// Counts a part that was listed for the first time.
    pub(super) fn mark_synced(&self) {
        self.status.send_modify(|status| status.synced += 1);
    }

    /// After a complete list of a part: only these objects of it cannot be decoded.
    pub(super) fn retain_undecodable(&self, part: usize, bad: &BTreeSet<ObjectKey>) {
        let namespace = &self.parts()[part].namespace;
        let gone = |key: &ObjectKey| {
            namespace.as_deref().is_none_or(|namespace| key.namespace() == Some(namespace))
                && !bad.contains(key)
        };
        self.status.send_if_modified(|status| {
            let before = status.undecodable.len();
            status.undecodable.retain(|key, _| !gone(key));
            status.undecodable.len() != before
        });
        self.forget_panics(gone);
    }

    /// Forgets the panics of the transform and of indexes on these objects.
    pub(super) fn forget_panics(&self, which: impl Fn(&ObjectKey) -> bool) {
        self.core.panics.forget(&self.codec.site, &which);
        for part in self.parts() {
            part.objects.read().forget_panics(&which);
        }
    }

    /// Records that an object could not be decoded, or can be again.
    pub(super) fn report_object(&self, key: &ObjectKey, error: Option<&str>) {
        if error.is_none() && self.status.borrow().undecodable.is_empty() {
            return;
        }
        self.status.send_if_modified(|status| match error {
            Some(error) => status.undecodable.insert(key.clone(), error.to_owned()).as_deref() != Some(error),
            None => status.undecodable.remove(key).is_some(),
        });
    }
}

/// The fields that need no index, because they are part of the key.
fn key_field(name: &str) -> Option<fn(&ObjectKey) -> &str> {
    match name {
        "metadata.name" => Some(|key| key.name()),
        "metadata.namespace" => Some(|key| key.namespace().unwrap_or_default()),
        _ => None,
    }
}

impl<K: Object> Handlers<K> {
    fn call(&self, events: &[Event<K>]) {
        for event in events {
            for (site, handler) in self.all.values() {
                self.call_one(site, handler, event);
            }
        }
    }

    fn call_one(&self, site: &Site, handler: &EventHandler<K>, event: &Event<K>) {
        // A panic is recorded by `run`; the other handlers still receive the event.
        let _ = self.panics.run(site, || event.key(), || handler(event));
    }
}

/// Keeps a handler registered until it is dropped.
pub struct Registration {
    remove: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Registration {
    fn new(remove: impl FnOnce() + Send + Sync + 'static) -> Registration {
        Registration { remove: Some(Box::new(remove)) }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(remove) = self.remove.take() {
            remove();
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Registration")
    }
}

impl<K: Object> fmt::Debug for Informer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer")
            .field("kind", &self.codec.kind)
            .field("status", &*self.status.borrow())
            .finish_non_exhaustive()
    }
}
