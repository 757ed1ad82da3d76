//! Concurrent writers, watchers and a compactor; the recorded items are checked afterwards.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use k1s_env::Env;
use k1s_store::{Error, Precondition, Range, Revision, Store, Txn, Watch, WatchItem, WatchRequest};
use tokio::sync::watch;

use super::{End, History, Seen, Session, Start, Write, check_session};
use crate::{Backend, Violation, support::Dice};

const TENANTS: usize = 4;
const KEYS: usize = 4;

/// The amount of concurrent load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Number of writing tasks.
    pub writers: usize,
    /// Number of writes per writer.
    pub writes: usize,
    /// Number of watching tasks, which drop and resume their watches.
    pub watchers: usize,
    /// Whether history is compacted concurrently.
    pub compaction: bool,
}

impl Load {
    /// A load of this many writes by each of three writers, with eight watchers and compaction.
    pub fn of(writes: usize) -> Self {
        Self { writers: 3, writes, watchers: 8, compaction: true }
    }
}

/// Runs writers against watchers that drop and resume at random, then checks every promise of every watch.
///
/// The actions of each task are determined by `seed`; the interleaving is not.
///
/// # Panics
/// If a promise is broken: with the seed, the watch and its items.
pub async fn watch_promises(backend: &dyn Backend, seed: u64, load: Load) {
    let fresh = backend.fresh().await;
    let profile = backend.profile();
    let base = fresh.store().revision().await.expect("the store is open");
    let stage = Stage {
        env: Env::system(),
        store: fresh.store().clone(),
        base,
        patience: profile.patience,
        newest: watch::channel(base).0,
        done: watch::channel(None).0,
        recorded: Arc::new(AtomicU64::new(base.get())),
    };

    let recorder = stage.env.spawn("recorder", stage.clone().record());
    let watchers: Vec<_> = (0..load.watchers)
        .map(|index| stage.env.spawn("watcher", stage.clone().watch(Dice::of(seed, 100 + index))))
        .collect();
    let compactor = load.compaction.then(|| {
        stage.env.spawn("compactor", stage.clone().compact(Dice::of(seed, 99), load.writers * load.writes))
    });
    let writers: Vec<_> = (0..load.writers)
        .map(|index| {
            stage.env.spawn("writer", stage.clone().write(Dice::of(seed, index), index, load.writes))
        })
        .collect();

    let mut writes = Vec::new();
    for writer in writers {
        writes.extend(writer.await.expect("a writer does not fail"));
    }
    let newest = fresh.store().revision().await.expect("the store is open");
    stage.done.send_replace(Some(newest));
    let compacted = match compactor {
        Some(task) => task.await.expect("the compactor does not fail"),
        None => Revision::default(),
    };
    let changes = match recorder.await.expect("the recorder does not fail") {
        Ok(session) => session.changes().cloned().collect(),
        Err(violation) => panic!("seed {seed}, the recorder: {violation}"),
    };
    let mut watched = Vec::new();
    for (index, watcher) in watchers.into_iter().enumerate() {
        match watcher.await.expect("a watcher does not fail") {
            Ok(sessions) => watched.push(sessions),
            Err(violation) => panic!("seed {seed}, watcher {index}: {violation}"),
        }
    }
    // Read only after all watches have ended: other clients may move the revision of a shared server any time.
    let history =
        History { changes, newest: stage.store.revision().await.expect("the store is open"), compacted };
    let fail = |violation: Violation| -> ! { panic!("seed {seed}: {violation}") };
    let states = history.states().unwrap_or_else(|violation| fail(violation));
    history.confirm(&writes).unwrap_or_else(|violation| fail(violation));
    let last: Vec<_> = states.last_key_value().expect("there is a first state").1.values().cloned().collect();
    let now = stage.store.range(Range::prefix("")).await.expect("the store is open").entries;
    assert!(
        now == last,
        "seed {seed}: broken promise: the changes add up to the current state\n  {last:?}\n  but it is {now:?}"
    );

    for (index, sessions) in watched.iter().enumerate() {
        for (number, session) in sessions.iter().enumerate() {
            if let Err(violation) = check_session(session, &history) {
                panic!("seed {seed}, watcher {index}, watch {number} of {}: {violation}", sessions.len());
            }
        }
    }
}

