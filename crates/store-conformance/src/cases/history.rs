//! Reads at past and future revisions.

use k1s_store::{Precondition, Range, Txn};

use crate::support::{Suite, entry, put, remove};

pub(crate) async fn every_past_revision_can_be_read(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let before = put(store, "/other", "v").await;
    let created = put(store, "/a", "one").await;
    let between = put(store, "/other", "w").await;
    let updated = put(store, "/a", "two").await;
    let deleted = remove(store, "/a").await;
    let gone = put(store, "/other", "x").await;
    let recreated = put(store, "/a", "three").await;
    let last = put(store, "/other", "y").await;
    let timeline = [
        (before, None),
        (created, Some(entry("/a", "one", created))),
        (between, Some(entry("/a", "one", created))),
        (updated, Some(entry("/a", "two", updated))),
        (deleted, None),
        (gone, None),
        (recreated, Some(entry("/a", "three", recreated))),
        (last, Some(entry("/a", "three", recreated))),
    ];
    for (at, expected) in timeline {
        let read = store.get(b"/a", Some(at)).await.unwrap();
        assert_eq!(read.revision, at, "broken promise: a read at a revision is of that revision");
        assert_eq!(read.entry, expected, "broken promise: a read at {at} shows the state of that revision");
        let ranged = store.range(Range::prefix("/a").at(at)).await.unwrap();
        assert_eq!(ranged.revision, at, "broken promise: a read at a revision is of that revision");
        assert_eq!(
            ranged.entries,
            Vec::from_iter(expected),
            "broken promise: a range at {at} shows the state of that revision"
        );
    }
}

pub(crate) async fn a_range_at_a_past_revision_has_the_entries_of_that_revision(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let mut firsts = Vec::new();
    for n in 0..6 {
        firsts.push(put(store, format!("/r/{n}"), "old").await);
    }
    let then = *firsts.last().unwrap();
    // Later writes: one update, the first and the last deleted, and keys created before, between and after.
    let since = Txn::new()
        .put("/r/2", "new", Precondition::Any)
        .delete("/r/0", Precondition::Any)
        .delete("/r/5", Precondition::Any)
        .create("/r/", "new")
        .create("/r/25", "new")
        .create("/r/9", "new");
    store.txn(since).await.unwrap();
    remove(store, "/r/9").await;
    let old = |n: usize| entry(format!("/r/{n}"), "old", firsts[n]);

    let all = store.range(Range::prefix("/r/").at(then)).await.unwrap();
    assert_eq!(all.entries, (0..6).map(old).collect::<Vec<_>>(), "broken promise: a past range is complete");
    assert!(!all.more);
    let page = store.range(Range::prefix("/r/").at(then).limit(3)).await.unwrap();
    assert_eq!((page.entries, page.more), ((0..3).map(old).collect(), true));
    let page = store.range(Range::prefix("/r/").at(then).start("/r/3").limit(3)).await.unwrap();
    assert_eq!((page.entries, page.more), ((3..6).map(old).collect(), false));
    let page = store.range(Range::prefix("/r/").at(then).start("/r/5").limit(5)).await.unwrap();
    assert_eq!(
        (page.entries, page.more),
        (vec![old(5)], false),
        "keys deleted later are still in the past range"
    );
    let earlier = store.range(Range::prefix("/r/").at(firsts[2])).await.unwrap();
    assert_eq!(earlier.entries, (0..3).map(old).collect::<Vec<_>>());
}

pub(crate) async fn a_future_revision_cannot_be_read(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let newest = put(store, "/a", "v").await;
    let future = suite.far_future(newest);
    suite.future(store.get(b"/a", Some(future)).await, future, newest);
    suite.future(store.get(b"/none", Some(future)).await, future, newest);
    suite.future(store.range(Range::prefix("/").at(future)).await, future, newest);
    suite.future(store.range(Range::prefix("/none/").at(future).limit(1)).await, future, newest);
    let now = store.get(b"/a", Some(newest)).await.unwrap();
    assert_eq!(now.entry, Some(entry("/a", "v", newest)), "the newest revision is not in the future");
}
