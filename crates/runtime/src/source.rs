//! Sources of a controller's events: kinds of the cluster, channels, streams, functions.

use std::{fmt, future::Future, marker::PhantomData, panic::AssertUnwindSafe, pin::Pin, sync::Arc};

use futures_core::Stream;
use futures_util::{FutureExt as _, StreamExt as _};
use k1s_env::{Component, Env, Task};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    BoxError, Event, Kind, Object, Request,
    cache::{Cache, CacheError, Problem},
    handler::{Enqueue, Handler},
    panics::{Panics, Site, catch, message},
    predicate::{MetaEvent, MetaPredicate, Predicate},
    queue::{AddOptions, Cause, CauseEvent, Key, Queue},
    sharding::Shards,
};

/// Maximum number of events that wait in the channel of a source.
pub const CHANNEL_BUFFER: usize = 1024;

/// Something that queues requests.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a source of `{R}`",
    label = "not a source",
    note = "kinds of the cluster are watched by `watches(kind, handler)`; functions `source::kind`, `source::channel`, `source::stream` and `source::func` make other sources"
)]
pub trait Source<R: Key = Request>: Send + 'static {
    /// Its name in logs and readiness checks.
    fn name(&self) -> String;

    /// Starts to queue requests, until the context is stopped.
    ///
    /// # Errors
    /// If it cannot start; the controller does not start then.
    fn start(self: Box<Self>, context: SourceContext<R>) -> Result<Started, BoxError>;
}

/// What a source can use.
pub struct SourceContext<R: Key = Request> {
    pub(crate) env: Env,
    pub(crate) cache: Cache,
    pub(crate) queue: Queue<R>,
    pub(crate) controller: Arc<str>,
    pub(crate) kind: String,
    pub(crate) filters: Vec<MetaPredicate>,
    pub(crate) work: Component,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: Arc<Mutex<Vec<Task<()>>>>,
    /// Where a source of a sharded controller registers.
    pub(crate) shards: Option<Arc<Shards<R>>>,
}

impl<R: Key> SourceContext<R> {
    /// A site of this source, for reports of panics.
    pub(crate) fn site(&self, code: &'static str) -> Site {
        self.cache.panic_log().of_controller(code, &self.controller, &self.kind)
    }

    /// The cache of the controller's manager.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The controller's queue.
    #[must_use]
    pub fn queue(&self) -> &Queue<R> {
        &self.queue
    }

    /// Cancelled when the source has to stop.
    #[must_use]
    pub fn stopped(&self) -> &CancellationToken {
        &self.stop
    }

    /// Units of work begun here keep the controller from being idle until they end.
    #[must_use]
    pub fn work(&self) -> &Component {
        &self.work
    }

    /// The name of the source.
    #[must_use]
    pub fn kind_name(&self) -> &str {
        &self.kind
    }

    /// Spawns a task that runs until the source is stopped. A panic ends it; it is counted, logged, and makes the manager not
    /// ready ([`Problem::Panicked`]).
    pub fn spawn(&self, what: &str, future: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        let name = format!("{} {what} {}", self.controller, self.kind);
        let (panics, site) = (self.cache.panic_log().clone(), self.site("source"));
        let task = self.env.spawn(name, async move {
            let run = AssertUnwindSafe(stop.run_until_cancelled(future)).catch_unwind();
            let ended = run.await;
            if let Err(panic) = ended {
                panics.caught(&site, None, &message(&*panic));
                stop.cancelled().await;
                panics.forget(&site, |_| true);
            }
        });
        self.tasks.lock().push(task);
    }
}

impl<R: Key> Clone for SourceContext<R> {
    fn clone(&self) -> SourceContext<R> {
        SourceContext {
            env: self.env.clone(),
            cache: self.cache.clone(),
            queue: self.queue.clone(),
            controller: Arc::clone(&self.controller),
            kind: self.kind.clone(),
            filters: self.filters.clone(),
            work: self.work.clone(),
            stop: self.stop.clone(),
            tasks: Arc::clone(&self.tasks),
            shards: self.shards.clone(),
        }
    }
}

