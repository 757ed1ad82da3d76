//! One seed: a store on a simulated disk that is written to, killed and reopened, many times.

use std::{cell::RefCell, rc::Rc, time::Duration};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::join_all};
use k1s_env::{Env, VirtualClock};
use k1s_store::{Error, Outcome, Range, Revision, Store, WatchItem, WatchRequest, feed::FeedOptions};
use k1s_store_disk::{
    DiskOptions, DiskStore, OpenError,
    testing::{Loss, Rates, SimDisk},
};

use crate::model::{Model, State, Steps, show, show_steps, txn};

const FOLDER: &str = "/srv/data";

/// The faults of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kind {
    /// The process is killed, or the power cut, at random times.
    pub(crate) cuts: bool,
    /// Disk calls fail.
    pub(crate) fails: bool,
    /// The disk fills up.
    pub(crate) fills: bool,
    /// Segments are cleaned by a thread, so the seed does not determine the order of all calls.
    pub(crate) threads: bool,
}

/// Statistics of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcomes {
    pub(crate) acknowledged: u64,
    pub(crate) failed: u64,
    pub(crate) unknown: u64,
    /// Number of kills and power cuts.
    pub(crate) cuts: u64,
    /// Those in the middle of a call.
    pub(crate) mid_call: u64,
    pub(crate) backups: u64,
    pub(crate) cleaned: u64,
    /// Number of disk calls that changed something.
    pub(crate) calls: u64,
    pub(crate) schedule: Vec<String>,
    /// The last of those calls.
    pub(crate) trace: Vec<String>,
}

/// The schedule so far, printed if a check fails.
struct Schedule {
    seed: u64,
    test: &'static str,
    disk: SimDisk,
    lines: Rc<RefCell<Vec<String>>>,
}

impl Drop for Schedule {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!(
                "\nseed {} fails; again with K1S_SIM_SEED={} cargo test -p k1s-store-disk --test sim {}\n\nschedule:\n  {}\n\ndisk:\n  {}",
                self.seed,
                self.seed,
                self.test,
                self.lines.borrow().join("\n  "),
                self.disk.trace().join("\n  ")
            );
        }
    }
}

struct Run {
    kind: Kind,
    /// For the schedule. The disk has its own.
    random: Env,
    env: Env,
    clock: VirtualClock,
    disk: SimDisk,
    options: DiskOptions,
    model: Model,
    /// Acknowledged backups that have not been verified yet, with their revisions.
    backups: Vec<(String, u64)>,
    /// Number of acknowledged backups, and of failures since.
    copies: (u64, u64),
    outcomes: Outcomes,
    lines: Rc<RefCell<Vec<String>>>,
}

pub(crate) fn run(test: &'static str, seed: u64, kind: Kind) -> Outcomes {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (random, _) = Env::simulated(seed);
        let (env, clock) = Env::simulated(seed);
        let disk = SimDisk::new(seed);
        disk.create_dir("/srv").unwrap();
        let lines = Rc::new(RefCell::new(Vec::new()));
        let schedule = Schedule { seed, test, disk: disk.clone(), lines: lines.clone() };
        let pick = |from: &[u64]| from[random.random_below(from.len() as u64) as usize];
        let options = DiskOptions {
            segment_bytes: pick(&[400, 1500, 4000, 20_000]),
            history_revisions: pick(&[0, 10, 100_000]),
            history_age: Duration::from_secs(60),
            reserve_bytes: pick(&[0, 100_000]),
            feed: FeedOptions { changes: 8, ..FeedOptions::default() },
            ..DiskOptions::default()
        };
        let mut run = Run {
            kind,
            random,
            env,
            clock,
            disk,
            options,
            model: Model::new(),
            backups: Vec::new(),
            copies: (0, 0),
            outcomes: Outcomes::default(),
            lines,
        };
        run.whole().await;
        run.outcomes.calls = run.disk.calls();
        run.outcomes.schedule = run.lines.borrow().clone();
        run.outcomes.trace = run.disk.trace();
        drop(schedule);
        run.outcomes
    })
}

impl Run {
    fn below(&self, bound: u64) -> u64 {
        self.random.random_below(bound)
    }

