//! The changes that a watch yields.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use k1s_store::{Change, Error, EventKind, Precondition, Range, Revision, Txn, WatchRequest};

use crate::support::{Dice, Suite, put, remove};

/// The events of a change as text: `kind key=value`.
fn described(change: &Change) -> Vec<String> {
    let mut events: Vec<_> = change
        .events()
        .iter()
        .map(|event| {
            let kind = match event.kind() {
                EventKind::Created => "created",
                EventKind::Updated => "updated",
                EventKind::Deleted => "deleted",
            };
            let value =
                event.value.as_ref().map_or(String::new(), |value| format!("={}", value.escape_ascii()));
            format!("{kind} {}{value}", event.key.escape_ascii())
        })
        .collect();
    events.sort();
    events
}

fn revisions(changes: &[Arc<Change>]) -> Vec<Revision> {
    changes.iter().map(|change| change.revision()).collect()
}

pub(crate) async fn a_watch_from_now_sees_new_changes(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let before = put(store, "/a", "before").await;
    let mut probe = suite.watch(store, WatchRequest::prefix("/")).await;
    probe.quiet(before).await;
    for n in 0..3 {
        let revision = put(store, format!("/{n}"), "v").await;
        let change = probe.change().await;
        assert_eq!(change.revision(), revision, "broken promise: a watch sees the next change");
        assert_eq!(described(&change), [format!("created /{n}=v")]);
    }
    let newest = store.revision().await.unwrap();
    probe.quiet(newest).await;
}

pub(crate) async fn a_watch_from_a_past_revision_sees_every_later_change(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let base = store.revision().await.unwrap();
    let mut expected = Vec::new();
    for n in 0..10 {
        expected.push(put(store, format!("/w/{}", n % 3), format!("{n}")).await);
        put(store, "/other", format!("{n}")).await;
    }
    for (skipped, after) in [base].into_iter().chain(expected.clone()).enumerate() {
        let mut probe = suite.watch(store, WatchRequest::prefix("/w/").after(after)).await;
        let changes = probe.changes(expected.len() - skipped).await;
        assert_eq!(
            revisions(&changes),
            expected[skipped..],
            "broken promise: a watch after {after} sees every later change under its prefix"
        );
        let newest = store.revision().await.unwrap();
        probe.quiet(newest).await;
    }
    // From the past into the present without a gap.
    let mut probe = suite.watch(store, WatchRequest::prefix("/w/").after(base)).await;
    expected.push(put(store, "/w/new", "v").await);
    assert_eq!(revisions(&probe.changes(expected.len()).await), expected);
}

pub(crate) async fn a_watch_from_a_future_revision_is_refused(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let newest = put(store, "/a", "v").await;
    let future = suite.far_future(newest);
    let error = suite.watch_refused(store, WatchRequest::prefix("/").after(future)).await;
    assert!(
        matches!(error, Error::FutureRevision { requested, .. } if requested == future),
        "broken promise: a watch after {future} is in the future of {newest}\n  got {error:?}"
    );
}

pub(crate) async fn events_carry_the_previous_entry(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let base = store.revision().await.unwrap();
    let live = suite.watch(store, WatchRequest::prefix("/").previous(true)).await;
    let bare = suite.watch(store, WatchRequest::prefix("/")).await;
    let one = put(store, "/a", "one").await;
    let two = put(store, "/a", "two").await;
    remove(store, "/a").await;
    put(store, "/a", "three").await;
    let late = suite.watch(store, WatchRequest::prefix("/").after(base).previous(true)).await;
    let midway = suite.watch(store, WatchRequest::prefix("/").after(one).previous(true)).await;
    let expected = [None, Some(("one", one)), Some(("two", two)), None];
    for (mut probe, skipped, which) in [
        (live, 0, "open before"),
        (late, 0, "from the past"),
        (midway, 1, "from the middle"),
        (bare, 0, "without previous"),
    ] {
        for wanted in &expected[skipped..] {
            let change = probe.change().await;
            let previous = change.events()[0].previous.clone();
            let found = previous.as_ref().map(|previous| (&previous.value[..], previous.revision));
            let wanted = wanted.map(|(value, revision)| (value.as_bytes(), revision));
            // A watch that did not request the previous entry may get it all the same, but not a wrong one.
            assert!(
                found == wanted || which == "without previous" && found.is_none(),
                "broken promise: an event carries the previous entry\n  watch {which}: {change:?}"
            );
        }
    }
}

