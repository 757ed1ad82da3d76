//! Handlers map events to the requests that a controller queues.

use std::{fmt, future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use tokio::sync::mpsc;

use crate::{
    Event, Kind, Object, ObjectKey, Request,
    owners::{OwnerKind, Owners},
    panics::message,
    queue::{AddOptions, Cause, CauseEvent, Key, LOW_PRIORITY, Queue},
    source::{Reports, SourceContext},
};

/// Turns events of a kind into requests.
pub struct Handler<K, R: Key = Request> {
    make: MakeFn<K, R>,
}

/// Creates the function that handles events, when its controller starts.
type MakeFn<K, R> = Box<dyn FnOnce(&SourceContext<R>) -> HandleFn<K, R> + Send>;

/// Handles an event; must not block.
pub(crate) type HandleFn<K, R> = Box<dyn Fn(&Event<K>, &Enqueue<'_, R>) + Send + Sync>;

/// Queues requests for an event, with the event as their cause and its priority.
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

    /// Queues a request after a delay.
    pub fn add_after(&self, after: Duration, request: R) {
        self.queue.add_with(AddOptions { after: Some(after), ..self.options() }, request);
    }

    /// Queues a request with another priority.
    pub fn add_with_priority(&self, priority: i32, request: R) {
        self.queue.add_with(AddOptions { priority: Some(priority), ..self.options() }, request);
    }

    pub(crate) fn options(&self) -> AddOptions {
        AddOptions {
            priority: Some(self.priority),
            causes: self.cause.clone().into(),
            ..AddOptions::default()
        }
    }
}

impl<K: Object, R: Key> Handler<K, R> {
    /// A custom handler. The informer waits for it, so it must not block.
    ///
    /// A panic is caught, counted and reported: the event queues no more requests, and the manager is not ready until the
    /// handler succeeds with an event of the same object.
    pub fn new(handle: impl Fn(&Event<K>, &Enqueue<'_, R>) + Send + Sync + 'static) -> Handler<K, R> {
        Handler { make: Box::new(move |_| Box::new(handle)) }
    }

    /// Queues the requests that a function returns for an object. For an update it is called with the old and the new
    /// state, so that requests related to the old state are queued, too. Go's `EnqueueRequestsFromMapFunc`.
    pub fn map_object<I>(map: impl Fn(&K) -> I + Send + Sync + 'static) -> Handler<K, R>
    where
        I: IntoIterator<Item = R>,
    {
        Handler::map(move |event: &Event<K>| {
            let mut requests = Vec::new();
            for object in event.old().into_iter().chain([event.object()]) {
                extend(&mut requests, map(object));
            }
            requests
        })
    }

    /// Like [`map_object`](Self::map_object), with an async function; see [`map_async`](Self::map_async).
    pub fn map_object_async<Fut, I>(map: impl Fn(Arc<K>) -> Fut + Send + Sync + 'static) -> Handler<K, R>
    where
        Fut: Future<Output = I> + Send + 'static,
        I: IntoIterator<Item = R> + Send,
        I::IntoIter: Send,
    {
        let map = Arc::new(map);
        Handler::map_async(move |event: Event<K>| {
            let map = Arc::clone(&map);
            async move {
                let mut requests = Vec::new();
                for object in event.old().into_iter().chain([event.object()]) {
                    extend(&mut requests, map(Arc::clone(object)).await);
                }
                requests
            }
        })
    }

    /// Queues the requests that a function returns for an event. It must consider both states of an update;
    /// [`map_object`](Self::map_object) does that by itself.
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

    /// Like [`map`](Self::map), with an async function, which may read the cache for example. A separate task handles the
    /// events one by one.
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
                let (panics, site) = (context.cache().panic_log().clone(), context.site("mapper"));
                let reports = Reports { panics: panics.clone(), sites: vec![site.clone()] };
                context.spawn("mapper", async move {
                    let _reports = reports;
                    while let Some(Some((event, work))) = stop.run_until_cancelled(events.recv()).await {
                        let enqueue = Enqueue::new(&queue, &kind, &event);
                        let mapped = AssertUnwindSafe(async {
                            for request in map(event.clone()).await {
                                enqueue.add(request);
                            }
                        });
                        match mapped.catch_unwind().await {
                            Ok(()) => panics.passed(&site, || event.key()),
                            Err(panic) => panics.caught(&site, Some(event.key()), &message(&*panic)),
                        }
                        drop(work);
                    }
                });
                Box::new(move |event, _| {
                    // An event in this channel is work in flight: the manager is not idle before it is handled.
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

    /// Queues the controlling owner of the object, if it is of this kind. An update queues the old and the new owner.
    #[must_use]
    pub fn for_owner<O: Object>(owner: &Kind<O>) -> Handler<K, R> {
        Handler::owners(owner, false)
    }

    /// Queues every owner of the object that is of this kind.
    #[must_use]
    pub fn for_every_owner<O: Object>(owner: &Kind<O>) -> Handler<K, R> {
        Handler::owners(owner, true)
    }

    fn owners<O: Object>(owner: &Kind<O>, every: bool) -> Handler<K, R> {
        Handler::owner_of(OwnerKind::of(owner), every)
    }

    pub(crate) fn owner_of(owner: OwnerKind, every: bool) -> Handler<K, R> {
        Handler {
            make: Box::new(move |context| {
                let owners = Owners::new(owner, every, context);
                Box::new(move |event: &Event<K>, enqueue| {
                    let old = event.old().map(|old| owners.of(old.meta())).unwrap_or_default();
                    let new = owners.of(event.object().meta());
                    // An owner of both states is queued once.
                    for owner in old.into_iter().filter(|owner| !new.contains(owner)) {
                        owners.queue(owner, enqueue);
                    }
                    for owner in &new {
                        owners.queue(*owner, enqueue);
                    }
                })
            }),
        }
    }
}

/// Appends requests without duplicates. Preserves their order, so that simulations are deterministic.
fn extend<R: Key>(requests: &mut Vec<R>, more: impl IntoIterator<Item = R>) {
    for request in more {
        if !requests.contains(&request) {
            requests.push(request);
        }
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
