//! Executes steps on a store and compares its results with the model's.

use std::{fmt::Debug, sync::Arc, time::Duration};

use bytes::Bytes;
use k1s_env::Env;
use k1s_store::{Change, Error, Range, Revision, Store, Watch, WatchItem, WatchRequest};

use super::{
    At, Step,
    state::{Model, Verdict},
    step,
};
use crate::{Profile, Violation};

/// Maximum number of open watches; more would only be slow.
const MAX_WATCHES: usize = 6;

/// Executes `steps` on an empty store and compares every result with the model's.
pub async fn replay(store: &Arc<dyn Store>, profile: Profile, steps: &[Step]) -> Result<(), Violation> {
    let stats =
        store.stats().await.map_err(|error| Violation::new("statistics can be read", error.to_string()))?;
    let mut replay = Replay {
        store: store.clone(),
        model: Model::new(profile.shared, &stats),
        watches: Vec::new(),
        unique: 0,
        patience: profile.patience,
    };
    for (number, step) in steps.iter().enumerate() {
        replay.step(step).await.map_err(|violation| {
            Violation::new(violation.promise, format!("step {number}, {step:?}: {}", violation.evidence))
        })?;
    }
    while !replay.watches.is_empty() {
        replay.mark(0).await?;
        replay.watches.remove(0);
    }
    Ok(())
}

struct Replay {
    store: Arc<dyn Store>,
    model: Model,
    watches: Vec<Open>,
    unique: usize,
    patience: Duration,
}

/// An open watch and its position.
struct Open {
    watch: Watch,
    request: WatchRequest,
    reached: Revision,
}

fn differ(promise: &'static str, wanted: &impl Debug, got: &impl Debug) -> Violation {
    Violation::new(promise, format!("wanted {wanted:?}\n  got {got:?}"))
}

impl Replay {
    async fn step(&mut self, step: &Step) -> Result<(), Violation> {
        match step {
            Step::Txn(_) => self.txn(step).await,
            Step::Get(key, at) => self.get(&step::key(*key), self.model.resolve(*at)).await,
            Step::Range { prefix, start, limit, at } => {
                let range = Range {
                    prefix: step::prefix(*prefix),
                    start: start.map(step::key),
                    limit: usize::from(*limit),
                    revision: self.model.resolve(*at),
                };
                self.range(range).await
            }
            Step::Compact(at) => self.compact(*at).await,
            Step::Stats => self.stats().await,
            Step::Watch { prefix, after, previous } => {
                let request = WatchRequest {
                    prefix: step::prefix(*prefix),
                    after: self.model.resolve(*after),
                    previous: *previous,
                };
                self.watch(request).await
            }
            Step::Read(which, items) => match self.pick(*which) {
                Some(which) => self.read(which, usize::from(*items)).await,
                None => Ok(()),
            },
            Step::Mark(which) => match self.pick(*which) {
                Some(which) => {
                    if !self.mark(which).await? {
                        self.watches.remove(which);
                    }
                    Ok(())
                }
                None => Ok(()),
            },
            Step::Drop(which) => {
                if let Some(which) = self.pick(*which) {
                    self.watches.remove(which);
                }
                Ok(())
            }
        }
    }

    fn pick(&self, which: u8) -> Option<usize> {
        usize::from(which).checked_rem(self.watches.len())
    }

    async fn txn(&mut self, step: &Step) -> Result<(), Violation> {
        let Some(txn) = self.model.txn(step, &mut self.unique) else { return Ok(()) };
        let verdict = self.model.judge(&txn);
        let answer = self.store.txn(txn.clone()).await;
        match (verdict, answer) {
            (Verdict::Invalid, Err(Error::Invalid { .. })) => Ok(()),
            (Verdict::TooLarge, Err(Error::TooLarge { .. })) => Ok(()),
            (Verdict::Conflicts(wanted), Err(got @ Error::Conflict(_))) if wanted.contains(&got) => Ok(()),
            (Verdict::NoChange, Ok(revision)) => {
                self.check_newest("a transaction that changes nothing", revision)
            }
            (Verdict::Write(events), Ok(revision)) => {
                let next = self.model.revision.next();
                if revision < next || revision > next && !self.model.shared {
                    return Err(differ("each write takes the next revision", &next, &revision));
                }
                let written = events[0].key.clone();
                self.model.commit(revision, events);
                // An acknowledged write is visible to the next read.
                self.get(&written, None).await
            }
            (verdict, answer) => {
                let wanted = match verdict {
                    Verdict::Invalid => "Invalid".to_owned(),
                    Verdict::TooLarge => "TooLarge".to_owned(),
                    Verdict::Conflicts(conflicts) => format!("one of {conflicts:?}"),
                    Verdict::NoChange => format!("revision {}, and no change", self.model.revision),
                    Verdict::Write(events) => {
                        format!("the next revision after {}: {events:?}", self.model.revision)
                    }
                };
                Err(Violation::new(
                    "a transaction goes through if its preconditions hold",
                    format!("wanted {wanted}\n  got {answer:?}"),
                ))
            }
        }
    }

