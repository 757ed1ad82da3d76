//! The fan-out of changes to watches: one ring of recent changes, a cursor for each watch.
//!
//! A backend [publishes](Feed::publish) each change once, in order. A watch is a cursor that goes
//! through up to three places, always by the revision it has reached:
//!
//! ```text
//!   backfill ──────────► ring ──────────► topic
//!   the backend's own    recent changes   recent changes under
//!   history, in pages    of all keys      one watched prefix
//! ```
//!
//! - A **topic** exists while its prefix is watched. Publishing looks up the topics of a key by
//!   prefix, so a change costs watches of other prefixes nothing, and a thousand watches of one prefix share one copy.
//! - A cursor is a position. Nothing is queued for it, so it cannot block or slow a writer; when the
//!   topic has moved on without it, it goes back to the ring or to the backend's history, and when
//!   that is compacted it ends with [`Error::Compacted`].
//! - Watches are woken by a task of the feed, one per tokio runtime: publishing costs the same with one watch or with
//!   a thousand.

mod cursor;
mod topics;

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use k1s_env::Env;
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;
use tokio::{
    runtime::{Handle, Id},
    sync::Notify,
};

use crate::{Change, Error, KeyValue, Result, Revision, Watch, WatchRequest};
use topics::{Topic, Topics};

/// Size of the ring of a [`Feed`]: how far a watch can lag without reading the backend's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedOptions {
    /// Maximum number of changes.
    pub changes: usize,
    /// Maximum bytes of keys and values, except that the newest change is always kept.
    pub bytes: usize,
}

impl Default for FeedOptions {
    fn default() -> Self {
        Self { changes: 4096, bytes: 16 << 20 }
    }
}

/// A backend's history, for watches that lag behind the ring.
#[async_trait]
pub trait Backfill: Send + Sync + 'static {
    /// The changes after `request.after` (which is set), oldest first. The backend decides how many at a time,
    /// but each call makes progress unless there is nothing newer.
    ///
    /// Fails with [`Error::Compacted`] when changes after that revision are compacted.
    async fn backfill(&self, request: &WatchRequest) -> Result<Backfilled>;
}

/// A page of a backend's history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backfilled {
    /// The changes under the prefix.
    pub changes: Vec<Arc<Change>>,
    /// The revision up to which these are complete.
    pub through: Revision,
}

/// The fan-out of one store's changes. Cheap to clone.
#[derive(Clone)]
pub struct Feed {
    shared: Arc<Shared>,
}

struct Shared {
    env: Env,
    options: FeedOptions,
    state: Mutex<State>,
    /// The newest published revision, as in `state`, readable without its lock.
    revision: AtomicU64,
    /// Tasks that wake watches; without any, publishing does so itself.
    dispatchers: RwLock<SmallVec<[Dispatching; 1]>>,
    closed: AtomicBool,
    watches: AtomicUsize,
}

struct State {
    ring: VecDeque<Published>,
    ring_bytes: usize,
    /// Every change after this revision is in the ring.
    floor: Revision,
    /// The oldest revision that can be watched from.
    oldest: Revision,
    revision: Revision,
    topics: Topics,
    /// Topics whose watches have yet to be woken.
    dirty: Vec<Arc<Topic>>,
    closed: bool,
}

/// A change in the ring.
#[derive(Clone)]
struct Published {
    change: Arc<Change>,
    /// Whether events carry previous values, where there are any.
    previous: bool,
}

impl Feed {
    /// A feed of a store that is at `revision` and whose history begins at `oldest`.
    pub fn new(env: Env, options: FeedOptions, revision: Revision, oldest: Revision) -> Self {
        Self {
            shared: Arc::new(Shared {
                env,
                options,
                state: Mutex::new(State {
                    ring: VecDeque::new(),
                    ring_bytes: 0,
                    floor: revision,
                    oldest,
                    revision,
                    topics: Topics::default(),
                    dirty: Vec::new(),
                    closed: false,
                }),
                revision: AtomicU64::new(revision.get()),
                dispatchers: RwLock::default(),
                closed: AtomicBool::new(false),
                watches: AtomicUsize::new(0),
            }),
        }
    }

    /// The newest revision that was published.
    pub fn revision(&self) -> Revision {
        Revision::new(self.shared.revision.load(Ordering::Acquire))
    }

    /// The oldest revision that can be watched from.
    pub fn oldest(&self) -> Revision {
        self.shared.state.lock().oldest
    }