    fn log(&self, line: impl Into<String>) {
        self.lines.borrow_mut().push(line.into());
    }

    fn try_open(&self, folder: &str) -> Result<DiskStore, OpenError> {
        let (disk, env) = (&self.disk, self.env.clone());
        if self.kind.threads {
            disk.open(env, folder, self.options)
        } else {
            disk.open_stepped(env, folder, self.options)
        }
    }

    /// Opens the store, by any means except a manual repair.
    async fn open(&mut self) -> DiskStore {
        loop {
            match self.try_open(FOLDER) {
                Ok(store) => {
                    self.log("opened");
                    let _ = store.step(false).await;
                    return store;
                }
                Err(error @ (OpenError::Damaged { .. } | OpenError::Locked { .. })) => panic!("{error}"),
                Err(error) => self.log(format!("not opened: {error}")),
            }
            if self.disk.is_off() {
                self.outcomes.mid_call += 1;
                self.restart();
            } else if self.kind.fails || self.kind.fills {
                self.log("the disk has recovered");
                self.disk.set_rates(Rates::default());
                self.disk.set_capacity(None);
                // Without faults, the store must open.
                let store = self.try_open(FOLDER);
                if !self.disk.is_off() {
                    let store = store.unwrap();
                    let _ = store.step(false).await;
                    return store;
                }
            } else {
                panic!("the store does not open on a disk without faults");
            }
        }
    }

    fn restart(&mut self) {
        let loss = if self.below(4) == 0 { Loss::Process } else { Loss::Power };
        self.outcomes.cuts += 1;
        self.log(format!("restart: {loss:?}"));
        self.disk.restart(loss);
    }

    fn steps(&self) -> Steps {
        let mut steps = Steps::new();
        for _ in 0..1 + self.below(4).saturating_sub(1) {
            let key = Bytes::from(format!("/k/{:02}", self.below(14)));
            if steps.iter().any(|(other, _)| *other == key) {
                continue;
            }
            let value = (self.below(4) > 0).then(|| {
                let len = match self.below(10) {
                    0 => self.below(9000),
                    1 => 0,
                    _ => self.below(200),
                };
                let mut value = vec![0; len as usize];
                self.random.fill_random(&mut value);
                Bytes::from(value)
            });
            steps.push((key, value));
        }
        steps
    }

    async fn whole(&mut self) {
        let rounds = if self.kind.cuts { 3 + self.below(6) } else { 2 };
        for round in 0..rounds {
            self.log(format!("round {round}"));
            if self.kind.fails && self.below(2) == 0 {
                let rates = Rates { writes: self.below(60), syncs: self.below(60), names: self.below(60) };
                self.log(format!("{rates:?}"));
                self.disk.set_rates(rates);
            }
            if self.kind.fills && self.below(3) > 0 {
                let room = self.disk.used() + self.below(60_000);
                self.log(format!("room for {room} bytes"));
                self.disk.set_capacity(Some(room));
            }
            if self.kind.cuts && self.below(5) > 0 {
                let calls = if self.below(3) == 0 { self.below(20) } else { self.below(250) };
                self.log(format!("power cut after {calls} calls"));
                self.disk.cut_after(calls);
            }
            let mut store = self.open().await;
            if self.found(&store).await.is_some() {
                for _ in 0..20 + self.below(40) {
                    store = self.act(store).await;
                    // Background work after the answer must be finished first, so that the seed determines
                    // the order.
                    let _ = store.step(false).await;
                    if self.disk.is_off() {
                        break;
                    }
                }
            }
            if self.kind.cuts {
                self.outcomes.mid_call += u64::from(self.disk.is_off());
                self.disk.cut();
                drop(store);
                self.restart();
            } else {
                self.log("dropped");
                drop(store);
            }
            self.disk.set_rates(Rates::default());
            self.disk.set_capacity(None);
            if self.below(3) == 0 {
                self.verify().await;
            }
        }
        self.verify().await;
    }