    /// Checks the revision of a read of the newest state.
    fn check_newest(&mut self, what: &'static str, revision: Revision) -> Result<(), Violation> {
        self.model.learn(revision);
        if revision == self.model.revision {
            Ok(())
        } else {
            Err(Violation::new(
                "reads return the newest revision",
                format!("{what} returned {revision}, the newest is {}", self.model.revision),
            ))
        }
    }

    /// Checks an error against the model's.
    fn error(&mut self, wanted: &Error, got: &Error) -> Result<(), Violation> {
        let same = match (wanted, got) {
            (
                Error::FutureRevision { requested, current },
                Error::FutureRevision { requested: asked, current: newest },
            ) => {
                self.model.learn(*newest);
                asked == requested && (newest == current || self.model.shared && newest > current)
            }
            _ => wanted == got,
        };
        if same { Ok(()) } else { Err(differ("an error describes the problem", wanted, got)) }
    }

    async fn get(&mut self, key: &Bytes, at: Option<Revision>) -> Result<(), Violation> {
        let answer = self.store.get(key, at).await;
        if let (Ok(got), None) = (&answer, at) {
            self.check_newest("a read", got.revision)?;
        }
        match (self.model.read(at), answer) {
            (Ok((revision, state)), Ok(got)) => {
                let wanted = state.get(key);
                if got.revision != revision || got.entry.as_ref() != wanted {
                    return Err(differ("a read shows the state of its revision", &(revision, wanted), &got));
                }
                Ok(())
            }
            (Err(wanted), Err(got)) => self.error(&wanted, &got),
            (wanted, got) => Err(differ("a read shows the state of its revision", &wanted, &got)),
        }
    }

    async fn range(&mut self, range: Range) -> Result<(), Violation> {
        let answer = self.store.range(range.clone()).await;
        if let (Ok(got), None) = (&answer, range.revision) {
            self.check_newest("a range", got.revision)?;
        }
        match (self.model.range(&range), answer) {
            (Ok(wanted), Ok(got)) => {
                let got = (got.revision, got.entries, got.more);
                if wanted == got {
                    Ok(())
                } else {
                    Err(differ("a range shows the state of its revision", &wanted, &got))
                }
            }
            (Err(wanted), Err(got)) => self.error(&wanted, &got),
            (wanted, got) => Err(differ("a range shows the state of its revision", &wanted, &got)),
        }
    }

    async fn compact(&mut self, at: At) -> Result<(), Violation> {
        let revision = self.model.resolve(at).unwrap_or(self.model.revision);
        match self.store.compact(revision).await {
            Ok(()) if revision <= self.model.revision => {
                self.model.oldest = self.model.oldest.max(revision);
                Ok(())
            }
            Err(got) if revision > self.model.revision => {
                let wanted = Error::FutureRevision { requested: revision, current: self.model.revision };
                self.error(&wanted, &got)
            }
            got => Err(differ("past revisions can be compacted", &(revision, self.model.revision), &got)),
        }
    }

    async fn stats(&mut self) -> Result<(), Violation> {
        let failed = |error: Error| {
            Violation::new("an open store reports its revision and statistics", error.to_string())
        };
        let revision = self.store.revision().await.map_err(failed)?;
        self.check_newest("the store", revision)?;
        let stats = self.store.stats().await.map_err(failed)?;
        self.check_newest("the statistics", stats.revision)?;
        let now = self.model.now();
        let bytes: usize = now.values().map(|entry| entry.key.len() + entry.value.len()).sum();
        let wanted = (self.model.oldest, now.len() as u64, stats.bytes.map(|_| bytes as u64));
        let got = (stats.oldest, stats.keys, stats.bytes);
        if wanted == got {
            Ok(())
        } else {
            Err(differ("statistics (oldest, keys, bytes) are right", &wanted, &got))
        }
    }

