//! A record of what has changed, and a feed of it for many readers.
//!
//! [`Changes`] follows some kinds with one watch each. It holds the current objects, a bounded ring of recent changes, and a
//! bounded log that says what changed and when ([`Changes::recent`]). Any number of [`Subscription`]s read the ring: each
//! holds a position, not a queue, and all share the same bytes. A position older than the ring is read from the server's
//! history, so a reader can resume after a restart of this process.
//!
//! ```
//! # async fn example(client: k1s_runtime::Client, stop: tokio_util::sync::CancellationToken) {
//! use k1s_runtime::{kind, changes::{Changes, ChangesOptions, Filter, RecordedKind, Start, Step}};
//! use k8s_openapi::api::core::v1::ConfigMap;
//!
//! let changes = Changes::new(&client, [RecordedKind::of(&kind::<ConfigMap>())], ChangesOptions::default());
//! let reader = async {
//!     let mut subscription = changes.subscribe(Filter::default(), Start::Existing);
//!     while let Some(step) = subscription.next().await {
//!         if let Step::Change(change) = step {
//!             println!("{:?} at {}: {} bytes", change.event, change.revision, change.object.len());
//!         }
//!     }
//! };
//! tokio::join!(changes.run(stop), reader); // or manager.add(changes.clone())
//! # }
//! ```
//!
//! # Order
//!
//! Changes of all kinds are in the order of their revisions, and each is delivered once. Before a change is recorded, every
//! other kind is read up to its revision. Over a network, an event of another kind may still be on its way then; such a late
//! event starts the record over, and readers get [`Step::Resync`].

mod diff;
mod filter;
mod follow;
mod history;
mod state;
mod subscription;

use std::{fmt, sync::Arc, time::SystemTime};

use bytes::Bytes;
use k1s_env::Env;
use k1s_object::selector::LabelSelector;
use kube::api::{ApiResource, DynamicObject};
use parking_lot::RwLock;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use self::{
    filter::Filter,
    subscription::{Delivery, Position, Start, Step, Subscription},
};
pub use crate::client::EventType;
use crate::{
    BoxError, Client, Kind, Object, ObjectKey,
    client::{KindReader, ListOptions},
    manager::Runnable,
};
use state::State;

/// Options of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangesOptions {
    /// Maximum number of entries of the log. 0 turns it off; subscriptions do not need it. 1,000 by default.
    pub log: usize,
    /// Maximum number of changes in the ring that subscriptions read. A subscription that falls behind it ends.
    /// 4,096 by default.
    pub ring: usize,
    /// Maximum bytes of objects in the ring. 16 MiB by default.
    pub ring_bytes: usize,
}

impl Default for ChangesOptions {
    fn default() -> ChangesOptions {
        ChangesOptions { log: 1000, ring: 4096, ring_bytes: 16 << 20 }
    }
}

/// A kind to record: all of its objects, or those with certain labels.
#[derive(Debug, Clone)]
pub struct RecordedKind {
    resource: ApiResource,
    labels: Option<LabelSelector>,
}

impl RecordedKind {
    /// All objects of a kind.
    #[must_use]
    pub fn of<K: Object>(kind: &Kind<K>) -> RecordedKind {
        RecordedKind { resource: kind.resource().clone(), labels: None }
    }

    /// Only objects that match a label selector: `app=web,tier in (a, b)`.
    ///
    /// # Errors
    /// If it is not a selector.
    pub fn with_labels(self, selector: &str) -> Result<RecordedKind, crate::client::SelectorError> {
        let labels = ListOptions::default().label_selector(selector)?.labels;
        Ok(RecordedKind { labels, ..self })
    }

    /// Group, version, kind and plural.
    #[must_use]
    pub fn resource(&self) -> &ApiResource {
        &self.resource
    }
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// What happened.
    pub event: EventType,
    /// The kind: an index into [`Changes::kinds`].
    pub kind: usize,
    /// The namespace and name of the object.
    pub key: ObjectKey,
    /// The uid of the object.
    pub uid: String,
    /// The revision of the change: the resource version of the object after it.
    pub revision: u64,
    /// When it was recorded.
    pub time: SystemTime,
    /// The fields that a modification has changed: `spec.replicas`, `metadata.labels[app]`, `status.conditions[0].reason`.
    /// Managed fields and the resource version are left out. Bounded: a change of very many fields names their parents.
    pub paths: Vec<String>,
}

