//! The watch cache: for each resource that is listed or watched, its current objects and recent events.
//!
//! One task per resource follows the store. Readers take a snapshot: a persistent map they share without locks.
//! Watchers hold a position in the ring of recent events: a slow watcher delays no other, and one that falls off the
//! ring's end gets 410 and has to list again. Beside the encoded object an entry keeps only what selectors need: labels
//! and selectable fields.

mod entries;
mod entry;
mod known;
mod ring;
mod tree;

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use k1s_env::{Env, Task};
use k1s_object::Status;
use k1s_store::{Range, RequestProgress, Revision, Store, WatchItem, WatchRequest};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

pub(crate) use entries::Entries;
pub(crate) use entry::{Entry, Fields};
pub(crate) use known::{Fact, Known};
pub(crate) use ring::{Event, Ring, Took};
use tree::{Keyed, Tree};

use crate::errors;

/// All objects of a resource at one revision, by key.
#[derive(Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) revision: Revision,
    pub(crate) entries: Entries,
    /// Keys of objects that cannot be read. They are left out of lists and watches, and can be deleted.
    unreadable: Tree<Bytes>,
}

impl Keyed for Bytes {
    fn key(&self) -> &[u8] {
        self
    }
}

impl Snapshot {
    /// A snapshot of no objects yet.
    pub(crate) fn empty(revision: Revision) -> Snapshot {
        Snapshot { revision, ..Snapshot::default() }
    }

    /// Whether the object under a key cannot be read.
    pub(crate) fn is_unreadable(&self, key: &Bytes) -> bool {
        self.unreadable.get(key).is_some()
    }

    /// The keys of unreadable objects under a prefix.
    pub(crate) fn unreadable(&self, prefix: &str) -> impl Iterator<Item = &Bytes> {
        self.unreadable.from(prefix.as_bytes()).take_while(move |key| key.starts_with(prefix.as_bytes()))
    }

    /// Adds or replaces the object of a stored value; returns its entry if it can be read.
    pub(crate) fn put(
        &mut self,
        key: &Bytes,
        value: &Bytes,
        revision: Revision,
        fields: &Fields,
    ) -> Option<Arc<Entry>> {
        match Entry::new(key.clone(), value, revision, fields) {
            Ok(entry) => {
                let entry = Arc::new(entry);
                self.unreadable.remove(key);
                self.entries.insert(entry.clone());
                Some(entry)
            }
            Err(why) => {
                tracing::error!(key = %key.escape_ascii(), %why, "an unreadable object is left out");
                self.entries.remove(key);
                self.unreadable.insert(key.clone());
                None
            }
        }
    }

    /// Replaces the entry of a key.
    pub(crate) fn replace(&mut self, entry: Arc<Entry>) {
        self.entries.insert(entry);
    }

    fn remove(&mut self, key: &Bytes) {
        self.entries.remove(key);
        self.unreadable.remove(key);
    }

    /// Undoes an event, the newest that this snapshot has. Unreadable objects have no events, so
    /// an older snapshot may lack some of their keys.
    fn undo(&mut self, event: &Event) {
        match (&event.old, &event.new) {
            (Some(old), _) => {
                self.unreadable.remove(&old.key);
                self.entries.insert(old.clone());
            }
            (None, Some(new)) => self.entries.remove(&new.key),
            (None, None) => {}
        }
    }
}

/// The cache of one resource of one tenant.
pub(crate) struct Cache {
    inner: Arc<Inner>,
    /// Aborted when the cache is dropped.
    task: Mutex<Option<Task<()>>>,
}

struct Inner {
    env: Env,
    store: Arc<dyn Store>,
    prefix: Bytes,
    fields: Fields,
    snapshot: ArcSwap<Snapshot>,
    ring: RwLock<Ring>,
    progress: Mutex<Option<Arc<dyn RequestProgress>>>,
    /// The revision reached; 0 before the first load.
    reached: watch::Sender<u64>,
    /// Set when the store is closed: no further revision will be reached.
    ended: AtomicBool,
    /// Why the objects could not be loaded or followed, until they are.
    trouble: Mutex<Option<k1s_store::Error>>,
    /// The newest revision reported to [`Cache::note_write`].
    written: AtomicU64,
    /// Snapshots of lists that have a next page.
    pins: Mutex<VecDeque<Arc<Snapshot>>>,
}

/// Maximum number of snapshots kept for the next pages of lists. Others are rebuilt from recent events, or
/// read from the store's history.
const MAX_PINS: usize = 8;

/// Maximum number of events, besides one for each object, that are undone to rebuild an older snapshot. With more,
/// reading the objects from the store is cheaper.
const MAX_UNDONE: usize = 1000;

