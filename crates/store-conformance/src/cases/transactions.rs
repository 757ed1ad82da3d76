//! Transactions of several keys, and concurrent writers.

use std::sync::Arc;

use bytes::Bytes;
use k1s_store::{Error, Precondition, Range, Store, Txn, limits};

use crate::support::{Suite, conflict, entry, invalid, now, put, too_large};

pub(crate) async fn a_transaction_is_atomic_and_takes_one_revision(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let old = put(store, "/old", "v").await;
    let kept = put(store, "/kept", "v").await;
    let moved = Txn::new()
        .check("/kept", Precondition::Revision(kept))
        .create("/new", "v")
        .put("/free", "w", Precondition::Any)
        .delete("/old", Precondition::Revision(old));
    let revision = store.txn(moved).await.unwrap();
    suite.follows(kept, revision);
    let all = store.range(Range::prefix("/")).await.unwrap();
    assert_eq!(
        all.entries,
        [entry("/free", "w", revision), entry("/kept", "v", kept), entry("/new", "v", revision)],
        "broken promise: a transaction writes all its steps at one revision"
    );
    suite.unmoved(revision, all.revision, "reading");
}

pub(crate) async fn a_failed_precondition_writes_nothing(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let a = put(store, "/a", "v").await;
    let last = put(store, "/b", "v").await;
    let mut probe = suite.watch(store, k1s_store::WatchRequest::prefix("").after(last)).await;
    // Wherever the failing step is placed.
    let steps =
        |txn: Txn| txn.create("/c", "v").put("/a", "w", Precondition::Any).delete("/b", Precondition::Any);
    let failing = |txn: Txn| txn.create("/a/x", "v").put("/d", "v", Precondition::Exists);
    for txn in [failing(steps(Txn::new())), steps(failing(Txn::new()))] {
        conflict(store.txn(txn).await, "/d", Precondition::Exists, None);
    }
    let state = store.range(Range::prefix("")).await.unwrap();
    assert_eq!(state.entries, [entry("/a", "v", a), entry("/b", "v", last)]);
    suite.unmoved(last, state.revision, "a conflict");
    probe.quiet(last).await;
}

pub(crate) async fn a_check_is_a_precondition_without_a_write(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let guard = put(store, "/guard", "v").await;
    let guarded = |expected| Txn::new().check("/guard", expected).put("/a", "v", Precondition::Any);
    for expected in [Precondition::Exists, Precondition::Any, Precondition::Revision(guard)] {
        store.txn(guarded(expected)).await.unwrap();
    }
    assert_eq!(
        now(store, "/guard").await,
        Some(entry("/guard", "v", guard)),
        "broken promise: a check changes nothing"
    );
    let there = Some(entry("/guard", "v", guard));
    conflict(store.txn(guarded(Precondition::Absent)).await, "/guard", Precondition::Absent, there.clone());
    let newer = put(store, "/guard", "w").await;
    let stale = Precondition::Revision(guard);
    conflict(store.txn(guarded(stale)).await, "/guard", stale, Some(entry("/guard", "w", newer)));
    let absent = Txn::new().check("/none", Precondition::Absent).put("/a", "last", Precondition::Any);
    let last = store.txn(absent).await.unwrap();
    assert_eq!(now(store, "/a").await, Some(entry("/a", "last", last)));
    assert_eq!(now(store, "/none").await, None);
}

pub(crate) async fn a_transaction_that_only_checks_takes_no_revision(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let last = put(store, "/a", "v").await;
    let fine = Txn::new().check("/a", Precondition::Revision(last)).check("/b", Precondition::Absent);
    suite.unmoved(last, store.txn(fine).await.unwrap(), "a check");
    let not_fine = Txn::new().check("/a", Precondition::Revision(last)).check("/b", Precondition::Exists);
    conflict(store.txn(not_fine).await, "/b", Precondition::Exists, None);
    suite.unmoved(last, store.revision().await.unwrap(), "a check");
}

pub(crate) async fn invalid_transactions_are_refused(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let before = store.revision().await.unwrap();
    invalid(store.txn(Txn::new()).await, "a transaction without steps");
    invalid(store.create(Bytes::new(), "v".into()).await, "an empty key");
    invalid(store.txn(Txn::new().check("", Precondition::Absent)).await, "an empty key");
    let twice = Txn::new().create("/a", "1").put("/b", "1", Precondition::Any).create("/a", "2");
    invalid(store.txn(twice).await, "a key used twice");
    let check_and_put = Txn::new().check("/a", Precondition::Absent).create("/a", "2");
    invalid(store.txn(check_and_put).await, "a key used twice");
    suite.unmoved(before, store.revision().await.unwrap(), "a refused transaction");
    assert_eq!(store.range(Range::prefix("")).await.unwrap().entries, []);
}

