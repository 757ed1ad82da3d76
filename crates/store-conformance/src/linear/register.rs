//! Searches for an order of the operations on one key, without using revisions as the order.
//!
//! Wing and Gong try each operation that may come first (those called before any other returned), and recurse on
//! the rest; Lowe memoizes the pairs of operations taken and resulting value, so that none is explored twice.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use k1s_store::{Action, KeyValue, Precondition, Revision};

use super::{Answer, Call, Request};
use crate::Violation;

/// One operation on one key.
#[derive(Clone, Debug)]
pub struct RegisterCall {
    /// Time of the call.
    pub called: u64,
    /// Time of the return; never, for one that may still happen.
    pub returned: u64,
    /// The operation.
    pub op: Op,
    /// Its result.
    pub result: OpResult,
}

/// An operation on a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Reads the key.
    Read,
    /// Puts or deletes the value if a precondition holds.
    Write(Precondition, Option<Bytes>),
    /// Only checks a precondition.
    Check(Precondition),
}

/// The result of an operation on a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpResult {
    /// The entry found: the result of a read, or the current entry of a conflict.
    Found(Option<KeyValue>),
    /// The write was committed at this revision.
    Done(Revision),
    /// The write may have been committed.
    Unknown,
}

/// The value of a key. The revision is unknown after a write with an unknown outcome.
type Held = Option<(Bytes, Option<Revision>)>;

/// Searches for an order of operations on one key that explains every result; the key is absent at first.
///
/// The error reports the largest set of operations that could be explained, and the candidates to come next.
pub fn check_register(calls: &[RegisterCall]) -> Result<(), Violation> {
    let mut search =
        Search { calls, taken: vec![false; calls.len()], seen: HashSet::new(), best: (0, Vec::new()) };
    if search.explain(&None, 0) {
        return Ok(());
    }
    let (explained, stuck) = search.best;
    Err(Violation::new(
        "operations happen in one order that respects time and explains every result",
        format!(
            "{explained} of {} operations can be explained; then one of these must be next: {stuck:#?}",
            calls.len()
        ),
    ))
}

struct Search<'a> {
    calls: &'a [RegisterCall],
    taken: Vec<bool>,
    seen: HashSet<(Vec<bool>, Held)>,
    /// The longest prefix found, and the operations it could not explain next.
    best: (usize, Vec<RegisterCall>),
}

impl Search<'_> {
    /// Whether the remaining operations can follow on `held`. The recursion depth is the number of operations
    /// on one key, a few hundred in a run.
    fn explain(&mut self, held: &Held, count: usize) -> bool {
        let open = || self.calls.iter().enumerate().filter(|(n, _)| !self.taken[*n]);
        // Remaining operations with an unknown outcome may not have happened.
        if open().all(|(_, call)| call.result == OpResult::Unknown) {
            return true;
        }
        if !self.seen.insert((self.taken.clone(), held.clone())) {
            return false;
        }
        let first_return = open().map(|(_, call)| call.returned).min().unwrap_or(u64::MAX);
        let mut candidates: Vec<_> =
            open().filter(|(_, call)| call.called < first_return).map(|(n, _)| n).collect();
        // The order of candidates affects only the duration of the search. For a correct store, reads of the
        // held value come first, then writes by revision.
        candidates.sort_by_key(|n| match self.calls[*n].result {
            OpResult::Found(_) => (0, Revision::default()),
            OpResult::Done(revision) => (1, revision),
            OpResult::Unknown => (2, Revision::default()),
        });
        if count >= self.best.0 {
            self.best = (count, candidates.iter().map(|n| self.calls[*n].clone()).collect());
        }
        for n in candidates {
            let Some(next) = apply(held, &self.calls[n]) else { continue };
            self.taken[n] = true;
            if self.explain(&next, count + 1) {
                return true;
            }
            self.taken[n] = false;
        }
        false
    }
}