impl<R: Key> fmt::Debug for SourceContext<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceContext").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Completes when a source has caught up; see [`Started::catch_up`].
pub type CatchUp = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A running source.
pub struct Started {
    /// Completes when the source has queued everything that existed at its start.
    pub synced: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Why it is not synced, or cannot continue.
    pub problem: Box<dyn Fn() -> Option<Problem> + Send + Sync>,
    /// Waits until the source has queued everything that follows from events before the call. Called by a manager that waits
    /// until it is idle. Sources of the manager's cache need not implement it; the manager waits for the cache itself.
    pub catch_up: Box<dyn Fn() -> CatchUp + Send + Sync>,
    /// Dropped when the source is no longer needed.
    pub guard: Box<dyn Send + Sync>,
}

impl Started {
    /// A source without anything to wait for.
    #[must_use]
    pub fn at_once() -> Started {
        Started {
            synced: Box::pin(std::future::ready(())),
            problem: Box::new(|| None),
            catch_up: Box::new(|| Box::pin(std::future::ready(()))),
            guard: Box::new(()),
        }
    }
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Started")
    }
}

/// A kind to watch, with predicates for its events. Made from a [`Kind`].
#[derive(Clone)]
pub struct Watch<K: Object> {
    pub(crate) kind: Kind<K>,
    pub(crate) predicates: Vec<Predicate<K>>,
    pub(crate) every_owner: bool,
}

impl<K: Object> From<Kind<K>> for Watch<K> {
    fn from(kind: Kind<K>) -> Watch<K> {
        Watch { kind, predicates: Vec::new(), every_owner: false }
    }
}

impl<K: Object> Watch<K> {
    /// Adds a predicate; events must satisfy all of them.
    #[must_use]
    pub fn with_predicate(mut self, predicate: impl Into<Predicate<K>>) -> Watch<K> {
        self.predicates.push(predicate.into());
        self
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> &Kind<K> {
        &self.kind
    }

    /// Whether [`match_every_owner`](Self::match_every_owner) was called.
    #[must_use]
    pub fn matches_every_owner(&self) -> bool {
        self.every_owner
    }

    /// For `owns`: queues every owner, not only the controller.
    #[must_use]
    pub fn match_every_owner(mut self) -> Watch<K> {
        self.every_owner = true;
        self
    }
}

impl<K: Object> Kind<K> {
    /// Only events that the predicate accepts.
    #[must_use]
    pub fn with_predicate(self, predicate: impl Into<Predicate<K>>) -> Watch<K> {
        Watch::from(self).with_predicate(predicate)
    }

    /// For `owns`: queues every owner, not only the controller.
    #[must_use]
    pub fn match_every_owner(self) -> Watch<K> {
        Watch::from(self).match_every_owner()
    }
}

impl<K: Object> fmt::Debug for Watch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Events of a kind of the cluster, through the manager's cache.
#[derive(Debug)]
pub struct KindSource<K: Object, R: Key = Request> {
    watch: Watch<K>,
    handler: Handler<K, R>,
}

/// Events of a kind of the cluster.
pub fn kind<K: Object, R: Key>(watch: impl Into<Watch<K>>, handler: Handler<K, R>) -> KindSource<K, R> {
    KindSource { watch: watch.into(), handler }
}

impl<K: Object, R: Key> Source<R> for KindSource<K, R> {
    fn name(&self) -> String {
        self.watch.kind.to_string()
    }

