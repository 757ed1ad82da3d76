//! Builds a controller: its kind, its watches, its options.

use std::{collections::BTreeMap, fmt, sync::Arc};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{
    Controller, ControllerOptions, Counts, Inner, RequestClusters, Sources, Wait, failures::Failures,
    options::Settings,
};
use crate::{
    Manager, Object, ObjectKey, Reconciler,
    handler::Handler,
    owners::OwnerKind,
    predicate::MetaPredicate,
    queue::{FlowFn, Key, Queue, QueueOptions},
    sharding::{Sharding, Shards},
    source::{self, Source, Watch},
};

/// Builds a controller. Created by [`Controller::managed_by`], finished by [`complete`](Self::complete).
///
/// ```no_run
/// use k1s_runtime::{Action, Context, Controller, Manager, Request, kind};
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
///
/// # fn example(manager: &Manager) -> Result<(), k1s_runtime::BoxError> {
/// Controller::managed_by(manager)
///     .for_(kind::<Deployment>())
///     .owns(kind::<ConfigMap>())
///     .complete(async |request: Request, _: Context| {
///         println!("{request}");
///         Ok::<_, k1s_runtime::BoxError>(Action::done())
///     })?;
/// # Ok(())
/// # }
/// ```
///
/// The second type parameter is the state: [`BeforeFor`] or [`AfterFor`], depending on whether [`for_`](Self::for_) was
/// called. A controller is for at most one kind, and `owns` needs the kind of the owner, so neither of these compiles:
///
/// ```compile_fail,E0277
/// # use k1s_runtime::{Controller, Manager, kind};
/// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// # fn example(manager: &Manager) {
/// let builder = Controller::managed_by(manager).owns(kind::<ConfigMap>());
/// # }
/// ```
///
/// ```compile_fail,E0277
/// # use k1s_runtime::{Controller, Manager, kind};
/// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// # fn example(manager: &Manager) {
/// let builder = Controller::managed_by(manager).for_(kind::<Deployment>()).for_(kind::<ConfigMap>());
/// # }
/// ```
///
/// A controller without `for_` has a [name](Self::named) and only [`watches`](Self::watches).
#[must_use = "nothing happens before complete or build"]
pub struct Builder<R: Key, P = BeforeFor> {
    manager: Manager,
    name: Option<String>,
    primary: P,
    sources: Vec<Box<dyn Source<R>>>,
    filters: Vec<MetaPredicate>,
    options: ControllerOptions<R>,
    clusters: Option<Arc<dyn RequestClusters<R>>>,
    shards: Option<Arc<Shards<R>>>,
}

/// The state of a [`Builder`] before [`for_`](Builder::for_).
#[derive(Debug, Clone, Copy)]
pub struct BeforeFor;

/// The state of a [`Builder`] after [`for_`](Builder::for_), with the kind of owners.
#[derive(Debug, Clone)]
pub struct AfterFor {
    owner: OwnerKind,
}

/// The states in which [`Builder::for_`] can be called: [`BeforeFor`].
#[diagnostic::on_unimplemented(
    message = "a controller is for exactly one kind, and `for_` was called before",
    label = "a second `for_`",
    note = "use `owns` for objects that the controller creates, and `watches` for other kinds"
)]
pub trait MayCallFor: sealed::State {}

/// The states in which [`Builder::owns`] can be called: [`AfterFor`].
#[diagnostic::on_unimplemented(
    message = "`owns` needs to know the kind of the owner: call `for_` before it",
    label = "`owns` before `for_`",
    note = "a controller without `for_` uses `watches` with a `Handler`"
)]
pub trait MayCallOwns: sealed::State + sealed::Owner {}

impl MayCallFor for BeforeFor {}
impl MayCallOwns for AfterFor {}

mod sealed {
    use super::{AfterFor, BeforeFor};

    pub trait State {
        fn primary(&self) -> Option<&AfterFor>;
    }

    pub trait Owner {
        fn primary_kind(&self) -> &AfterFor;
    }

    impl State for BeforeFor {
        fn primary(&self) -> Option<&AfterFor> {
            None
        }
    }

    impl State for AfterFor {
        fn primary(&self) -> Option<&AfterFor> {
            Some(self)
        }
    }

