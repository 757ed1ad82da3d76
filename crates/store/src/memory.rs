//! The store that keeps everything in memory.

use std::{borrow::Borrow, cmp::Ordering, collections::BTreeMap, fmt, ops::Bound, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use imbl::{OrdSet, Vector};
use k1s_env::Env;
use parking_lot::RwLock;
use smallvec::SmallVec;

use crate::{
    Action, Change, Error, Event, GetResult, KeyValue, Op, Precondition, Previous, Range, RangeResult,
    Result, Revision, Stats, Store, Txn, Watch, WatchRequest,
    feed::{Backfill, Backfilled, Feed, FeedOptions},
    moment,
};

/// How much a [`MemoryStore`] remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOptions {
    /// History of at most so many revisions, for reads and watches of the past.
    pub history_revisions: usize,
    /// History of at most so many bytes of keys and values that were replaced or deleted.
    pub history_bytes: usize,
    /// The ring from which open watches are served.
    pub feed: FeedOptions,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self { history_revisions: 100_000, history_bytes: 64 << 20, feed: FeedOptions::default() }
    }
}

/// A [`Store`] in memory: nothing survives the process.
///
/// A list works on a snapshot, which takes no time to make, and holds nobody up while it does. A write changes the map in
/// place where no snapshot shares it, and copies the few nodes on its way where one does. Cheap to clone; clones are the
/// same store.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    options: MemoryOptions,
    /// Locked for no longer than it takes to find or change an entry, or to make a snapshot.
    newest: RwLock<Snapshot>,
    feed: Feed,
}

/// The store at one moment, with the changes that led there.
#[derive(Clone)]
struct Snapshot {
    revision: Revision,
    /// The history begins behind this revision.
    oldest: Revision,
    entries: OrdSet<Slot>,
    bytes: u64,
    history: Vector<Arc<Change>>,
    /// What the history holds on to.
    history_bytes: usize,
}

/// Changes that are no longer in the history. There may be many; they are freed where nobody waits for it.
type Forgotten = SmallVec<[Arc<Change>; 1]>;

/// An entry in the map, ordered by its key. A write that meets a snapshot copies the nodes on its way through the map: one
/// pointer for each entry in them is as little to copy as can be. (The map's inner nodes keep entries as signposts, so of
/// a few keys an old value stays in memory until the nodes around it change.)
#[derive(Clone)]
struct Slot(Arc<KeyValue>);

impl MemoryStore {
    /// An empty store.
    pub fn new(env: Env, options: MemoryOptions) -> Self {
        let snapshot = Snapshot {
            revision: Revision::FIRST,
            oldest: Revision::FIRST,
            entries: OrdSet::new(),
            bytes: 0,
            history: Vector::new(),
            history_bytes: 0,
        };
        Self {
            shared: Arc::new(Shared {
                options,
                newest: RwLock::new(snapshot),
                feed: Feed::new(env, options.feed, Revision::FIRST, Revision::FIRST),
            }),
        }
    }

    /// The store as it is now, for as long as it takes.
    fn snapshot(&self) -> Snapshot {
        self.shared.newest.read().clone()
    }