    fn start(self: Box<Self>, context: SourceContext<R>) -> Result<Started, BoxError> {
        let KindSource { watch, handler } = *self;
        let informer = context.cache.informer(&watch.kind).map_err(|error: CacheError| Box::new(error))?;
        let (dispatch, reports) = dispatcher(&context, watch.predicates, handler);
        let (dispatch, queue) = (Arc::new(dispatch), context.queue.clone());
        if let Some(shards) = &context.shards {
            let (informer, dispatch) = (Arc::downgrade(&informer), Arc::clone(&dispatch));
            let replay = move |queue: &Queue<R>| {
                if let Some(informer) = informer.upgrade() {
                    informer.replay(|event| dispatch(event, queue));
                }
            };
            shards.add_replay(&context.stop, Box::new(replay));
        }
        let registration = informer.add_handler(Box::new(move |event| dispatch(event, &queue)));
        let waits = Arc::clone(&informer);
        Ok(Started {
            synced: Box::pin(async move { waits.synced().await }),
            problem: Box::new(move || informer.problem()),
            guard: Box::new((registration, reports)),
            ..Started::at_once()
        })
    }
}

/// Filters events and passes them to a handler, which adds to the given queue. Dropping the second value clears its panic reports.
///
/// A predicate that panics accepts: an additional reconcile is harmless, a missing one is not. It is unknown what a handler
/// that panics would have queued, so the panic is reported.
fn dispatcher<K: Object, R: Key>(
    context: &SourceContext<R>,
    predicates: Vec<Predicate<K>>,
    handler: Handler<K, R>,
) -> (impl Fn(&Event<K>, &Queue<R>) + Send + Sync + 'static, Reports) {
    let handle = handler.make(context);
    let filters = context.filters.clone();
    let kind: Arc<str> = context.kind.as_str().into();
    let panics = context.cache.panic_log().clone();
    let (filtering, handling) = (context.site("predicate"), context.site("handler"));
    let reports = Reports { panics: panics.clone(), sites: vec![filtering.clone(), handling.clone()] };
    let dispatch = move |event: &Event<K>, queue: &Queue<R>| {
        let mut panicked = false;
        let mut accepts = |ask: &dyn Fn() -> bool| {
            catch(ask).unwrap_or_else(|message| {
                panics.caught(&filtering, Some(event.key()), &message);
                panicked = true;
                true
            })
        };
        let wanted = filters.iter().all(|filter| accepts(&|| filter.accepts(&MetaEvent::of(event))))
            && predicates.iter().all(|predicate| accepts(&|| predicate.accepts(event)));
        if !panicked {
            panics.passed(&filtering, || event.key());
        }
        if wanted {
            // The panic is already reported.
            let _ =
                panics.run(&handling, || event.key(), || handle(event, &Enqueue::new(queue, &kind, event)));
        }
    };
    (dispatch, reports)
}

/// Clears the panic reports of a source when it is dropped.
pub(crate) struct Reports {
    pub(crate) panics: Panics,
    pub(crate) sites: Vec<Site>,
}

impl Drop for Reports {
    fn drop(&mut self) {
        for site in &self.sites {
            self.panics.forget(site, |_| true);
        }
    }
}

/// A source that reads another cache than that of the controller's manager. Made by [`in_cache`].
#[derive(Debug)]
pub struct InCache<S> {
    source: S,
    cache: Cache,
    catch_up: bool,
}

impl<S> InCache<S> {
    /// A manager that waits until it is idle also waits until this cache has seen everything. It does so by itself for its own
    /// cache, and for those of its fleet.
    #[must_use]
    pub fn with_catch_up(mut self) -> InCache<S> {
        self.catch_up = true;
        self
    }
}

/// A source that reads the cache of another cluster.
pub fn in_cache<S>(source: S, cache: &Cache) -> InCache<S> {
    InCache { source, cache: cache.clone(), catch_up: false }
}

impl<R: Key, S: Source<R>> Source<R> for InCache<S> {
    fn name(&self) -> String {
        self.source.name()
    }

    fn start(self: Box<Self>, context: SourceContext<R>) -> Result<Started, BoxError> {
        let InCache { source, cache, catch_up } = *self;
        let mut started = Box::new(source).start(SourceContext { cache: cache.clone(), ..context })?;
        if catch_up {
            let inner = started.catch_up;
            started.catch_up = Box::new(move || {
                let (cache, inner) = (cache.clone(), inner());
                Box::pin(async move {
                    cache.catch_up().await;
                    inner.await;
                })
            });
        }
        Ok(started)
    }
}

/// A source whose events have to satisfy another predicate. Made by [`filtered`].
#[derive(Debug)]
pub struct Filtered<S> {
    source: S,
    filter: MetaPredicate,
}

/// A source of which only the events that a predicate accepts are handled.
pub fn filtered<S>(source: S, filter: MetaPredicate) -> Filtered<S> {
    Filtered { source, filter }
}

impl<R: Key, S: Source<R>> Source<R> for Filtered<S> {
    fn name(&self) -> String {
        self.source.name()
    }

