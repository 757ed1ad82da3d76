//! Ranges: order, prefixes, limits, pagination.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use k1s_store::{KeyValue, Precondition, Range, Txn, WatchRequest};
use tokio::sync::{Semaphore, watch};

use crate::support::{Dice, Suite, keys, put, remove};

/// Keys that a backend which treats them as text would order or cut wrongly.
const ODD_KEYS: [&[u8]; 13] = [
    b"\x00",
    b"\x00\x00",
    b"\x00\xff",
    b"/",
    b"/a",
    b"/a\x00",
    b"/a/",
    b"/a\xff",
    b"/a\xff\xff",
    b"/b",
    b"\xc3\xa4",
    b"\xff",
    b"\xff\xff\x01",
];

pub(crate) async fn keys_are_ordered_as_bytes(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    for key in ODD_KEYS.iter().rev() {
        let revision = put(store, *key, *key).await;
        let read = store.get(key, None).await.unwrap().entry.expect("the written key exists");
        assert_eq!((&read.key[..], &read.value[..], read.revision), (*key, *key, revision));
    }
    let mut expected = ODD_KEYS;
    expected.sort_unstable();
    let found = store.range(Range::prefix("")).await.unwrap();
    let found: Vec<&[u8]> = found.entries.iter().map(|entry| &entry.key[..]).collect();
    assert_eq!(found, expected, "broken promise: entries come in the order of their keys as bytes");
    for key in ODD_KEYS {
        remove(store, key).await;
        assert_eq!(store.get(key, None).await.unwrap().entry, None);
    }
    assert_eq!(store.stats().await.unwrap().keys, 0);
}

pub(crate) async fn a_prefix_is_matched_as_bytes(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    for key in ODD_KEYS {
        put(store, key, "v").await;
    }
    let prefixes: [&[u8]; 12] = [
        b"",
        b"\x00",
        b"\x00\x00",
        b"/",
        b"/a",
        b"/a\x00",
        b"/a\xff",
        b"/c",
        b"\xc3",
        b"\xff",
        b"\xff\xff",
        b"\xff\xff\xff",
    ];
    for prefix in prefixes {
        let mut expected: Vec<_> = ODD_KEYS.iter().filter(|key| key.starts_with(prefix)).copied().collect();
        expected.sort_unstable();
        let result = store.range(Range::prefix(prefix)).await.unwrap();
        let found: Vec<_> = result.entries.iter().map(|entry| &entry.key[..]).collect();
        assert_eq!(
            found,
            expected,
            "broken promise: a range has the keys that begin with its prefix\n  prefix \"{}\"",
            prefix.escape_ascii()
        );
        assert!(!result.more, "broken promise: a range without a limit is complete");
    }
}

pub(crate) async fn a_start_key_and_a_prefix_narrow_a_range_together(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    for key in ["/a/1", "/a/2", "/a/3", "/b/1", "/b/2", "/c/1"] {
        put(store, key, "v").await;
    }
    let from = |prefix: &'static str, start: &'static str| keys(store, Range::prefix(prefix).start(start));
    assert_eq!(from("/b/", "/b/1").await, ["/b/1", "/b/2"], "a start key is itself in the range");
    assert_eq!(from("/b/", "/b/1\0").await, ["/b/2"], "the key after a start key begins the next page");
    assert_eq!(from("/b/", "/b/11").await, ["/b/2"], "a start key need not exist");
    assert_eq!(from("/b/", "/a/2").await, ["/b/1", "/b/2"], "a start before the prefix narrows nothing");
    assert_eq!(from("/b/", "").await, ["/b/1", "/b/2"], "an empty start narrows nothing");
    assert_eq!(from("/b/", "/b/3").await, [""; 0], "a start after the last key leaves nothing");
    assert_eq!(from("/b/", "/c/1").await, [""; 0], "a start after the prefix leaves nothing");
    assert_eq!(from("", "/b/2").await, ["/b/2", "/c/1"], "an empty prefix is all keys");
    let limited = keys(store, Range::prefix("/a/").start("/a/2").limit(1)).await;
    assert_eq!(limited, ["/a/2"]);
}

