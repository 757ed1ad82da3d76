//! Operations on single keys.

use bytes::Bytes;
use k1s_store::{Precondition, Revision, Txn};

use crate::support::{Suite, conflict, entry, now, put, remove};

pub(crate) async fn an_empty_store_has_a_revision_that_grows_with_writes(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let empty = store.revision().await.unwrap();
    assert!(empty >= Revision::FIRST, "broken promise: a revision that is seen is never 0\n  it is {empty}");
    let stats = store.stats().await.unwrap();
    assert_eq!(stats.keys, 0, "the store a case is given must be empty");
    let mut last = empty;
    for n in 0..5 {
        let revision = put(store, format!("/{n}"), "v").await;
        suite.follows(last, revision);
        suite.unmoved(revision, store.revision().await.unwrap(), "reading");
        last = revision;
    }
}

pub(crate) async fn a_value_is_created_read_updated_and_deleted(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let key = Bytes::from("/pods/web");
    let empty = store.get(&key, None).await.unwrap();
    assert_eq!(empty.entry, None, "broken promise: an empty store has no entries");

    let created = store.create(key.clone(), "one".into()).await.unwrap();
    suite.follows(empty.revision, created);
    let read = store.get(&key, None).await.unwrap();
    suite.unmoved(created, read.revision, "reading");
    assert_eq!(read.entry, Some(entry(key.clone(), "one", created)));

    let updated = store.update(key.clone(), "two".into(), created).await.unwrap();
    suite.follows(created, updated);
    assert_eq!(now(store, "/pods/web").await, Some(entry(key.clone(), "two", updated)));

    let deleted = store.delete(key.clone(), updated).await.unwrap();
    suite.follows(updated, deleted);
    assert_eq!(now(store, "/pods/web").await, None, "broken promise: a deleted key is absent");

    let again = store.create(key.clone(), "three".into()).await.unwrap();
    suite.follows(deleted, again);
    assert_eq!(now(store, "/pods/web").await, Some(entry(key, "three", again)));
}

pub(crate) async fn creating_an_existing_key_conflicts_and_returns_its_entry(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let created = store.create("/a".into(), "one".into()).await.unwrap();
    let result = store.create("/a".into(), "two".into()).await;
    conflict(result, "/a", Precondition::Absent, Some(entry("/a", "one", created)));
    assert_eq!(now(store, "/a").await, Some(entry("/a", "one", created)));
    suite.unmoved(created, store.revision().await.unwrap(), "a conflict");
}

pub(crate) async fn a_stale_update_or_delete_conflicts_and_returns_the_current_entry(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let old = store.create("/a".into(), "one".into()).await.unwrap();
    let new = store.update("/a".into(), "two".into(), old).await.unwrap();
    let there = Some(entry("/a", "two", new));
    let stale = Precondition::Revision(old);
    conflict(store.update("/a".into(), "three".into(), old).await, "/a", stale, there.clone());
    conflict(store.delete("/a".into(), old).await, "/a", stale, there.clone());
    // Only the revision that wrote the value matches, not one at which the value existed.
    let other = put(store, "/b", "v").await;
    let later = Precondition::Revision(other);
    conflict(store.update("/a".into(), "three".into(), other).await, "/a", later, there.clone());
    assert_eq!(now(store, "/a").await, there);
    suite.unmoved(other, store.revision().await.unwrap(), "a conflict");
}

pub(crate) async fn updating_or_deleting_an_absent_key_conflicts_without_an_entry(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let before = store.revision().await.unwrap();
    let first = Precondition::Revision(before);
    conflict(store.update("/a".into(), "v".into(), before).await, "/a", first, None);
    conflict(store.delete("/a".into(), before).await, "/a", first, None);
    // Revision 0 does not mean "absent".
    let zero = Revision::new(0);
    conflict(store.update("/a".into(), "v".into(), zero).await, "/a", Precondition::Revision(zero), None);
    let must_exist = Txn::new().delete("/a", Precondition::Exists);
    conflict(store.txn(must_exist).await, "/a", Precondition::Exists, None);
    // A deleted key is as absent as one that never existed.
    let created = put(store, "/a", "v").await;
    remove(store, "/a").await;
    conflict(store.delete("/a".into(), created).await, "/a", Precondition::Revision(created), None);
    assert_eq!(now(store, "/a").await, None);
}

pub(crate) async fn an_unconditional_put_or_delete_always_succeeds(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let first = put(store, "/a", "one").await;
    assert_eq!(now(store, "/a").await, Some(entry("/a", "one", first)));
    let second = put(store, "/a", "two").await;
    suite.follows(first, second);
    assert_eq!(now(store, "/a").await, Some(entry("/a", "two", second)));
    // Writing the same value again is a write as well.
    let third = put(store, "/a", "two").await;
    suite.follows(second, third);
    assert_eq!(now(store, "/a").await, Some(entry("/a", "two", third)));
    let removed = remove(store, "/a").await;
    suite.follows(third, removed);
    assert_eq!(now(store, "/a").await, None);
}

pub(crate) async fn a_put_that_must_exist_replaces_and_never_creates(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let replace = || Txn::new().put("/a", "new", Precondition::Exists);
    conflict(store.txn(replace()).await, "/a", Precondition::Exists, None);
    put(store, "/a", "old").await;
    let replaced = store.txn(replace()).await.unwrap();
    assert_eq!(now(store, "/a").await, Some(entry("/a", "new", replaced)));
}

