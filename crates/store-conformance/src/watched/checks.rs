//! One checker for each promise of a watch. They are independent, so a broken promise is named by its own
//! checker, though others may fail with it.

use std::collections::BTreeSet;

use k1s_store::{Event, Revision};

use super::{End, History, Seen, Session, Start};
use crate::Violation;

/// Runs all checkers.
pub fn check_session(session: &Session, history: &History) -> Result<(), Violation> {
    ordered(session)?;
    unique(session)?;
    atomic(session, history)?;
    faithful(session, history)?;
    resumable(session, history)?;
    bookmarkable(session, history)?;
    reliable(session, history)?;
    bounded(session, history)
}

fn broken(promise: &'static str, session: &Session, why: &str) -> Violation {
    Violation::new(promise, format!("{}: {why}", session.describe()))
}

/// **Ordered**: revisions never decrease.
pub fn ordered(session: &Session) -> Result<(), Violation> {
    for pair in session.items.windows(2) {
        if pair[1].revision() < pair[0].revision() {
            let why = format!("{:?} came after {:?}", pair[1], pair[0]);
            return Err(broken("a watch is ordered", session, &why));
        }
    }
    Ok(())
}

/// **Unique**: the change of a revision is yielded once.
pub fn unique(session: &Session) -> Result<(), Violation> {
    let mut seen = BTreeSet::new();
    match session.changes().find(|change| !seen.insert(change.revision())) {
        None => Ok(()),
        Some(twice) => {
            Err(broken("a watch yields each revision once", session, &format!("{twice:?} came again")))
        }
    }
}

/// **Reliable**: no change under the prefix is missing between the watch's start and the revision it reached.
pub fn reliable(session: &Session, history: &History) -> Result<(), Violation> {
    let Some(reached) = session.reached() else { return Ok(()) };
    let seen: BTreeSet<_> = session.changes().map(|change| change.revision()).collect();
    let expected = history.under(&session.prefix, session.origin(), reached);
    match expected.iter().find(|change| !seen.contains(&change.revision())) {
        None => Ok(()),
        Some(missing) => {
            let before = session.items.iter().rfind(|item| item.revision() < missing.revision());
            let after = session.items.iter().find(|item| item.revision() >= missing.revision());
            let why = format!("{missing:?} is missing between {before:?} and {after:?}");
            Err(broken("a watch skips no change", session, &why))
        }
    }
}

/// **Atomic**: a change has all events of its transaction under the prefix, and no others.
pub fn atomic(session: &Session, history: &History) -> Result<(), Violation> {
    for change in session.changes() {
        let happened = history.at(change.revision()).and_then(|whole| whole.under(&session.prefix));
        let Some(happened) = happened else {
            let why = format!("{change:?} did not happen under the prefix");
            return Err(broken("a watch yields only changes that happened", session, &why));
        };
        let keys = |events: &[Event]| {
            let mut keys: Vec<_> = events.iter().map(|event| event.key.clone()).collect();
            keys.sort();
            keys
        };
        if keys(change.events()) != keys(happened.events()) {
            let why = format!("{change:?} came, {happened:?} happened");
            return Err(broken("a transaction arrives whole, in one change", session, &why));
        }
    }
    Ok(())
}

/// **Faithful**: events have the values that were written, and the previous ones if requested.
pub fn faithful(session: &Session, history: &History) -> Result<(), Violation> {
    for change in session.changes() {
        let Some(happened) = history.at(change.revision()) else { continue };
        for event in change.events() {
            let Some(real) = happened.events().iter().find(|real| real.key == event.key) else { continue };
            let same = (&event.value, event.created) == (&real.value, real.created);
            let previous = event.previous == real.previous || !session.previous && event.previous.is_none();
            if !same || !previous {
                let why = format!("{event:?} came at {}, {real:?} happened", change.revision());
                return Err(broken("events match the writes", session, &why));
            }
        }
    }
    Ok(())
}

/// **Resumable**: a watch after a revision begins with the first change after it.
pub fn resumable(session: &Session, history: &History) -> Result<(), Violation> {
    let Some(first) = session.changes().next() else { return Ok(()) };
    match session.start {
        Start::After(after) => {
            let due = history.under(&session.prefix, after, Revision::MAX);
            let due = due.first().map(|change| change.revision());
            if due != Some(first.revision()) {
                let why = format!("its first change is {first:?}, the first after its start is {due:?}");
                return Err(broken("a watch after a revision continues right after it", session, &why));
            }
        }
        Start::Now { earliest, .. } => {
            if first.revision() <= earliest {
                let why = format!("its first change is {first:?}");
                return Err(broken("a watch from now yields nothing older", session, &why));
            }
        }
    }
    Ok(())
}

