//! Isolation of lists, and the memory that snapshots keep and release.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::*;

type Entries = Vec<(String, String)>;

fn store() -> MemoryStore {
    let (env, _clock) = Env::simulated(1);
    MemoryStore::new(env, MemoryOptions::default())
}

impl MemoryStore {
    fn do_all(&self, txn: Txn) -> Revision {
        self.shared.write(txn).unwrap()
    }

    fn write(&self, key: &'static str, value: &'static str) -> Revision {
        self.do_all(Txn::new().put(key, value, Precondition::Any))
    }

    fn remove(&self, key: &'static str) -> Revision {
        self.do_all(Txn::new().delete(key, Precondition::Exists))
    }

    fn snapshot(&self) -> Snapshot<'_> {
        self.shared.snapshot(&self.shared.newest.read())
    }

    /// Number of older values that the newest cells keep.
    fn kept(&self) -> usize {
        let cells = self.shared.newest.read().entries.ordered();
        cells.within(&Range::default()).map(|cell| cell.kept()).sum()
    }

    fn assert_nothing_is_kept(&self) {
        assert_eq!((self.kept(), self.shared.pins.keeping()), (0, 0));
    }
}

impl Snapshot<'_> {
    fn all(&self) -> Entries {
        let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        let entries = self.entries(&Range::default());
        assert!(entries.iter().all(|entry| entry.revision <= self.revision));
        entries.iter().map(|entry| (text(&entry.key), text(&entry.value))).collect()
    }
}