/// The key's value after `call`, or `None` if the value before cannot explain its result.
fn apply(held: &Held, call: &RegisterCall) -> Option<Held> {
    let holds = |expected: Precondition| match (expected, held) {
        (Precondition::Revision(_), Some((_, None))) => true, // the revision is unknown and may match
        _ => expected.holds(
            held.as_ref().and_then(|(_, revision)| *revision).or(held.as_ref().map(|_| Revision::MAX)),
        ),
    };
    match (&call.op, &call.result) {
        (Op::Read, OpResult::Found(found)) => matches(held, found.as_ref()),
        // A conflict is a read of an entry for which the precondition does not hold.
        (Op::Write(expected, _) | Op::Check(expected), OpResult::Found(found)) => {
            let refused = !expected.holds(found.as_ref().map(|entry| entry.revision));
            if refused { matches(held, found.as_ref()) } else { None }
        }
        (Op::Check(expected), OpResult::Done(_)) => holds(*expected).then(|| held.clone()),
        (Op::Write(expected, value), OpResult::Done(revision)) => {
            holds(*expected).then(|| value.clone().map(|value| (value, Some(*revision))))
        }
        (Op::Write(expected, value), OpResult::Unknown) => {
            holds(*expected).then(|| value.clone().map(|value| (value, None)))
        }
        (Op::Check(_), OpResult::Unknown) => Some(held.clone()),
        (Op::Read, OpResult::Done(_) | OpResult::Unknown) => Some(held.clone()),
    }
}

/// The held value, made more precise by the entry found, or `None` if they differ.
fn matches(held: &Held, found: Option<&KeyValue>) -> Option<Held> {
    match (held, found) {
        (None, None) => Some(None),
        (Some((value, revision)), Some(entry))
            if *value == entry.value && revision.is_none_or(|revision| revision == entry.revision) =>
        {
            Some(Some((value.clone(), Some(entry.revision))))
        }
        _ => None,
    }
}