    /// Removes all faults: everything acknowledged must be there, and the store must accept writes.
    async fn verify(&mut self) {
        self.log("verified without faults");
        let store = self.open().await;
        self.found(&store).await.unwrap();
        let report = store.check().await.unwrap();
        assert!(report.is_sound(), "{report:#?}");
        for _ in 0..3 {
            let steps = self.steps();
            let revision = self.put(&store, &steps).await.expect("a disk without faults accepts writes");
            self.model.acknowledged(&steps, revision.get());
            let _ = store.step(false).await;
        }
        store.health().await.unwrap();
        self.compare(&store, None).await.unwrap();
        self.follow(&store).await;
        store.close().await.unwrap();
        drop(store);
        let report = self.disk.check_folder(FOLDER).unwrap();
        assert!(report.is_sound(), "{report:#?}");
        for (folder, revision) in std::mem::take(&mut self.backups) {
            let store = self.try_open(&folder).unwrap_or_else(|error| panic!("a backup: {error}"));
            assert_eq!(store.revision().await.unwrap().get(), revision, "of a backup");
            self.compare(&store, Some(revision)).await.unwrap();
            assert!(store.check().await.unwrap().is_sound());
        }
    }

    /// Compares a reopened store with everything acknowledged, and possibly writes with an unknown outcome.
    /// `None` if the power was cut.
    async fn found(&mut self, store: &DiskStore) -> Option<()> {
        let (revision, entries) = self.read(store, None).await?;
        if let Err(problem) = self.model.found(revision, &entries) {
            panic!("{problem}");
        }
        self.follow(store).await;
        Some(())
    }

    /// The newest entries, or those at a revision. `None` if the power was cut.
    async fn read(&self, store: &DiskStore, at: Option<u64>) -> Option<(u64, State)> {
        let range = Range::default();
        let range = at.map_or(range.clone(), |at| range.at(Revision::new(at)));
        match store.range(range).await {
            Ok(found) => {
                let entries = found.entries.into_iter();
                let entries = entries.map(|entry| (entry.key, (entry.value, entry.revision.get())));
                Some((found.revision.get(), entries.collect()))
            }
            Err(_) if self.disk.is_off() => None,
            Err(error) => panic!("reads must succeed even if writes fail: {error}"),
        }
    }

    /// Compares the entries with the model. `None` if the power was cut.
    async fn compare(&self, store: &DiskStore, at: Option<u64>) -> Option<()> {
        let (revision, entries) = self.read(store, at).await?;
        let expected = at.unwrap_or(self.model.newest);
        assert_eq!(revision, expected);
        let state = self.model.state_at(expected);
        assert!(entries == *state, "at {expected}:\n  found {}\n  not {}", show(&entries), show(state));
        Some(())
    }

    /// A watch from the oldest revision must deliver every change since.
    async fn follow(&self, store: &DiskStore) {
        let Ok(stats) = store.stats().await else { return };
        let request = WatchRequest::default().after(stats.oldest);
        let mut watch = match store.watch(request).await {
            Ok(watch) => watch,
            Err(_) if self.disk.is_off() => return,
            Err(Error::Compacted { .. }) => return,
            Err(error) => panic!("{error}"),
        };
        let mut next = stats.oldest.get() + 1;
        while next <= self.model.newest {
            match watch.next().await {
                Some(Ok(WatchItem::Change(change))) => {
                    assert_eq!(change.revision().get(), next, "a watch skips nothing");
                    assert!(self.model.explains(&change), "revision {next} brings {:?}", change.events());
                    next += 1;
                }
                Some(Ok(_)) => {}
                Some(Err(_)) if self.disk.is_off() => return,
                Some(Err(Error::Compacted { .. })) => return,
                other => panic!("{other:?}"),
            }
        }
    }

    async fn put(&mut self, store: &DiskStore, steps: &Steps) -> Result<Revision, Error> {
        let answer = store.txn(txn(steps)).await;
        self.note(steps, &answer);
        answer
    }

    fn note(&mut self, steps: &Steps, answer: &Result<Revision, Error>) {
        let said = match answer {
            Ok(revision) => {
                self.outcomes.acknowledged += 1;
                format!("revision {revision}")
            }
            Err(Error::Full { .. } | Error::Unavailable { outcome: Outcome::NotApplied, .. }) => {
                self.outcomes.failed += 1;
                assert!(
                    self.kind.fails || self.kind.fills || self.disk.is_off(),
                    "a disk without faults accepts writes"
                );
                "refused".to_owned()
            }
            Err(Error::Unavailable { outcome: Outcome::Unknown, .. }) => {
                self.outcomes.unknown += 1;
                self.model.unknown.push(steps.clone());
                "unknown".to_owned()
            }
            Err(error) => panic!("{error}"),
        };
        self.log(format!("{}: {said}", show_steps(steps)));
    }