    fn start(self: Box<Self>, mut context: SourceContext<R>) -> Result<Started, BoxError> {
        context.filters.push(self.filter);
        Box::new(self.source).start(context)
    }
}

/// A source whose requests are changed before they are queued. Made by [`map_requests`].
pub struct MapRequests<S, A, F> {
    source: S,
    map: F,
    from: PhantomData<fn(A)>,
}

/// A source whose requests are changed before they are queued: requests of one cluster become requests that name it.
pub fn map_requests<A: Key, R: Key, S: Source<A>>(
    source: S,
    map: impl Fn(A) -> R + Send + Sync + 'static,
) -> MapRequests<S, A, impl Fn(A) -> R + Send + Sync + 'static> {
    MapRequests { source, map, from: PhantomData }
}

impl<A, R, S, F> Source<R> for MapRequests<S, A, F>
where
    A: Key,
    R: Key,
    S: Source<A>,
    F: Fn(A) -> R + Send + Sync + 'static,
{
    fn name(&self) -> String {
        self.source.name()
    }

    fn start(self: Box<Self>, context: SourceContext<R>) -> Result<Started, BoxError> {
        let MapRequests { source, map, .. } = *self;
        let SourceContext { env, cache, queue, controller, kind, filters, work, stop, tasks, .. } = context;
        let queue = Queue::forwarding(&env, &queue, map);
        // Its requests are of another type than the controller's; it is not replayed.
        let shards = None;
        let context =
            SourceContext { env, cache, queue, controller, kind, filters, work, stop, tasks, shards };
        Box::new(source).start(context)
    }
}

impl<S, A, F> fmt::Debug for MapRequests<S, A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MapRequests")
    }
}

impl<R: Key> Source<R> for Box<dyn Source<R>> {
    fn name(&self) -> String {
        (**self).name()
    }

    fn start(self: Box<Self>, context: SourceContext<R>) -> Result<Started, BoxError> {
        (*self).start(context)
    }
}

/// Sends events from outside of the cluster to a controller.
#[derive(Debug)]
pub struct EventSender<K> {
    sender: mpsc::Sender<Sent<K>>,
}

impl<K> Clone for EventSender<K> {
    fn clone(&self) -> EventSender<K> {
        EventSender { sender: self.sender.clone() }
    }
}

/// A message in the channel of a source.
#[derive(Debug)]
enum Sent<K> {
    Event(Arc<K>),
    /// Acknowledged when everything sent before it is handled.
    Mark(oneshot::Sender<()>),
}

impl<K: Object> EventSender<K> {
    /// Sends an event about an object. Waits while the channel is full.
    ///
    /// # Errors
    /// If the controller has stopped.
    pub async fn send(&self, object: impl Into<Arc<K>>) -> Result<(), SendError> {
        self.sender.send(Sent::Event(object.into())).await.map_err(|_| SendError)
    }
}

/// The controller that events were sent to has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the controller has stopped")]
pub struct SendError;

/// Events that are sent by the program itself.
#[derive(Debug)]
pub struct ChannelSource<K: Object, R: Key = Request> {
    sent: mpsc::Receiver<Sent<K>>,
    /// For marks. Weak, so that it does not keep the channel open.
    sender: mpsc::WeakSender<Sent<K>>,
    predicates: Vec<Predicate<K>>,
    handler: Handler<K, R>,
}