impl Cache {
    /// Starts a task that follows the keys under `prefix`; `fields` reads the values for field selectors.
    pub(crate) fn start(env: &Env, store: &Arc<dyn Store>, prefix: Bytes, fields: Fields) -> Cache {
        let inner = Arc::new(Inner {
            env: env.clone(),
            store: store.clone(),
            prefix,
            fields,
            snapshot: ArcSwap::from_pointee(Snapshot::default()),
            ring: RwLock::new(Ring::default()),
            progress: Mutex::new(None),
            reached: watch::Sender::new(0),
            ended: AtomicBool::new(false),
            trouble: Mutex::new(None),
            written: AtomicU64::new(0),
            pins: Mutex::default(),
        });
        let task = env.spawn("watch cache", follow(inner.clone()));
        Cache { inner, task: Mutex::new(Some(task)) }
    }

    /// The keys this cache follows.
    pub(crate) fn prefix(&self) -> &Bytes {
        &self.inner.prefix
    }

    /// A snapshot at `revision` or later; waits up to `patience` for it.
    pub(crate) async fn at_least(
        &self,
        revision: Revision,
        patience: Duration,
    ) -> Result<Arc<Snapshot>, Status> {
        if *self.inner.reached.borrow() < revision.get().max(1) {
            let mut reached = self.inner.reached.subscribe();
            let wait = async {
                loop {
                    if let Some(progress) = self.inner.progress.lock().clone() {
                        progress.request_progress();
                    }
                    // Before the wait: it may have been reached while this subscribed.
                    if *reached.borrow_and_update() >= revision.get().max(1) {
                        return Ok(());
                    }
                    // What was never loaded is not waited for: a store that cannot decrypt it, say, may be like that for long.
                    if *reached.borrow() == 0
                        && let Some(error) = &*self.inner.trouble.lock()
                    {
                        return Err(errors::store(error));
                    }
                    if self.inner.ended.load(Ordering::Acquire) || reached.changed().await.is_err() {
                        return Err(errors::store(&k1s_store::Error::Closed));
                    }
                }
            };
            self.inner.env.timeout(patience, wait).await.unwrap_or_else(|_| {
                if let Some(error) = &*self.inner.trouble.lock() {
                    return Err(errors::store(error));
                }
                let current = *self.inner.reached.borrow();
                Err(errors::too_large_resource_version(revision.get(), current))
            })?;
        }
        Ok(self.inner.snapshot.load_full())
    }

    /// A snapshot that contains every write acknowledged before this call.
    pub(crate) async fn now(&self) -> Result<Arc<Snapshot>, Status> {
        let revision = self.inner.store.revision().await.map_err(|error| errors::store(&error))?;
        self.at_least(revision, PATIENCE).await
    }

    /// Reports a write of this server to one of the objects.
    pub(crate) fn note_write(&self, revision: Revision) {
        self.inner.written.fetch_max(revision.get(), Ordering::AcqRel);
    }

    /// A snapshot that contains every write reported to [`Cache::note_write`], without a read of the store's revision. Recent
    /// writes of other servers may be missing.
    pub(crate) async fn with_own_writes(&self) -> Result<Arc<Snapshot>, Status> {
        self.at_least(Revision::new(self.inner.written.load(Ordering::Acquire)), PATIENCE).await
    }

    /// The same, with all writes up to a revision, also those of other servers.
    pub(crate) async fn with_writes_to(&self, revision: Revision) -> Result<Arc<Snapshot>, Status> {
        let written = Revision::new(self.inner.written.load(Ordering::Acquire));
        self.at_least(written.max(revision), PATIENCE).await
    }

    /// [`Cache::with_own_writes`], if it needs no waiting.
    pub(crate) fn settled(&self) -> Option<Arc<Snapshot>> {
        self.settled_to(Revision::FIRST)
    }

    /// [`Cache::with_writes_to`], if it needs no waiting.
    pub(crate) fn settled_to(&self, revision: Revision) -> Option<Arc<Snapshot>> {
        let written = self.inner.written.load(Ordering::Acquire).max(revision.get()).max(1);
        let snapshot = self.inner.snapshot.load_full();
        (snapshot.revision.get() >= written).then_some(snapshot)
    }

    /// The revision of the snapshot that [`Cache::settled_to`] returns.
    pub(crate) fn reached(&self, revision: Revision) -> Option<Revision> {
        let written = self.inner.written.load(Ordering::Acquire).max(revision.get()).max(1);
        let reached = self.inner.snapshot.load().revision;
        (reached.get() >= written).then_some(reached)
    }

    /// Keeps a snapshot for the next page of a list.
    pub(crate) fn pin(&self, snapshot: Arc<Snapshot>) {
        let mut pins = self.inner.pins.lock();
        pins.retain(|pin| pin.revision != snapshot.revision);
        pins.push_back(snapshot);
        if pins.len() > MAX_PINS {
            pins.pop_front();
        }
    }

    /// The pinned snapshot at this revision.
    pub(crate) fn pinned(&self, revision: Revision) -> Option<Arc<Snapshot>> {
        self.inner.pins.lock().iter().find(|pin| pin.revision == revision).cloned()
    }

