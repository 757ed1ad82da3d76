//! Describes a controller: what it is for, what it watches, how it works.

use std::{collections::BTreeMap, fmt, sync::Arc};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{Controller, ControllerOptions, Counts, Inner, Sources, options::Settings};
use crate::{
    Manager, Object, ObjectKey, Reconciler,
    handler::Handler,
    owners::OwnerKind,
    predicate::MetaPredicate,
    queue::{Key, Queue, QueueOptions},
    source::{self, Source, Watch},
};

/// Describes a controller. Begun by [`Controller::managed_by`], ended by [`complete`](Self::complete).
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
#[must_use = "nothing happens before complete or build"]
pub struct Builder<R: Key> {
    manager: Manager,
    name: Option<String>,
    /// The kind that the controller is for: its name, and how owners of it are found.
    primary: Vec<Primary>,
    sources: Vec<Pending<R>>,
    filters: Vec<MetaPredicate>,
    options: ControllerOptions<R>,
}

struct Primary {
    name: String,
    owner: OwnerKind,
}

/// A source, or one that can be made when the primary kind is known.
type Pending<R> = Box<dyn FnOnce(Option<&OwnerKind>) -> Result<Box<dyn Source<R>>, BuildError> + Send>;

/// Why a controller cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// More than one `for_`.
    #[error("a controller is for exactly one kind, and for_ was called for {0}")]
    ForTwice(String),
    /// `owns` without `for_`.
    #[error("owns({0}) needs to know the owner: call for_, too")]
    OwnsWithoutFor(String),
    /// No source at all.
    #[error("the controller watches nothing: call for_, watches or watches_raw_source")]
    NothingToWatch,
    /// No `for_`, and no name.
    #[error("a controller without for_ needs a name: call named")]
    NoName,
    /// The manager has such a controller.
    #[error(
        "this manager has a controller named {0:?} already; names are used in metrics and logs: call named"
    )]
    NameTaken(String),
}

impl<R: Key> Builder<R> {
    /// Begins to describe a controller whose requests are of any type.
    pub fn new(manager: &Manager) -> Builder<R> {
        Builder {
            manager: manager.clone(),
            name: None,
            primary: Vec::new(),
            sources: Vec::new(),
            filters: Vec::new(),
            options: ControllerOptions::default(),
        }
    }

    /// The controller's name. By default that of the kind it is for, in lower case.
    pub fn named(mut self, name: impl Into<String>) -> Builder<R> {
        self.name = Some(name.into());
        self
    }

    /// How it works.
    pub fn with_options(mut self, options: ControllerOptions<R>) -> Builder<R> {
        self.options = options;
        self
    }

    /// Only events that this accepts, from all kinds that are watched.
    pub fn with_event_filter(mut self, filter: MetaPredicate) -> Builder<R> {
        self.filters.push(filter);
        self
    }

    /// Watches a kind; the handler says which requests its events queue.
    pub fn watches<K: Object>(self, watch: impl Into<Watch<K>>, handler: Handler<K, R>) -> Builder<R> {
        self.watches_raw_source(source::kind(watch, handler))
    }

    /// Takes requests from any source.
    pub fn watches_raw_source(mut self, source: impl Source<R>) -> Builder<R> {
        self.sources.push(Box::new(move |_| Ok(Box::new(source))));
        self
    }

    /// Builds the controller and gives it to the manager.
    ///
    /// # Errors
    /// If something is missing, or the name is taken.
    pub fn complete(
        self,
        // The compiler shows the next line to those whose closure is no reconciler.
        reconciler: impl Reconciler<R>, // It runs many times. Captures a client? `reconcile::with_state`, or clone it in each call.
    ) -> Result<(), BuildError> {
        self.build(reconciler).map(drop)
    }

    /// Builds the controller, gives it to the manager, and returns it.
    ///
    /// # Errors
    /// If something is missing, or the name is taken.
    pub fn build(
        self,
        reconciler: impl Reconciler<R>, // It runs many times. Captures a client? `reconcile::with_state`, or clone it in each call.
    ) -> Result<Controller<R>, BuildError> {
        let Builder { manager, name, primary, sources, filters, options } = self;
        if let [_, second, ..] = &*primary {
            return Err(BuildError::ForTwice(second.name.clone()));
        }
        let owner = primary.first().map(|primary| primary.owner.clone());
        if sources.is_empty() {
            return Err(BuildError::NothingToWatch);
        }
        let name = match (name, &owner) {
            (Some(name), _) => name,
            (None, Some(owner)) => owner.kind().to_lowercase(),
            (None, None) => return Err(BuildError::NoName),
        };
        let sources = sources
            .into_iter()
            .map(|pending| pending(owner.as_ref()))
            .collect::<Result<Vec<Box<dyn Source<R>>>, BuildError>>()?;
        let name: Arc<str> = name.into();
        let env = manager.env();
        let queue = Queue::new(
            env,
            QueueOptions {
                name: Arc::clone(&name),
                rate_limiter: Arc::clone(&options.rate_limiter),
                metrics: Some(manager.queue_metrics().clone()),
                fairness: options.fairness,
            },
        );
        let kind = owner.as_ref().map(OwnerKind::group_kind);
        let options = Settings::of(&options, manager.controller_defaults(), kind.as_ref());
        let metrics = manager.controller_metrics().controller(&name, options.max_concurrent_reconciles.get());
        let (reconciles, events) = super::components(manager.work(), &name);
        let inner = Arc::new(Inner {
            env: env.clone(),
            queue,
            cache: manager.cache().clone(),
            options,
            reconciler: Box::new(reconciler),
            filters,
            metrics,
            counts: Counts::default(),
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
            // Not started: it cannot fail.
            let _ = inner.add_source(source);
        }
        if !manager.add_controller(Arc::clone(&inner) as Arc<dyn super::AnyController>) {
            return Err(BuildError::NameTaken(name.to_string()));
        }
        Ok(Controller { inner })
    }
}

impl<R: Key + From<ObjectKey>> Builder<R> {
    /// The kind that the controller is for: events of its objects queue them. Exactly one.
    pub fn for_<K: Object>(mut self, watch: impl Into<Watch<K>>) -> Builder<R> {
        let watch = watch.into();
        self.primary.push(Primary { name: watch.kind.to_string(), owner: OwnerKind::of(&watch.kind) });
        self.watches(watch, Handler::for_object())
    }

    /// A kind whose objects the controller creates: events of them queue the owner that they refer to.
    pub fn owns<K: Object>(mut self, watch: impl Into<Watch<K>>) -> Builder<R> {
        let watch = watch.into();
        self.sources.push(Box::new(move |owner| {
            let owner = owner.ok_or_else(|| BuildError::OwnsWithoutFor(watch.kind.to_string()))?;
            let handler = Handler::owner_of(owner.clone(), watch.every_owner);
            Ok(Box::new(source::kind(watch, handler)))
        }));
        self
    }
}

impl<R: Key> fmt::Debug for Builder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("name", &self.name).finish_non_exhaustive()
    }
}
