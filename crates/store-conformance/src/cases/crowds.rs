//! Many watches, slow watches, many readers.

use std::sync::Arc;

use k1s_store::{Change, Error, Precondition, Range, Result, Revision, Store, Txn, WatchRequest};

use crate::{
    probe::Probe,
    support::{Suite, put, skip},
};

pub(crate) async fn unread_watches_block_no_writer(suite: &Suite) {
    const WATCHES: usize = 200;
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let mut unread = Vec::new();
    for n in 0..WATCHES {
        let prefix = if n % 2 == 0 { String::new() } else { format!("/k/{}", n % 10) };
        unread.push(store.watch(WatchRequest::prefix(prefix).previous(n % 3 == 0)).await.unwrap());
    }
    let mut read = suite.watch(store, WatchRequest::prefix("/k/0")).await;
    let mut expected = Vec::new();
    for n in 0..suite.profile.many_writes {
        let revision = put(store, format!("/k/{}", n % 10), format!("{n}")).await;
        if n % 10 == 0 {
            expected.push(revision);
        }
    }
    let newest = store.revision().await.unwrap();
    let seen: Vec<_> = read.mark(newest).await.0.iter().map(|change| change.revision()).collect();
    assert_eq!(seen, expected, "broken promise: unread watches do not affect other watches");
    drop(unread);
    put(store, "/k/0", "after").await;
    assert_eq!(read.change().await.events()[0].value.as_deref(), Some(&b"after"[..]));
}

pub(crate) async fn a_watch_read_late_gets_everything_in_order(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let mut late = suite.watch(store, WatchRequest::prefix("/k/").previous(true)).await;
    // A watch that was read for a while and then stopped is in another state than one that was never read.
    let mut stalled = suite.watch(store, WatchRequest::prefix("/k/").previous(true)).await;
    let first = put(store, "/k/0", "first").await;
    assert_eq!(stalled.change().await.revision(), first);
    let mut expected = Vec::new();
    for n in 0..suite.profile.many_writes {
        expected.push(put(store, format!("/k/{}", n % 7), format!("{n}")).await);
        put(store, "/other", format!("{n}")).await;
    }
    let newest = store.revision().await.unwrap();
    let seen = stalled.mark(newest).await.0;
    check_tail(&expected, &seen, &Ok(newest));
    expected.insert(0, first);
    let seen = late.mark(newest).await.0;
    check_tail(&expected, &seen, &Ok(newest));
}

pub(crate) async fn a_watch_lagging_behind_a_compaction_gets_everything_or_an_error(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let late = suite.watch(store, WatchRequest::prefix("/k/")).await;
    let mut stalled = suite.watch(store, WatchRequest::prefix("/k/")).await;
    let first = put(store, "/k/0", "first").await;
    assert_eq!(stalled.change().await.revision(), first);
    let expected = write_many(store, suite.profile.many_writes).await;
    store.compact(*expected.last().expect("something was written")).await.unwrap();
    let newest = put(store, "/k/0", "last").await;
    let expected: Vec<_> = expected.into_iter().chain([newest]).collect();
    gets_everything_or_compacted(stalled, &expected, newest).await;
    let expected: Vec<_> = [first].into_iter().chain(expected).collect();
    gets_everything_or_compacted(late, &expected, newest).await;
}