    /// Fails if the store is closed. Nothing here ever waits, so a task that does nothing but use the
    /// store gives others a turn now and then.
    async fn open(&self) -> Result<()> {
        tokio::task::coop::consume_budget().await;
        if self.shared.feed.is_closed() { Err(Error::Closed) } else { Ok(()) }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(Env::system(), MemoryOptions::default())
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn revision(&self) -> Result<Revision> {
        self.open().await?;
        Ok(self.shared.newest.read().revision)
    }

    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<GetResult> {
        self.open().await?;
        let newest = self.shared.newest.read();
        let revision = newest.moment(at)?;
        if revision == newest.revision {
            return Ok(GetResult { revision, entry: newest.get(key) });
        }
        let snapshot = newest.clone();
        drop(newest);
        Ok(GetResult { revision, entry: snapshot.get_at(key, revision) })
    }

    async fn range(&self, range: Range) -> Result<RangeResult> {
        self.open().await?;
        let newest = self.shared.newest.read();
        let revision = newest.moment(range.revision)?;
        let mut entries = if revision == newest.revision {
            // Without the history: who holds on to that frees what writers forget of it meanwhile.
            let entries = newest.entries.clone();
            drop(newest);
            in_range(&entries, &range).take(at_most(&range)).map(Slot::entry).collect()
        } else {
            let snapshot = newest.clone();
            drop(newest);
            snapshot.entries_at(&range, revision)
        };
        let more = entries.len() > range.max_entries();
        entries.truncate(range.max_entries());
        Ok(RangeResult { revision, entries, more })
    }

    async fn txn(&self, txn: Txn) -> Result<Revision> {
        txn.validate()?;
        self.open().await?;
        let mut newest = self.shared.newest.write();
        let Some(change) = newest.apply(txn)? else { return Ok(newest.revision) };
        let forgotten = newest.forget(&self.shared.options);
        let revision = newest.revision;
        // In one step: who hears of a change can read it, and who reads it can watch from it.
        self.shared.feed.publish_with([(change, true)], || drop(newest));
        drop(forgotten);
        Ok(revision)
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch> {
        self.open().await?;
        if let Some(after) = request.after {
            self.shared.newest.read().moment(Some(after))?;
        }
        self.shared.feed.watch(request, Arc::new(self.clone()))
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        self.open().await?;
        let mut newest = self.shared.newest.write();
        if revision > newest.revision {
            return Err(Error::FutureRevision { requested: revision, current: newest.revision });
        }
        let mut forgotten = Forgotten::new();
        while newest.history.front().is_some_and(|first| first.revision() <= revision) {
            forgotten.extend(newest.forget_first());
        }
        newest.oldest = newest.oldest.max(revision);
        self.shared.feed.compact(newest.oldest);
        drop(newest);
        drop(forgotten);
        Ok(())
    }

    async fn stats(&self) -> Result<Stats> {
        self.open().await?;
        let newest = self.shared.newest.read();
        Ok(Stats {
            revision: newest.revision,
            oldest: newest.oldest,
            keys: newest.entries.len() as u64,
            bytes: Some(newest.bytes),
            watches: self.shared.feed.watches() as u64,
            ..Stats::default()
        })
    }

    async fn close(&self) -> Result<()> {
        // No write is half done then.
        let _newest = self.shared.newest.write();
        self.shared.feed.close();
        Ok(())
    }
}

#[async_trait]
impl Backfill for MemoryStore {
    async fn backfill(&self, request: &WatchRequest) -> Result<Backfilled> {
        const PAGE: usize = 1024;
        let snapshot = self.snapshot();
        let after = snapshot.moment(request.after)?;
        let begin = snapshot.history_index(after);
        let mut page = Backfilled { changes: Vec::new(), through: snapshot.revision };
        for (seen, change) in snapshot.history.skip(begin).iter().enumerate() {
            if seen == PAGE {
                break;
            }
            page.changes.extend(change.under(&request.prefix));
            page.through = change.revision();
        }
        Ok(page)
    }
}

impl Snapshot {
    /// The revision to read at, if it can be read.
    fn moment(&self, at: Option<Revision>) -> Result<Revision> {
        moment(at, self.oldest, self.revision)
    }

    fn get(&self, key: &[u8]) -> Option<KeyValue> {
        self.entries.get(key).map(Slot::entry)
    }

    /// The entry of `key` at `revision`: what the first change after it replaced, or what is there now.
    fn get_at(&self, key: &[u8], revision: Revision) -> Option<KeyValue> {
        if revision < self.revision {
            for change in self.changes_after(revision) {
                if let Some(event) = change.events().iter().find(|event| event.key == key) {
                    return event.replaced();
                }
            }
        }
        self.get(key)
    }

    /// The entries of `range` at a past `revision`, one more than its limit if there are more.
    fn entries_at(&self, range: &Range, revision: Revision) -> Vec<KeyValue> {
        let wanted = at_most(range);
        let first = range.first_key();
        // What the keys that changed since had at that revision: for each, what its first change replaced.
        let mut then = BTreeMap::<&Bytes, Option<KeyValue>>::new();
        let history: Vec<_> = self.changes_after(revision).cloned().collect();
        for event in history.iter().flat_map(|change| change.events()) {
            if event.key.starts_with(&range.prefix) && event.key >= first {
                then.entry(&event.key).or_insert_with(|| event.replaced());
            }
        }
        let mut then = then.into_iter().peekable();
        let mut entries = Vec::new();
        for slot in in_range(&self.entries, range) {
            let key = &slot.0.key;
            while let Some((_, entry)) = then.next_if(|(changed, _)| *changed < key) {
                entries.extend(entry);
            }
            match then.next_if(|(changed, _)| *changed == key) {
                Some((_, entry)) => entries.extend(entry),
                None => entries.push(slot.entry()),
            }
            if entries.len() >= wanted {
                return entries;
            }
        }
        entries.extend(then.filter_map(|(_, entry)| entry));
        entries
    }

    /// The index in the history of the first change after `revision`.
    fn history_index(&self, revision: Revision) -> usize {
        let (mut low, mut high) = (0, self.history.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.history[middle].revision() <= revision { low = middle + 1 } else { high = middle }
        }
        low
    }

    fn changes_after(&self, revision: Revision) -> impl Iterator<Item = &Arc<Change>> {
        self.history.iter().skip(self.history_index(revision))
    }

    /// Does what `txn` says, all of it or nothing; `None` if that changes nothing.
    fn apply(&mut self, txn: Txn) -> Result<Option<Arc<Change>>> {
        for op in txn.ops().iter().filter(|op| op.precondition != Precondition::Any) {
            let current = self.entries.get(&op.key[..]);
            if !op.precondition.holds(current.map(|slot| slot.0.revision)) {
                return Err(Error::conflict(op.key.clone(), op.precondition, current.map(Slot::entry)));
            }
        }
        let revision = self.revision.next();
        let mut events = SmallVec::<[Event; 1]>::new();
        for Op { key, action, .. } in txn.into_ops() {
            let (replaced, value) = match action {
                Action::Check => continue,
                Action::Put(value) => {
                    let entry = KeyValue { key: key.clone(), value: value.clone(), revision };
                    self.bytes += entry.size();
                    (self.entries.insert(Slot(Arc::new(entry))), Some(value))
                }
                Action::Delete => match self.entries.remove(&key[..]) {
                    None => continue,
                    replaced => (replaced, None),
                },
            };
            let previous = replaced.map(|Slot(entry)| {
                self.bytes -= entry.size();
                Previous { value: entry.value.clone(), revision: entry.revision }
            });
            events.push(Event { key, created: previous.is_none(), value, previous });
        }
        if events.is_empty() {
            return Ok(None);
        }
        let change = Arc::new(Change::new(revision, events));
        self.revision = revision;
        self.history_bytes += change.superseded_bytes();
        self.history.push_back(change.clone());
        Ok(Some(change))
    }

    /// Keeps the history to its bounds.
    fn forget(&mut self, options: &MemoryOptions) -> Forgotten {
        let mut forgotten = Forgotten::new();
        while self.history.len() > options.history_revisions || self.history_bytes > options.history_bytes {
            forgotten.extend(self.forget_first());
        }
        forgotten
    }

    fn forget_first(&mut self) -> Option<Arc<Change>> {
        let change = self.history.pop_front()?;
        self.history_bytes -= change.superseded_bytes();
        self.oldest = self.oldest.max(change.revision());
        Some(change)
    }
}

/// One entry more than the limit of a range tells that there are more.
fn at_most(range: &Range) -> usize {
    range.max_entries().saturating_add(1)
}

fn in_range<'a>(entries: &'a OrdSet<Slot>, range: &'a Range) -> impl Iterator<Item = &'a Slot> {
    let first = range.first_key();
    entries
        .range::<_, [u8]>((Bound::Included(&first[..]), Bound::Unbounded))
        .take_while(|slot| slot.0.key.starts_with(&range.prefix))
}

impl Slot {
    fn entry(&self) -> KeyValue {
        KeyValue::clone(&self.0)
    }
}

impl Borrow<[u8]> for Slot {
    fn borrow(&self) -> &[u8] {
        &self.0.key
    }
}

impl Ord for Slot {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

impl PartialOrd for Slot {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for Slot {}

impl KeyValue {
    fn size(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }
}

impl Change {
    /// What the history costs beyond the state: keys and values that the change replaced.
    fn superseded_bytes(&self) -> usize {
        self.events()
            .iter()
            .filter_map(|event| Some(event.key.len() + event.previous.as_ref()?.value.len()))
            .sum()
    }
}

impl Event {
    /// What was there before.
    fn replaced(&self) -> Option<KeyValue> {
        let Previous { value, revision } = self.previous.clone()?;
        Some(KeyValue { key: self.key.clone(), value, revision })
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let newest = self.shared.newest.read();
        f.debug_struct("MemoryStore")
            .field("revision", &newest.revision)
            .field("keys", &newest.entries.len())
            .finish_non_exhaustive()
    }
}