/// **Bookmarkable**: a mark is never ahead of a change that is yielded later or not at all, nor of the store.
pub fn bookmarkable(session: &Session, history: &History) -> Result<(), Violation> {
    let promise = "a progress mark is never ahead of events";
    let mut yielded = BTreeSet::new();
    let mut highest = Revision::default();
    for item in &session.items {
        match item {
            Seen::Change(change) => {
                if change.revision() <= highest {
                    let why = format!("{change:?} came after the mark {highest}");
                    return Err(broken(promise, session, &why));
                }
                yielded.insert(change.revision());
            }
            Seen::Mark(mark) => {
                if *mark > history.newest {
                    let why =
                        format!("the mark {mark} is ahead of the store, which reached {}", history.newest);
                    return Err(broken(promise, session, &why));
                }
                let due = history.under(&session.prefix, session.origin(), *mark);
                if let Some(missing) = due.iter().find(|change| !yielded.contains(&change.revision())) {
                    let why = format!("the mark {mark} came, {missing:?} had not");
                    return Err(broken(promise, session, &why));
                }
                highest = highest.max(*mark);
            }
        }
    }
    Ok(())
}

/// **Bounded**: a watch ends with a compaction only if the history it needs next is compacted.
pub fn bounded(session: &Session, history: &History) -> Result<(), Violation> {
    let End::Compacted(oldest) = session.end else { return Ok(()) };
    let reached = match (session.reached(), session.start) {
        (Some(reached), _) => reached,
        // A watch that yielded nothing may have begun as early as this.
        (None, Start::After(start) | Start::Now { earliest: start, .. }) => start,
    };
    if reached < oldest && oldest <= history.compacted {
        return Ok(());
    }
    let why =
        format!("it had reached {reached}, and the store was compacted to {} at most", history.compacted);
    Err(broken("only a watch that lags behind the history fails with Compacted", session, &why))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use k1s_store::{Change, Previous};

    fn event(key: &'static str, value: &'static str, previous: Option<(&'static str, u64)>) -> Event {
        Event {
            key: key.into(),
            value: Some(value.into()),
            created: previous.is_none(),
            previous: previous
                .map(|(value, revision)| Previous { value: value.into(), revision: Revision::new(revision) }),
        }
    }

    fn change(revision: u64, events: impl IntoIterator<Item = Event>) -> Seen {
        Seen::Change(Arc::new(Change::new(Revision::new(revision), events)))
    }

    fn mark(revision: u64) -> Seen {
        Seen::Mark(Revision::new(revision))
    }

    /// The changes: `/a/1` twice, both keys at once, a key outside of the prefix, `/a/1` again.
    fn events() -> [Seen; 5] {
        [
            change(2, [event("/a/1", "one", None)]),
            change(3, [event("/a/1", "two", Some(("one", 2))), event("/a/2", "two", None)]),
            change(5, [event("/b/1", "x", None)]),
            change(6, [event("/a/1", "three", Some(("two", 3)))]),
            change(8, [event("/a/2", "four", Some(("two", 3)))]),
        ]
    }

    fn history() -> History {
        let changes = events().into_iter().map(|seen| match seen {
            Seen::Change(change) => change,
            Seen::Mark(_) => unreachable!("a history has no marks"),
        });
        History { changes: changes.collect(), newest: Revision::new(9), compacted: Revision::new(4) }
    }

    fn session(after: u64, items: impl IntoIterator<Item = Seen>) -> Session {
        Session {
            prefix: "/a/".into(),
            start: Start::After(Revision::new(after)),
            previous: true,
            items: items.into_iter().collect(),
            end: End::Dropped,
        }
    }

    /// Checks that exactly the named checkers reject the session.
    #[track_caller]
    fn rejected_by(session: &Session, names: &[&str]) {
        let history = history();
        let verdicts = [
            ("ordered", ordered(session)),
            ("unique", unique(session)),
            ("reliable", reliable(session, &history)),
            ("atomic", atomic(session, &history)),
            ("faithful", faithful(session, &history)),
            ("resumable", resumable(session, &history)),
            ("bookmarkable", bookmarkable(session, &history)),
            ("bounded", bounded(session, &history)),
        ];
        let rejecting: Vec<_> =
            verdicts.iter().filter(|(_, verdict)| verdict.is_err()).map(|(name, _)| *name).collect();
        assert_eq!(rejecting, names, "{verdicts:#?}");
        assert_eq!(check_session(session, &history).is_err(), !names.is_empty());
    }

    #[test]
    fn a_watch_that_keeps_its_promises_is_accepted() {
        let [two, three, _, six, eight] = events();
        rejected_by(
            &session(1, [two, mark(2), three.clone(), mark(5), mark(5), six.clone(), eight.clone(), mark(9)]),
            &[],
        );
        rejected_by(&session(3, [six.clone(), eight]), &[]);
        rejected_by(&session(4, [six.clone()]), &[]);
        rejected_by(&session(8, []), &[]);
        let mut compacted = session(2, [three.clone()]);
        compacted.end = End::Compacted(Revision::new(4));
        rejected_by(&compacted, &[]);
        let now = Start::Now { earliest: Revision::new(2), latest: Revision::new(5) };
        rejected_by(&Session { start: now, ..session(0, [three, six.clone()]) }, &[]);
        rejected_by(&Session { start: now, ..session(0, [six, mark(7)]) }, &[]);
    }

    #[test]
    fn ordered_rejects_a_revision_that_goes_back() {
        let [two, three, ..] = events();
        // Also breaks resumable: the first change is not the first after the start.
        rejected_by(&session(1, [three.clone(), two]), &["ordered", "resumable"]);
        rejected_by(&session(2, [three, mark(2)]), &["ordered"]);
    }

    #[test]
    fn unique_rejects_a_change_that_comes_twice() {
        let [two, three, ..] = events();
        rejected_by(&session(1, [two, three.clone(), three]), &["unique"]);
    }

    #[test]
    fn reliable_rejects_a_gap() {
        let [two, three, _, six, eight] = events();
        rejected_by(&session(1, [two, six]), &["reliable"]);
        // A gap at the beginning also breaks resumable.
        rejected_by(&session(1, [three, eight]), &["reliable", "resumable"]);
        let now = Start::Now { earliest: Revision::new(2), latest: Revision::new(3) };
        let [.., eight] = events();
        rejected_by(&Session { start: now, ..session(0, [eight]) }, &["reliable"]);
    }

    #[test]
    fn atomic_rejects_a_transaction_in_parts() {
        let half = change(3, [event("/a/1", "two", Some(("one", 2)))]);
        let rest = change(3, [event("/a/2", "two", None)]);
        rejected_by(&session(2, [half.clone()]), &["atomic"]);
        rejected_by(&session(2, [half, rest]), &["unique", "atomic"]);
    }

    #[test]
    fn atomic_rejects_events_that_did_not_happen_or_are_not_under_the_prefix() {
        let [_, three, foreign, ..] = events();
        rejected_by(&session(2, [three.clone(), foreign]), &["atomic"]);
        rejected_by(&session(2, [three, change(4, [event("/a/1", "never", None)])]), &["atomic"]);
    }

    #[test]
    fn faithful_rejects_a_wrong_value_kind_or_previous_value() {
        let [two, ..] = events();
        let other = |event| session(1, [two.clone(), change(3, [event, self::event("/a/2", "two", None)])]);
        rejected_by(&other(event("/a/1", "TWO", Some(("one", 2)))), &["faithful"]);
        rejected_by(&other(event("/a/1", "two", Some(("one", 1)))), &["faithful"]);
        rejected_by(&other(event("/a/1", "two", Some(("ONE", 2)))), &["faithful"]);
        let mut bare = event("/a/1", "two", None);
        rejected_by(&other(bare.clone()), &["faithful"]);
        bare.created = false;
        rejected_by(&other(bare.clone()), &["faithful"]);
        let not_asked = Session { previous: false, ..other(bare) };
        rejected_by(&not_asked, &[]);
    }

    #[test]
    fn resumable_rejects_a_start_too_early() {
        let [two, three, ..] = events();
        rejected_by(&session(2, [two.clone(), three.clone()]), &["resumable"]);
        let now = Start::Now { earliest: Revision::new(2), latest: Revision::new(5) };
        rejected_by(&Session { start: now, ..session(0, [two, three]) }, &["resumable"]);
    }

    #[test]
    fn bookmarkable_rejects_a_mark_ahead_of_events() {
        let [two, three, ..] = events();
        rejected_by(&session(1, [two.clone(), mark(4)]), &["reliable", "bookmarkable"]);
        rejected_by(&session(1, [two, mark(3), three]), &["bookmarkable"]);
        rejected_by(&session(8, [mark(10)]), &["bookmarkable"]);
    }

    #[test]
    fn bounded_rejects_a_compaction_that_does_not_concern_the_watch() {
        let [two, three, _, six, _] = events();
        let ended = |session: Session, at| Session { end: End::Compacted(Revision::new(at)), ..session };
        rejected_by(&ended(session(2, [three, six]), 4), &["bounded"]);
        rejected_by(&ended(session(1, [two.clone()]), 5), &["bounded"]);
        rejected_by(&ended(session(1, [two, mark(2)]), 4), &[]);
        let now = Start::Now { earliest: Revision::new(3), latest: Revision::new(9) };
        rejected_by(&ended(Session { start: now, ..session(0, []) }, 4), &[]);
        rejected_by(&ended(Session { start: now, ..session(0, []) }, 3), &["bounded"]);
    }
}