/// One change in the ring.
#[derive(Debug)]
pub(crate) struct Change {
    event: EventType,
    kind: usize,
    key: ObjectKey,
    revision: u64,
    labels: Arc<state::Labels>,
    /// Of the state before, if there was one.
    old_labels: Option<Arc<state::Labels>>,
    object: Bytes,
}

/// A record of changes. Clones share it.
#[derive(Clone)]
pub struct Changes {
    inner: Arc<Inner>,
}

struct Inner {
    env: Env,
    kinds: Vec<RecordedKind>,
    readers: Vec<KindReader<DynamicObject>>,
    options: ChangesOptions,
    state: RwLock<State>,
    /// Counts changes of the state.
    ticks: watch::Sender<u64>,
}

impl Changes {
    /// A record of these kinds, which begins when it [runs](Self::run).
    #[must_use]
    pub fn new(
        client: &Client,
        kinds: impl IntoIterator<Item = RecordedKind>,
        options: ChangesOptions,
    ) -> Changes {
        let kinds: Vec<RecordedKind> = kinds.into_iter().collect();
        let reader =
            |kind: &RecordedKind| client.live().kind(Kind::<DynamicObject>::dynamic(kind.resource.clone()));
        let inner = Inner {
            env: client.env().clone(),
            readers: kinds.iter().map(reader).collect(),
            state: RwLock::new(State::new(kinds.len(), options)),
            kinds,
            options,
            ticks: watch::Sender::new(0),
        };
        Changes { inner: Arc::new(inner) }
    }

    /// The recorded kinds.
    #[must_use]
    pub fn kinds(&self) -> &[RecordedKind] {
        &self.inner.kinds
    }

    /// Its options.
    #[must_use]
    pub fn options(&self) -> ChangesOptions {
        self.inner.options
    }

    /// Records until `stop` is cancelled. Then all subscriptions end.
    pub async fn run(&self, stop: CancellationToken) {
        follow::run(&self.inner, stop).await;
        self.inner.update(State::close);
    }

    /// Whether it has listed all kinds and follows them.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.inner.state.read().is_ready()
    }

    /// Waits until it has listed all kinds and follows them: changes after that are recorded.
    pub async fn ready(&self) {
        let mut ticks = self.inner.ticks.subscribe();
        while !self.is_ready() && ticks.changed().await.is_ok() {}
    }

    /// The log, newest first.
    #[must_use]
    pub fn recent(&self) -> Vec<Arc<Record>> {
        self.inner.state.read().log().rev().cloned().collect()
    }

    /// Reads the changes that match a filter. Subscriptions begin when the record is [ready](Self::ready).
    #[must_use]
    pub fn subscribe(&self, filter: Filter, start: Start) -> Subscription {
        Subscription::new(self.inner.clone(), filter, start)
    }

    /// Changes whenever changes leave the ring. See [`Position::is_lost`].
    #[must_use]
    pub fn evictions(&self) -> watch::Receiver<u64> {
        self.inner.state.read().evictions()
    }
}

impl Inner {
    /// Changes the state and wakes the subscriptions.
    fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let done = change(&mut self.state.write());
        self.ticks.send_modify(|tick| *tick += 1);
        done
    }
}

/// As a part of a manager, on every replica.
#[async_trait::async_trait]
impl Runnable for Changes {
    fn name(&self) -> String {
        let kinds: Vec<&str> = self.kinds().iter().map(|kind| kind.resource.plural.as_str()).collect();
        format!("changes of {}", kinds.join(", "))
    }

    fn needs_leader_election(&self) -> bool {
        false
    }

    async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<(), BoxError> {
        Changes::run(&self, stop).await;
        Ok(())
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("kinds", &self.inner.kinds).finish_non_exhaustive()
    }
}
