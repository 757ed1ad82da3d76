//! The true history of a store.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use k1s_store::{Action, Change, Event, KeyValue, Revision, Txn};

use crate::Violation;

/// Every change of a store since it was empty.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The changes, in order.
    pub changes: Vec<Arc<Change>>,
    /// The newest revision when the recording ended.
    pub newest: Revision,
    /// The largest revision the store was compacted to.
    pub compacted: Revision,
}

/// An acknowledged write.
#[derive(Clone, Debug)]
pub struct Write {
    /// The revision returned to the writer.
    pub revision: Revision,
    /// The requested transaction.
    pub txn: Txn,
}

/// The entries at one revision.
pub(crate) type State = BTreeMap<Bytes, KeyValue>;

impl History {
    /// The changes that a watch of `prefix` should yield after `after` and up to `until`.
    pub(super) fn under(&self, prefix: &[u8], after: Revision, until: Revision) -> Vec<Arc<Change>> {
        let first = self.changes.partition_point(|change| change.revision() <= after);
        let later = self.changes[first..].iter().take_while(|change| change.revision() <= until);
        later.filter_map(|change| change.under(prefix)).collect()
    }

    /// The change made at `revision`.
    pub(crate) fn at(&self, revision: Revision) -> Option<&Arc<Change>> {
        let found = self.changes.binary_search_by_key(&revision, |change| change.revision()).ok()?;
        self.changes.get(found)
    }

    /// Checks the history for consistency: revisions increase, each key occurs once in a change, and every
    /// event is consistent with the state before it. Returns the state after each change.
    pub(crate) fn states(&self) -> Result<BTreeMap<Revision, State>, Violation> {
        let mut state = State::new();
        let mut states = BTreeMap::from([(Revision::default(), state.clone())]);
        let mut last = Revision::default();
        for change in &self.changes {
            if change.revision() <= last {
                let evidence = format!("{change:?} came after revision {last}");
                return Err(Violation::new("changes come once each, in the order of revisions", evidence));
            }
            last = change.revision();
            for event in change.events() {
                check_event(&state, event).map_err(|why| {
                    Violation::new(
                        "events follow from the state before",
                        format!("{why}: {event:?} at {last}"),
                    )
                })?;
            }
            for event in change.events() {
                let key = event.key.clone();
                let replaced = match &event.value {
                    Some(value) => {
                        state.insert(key.clone(), KeyValue { key, value: value.clone(), revision: last })
                    }
                    None => state.remove(&key),
                };
                if replaced.is_some_and(|entry| entry.revision == last) {
                    return Err(Violation::new("a change has each key once", format!("{change:?}")));
                }
            }
            states.insert(last, state.clone());
        }
        Ok(states)
    }

    /// Checks the history against the results of the writers: each acknowledged write is in it as a whole,
    /// and every change in it comes from one of the writes.
    pub fn confirm(&self, writes: &[Write]) -> Result<(), Violation> {
        let mut acknowledged: BTreeMap<Revision, Vec<&Txn>> = BTreeMap::new();
        for write in writes {
            acknowledged.entry(write.revision).or_default().push(&write.txn);
        }
        for write in writes {
            // A transaction that only deletes may have changed nothing; it then got the newest revision.
            let puts = write.txn.ops().iter().any(|op| matches!(op.action, Action::Put(_)));
            if puts && !self.at(write.revision).is_some_and(|change| made(&write.txn, change)) {
                return Err(Violation::new(
                    "an acknowledged transaction happened, whole",
                    format!("{write:?}\n  the history has {:?}", self.at(write.revision)),
                ));
            }
        }
        for change in &self.changes {
            let txns = acknowledged.get(&change.revision()).map_or(&[][..], |txns| &txns[..]);
            let makers = txns.iter().filter(|txn| made(txn, change)).count();
            let with_puts = change.events().iter().any(|event| event.value.is_some());
            if makers == 0 || makers > 1 && with_puts {
                return Err(Violation::new(
                    "each change was written by one transaction",
                    format!("{makers} of these made {change:?}: {txns:?}"),
                ));
            }
        }
        Ok(())
    }
}

