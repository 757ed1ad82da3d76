//! The checker that uses revisions as the order of writes.

use std::collections::BTreeMap;

use k1s_store::{Action, Change, KeyValue, Revision, Txn};

use super::{Answer, Call, Request};
use crate::{
    Violation,
    watched::{History, State, made},
};

/// Checks that the order of revisions explains every result and respects time.
///
/// `history` has every change, in order; the store was empty at `base`. Every operation has a position in
/// that order: a write its revision, a read the revision in its result, a refused write some revision whose
/// state explains the conflict. An operation called after another returned must not have an earlier position.
pub fn check_revisions(calls: &[Call], history: &History, base: Revision) -> Result<(), Violation> {
    let states = history.states()?;
    let mut check =
        Check { history, states, known: base, lower: vec![base; calls.len()], writers: BTreeMap::new() };

    // All calls and returns, in order of time.
    let mut timeline: Vec<(u64, usize, bool)> = calls
        .iter()
        .enumerate()
        .flat_map(|(n, call)| [(call.called, n, false), (call.returned, n, true)])
        .collect();
    timeline.sort_unstable();
    for (_, n, returned) in timeline {
        if returned {
            if let Some(place) = check.place(n, &calls[n])? {
                check.known = check.known.max(place);
            }
        } else {
            check.lower[n] = check.known;
        }
    }
    check.settle_writers(calls)
}

struct Check<'a> {
    history: &'a History,
    states: BTreeMap<Revision, State>,
    /// The latest position of any operation that has returned.
    known: Revision,
    /// For each call, the value of `known` at that time: a lower bound of its position.
    lower: Vec<Revision>,
    /// The calls that report to have written a revision.
    writers: BTreeMap<Revision, Vec<usize>>,
}

fn broken(promise: &'static str, call: &Call, why: &str) -> Violation {
    Violation::new(promise, format!("{call:?}\n  {why}"))
}

impl Check<'_> {
    fn state(&self, at: Revision) -> &State {
        self.states.range(..=at).next_back().expect("there is a first state").1
    }

    /// The position of an operation that returned, if it is known yet.
    fn place(&mut self, n: usize, call: &Call) -> Result<Option<Revision>, Violation> {
        let lower = self.lower[n];
        let fresh = |place: Revision| {
            if place >= lower {
                return Ok(Some(place));
            }
            let why = format!("its position is {place}, but {lower} had been seen before it was called");
            Err(broken("later operations see what was acknowledged or read", call, &why))
        };
        match (&call.request, &call.answer) {
            (Request::Get(key), Answer::Got(got)) => {
                let entries: Vec<_> = self.state(got.revision).get(key).into_iter().collect();
                explained(call, got.revision, &entries, &got.entry.iter().collect::<Vec<_>>())?;
                fresh(got.revision)
            }
            (Request::Range(prefix), Answer::Ranged(ranged)) => {
                let state = self.state(ranged.revision).values();
                let entries: Vec<_> = state.filter(|entry| entry.key.starts_with(prefix)).collect();
                explained(call, ranged.revision, &entries, &ranged.entries.iter().collect::<Vec<_>>())?;
                fresh(ranged.revision)
            }
            (Request::Txn(_), Answer::Written(revision)) => {
                self.writers.entry(*revision).or_default().push(n);
                fresh(*revision)
            }
            (Request::Txn(txn), Answer::Refused(conflict)) => {
                let step = txn.ops().iter().find(|op| op.key == conflict.key);
                let found = conflict.current.as_ref();
                let current = found.map(|entry| entry.revision);
                let justified = step.is_some_and(|step| {
                    step.precondition == conflict.expected && !step.precondition.holds(current)
                });
                if !justified {
                    return Err(broken("a conflict names a precondition that did not hold", call, ""));
                }
                // The earliest state that explains it constrains other operations the least.
                let at_once = (self.state(lower).get(&conflict.key) == found).then_some(lower);
                let later = || {
                    let mut states = self.states.range(lower.next()..);
                    states.find(|(_, state)| state.get(&conflict.key) == found).map(|(at, _)| *at)
                };
                match at_once.or_else(later) {
                    Some(place) => Ok(Some(place)),
                    None => {
                        let why = format!("from {lower} on the key never had that state");
                        Err(broken("a conflict returns the current entry", call, &why))
                    }
                }
            }
            (Request::Txn(_), Answer::Unknown | Answer::Failed) => Ok(None),
            (_, Answer::Unknown | Answer::Failed) => Ok(None),
            _ => Err(broken("a result matches its request", call, "")),
        }
    }

    /// Finds the one writer of each change, and checks that all other calls that reported its revision changed nothing.
    fn settle_writers(&self, calls: &[Call]) -> Result<(), Violation> {
        let mut orphans = Vec::new();
        for change in &self.history.changes {
            let at = change.revision();
            let reported = self.writers.get(&at).map_or(&[][..], |reported| &reported[..]);
            // A write is later than everything seen before its call. Of several candidates for the change
            // (deletes of one key), the writer is one that must have changed something; otherwise the one
            // called first, which is constrained the least by what was seen before.
            let writer = reported
                .iter()
                .filter(|n| self.lower[**n] < at && self.could_make(&calls[**n], change))
                .min_by_key(|n| (self.changed_nothing(&calls[**n], at).is_ok(), calls[**n].called));
            for n in reported.iter().filter(|n| Some(*n) != writer) {
                self.changed_nothing(&calls[*n], at)?;
            }
            if writer.is_none() {
                orphans.push(change);
            }
        }
        for (at, reported) in self.writers.iter().filter(|(at, _)| self.history.at(**at).is_none()) {
            for n in reported {
                self.changed_nothing(&calls[*n], *at)?;
            }
        }
        // Changes that no call reported must come from calls with an unknown outcome. From the latest change to the
        // earliest, each takes the candidate called last: the earlier ones can explain more of the remaining changes.
        let mut unknown: Vec<usize> =
            (0..calls.len()).filter(|n| calls[*n].answer == Answer::Unknown).collect();
        unknown.sort_by_key(|n| calls[*n].called);
        for change in orphans.into_iter().rev() {
            let maker = unknown
                .iter()
                .rposition(|n| self.lower[*n] < change.revision() && self.could_make(&calls[*n], change));
            match maker {
                Some(maker) => {
                    unknown.remove(maker);
                }
                None => {
                    return Err(Violation::new(
                        "each change was written by some transaction",
                        format!("{change:?}"),
                    ));
                }
            }
        }
        Ok(())
    }

    fn before(&self, at: Revision) -> &State {
        self.state(Revision::new(at.get().saturating_sub(1)))
    }

    /// Whether this transaction, executed right before `change`, would have made it.
    fn could_make(&self, call: &Call, change: &Change) -> bool {
        let Request::Txn(txn) = &call.request else { return false };
        let before = self.before(change.revision());
        holds(txn, before)
            && made(txn, change)
            && txn.ops().iter().all(|op| {
                // A delete of an existing key shows in the change.
                op.action != Action::Delete
                    || before.contains_key(&op.key) == change.events().iter().any(|event| event.key == op.key)
            })
    }

    /// Checks that a transaction that reported `at` had nothing to change there.
    fn changed_nothing(&self, call: &Call, at: Revision) -> Result<(), Violation> {
        let Request::Txn(txn) = &call.request else { return Ok(()) };
        let state = self.state(at);
        let nothing = txn.ops().iter().all(|op| match op.action {
            Action::Put(_) => false,
            Action::Delete => !state.contains_key(&op.key),
            Action::Check => true,
        });
        if nothing && holds(txn, state) {
            return Ok(());
        }
        let why =
            format!("revision {at} is {:?}; before it, there was {:?}", self.history.at(at), self.before(at));
        Err(broken("an acknowledged transaction happened, whole, at its revision", call, &why))
    }
}

