//! Locking, backups, and retention of the history.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{fs, path::Path, sync::Arc, time::Duration};

use k1s_env::Env;
use k1s_store::{Error, Precondition, Range, Revision, Store, Txn};
use k1s_store_disk::{
    Compacted, DiskOptions, DiskStore, OpenError, Repaired, check_folder, compact_folder, repair_folder,
};
use tokio::sync::Mutex;

fn open(folder: &Path) -> Result<DiskStore, OpenError> {
    DiskStore::open(Env::system(), folder, DiskOptions::default())
}

async fn put(store: &DiskStore, key: impl Into<String>, value: impl Into<String>) -> Revision {
    store.txn(Txn::new().put(key.into(), value.into(), Precondition::Any)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_open_fails_at_once_and_names_the_holder() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let error = open(folder.path()).unwrap_err().to_string();
    assert!(error.contains(&format!("in use by process {}", std::process::id())), "{error}");
    assert!(error.contains("only one process can open it at a time"), "{error}");
    store.close().await.unwrap();
    // Dropping the last handle releases the lock, too.
    drop(open(folder.path()).unwrap());
    open(folder.path()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_can_be_closed_concurrently_and_reopened_by_each_closer() {
    let folder = tempfile::tempdir().unwrap();
    let env = Env::system();
    let opens = Arc::new(Mutex::new(()));
    for _ in 0..100 {
        let store = open(folder.path()).unwrap();
        let closing: Vec<_> = (0..8)
            .map(|_| {
                let (store, path, opens) = (store.clone(), folder.path().to_owned(), opens.clone());
                env.spawn("closer", async move {
                    store.close().await.expect("closing twice is fine");
                    let _one_at_a_time = opens.lock().await;
                    open(&path).expect("it is closed").close().await.unwrap();
                })
            })
            .collect();
        for closer in closing {
            closer.await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_a_snapshot_of_a_store_that_is_being_written() {
    let dir = tempfile::tempdir().unwrap();
    let env = Env::system();
    let store = open(&dir.path().join("store")).unwrap();
    // Both keys always have the same value.
    let write = async |store: &DiskStore, n: u64| {
        let txn = Txn::new()
            .put("/left", n.to_string(), Precondition::Any)
            .put("/right", n.to_string(), Precondition::Any)
            .put(format!("/many/{:04}", n % 3000), vec![b'x'; 300], Precondition::Any);
        store.txn(txn).await.unwrap()
    };
    for n in 0..3000 {
        write(&store, n).await;
    }
    let writer = {
        let store = store.clone();
        env.spawn("writer", async move {
            for n in 3000..9000 {
                write(&store, n).await;
            }
        })
    };
    let mut copies = 0;
    while !writer.is_finished() {
        let target = dir.path().join(format!("copy-{copies}"));
        let revision = store.backup(&target).await.unwrap();
        let copy = open(&target).unwrap();
        assert_eq!(copy.revision().await.unwrap(), revision);
        let report = copy.check().await.unwrap();
        assert!(report.is_sound(), "{report:?}");
        // The copy equals the store, history included.
        for at in [revision, Revision::new(revision.get() - 500)] {
            let original = store.range(Range::default().at(at)).await.unwrap();
            assert_eq!(copy.range(Range::default().at(at)).await.unwrap(), original);
            assert_eq!(original.entries[0].value, original.entries.last().unwrap().value);
        }
        copies += 1;
    }
    writer.await.unwrap();
    assert!(copies > 0);
    let error = store.backup(dir.path().join("copy-0")).await.unwrap_err().to_string();
    assert!(error.contains("there is a store already"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_limited_to_a_number_of_revisions() {
    let folder = tempfile::tempdir().unwrap();
    let options = DiskOptions { history_revisions: 1000, segment_bytes: 32 << 10, ..DiskOptions::default() };
    let store = DiskStore::open(Env::system(), folder.path(), options).unwrap();
    for n in 0..20 {
        put(&store, format!("/gone/{n}"), "soon").await;
        store.txn(Txn::new().delete(format!("/gone/{n}"), Precondition::Exists)).await.unwrap();
    }
    let mut last = Revision::FIRST;
    for n in 0..5000 {
        last = put(&store, format!("/{}", n % 10), n.to_string()).await;
    }
    let oldest = wait_for_oldest(&store, Revision::new(last.get() - 1500)).await;
    assert!(
        oldest.get() <= last.get() - 1000,
        "a thousand revisions are kept, not {}",
        last.get() - oldest.get()
    );
    let report = store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.keys, 10);
    let error = store.get(b"/1", Some(Revision::new(10))).await.unwrap_err();
    assert!(matches!(error, Error::Compacted { .. }), "{error}");
    // Dead records are removed from disk, too: ten keys and their recent history remain.
    wait_for(async || store.check().await.unwrap().records < 2500).await;
    store.close().await.unwrap();
    let store = open(folder.path()).unwrap();
    let report = store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert!(report.records < 2500, "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_limited_by_age() {
    let folder = tempfile::tempdir().unwrap();
    let (env, clock) = Env::simulated(1);
    let options = DiskOptions { history_age: Duration::from_secs(60), ..DiskOptions::default() };
    let store = DiskStore::open(env, folder.path(), options).unwrap();
    let first = put(&store, "/a", "1").await;
    noted(&store).await;
    clock.advance(Duration::from_secs(30));
    let second = put(&store, "/a", "2").await;
    noted(&store).await;
    clock.advance(Duration::from_secs(29));
    put(&store, "/b", "1").await;
    noted(&store).await;
    assert_eq!(store.get(b"/a", Some(first)).await.unwrap().entry.unwrap().value, "1");
    clock.advance(Duration::from_secs(2));
    put(&store, "/b", "2").await;
    wait_for_oldest(&store, first).await;
    assert_eq!(store.get(b"/a", Some(second)).await.unwrap().entry.unwrap().value, "2");
    clock.advance(Duration::from_secs(61));
    put(&store, "/b", "3").await;
    wait_for_oldest(&store, second).await;
    let error = store.get(b"/a", Some(first)).await.unwrap_err();
    assert!(matches!(error, Error::Compacted { .. }), "{error}");
    assert_eq!(store.get(b"/a", None).await.unwrap().entry.unwrap().value, "2");
}

/// The writer thread waits briefly for writers it expects. A stopped clock must not stop it.
#[tokio::test(flavor = "multi_thread")]
async fn writes_continue_while_the_clock_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let (env, _clock) = Env::simulated(1);
    let store = DiskStore::open(env.clone(), folder.path(), DiskOptions::default()).unwrap();
    let many: Vec<_> = (0..64)
        .map(|n| {
            let store = store.clone();
            env.spawn("writer", async move { put(&store, format!("/{n}"), "v").await })
        })
        .collect();
    for writer in many {
        writer.await.unwrap();
    }
    let alone = async {
        for n in 0..20 {
            put(&store, format!("/alone/{n}"), "v").await;
        }
    };
    Env::system().timeout(Duration::from_secs(60), alone).await.expect("a single writer makes progress");
}

#[tokio::test(flavor = "multi_thread")]
async fn any_number_of_writes_may_wait_and_one_is_always_admitted() {
    let folder = tempfile::tempdir().unwrap();
    for queued_writes in [0, 1, usize::MAX] {
        let options = DiskOptions { queued_writes, ..DiskOptions::default() };
        let store = DiskStore::open(Env::system(), folder.path(), options).unwrap();
        let write = put(&store, "/a", "1");
        Env::system().timeout(Duration::from_secs(60), write).await.expect("the write is admitted");
        store.close().await.unwrap();
    }
}

/// The time of a write is recorded after it is acknowledged, before the next command; so this waits for a
/// command.
async fn noted(store: &DiskStore) {
    store.compact(Revision::FIRST).await.unwrap();
}

/// Compaction runs in the background, between writes.
async fn wait_for_oldest(store: &DiskStore, revision: Revision) -> Revision {
    wait_for(async || store.stats().await.unwrap().oldest >= revision).await;
    store.stats().await.unwrap().oldest
}

/// Polls until a condition holds, for at most a minute.
async fn wait_for(is_so: impl AsyncFn() -> bool) {
    let env = Env::system();
    let waiting = async {
        while !is_so().await {
            env.yield_now().await;
        }
    };
    env.timeout(Duration::from_secs(60), waiting).await.expect("the condition did not hold in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_the_lock_file_does_not_unlock_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    put(&store, "/a", "1").await;
    fs::remove_file(folder.path().join("LOCK")).unwrap();
    let error = open(folder.path()).unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    put(&store, "/a", "2").await;
    // Under another path, too, with or without the surrounding data folder.
    let dir = tempfile::tempdir().unwrap();
    let moved = dir.path().join("moved");
    fs::rename(folder.path(), &moved).unwrap();
    let error = open(&moved).unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(moved.join("store"), elsewhere.join("store")).unwrap();
    let error = open(&elsewhere).unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    store.close().await.unwrap();
    assert_eq!(open(&elsewhere).unwrap().get(b"/a", None).await.unwrap().entry.unwrap().value, "2");
}

/// Older versions of this program lock only the file.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_of_only_the_lock_file_is_respected() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).unwrap().close().await.unwrap();
    let path = folder.path().join("LOCK");
    let held = fs::OpenOptions::new().write(true).open(&path).unwrap();
    held.lock().unwrap();
    fs::write(&path, "process 1 (an older one)").unwrap();
    let error = open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("in use by process 1 (an older one)"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_moved_or_replaced_folder_is_not_written_to() {
    let copy = |from: &Path, to: &Path| {
        for name in ["", "store", "store/log"] {
            fs::create_dir_all(to.join(name)).unwrap();
            for entry in fs::read_dir(from.join(name)).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() {
                    fs::copy(&path, to.join(name).join(path.file_name().unwrap())).unwrap();
                }
            }
        }
    };
    type Harm<'a> = &'a dyn Fn(&Path, &Path);
    let harms: [(&str, Harm<'_>); 5] = [
        ("the folder was removed", &|folder, _| fs::remove_dir_all(folder).unwrap()),
        ("the folder was moved", &|folder, other| fs::rename(folder, other).unwrap()),
        ("the store was moved", &|folder, other| fs::rename(folder.join("store"), other).unwrap()),
        ("a segment was removed", &|folder, _| {
            fs::remove_file(folder.join("store/log/000000000001.log")).unwrap();
        }),
        ("the folder was replaced by a copy", &|folder, other| {
            copy(folder, &other.with_extension("copy"));
            fs::rename(folder, other).unwrap();
            fs::rename(other.with_extension("copy"), folder).unwrap();
        }),
    ];
    for (name, harm) in harms {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("data");
        let store = open(&folder).unwrap();
        let kept = put(&store, "/a", "1").await;
        harm(&folder, &dir.path().join("other"));
        let before = fs::read(folder.join("store/checkpoint")).ok();
        for _ in 0..2 {
            let error = store.create("/b".into(), "2".into()).await.unwrap_err().to_string();
            assert!(
                error.contains("was removed, moved or replaced while the store was open"),
                "{name}: {error}"
            );
        }
        assert!(
            store.stats().await.is_ok_and(|stats| stats.degraded.is_some()) || !folder.join("store").exists()
        );
        // It can be read, and whatever is at its path now is not touched.
        assert_eq!(store.get(b"/a", None).await.unwrap().entry.unwrap().value, "1", "{name}");
        store.compact(kept).await.unwrap_err();
        store.close().await.unwrap();
        assert_eq!(fs::read(folder.join("store/checkpoint")).ok(), before, "{name}");
        if dir.path().join("other/store").exists() {
            let moved = open(&dir.path().join("other")).unwrap();
            assert_eq!(moved.revision().await.unwrap(), kept, "{name}: a refused write was made");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stray_marker_of_an_unfinished_store_deletes_nothing() {
    for text in ["", "this store is being made\n", "this copy of a store is being made\n"] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).unwrap();
        put(&store, "/a", "1").await;
        store.close().await.unwrap();
        let mark = folder.path().join("store/NEW");
        fs::write(&mark, text).unwrap();
        let store = open(folder.path()).unwrap();
        assert_eq!(store.get(b"/a", None).await.unwrap().entry.unwrap().value, "1");
        assert!(!mark.exists());
        store.close().await.unwrap();
        // Without `FORMAT`, the store is refused, and the log is kept.
        fs::write(&mark, text).unwrap();
        fs::remove_file(folder.path().join("store/FORMAT")).unwrap();
        open(folder.path()).unwrap_err();
        assert!(folder.path().join("store/log/000000000001.log").exists());
    }
}

/// A store with 50 keys, most of which have been written often; every tenth was deleted.
async fn much_written(folder: &Path) -> Revision {
    let store = open(folder).unwrap();
    for round in 0..40 {
        for key in 0..50 {
            put(&store, format!("/key/{key:02}"), format!("{round} {}", "x".repeat(2000))).await;
        }
    }
    for key in (0..50).step_by(10) {
        store.txn(Txn::new().delete(format!("/key/{key:02}"), Precondition::Any)).await.unwrap();
    }
    let revision = store.revision().await.unwrap();
    store.close().await.unwrap();
    revision
}

async fn all_values(folder: &Path) -> Vec<(Vec<u8>, Vec<u8>, Revision)> {
    let store = open(folder).unwrap();
    let found = store.range(Range::default()).await.unwrap();
    store.close().await.unwrap();
    found.entries.iter().map(|entry| (entry.key.to_vec(), entry.value.to_vec(), entry.revision)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compacted_folder_has_the_same_values_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let revision = much_written(folder).await;
    let before = all_values(folder).await;
    let Compacted { keys, records, bytes, revision: newest, .. } =
        compact_folder(folder, &mut |_| {}).unwrap();
    assert_eq!((keys, newest), (45, revision));
    // The newest record is kept for its revision, and what it replaced with it, though it is of a deletion.
    assert!(records.0 > 2000 && records.1 == 47, "{records:?}");
    assert!(bytes.1 * 4 < bytes.0, "{bytes:?}");
    assert!(check_folder(folder, &mut |_| {}).unwrap().is_sound());
    assert_eq!(all_values(folder).await, before);
    let store = open(folder).unwrap();
    let gone = store.get(b"/key/01", Some(Revision::new(revision.get() - 60))).await.unwrap_err();
    assert!(matches!(gone, Error::Compacted { .. }), "{gone}");
    assert!(compact_folder(folder, &mut |_| {}).unwrap_err().to_string().contains("in use by"));
    // Revisions go on where they were.
    assert_eq!(put(&store, "/new", "1").await, revision.next());
    store.close().await.unwrap();
    assert_eq!(compact_folder(folder, &mut |_| {}).unwrap().keys, 46);
    let names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with("store.")), "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_that_ended_between_its_renames_is_completed() {
    for by_repair in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        much_written(folder).await;
        let before = all_values(folder).await;
        // As after the first rename.
        let copy = dir.path().join("copy");
        let store = open(folder).unwrap();
        store.backup(&copy).await.unwrap();
        store.close().await.unwrap();
        fs::rename(copy.join("store"), folder.join("store.repaired")).unwrap();
        fs::rename(folder.join("store"), folder.join("store.replaced")).unwrap();
        assert!(open(folder).unwrap_err().to_string().contains("interrupted"));
        if by_repair {
            assert!(matches!(repair_folder(folder, None, &mut |_| {}).unwrap(), Repaired::Finished { .. }));
        } else {
            compact_folder(folder, &mut |_| {}).unwrap();
            assert!(!folder.join("store.replaced").exists());
        }
        assert_eq!(all_values(folder).await, before);
    }
}
