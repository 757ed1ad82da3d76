//! The store that keeps everything in memory.

mod cell;
mod entries;
mod history;
mod snapshots;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use k1s_env::Env;
use parking_lot::RwLock;
use smallvec::SmallVec;

use self::{
    cell::Cell,
    entries::{Entries, Hash, Hasher, Ordered},
    history::History,
    snapshots::{Pinned, Pins},
};
use crate::{
    Action, Change, Error, Event, GetResult, KeyValue, Op, Precondition, Range, RangeResult, Result,
    Revision, Stats, Store, Txn, Watch, WatchRequest,
    feed::{Backfill, Backfilled, Feed, FeedOptions},
    read_revision,
};

/// Bounds of a [`MemoryStore`]'s history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Maximum revisions of history, for reads and watches of the past.
    pub history_revisions: usize,
    /// Maximum bytes of keys and values that were replaced or deleted.
    pub history_bytes: usize,
    /// Size of the ring of recent changes that serves open watches.
    pub feed: FeedOptions,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self { history_revisions: 100_000, history_bytes: 64 << 20, feed: FeedOptions::default() }
    }
}

/// A [`Store`] in memory: nothing survives the process.
///
/// Reading or updating a key touches the same few places in memory, with ten thousand keys or with millions. A list works on
/// an O(1) snapshot, and blocks no writer. Cheap to clone; clones are the same store.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    options: MemoryOptions,
    /// The hasher of the entries: keys are hashed before anything is locked.
    hasher: Hasher,
    /// Locked for no longer than it takes to find or change an entry, or to make a snapshot.
    newest: RwLock<Newest>,
    /// Revisions that are being read. Locked after `newest`; a revision is pinned under a read lock of that.
    pins: Pins,
    feed: Feed,
}

/// The current state, with the changes that led to it.
struct Newest {
    revision: Revision,
    entries: Entries,
    history: History,
}

/// A snapshot. While it exists, writers keep the values that it sees.
struct Snapshot<'a> {
    cells: Ordered,
    revision: Revision,
    _pinned: Pinned<'a>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(env: Env, options: MemoryOptions) -> Self {
        let hasher = Hasher::default();
        let newest = Newest {
            revision: Revision::FIRST,
            entries: Entries::new(hasher.clone()),
            history: History::new(Revision::FIRST),
        };
        Self {
            shared: Arc::new(Shared {
                options,
                hasher,
                newest: RwLock::new(newest),
                pins: Pins::default(),
                feed: Feed::new(env, options.feed, Revision::FIRST, Revision::FIRST),
            }),
        }
    }

    /// Fails if the store is closed. Nothing here ever waits, so this consumes coop budget: a task that only uses the store
    /// still yields.
    async fn open(&self) -> Result<()> {
        tokio::task::coop::consume_budget().await;
        self.shared.check_open()
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
        let hash = self.shared.hasher.hash(key);
        let newest = self.shared.newest.read();
        let revision = newest.read_revision(at)?;
        let entry = newest.entries.get(key, hash).map(|cell| cell.entry());
        if revision == newest.revision {
            return Ok(GetResult { revision, entry });
        }
        let history = newest.history.clone();
        drop(newest);
        // The value that the first change since replaced, or the current one.
        Ok(GetResult { revision, entry: history.replaced_since(key, revision).unwrap_or(entry) })
    }

    async fn range(&self, range: Range) -> Result<RangeResult> {
        self.open().await?;
        let newest = self.shared.newest.read();
        let revision = newest.read_revision(range.revision)?;
        let snapshot = self.shared.snapshot(&newest);
        let mut entries = if revision == newest.revision {
            // Without the history: a reader that holds it would have to free what writers drop from it meanwhile.
            drop(newest);
            snapshot.entries(&range)
        } else {
            let history = newest.history.clone();
            drop(newest);
            snapshot.entries_at(&range, revision, &history)
        };
        drop(snapshot);
        let more = entries.len() > range.max_entries();
        entries.truncate(range.max_entries());
        Ok(RangeResult { revision, entries, more })
    }

    async fn txn(&self, txn: Txn) -> Result<Revision> {
        txn.validate()?;
        self.open().await?;
        self.shared.write(txn)
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch> {
        self.open().await?;
        if let Some(after) = request.after {
            self.shared.newest.read().read_revision(Some(after))?;
        }
        self.shared.feed.watch(request, Arc::new(self.clone()))
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        self.open().await?;
        let mut newest = self.shared.newest.write();
        if revision > newest.revision {
            return Err(Error::FutureRevision { requested: revision, current: newest.revision });
        }
        let forgotten = newest.history.forget_through(revision);
        self.shared.feed.compact(newest.history.oldest());
        drop(newest);
        drop(forgotten);
        Ok(())
    }

    async fn stats(&self) -> Result<Stats> {
        self.open().await?;
        let newest = self.shared.newest.read();
        Ok(Stats {
            revision: newest.revision,
            oldest: newest.history.oldest(),
            keys: newest.entries.len() as u64,
            bytes: Some(newest.entries.bytes()),
            watches: self.shared.feed.watches() as u64,
            ..Stats::default()
        })
    }

    async fn close(&self) -> Result<()> {
        // With the lock, no write is half done.
        let _newest = self.shared.newest.write();
        self.shared.feed.close();
        Ok(())
    }
}