/// A source of events from outside of the cluster, and its sender.
#[must_use]
pub fn channel<K: Object, R: Key>(handler: Handler<K, R>) -> (EventSender<K>, ChannelSource<K, R>) {
    let (sender, sent) = mpsc::channel(CHANNEL_BUFFER);
    let source = ChannelSource { sent, sender: sender.downgrade(), predicates: Vec::new(), handler };
    (EventSender { sender }, source)
}

impl<K: Object, R: Key> ChannelSource<K, R> {
    /// Only events that the predicate accepts.
    #[must_use]
    pub fn with_predicate(mut self, predicate: impl Into<Predicate<K>>) -> ChannelSource<K, R> {
        self.predicates.push(predicate.into());
        self
    }
}

impl<K: Object, R: Key> Source<R> for ChannelSource<K, R> {
    fn name(&self) -> String {
        format!("channel of {}", std::any::type_name::<K>().rsplit("::").next().unwrap_or_default())
    }

    fn start(self: Box<Self>, context: SourceContext<R>) -> Result<Started, BoxError> {
        let ChannelSource { mut sent, sender, predicates, handler } = *self;
        let (handle, reports) = dispatcher(&context, predicates, handler);
        let queue = context.queue.clone();
        let ended = CancellationToken::new();
        let ends = ended.clone().drop_guard();
        context.spawn("events", async move {
            let _ends = ends;
            // Handled in batches: waking up for each event would cost more than handling it.
            let mut waiting = Vec::new();
            while sent.recv_many(&mut waiting, CHANNEL_BUFFER).await > 0 {
                for sent in waiting.drain(..) {
                    match sent {
                        Sent::Event(object) => handle(&Event::Generic { object }, &queue),
                        Sent::Mark(reached) => drop(reached.send(())),
                    }
                }
            }
        });
        let catch_up = move || -> CatchUp {
            let (sender, ended) = (sender.clone(), ended.clone());
            Box::pin(async move {
                // All senders are dropped: the source handles the remaining events before it ends.
                let Some(sender) = sender.upgrade() else { return ended.cancelled().await };
                let (reached, acknowledged) = oneshot::channel();
                if sender.send(Sent::Mark(reached)).await.is_ok() {
                    drop(acknowledged.await);
                }
            })
        };
        Ok(Started { catch_up: Box::new(catch_up), guard: Box::new(reports), ..Started::at_once() })
    }
}

/// Requests from a stream.
pub struct StreamSource<S> {
    name: String,
    stream: S,
}

/// A source of the requests from a stream.
pub fn stream<S>(name: impl Into<String>, stream: S) -> StreamSource<S> {
    StreamSource { name: name.into(), stream }
}

impl<S> fmt::Debug for StreamSource<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamSource").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<R: Key, S: Stream<Item = R> + Send + 'static> Source<R> for StreamSource<S> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn start(self: Box<Self>, context: SourceContext<R>) -> Result<Started, BoxError> {
        let StreamSource { name, stream } = *self;
        let queue = context.queue.clone();
        let kind: Arc<str> = name.into();
        context.spawn("stream", async move {
            let mut stream = std::pin::pin!(stream);
            while let Some(request) = stream.next().await {
                let cause = Cause { kind: Arc::clone(&kind), ..Cause::new(CauseEvent::Generic) };
                queue.add_with(AddOptions::because(cause), request);
            }
        });
        Ok(Started::at_once())
    }
}

/// A function that queues requests until it is stopped.
pub struct FuncSource<F> {
    name: String,
    run: F,
}

/// A source from a function, which receives the context and runs until it is stopped.
pub fn func<F>(name: impl Into<String>, run: F) -> FuncSource<F> {
    FuncSource { name: name.into(), run }
}

impl<F> fmt::Debug for FuncSource<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FuncSource").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<R, F, Fut> Source<R> for FuncSource<F>
where
    R: Key,
    F: FnOnce(SourceContext<R>) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    fn name(&self) -> String {
        self.name.clone()
    }

    fn start(self: Box<Self>, context: SourceContext<R>) -> Result<Started, BoxError> {
        let run = (self.run)(context.clone());
        context.spawn("source", run);
        Ok(Started::at_once())
    }
}