    async fn watch(&mut self, request: WatchRequest) -> Result<(), Violation> {
        let wanted = match request.after {
            Some(after) => self.model.read(Some(after)).err(),
            None => None,
        };
        let answer = self.store.watch(request.clone()).await;
        match (wanted, answer) {
            (None, Ok(watch)) => {
                let reached = request.after.unwrap_or(self.model.revision);
                if self.watches.len() == MAX_WATCHES {
                    self.watches.remove(0);
                }
                self.watches.push(Open { watch, request, reached });
                Ok(())
            }
            (Some(wanted), Err(got)) => self.error(&wanted, &got),
            // A store may also report the error in the first item.
            (Some(wanted), Ok(mut watch)) => match next(&mut watch, self.patience).await? {
                Some(Err(got)) => self.error(&wanted, &got),
                other => Err(differ("a watch that cannot begin fails", &wanted, &other)),
            },
            (None, Err(got)) => {
                Err(differ("a watch from a revision that is not compacted opens", &request, &got))
            }
        }
    }

    /// Reads the items that are due, up to `items`. Drops the watch if it has ended legitimately.
    async fn read(&mut self, which: usize, items: usize) -> Result<(), Violation> {
        for _ in 0..items {
            let open = &mut self.watches[which];
            if self.model.due(&open.request.prefix, open.reached).is_none() {
                break;
            }
            let item = next(&mut open.watch, self.patience).await?;
            if !open.take(&mut self.model, item)? {
                self.watches.remove(which);
                break;
            }
        }
        Ok(())
    }

    /// Requests a mark and reads up to it. False if the watch ended legitimately instead.
    async fn mark(&mut self, which: usize) -> Result<bool, Violation> {
        let open = &mut self.watches[which];
        let newest = self.model.revision;
        open.watch.request_progress();
        loop {
            let item = next(&mut open.watch, self.patience).await?;
            let answered = matches!(item, Some(Ok(WatchItem::Progress(mark))) if mark >= newest);
            if !open.take(&mut self.model, item)? {
                return Ok(false);
            }
            if answered {
                return Ok(true);
            }
        }
    }
}

async fn next(
    watch: &mut Watch,
    patience: Duration,
) -> Result<Option<k1s_store::Result<WatchItem>>, Violation> {
    Env::system().timeout(patience, watch.next()).await.map_err(|_| {
        Violation::new("an item that is due arrives", format!("it yielded nothing for {patience:?}"))
    })
}

impl Open {
    /// Takes the next item, if the model allows it. False when the watch has ended.
    fn take(
        &mut self,
        model: &mut Model,
        item: Option<k1s_store::Result<WatchItem>>,
    ) -> Result<bool, Violation> {
        let due = model.due(&self.request.prefix, self.reached);
        match item {
            Some(Ok(WatchItem::Change(change))) => {
                let Some(due) = due else {
                    return Err(differ("a watch yields each change once", &"nothing", &change));
                };
                if !same(&due, &change, self.request.previous) {
                    return Err(differ(
                        "a watch yields the next change under its prefix, whole",
                        &due,
                        &change,
                    ));
                }
                self.reached = change.revision();
                Ok(true)
            }
            Some(Ok(WatchItem::Progress(mark))) => {
                model.learn(mark);
                if let Some(due) = due.filter(|due| due.revision() <= mark) {
                    return Err(differ("a mark is never ahead of events", &due, &mark));
                }
                if mark < self.reached || mark > model.revision {
                    let allowed = (self.reached, model.revision);
                    return Err(differ(
                        "a mark is not older than the items before it, nor in the future",
                        &allowed,
                        &mark,
                    ));
                }
                self.reached = mark;
                Ok(true)
            }
            Some(Err(Error::Compacted { oldest, .. })) if self.reached < oldest && oldest <= model.oldest => {
                Ok(false)
            }
            other => Err(Violation::new(
                "an open watch continues, unless its position is compacted",
                format!(
                    "it had reached {}, the oldest is {}; it yielded {other:?}",
                    self.reached, model.oldest
                ),
            )),
        }
    }
}

/// Whether two changes are equal, up to the order of keys and unrequested previous values.
fn same(wanted: &Change, got: &Change, previous: bool) -> bool {
    let sorted = |change: &Change| {
        let mut events = change.events().to_vec();
        events.sort_by(|a, b| a.key.cmp(&b.key));
        events
    };
    let (wanted_events, got_events) = (sorted(wanted), sorted(got));
    wanted.revision() == got.revision()
        && wanted_events.len() == got_events.len()
        && wanted_events.iter().zip(&got_events).all(|(wanted, got)| {
            (&wanted.key, &wanted.value, wanted.created) == (&got.key, &got.value, got.created)
                && (wanted.previous == got.previous || !previous && got.previous.is_none())
        })
}
