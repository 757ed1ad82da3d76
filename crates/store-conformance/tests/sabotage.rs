//! Tests of the suite itself: it catches a store that breaks a promise, and accepts one that is merely unreliable.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests are tests")]

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use k1s_env::Env;
use k1s_store::{
    Action, Change, Error, GetResult, MemoryStore, Op, Precondition, Range, RangeResult, Result, Revision,
    Stats, Store, Txn, Watch, WatchItem, WatchRequest,
};
use k1s_store_conformance::{
    Backend, Fresh, Profile, cases, linearizability, model, run, run_async, watch_promises, watched::Load,
};

/// A defect of a store. Each one occurs now and then, not always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Writes fail with an unknown outcome; some of them happen.
    UnknownOutcome,
    /// Writes that happen are reported as failed.
    DeniedWrite,
    /// Writes are acknowledged and do not happen.
    LostWrite,
    /// Reads show the revision before the newest.
    StaleRead,
    /// Reads report a later revision than the one they show.
    MisdatedRead,
    /// Updates ignore the revision.
    LostUpdate,
    /// Creates ignore an existing key.
    DoubleCreate,
    /// Conflicts return no entry.
    EmptyConflict,
    /// Transactions are not atomic.
    TornTxn,
    /// Watches yield a change twice.
    RepeatedChange,
    /// Watches skip a change.
    SkippedChange,
    /// Watches yield a transaction in parts.
    SplitChange,
    /// Watches yield a wrong previous entry.
    WrongPrevious,
    /// Marks come before the changes they cover.
    EarlyMark,
    /// Marks are too old.
    LateMark,
    /// Watches begin one change too late.
    LateStart,
    /// Compaction is ignored.
    IgnoredCompaction,
}

struct FaultyStore {
    inner: MemoryStore,
    fault: Fault,
    rolls: AtomicUsize,
    closed: AtomicBool,
}

impl FaultyStore {
    fn new(inner: MemoryStore, fault: Fault) -> Self {
        Self { inner, fault, rolls: AtomicUsize::new(0), closed: AtomicBool::new(false) }
    }

    /// Whether `fault` occurs this time.
    fn strikes(&self, fault: Fault) -> bool {
        self.fault == fault && self.rolls.fetch_add(1, Ordering::Relaxed) % 5 == 4
    }

    fn open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// The transaction with modified preconditions.
    fn bend(txn: Txn, bend: impl Fn(Precondition) -> Precondition) -> Txn {
        txn.into_ops()
            .into_iter()
            .fold(Txn::new(), |txn, op| txn.op(Op { precondition: bend(op.precondition), ..op }))
    }
}

#[async_trait]
impl Store for FaultyStore {
    async fn revision(&self) -> Result<Revision> {
        self.open()?;
        self.inner.revision().await
    }

    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<GetResult> {
        self.open()?;
        let mut now = self.inner.get(key, at).await?;
        if at.is_none() && self.strikes(Fault::StaleRead) && now.revision > Revision::FIRST {
            return self.inner.get(key, Some(Revision::new(now.revision.get() - 1))).await;
        }
        if at.is_none() && self.strikes(Fault::MisdatedRead) && now.revision > Revision::FIRST {
            now.entry = self.inner.get(key, Some(Revision::new(now.revision.get() - 1))).await?.entry;
        }
        Ok(now)
    }

    async fn range(&self, range: Range) -> Result<RangeResult> {
        self.open()?;
        self.inner.range(range).await
    }

