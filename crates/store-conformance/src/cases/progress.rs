//! Progress marks.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use k1s_store::{WatchItem, WatchRequest};

use crate::support::{Suite, put};

pub(crate) async fn a_requested_mark_is_not_older_than_the_request(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let mut probe = suite.watch(store, WatchRequest::prefix("/a/")).await;
    let base = store.revision().await.unwrap();
    probe.quiet(base).await;
    for n in 0..5 {
        let revision = put(store, format!("/a/{n}"), "v").await;
        let (changes, mark) = probe.mark(revision).await;
        assert_eq!(changes.len(), 1, "broken promise: a mark at {mark} comes after the change of {revision}");
        let newest = store.revision().await.unwrap();
        assert!(
            mark <= newest,
            "broken promise: a mark is not in the future\n  {mark}, the store is at {newest}"
        );
    }
    // One mark may answer several requests, but at least one must come.
    probe.ask();
    probe.ask();
    let newest = store.revision().await.unwrap();
    probe.quiet(newest).await;
}

pub(crate) async fn a_requested_mark_covers_writes_under_other_prefixes(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let mut probe = suite.watch(store, WatchRequest::prefix("/quiet/")).await;
    for n in 0..5 {
        let revision = put(store, format!("/busy/{n}"), "v").await;
        let (changes, mark) = probe.mark(revision).await;
        assert_eq!(changes, [], "broken promise: a watch yields only changes under its prefix");
        assert!(mark >= revision, "the mark {mark} is older than {revision}");
    }
}

pub(crate) async fn a_mark_is_never_ahead_of_events(suite: &Suite) {
    let writes = suite.profile.many_writes / 5;
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let base = store.revision().await.unwrap();
    let mut probe = suite.watch(store, WatchRequest::prefix("/k/")).await;
    let writer = {
        let store = store.clone();
        suite.env.spawn("writer", async move {
            let mut written = Vec::new();
            for n in 0..writes {
                let inside = n % 3 != 0;
                let revision = put(&store, if inside { "/k/a" } else { "/other" }, format!("{n}")).await;
                if inside {
                    written.push(revision);
                }
            }
            written
        })
    };
    let mut items = Vec::new();
    loop {
        let done = writer.is_finished();
        let newest = store.revision().await.unwrap();
        probe.ask();
        loop {
            let item = probe.next().await.expect("the store is open").expect("nothing is compacted");
            items.push(item.clone());
            if matches!(item, WatchItem::Progress(mark) if mark >= newest) {
                break;
            }
        }
        if done {
            break;
        }
    }
    let mut written = writer.await.unwrap().into_iter().peekable();
    let mut reached = base;
    for item in items {
        match item {
            WatchItem::Change(change) => {
                assert_eq!(
                    Some(change.revision()),
                    written.next(),
                    "broken promise: a watch yields each change under its prefix, in order"
                );
                assert!(
                    change.revision() > reached,
                    "broken promise: a mark is never ahead of events\n  a mark or change at {reached} came before {change:?}"
                );
                reached = change.revision();
            }
            WatchItem::Progress(mark) => {
                assert!(
                    mark >= reached,
                    "broken promise: revisions only grow\n  the mark {mark} came after {reached}"
                );
                let next = written.peek();
                assert!(
                    next.is_none_or(|next| *next > mark),
                    "broken promise: a mark is never ahead of events\n  the mark {mark} came before the change of {next:?}"
                );
                reached = mark;
            }
        }
    }
    assert_eq!(written.next(), None, "broken promise: the last mark came before the last change");
}

pub(crate) async fn a_watch_can_resume_from_a_mark(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let mut probe = suite.watch(store, WatchRequest::prefix("/a/")).await;
    let mut resume = store.revision().await.unwrap();
    for n in 0..10 {
        let other = put(store, format!("/b/{n}"), "v").await;
        let mark = probe.mark(other).await.1;
        // All history before the mark may be compacted: resuming from the mark needs none of it.
        store.compact(mark).await.unwrap();
        assert!(mark > resume, "a mark advances with the store");
        resume = mark;
        let revision = put(store, format!("/a/{n}"), "v").await;
        drop(probe);
        probe = suite.watch(store, WatchRequest::prefix("/a/").after(resume)).await;
        let change = probe.change().await;
        assert_eq!(change.revision(), revision, "broken promise: a watch resumed from a mark misses nothing");
    }
}

pub(crate) async fn a_requested_mark_is_not_older_than_any_earlier_read(suite: &Suite) {
    let rounds = suite.profile.many_writes / 10;
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (store, stop, env) = (store.clone(), stop.clone(), suite.env.clone());
        suite.env.spawn("writer", async move {
            let mut n = 0;
            while !stop.load(Ordering::Acquire) {
                put(&store, "/other", format!("{n}")).await;
                n += 1;
                env.yield_now().await;
            }
        })
    };
    let mut probe = suite.watch(store, WatchRequest::prefix("/quiet/")).await;
    for _ in 0..rounds {
        // A read returns the store's newest revision, whether or not its write is acknowledged yet.
        let newest = store.revision().await.unwrap();
        probe.ask();
        match probe.next().await {
            Some(Ok(WatchItem::Progress(mark))) => assert!(
                mark >= newest,
                "broken promise: a mark is not older than the newest revision when it was requested\n  \
                 the store was at {newest}, the mark is {mark}"
            ),
            other => panic!("broken promise: a mark is due\n  the watch yielded {other:?}"),
        }
    }
    stop.store(true, Ordering::Release);
    writer.await.unwrap();
}
