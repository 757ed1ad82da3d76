//! Closing and reopening a store.

use k1s_store::{Error, Precondition, Range, Revision, Txn, WatchRequest};

use crate::support::{Suite, closed, entry, now, put, remove, skip};

pub(crate) async fn a_closed_store_refuses_everything(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let revision = put(store, "/a", "v").await;
    store.close().await.expect("a store can be closed");
    closed(store.revision().await, "reading the revision");
    closed(store.get(b"/a", None).await, "reading a key");
    closed(store.get(b"/a", Some(revision)).await, "reading a key");
    closed(store.range(Range::prefix("/")).await, "reading a range");
    closed(store.create("/b".into(), "v".into()).await, "a write");
    closed(store.txn(Txn::new().delete("/none", Precondition::Any)).await, "a write that changes nothing");
    closed(store.txn(Txn::new().check("/a", Precondition::Absent)).await, "a write that conflicts");
    closed(store.watch(WatchRequest::prefix("/")).await, "watching");
    closed(store.watch(WatchRequest::prefix("/").after(revision)).await, "watching");
    closed(
        store.watch(WatchRequest::prefix("/").after(suite.far_future(revision))).await,
        "watching from a future revision",
    );
    closed(store.compact(revision).await, "compacting");
    closed(store.stats().await, "reading statistics");
    let again = store.close().await;
    assert!(again.is_ok(), "broken promise: closing twice is fine\n  got {again:?}");
}

pub(crate) async fn closing_ends_watches_after_they_yielded_everything(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let base = store.revision().await.unwrap();
    let mut read = suite.watch(store, WatchRequest::prefix("/k/")).await;
    let unread = suite.watch(store, WatchRequest::prefix("/k/")).await;
    let other = suite.watch(store, WatchRequest::prefix("/none/")).await;
    let mut expected = Vec::new();
    for n in 0..500 {
        expected.push(put(store, format!("/k/{}", n % 5), format!("{n}")).await);
    }
    let past = suite.watch(store, WatchRequest::prefix("/k/").after(base)).await;
    let seen = read.changes(10).await;
    store.close().await.unwrap();
    for (probe, skipped, which) in
        [(read, seen.len(), "half read"), (unread, 0, "not read"), (past, 0, "from the past")]
    {
        let mut due = &expected[skipped..];
        let (rest, error) = probe.until_end().await;
        let rest: Vec<_> = rest.iter().map(|change| change.revision()).collect();
        match error {
            None => {}
            Some(Error::Closed) if due.len() > suite.profile.after_close => due = &due[..rest.len()],
            Some(error) => {
                panic!("broken promise: a watch of a closed store ends cleanly\n  it ended with {error}")
            }
        }
        assert_eq!(
            rest, due,
            "broken promise: a watch yields everything before it ends with the store\n  a watch that was {which}"
        );
    }
    assert_eq!(other.rest().await, []);
}

pub(crate) async fn closing_wakes_waiting_watches(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let newest = put(store, "/a", "v").await;
    let mut waiting = Vec::new();
    for n in 0..20 {
        let mut probe = suite.watch(store, WatchRequest::prefix(format!("/{}", n % 4))).await;
        probe.quiet(newest).await;
        waiting.push(suite.env.spawn("watcher", async move { probe.next().await }));
    }
    store.close().await.unwrap();
    for task in waiting {
        let end = task.await.unwrap();
        assert!(end.is_none(), "broken promise: a watch of a closed store ends with None\n  got {end:?}");
    }
}

pub(crate) async fn reopening_keeps_entries_and_revisions(suite: &Suite) {
    let mut fresh = suite.fresh().await;
    if !fresh.can_reopen() {
        return skip("this backend cannot be reopened");
    }
    let mut state = std::collections::BTreeMap::new();
    let mut last = Revision::default();
    for round in 0..4 {
        let store = fresh.store();
        for n in 0..50 {
            let key = format!("/k/{:02}", (n * 7 + round * 13) % 60);
            if n % 5 == 4 {
                last = remove(store, key.clone()).await;
                state.remove(&key);
            } else {
                last = put(store, key.clone(), format!("{round}-{n}")).await;
                state.insert(key.clone(), entry(key, format!("{round}-{n}"), last));
            }
        }
        // The last revision may also be a delete.
        if round % 2 == 1
            && let Some((key, _)) = state.pop_first()
        {
            last = remove(store, key).await;
        }
        fresh.reopen().await;
        let store = fresh.store();
        let read = store.range(Range::prefix("/k/")).await.unwrap();
        suite.unmoved(last, read.revision, "reopening");
        assert_eq!(
            read.entries,
            state.values().cloned().collect::<Vec<_>>(),
            "broken promise: acknowledged entries and their revisions survive a reopening"
        );
        let extra = round; // one more key in each previous round
        assert_eq!(store.stats().await.unwrap().keys, (state.len() + extra) as u64);
        let next = put(store, format!("/extra/{round}"), "v").await;
        suite.follows(last, next);
    }
}

