//! Builds a controller over many clusters.

use std::{fmt, sync::Arc};

use k1s_runtime::{
    Cluster, ClusterName, ControllerOptions, Handler, Kind, Object, Reconciler, Request,
    controller::{self, BuildError, ControllerError, WatchId},
    predicate::{MetaEvent, MetaPredicate},
    queue::FlowState,
    source::{self, Source, Watch},
};

use crate::{
    MultiClusterManager, MultiRequest,
    engagement::flow_of,
    fleet::WorksWith,
    reconciler::{Aware, Runs, Uniform},
};

/// Makes the source of a controller for a cluster.
type Template = Box<dyn Fn(&Cluster) -> Box<dyn Source<MultiRequest>> + Send + Sync>;

/// Whether a controller works with a cluster.
type ClusterFilter = Box<dyn Fn(&Cluster) -> bool + Send + Sync>;

/// Accepts events of a cluster.
type EventFilter = Arc<dyn Fn(&ClusterName, &MetaEvent<'_>) -> bool + Send + Sync>;

/// Controllers over many clusters. What it builds is a [`Controller`](k1s_runtime::Controller) of [`MultiRequest`]s.
#[derive(Debug, Clone, Copy)]
pub struct Controller;

impl Controller {
    /// A builder for a controller over the clusters of a manager.
    pub fn managed_by(manager: &MultiClusterManager) -> Builder {
        Builder {
            manager: manager.clone(),
            name: None,
            primary: BeforeFor,
            templates: Vec::new(),
            host: Vec::new(),
            filters: Vec::new(),
            event_filters: Vec::new(),
            cluster_filters: Vec::new(),
            options: ControllerOptions::default(),
            local: false,
            providers: true,
        }
    }
}

/// Builds a controller over many clusters. Created by [`Controller::managed_by`], finished by [`complete`](Self::complete) or
/// [`complete_multi`](Self::complete_multi).
///
/// Kinds are watched in every cluster that is engaged, and requests are of the cluster of the event that queued them.
#[must_use = "nothing happens before complete"]
pub struct Builder<P = BeforeFor> {
    manager: MultiClusterManager,
    name: Option<String>,
    primary: P,
    templates: Vec<Template>,
    host: Vec<Box<dyn Source<MultiRequest>>>,
    filters: Vec<MetaPredicate>,
    event_filters: Vec<EventFilter>,
    cluster_filters: Vec<ClusterFilter>,
    options: ControllerOptions<MultiRequest>,
    local: bool,
    providers: bool,
}

/// The state of a [`Builder`] before [`for_`](Builder::for_).
#[derive(Debug, Clone, Copy)]
pub struct BeforeFor;

/// The state of a [`Builder`] after [`for_`](Builder::for_), with the kind of owners.
#[derive(Debug, Clone)]
pub struct AfterFor<K: Object> {
    owner: Kind<K>,
}

impl Builder {
    /// Sets the kind that the controller reconciles: events of its objects queue their own keys. At most once, and before
    /// [`owns`](Self::owns).
    pub fn for_<K: Object>(self, watch: impl Into<Watch<K>>) -> Builder<AfterFor<K>> {
        let watch = watch.into();
        let Builder {
            manager,
            name,
            templates,
            host,
            filters,
            event_filters,
            cluster_filters,
            options,
            local,
            providers,
            ..
        } = self;
        let name = name.or_else(|| Some(watch.kind().resource().kind.to_lowercase()));
        let primary = AfterFor { owner: watch.kind().clone() };
        let builder = Builder {
            manager,
            name,
            primary,
            templates,
            host,
            filters,
            event_filters,
            cluster_filters,
            options,
            local,
            providers,
        };
        builder.watches(watch, |_| Handler::for_object())
    }
}

impl<O: Object> Builder<AfterFor<O>> {
    /// Watches a kind whose objects the controller creates: their events queue the owner in their owner reference.
    pub fn owns<K: Object>(self, watch: impl Into<Watch<K>>) -> Builder<AfterFor<O>> {
        let (owner, watch) = (self.primary.owner.clone(), watch.into());
        let every = watch.matches_every_owner();
        self.watches(
            watch,
            move |_| {
                if every { Handler::for_every_owner(&owner) } else { Handler::for_owner(&owner) }
            },
        )
    }
}

impl<P> Builder<P> {
    /// Sets the controller's name in metrics and logs. By default the kind of `for_`, in lower case.
    pub fn named(mut self, name: impl Into<String>) -> Builder<P> {
        self.name = Some(name.into());
        self
    }

    /// Sets concurrency, timeouts, rate limits and leader election.
    pub fn with_options(mut self, options: ControllerOptions<MultiRequest>) -> Builder<P> {
        self.options = options;
        self
    }

    /// Drops events that the filter rejects, of every kind in every cluster.
    pub fn with_event_filter(mut self, filter: MetaPredicate) -> Builder<P> {
        self.filters.push(filter);
        self
    }

    /// Drops events that the filter rejects, depending on their cluster.
    pub fn with_cluster_event_filter(
        mut self,
        filter: impl Fn(&ClusterName, &MetaEvent<'_>) -> bool + Send + Sync + 'static,
    ) -> Builder<P> {
        self.event_filters.push(Arc::new(filter));
        self
    }

    /// Works only with clusters that the filter accepts. It is asked when a cluster is engaged.
    pub fn with_cluster_filter(
        mut self,
        filter: impl Fn(&Cluster) -> bool + Send + Sync + 'static,
    ) -> Builder<P> {
        self.cluster_filters.push(Box::new(filter));
        self
    }

    /// Whether the controller works with the manager's own cluster, whose name is empty. Off by default.
    pub fn engage_with_local(mut self, local: bool) -> Builder<P> {
        self.local = local;
        self
    }

    /// Whether the controller works with the clusters of providers. On by default.
    pub fn engage_with_providers(mut self, providers: bool) -> Builder<P> {
        self.providers = providers;
        self
    }

    /// Watches a kind in every cluster, with a handler that maps its events to requests of the same cluster.
    pub fn watches<K: Object>(
        self,
        watch: impl Into<Watch<K>>,
        handler: impl Fn(&Cluster) -> Handler<K, Request> + Send + Sync + 'static,
    ) -> Builder<P> {
        let watch = watch.into();
        self.watches_raw_source(move |cluster| source::kind(watch.clone(), handler(cluster)))
    }

    /// Adds any other source of requests, one for each cluster.
    pub fn watches_raw_source<S: Source<Request>>(
        self,
        make: impl Fn(&Cluster) -> S + Send + Sync + 'static,
    ) -> Builder<P> {
        self.watches_multi(move |cluster| {
            let name = cluster.name().clone();
            let map = move |request| MultiRequest { cluster: name.clone(), request };
            source::map_requests(make(cluster), map)
        })
    }

    /// Adds a source for each cluster whose requests may be of any cluster.
    pub fn watches_multi<S: Source<MultiRequest>>(
        mut self,
        make: impl Fn(&Cluster) -> S + Send + Sync + 'static,
    ) -> Builder<P> {
        self.templates.push(Box::new(move |cluster| Box::new(cluster.source(make(cluster)))));
        self
    }

    /// Watches a kind in the manager's own cluster, with a handler that maps its events to requests of any cluster.
    pub fn watches_host<K: Object>(
        mut self,
        watch: impl Into<Watch<K>>,
        handler: Handler<K, MultiRequest>,
    ) -> Builder<P> {
        self.host.push(Box::new(source::kind(watch, handler)));
        self
    }

    /// Builds the controller from a reconciler that was written for one cluster, and adds it to the manager. A run finds its
    /// cluster in its context: [`Context::cluster`](k1s_runtime::Context::cluster).
    ///
    /// # Errors
    /// If something is missing, or the name is taken.
    pub fn complete(self, reconciler: impl Reconciler<Request>) -> Result<(), BuildError> {
        self.build(reconciler).map(drop)
    }

    /// Builds the controller from a reconciler that knows of clusters, and adds it to the manager.
    ///
    /// # Errors
    /// If something is missing, or the name is taken.
    pub fn complete_multi(self, reconciler: impl Reconciler<MultiRequest>) -> Result<(), BuildError> {
        self.build_multi(reconciler).map(drop)
    }

    /// Like [`complete`](Self::complete), and returns the controller.
    ///
    /// # Errors
    /// As there.
    pub fn build(
        self,
        reconciler: impl Reconciler<Request>,
    ) -> Result<k1s_runtime::Controller<MultiRequest>, BuildError> {
        self.finish(|runs| Uniform { runs, reconciler })
    }

    /// Like [`complete_multi`](Self::complete_multi), and returns the controller.
    ///
    /// # Errors
    /// As there.
    pub fn build_multi(
        self,
        reconciler: impl Reconciler<MultiRequest>,
    ) -> Result<k1s_runtime::Controller<MultiRequest>, BuildError> {
        self.finish(|runs| Aware { runs, reconciler })
    }

    fn finish<T: Reconciler<MultiRequest>>(
        self,
        reconciler: impl FnOnce(Runs) -> T,
    ) -> Result<k1s_runtime::Controller<MultiRequest>, BuildError> {
        let Builder { manager, name, templates, host, filters, event_filters, cluster_filters, .. } = self;
        if templates.is_empty() && host.is_empty() {
            return Err(BuildError::NothingToWatch);
        }
        let name: Arc<str> = name.ok_or(BuildError::NoName)?.into();
        let fleet = manager.fleet();
        let runs = Runs {
            live: Arc::clone(&fleet.live),
            metrics: fleet.reconciles.clone(),
            controller: Arc::clone(&name),
        };
        let mut builder = controller::Builder::new(manager.manager())
            .named(&*name)
            .with_options(self.options)
            .across(Arc::clone(&fleet.live) as _);
        for filter in filters {
            builder = builder.with_event_filter(filter);
        }
        let sources = Sources { templates, event_filters };
        if self.local {
            for source in sources.of(fleet.live.local()) {
                builder = builder.watches_raw_source(source);
            }
        }
        for source in host {
            builder = builder.watches_raw_source(source);
        }
        let controller = builder.build(reconciler(runs))?;
        if self.providers {
            let works: Arc<dyn WorksWith> =
                Arc::new(OfController { name, controller: controller.clone(), sources, cluster_filters });
            fleet.add_controller(&works);
        }
        Ok(controller)
    }
}

impl<P> fmt::Debug for Builder<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The sources of a controller, for any cluster.
struct Sources {
    templates: Vec<Template>,
    event_filters: Vec<EventFilter>,
}

impl Sources {
    fn of(&self, cluster: &Cluster) -> Vec<Box<dyn Source<MultiRequest>>> {
        let filtered = |template: &Template| {
            let mut made = template(cluster);
            for filter in &self.event_filters {
                let (filter, name) = (Arc::clone(filter), cluster.name().clone());
                let filter = MetaPredicate::new(move |event| filter(&name, event));
                made = Box::new(source::filtered(made, filter));
            }
            made
        };
        self.templates.iter().map(filtered).collect()
    }
}

/// A controller, as the fleet sees it.
struct OfController {
    name: Arc<str>,
    controller: k1s_runtime::Controller<MultiRequest>,
    sources: Sources,
    cluster_filters: Vec<ClusterFilter>,
}

impl WorksWith for OfController {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn watch(&self, cluster: &Cluster) -> Result<Vec<WatchId>, ControllerError> {
        if !self.cluster_filters.iter().all(|filter| filter(cluster)) {
            return Ok(Vec::new());
        }
        let mut watches = Vec::new();
        for source in self.sources.of(cluster) {
            match self.controller.watch_in_background(source) {
                Ok(watch) => watches.push(watch),
                Err(error) => {
                    for watch in watches {
                        self.controller.unwatch(watch);
                    }
                    return Err(error);
                }
            }
        }
        Ok(watches)
    }

    fn unwatch(&self, watch: WatchId) {
        self.controller.unwatch(watch);
    }

    fn drop_requests(&self, cluster: &ClusterName) {
        self.controller.queue().retain(|request| request.cluster != *cluster);
    }

    fn queued(&self, cluster: &ClusterName) -> FlowState {
        self.controller.queue().flow_state(flow_of(cluster))
    }

    fn forget(&self, cluster: &ClusterName) {
        self.controller.queue().forget_flow(flow_of(cluster));
    }

    fn running(&self, cluster: &ClusterName) -> Vec<String> {
        let running = self.controller.queue().processing().into_iter().map(|(request, _)| request);
        running.filter(|request| request.cluster == *cluster).map(|request| request.to_string()).collect()
    }
}