    /// The snapshot at an older revision, if the ring has all events since. Its cost depends on the number of those events,
    /// not of the objects.
    pub(crate) fn rewound(&self, revision: Revision) -> Option<Arc<Snapshot>> {
        let current = self.inner.snapshot.load_full();
        if revision > current.revision {
            return None;
        }
        let max = current.entries.len() + MAX_UNDONE;
        let events = self.ring(|ring| ring.between(revision, current.revision, max))?;
        let mut snapshot = Snapshot::clone(&current);
        for event in events.iter().rev() {
            snapshot.undo(event);
        }
        snapshot.revision = revision;
        Some(Arc::new(snapshot))
    }

    /// Reads the ring of recent events under its lock.
    pub(crate) fn ring<T>(&self, look: impl FnOnce(&Ring) -> T) -> T {
        look(&self.inner.ring.read())
    }

    /// Notifies of the revisions that the cache reaches.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.inner.reached.subscribe()
    }

    /// The entry of a stored value, if it can be read.
    pub(crate) fn entry(&self, key: Bytes, value: &Bytes, revision: Revision) -> Option<Entry> {
        Entry::new(key, value, revision, &self.inner.fields).ok()
    }

    /// Reads the selectable fields of an object.
    pub(crate) fn fields(&self) -> &Fields {
        &self.inner.fields
    }
}

/// Maximum time a request waits for the cache to reach the store's revision.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

impl Drop for Cache {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }
}

/// Lists and watches the store; lists again after an error, and watchers that lag behind that list get 410.
async fn follow(inner: Arc<Inner>) {
    let mut pause = Duration::from_millis(5);
    loop {
        match follow_once(&inner, &mut pause).await {
            Ok(()) | Err(k1s_store::Error::Closed) => {
                inner.ended.store(true, Ordering::Release);
                // Wakes up requests that wait for a revision.
                inner.reached.send_modify(|_| ());
                return;
            }
            Err(error) => {
                tracing::warn!(prefix = %inner.prefix.escape_ascii(), %error, "watch cache lists again");
                *inner.trouble.lock() = Some(error);
                // Wakes up requests that wait for the first load.
                inner.reached.send_modify(|_| ());
            }
        }
        inner.env.sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}

async fn follow_once(inner: &Inner, pause: &mut Duration) -> k1s_store::Result<()> {
    let loaded = inner.store.range(Range::prefix(inner.prefix.clone())).await?;
    let revision = loaded.revision;
    let mut snapshot = Snapshot::empty(revision);
    for kv in loaded.entries {
        snapshot.put(&kv.key, &kv.value, kv.revision, &inner.fields);
    }
    let mut watch = inner.store.watch(WatchRequest::prefix(inner.prefix.clone()).after(revision)).await?;
    *inner.progress.lock() = Some(watch.progress_handle());
    inner.ring.write().restart(revision);
    *inner.trouble.lock() = None;
    publish(inner, snapshot);
    *pause = Duration::from_millis(5);
    while let Some(item) = watch.next().await {
        let change = match item? {
            WatchItem::Progress(revision) => {
                let mut snapshot = Snapshot::clone(&inner.snapshot.load());
                if revision > snapshot.revision {
                    snapshot.revision = revision;
                    publish(inner, snapshot);
                }
                continue;
            }
            WatchItem::Change(change) => change,
        };
        let mut snapshot = Snapshot::clone(&inner.snapshot.load());
        snapshot.revision = change.revision();
        let mut events = Vec::with_capacity(change.events().len());
        for event in change.events() {
            let old = snapshot.entries.get(&event.key).cloned();
            let new = match &event.value {
                None => {
                    snapshot.remove(&event.key);
                    None
                }
                Some(value) => snapshot.put(&event.key, value, change.revision(), &inner.fields),
            };
            if new.is_some() || old.is_some() {
                events.push(Arc::new(Event::new(change.revision(), old, new)));
            }
        }
        // The ring first: a reader of the snapshot finds all events up to its revision in the ring.
        inner.ring.write().push(events);
        publish(inner, snapshot);
    }
    Ok(())
}

fn publish(inner: &Inner, snapshot: Snapshot) {
    let revision = snapshot.revision.get();
    inner.snapshot.store(Arc::new(snapshot));
    inner.reached.send_replace(revision);
}

#[cfg(test)]
mod tests {
    use k1s_store::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn a_closed_store_ends_the_wait_for_a_revision() {
        // Simulated time does not advance here: a timeout would never expire.
        let (env, _clock) = Env::simulated(1);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let cache = Cache::start(&env, &store, Bytes::from_static(b"/pods/"), Fields::default());
        let loaded = cache.at_least(Revision::FIRST, PATIENCE).await.map_err(|status| status.to_string());
        let next = loaded.unwrap().revision.next();
        let waits = cache.at_least(next, PATIENCE);
        let (waited, closed) = tokio::join!(waits, store.close());
        closed.unwrap();
        assert!(waited.is_err());
        assert!(cache.at_least(next, PATIENCE).await.is_err(), "a later call fails, too");
    }
}
