//! What an event means for a controller: which requests it queues.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use tokio::sync::mpsc;

use crate::{
    Event, Kind, Object, ObjectKey, Request,
    queue::{AddOptions, Cause, CauseEvent, Key, LOW_PRIORITY, Queue},
    source::SourceContext,
};

/// Turns events of a kind into requests.
pub struct Handler<K, R: Key = Request> {
    make: MakeFn<K, R>,
}

/// Makes the function that handles events, when its controller starts.
type MakeFn<K, R> = Box<dyn FnOnce(&SourceContext<R>) -> HandleFn<K, R> + Send>;

/// Handles an event; must not wait.
pub(crate) type HandleFn<K, R> = Box<dyn Fn(&Event<K>, &Enqueue<'_, R>) + Send + Sync>;

/// Queues requests on behalf of an event: it knows the cause, and whether there is no hurry.
pub struct Enqueue<'a, R: Key> {
    queue: &'a Queue<R>,
    cause: Cause,
    priority: i32,
}

impl<'a, R: Key> Enqueue<'a, R> {
    pub(crate) fn new<K: Object>(queue: &'a Queue<R>, kind: &Arc<str>, event: &Event<K>) -> Enqueue<'a, R> {
        let what = match event {
            Event::Created { initial: true, .. } => CauseEvent::Initial,
            Event::Created { .. } => CauseEvent::Created,
            Event::Updated { resync: true, .. } => CauseEvent::Resync,
            Event::Updated { .. } => CauseEvent::Updated,
            Event::Deleted { .. } => CauseEvent::Deleted,
            Event::Generic { .. } => CauseEvent::Generic,
        };
        let object = event.object();
        let resource_version = object.meta().resource_version.as_deref();
        let cause = Cause::object(what, Arc::clone(kind), ObjectKey::of(&**object), resource_version);
        Enqueue { queue, cause, priority: if event.is_low_priority() { LOW_PRIORITY } else { 0 } }
    }

    /// Queues a request.
    pub fn add(&self, request: R) {
        self.queue.add_with(self.options(), request);
    }

    /// Queues a request after a time.
    pub fn add_after(&self, after: Duration, request: R) {
        self.queue.add_with(AddOptions { after: Some(after), ..self.options() }, request);
    }

    /// Queues a request with another priority.
    pub fn add_with_priority(&self, priority: i32, request: R) {
        self.queue.add_with(AddOptions { priority: Some(priority), ..self.options() }, request);
    }

    fn options(&self) -> AddOptions {
        AddOptions {
            priority: Some(self.priority),
            causes: self.cause.clone().into(),
            ..AddOptions::default()
        }
    }
}

impl<K: Object, R: Key> Handler<K, R> {
    /// A handler of one's own. It is called while the cache is told of a change, and must not wait.
    pub fn new(handle: impl Fn(&Event<K>, &Enqueue<'_, R>) + Send + Sync + 'static) -> Handler<K, R> {
        Handler { make: Box::new(move |_| Box::new(handle)) }
    }

    /// Queues what a function makes of an event; of an update it sees the old and the new state.
    pub fn map<I>(map: impl Fn(&Event<K>) -> I + Send + Sync + 'static) -> Handler<K, R>
    where
        I: IntoIterator<Item = R>,
    {
        Handler::new(move |event, queue| {
            for request in map(event) {
                queue.add(request);
            }
        })
    }

    /// Like [`map`](Self::map), with a function that may wait, to read the cache for example. Events are handled one
    /// after the other, beside everything else.
    pub fn map_async<Fut, I>(map: impl Fn(Event<K>) -> Fut + Send + Sync + 'static) -> Handler<K, R>
    where
        Fut: Future<Output = I> + Send + 'static,
        I: IntoIterator<Item = R> + Send,
        I::IntoIter: Send,
    {
        Handler {
            make: Box::new(move |context| {
                let (sender, mut events) =
                    mpsc::unbounded_channel::<(Event<K>, Option<k1s_env::WorkGuard>)>();
                let (queue, stop) = (context.queue().clone(), context.stopped().clone());
                let kind: Arc<str> = context.kind_name().into();
                let work = context.work().clone();
                context.spawn("mapper", async move {
                    while let Some(Some((event, work))) = stop.run_until_cancelled(events.recv()).await {
                        let enqueue = Enqueue::new(&queue, &kind, &event);
                        for request in map(event.clone()).await {
                            enqueue.add(request);
                        }
                        drop(work);
                    }
                });
                Box::new(move |event, _| {
                    // While it waits here it is work that is not done: idle is when there is none.
                    let _ = sender.send((event.clone(), work.begin("event").ok()));
                })
            }),
        }
    }

    pub(crate) fn make(self, context: &SourceContext<R>) -> HandleFn<K, R> {
        (self.make)(context)
    }
}

impl<K: Object, R: Key + From<ObjectKey>> Handler<K, R> {
    /// Queues the object itself.
    #[must_use]
    pub fn for_object() -> Handler<K, R> {
        Handler::new(|event, queue| queue.add(event.key().into()))
    }

    /// Queues the owner of the object that is of a kind: the one that controls it. An update queues the old and the new
    /// owner.
    #[must_use]
    pub fn for_owner<O: Object>(owner: &Kind<O>) -> Handler<K, R> {
        Handler::owners(owner, false)
    }

    /// Queues every owner of the object that is of a kind.
    #[must_use]
    pub fn for_every_owner<O: Object>(owner: &Kind<O>) -> Handler<K, R> {
        Handler::owners(owner, true)
    }

    fn owners<O: Object>(owner: &Kind<O>, every: bool) -> Handler<K, R> {
        let resource = owner.resource();
        Handler::owner_of(&resource.group, &resource.kind, owner.is_cluster_scoped(), every)
    }

    pub(crate) fn owner_of(group: &str, kind: &str, cluster: bool, every: bool) -> Handler<K, R> {
        let owner = Owner { group: group.to_owned(), kind: kind.to_owned(), cluster, every };
        Handler::new(move |event: &Event<K>, queue| {
            if let Some(old) = event.old() {
                let new = event.object().meta();
                // What did not change is queued once.
                for key in owner.keys(old.meta()).filter(|key| !owner.keys(new).any(|other| other == *key)) {
                    queue.add(key.into());
                }
            }
            for key in owner.keys(event.object().meta()) {
                queue.add(key.into());
            }
        })
    }
}

/// The owners that are looked for.
struct Owner {
    group: String,
    kind: String,
    cluster: bool,
    every: bool,
}

impl Owner {
    fn is(&self, reference: &OwnerReference) -> bool {
        let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
        reference.kind == self.kind
            && group == self.group
            && (self.every || reference.controller == Some(true))
    }

    fn keys<'a>(&'a self, meta: &'a ObjectMeta) -> impl Iterator<Item = ObjectKey> + 'a {
        let namespace = if self.cluster { None } else { meta.namespace.as_deref() };
        meta.owner_references
            .iter()
            .flatten()
            .filter(|reference| self.is(reference))
            .map(move |reference| ObjectKey::new(namespace, &reference.name))
    }
}

impl<K, R: Key> fmt::Debug for Handler<K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}

impl<R: Key> fmt::Debug for Enqueue<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enqueue").field("cause", &self.cause).finish_non_exhaustive()
    }
}