    async fn txn(&self, mut txn: Txn) -> Result<Revision> {
        self.open()?;
        if self.strikes(Fault::LostWrite) {
            txn.validate()?;
            return Ok(self.inner.revision().await?.next());
        }
        if self.strikes(Fault::LostUpdate) {
            txn = Self::bend(txn, |only| match only {
                Precondition::Revision(_) => Precondition::Exists,
                other => other,
            });
        }
        if self.strikes(Fault::DoubleCreate) {
            txn = Self::bend(txn, |only| if only == Precondition::Absent { Precondition::Any } else { only });
        }
        if self.strikes(Fault::TornTxn) && txn.ops().len() > 1 {
            txn.validate()?;
            let mut last = None;
            for op in txn.into_ops() {
                last = Some(self.inner.txn(Txn::new().op(op)).await?);
                Env::system().yield_now().await;
            }
            return last.ok_or(Error::Closed);
        }
        if self.fault == Fault::UnknownOutcome {
            match self.rolls.fetch_add(1, Ordering::Relaxed) % 6 {
                2 => return Err(Error::outcome_unknown("the request was lost")),
                5 => {
                    self.inner.txn(txn).await?;
                    return Err(Error::outcome_unknown("the response was lost"));
                }
                _ => {}
            }
        }
        let denied =
            self.strikes(Fault::DeniedWrite) && txn.ops().iter().any(|op| op.action != Action::Check);
        let mut result = self.inner.txn(txn).await;
        if denied {
            return result.and(Err(Error::unavailable("not now")));
        }
        if let Err(Error::Conflict(conflict)) = &mut result
            && self.strikes(Fault::EmptyConflict)
        {
            conflict.current = None;
        }
        result
    }

    async fn watch(&self, mut request: WatchRequest) -> Result<Watch> {
        self.open()?;
        if self.strikes(Fault::LateStart)
            && let Some(after) = request.after
            && after < self.inner.revision().await?
        {
            request.after = Some(after.next());
        }
        let watch = self.inner.watch(request).await?;
        let progress = watch.progress_handle();
        let fault = self.fault;
        let bent = watch.enumerate().flat_map(move |(n, item)| stream::iter(distort(fault, n, item)));
        Ok(Watch::new(bent, progress))
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        self.open()?;
        if self.fault == Fault::IgnoredCompaction && revision <= self.inner.revision().await? {
            return Ok(());
        }
        self.inner.compact(revision).await
    }

    async fn stats(&self) -> Result<Stats> {
        self.open()?;
        self.inner.stats().await
    }

    async fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        Ok(())
    }
}

/// The items yielded instead of the `n`th item of a watch.
fn distort(fault: Fault, n: usize, item: Result<WatchItem>) -> Vec<Result<WatchItem>> {
    let strikes = n % 7 == 3;
    match (&item, fault) {
        (Ok(WatchItem::Change(change)), fault) if strikes => {
            let (revision, events) = (change.revision(), change.events().to_vec());
            let whole = |events| Ok(WatchItem::Change(Arc::new(Change::new(revision, events))));
            match fault {
                Fault::RepeatedChange => vec![item.clone(), item],
                Fault::SkippedChange => vec![],
                Fault::SplitChange if events.len() > 1 => {
                    vec![whole(events[..1].to_vec()), whole(events[1..].to_vec())]
                }
                Fault::WrongPrevious => {
                    let mut events = events;
                    for previous in events.iter_mut().filter_map(|event| event.previous.as_mut()) {
                        previous.value = "something else".into();
                    }
                    vec![whole(events)]
                }
                Fault::EarlyMark => vec![Ok(WatchItem::Progress(revision)), item],
                _ => vec![item],
            }
        }
        (Ok(WatchItem::Progress(mark)), Fault::LateMark) => {
            vec![Ok(WatchItem::Progress(Revision::new(mark.get().saturating_sub(5))))]
        }
        _ => vec![item],
    }
}

struct Sabotaged(Fault);

#[async_trait]
impl Backend for Sabotaged {
    async fn fresh(&self) -> Fresh {
        let (inner, fault) = (MemoryStore::default(), self.0);
        Fresh::reopenable(move || {
            let store: Arc<dyn Store> = Arc::new(FaultyStore::new(inner.clone(), fault));
            async move { store }
        })
        .await
    }