pub(crate) async fn events_distinguish_creation_update_and_deletion(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let base = store.revision().await.unwrap();
    let live = suite.watch(store, WatchRequest::prefix("/")).await;
    put(store, "/a", "one").await;
    put(store, "/a", "two").await;
    remove(store, "/a").await;
    put(store, "/a", "three").await;
    let both = Txn::new().put("/a", "four", Precondition::Any).put("/b", "one", Precondition::Any);
    store.txn(both).await.unwrap();
    let late = suite.watch(store, WatchRequest::prefix("/").after(base)).await;
    for mut probe in [live, late] {
        let described: Vec<_> = probe.changes(5).await.iter().map(|change| described(change)).collect();
        let expected: [&[&str]; 5] = [
            &["created /a=one"],
            &["updated /a=two"],
            &["deleted /a"],
            &["created /a=three"],
            &["created /b=one", "updated /a=four"],
        ];
        assert_eq!(
            described, expected,
            "broken promise: an event's kind says whether the key existed before"
        );
    }
}

pub(crate) async fn a_transaction_arrives_as_one_change_filtered_by_prefix(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let base = put(store, "/a/old", "v").await;
    let live = [
        suite.watch(store, WatchRequest::prefix("").after(base)).await,
        suite.watch(store, WatchRequest::prefix("/a/").after(base)).await,
        suite.watch(store, WatchRequest::prefix("/b/2").after(base)).await,
        suite.watch(store, WatchRequest::prefix("/c/").after(base)).await,
    ];
    let txn = Txn::new()
        .check("/c/none", Precondition::Absent)
        .delete("/c/never", Precondition::Any)
        .create("/a/1", "v")
        .delete("/a/old", Precondition::Exists)
        .create("/b/1", "v")
        .create("/b/2", "v");
    let revision = store.txn(txn).await.unwrap();
    let late = [
        suite.watch(store, WatchRequest::prefix("").after(base)).await,
        suite.watch(store, WatchRequest::prefix("/a/").after(base)).await,
        suite.watch(store, WatchRequest::prefix("/b/2").after(base)).await,
        suite.watch(store, WatchRequest::prefix("/c/").after(base)).await,
    ];
    for [mut all, mut first, mut second, mut third] in [live, late] {
        let change = all.change().await;
        assert_eq!(change.revision(), revision);
        assert_eq!(
            described(&change),
            ["created /a/1=v", "created /b/1=v", "created /b/2=v", "deleted /a/old"],
            "broken promise: a transaction arrives whole, without unchanged keys"
        );
        let change = first.change().await;
        assert_eq!(change.revision(), revision);
        assert_eq!(
            described(&change),
            ["created /a/1=v", "deleted /a/old"],
            "broken promise: a change is filtered by the prefix"
        );
        assert_eq!(described(&second.change().await.clone()), ["created /b/2=v"]);
        third.quiet(revision).await;
        all.quiet(revision).await;
    }
}

pub(crate) async fn watch_prefixes_are_matched_as_bytes(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let base = store.revision().await.unwrap();
    let prefixes: [&[u8]; 9] = [b"", b"\x00", b"/a", b"/a/", b"/a\xff", b"\xff", b"\xff\xff", b"/b", b"/a/1"];
    let written: [&[u8]; 10] =
        [b"\x00", b"\x00\x01", b"/a", b"/a/1", b"/a\xff\xff", b"/b", b"/c", b"\xff", b"\xff\xff", b"\xfe"];
    let mut live = Vec::new();
    for prefix in prefixes {
        live.push(suite.watch(store, WatchRequest::prefix(prefix)).await);
    }
    let mut newest = base;
    for key in written {
        newest = put(store, key, "v").await;
    }
    for (prefix, mut live) in prefixes.into_iter().zip(live) {
        let mut late = suite.watch(store, WatchRequest::prefix(prefix).after(base)).await;
        let expected: Vec<_> = written.iter().filter(|key| key.starts_with(prefix)).copied().collect();
        for (probe, which) in [(&mut live, "open before"), (&mut late, "from the past")] {
            let changes = probe.mark(newest).await.0;
            let found: Vec<_> = changes.iter().map(|change| &change.events()[0].key[..]).collect();
            assert_eq!(
                found,
                expected,
                "broken promise: a watch yields the keys that begin with its prefix\n  watch {which} of \"{}\"",
                prefix.escape_ascii()
            );
        }
    }
}

pub(crate) async fn a_watch_resumed_after_any_item_sees_the_same_rest(suite: &Suite) {
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let base = store.revision().await.unwrap();
    let dice = Dice::new(3);
    for n in 0..60 {
        let key = Bytes::from(format!("/{}/{}", if dice.chance(60) { "in" } else { "out" }, dice.below(6)));
        let txn = if dice.chance(25) {
            Txn::new().delete(key, Precondition::Any).put("/in/always", format!("{n}"), Precondition::Any)
        } else {
            Txn::new().put(key, format!("{n}"), Precondition::Any)
        };
        store.txn(txn).await.unwrap();
    }
    let newest = store.revision().await.unwrap();
    let request = WatchRequest::prefix("/in/").previous(true);
    let whole = suite.watch(store, request.clone().after(base)).await.mark(newest).await.0;
    assert!(whole.len() > 20, "there are changes to resume after");
    for (seen, item) in (1..).zip(&whole) {
        let rest = suite.watch(store, request.clone().after(item.revision())).await.mark(newest).await.0;
        assert_eq!(
            rest,
            whole[seen..],
            "broken promise: a watch resumed after revision {} continues right after it",
            item.revision()
        );
    }
}