pub(crate) async fn a_watch_lagging_behind_a_short_history_gets_everything_or_an_error(suite: &Suite) {
    const HISTORY: usize = 100;
    let Some(fresh) = suite.backend.bounded(HISTORY).await else {
        return skip("this backend cannot limit its history");
    };
    let store = fresh.store();
    let base = store.revision().await.unwrap();
    let late = suite.watch(store, WatchRequest::prefix("/k/")).await;
    let expected = write_many(store, suite.profile.many_writes.max(HISTORY * 20)).await;
    let newest = store.revision().await.unwrap();
    let stats = store.stats().await.unwrap();
    assert!(
        stats.oldest > base,
        "broken promise: history is limited\n  requested {HISTORY} revisions, it has {} to {}",
        stats.oldest,
        stats.revision
    );
    suite.compacted(store.range(Range::prefix("/k/").at(base)).await, base, stats.oldest);
    let oldest = store.range(Range::prefix("/k/").at(stats.oldest)).await;
    assert!(oldest.is_ok(), "broken promise: `oldest` can be read\n  {oldest:?}");
    match suite.watch_refused(store, WatchRequest::prefix("/k/").after(base)).await {
        Error::Compacted { .. } => {}
        other => {
            panic!("broken promise: a watch from before the history fails with Compacted\n  got {other:?}")
        }
    }
    gets_everything_or_compacted(late, &expected, newest).await;
    let from_oldest = suite.watch(store, WatchRequest::prefix("/k/").after(stats.oldest)).await;
    let expected: Vec<_> = expected.into_iter().filter(|revision| *revision > stats.oldest).collect();
    gets_everything_or_compacted(from_oldest, &expected, newest).await;
}

pub(crate) async fn a_read_during_writes_sees_whole_transactions(suite: &Suite) {
    let writes = suite.profile.many_writes / 10;
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let pair = |n: usize| {
        (0..4).fold(Txn::new(), |txn, key| txn.put(format!("/pair/{key}"), format!("{n}"), Precondition::Any))
    };
    store.txn(pair(0)).await.unwrap();
    let writer = {
        let store = store.clone();
        suite.env.spawn("writer", async move {
            for n in 1..=writes {
                store.txn(pair(n)).await.unwrap();
            }
        })
    };
    let mut last = Revision::default();
    loop {
        let done = writer.is_finished();
        let read = store.range(Range::prefix("/pair/")).await.unwrap();
        let first = &read.entries[0];
        assert!(
            read.entries.iter().all(|entry| (&entry.value, entry.revision) == (&first.value, first.revision)),
            "broken promise: a read shows one consistent snapshot\n  {read:?}"
        );
        assert!(
            read.revision >= last,
            "broken promise: a later read is not of an older revision\n  {last}, then {}",
            read.revision
        );
        last = read.revision;
        if done {
            assert_eq!(first.value, writes.to_string(), "acknowledged writes are visible to later reads");
            break;
        }
    }
    writer.await.unwrap();
}

async fn write_many(store: &Arc<dyn Store>, count: usize) -> Vec<Revision> {
    let mut revisions = Vec::with_capacity(count);
    for n in 0..count {
        revisions.push(put(store, format!("/k/{}", n % 7), format!("{n}")).await);
    }
    revisions
}

/// Reads a lagging watch: it yields everything, or a part without gaps and then [`Error::Compacted`].
async fn gets_everything_or_compacted(mut probe: Probe, expected: &[Revision], newest: Revision) {
    probe.ask();
    let (seen, end) = probe.until_mark(newest).await;
    check_tail(expected, &seen, &end);
    if end.is_err() {
        let after = probe.next().await;
        assert!(
            after.is_none(),
            "broken promise: an error is the last item of a watch\n  then came {after:?}"
        );
    }
}

#[track_caller]
fn check_tail(expected: &[Revision], seen: &[Arc<Change>], end: &Result<Revision>) {
    let seen: Vec<_> = seen.iter().map(|change| change.revision()).collect();
    let gap = seen.iter().zip(expected).position(|(seen, expected)| seen != expected);
    assert!(
        gap.is_none() && seen.len() <= expected.len(),
        "broken promise: a lagging watch yields changes in order without gaps\n  expected {:?} at item {gap:?}, got {:?}",
        gap.map(|at| expected[at]),
        gap.map(|at| seen[at])
    );
    match end {
        Ok(_) => {
            assert_eq!(seen.len(), expected.len(), "broken promise: a mark comes after all earlier changes")
        }
        Err(Error::Compacted { .. }) => {}
        Err(other) => panic!("broken promise: a lagging watch ends with Compacted\n  got {other:?}"),
    }
}