pub(crate) async fn reopening_keeps_history_and_compaction(suite: &Suite) {
    let mut fresh = suite.fresh().await;
    if !fresh.can_reopen() {
        return skip("this backend cannot be reopened");
    }
    let store = fresh.store();
    let one = put(store, "/a", "one").await;
    let two = put(store, "/a", "two").await;
    let gone = remove(store, "/a").await;
    let three = put(store, "/a", "three").await;
    store.compact(two).await.unwrap();
    for _ in 0..2 {
        fresh.reopen().await;
        let store = fresh.store();
        assert_eq!(
            store.stats().await.unwrap().oldest,
            two,
            "broken promise: a reopening keeps the compaction"
        );
        suite.compacted(store.get(b"/a", Some(one)).await, one, two);
        for (at, expected) in [(two, Some(("two", two))), (gone, None), (three, Some(("three", three)))] {
            let expected = expected.map(|(value, revision)| entry("/a", value, revision));
            let read = store.get(b"/a", Some(at)).await.unwrap();
            assert_eq!(read.entry, expected, "broken promise: a reopening keeps the history: at {at}");
            let ranged = store.range(Range::prefix("/").at(at)).await.unwrap();
            assert_eq!(ranged.entries, Vec::from_iter(expected));
        }
        let stale = store.update("/a".into(), "four".into(), two).await;
        assert!(
            matches!(stale, Err(Error::Conflict(_))),
            "broken promise: preconditions still hold after a reopening: {stale:?}"
        );
    }
    let four = fresh.store().update("/a".into(), "four".into(), three).await.unwrap();
    assert_eq!(now(fresh.store(), "/a").await, Some(entry("/a", "four", four)));
}

pub(crate) async fn a_watch_resumes_across_a_reopening(suite: &Suite) {
    let mut fresh = suite.fresh().await;
    if !fresh.can_reopen() {
        return skip("this backend cannot be reopened");
    }
    let base = fresh.store().revision().await.unwrap();
    let request = WatchRequest::prefix("/k/").previous(true);
    let mut expected = Vec::new();
    let mut seen = Vec::new();
    for round in 0..3 {
        let store = fresh.store();
        let after = seen.last().map_or(base, |(revision, _)| *revision);
        let mut probe = suite.watch(store, request.clone().after(after)).await;
        for n in 0..30 {
            put(store, "/other", "v").await;
            let value = format!("{round}-{n}");
            let txn = Txn::new().put(format!("/k/{}", n % 4), value.clone(), Precondition::Any).put(
                "/k/always",
                value.clone(),
                Precondition::Any,
            );
            expected.push((store.txn(txn).await.unwrap(), value));
        }
        // Some changes are read before the store closes, the rest by the resumed watch.
        for change in probe.changes(20).await {
            let event =
                change.events().iter().find(|event| event.key == "/k/always").expect("it is always written");
            let before = event.previous.as_ref().map(|previous| previous.revision);
            let last = seen.last().map(|(revision, _)| *revision);
            assert_eq!(before, last, "broken promise: a past event carries the previous entry: {change:?}");
            assert_eq!(
                change.events().len(),
                2,
                "broken promise: a transaction of the past is one change: {change:?}"
            );
            let value = event.value.as_ref().expect("it was put");
            seen.push((change.revision(), String::from_utf8_lossy(value).into_owned()));
        }
        drop(probe);
        fresh.reopen().await;
    }
    assert_eq!(
        seen,
        expected[..seen.len()],
        "broken promise: a watch resumed across a reopening misses nothing"
    );
    let after = seen.last().expect("something was seen").0;
    let newest = fresh.store().revision().await.unwrap();
    let rest = suite.watch(fresh.store(), request.after(after)).await.mark(newest).await.0;
    let rest: Vec<_> = rest.iter().map(|change| change.revision()).collect();
    let expected: Vec<_> = expected[seen.len()..].iter().map(|(revision, _)| *revision).collect();
    assert_eq!(rest, expected, "broken promise: a watch resumed across a reopening misses nothing");
}