/// State shared by all tasks of a run.
#[derive(Clone)]
struct Stage {
    env: Env,
    store: Arc<dyn Store>,
    base: Revision,
    patience: Duration,
    /// The newest acknowledged revision.
    newest: watch::Sender<Revision>,
    /// The last revision, once all writes are done.
    done: watch::Sender<Option<Revision>>,
    /// The position of the recorder's watch: nothing after it is compacted.
    recorded: Arc<AtomicU64>,
}

impl Stage {
    async fn write(self, dice: Dice, index: usize, writes: usize) -> Vec<Write> {
        let mut acknowledged = Vec::new();
        for n in 0..writes {
            let txn = random_txn(&dice, &format!("w{index}-{n}"));
            match self.store.txn(txn.clone()).await {
                Ok(revision) => {
                    acknowledged.push(Write { revision, txn });
                    self.newest.send_if_modified(|newest| {
                        let newer = revision > *newest;
                        *newest = revision.max(*newest);
                        newer
                    });
                }
                Err(Error::Conflict(_)) => {}
                Err(error) => panic!("a write succeeds or conflicts, got: {error}"),
            }
            if dice.chance(30) {
                self.env.yield_now().await;
            }
        }
        acknowledged
    }

    async fn compact(self, dice: Dice, times: usize) -> Revision {
        let mut newest = self.newest.subscribe();
        let mut done = self.done.subscribe();
        let mut compacted = Revision::default();
        for _ in 0..times {
            tokio::select! {
                _ = newest.changed() => {}
                _ = done.wait_for(Option::is_some) => break,
            }
            if dice.chance(20) {
                let recorded = self.recorded.load(Ordering::Acquire);
                let revision = Revision::new(recorded.saturating_sub(dice.below(30) as u64)).max(self.base);
                self.store.compact(revision).await.expect("a past revision can be compacted");
                compacted = compacted.max(revision);
            }
        }
        compacted
    }

    /// Watches all keys for the whole run.
    async fn record(self) -> Result<Session, Violation> {
        let request = WatchRequest::prefix("").after(self.base).previous(true);
        let mut reading = self.open(&request).await?;
        let mut done = self.done.subscribe();
        loop {
            tokio::select! {
                item = reading.watch.next() => reading.take(item)?,
                _ = done.wait_for(Option::is_some) => break,
            }
            let reached = reading.session.reached().unwrap_or(self.base);
            self.recorded.store(reached.get(), Ordering::Release);
        }
        reading.catch_up(&self).await?;
        match reading.session.end {
            End::Dropped => Ok(reading.session),
            End::Compacted(oldest) => Err(Violation::new(
                "a watch that has reached the compacted revision continues",
                format!("it failed with a compaction to {oldest}, {:?}", reading.session.items.last()),
            )),
        }
    }

    /// Opens, drops and resumes watches at random, lets them lag, and catches up at the end.
    async fn watch(self, dice: Dice) -> Result<Vec<Session>, Violation> {
        let mut sessions: Vec<Session> = Vec::new();
        let mut done = self.done.subscribe();
        loop {
            let request = self.choose(&dice, sessions.last()).await;
            let mut reading = match self.open(&request).await {
                Ok(reading) => reading,
                Err(violation) => return Err(violation),
            };
            let last = done.borrow_and_update().is_some();
            if !last && dice.chance(20) {
                // Lags: waits for this many writes before it begins to read.
                let mut newest = self.newest.subscribe();
                for _ in 0..dice.below(40) {
                    tokio::select! {
                        _ = newest.changed() => {}
                        _ = done.wait_for(Option::is_some) => break,
                    }
                }
            }
            for _ in 0..dice.below(60) {
                if !reading.open() {
                    break;
                }
                if dice.chance(15) {
                    reading.watch.request_progress();
                }
                tokio::select! {
                    item = reading.watch.next() => reading.take(item)?,
                    _ = done.wait_for(Option::is_some) => break,
                }
            }
            if last {
                reading.catch_up(&self).await?;
            }
            let over = last && reading.open();
            sessions.push(reading.session);
            if over {
                return Ok(sessions);
            }
        }
    }