pub(crate) async fn a_limited_range_reports_whether_there_is_more(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let mut last = store.revision().await.unwrap();
    for n in 0..5 {
        last = put(store, format!("/a/{n}"), "v").await;
    }
    // Keys after the prefix do not count as "more".
    put(store, "/b/0", "v").await;
    for at in [None, Some(last)] {
        for (limit, count, more) in
            [(0, 5, false), (1, 1, true), (4, 4, true), (5, 5, false), (6, 5, false), (usize::MAX, 5, false)]
        {
            let range = Range { revision: at, ..Range::prefix("/a/").limit(limit) };
            let result = store.range(range.clone()).await.unwrap();
            assert_eq!(
                (result.entries.len(), result.more),
                (count, more),
                "broken promise: a limit is respected, and `more` is set if entries were left out\n  {range:?}"
            );
        }
        let range = Range { revision: at, ..Range::prefix("/a/").start("/a/3").limit(2) };
        let tail = store.range(range).await.unwrap();
        assert_eq!((tail.entries.len(), tail.more), (2, false), "no more entries follow the last full page");
        let range = Range { revision: at, ..Range::prefix("/none/").limit(1) };
        let nothing = store.range(range).await.unwrap();
        assert_eq!((nothing.entries.len(), nothing.more), (0, false));
    }
}

pub(crate) async fn pages_read_during_writes_are_one_snapshot(suite: &Suite) {
    const PAGES: usize = 20;
    const WRITERS: usize = 3;
    const WRITES_PER_PAGE: usize = 100;
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let count = suite.profile.many_keys;
    let key = |n: usize| Bytes::from(format!("/many/{n:08}"));
    let mut state = BTreeMap::new();
    let mut base = store.revision().await.unwrap();
    for chunk in (0..count).collect::<Vec<_>>().chunks(100) {
        // Every second key, which leaves room for creates in between.
        let txn = chunk.iter().fold(Txn::new(), |txn, n| txn.create(key(n * 2), "first"));
        base = store.txn(txn).await.unwrap();
        for n in chunk {
            let key = key(n * 2);
            state.insert(key.clone(), KeyValue { key, value: "first".into(), revision: base });
        }
    }
    let mut probe = suite.watch(store, WatchRequest::prefix("/many/").after(base)).await;

    // Each page allows the writers this many writes: some between two pages, some during one.
    let budget = Arc::new(Semaphore::new(0));
    let (wrote, mut writes) = watch::channel(base);
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, budget, wrote, dice) =
                (store.clone(), budget.clone(), wrote.clone(), Dice::of(7, writer));
            suite.env.spawn("writer", async move {
                while let Ok(permit) = budget.acquire().await {
                    permit.forget();
                    let key = Bytes::from(format!("/many/{:08}", dice.below(count * 2)));
                    let txn = if dice.chance(30) {
                        Txn::new().delete(key, Precondition::Any)
                    } else {
                        Txn::new().put(key, "later", Precondition::Any)
                    };
                    let revision = store.txn(txn).await.unwrap();
                    wrote.send_if_modified(|newest| {
                        revision > *newest && {
                            *newest = revision;
                            true
                        }
                    });
                }
            })
        })
        .collect();
    drop(wrote);

    let limit = (count / PAGES).max(1);
    let mut pages = Vec::new();
    let mut snapshot = None;
    let mut start = Bytes::new();
    loop {
        budget.add_permits(WRITES_PER_PAGE);
        writes.changed().await.expect("the writers run until the budget closes");
        let range = Range { revision: snapshot, ..Range::prefix("/many/").start(start.clone()).limit(limit) };
        let page = store.range(range).await.unwrap();
        let revision = *snapshot.get_or_insert(page.revision);
        assert_eq!(page.revision, revision, "broken promise: a read at a revision shows that revision");
        pages.extend(page.entries);
        if !page.more {
            break;
        }
        start =
            [&pages.last().expect("a page with more entries is not empty").key[..], b"\0"].concat().into();
    }
    budget.close();
    for writer in writers {
        writer.await.unwrap();
    }

    let snapshot = snapshot.expect("there was at least one page");
    assert!(snapshot > base, "the first page was read after the first write");
    for change in probe.mark(snapshot).await.0 {
        for event in change.events().iter().filter(|_| change.revision() <= snapshot) {
            match &event.value {
                Some(value) => {
                    let (key, value) = (event.key.clone(), value.clone());
                    state.insert(key.clone(), KeyValue { key, value, revision: change.revision() })
                }
                None => state.remove(&event.key),
            };
        }
    }
    let expected: Vec<_> = state.into_values().collect();
    let differs = pages.iter().zip(&expected).find(|(found, wanted)| found != wanted);
    assert!(
        pages == expected,
        "broken promise: pages at one revision are one snapshot\n  \
         at {snapshot}: {} entries, {} expected; the first that differs: {differs:?}",
        pages.len(),
        expected.len()
    );
}