    fn profile(&self) -> Profile {
        Profile { patience: std::time::Duration::from_secs(2), ..Profile::default() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    Model,
    Watches,
    Linearizability,
}

/// Runs the search up to forty times on a store with this fault; yields the message of each run that fails.
fn search(search: Search, fault: Fault) -> impl Iterator<Item = String> {
    (0..40).filter_map(move |seed| {
        let run = || {
            run_async(async {
                match search {
                    Search::Model => model(&Sabotaged(fault), seed, 150).await,
                    Search::Watches => watch_promises(&Sabotaged(fault), seed, Load::of(100)).await,
                    Search::Linearizability => linearizability(&Sabotaged(fault), seed, 4, 60).await,
                }
            });
        };
        let panic = catch_unwind(AssertUnwindSafe(run)).err()?;
        Some(panic.downcast_ref::<String>().expect("a panic has a message").clone())
    })
}

#[track_caller]
fn caught(by: Search, fault: Fault, saying: &str) {
    // A fault can break several promises; the order of events decides which one is noticed first.
    let mut others = Vec::new();
    for message in search(by, fault) {
        if message.contains(saying) {
            return;
        }
        others.push(message);
    }
    panic!("{fault:?} was not caught by {by:?} as \"{saying}\", but as {others:?}");
}

#[test]
fn a_correct_store_passes_every_search() {
    for by in [Search::Model, Search::Watches, Search::Linearizability] {
        assert_eq!(search(by, Fault::None).next(), None);
    }
    assert_eq!(search(Search::Linearizability, Fault::UnknownOutcome).next(), None);
}

#[test]
fn linearizability_catches_its_faults() {
    let by = Search::Linearizability;
    caught(by, Fault::StaleRead, "later operations see what was acknowledged or read");
    caught(by, Fault::MisdatedRead, "a read shows the state of its revision");
    caught(by, Fault::LostWrite, "broken promise");
    caught(by, Fault::DeniedWrite, "each change was written by some transaction");
    // Its conflicts name a precondition that was not requested, which may be noticed first.
    caught(by, Fault::LostUpdate, "broken promise");
    caught(by, Fault::DoubleCreate, "an acknowledged transaction happened, whole, at its revision");
    caught(by, Fault::EmptyConflict, "a conflict");
    caught(by, Fault::TornTxn, "broken promise");
}

#[test]
fn the_model_catches_its_faults() {
    let by = Search::Model;
    caught(by, Fault::StaleRead, "reads return the newest revision");
    caught(by, Fault::MisdatedRead, "a read shows the state of its revision");
    caught(by, Fault::LostWrite, "broken promise");
    caught(by, Fault::LostUpdate, "a transaction goes through if its preconditions hold");
    caught(by, Fault::DoubleCreate, "a transaction goes through if its preconditions hold");
    caught(by, Fault::EmptyConflict, "a transaction goes through if its preconditions hold");
    caught(by, Fault::TornTxn, "broken promise");
    caught(by, Fault::RepeatedChange, "broken promise: a watch yields");
    caught(by, Fault::SkippedChange, "broken promise");
    caught(by, Fault::SplitChange, "a watch yields the next change under its prefix, whole");
    caught(by, Fault::WrongPrevious, "a watch yields the next change under its prefix, whole");
    caught(by, Fault::EarlyMark, "a mark is never ahead of events");
    caught(by, Fault::LateMark, "broken promise");
    caught(by, Fault::LateStart, "broken promise");
    caught(by, Fault::IgnoredCompaction, "broken promise");
}

#[test]
fn the_watch_checks_catch_their_faults() {
    let by = Search::Watches;
    // The recorder suffers the same fault, so the check of the history may find it first.
    caught(by, Fault::RepeatedChange, "once");
    caught(by, Fault::SkippedChange, "broken promise");
    caught(by, Fault::SplitChange, "broken promise");
    caught(by, Fault::WrongPrevious, "events follow from the state before");
    caught(by, Fault::EarlyMark, "never ahead of events");
    caught(by, Fault::LateMark, "broken promise");
    caught(by, Fault::LateStart, "broken promise");
    caught(by, Fault::TornTxn, "broken promise");
}

#[test]
fn a_failing_sequence_is_shrunk() {
    let message = search(Search::Model, Fault::EmptyConflict).next().expect("it fails");
    let steps =
        message.lines().filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit())).count();
    assert!(message.contains("seed ") && (1..40).contains(&steps), "{message}");
}

#[test]
fn the_reopening_cases_pass_on_a_reopenable_store() {
    let names: Vec<_> =
        cases().into_iter().map(|case| case.name).filter(|name| name.contains("reopening")).collect();
    assert_eq!(names.len(), 3);
    for name in names {
        run(name, Sabotaged(Fault::None));
    }
}
