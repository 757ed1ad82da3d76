//! The model: every past state of the store, and every change.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use k1s_store::{
    Action, Change, Error, Event, KeyValue, Precondition, Previous, Range, Revision, Stats, Txn,
};

use super::{At, If, Step};

pub(super) type State = BTreeMap<Bytes, KeyValue>;

pub(super) struct Model {
    /// Whether other clients may move the revision.
    pub(super) shared: bool,
    pub(super) revision: Revision,
    pub(super) oldest: Revision,
    /// The state at each revision of a write. Between two of them nothing changed.
    states: BTreeMap<Revision, State>,
    pub(super) changes: Vec<Arc<Change>>,
}

/// The expected result of a transaction.
pub(super) enum Verdict {
    Invalid,
    TooLarge,
    /// Any one of these.
    Conflicts(Vec<Error>),
    NoChange,
    Write(Vec<Event>),
}

impl Model {
    /// The model of an empty store.
    pub(super) fn new(shared: bool, stats: &Stats) -> Self {
        Self {
            shared,
            revision: stats.revision,
            oldest: stats.oldest,
            states: BTreeMap::from([(Revision::default(), State::new())]),
            changes: Vec::new(),
        }
    }

    pub(super) fn now(&self) -> &State {
        self.state_at(self.revision)
    }

    fn state_at(&self, revision: Revision) -> &State {
        let (_, state) = self.states.range(..=revision).next_back().expect("there is a first state");
        state
    }

    /// Accepts a revision moved by other clients of a shared server.
    pub(super) fn learn(&mut self, revision: Revision) {
        if self.shared {
            self.revision = self.revision.max(revision);
        }
    }

    /// The revision that `at` refers to; `None` for the newest.
    pub(super) fn resolve(&self, at: At) -> Option<Revision> {
        match at {
            At::Now => None,
            At::Back(count) => Some(Revision::new(self.revision.get().saturating_sub(count.into()))),
            At::Ahead(count) => {
                let far = if self.shared { 1_000_000_000 } else { 1 };
                Some(Revision::new(self.revision.get() + u64::from(count) + far))
            }
        }
    }

    pub(super) fn precondition(&self, key: &Bytes, only: If) -> Precondition {
        match only {
            If::Any => Precondition::Any,
            If::Absent => Precondition::Absent,
            If::Exists => Precondition::Exists,
            If::Current => {
                Precondition::Revision(self.now().get(key).map_or(self.revision, |entry| entry.revision))
            }
            If::Stale(count) => {
                Precondition::Revision(Revision::new(self.revision.get().saturating_sub(count.into())))
            }
        }
    }

    /// The revision of a read, and the state at it.
    pub(super) fn read(&self, at: Option<Revision>) -> Result<(Revision, &State), Error> {
        let revision = at.unwrap_or(self.revision);
        if revision > self.revision {
            return Err(Error::FutureRevision { requested: revision, current: self.revision });
        }
        if revision < self.oldest {
            return Err(Error::Compacted { requested: revision, oldest: self.oldest });
        }
        Ok((revision, self.state_at(revision)))
    }

    pub(super) fn range(&self, range: &Range) -> Result<(Revision, Vec<KeyValue>, bool), Error> {
        let (revision, state) = self.read(range.revision)?;
        let mut entries: Vec<_> = state
            .values()
            .filter(|entry| entry.key.starts_with(&range.prefix))
            .filter(|entry| range.start.as_ref().is_none_or(|start| entry.key >= *start))
            .cloned()
            .collect();
        let limit = if range.limit == 0 { usize::MAX } else { range.limit };
        let more = entries.len() > limit;
        entries.truncate(limit);
        Ok((revision, entries, more))
    }

    pub(super) fn judge(&self, txn: &Txn) -> Verdict {
        match txn.validate() {
            Err(Error::TooLarge { .. }) => return Verdict::TooLarge,
            Err(_) => return Verdict::Invalid,
            Ok(()) => {}
        }
        let now = self.now();
        let failed = txn
            .ops()
            .iter()
            .filter(|op| !op.precondition.holds(now.get(&op.key).map(|entry| entry.revision)));
        let conflicts: Vec<_> = failed
            .map(|op| Error::conflict(op.key.clone(), op.precondition, now.get(&op.key).cloned()))
            .collect();
        if !conflicts.is_empty() {
            return Verdict::Conflicts(conflicts);
        }
        let events: Vec<_> = txn
            .ops()
            .iter()
            .filter_map(|op| {
                let before = now.get(&op.key);
                let value = match &op.action {
                    Action::Put(value) => Some(value.clone()),
                    Action::Delete if before.is_some() => None,
                    Action::Delete | Action::Check => return None,
                };
                Some(Event {
                    key: op.key.clone(),
                    value,
                    created: before.is_none(),
                    previous: before
                        .map(|entry| Previous { value: entry.value.clone(), revision: entry.revision }),
                })
            })
            .collect();
        if events.is_empty() { Verdict::NoChange } else { Verdict::Write(events) }
    }

    pub(super) fn commit(&mut self, revision: Revision, events: Vec<Event>) {
        let mut state = self.now().clone();
        for event in &events {
            match &event.value {
                Some(value) => {
                    let entry = KeyValue { key: event.key.clone(), value: value.clone(), revision };
                    state.insert(event.key.clone(), entry)
                }
                None => state.remove(&event.key),
            };
        }
        self.states.insert(revision, state);
        self.changes.push(Arc::new(Change::new(revision, events)));
        self.revision = revision;
    }

    /// The next change under `prefix` after `revision`.
    pub(super) fn due(&self, prefix: &[u8], revision: Revision) -> Option<Arc<Change>> {
        let later = self.changes.partition_point(|change| change.revision() <= revision);
        self.changes[later..].iter().find_map(|change| change.under(prefix))
    }

    pub(super) fn txn(&self, step: &Step, unique: &mut usize) -> Option<Txn> {
        let Step::Txn(ops) = step else { return None };
        Some(ops.iter().fold(Txn::new(), |txn, op| {
            let key = super::step::key(op.key);
            let only = self.precondition(&key, op.only);
            *unique += 1;
            match (op.act, op.act.value(*unique)) {
                (_, Some(value)) => txn.put(key, value, only),
                (super::Act::Delete, _) => txn.delete(key, only),
                _ => txn.check(key, only),
            }
        }))
    }
}