    /// How many watches are open.
    pub fn watches(&self) -> usize {
        self.shared.watches.load(Ordering::Relaxed)
    }

    /// Whether a watch of `key` requests previous values. If none does, a backend need not read them.
    pub fn wants_previous(&self, key: &[u8]) -> bool {
        let state = self.shared.state.lock();
        state.topics.matching(key).any(|topic| topic.wants_previous())
    }

    /// The entry that `revision` wrote to `key`, if the ring has it: a reader that keeps it shares the ring's memory.
    pub fn recall(&self, key: &[u8], revision: Revision) -> Option<KeyValue> {
        let state = self.shared.state.lock();
        if revision <= state.floor {
            return None;
        }
        let place =
            state.ring.binary_search_by_key(&revision, |published| published.change.revision()).ok()?;
        let events = state.ring.get(place)?.change.events();
        let event = events.iter().find(|event| event.key == key)?;
        Some(KeyValue { key: event.key.clone(), value: event.value.clone()?, revision })
    }

    /// Publishes a change. Changes must be published in the order of their revisions.
    ///
    /// `previous` says whether its events carry previous values; if not, watches that request them read the change from the
    /// backend's history.
    pub fn publish(&self, change: Arc<Change>, previous: bool) {
        self.publish_all(std::iter::once((change, previous)));
    }

    /// Publishes several changes at once.
    pub fn publish_all(&self, changes: impl IntoIterator<Item = (Arc<Change>, bool)>) {
        self.publish_with(changes, || ());
    }

    /// Publishes several changes at once, and makes them readable in the same step by calling `reveal`.
    ///
    /// A change must be readable before it is yielded. But a client that reads a revision may watch from it and request
    /// marks at once, so the feed must not lag behind what can be read either: every call to the feed
    /// after such a read waits for this one. `reveal` must be short and must not call the feed.
    pub fn publish_with(
        &self,
        changes: impl IntoIterator<Item = (Arc<Change>, bool)>,
        reveal: impl FnOnce(),
    ) {
        let mut state = self.shared.state.lock();
        reveal();
        for (change, previous) in changes {
            state.push(Published { change, previous }, &self.shared.options);
        }
        // After the topics have the changes: a cursor that reads this revision finds them there.
        self.shared.revision.store(state.revision.get(), Ordering::Release);
        let wake = !state.dirty.is_empty();
        drop(state);
        if wake {
            self.shared.wake();
        }
    }

    /// Records that the store has reached `revision` without a change to any key that can be watched.
    pub fn advance(&self, revision: Revision) {
        let mut state = self.shared.state.lock();
        if revision > state.revision {
            state.revision = revision;
            self.shared.revision.store(revision.get(), Ordering::Release);
        }
    }

    /// Records that the history before `oldest` is compacted.
    pub fn compact(&self, oldest: Revision) {
        let mut state = self.shared.state.lock();
        state.oldest = state.oldest.max(oldest);
        while state.ring.front().is_some_and(|first| first.change.revision() <= oldest) {
            state.evict();
        }
    }

    /// Clears the ring and continues at `revision`, for a backend that has missed changes.
    /// Watches read what they missed from the backend's history, or end with [`Error::Compacted`].
    pub fn restart(&self, revision: Revision) {
        let mut state = self.shared.state.lock();
        while !state.ring.is_empty() {
            state.evict();
        }
        for topic in state.topics.all() {
            topic.lose_track();
        }
        state.floor = state.floor.max(revision);
        state.revision = state.revision.max(revision);
        self.shared.revision.store(state.revision.get(), Ordering::Release);
        state.mark_all_dirty();
        drop(state);
        self.shared.wake();
    }

    /// Ends all watches, once they have yielded everything.
    pub fn close(&self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        self.shared.closed.store(true, Ordering::Release);
        state.mark_all_dirty();
        drop(state);
        self.shared.wake();
    }

    /// Whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// Opens a watch that reads changes that are not in the ring from `history`.
    pub fn watch(&self, request: WatchRequest, history: Arc<dyn Backfill>) -> Result<Watch> {
        let cursor = cursor::Cursor::open(self.clone(), request, history)?;
        self.start_dispatcher();
        Ok(cursor.into_watch())
    }

