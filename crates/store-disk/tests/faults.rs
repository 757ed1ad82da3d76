//! Full disks, failing syncs, torn writes and hanging disks, on a simulated disk.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use k1s_env::Env;
use k1s_store::{Error, Outcome, Precondition, Range, Result, Revision, Store, Txn, WatchItem, WatchRequest};
use k1s_store_disk::{
    DiskOptions, DiskStore, OpenError,
    testing::{Fault, Loss, SimDisk},
};
use tokio::sync::Semaphore;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn options() -> DiskOptions {
    DiskOptions { segment_bytes: 256 << 10, ..DiskOptions::default() }
}

fn value(seed: u64) -> Bytes {
    let (random, _clock) = Env::simulated(seed);
    let mut value = vec![0; 3000];
    random.fill_random(&mut value);
    value.into()
}

fn open(disk: &SimDisk) -> DiskStore {
    disk.open(Env::system(), "/data", options()).unwrap()
}

async fn put(store: &DiskStore, key: String, seed: u64) -> Result<Revision> {
    store.txn(Txn::new().put(key, value(seed), Precondition::Any)).await
}

/// Retries a write until it succeeds, for at most a minute.
async fn put_until_it_works(store: &DiskStore, key: &str, seed: u64) -> Revision {
    let env = Env::system();
    let began = env.now();
    loop {
        match put(store, key.to_owned(), seed).await {
            Ok(revision) => return revision,
            Err(error) if env.now() - began > Duration::from_secs(60) => panic!("still failing: {error}"),
            Err(Error::Full { .. } | Error::Unavailable { .. }) => env.yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Writes, injects a fault, and checks that no acknowledged write is lost, no refused write appears, reads
/// and watches continue, and writes recover afterwards.
async fn fails_and_recovers(disk: &SimDisk, fault: Fault, is_expected: fn(&Error) -> bool) {
    let store = open(disk);
    let mut watch = store.watch(WatchRequest::default()).await.unwrap();
    let mut expected = BTreeMap::new();
    for round in 0..4 {
        for i in 0..50 {
            let key = format!("/{round}/{i}");
            expected.insert(key.clone(), put(&store, key, i).await.unwrap());
        }
        disk.set_fault(fault);
        for i in 0..5 {
            let error = put(&store, format!("/refused/{round}/{i}"), i).await.unwrap_err();
            assert!(is_expected(&error), "{error:?}");
        }
        let entry = store.get(format!("/{round}/7").as_bytes(), None).await.unwrap().entry.unwrap();
        assert_eq!(entry.value, value(7), "reads succeed while writes fail");
        assert_eq!(store.range(Range::default()).await.unwrap().entries.len(), expected.len());
        assert!(store.stats().await.unwrap().degraded.is_some());
        disk.set_fault(Fault::None);
        let key = format!("/recovered/{round}");
        expected.insert(key.clone(), put_until_it_works(&store, &key, round).await);
        assert_eq!(store.stats().await.unwrap().degraded, None);
    }
    let report = store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    let mut seen = BTreeMap::new();
    while seen.len() < expected.len() {
        let Some(Ok(WatchItem::Change(change))) = watch.next().await else { panic!("the watch ended") };
        seen.extend(change.events().iter().map(|event| (text(&event.key), change.revision())));
    }
    assert_eq!(seen, expected, "a watch sees what was acknowledged, and nothing else");
    store.close().await.unwrap();

    let store = open(disk);
    let found = store.range(Range::default()).await.unwrap().entries;
    let found = found.into_iter().map(|entry| (text(&entry.key), entry.revision)).collect::<BTreeMap<_, _>>();
    assert_eq!(found, expected, "after a restart");
    let report = store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Full { .. })
}

fn is_unavailable(error: &Error) -> bool {
    matches!(error, Error::Unavailable { .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_writes_and_recovers_when_there_is_room() {
    fails_and_recovers(&SimDisk::new(1), Fault::Full, is_full).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fills_up_in_the_middle_of_a_write_recovers() {
    fails_and_recovers(&SimDisk::new(1), Fault::FullMidway, is_full).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_sync_refuses_the_write_and_recovers() {
    fails_and_recovers(&SimDisk::new(1), Fault::SyncFails, is_unavailable).await;
}

/// Compaction, checkpoints and the cleaning thread meet the fault, too.
#[tokio::test(flavor = "multi_thread")]
async fn faults_that_come_and_go_under_load_lose_nothing() {
    let disk = &SimDisk::new(1);
    let env = Env::system();
    let busy = DiskOptions { segment_bytes: 64 << 10, history_revisions: 100, ..options() };
    let store = disk.open(env.clone(), "/data", busy).unwrap();
    let (mut expected, mut writes) = (BTreeMap::new(), 0);
    let faults = [Fault::Full, Fault::SyncFails, Fault::FullMidway];
    for (round, fault) in faults.into_iter().cycle().take(8).enumerate() {
        let mut writers = Vec::new();
        let acknowledged = Arc::new(Semaphore::new(0));
        for writer in 0..8 {
            let (store, acknowledged) = (store.clone(), acknowledged.clone());
            writers.push(env.spawn("writer", async move {
                let mut written = Vec::new();
                for i in 0..60 {
                    // Many of them are overwritten.
                    let key = format!("/{writer}/{}", if i % 4 == 0 { round * 60 + i } else { i % 7 });
                    match put(&store, key.clone(), i as u64).await {
                        Ok(revision) => {
                            written.push((key, revision));
                            acknowledged.add_permits(1);
                        }
                        Err(Error::Full { .. } | Error::Unavailable { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                written
            }));
        }
        // While all writers are busy.
        drop(acknowledged.acquire_many(150).await.unwrap());
        disk.set_fault(fault);
        for writer in writers {
            let written = writer.await.unwrap();
            writes += written.len();
            expected.extend(written);
        }
        disk.set_fault(Fault::None);
        put_until_it_works(&store, "/marker", round as u64).await;
        let report = store.check().await.unwrap();
        assert!(report.is_sound(), "{report:?}");
    }
    store.close().await.unwrap();
    let store = open(disk);
    let found = store.range(Range::default()).await.unwrap().entries;
    let mut found =
        found.into_iter().map(|entry| (text(&entry.key), entry.revision)).collect::<BTreeMap<_, _>>();
    assert!(found.remove("/marker").is_some());
    assert!(writes >= 8 * 150, "hardly anything was written: {writes}");
    assert!(writes < 8 * 480, "no fault had an effect");
    assert_eq!(found, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_to_a_hanging_disk_time_out_and_recover() {
    let disk = &SimDisk::new(1);
    let options = DiskOptions { stall: Duration::from_millis(300), ..options() };
    let store = disk.open(Env::system(), "/data", options).unwrap();
    put(&store, "/before".to_owned(), 1).await.unwrap();
    disk.set_fault(Fault::SyncHangs);
    let error = put(&store, "/during".to_owned(), 2).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { outcome: Outcome::Unknown, .. }), "{error:?}");
    assert!(error.to_string().contains("has not answered for 300ms"), "{error}");
    assert_eq!(store.range(Range::default()).await.unwrap().entries.len(), 1, "it can be read");
    disk.set_fault(Fault::None);
    put_until_it_works(&store, "/after", 3).await;
    // The disk was slow, but did not lose the write.
    assert_eq!(store.range(Range::default()).await.unwrap().entries.len(), 3);
}

/// Writes, then crashes in the middle of a write that the disk refuses.
async fn crashes(fault: Fault) {
    for (seed, loss) in (0..20).flat_map(|seed| [(seed, Loss::Process), (seed, Loss::Power)]) {
        let disk = &SimDisk::new(seed);
        let store = open(disk);
        let mut acknowledged = BTreeMap::new();
        for i in 0..50 {
            let key = format!("/{i}");
            acknowledged.insert(key.clone(), put(&store, key, i).await.unwrap());
        }
        disk.set_fault(fault);
        put(&store, "/torn".to_owned(), 1).await.unwrap_err();
        disk.cut();
        drop(store);
        disk.set_fault(Fault::None);
        disk.restart(loss);

        let store = open(disk);
        let report = store.check().await.unwrap();
        assert!(report.is_sound(), "seed {seed}, {loss:?}: {report:?}");
        let found = store.range(Range::default()).await.unwrap().entries;
        let mut found: BTreeMap<_, _> =
            found.into_iter().map(|entry| (text(&entry.key), (entry.revision, entry.value))).collect();
        // The failed write is either complete or absent.
        assert!(found.remove("/torn").is_none_or(|(_, torn)| torn == value(1)), "seed {seed}, {loss:?}");
        let found: BTreeMap<_, _> = found.into_iter().map(|(key, (revision, _))| (key, revision)).collect();
        assert_eq!(found, acknowledged, "seed {seed}, {loss:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_last_write_is_cut_off_after_a_crash() {
    crashes(Fault::FullMidway).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_sync_failed_is_whole_or_absent_after_a_crash() {
    crashes(Fault::SyncFails).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_sync_failed_is_absent_when_the_store_is_reopened() {
    let disk = &SimDisk::new(1);
    for closes in [true, false] {
        let store = open(disk);
        put(&store, "/before".to_owned(), 1).await.unwrap();
        disk.set_fault(Fault::SyncFails);
        let error = put(&store, "/refused".to_owned(), 2).await.unwrap_err();
        // The disk does not report what it stored, so the outcome of a power cut is unknown.
        assert!(matches!(error, Error::Unavailable { outcome: Outcome::Unknown, .. }), "{error:?}");
        let error = put(&store, "/not-tried".to_owned(), 2).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { outcome: Outcome::NotApplied, .. }), "{error:?}");
        disk.set_fault(Fault::None);
        if closes {
            store.close().await.unwrap();
        }
        drop(store);
        let store = open(disk);
        assert_eq!(store.get(b"/refused", None).await.unwrap().entry, None);
        assert!(store.get(b"/before", None).await.unwrap().entry.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_whose_checkpoint_failed_writes_it_when_requested_again() {
    let disk = &SimDisk::new(1);
    let store = open(disk);
    let mut last = Revision::FIRST;
    for i in 0..10 {
        last = put(&store, "/key".to_owned(), i).await.unwrap();
    }
    disk.set_fault(Fault::Full);
    let error = store.compact(last).await.unwrap_err();
    assert!(is_full(&error), "{error:?}");
    disk.set_fault(Fault::None);
    store.compact(last).await.unwrap();
    // What a reopen after a crash would find.
    let checkpoint = disk.read("/data/store/checkpoint").unwrap();
    let oldest = u64::from_be_bytes(checkpoint["k1s state\n".len()..][..8].try_into().unwrap());
    assert_eq!(oldest, last.get());
}

/// The last segment is full, and there is no room for another.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_can_be_opened_and_read_on_a_full_disk() {
    let disk = &SimDisk::new(1);
    let store = open(disk);
    let in_the_way = "/data/store/log/000000000002.new";
    disk.create_dir(in_the_way).unwrap();
    let mut written = 0;
    while put(&store, format!("/{written}"), written).await.is_ok() {
        written += 1;
    }
    drop(store);
    disk.remove(in_the_way).unwrap();

    disk.set_fault(Fault::Full);
    let store = open(disk);
    assert_eq!(store.range(Range::default()).await.unwrap().entries.len() as u64, written);
    assert!(store.stats().await.unwrap().degraded.is_some());
    let error = put(&store, "/refused".to_owned(), 1).await.unwrap_err();
    assert!(is_full(&error), "{error:?}");
    disk.set_fault(Fault::None);
    put_until_it_works(&store, "/recovered", 1).await;
    store.close().await.unwrap();
    let store = open(disk);
    assert_eq!(store.range(Range::default()).await.unwrap().entries.len() as u64, written + 1);
    let report = store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_succeed_on_a_full_disk_and_free_space() {
    let disk = &SimDisk::new(1);
    let options = DiskOptions { reserve_bytes: 256 << 10, ..options() };
    let open = || disk.open(Env::system(), "/data", options).unwrap();
    let store = open();
    let mut revisions = Vec::new();
    for number in 0..700 {
        revisions.push(put(&store, format!("/{number}"), number).await.unwrap());
    }
    disk.set_capacity(Some(disk.used() + 10_000));
    let mut extra = 0;
    let full = loop {
        match put(&store, format!("/extra/{extra}"), extra).await {
            Ok(_) => extra += 1,
            Err(error) => break error,
        }
        assert!(extra < 700, "the disk is not full");
    };
    assert!(is_full(&full), "{full:?}");
    assert!(store.health().await.is_err_and(|error| is_full(&error)), "health reports it at once");
    // Marking an object for deletion and removing its finalizers are updates.
    let update = async |key: &str, bytes: usize| {
        store.txn(Txn::new().put(key.to_owned(), vec![b'x'; bytes], Precondition::Exists)).await
    };
    update("/699", 3100).await.unwrap();
    update("/699", 2900).await.unwrap();
    assert!(is_full(&update("/698", 9000).await.unwrap_err()), "the value grows too much");
    let both = Txn::new().delete("/698", Precondition::Exists).put("/copy", value(1), Precondition::Any);
    assert!(is_full(&store.txn(both).await.unwrap_err()), "the transaction creates a key");
    for (number, revision) in revisions.iter().enumerate().take(650) {
        store
            .delete(format!("/{number}").into(), *revision)
            .await
            .unwrap_or_else(|error| panic!("/{number}: {error}"));
    }
    assert!(is_full(&put(&store, "/refused".to_owned(), 1).await.unwrap_err()));
    let left = 50 + extra as usize;
    assert_eq!(store.range(Range::default()).await.unwrap().entries.len(), left);
    drop(store);
    let store = open();
    assert_eq!(store.range(Range::default()).await.unwrap().entries.len(), left, "deletions last");

    // The disk is as large as before.
    store.compact(store.revision().await.unwrap()).await.unwrap();
    put_until_it_works(&store, "/recovered", 1).await;
    store.health().await.unwrap();
    let report = store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_is_the_first_write_to_find_the_disk_full_succeeds() {
    let disk = &SimDisk::new(1);
    let store = open(disk);
    let mut deletions = Vec::new();
    // Until the preallocated space is used up.
    for number in 0..60 {
        deletions.push(put(&store, format!("/{number}"), number).await.unwrap());
    }
    disk.set_capacity(Some(disk.used()));
    for (number, revision) in deletions.into_iter().enumerate() {
        store.delete(format!("/{number}").into(), revision).await.unwrap();
    }
    let large = Txn::new().put("/large", vec![b'x'; 1 << 20], Precondition::Any);
    assert!(is_full(&store.txn(large).await.unwrap_err()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_folder_is_refused_with_the_reason_and_can_be_checked() {
    let disk = &SimDisk::new(1);
    let store = open(disk);
    put(&store, "/a".to_owned(), 1).await.unwrap();
    store.close().await.unwrap();
    disk.set_fault(Fault::ReadOnly);
    let refused = disk.open(Env::system(), "/data", options()).unwrap_err();
    assert!(matches!(refused, OpenError::ReadOnly { .. }), "{refused:?}");
    assert!(refused.to_string().contains("cannot be written to: Read-only file system"), "{refused}");
    let report = disk.check_folder("/data").unwrap();
    assert!(report.is_sound() && report.keys == 1, "{report:?}");
    disk.set_fault(Fault::None);
    open(disk);
}