fn entries(expected: &[(&str, &str)]) -> Entries {
    expected.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

#[test]
fn a_snapshot_that_is_held_for_long_sees_the_old_values() {
    let store = store();
    store.do_all(Txn::new().create("/a", "1").create("/b", "1"));
    let old = store.snapshot();
    for value in ["2", "3", "4"] {
        store.write("/a", value);
    }
    let newer = store.snapshot();
    store.write("/a", "5");
    store.write("/c", "1");
    assert_eq!(old.all(), entries(&[("/a", "1"), ("/b", "1")]));
    assert_eq!(newer.all(), entries(&[("/a", "4"), ("/b", "1")]));
    assert_eq!(store.snapshot().all(), entries(&[("/a", "5"), ("/b", "1"), ("/c", "1")]));
}

#[test]
fn a_recreated_key_is_a_different_entry_to_old_snapshots() {
    let store = store();
    store.write("/a", "first");
    let before = store.snapshot();
    store.remove("/a");
    let between = store.snapshot();
    store.write("/a", "second");
    let after = store.snapshot();
    store.write("/a", "third");
    store.remove("/a");
    assert_eq!(before.all(), entries(&[("/a", "first")]));
    assert_eq!(between.all(), entries(&[]));
    assert_eq!(after.all(), entries(&[("/a", "second")]));
    assert_eq!(store.snapshot().all(), entries(&[]));
}

#[test]
fn only_values_visible_to_a_snapshot_are_kept_during_many_writes() {
    let store = store();
    store.write("/a", "0");
    let first = store.snapshot();
    for _ in 0..50 {
        store.write("/a", "1");
    }
    assert_eq!(store.kept(), 1, "for one snapshot, one value");
    let same_revision = [store.snapshot(), store.snapshot()];
    for _ in 0..50 {
        store.write("/a", "2");
    }
    assert_eq!(store.kept(), 2);
    // Readers come and go, but there is always one.
    let mut reader = store.snapshot();
    for _ in 0..50 {
        store.write("/a", "3");
        reader = store.snapshot();
    }
    store.write("/a", "4");
    assert_eq!(store.kept(), 3, "for the first, the second, and the last one");
    assert_eq!(first.all(), entries(&[("/a", "0")]));
    assert_eq!(same_revision[1].all(), entries(&[("/a", "1")]));
    assert_eq!(reader.all(), entries(&[("/a", "3")]));
    drop((first, same_revision, reader));
    store.assert_nothing_is_kept();
}

/// A value whose references are counted.
struct Tracked(#[expect(dead_code, reason = "it is counted")] Arc<()>);

impl AsRef<[u8]> for Tracked {
    fn as_ref(&self) -> &[u8] {
        b"tracked"
    }
}

#[test]
fn memory_is_released_with_the_last_snapshot_that_sees_it() {
    let (env, _clock) = Env::simulated(1);
    let feed = FeedOptions { changes: 1, ..FeedOptions::default() };
    let store = MemoryStore::new(env, MemoryOptions { history_revisions: 0, feed, ..Default::default() });
    let alive = Arc::new(());
    let tracked = || Bytes::from_owner(Tracked(alive.clone()));
    store
        .do_all(Txn::new().create("/changed", tracked()).create("/deleted", tracked()).create("/other", "1"));
    let snapshots = [store.snapshot(), store.snapshot()];
    store.write("/changed", "2");
    store.remove("/deleted");
    store.write("/other", "2");
    for snapshot in snapshots {
        assert_eq!(Arc::strong_count(&alive), 3, "both are kept while a snapshot can read them");
        assert_eq!(snapshot.all().len(), 3);
    }
    assert_eq!(Arc::strong_count(&alive), 1);
    store.assert_nothing_is_kept();
}

#[test]
fn without_readers_nothing_is_kept() {
    let store = store();
    drop(store.snapshot());
    for _ in 0..10 {
        store.write("/a", "1");
        store.write("/b", "1");
        store.remove("/a");
        store.assert_nothing_is_kept();
    }
}

#[test]
fn snapshots_agree_with_copies_in_any_order_of_writes_and_drops() {
    for seed in 0..60 {
        let (env, _clock) = Env::simulated(seed);
        let store = store();
        let mut now = BTreeMap::new();
        let mut held = Vec::new();
        for step in 0..400 {
            let mut txn = Txn::new();
            for key in 0..12 {
                let key = format!("/{key:02}");
                match env.random_below(24) {
                    0 => {
                        now.remove(&key);
                        txn = txn.delete(key, Precondition::Any);
                    }
                    1..=3 => {
                        now.insert(key.clone(), step.to_string());
                        txn = txn.put(key, step.to_string(), Precondition::Any);
                    }
                    _ => {}
                }
            }
            if !txn.ops().is_empty() {
                store.do_all(txn);
            }
            if env.random_below(4) == 0 {
                held.push((store.snapshot(), now.clone()));
            }
            if !held.is_empty() && env.random_below(4) == 0 {
                let any = env.random_below(held.len() as u64) as usize;
                let (snapshot, expected) = held.swap_remove(any);
                assert_eq!(snapshot.all(), expected.into_iter().collect::<Entries>(), "seed {seed}");
            }
        }
        assert_eq!(store.snapshot().all(), now.into_iter().collect::<Entries>(), "seed {seed}");
        for (snapshot, expected) in held {
            assert_eq!(snapshot.all(), expected.into_iter().collect::<Entries>(), "seed {seed}");
        }
        store.assert_nothing_is_kept();
    }
}

#[test]
fn lists_concurrent_with_writers_see_one_revision() {
    let store = store();
    let keys: Vec<String> = (0..300).map(|key| format!("/{key:03}")).collect();
    let write = |value: u64| {
        let begin = value as usize % 3 * 100;
        // Every transaction moves a value on by a third of the keys, and deletes and creates another one.
        let txn = Txn::new().put("/last", value.to_string(), Precondition::Any);
        let txn = if value.is_multiple_of(2) {
            txn.delete("/odd", Precondition::Any)
        } else {
            txn.create("/odd", "")
        };
        let third = keys[begin..begin + 100].iter();
        store.do_all(third.fold(txn, |txn, key| txn.put(key.clone(), value.to_string(), Precondition::Any)));
    };
    (0..3).for_each(write);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (3..3000).for_each(write));
        while !writer.is_finished() {
            let entries: BTreeMap<_, _> = store.snapshot().all().into_iter().collect();
            let last: u64 = entries["/last"].parse().unwrap();
            assert_eq!(entries.contains_key("/odd"), last % 2 == 1);
            for (place, key) in keys.iter().enumerate() {
                let third = place as u64 / 100;
                let age = (last % 3 + 3 - third) % 3;
                assert_eq!(entries[key], (last - age).to_string(), "{key} when {last} was last");
            }
        }
    });
    store.assert_nothing_is_kept();
}

#[test]
fn the_table_shrinks_when_keys_are_deleted_and_finds_the_rest() {
    let store = store();
    let keys: Vec<String> = (0..40_000).map(|key| format!("/{key:05}")).collect();
    for some in keys.chunks(100) {
        store.do_all(some.iter().fold(Txn::new(), |txn, key| txn.create(key.clone(), "1")));
    }
    let full = store.shared.newest.read().entries.capacity();
    for some in keys[100..].chunks(100) {
        store.do_all(some.iter().fold(Txn::new(), |txn, key| txn.delete(key.clone(), Precondition::Exists)));
    }
    assert!(full >= keys.len());
    assert!(store.shared.newest.read().entries.capacity() < full / 2);
    store
        .do_all(keys[..100].iter().fold(Txn::new(), |txn, key| txn.check(key.clone(), Precondition::Exists)));
}

#[test]
fn a_write_that_waits_for_the_close_is_refused() {
    let store = store();
    let close = Store::close(&store);
    assert!(matches!(futures_util::FutureExt::now_or_never(close), Some(Ok(()))));
    let late = store.shared.write(Txn::new().create("/a", "1"));
    assert!(matches!(late, Err(Error::Closed)), "{late:?}");
    assert_eq!(store.shared.newest.read().entries.len(), 0);
}