/// The operations on each key. A transaction becomes one for each of its keys, a range one for each of `keys`
/// under its prefix. An order for every key is necessary, not sufficient, for an order of the whole.
pub fn project(calls: &[Call], keys: &[Bytes]) -> BTreeMap<Bytes, Vec<RegisterCall>> {
    let mut projected: BTreeMap<Bytes, Vec<RegisterCall>> = BTreeMap::new();
    for call in calls {
        let mut add = |key: &Bytes, op, result: OpResult| {
            let returned = if result == OpResult::Unknown { u64::MAX } else { call.returned };
            let projection = RegisterCall { called: call.called, returned, op, result };
            projected.entry(key.clone()).or_default().push(projection);
        };
        match (&call.request, &call.answer) {
            (Request::Get(key), Answer::Got(got)) => add(key, Op::Read, OpResult::Found(got.entry.clone())),
            (Request::Range(prefix), Answer::Ranged(ranged)) => {
                for key in keys.iter().filter(|key| key.starts_with(prefix)) {
                    let found = ranged.entries.iter().find(|entry| entry.key == key).cloned();
                    add(key, Op::Read, OpResult::Found(found));
                }
            }
            (Request::Txn(txn), answer) => {
                for op in txn.ops() {
                    let does = match &op.action {
                        Action::Put(value) => Op::Write(op.precondition, Some(value.clone())),
                        Action::Delete => Op::Write(op.precondition, None),
                        Action::Check => Op::Check(op.precondition),
                    };
                    match answer {
                        Answer::Written(revision) => add(&op.key, does, OpResult::Done(*revision)),
                        Answer::Refused(conflict) if conflict.key == op.key => {
                            add(&op.key, does, OpResult::Found(conflict.current.clone()));
                        }
                        Answer::Unknown if op.action != Action::Check => {
                            add(&op.key, does, OpResult::Unknown)
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    projected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(called: u64, returned: u64, op: Op, result: OpResult) -> RegisterCall {
        RegisterCall { called, returned, op, result }
    }

    fn found(value: &'static str, revision: u64) -> OpResult {
        OpResult::Found(Some(KeyValue {
            key: "k".into(),
            value: value.into(),
            revision: Revision::new(revision),
        }))
    }

    fn done(revision: u64) -> OpResult {
        OpResult::Done(Revision::new(revision))
    }

    fn put(value: &'static str) -> Op {
        Op::Write(Precondition::Any, Some(value.into()))
    }

    fn create(value: &'static str) -> Op {
        Op::Write(Precondition::Absent, Some(value.into()))
    }

    fn update(value: &'static str, revision: u64) -> Op {
        Op::Write(Precondition::Revision(Revision::new(revision)), Some(value.into()))
    }

    const NOTHING: OpResult = OpResult::Found(None);

    #[test]
    fn reads_concurrent_with_a_write_may_see_it_or_not() {
        for seen in [NOTHING, found("a", 2)] {
            let calls = [call(1, 4, create("a"), done(2)), call(2, 3, Op::Read, seen)];
            check_register(&calls).unwrap();
        }
    }

    #[test]
    fn a_stale_read_is_rejected() {
        let calls = [call(1, 2, create("a"), done(2)), call(3, 4, Op::Read, NOTHING)];
        check_register(&calls).unwrap_err();
        let calls = [
            call(1, 2, create("a"), done(2)),
            call(3, 4, update("b", 2), done(3)),
            call(5, 6, Op::Read, found("a", 2)),
        ];
        check_register(&calls).unwrap_err();
    }

    #[test]
    fn reads_that_go_back_in_time_are_rejected() {
        // Each is fine concurrently with the write, but not one after the other.
        let calls = [
            call(1, 8, create("a"), done(2)),
            call(2, 3, Op::Read, found("a", 2)),
            call(4, 5, Op::Read, NOTHING),
        ];
        check_register(&calls).unwrap_err();
    }

    #[test]
    fn a_lost_update_is_rejected() {
        let calls = [
            call(1, 2, create("a"), done(2)),
            call(3, 8, update("b", 2), done(3)),
            call(4, 7, update("c", 2), done(4)),
        ];
        check_register(&calls).unwrap_err();
        // With one of them refused, it is accepted.
        let calls = [
            call(1, 2, create("a"), done(2)),
            call(3, 8, update("b", 2), found("c", 3)),
            call(4, 7, update("c", 2), done(3)),
        ];
        check_register(&calls).unwrap();
    }

    #[test]
    fn a_create_that_succeeds_twice_is_rejected() {
        let calls = [call(1, 4, create("a"), done(2)), call(2, 3, create("b"), done(3))];
        check_register(&calls).unwrap_err();
        let deleted = call(2, 5, Op::Write(Precondition::Exists, None), done(3));
        let calls = [call(1, 4, create("a"), done(2)), deleted, call(3, 6, create("b"), done(4))];
        check_register(&calls).unwrap();
    }

    #[test]
    fn an_unexplained_conflict_is_rejected() {
        let calls = [call(1, 2, create("a"), done(2)), call(3, 4, create("b"), NOTHING)];
        check_register(&calls).unwrap_err();
        let calls = [call(1, 2, create("a"), done(2)), call(3, 4, update("b", 2), found("a", 2))];
        check_register(&calls).unwrap_err();
    }

    #[test]
    fn a_write_with_unknown_outcome_may_happen_late_or_never() {
        let unknown = call(1, u64::MAX, put("a"), OpResult::Unknown);
        for seen in [NOTHING, found("a", 2)] {
            check_register(&[unknown.clone(), call(3, 4, Op::Read, seen)]).unwrap();
        }
        let late = [
            unknown.clone(),
            call(3, 4, put("b"), done(2)),
            call(5, 6, Op::Read, found("b", 2)),
            call(7, 8, Op::Read, found("a", 3)),
        ];
        check_register(&late).unwrap();
        let twice = [
            unknown.clone(),
            call(3, 4, Op::Read, found("a", 2)),
            call(5, 6, put("b"), done(3)),
            call(7, 8, Op::Read, found("a", 4)),
        ];
        check_register(&twice).unwrap_err();
        // Not before it was called.
        check_register(&[call(1, 2, Op::Read, found("a", 2)), RegisterCall { called: 3, ..unknown }])
            .unwrap_err();
    }
}
