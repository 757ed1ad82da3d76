//! One API server, as controllers use it: a client, a cache, the REST mapper and event recorders, under a name.

use std::{
    borrow::Borrow,
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
    time::Duration,
};

use k1s_env::{Env, WorkTracker};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    GroupKind, Metrics,
    cache::{Cache, CacheMetrics, CacheOptions},
    client::{Client, ClientOptions, Interceptor, Reader, RestMapper, RestMetrics},
    manager::{Companion, Connect},
    queue::Key,
    recorder::{EventBroadcaster, EventOptions, EventRecorder, Undelivered},
    source::{self, InCache, Source},
};

/// The name of a cluster. Empty for the cluster that a manager is made for. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterName(Arc<str>);

impl ClusterName {
    /// A name.
    pub fn new(name: impl Into<Arc<str>>) -> ClusterName {
        ClusterName(name.into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the name of a manager's own cluster.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.0.is_empty()
    }
}

impl Default for ClusterName {
    fn default() -> ClusterName {
        ClusterName("".into())
    }
}

impl Deref for ClusterName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for ClusterName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ClusterName {
    fn from(name: &str) -> ClusterName {
        ClusterName(name.into())
    }
}

impl From<String> for ClusterName {
    fn from(name: String) -> ClusterName {
        ClusterName(name.into())
    }
}

impl From<Arc<str>> for ClusterName {
    fn from(name: Arc<str>) -> ClusterName {
        ClusterName(name)
    }
}

impl From<ClusterName> for Arc<str> {
    fn from(name: ClusterName) -> Arc<str> {
        name.0
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The metrics of clients and caches, shared by all clusters of a registry.
#[derive(Debug, Clone)]
pub struct ClusterMetrics {
    pub(crate) requests: RestMetrics,
    pub(crate) cache: CacheMetrics,
}

impl ClusterMetrics {
    /// Registers the metrics. A second call for the same registry would register them twice: clone instead.
    #[must_use]
    pub fn register(metrics: &Metrics) -> ClusterMetrics {
        ClusterMetrics { requests: RestMetrics::new(metrics), cache: CacheMetrics::register(metrics) }
    }
}

/// The options of a cluster.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// Time, tasks and randomness. By default those of the control plane, if it runs in this process.
    pub env: Option<Env>,
    /// Where work in flight is counted. By default the tracker of the control plane, if it runs in this process.
    pub work: Option<WorkTracker>,
    /// Options of the cache.
    pub cache: CacheOptions,
    /// Restricts client and cache to a namespace; cluster-scoped objects are not affected.
    pub namespace: Option<Arc<str>>,
    /// Kinds that the client reads from the server instead of the cache.
    pub uncached: Vec<GroupKind>,
    /// The field manager of everything that the client writes, unless a call names another one.
    pub field_owner: Option<Arc<str>>,
    /// Whether the server's warnings are logged, each text once. On by default.
    pub log_warnings: bool,
    /// Options of the event recorders.
    pub events: EventOptions,
    /// Counts requests and problems of the cache. None by default.
    pub metrics: Option<ClusterMetrics>,
}

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        ClusterOptions {
            env: None,
            work: None,
            cache: CacheOptions::default(),
            namespace: None,
            uncached: Vec::new(),
            field_owner: None,
            log_warnings: true,
            events: EventOptions::default(),
            metrics: None,
        }
    }
}

/// One API server: client, cache, REST mapper, event recorders and their lifetime, under a name. Go's `cluster.Cluster`.
///
/// It has no task of its own: informers start with the first read or watch of a kind, the delivery of events with the first
/// recorder. They end with [`stop`](Self::stop), or when the last clone is dropped.
#[derive(Clone)]
pub struct Cluster {
    name: ClusterName,
    inner: Arc<Inner>,
}

struct Inner {
    env: Env,
    work: WorkTracker,
    kube: kube::Client,
    client: Client,
    cache: Cache,
    events: OnceLock<EventBroadcaster>,
    options: ClusterOptions,
    /// Of the client.
    interceptors: Vec<Arc<dyn Interceptor>>,
    companion: Option<watch::Receiver<Companion>>,
    stopped: CancellationToken,
}

impl Cluster {
    /// A cluster for the API server of this client or runtime.
    pub fn new(name: impl Into<ClusterName>, connect: impl Connect, options: ClusterOptions) -> Cluster {
        let env = options.env.clone().or_else(|| connect.env()).unwrap_or_else(Env::system);
        let work = options.work.clone().or_else(|| connect.work());
        let work = work.unwrap_or_else(|| WorkTracker::new(env.clone()));
        Cluster::assemble(name.into(), env, work, connect.client(), connect.companion(), options)
    }