fn check_event(state: &State, event: &Event) -> Result<(), &'static str> {
    let before = state.get(&event.key);
    let previous = event.previous.as_ref().map(|previous| (&previous.value, previous.revision));
    if previous != before.map(|entry| (&entry.value, entry.revision)) {
        return Err("the previous entry is wrong");
    }
    if event.value.is_none() && before.is_none() {
        return Err("an absent key is deleted");
    }
    if event.created != before.is_none() {
        return Err("`created` is wrong");
    }
    Ok(())
}

/// Whether `change` is the effect of `txn`: its puts, its deletes of existing keys, and nothing else.
pub(crate) fn made(txn: &Txn, change: &Change) -> bool {
    let event = |key: &Bytes| change.events().iter().find(|event| event.key == key);
    let wanted = txn.ops().iter().filter(|op| op.action != Action::Check);
    wanted.clone().all(|op| match (&op.action, event(&op.key)) {
        (Action::Put(value), Some(event)) => event.value.as_ref() == Some(value),
        (Action::Delete, Some(event)) => event.value.is_none(),
        (Action::Delete, None) => true,
        _ => false,
    }) && change.events().iter().all(|event| wanted.clone().any(|op| op.key == event.key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k1s_store::{Precondition, Previous};

    fn put(key: &'static str, value: &'static str, previous: Option<(&'static str, u64)>) -> Event {
        Event {
            key: key.into(),
            value: Some(value.into()),
            created: previous.is_none(),
            previous: previous
                .map(|(value, revision)| Previous { value: value.into(), revision: Revision::new(revision) }),
        }
    }

    fn history(changes: Vec<(u64, Vec<Event>)>) -> History {
        let changes =
            changes.into_iter().map(|(at, events)| Arc::new(Change::new(Revision::new(at), events)));
        History { changes: changes.collect(), newest: Revision::new(99), compacted: Revision::default() }
    }

    fn broken(history: &History) -> &'static str {
        history.states().expect_err("the history is broken").promise
    }

    #[test]
    fn a_consistent_history_is_accepted() {
        let fine = history(vec![(2, vec![put("a", "1", None)]), (3, vec![put("a", "2", Some(("1", 2)))])]);
        let states = fine.states().unwrap();
        assert_eq!(states[&Revision::new(3)]["a".as_bytes()].value, "2");
    }

    #[test]
    fn an_inconsistent_history_is_rejected() {
        let twice = history(vec![(2, vec![put("a", "1", None)]), (2, vec![put("b", "1", None)])]);
        assert_eq!(broken(&twice), "changes come once each, in the order of revisions");
        let forgot = history(vec![(2, vec![put("a", "1", None)]), (3, vec![put("a", "2", None)])]);
        assert_eq!(broken(&forgot), "events follow from the state before");
        let doubled = history(vec![(2, vec![put("a", "1", None), put("a", "2", None)])]);
        assert_eq!(broken(&doubled), "a change has each key once");
        let mut nothing = put("a", "1", None);
        nothing.value = None;
        assert_eq!(broken(&history(vec![(2, vec![nothing])])), "events follow from the state before");
    }

    #[test]
    fn the_history_must_match_the_acknowledged_writes() {
        let changes = history(vec![(2, vec![put("a", "1", None), put("b", "1", None)])]);
        let write = |revision, txn| Write { revision: Revision::new(revision), txn };
        let both = Txn::new().create("a", "1").create("b", "1");
        assert_eq!(changes.confirm(&[write(2, both.clone())]), Ok(()));
        let useless = Txn::new().delete("c", Precondition::Any);
        assert_eq!(changes.confirm(&[write(2, both.clone()), write(2, useless)]), Ok(()));

        let lost = changes.confirm(&[write(2, both.clone()), write(3, Txn::new().create("c", "1"))]);
        assert_eq!(lost.unwrap_err().promise, "an acknowledged transaction happened, whole");
        let half = changes.confirm(&[write(2, both.clone().create("c", "1"))]);
        assert_eq!(half.unwrap_err().promise, "an acknowledged transaction happened, whole");
        let invented = changes.confirm(&[]);
        assert_eq!(invented.unwrap_err().promise, "each change was written by one transaction");
        let shared = changes.confirm(&[write(2, both.clone()), write(2, both)]);
        assert_eq!(shared.unwrap_err().promise, "each change was written by one transaction");
    }
}
