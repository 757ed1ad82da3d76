//! The events of a cluster, across all kinds: one stream shared by all controllers.
//!
//! A k1s server provides it in one watch (`watch.rs`). Other servers are watched kind by kind, metadata only,
//! through the manager's cache (`informers.rs`).

mod informers;
mod progress;
mod watch;

use self::progress::Progress;
pub(crate) use self::watch::PATH;

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use k1s_env::Env;
use k1s_runtime::{
    BoxError, Cache, Client, Manager,
    cache::Problem,
    queue::Key,
    source::{Source, SourceContext, Started},
};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    kinds::Kinds,
    meta::{Meta, Resource},
};

/// An event delivered to listeners.
#[derive(Debug)]
pub(crate) enum Signal<'a> {
    /// Existing objects follow.
    Begin {
        /// Whether all of them follow, so that everything delivered before is void.
        reset: bool,
        /// Whether the following events are in revision order across kinds.
        ordered: bool,
    },
    /// All existing objects have been delivered.
    End,
    /// An object was created or changed.
    Stored(&'a Resource, &'a Meta),
    /// An object was deleted.
    Deleted(&'a Resource, &'a Meta),
}

/// Receives events one at a time; must not block.
pub(crate) type Listener = Box<dyn Fn(&Signal<'_>) + Send + Sync>;

/// A kind of which every object is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interest {
    pub(crate) resource: Resource,
    /// Only objects of this name.
    pub(crate) name: Option<&'static str>,
}

impl Interest {
    pub(crate) fn all(group: &str, plural: &str) -> Interest {
        Interest { resource: Resource::new(group, plural), name: None }
    }

    pub(crate) fn named(group: &str, plural: &str, name: &'static str) -> Interest {
        Interest { resource: Resource::new(group, plural), name: Some(name) }
    }
}

/// The stream. Clones share it.
#[derive(Clone)]
pub(crate) struct Feed {
    shared: Arc<Shared>,
}

struct Shared {
    env: Env,
    // Not the manager, which would be a reference cycle.
    client: Client,
    cache: Cache,
    kinds: Arc<Kinds>,
    /// In addition to these, objects with owners and terminating ones are delivered.
    interests: RwLock<Vec<Interest>>,
    /// Whether kinds that are not in `interests` are followed at all.
    every_kind: AtomicBool,
    listeners: RwLock<Vec<Listener>>,
    started: AtomicBool,
    /// Cancelled when all existing objects have been delivered once.
    synced: CancellationToken,
    problem: Mutex<Option<Problem>>,
    kinds_changed: Notify,
    progress: Progress,
    is_k1s: OnceLock<bool>,
}

impl Feed {
    pub(crate) fn new(manager: &Manager) -> Feed {
        let env = manager.env().clone();
        Feed {
            shared: Arc::new(Shared {
                kinds: Arc::new(Kinds::new(manager.kube_client(), env.clone())),
                env,
                client: manager.client().without_cache(),
                cache: manager.cache().clone(),
                interests: RwLock::default(),
                every_kind: AtomicBool::new(false),
                listeners: RwLock::default(),
                started: AtomicBool::new(false),
                synced: CancellationToken::new(),
                problem: Mutex::default(),
                kinds_changed: Notify::new(),
                progress: Progress::new(),
                is_k1s: OnceLock::new(),
            }),
        }
    }

    /// A client without a cache.
    pub(crate) fn client(&self) -> &Client {
        &self.shared.client
    }

    /// The environment: clock and tasks.
    pub(crate) fn env(&self) -> &Env {
        &self.shared.env
    }

    /// Discovery.
    pub(crate) fn kinds(&self) -> &Arc<Kinds> {
        &self.shared.kinds
    }

    /// Whether the server is a k1s server, if known.
    pub(crate) fn is_k1s(&self) -> Option<bool> {
        self.shared.is_k1s.get().copied()
    }

    /// Adds interests; before the feed is started.
    pub(crate) fn want(&self, interests: impl IntoIterator<Item = Interest>) {
        self.shared.interests.write().extend(interests);
    }

    /// Adds the objects of all kinds that have owners or are terminating; before the feed is started.
    pub(crate) fn want_every_kind(&self) {
        self.shared.every_kind.store(true, Ordering::Relaxed);
    }

    /// Adds a listener; before the feed is started.
    pub(crate) fn listen(&self, listener: impl Fn(&Signal<'_>) + Send + Sync + 'static) {
        self.shared.listeners.write().push(Box::new(listener));
    }

    /// The source of the listening controllers: they start when all existing objects have been delivered.
    pub(crate) fn source(&self) -> FeedSource {
        FeedSource(self.clone())
    }

    fn deliver(&self, signal: &Signal<'_>) {
        if let Signal::Stored(resource, _) | Signal::Deleted(resource, _) = signal
            && (resource.is_definition() || resource.is("apiregistration.k8s.io", "apiservices"))
        {
            self.shared.kinds.changed();
            self.shared.kinds_changed.notify_one();
        }
        for listener in &*self.shared.listeners.read() {
            listener(signal);
        }
        if matches!(signal, Signal::End) {
            self.recovered();
            self.shared.synced.cancel();
        }
    }

    fn failed(&self, message: String) {
        tracing::warn!(error = %message, "following the cluster failed; retrying");
        *self.shared.problem.lock() = Some(Problem::Failed { message });
    }

    fn recovered(&self) {
        *self.shared.problem.lock() = None;
    }

    async fn run(self) {
        let on_k1s = watch::follow(&self).await;
        if !on_k1s {
            informers::follow(&self).await;
        }
    }
}

/// See [`Feed::source`].
pub(crate) struct FeedSource(Feed);

impl<R: Key> Source<R> for FeedSource {
    fn name(&self) -> String {
        "all objects".to_owned()
    }

    fn start(self: Box<Self>, context: SourceContext<R>) -> Result<Started, BoxError> {
        let feed = self.0;
        if !feed.shared.started.swap(true, Ordering::AcqRel) {
            context.spawn("feed", feed.clone().run());
        }
        let (synced, asked, shared) =
            (feed.shared.synced.clone(), Arc::clone(&feed.shared), Arc::clone(&feed.shared));
        Ok(Started {
            synced: Box::pin(async move { synced.cancelled().await }),
            problem: Box::new(move || shared.problem.lock().clone()),
            catch_up: Box::new(move || {
                let shared = Arc::clone(&asked);
                Box::pin(async move { shared.progress.reach().await })
            }),
            ..Started::at_once()
        })
    }
}