#[async_trait]
impl Backfill for MemoryStore {
    async fn backfill(&self, request: &WatchRequest) -> Result<Backfilled> {
        // A watch that is not read holds a page for as long as it is open.
        const PAGE: usize = 1024;
        const PAGE_BYTES: usize = 4 << 20;
        let newest = self.shared.newest.read();
        let after = newest.read_revision(request.after)?;
        let mut page = Backfilled { changes: Vec::new(), through: newest.revision };
        let history = newest.history.clone();
        drop(newest);
        let mut bytes = 0;
        for (seen, change) in history.after(after).enumerate() {
            if seen == PAGE || bytes >= PAGE_BYTES {
                break;
            }
            if let Some(change) = change.under(&request.prefix) {
                bytes += change.size();
                page.changes.push(change);
            }
            page.through = change.revision();
        }
        Ok(page)
    }
}

impl Shared {
    fn check_open(&self) -> Result<()> {
        if self.feed.is_closed() { Err(Error::Closed) } else { Ok(()) }
    }

    /// A snapshot of the newest revision.
    fn snapshot(&self, newest: &Newest) -> Snapshot<'_> {
        let revision = newest.revision;
        Snapshot { cells: newest.entries.ordered(), revision, _pinned: self.pins.pin(revision) }
    }

    /// Applies `txn`, and publishes it.
    fn write(&self, txn: Txn) -> Result<Revision> {
        let hashes = txn.ops().iter().map(|op| self.hasher.hash(&op.key)).collect::<SmallVec<[_; 1]>>();
        let mut newest = self.newest.write();
        // The store may have been closed while this waited for the lock.
        self.check_open()?;
        let Some(change) = newest.apply(txn, &hashes, &self.pins)? else { return Ok(newest.revision) };
        let forgotten = newest.history.forget(&self.options);
        let revision = newest.revision;
        // In one step: a change that is yielded can be read, and a revision that is read can be watched from.
        self.feed.publish_with([(change, true)], || drop(newest));
        drop(forgotten);
        Ok(revision)
    }
}

impl Newest {
    /// The revision to read at, if it can be read.
    fn read_revision(&self, at: Option<Revision>) -> Result<Revision> {
        read_revision(at, self.history.oldest(), self.revision)
    }

    /// Applies `txn`, all of it or nothing; `None` if it changes nothing.
    fn apply(&mut self, txn: Txn, hashes: &[Hash], pins: &Pins) -> Result<Option<Arc<Change>>> {
        for (op, hash) in txn.ops().iter().zip(hashes) {
            if op.precondition == Precondition::Any {
                continue;
            }
            let current = self.entries.get(&op.key, *hash);
            if !op.precondition.holds(current.map(|cell| cell.revision())) {
                let current = current.map(|cell| cell.entry());
                return Err(Error::conflict(op.key.clone(), op.precondition, current));
            }
        }
        let revision = self.revision.next();
        let mut events = SmallVec::<[Event; 1]>::new();
        for (Op { key, action, .. }, &hash) in txn.into_ops().into_iter().zip(hashes) {
            let (key, previous, value) = match action {
                Action::Check => continue,
                Action::Put(value) => {
                    let (key, previous) = self.entries.put(&key, hash, value.clone(), revision, pins);
                    (key, previous, Some(value))
                }
                Action::Delete => match self.entries.delete(&key, hash, revision, pins) {
                    None => continue,
                    Some((key, previous)) => (key, Some(previous), None),
                },
            };
            events.push(Event { key, created: previous.is_none(), value, previous });
        }
        if events.is_empty() {
            return Ok(None);
        }
        let change = Arc::new(Change::new(revision, events));
        self.revision = revision;
        self.history.push(change.clone());
        Ok(Some(change))
    }
}

impl Snapshot<'_> {
    /// The entries of `range`, one more than its limit if there are more.
    fn entries(&self, range: &Range) -> Vec<KeyValue> {
        let mut cells = self.cells.within(range).take(at_most(range));
        let mut entries = Vec::new();
        loop {
            // Finding cells is loads, of which the processor has many in flight. Reading one begins with a lock, which waits for
            // all loads before it.
            let found: SmallVec<[_; 32]> = cells.by_ref().take(32).collect();
            if found.is_empty() {
                return entries;
            }
            entries.extend(found.into_iter().filter_map(|cell| self.read(cell)));
        }
    }

    fn read(&self, cell: &Cell) -> Option<KeyValue> {
        let entry = cell.entry_at(self.revision);
        debug_assert!(entry.is_some(), "a cell keeps what a pinned snapshot sees");
        entry
    }

    /// The entries of `range` at an earlier `revision`, one more than its limit if there are more. `history` has
    /// the changes since.
    fn entries_at(&self, range: &Range, revision: Revision, history: &History) -> Vec<KeyValue> {
        let wanted = at_most(range);
        let mut then = history.all_replaced_since(range, revision).into_iter().peekable();
        let mut entries = Vec::new();
        for cell in self.cells.within(range) {
            while let Some((_, entry)) = then.next_if(|(changed, _)| changed < cell.key()) {
                entries.extend(entry);
            }
            match then.next_if(|(changed, _)| changed == cell.key()) {
                Some((_, entry)) => entries.extend(entry),
                None => entries.extend(self.read(cell)),
            }
            if entries.len() >= wanted {
                return entries;
            }
        }
        entries.extend(then.filter_map(|(_, entry)| entry));
        entries
    }
}

/// One entry more than the limit of a range says that there are more.
fn at_most(range: &Range) -> usize {
    range.max_entries().saturating_add(1)
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