fn holds(txn: &Txn, state: &State) -> bool {
    txn.ops().iter().all(|op| op.precondition.holds(state.get(&op.key).map(|entry| entry.revision)))
}

fn explained(call: &Call, at: Revision, wanted: &[&KeyValue], got: &[&KeyValue]) -> Result<(), Violation> {
    if wanted == got {
        return Ok(());
    }
    Err(broken("a read shows the state of its revision", call, &format!("at {at} there was {wanted:?}")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use k1s_store::{Conflict, Event, GetResult, Precondition, Previous};

    const BASE: Revision = Revision::new(1);

    fn revision(number: u64) -> Revision {
        Revision::new(number)
    }

    /// `k` is "a" at 2, "b" at 3, deleted at 4.
    fn history() -> History {
        let event = |value: Option<&'static str>, previous: Option<(&'static str, u64)>| Event {
            key: "k".into(),
            value: value.map(Into::into),
            created: previous.is_none(),
            previous: previous.map(|(value, at)| Previous { value: value.into(), revision: revision(at) }),
        };
        let change = |at, event| Arc::new(Change::new(revision(at), [event]));
        History {
            changes: vec![
                change(2, event(Some("a"), None)),
                change(3, event(Some("b"), Some(("a", 2)))),
                change(4, event(None, Some(("b", 3)))),
            ],
            newest: revision(4),
            compacted: Revision::default(),
        }
    }

    fn call(called: u64, returned: u64, request: Request, answer: Answer) -> Call {
        Call { client: 0, called, returned, request, answer }
    }

    fn entry(value: &'static str, at: u64) -> KeyValue {
        KeyValue { key: "k".into(), value: value.into(), revision: revision(at) }
    }

    fn get(called: u64, returned: u64, at: u64, found: Option<KeyValue>) -> Call {
        let answer = Answer::Got(GetResult { revision: revision(at), entry: found });
        call(called, returned, Request::Get("k".into()), answer)
    }

    fn txn(called: u64, returned: u64, txn: Txn, at: u64) -> Call {
        call(called, returned, Request::Txn(txn), Answer::Written(revision(at)))
    }

    fn create() -> Txn {
        Txn::new().create("k", "a")
    }

    fn update() -> Txn {
        Txn::new().put("k", "b", Precondition::Revision(revision(2)))
    }

    fn delete() -> Txn {
        Txn::new().delete("k", Precondition::Any)
    }

    /// The three writes, one after the other, at times 10 to 15.
    fn writes() -> Vec<Call> {
        vec![txn(10, 11, create(), 2), txn(12, 13, update(), 3), txn(14, 15, delete(), 4)]
    }

    #[track_caller]
    fn accepted(more: impl IntoIterator<Item = Call>) {
        let calls: Vec<_> = writes().into_iter().chain(more).collect();
        check_revisions(&calls, &history(), BASE).unwrap();
    }

    #[track_caller]
    fn rejected(more: impl IntoIterator<Item = Call>) {
        let calls: Vec<_> = writes().into_iter().chain(more).collect();
        check_revisions(&calls, &history(), BASE).unwrap_err();
    }

    #[test]
    fn results_explained_by_the_order_are_accepted() {
        accepted([
            get(1, 2, 1, None),
            get(3, 20, 2, Some(entry("a", 2))),
            get(4, 21, 3, Some(entry("b", 3))),
            get(22, 23, 4, None),
        ]);
    }

    #[test]
    fn a_stale_read_is_rejected() {
        rejected([get(16, 17, 3, Some(entry("b", 3)))]);
        // Nor may a read be older than one that returned before.
        rejected([get(1, 12, 2, Some(entry("a", 2))), get(13, 20, 1, None)]);
    }

    #[test]
    fn a_read_of_the_future_is_rejected() {
        rejected([get(1, 2, 2, Some(entry("a", 2)))]);
    }

    #[test]
    fn a_read_of_a_state_that_never_existed_is_rejected() {
        rejected([get(3, 20, 2, Some(entry("x", 2)))]);
        rejected([get(3, 20, 2, Some(entry("a", 1)))]);
        rejected([get(3, 20, 3, None)]);
    }

    #[test]
    fn a_lost_update_is_rejected() {
        let lost = Txn::new().put("k", "c", Precondition::Revision(revision(2)));
        rejected([txn(12, 16, lost.clone(), 5)]);
        rejected([txn(12, 16, lost, 3)]);
    }

    #[test]
    fn a_create_that_succeeds_twice_is_rejected() {
        rejected([txn(10, 16, create(), 2)]);
        rejected([txn(10, 16, Txn::new().create("k", "other"), 3)]);
    }

    #[test]
    fn a_delete_of_an_absent_key_returns_the_newest_revision() {
        accepted([txn(14, 16, delete(), 4)]);
        accepted([txn(1, 2, delete(), 1)]);
        rejected([txn(12, 16, delete(), 3)]);
        // Concurrent with a delete that must be the one that deleted, whichever was called first.
        let conditional = Txn::new().delete("k", Precondition::Revision(revision(3)));
        let raced = [
            txn(10, 11, create(), 2),
            txn(12, 13, update(), 3),
            txn(14, 17, delete(), 4),
            txn(15, 16, conditional.clone(), 4),
        ];
        check_revisions(&raced, &history(), BASE).unwrap();
        let [first, second, ..] = raced;
        let twice = [first, second, txn(14, 17, conditional.clone(), 4), txn(15, 16, conditional, 4)];
        check_revisions(&twice, &history(), BASE).unwrap_err();
    }

    #[test]
    fn a_conflict_must_be_explained_by_a_state_during_its_call() {
        let refused = |called, returned, current: Option<KeyValue>| {
            let conflict = Conflict { key: "k".into(), expected: Precondition::Absent, current };
            call(called, returned, Request::Txn(create()), Answer::Refused(conflict))
        };
        accepted([refused(9, 20, Some(entry("a", 2)))]);
        accepted([refused(12, 13, Some(entry("b", 3)))]);
        rejected([refused(14, 20, Some(entry("a", 2)))]);
        rejected([refused(1, 2, Some(entry("a", 2)))]);
        rejected([refused(9, 20, Some(entry("x", 2)))]);
        rejected([refused(9, 20, None)]);
    }

    #[test]
    fn an_unreported_change_needs_a_call_with_unknown_outcome() {
        let [first, second, third] = <[Call; 3]>::try_from(writes()).unwrap();
        let orphaned = vec![first.clone(), third.clone()];
        check_revisions(&orphaned, &history(), BASE).unwrap_err();
        let unknown = Call { answer: Answer::Unknown, returned: 12, ..second };
        check_revisions(&[first.clone(), third.clone(), unknown.clone()], &history(), BASE).unwrap();
        let too_late = Call { called: 16, returned: 17, ..unknown };
        check_revisions(&[first, third, too_late], &history(), BASE).unwrap_err();
    }
}
