//! Compaction of history.

use k1s_store::{Error, Range, Revision, WatchRequest};

use crate::support::{Suite, entry, now, put, remove};

pub(crate) async fn compaction_removes_earlier_revisions(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let first = put(store, "/a", "one").await;
    let second = put(store, "/a", "two").await;
    let third = put(store, "/a", "three").await;
    store.compact(second).await.unwrap();
    suite.compacted(store.get(b"/a", Some(first)).await, first, second);
    suite.compacted(store.get(b"/none", Some(first)).await, first, second);
    suite.compacted(store.range(Range::prefix("/").at(first)).await, first, second);
    let zero = Revision::new(0);
    suite.compacted(store.get(b"/a", Some(zero)).await, zero, second);
    let oldest = store.stats().await.unwrap().oldest;
    assert_eq!(oldest, second, "broken promise: after a compaction its revision is the oldest");
    for (at, value) in [(second, "two"), (third, "three")] {
        let read = store.get(b"/a", Some(at)).await.unwrap();
        assert_eq!(
            read.entry,
            Some(entry("/a", value, at)),
            "broken promise: revisions from the compaction on stay readable"
        );
        let ranged = store.range(Range::prefix("/").at(at)).await.unwrap();
        assert_eq!(ranged.entries, [entry("/a", value, at)]);
    }
}

pub(crate) async fn compaction_keeps_current_entries(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let old = put(store, "/old", "v").await;
    put(store, "/gone", "v").await;
    let deleted = remove(store, "/gone").await;
    let newest = put(store, "/new", "v").await;
    for at in [old, deleted, newest] {
        store.compact(at).await.unwrap();
        suite.unmoved(newest, store.revision().await.unwrap(), "a compaction");
        let state = store.range(Range::prefix("/")).await.unwrap();
        assert_eq!(
            state.entries,
            [entry("/new", "v", newest), entry("/old", "v", old)],
            "broken promise: a compaction keeps current entries and their revisions"
        );
        assert_eq!(now(store, "/gone").await, None);
    }
    let updated = store.update("/old".into(), "w".into(), old).await.unwrap();
    suite.follows(newest, updated);
    let then = store.range(Range::prefix("/").at(newest)).await.unwrap();
    assert_eq!(then.entries, [entry("/new", "v", newest), entry("/old", "v", old)]);
}

pub(crate) async fn a_watch_from_before_the_compaction_is_refused(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let first = put(store, "/a", "one").await;
    let second = put(store, "/b", "v").await;
    let third = put(store, "/a", "two").await;
    store.compact(third).await.unwrap();
    // Even if nothing under the prefix changed in between: the store has no record of it any more.
    for (prefix, after) in [("/a", first), ("/a", second), ("", first), ("/none/", second)] {
        match suite.watch_refused(store, WatchRequest::prefix(prefix).after(after)).await {
            Error::Compacted { oldest, .. } if oldest == third => {}
            other => panic!(
                "broken promise: a watch after {after} of a store compacted to {third} fails with Compacted\n  got {other:?}"
            ),
        }
    }
}

pub(crate) async fn a_watch_from_the_compaction_on_works(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    put(store, "/a", "one").await;
    let second = put(store, "/a", "two").await;
    let third = put(store, "/a", "three").await;
    store.compact(second).await.unwrap();
    let mut probe = suite.watch(store, WatchRequest::prefix("/a").after(second).previous(true)).await;
    let change = probe.change().await;
    assert_eq!(change.revision(), third, "broken promise: a watch from the oldest revision misses nothing");
    let previous = change.events()[0].previous.as_ref().expect("the key existed before");
    assert_eq!((&previous.value[..], previous.revision), (&b"two"[..], second));
    let fourth = remove(store, "/a").await;
    assert_eq!(probe.change().await.revision(), fourth);
    // From the newest revision, with all earlier history compacted.
    store.compact(fourth).await.unwrap();
    let mut late = suite.watch(store, WatchRequest::prefix("/a").after(fourth)).await;
    let fifth = put(store, "/a", "five").await;
    assert_eq!(late.change().await.revision(), fifth);
    assert_eq!(probe.change().await.revision(), fifth, "a watch that does not lag survives a compaction");
}

pub(crate) async fn compacting_to_the_same_or_an_earlier_revision_changes_nothing(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let first = put(store, "/a", "one").await;
    let second = put(store, "/a", "two").await;
    put(store, "/a", "three").await;
    for at in [second, second, first, Revision::new(0)] {
        let result = store.compact(at).await;
        assert!(
            result.is_ok(),
            "broken promise: compacting to {at} when the store is compacted to {second} changes nothing\n  got {result:?}"
        );
        assert_eq!(store.stats().await.unwrap().oldest, second, "broken promise: history does not come back");
        suite.compacted(store.get(b"/a", Some(first)).await, first, second);
        assert_eq!(store.get(b"/a", Some(second)).await.unwrap().entry, Some(entry("/a", "two", second)));
    }
}

pub(crate) async fn compacting_to_a_future_revision_is_an_error(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let first = put(store, "/a", "one").await;
    let newest = put(store, "/a", "two").await;
    let future = suite.far_future(newest);
    suite.future(store.compact(future).await, future, newest);
    let past = store.get(b"/a", Some(first)).await.unwrap();
    assert_eq!(
        past.entry,
        Some(entry("/a", "one", first)),
        "broken promise: a failed compaction changes nothing"
    );
}