    fn assemble(
        name: ClusterName,
        env: Env,
        work: WorkTracker,
        kube: kube::Client,
        companion: Option<watch::Receiver<Companion>>,
        options: ClusterOptions,
    ) -> Cluster {
        let (requests, of_cache) = match options.metrics.clone() {
            Some(ClusterMetrics { requests, cache }) => (Some(requests), cache),
            None => (None, CacheMetrics::default()),
        };
        let client = Client::new(
            kube.clone(),
            ClientOptions {
                env: env.clone(),
                metrics: requests,
                tracker: Some(work.clone()),
                log_warnings: options.log_warnings,
                ..ClientOptions::default()
            },
        );
        let mut settings = options.cache.clone();
        if let Some(namespace) = &options.namespace {
            settings.namespaces = Some(vec![Arc::clone(namespace)]);
        }
        let (telemetry, mapper) = (client.telemetry(), client.rest_mapper().clone());
        let cache = Cache::assemble(&env, kube.clone(), settings, of_cache, telemetry, mapper);
        let mut client = client.with_cache(cache.clone()).read_past_cache(options.uncached.iter().cloned());
        if let Some(owner) = &options.field_owner {
            client = client.with_field_owner(Arc::clone(owner));
        }
        if let Some(namespace) = &options.namespace {
            client = client.namespaced(Arc::clone(namespace));
        }
        Cluster {
            name,
            inner: Arc::new(Inner {
                env,
                work,
                kube,
                client,
                cache,
                events: OnceLock::new(),
                options,
                interceptors: Vec::new(),
                companion,
                stopped: CancellationToken::new(),
            }),
        }
    }

    /// The same cluster under another name.
    #[must_use]
    pub fn with_name(&self, name: impl Into<ClusterName>) -> Cluster {
        Cluster { name: name.into(), inner: Arc::clone(&self.inner) }
    }

    /// The same API server with an empty cache, for a cluster that was stopped. Indexes are not taken over.
    #[must_use]
    pub fn renewed(&self) -> Cluster {
        let Inner { env, work, kube, companion, options, .. } = &*self.inner;
        let (env, work, kube) = (env.clone(), work.clone(), kube.clone());
        let renewed =
            Cluster::assemble(self.name.clone(), env, work, kube, companion.clone(), options.clone());
        self.inner.interceptors.iter().cloned().fold(renewed, |cluster, one| cluster.intercept(one))
    }

    /// The same cluster, with the same cache, whose [client](Self::client) has another interceptor.
    #[must_use]
    pub fn intercept(&self, interceptor: impl Interceptor) -> Cluster {
        let interceptor: Arc<dyn Interceptor> = Arc::new(interceptor);
        let Inner { env, work, kube, client, cache, events: _, options, interceptors, companion, stopped } =
            &*self.inner;
        let mut interceptors = interceptors.clone();
        interceptors.push(Arc::clone(&interceptor));
        let inner = Inner {
            env: env.clone(),
            work: work.clone(),
            kube: kube.clone(),
            client: client.intercept(interceptor),
            cache: cache.clone(),
            events: OnceLock::new(),
            options: options.clone(),
            interceptors,
            companion: companion.clone(),
            stopped: stopped.clone(),
        };
        Cluster { name: self.name.clone(), inner: Arc::new(inner) }
    }

    /// Its name; empty for the cluster that a manager is made for.
    #[must_use]
    pub fn name(&self) -> &ClusterName {
        &self.name
    }

    /// Whether both are the same cluster, whatever their names: they share one cache.
    #[must_use]
    pub fn is_same(&self, other: &Cluster) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Reads from the cache and writes to the server; reads reflect the client's own writes.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// Reads from the server.
    #[must_use]
    pub fn api_reader(&self) -> Reader {
        self.inner.client.live()
    }

    /// The underlying client of `kube`.
    #[must_use]
    pub fn kube_client(&self) -> &kube::Client {
        &self.inner.kube
    }

    /// The cache.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.inner.cache
    }

    /// Maps kinds to the resources that the server has.
    #[must_use]
    pub fn rest_mapper(&self) -> &RestMapper {
        self.inner.client.rest_mapper()
    }

    /// Time, tasks and randomness.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.inner.env
    }

    /// Work in flight.
    #[must_use]
    pub fn work(&self) -> &WorkTracker {
        &self.inner.work
    }

    /// A recorder of events on behalf of a component. The first one starts the task that delivers them.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn event_recorder_for(&self, component: &str) -> EventRecorder {
        let inner = &self.inner;
        let events = inner.events.get_or_init(|| {
            let options = inner.options.events.clone();
            EventBroadcaster::start(inner.kube.clone(), inner.env.clone(), &inner.work, options)
        });
        events.recorder(component)
    }

    /// The control plane's own controllers, if they run in this process.
    pub(crate) fn companion(&self) -> Option<&watch::Receiver<Companion>> {
        self.inner.companion.as_ref()
    }

    /// Cancelled when it is stopped.
    #[must_use]
    pub fn stopped(&self) -> &CancellationToken {
        &self.inner.stopped
    }

    /// A source that reads this cluster's cache, for a controller of a manager that is made for another cluster.
    /// [`with_catch_up`](InCache::with_catch_up) has that manager wait for this cluster, too, before it counts as idle.
    pub fn source<R: Key, S: Source<R>>(&self, source: S) -> InCache<S> {
        source::in_cache(source, self.cache())
    }

    /// Stops the informers and frees their objects; reads from the cache fail from then on. Queued events are delivered for
    /// at most `grace`.
    ///
    /// # Errors
    /// If events were not delivered.
    pub async fn stop(&self, grace: Duration) -> Result<(), Undelivered> {
        self.inner.stopped.cancel();
        self.inner.cache.stop().await;
        self.stop_events(grace).await
    }

    pub(crate) async fn stop_events(&self, grace: Duration) -> Result<(), Undelivered> {
        match self.inner.events.get() {
            Some(events) => events.shutdown(grace).await,
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("name", &self.name).finish_non_exhaustive()
    }
}