    /// The next watch to open: mostly the continuation of the last one.
    async fn choose(&self, dice: &Dice, last: Option<&Session>) -> WatchRequest {
        let resumed = last.filter(|session| session.end == End::Dropped && dice.chance(75));
        let request = match resumed {
            Some(session) => {
                let after = match (session.reached(), session.start) {
                    (Some(reached), _) => reached,
                    (None, Start::After(after)) => after,
                    (None, Start::Now { latest, .. }) => latest,
                };
                WatchRequest::prefix(session.prefix.clone()).after(after)
            }
            None => {
                let prefix = random_prefix(dice);
                let list = self.store.range(Range::prefix(prefix.clone())).await.expect("the store is open");
                let request = WatchRequest::prefix(prefix);
                if dice.chance(70) { request.after(list.revision) } else { request }
            }
        };
        request.previous(dice.chance(50))
    }

    async fn open(&self, request: &WatchRequest) -> Result<Reading, Violation> {
        let mut reading = Reading {
            watch: Watch::new(futures_util::stream::pending(), Arc::new(NeverOpened)),
            session: Session {
                prefix: request.prefix.clone(),
                start: Start::After(request.after.unwrap_or_default()),
                previous: request.previous,
                items: Vec::new(),
                end: End::Dropped,
            },
        };
        // The start "now" is bounded by the newest acknowledged revision before and the newest readable one after.
        let earliest = *self.newest.borrow();
        match self.store.watch(request.clone()).await {
            Ok(watch) => reading.watch = watch,
            Err(error) => reading.take(Some(Err(error)))?,
        }
        if request.after.is_none() {
            let latest = self.store.revision().await.expect("the store is open");
            reading.session.start = Start::Now { earliest, latest };
        }
        Ok(reading)
    }
}

/// A watch being read and recorded.
struct Reading {
    watch: Watch,
    session: Session,
}

/// Stands in for a watch that never opened.
struct NeverOpened;

impl k1s_store::RequestProgress for NeverOpened {
    fn request_progress(&self) {}
}

impl Reading {
    /// Whether there may be more items.
    fn open(&self) -> bool {
        self.session.end == End::Dropped
    }

    fn take(&mut self, item: Option<k1s_store::Result<WatchItem>>) -> Result<(), Violation> {
        match item {
            Some(Ok(WatchItem::Change(change))) => self.session.items.push(Seen::Change(change)),
            Some(Ok(WatchItem::Progress(mark))) => self.session.items.push(Seen::Mark(mark)),
            Some(Err(Error::Compacted { oldest, .. })) => self.session.end = End::Compacted(oldest),
            other => {
                let evidence = format!("{} yielded {other:?}", self.session.describe());
                return Err(Violation::new(
                    "a watch of an open store continues, or fails with Compacted",
                    evidence,
                ));
            }
        }
        Ok(())
    }

    /// Reads to the last revision, unless the watch ends before.
    async fn catch_up(&mut self, stage: &Stage) -> Result<(), Violation> {
        let last = stage.done.borrow().expect("everything is written");
        self.watch.request_progress();
        while self.open() && !matches!(self.session.items.last(), Some(Seen::Mark(mark)) if *mark >= last) {
            match stage.env.timeout(stage.patience, self.watch.next()).await {
                Ok(item) => self.take(item)?,
                Err(_) => {
                    let evidence = format!(
                        "{} yielded nothing for {:?} after {:?}; a mark at {last} or later is due",
                        self.session.describe(),
                        stage.patience,
                        self.session.items.last()
                    );
                    return Err(Violation::new("a mark comes on request", evidence));
                }
            }
        }
        Ok(())
    }
}

fn random_prefix(dice: &Dice) -> Bytes {
    match dice.below(10) {
        0 => Bytes::new(),
        1 => "/none/".into(),
        2..5 => format!("/t{}/{}", dice.below(TENANTS), dice.below(KEYS)).into(),
        _ => format!("/t{}/", dice.below(TENANTS)).into(),
    }
}

/// A transaction on one to three keys, often of one tenant.
fn random_txn(dice: &Dice, value: &str) -> Txn {
    let mut txn = Txn::new();
    let tenant = dice.below(TENANTS);
    for _ in 0..1 + dice.below(3) {
        let tenant = if dice.chance(70) { tenant } else { dice.below(TENANTS) };
        let key = Bytes::from(format!("/t{tenant}/{}", dice.below(KEYS)));
        if txn.ops().iter().any(|op| op.key == key) {
            continue;
        }
        txn = match dice.below(10) {
            0..3 => txn.delete(key, Precondition::Any),
            3 => txn.create(key, value.to_owned()),
            _ => txn.put(key, value.to_owned(), Precondition::Any),
        };
    }
    txn
}