    impl Owner for AfterFor {
        fn primary_kind(&self) -> &AfterFor {
            self
        }
    }
}

/// Why a controller cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no source.
    #[error("the controller watches nothing: call for_, watches or watches_raw_source")]
    NothingToWatch,
    /// There is neither `for_` nor a name.
    #[error("a controller without for_ needs a name: call named")]
    NoName,
    /// The manager has another controller of the same name.
    #[error(
        "this manager has a controller named {0:?} already; names are used in metrics and logs: call named"
    )]
    NameTaken(String),
}

impl<R: Key> Builder<R> {
    /// A builder for a controller with any request type.
    pub fn new(manager: &Manager) -> Builder<R> {
        Builder {
            manager: manager.clone(),
            name: None,
            primary: BeforeFor,
            sources: Vec::new(),
            filters: Vec::new(),
            options: ControllerOptions::default(),
            clusters: None,
            shards: None,
        }
    }
}

impl<R: Key, P: sealed::State> Builder<R, P> {
    /// Sets the controller's name in metrics and logs. By default the kind of `for_`, in lower case.
    pub fn named(mut self, name: impl Into<String>) -> Builder<R, P> {
        self.name = Some(name.into());
        self
    }

    /// Sets concurrency, timeouts, rate limits and leader election.
    pub fn with_options(mut self, options: ControllerOptions<R>) -> Builder<R, P> {
        self.options = options;
        self
    }

    /// For requests of several clusters: each run gets the cluster of its request as
    /// [`Context::cluster`](crate::Context::cluster), and the queue takes turns between clusters. Sources of clusters are added
    /// later, by [`Controller::watch_in_background`].
    pub fn across(mut self, clusters: Arc<dyn RequestClusters<R>>) -> Builder<R, P> {
        self.clusters = Some(clusters);
        self
    }

    /// Drops events that the filter rejects, of every watched kind.
    pub fn with_event_filter(mut self, filter: MetaPredicate) -> Builder<R, P> {
        self.filters.push(filter);
        self
    }

    /// Watches a kind, with a handler that maps its events to requests.
    pub fn watches<K: Object>(self, watch: impl Into<Watch<K>>, handler: Handler<K, R>) -> Builder<R, P> {
        self.watches_raw_source(source::kind(watch, handler))
    }

    /// Adds any other source of requests.
    pub fn watches_raw_source(mut self, source: impl Source<R>) -> Builder<R, P> {
        self.sources.push(Box::new(source));
        self
    }

    /// Shares the requests with other replicas: each handles those of its own shards, where `shard_of` returns the shard of a
    /// request. Requests of other shards are dropped. When a shard is acquired, the objects of all watched kinds are handled as
    /// at a start, and those requests that belong to the shard are queued; other sources are not asked again. When it is
    /// released, its requests are dropped and its reconciles waited for; a reconcile that goes on when the shard is lost is
    /// cancelled. Reconciles have the shard's token as [`Context::shard`](crate::Context::shard).
    ///
    /// The controller needs no leader then, unless its options say so.
    pub fn sharded_with(
        mut self,
        sharding: &Sharding,
        shard_of: impl Fn(&R) -> u32 + Send + Sync + 'static,
    ) -> Builder<R, P> {
        self.shards = Some(Shards::new(sharding, shard_of));
        self
    }

    /// Shares the requests with other replicas, by the shard of the request as text: `namespace/name` for a
    /// [`Request`](crate::Request). See [`sharded_with`](Self::sharded_with).
    pub fn sharded_by(self, sharding: &Sharding) -> Builder<R, P>
    where
        R: fmt::Display,
    {
        let shards = sharding.clone();
        self.sharded_with(sharding, move |request| shards.shard_of(&request.to_string()))
    }

    /// Builds the controller and adds it to the manager.
    ///
    /// # Errors
    /// If something is missing, or the name is taken.
    pub fn complete(
        self,
        // The compiler shows the next line in its error for a closure that is not a reconciler.
        reconciler: impl Reconciler<R>, // It runs many times. Captures a client? `reconcile::with_state`, or clone it in each call.
    ) -> Result<(), BuildError> {
        self.build(reconciler).map(drop)
    }