/// A large value whose references are counted.
struct Large(#[expect(dead_code, reason = "it is counted")] Arc<()>);

impl AsRef<[u8]> for Large {
    fn as_ref(&self) -> &[u8] {
        static BYTES: [u8; 1 << 20] = [0; 1 << 20];
        &BYTES
    }
}

#[tokio::test]
async fn an_unread_watch_of_the_past_keeps_little_memory() {
    let (env, _clock) = Env::simulated(1);
    let feed = FeedOptions { changes: 1, ..FeedOptions::default() };
    let store = MemoryStore::new(env, MemoryOptions { feed, ..MemoryOptions::default() });
    let alive = Arc::new(());
    let keys: Vec<String> = (0..200).map(|key| format!("/{key}")).collect();
    for key in &keys {
        store.do_all(Txn::new().create(key.clone(), Bytes::from_owner(Large(alive.clone()))));
    }
    let mut watch = store.watch(WatchRequest::prefix("/").after(Revision::FIRST)).await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(_))));
    for key in &keys {
        store.do_all(Txn::new().delete(key.clone(), Precondition::Exists));
    }
    store.compact(store.revision().await.unwrap()).await.unwrap();
    let held = Arc::strong_count(&alive) - 1;
    assert!(held <= 10, "{held} MiB");
    // It still remembers that it lagged.
    let end = loop {
        match watch.next().await {
            Some(Ok(_)) => {}
            other => break other,
        }
    };
    assert!(matches!(end, Some(Err(Error::Compacted { .. }))), "{end:?}");
}

#[test]
fn concurrent_moves_are_never_observed_halfway() {
    use futures_util::FutureExt as _;
    const KEYS: u64 = 40;
    const THINGS: u64 = 100;
    let store = store();
    store.do_all(Txn::new().create("/00", THINGS.to_string()));
    let now = |range: Range| store.range(range).now_or_never().unwrap().unwrap();
    let count = |entries: &[KeyValue]| -> u64 {
        entries.iter().map(|entry| std::str::from_utf8(&entry.value).unwrap().parse::<u64>().unwrap()).sum()
    };
    // A key without items is deleted: cells come and go while snapshots see them.
    let move_one = |env: &Env| {
        let there = now(Range::prefix("/")).entries;
        let from = &there[env.random_below(there.len() as u64) as usize];
        let to = format!("/{:02}", env.random_below(KEYS));
        if from.key == to {
            return;
        }
        let number = |entry: &KeyValue| std::str::from_utf8(&entry.value).unwrap().parse::<u64>().unwrap();
        let expected = Precondition::Revision(from.revision);
        let txn = match number(from) {
            1 => Txn::new().delete(from.key.clone(), expected),
            more => Txn::new().put(from.key.clone(), (more - 1).to_string(), expected),
        };
        let txn = match there.iter().find(|entry| entry.key == to) {
            None => txn.create(to, "1"),
            Some(entry) => {
                txn.put(to, (number(entry) + 1).to_string(), Precondition::Revision(entry.revision))
            }
        };
        let _conflict = store.shared.write(txn);
    };
    // Each writer holds a clone, including one that fails.
    let writing = Arc::new(());
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (move_one, writing) = (&move_one, writing.clone());
            scope.spawn(move || {
                let _writing = writing;
                let (env, _clock) = Env::simulated(seed);
                (0..1500).for_each(|_| move_one(&env));
            });
        }
        for seed in 10..12 {
            let (now, count, writing, store) = (&now, &count, &writing, &store);
            scope.spawn(move || {
                let (env, _clock) = Env::simulated(seed);
                let mut last = now(Range::prefix("/"));
                while Arc::strong_count(writing) > 1 {
                    let list = now(Range::prefix("/"));
                    assert!(list.revision >= last.revision);
                    assert_eq!(count(&list.entries), THINGS);
                    assert!(list.entries.iter().all(|entry| entry.revision <= list.revision));
                    // The past, at once, in pages, and key by key.
                    let again = now(Range::prefix("/").at(last.revision));
                    assert_eq!(again, last);
                    let place = env.random_below(KEYS);
                    let start = format!("/{place:02}");
                    let page = now(Range::prefix("/").start(start.clone()).at(last.revision).limit(3));
                    let rest = last.entries.iter().filter(|entry| entry.key >= start);
                    assert!(page.entries.iter().eq(rest.take(3)));
                    let got =
                        store.get(start.as_bytes(), Some(last.revision)).now_or_never().unwrap().unwrap();
                    assert_eq!(got.entry.as_ref(), last.entries.iter().find(|entry| entry.key == start));
                    last = list;
                }
            });
        }
    });
    assert_eq!(count(&now(Range::prefix("/")).entries), THINGS);
    store.assert_nothing_is_kept();
}