    /// The task that wakes watches. It ends with the feed, or when the feed is closed and has no watches.
    ///
    /// Each tokio runtime in which watches are opened has one: another runtime may not be running.
    fn start_dispatcher(&self) {
        let runtime = Handle::current().id();
        let is_ours = |dispatching: &Dispatching| dispatching.runtime == runtime;
        if self.shared.dispatchers.read().iter().any(is_ours) {
            return;
        }
        let dispatch = Arc::<Notify>::default();
        {
            let mut dispatchers = self.shared.dispatchers.write();
            if dispatchers.iter().any(is_ours) {
                return;
            }
            dispatchers.push(Dispatching { runtime, tell: dispatch.clone() });
        }
        let dispatcher = Dispatcher { shared: Arc::downgrade(&self.shared), dispatch: dispatch.clone() };
        // The task ends with this runtime, which the feed may outlive.
        drop(self.shared.env.spawn("store-feed", async move {
            while dispatcher.wake_watches() {
                dispatch.notified().await;
            }
        }));
    }
}

/// A task that wakes watches.
struct Dispatching {
    runtime: Id,
    /// Signals that there are topics to wake.
    tell: Arc<Notify>,
}

/// State of the dispatching task; it does not keep the feed alive.
struct Dispatcher {
    shared: Weak<Shared>,
    dispatch: Arc<Notify>,
}

impl Dispatcher {
    /// Wakes the watches of topics that have something new; false if the task should end.
    fn wake_watches(&self) -> bool {
        let Some(shared) = self.shared.upgrade() else { return false };
        shared.wake_dirty_topics();
        !(shared.closed.load(Ordering::Acquire) && shared.watches.load(Ordering::Acquire) == 0)
    }
}

impl Drop for Dispatcher {
    /// The task ended, perhaps because its runtime did: if it was the last, publishing wakes watches itself from now
    /// on, until a new watch starts another task.
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.dispatchers.write().retain(|other| !Arc::ptr_eq(&other.tell, &self.dispatch));
            shared.wake_dirty_topics();
        }
    }
}

impl Shared {
    fn wake(&self) {
        if !self.tell_dispatchers() {
            self.wake_dirty_topics();
        }
    }

    /// Whether there is a dispatching task.
    fn tell_dispatchers(&self) -> bool {
        let tell = |dispatching: &Dispatching| dispatching.tell.clone();
        let dispatchers: SmallVec<[_; 1]> = self.dispatchers.read().iter().map(tell).collect();
        // Without the lock: a waker may do anything.
        dispatchers.iter().for_each(|tell| tell.notify_one());
        !dispatchers.is_empty()
    }

    fn wake_dirty_topics(&self) {
        let dirty = std::mem::take(&mut self.state.lock().dirty);
        for topic in dirty {
            topic.wake();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.tell_dispatchers();
    }
}

impl State {
    fn push(&mut self, published: Published, options: &FeedOptions) {
        let change = &published.change;
        debug_assert!(change.revision() > self.revision, "changes must be published in order");
        self.revision = change.revision();
        for topic in self.topics.touched_by(change) {
            if let Some(seen) = change.under(topic.prefix()) {
                let newly_dirty = topic.push(Published { change: seen, previous: published.previous });
                if newly_dirty {
                    self.dirty.push(topic);
                }
            }
        }
        self.ring_bytes += change.size();
        self.ring.push_back(published);
        while self.ring.len() > options.changes || (self.ring_bytes > options.bytes && self.ring.len() > 1) {
            self.evict();
        }
    }

    /// Drops the oldest change from the ring and from the topics.
    fn evict(&mut self) {
        if let Some(Published { change, .. }) = self.ring.pop_front() {
            self.ring_bytes -= change.size();
            self.floor = self.floor.max(change.revision());
            for topic in self.topics.touched_by(&change) {
                topic.evict(change.revision());
            }
        }
    }

    fn mark_all_dirty(&mut self) {
        self.dirty = self.topics.all().inspect(|topic| topic.mark_dirty()).cloned().collect();
    }

    /// Whether everything after `after` is available, in the ring or in history.
    fn check_start(&self, after: Revision) -> Result<()> {
        if after < self.oldest {
            return Err(Error::Compacted { requested: after, oldest: self.oldest });
        }
        if after > self.revision {
            return Err(Error::FutureRevision { requested: after, current: self.revision });
        }
        Ok(())
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed")
            .field("revision", &self.revision())
            .field("watches", &self.watches())
            .finish_non_exhaustive()
    }
}