pub(crate) async fn tenants_see_only_their_own_changes(suite: &Suite) {
    const TENANTS: usize = 50;
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let mut probes = Vec::new();
    for tenant in 0..TENANTS {
        probes.push(suite.watch(store, WatchRequest::prefix(format!("/t{tenant:02}/"))).await);
    }
    let dice = Dice::new(5);
    let mut expected = vec![Vec::new(); TENANTS];
    for n in 0..400 {
        let tenant = dice.below(TENANTS);
        let neighbour = (tenant + 1) % TENANTS;
        let value = format!("{n}");
        let mut txn = Txn::new().put(format!("/t{tenant:02}/k"), value.clone(), Precondition::Any);
        let both = dice.chance(20);
        if both {
            txn = txn.put(format!("/t{neighbour:02}/k"), value, Precondition::Any);
        }
        let revision = store.txn(txn).await.unwrap();
        expected[tenant].push(revision);
        if both {
            expected[neighbour].push(revision);
        }
    }
    let newest = store.revision().await.unwrap();
    for (tenant, (mut probe, expected)) in probes.into_iter().zip(expected).enumerate() {
        let changes = probe.mark(newest).await.0;
        assert_eq!(
            revisions(&changes),
            expected,
            "broken promise: tenant {tenant} sees all of its own changes"
        );
        let own = format!("/t{tenant:02}/");
        let stray = changes
            .iter()
            .flat_map(|change| change.events())
            .find(|event| !event.key.starts_with(own.as_bytes()));
        assert_eq!(stray, None, "broken promise: tenant {tenant} sees nothing of other tenants");
    }
}

pub(crate) async fn list_then_watch_misses_nothing_and_repeats_nothing(suite: &Suite) {
    const WRITERS: usize = 2;
    let rounds = suite.profile.many_writes / 10;
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, stop, env) = (store.clone(), stop.clone(), suite.env.clone());
            suite.env.spawn("writer", async move {
                let mut n = 0;
                while !stop.load(Ordering::Acquire) {
                    put(&store, format!("/k/{writer}"), format!("{n}")).await;
                    n += 1;
                    env.yield_now().await;
                }
            })
        })
        .collect();
    // A watch can continue from the revision of any list at once, even while the write of that revision is
    // still being acknowledged.
    for _ in 0..rounds {
        let list = store.range(Range::prefix("/k/")).await.unwrap();
        let request = WatchRequest::prefix("/k/").after(list.revision).previous(true);
        let change = suite.watch(store, request).await.change().await;
        assert!(
            change.revision() > list.revision,
            "broken promise: a watch after {} repeats nothing\n  {change:?}",
            list.revision
        );
        let event = &change.events()[0];
        let listed = list.entries.iter().find(|entry| entry.key == event.key);
        let found = event.previous.as_ref().map(|previous| (&previous.value, previous.revision));
        assert_eq!(
            found,
            listed.map(|entry| (&entry.value, entry.revision)),
            "broken promise: a watch after a list's revision misses nothing\n  listed at {}, then {change:?}",
            list.revision
        );
    }
    stop.store(true, Ordering::Release);
    for writer in writers {
        writer.await.unwrap();
    }
}

pub(crate) async fn a_change_that_a_watch_yielded_can_be_read(suite: &Suite) {
    let writes = suite.profile.many_writes / 10;
    let fresh = suite.fresh().await;
    let store = fresh.store();
    let mut probe = suite.watch(store, WatchRequest::prefix("/k")).await;
    let writer = {
        let store = store.clone();
        suite.env.spawn("writer", async move {
            for n in 0..writes {
                put(&store, "/k", format!("{n}")).await;
            }
        })
    };
    for _ in 0..writes {
        let change = probe.change().await;
        let newest = store.revision().await.unwrap();
        assert!(
            newest >= change.revision(),
            "broken promise: a watch yields no change before reads see it\n  at {newest}: {change:?}"
        );
        let read = store.get(b"/k", Some(change.revision())).await.unwrap().entry.expect("it was written");
        assert_eq!(
            (Some(&read.value), read.revision),
            (change.events()[0].value.as_ref(), change.revision())
        );
    }
    writer.await.unwrap();
}