    async fn act(&mut self, mut store: DiskStore) -> DiskStore {
        match self.below(40) {
            0..=14 => {
                let steps = self.steps();
                if let Ok(revision) = self.put(&store, &steps).await {
                    self.model.acknowledged(&steps, revision.get());
                }
            }
            15..=17 => self.put_together(&store).await,
            18..=20 => {
                let newest = self.model.newest;
                let revision = if self.below(2) == 0 { newest } else { 1 + self.below(newest) };
                let done = store.compact(Revision::new(revision)).await;
                self.log(format!("compact to {revision}: {done:?}"));
                assert!(done.is_ok() || self.kind.fails || self.kind.fills || self.disk.is_off(), "{done:?}");
            }
            21..=25 => {
                let before = self.segments();
                let _ = store.step(true).await;
                self.log("clean");
                self.outcomes.cleaned += u64::from(self.segments() < before);
            }
            26..=28 => drop(self.compare(&store, None).await),
            29..=30 => {
                let oldest = store.stats().await.map_or(u64::MAX, |stats| stats.oldest.get());
                if oldest < self.model.newest {
                    let at = oldest + self.below(self.model.newest - oldest);
                    self.log(format!("read at {at}"));
                    let _ = self.compare(&store, Some(at)).await;
                }
            }
            31..=33 => {
                let time = Duration::from_millis(self.below(20_000));
                self.log(format!("{time:?} later"));
                self.clock.advance(time);
            }
            34 => self.backup(&store).await,
            35 => {
                let closed = store.close().await;
                self.log(format!("close: {closed:?}"));
                drop(store);
                store = self.open().await;
                let _ = self.found(&store).await;
            }
            36 => {
                self.log("dropped");
                drop(store);
                store = self.open().await;
                let _ = self.found(&store).await;
            }
            37 if self.kind.fails || self.kind.fills => {
                self.log("the disk has recovered");
                self.disk.set_rates(Rates::default());
                self.disk.set_capacity(None);
            }
            _ => {
                let health = store.health().await;
                self.log(format!("health: {health:?}"));
            }
        }
        store
    }

    /// Transactions that form one batch.
    async fn put_together(&mut self, store: &DiskStore) {
        let Ok(held) = store.hold().await else { return };
        let all: Vec<Steps> = (0..2 + self.below(4)).map(|_| self.steps()).collect();
        let mut writes = join_all(all.iter().map(|steps| store.txn(txn(steps))));
        // A transaction is queued once it has been polled.
        assert!((&mut writes).now_or_never().is_none());
        drop(held);
        for (steps, answer) in all.iter().zip(writes.await) {
            self.note(steps, &answer);
            if let Ok(revision) = answer {
                self.model.acknowledged(steps, revision.get());
            }
        }
    }

    async fn backup(&mut self, store: &DiskStore) {
        // A failed backup is made again.
        let folder = format!("/srv/copy-{}", self.copies.0);
        if self.copies.0 == 3 || store.step(false).await.is_err() {
            return;
        }
        let copied = store.backup(&folder).await;
        self.log(format!("backup to {folder}: {copied:?}"));
        match copied {
            Ok(revision) => {
                self.outcomes.backups += 1;
                self.copies = (self.copies.0 + 1, 0);
                self.backups.push((folder, revision.get()));
            }
            Err(OpenError::Damaged { path, reason }) => panic!("{}: {reason}", path.display()),
            // Everything but its last sync was done.
            Err(OpenError::Unsuitable { .. }) if self.copies.1 > 0 => self.copies = (self.copies.0 + 1, 0),
            Err(error) => {
                self.copies.1 += 1;
                assert!(self.kind.fails || self.kind.fills || self.disk.is_off(), "{error}");
            }
        }
    }

    fn segments(&self) -> usize {
        self.disk.paths().iter().filter(|path| path.starts_with(FOLDER)).count()
    }
}