pub(crate) async fn deleting_an_absent_key_takes_no_revision(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let before = put(store, "/b", "v").await;
    let mut probe = suite.watch(store, k1s_store::WatchRequest::prefix("").after(before)).await;
    suite.unmoved(before, remove(store, "/a").await, "deleting an absent key");
    let several = Txn::new().delete("/a", Precondition::Any).delete("/c", Precondition::Absent);
    suite.unmoved(before, store.txn(several).await.unwrap(), "deleting an absent key");
    suite.unmoved(before, store.revision().await.unwrap(), "deleting an absent key");
    probe.quiet(before).await;
}

pub(crate) async fn an_empty_value_is_not_an_absent_key(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let base = store.revision().await.unwrap();
    let created = store.create("/a".into(), Bytes::new()).await.unwrap();
    assert_eq!(now(store, "/a").await, Some(entry("/a", "", created)));
    let result = store.create("/a".into(), "v".into()).await;
    conflict(result, "/a", Precondition::Absent, Some(entry("/a", "", created)));
    let ranged = store.range(k1s_store::Range::prefix("/")).await.unwrap();
    assert_eq!(ranged.entries, [entry("/a", "", created)]);
    let updated = store.update("/a".into(), Bytes::new(), created).await.unwrap();

    let mut probe = suite.watch(store, k1s_store::WatchRequest::prefix("/").after(base).previous(true)).await;
    let changes = probe.changes(2).await;
    for change in &changes {
        assert_eq!(
            change.events()[0].value.as_deref(),
            Some(&b""[..]),
            "an empty value is a value: {change:?}"
        );
    }
    let previous = changes[1].events()[0].previous.as_ref().expect("the previous value is the empty one");
    assert_eq!((&previous.value[..], previous.revision), (&b""[..], created));
    store.delete("/a".into(), updated).await.unwrap();
    assert_eq!(now(store, "/a").await, None);
}

pub(crate) async fn large_values_are_kept_whole(suite: &Suite) {
    const SIZE: usize = 1 << 20;
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let base = store.revision().await.unwrap();
    let pattern = |seed: usize| -> Bytes { (0..SIZE).map(|i| (i * 31 + i / 251 + seed) as u8).collect() };
    let mut revisions = Vec::new();
    for n in 0..4 {
        revisions.push(put(store, format!("/large/{n}"), pattern(n)).await);
    }
    let replaced = put(store, "/large/0", pattern(9)).await;

    // `assert!` where `assert_eq!` would print megabytes.
    let all = store.range(k1s_store::Range::prefix("/large/")).await.unwrap().entries;
    let expected = [pattern(9), pattern(1), pattern(2), pattern(3)];
    assert_eq!(all.len(), expected.len());
    for (found, wanted) in all.iter().zip(&expected) {
        assert!(found.value == wanted, "broken promise: a value is read back unchanged\n  {found:?}");
    }
    let past = store.get(b"/large/0", Some(revisions[0])).await.unwrap().entry.expect("it was written");
    assert!(past.value == pattern(0) && past.revision == revisions[0], "the past value differs: {past:?}");
    let mut probe =
        suite.watch(store, k1s_store::WatchRequest::prefix("/large/").after(base).previous(true)).await;
    let changes = probe.changes(5).await;
    let last = &changes[4].events()[0];
    assert_eq!(changes[4].revision(), replaced);
    assert!(last.value.as_ref() == Some(&pattern(9)), "the value of the event differs: {last:?}");
    let previous = last.previous.as_ref().expect("the key existed before");
    assert!(previous.value == pattern(0), "the previous value differs: {last:?}");
}

pub(crate) async fn statistics_report_keys_revision_and_oldest(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let mut last = store.revision().await.unwrap();
    for n in 0..10 {
        last = put(store, format!("/{n}"), "value").await;
    }
    last = put(store, "/0", "longer value").await.max(last);
    last = remove(store, "/9").await.max(last);
    let stats = store.stats().await.unwrap();
    assert_eq!(stats.keys, 9, "broken promise: `keys` counts the keys that have a value now");
    suite.unmoved(last, stats.revision, "reading statistics");
    assert!(stats.oldest <= stats.revision, "broken promise: the oldest revision is not after the newest");
    assert_eq!(stats.degraded, None, "broken promise: a store that accepts writes is not degraded");
    assert_eq!(store.health().await, Ok(()), "broken promise: a store that accepts writes is healthy");
    if let Some(bytes) = stats.bytes {
        let expected = 9 * "/0".len() + 8 * "value".len() + "longer value".len();
        assert_eq!(bytes, expected as u64, "broken promise: `bytes` counts the current keys and values");
    }
    store.compact(last).await.unwrap();
    let stats = store.stats().await.unwrap();
    assert_eq!(stats.oldest, last, "broken promise: `oldest` is the oldest revision that can be read");
    assert_eq!(stats.keys, 9, "broken promise: compaction removes no current entry");

    let watch = suite.watch(store, k1s_store::WatchRequest::prefix("/")).await;
    let open = store.stats().await.unwrap().watches;
    assert!(open >= 1, "broken promise: `watches` counts the open watches\n  one is open, it reports {open}");
    drop(watch);
}