    /// Builds the controller, adds it to the manager, and returns it.
    ///
    /// # Errors
    /// If something is missing, or the name is taken.
    pub fn build(
        self,
        reconciler: impl Reconciler<R>, // It runs many times. Captures a client? `reconcile::with_state`, or clone it in each call.
    ) -> Result<Controller<R>, BuildError> {
        let Builder { manager, name, primary, sources, filters, mut options, clusters, shards } = self;
        if sources.is_empty() && clusters.is_none() {
            return Err(BuildError::NothingToWatch);
        }
        let primary = primary.primary().map(|primary| &primary.owner);
        let name = match (name, primary) {
            (Some(name), _) => name,
            (None, Some(owner)) => owner.kind().to_lowercase(),
            (None, None) => return Err(BuildError::NoName),
        };
        let name: Arc<str> = name.into();
        let env = manager.env();
        if shards.is_some() {
            options.needs_leader_election.get_or_insert(false);
        }
        let kind = primary.map(OwnerKind::group_kind);
        let settings = Settings::of(&options, manager.controller_defaults(), kind.as_ref());
        let flows = clusters.clone().map(|clusters| -> FlowFn<R> { Arc::new(move |key| clusters.flow(key)) });
        let count_flows = clusters.as_ref().is_some_and(|clusters| clusters.counts());
        let queue = Queue::new(
            env,
            QueueOptions {
                name: Arc::clone(&name),
                rate_limiter: options.rate_limiter,
                metrics: Some(manager.queue_metrics().clone()),
                fairness: options.fairness,
                max_per_flow: flows.as_ref().map(|_| settings.max_concurrent_reconciles),
                flows,
                count_flows,
            },
        );
        let options = settings;
        let metrics = manager.controller_metrics().controller(&name, options.max_concurrent_reconciles.get());
        let (reconciles, events) = super::components(manager.work(), &name);
        let inner = Arc::new(Inner {
            env: env.clone(),
            queue,
            cluster: manager.cluster().clone(),
            clusters,
            shards,
            options,
            reconciler: Box::new(reconciler),
            filters,
            metrics,
            counts: Counts::default(),
            failures: Failures::default(),
            overtaken: Mutex::default(),
            reconciles,
            events,
            give_up: CancellationToken::new(),
            working: CancellationToken::new(),
            sources: Mutex::new(Sources {
                next: 0,
                waiting: BTreeMap::new(),
                running: BTreeMap::new(),
                stop: None,
            }),
            name: Arc::clone(&name),
        });
        for source in sources {
            // The controller does not run yet, so no source is started and this cannot fail.
            let _ = inner.add_source(source, Wait::Yes);
        }
        if !manager.add_controller(Arc::clone(&inner) as Arc<dyn super::AnyController>) {
            return Err(BuildError::NameTaken(name.to_string()));
        }
        Ok(Controller { inner })
    }
}

impl<R: Key + From<ObjectKey>, P: sealed::State> Builder<R, P> {
    /// Sets the kind that the controller reconciles: events of its objects queue their own keys. At most once, and before
    /// [`owns`](Self::owns).
    pub fn for_<K: Object>(self, watch: impl Into<Watch<K>>) -> Builder<R, AfterFor>
    where
        P: MayCallFor,
    {
        let watch = watch.into();
        let Builder { manager, name, primary: _, sources, filters, options, clusters, shards } = self;
        let primary = AfterFor { owner: OwnerKind::of(&watch.kind) };
        Builder { manager, name, primary, sources, filters, options, clusters, shards }
            .watches(watch, Handler::for_object())
    }

    /// Watches a kind whose objects the controller creates: their events queue the owner in their owner reference.
    pub fn owns<K: Object>(self, watch: impl Into<Watch<K>>) -> Builder<R, P>
    where
        P: MayCallOwns,
    {
        let watch = watch.into();
        let handler = Handler::owner_of(self.primary.primary_kind().owner.clone(), watch.every_owner);
        self.watches(watch, handler)
    }
}

impl<R: Key, P> fmt::Debug for Builder<R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("name", &self.name).finish_non_exhaustive()
    }
}