pub(crate) async fn oversized_writes_are_refused(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let before = store.revision().await.unwrap();
    let key = Bytes::from(vec![b'k'; limits::MAX_KEY_BYTES + 1]);
    too_large(store.create(key, "v".into()).await, "a key over the limit");
    let value = Bytes::from(vec![b'v'; limits::MAX_VALUE_BYTES + 1]);
    too_large(store.create("/a".into(), value).await, "a value over the limit");
    let steps = (0..=limits::MAX_OPS).fold(Txn::new(), |txn, n| txn.create(format!("/{n}"), "v"));
    too_large(store.txn(steps).await, "a transaction with too many steps");
    suite.unmoved(before, store.revision().await.unwrap(), "a refused transaction");
    assert_eq!(store.range(Range::prefix("")).await.unwrap().entries, []);
}

pub(crate) async fn the_largest_allowed_transaction_is_accepted(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let base = store.revision().await.unwrap();
    let key = |n: usize| Bytes::from(format!("{n:0width$}", width = limits::MAX_KEY_BYTES));
    let steps = (0..limits::MAX_OPS).fold(Txn::new(), |txn, n| txn.create(key(n), "v"));
    let revision = store.txn(steps).await.unwrap();
    suite.follows(base, revision);
    let entries = store.range(Range::prefix("")).await.unwrap().entries;
    assert_eq!(entries.len(), limits::MAX_OPS);
    assert!(entries.iter().enumerate().all(|(n, found)| found.key == key(n) && found.revision == revision));
    let mut probe = suite.watch(store, k1s_store::WatchRequest::prefix("").after(base)).await;
    let change = probe.change().await;
    assert_eq!((change.revision(), change.events().len()), (revision, limits::MAX_OPS));
}

pub(crate) async fn racing_creates_have_one_winner(suite: &Suite) {
    let fresh = suite.fresh().await;
    for round in 0..20 {
        let key = format!("/lock/{round}");
        let tasks: Vec<_> = (0..8)
            .map(|client| {
                let (store, key) = (fresh.store().clone(), Bytes::from(key.clone()));
                suite.env.spawn("creator", async move { store.create(key, format!("{client}").into()).await })
            })
            .collect();
        let mut winners = Vec::new();
        let mut losers = Vec::new();
        for (client, task) in tasks.into_iter().enumerate() {
            match task.await.unwrap() {
                Ok(revision) => winners.push((client, revision)),
                Err(error) => losers.push(error),
            }
        }
        let [(client, revision)] = winners[..] else {
            panic!("broken promise: one of several creates of a key wins\n  these did: {winners:?}");
        };
        let there = entry(key.clone(), client.to_string(), revision);
        for error in losers {
            conflict(Err::<(), _>(error), key.clone(), Precondition::Absent, Some(there.clone()));
        }
        assert_eq!(now(fresh.store(), &key).await, Some(there));
    }
}

pub(crate) async fn racing_counters_lose_no_update(suite: &Suite) {
    const CLIENTS: usize = 6;
    const EACH: usize = 25;
    let fresh = suite.fresh().await;
    put(fresh.store(), "/counter", "0").await;
    let tasks: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let store = fresh.store().clone();
            suite.env.spawn("counter", async move {
                for _ in 0..EACH {
                    increment(&store).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let total = now(fresh.store(), "/counter").await.expect("the counter exists");
    assert_eq!(
        total.value,
        (CLIENTS * EACH).to_string(),
        "broken promise: an update replaces only the revision it names, so no update is lost"
    );
}

async fn increment(store: &Arc<dyn Store>) {
    let mut current = now(store, "/counter").await.expect("the counter exists");
    loop {
        let count: usize = std::str::from_utf8(&current.value).unwrap().parse().unwrap();
        match store.update("/counter".into(), (count + 1).to_string().into(), current.revision).await {
            Ok(_) => return,
            // The conflict holds the entry needed for the retry.
            Err(Error::Conflict(conflict)) => {
                current = conflict.current.expect("the counter is never deleted")
            }
            Err(error) => panic!("an update succeeds or conflicts, got: {error}"),
        }
    }
}
