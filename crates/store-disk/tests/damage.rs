//! Damaged, truncated and missing files: rebuilt, refused or reported, without panics or silent loss; and
//! what a repair recovers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    io::{Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use k1s_env::Env;
use k1s_store::{
    Error, KeyValue, Precondition, Range, Revision, Store, Txn, WatchRequest, feed::FeedOptions,
};
use k1s_store_disk::{
    DiskOptions, DiskStore, Fate as LostFate, FolderReport, Lost, OpenError, Repaired, check_folder,
    repair_folder,
};

/// Small segments, so that a store of a few hundred kilobytes has several of each file.
fn options() -> DiskOptions {
    DiskOptions {
        segment_bytes: 64 << 10,
        history_revisions: 200,
        reserve_bytes: 0,
        ..DiskOptions::default()
    }
}

fn open(folder: &Path) -> Result<DiskStore, OpenError> {
    DiskStore::open(Env::system(), folder, options())
}

fn value(env: &Env) -> Bytes {
    let mut value = vec![0; 500];
    env.fill_random(&mut value);
    value.into()
}

/// The expected contents of a store, present and past.
#[derive(Default)]
struct Model {
    entries: Vec<KeyValue>,
    /// The revision of each key's last change.
    changed: BTreeMap<Bytes, Revision>,
    values: HashMap<(Bytes, Revision), Bytes>,
}

/// Creates a store with history, deletions and compactions, and returns its expected contents.
async fn filled(folder: &Path) -> Model {
    let (random, _clock) = Env::simulated(7);
    let store = open(folder).unwrap();
    let mut model = Model::default();
    for i in 0..1500 {
        let key = Bytes::from(format!("/objects/{:03}", random.random_below(300)));
        let first = value(&random);
        let (deletes, pair) = match random.random_below(8) {
            0 => (true, None),
            1 => (false, Some((Bytes::from(format!("/pairs/{i}")), value(&random)))),
            _ => (false, None),
        };
        let mut txn = if deletes {
            Txn::new().delete(key.clone(), Precondition::Any)
        } else {
            Txn::new().put(key.clone(), first.clone(), Precondition::Any)
        };
        if let Some((key, value)) = &pair {
            txn = txn.put(key.clone(), value.clone(), Precondition::Any);
        }
        let before = store.revision().await.unwrap();
        let revision = store.txn(txn).await.unwrap();
        if revision > before {
            for (key, value) in pair.into_iter().chain([(key, first)]) {
                model.changed.insert(key.clone(), revision);
                model.values.insert((key, revision), value);
            }
        }
    }
    model.entries = store.range(Range::default()).await.unwrap().entries;
    let report = store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    store.close().await.unwrap();
    model
}

/// Repairs a damaged store. The result must be usable, hold everything undamaged, and report everything else.
async fn repaired(folder: &Path, model: &Model, damage: &str) -> Option<FolderReport> {
    let before: Vec<_> =
        files(&folder.join("store")).into_iter().map(|path| fs::read(path).unwrap()).collect();
    let checked = match check_folder(folder, &mut |_| {}) {
        Err(OpenError::UnknownFormat { .. }) => return None,
        checked => checked.unwrap_or_else(|error| panic!("{damage}: {error}")),
    };
    let done = repair_folder(folder, None, &mut |_| {}).unwrap_or_else(|error| panic!("{damage}: {error}"));
    let report = match done {
        Repaired::Sound(report) => report,
        Repaired::Saved { report, store, damaged } => {
            assert_eq!((store, damaged.clone()), (folder.join("store"), folder.join("store.damaged-1")));
            let kept: Vec<_> = files(&damaged).into_iter().map(|path| fs::read(path).unwrap()).collect();
            assert!(kept == before, "{damage}: the damaged store is kept as it was");
            report
        }
        other => panic!("{damage}: {other:?}"),
    };
    assert_eq!(report, checked, "{damage}: a check says what a repair does");
    let store = open(folder).unwrap_or_else(|error| panic!("{damage}: {error}"));
    let sound = store.check().await.unwrap();
    assert!(sound.is_sound(), "{damage}: {sound:?}");
    let newest = *model.changed.values().max().unwrap();
    if !report.is_sound() {
        assert!(store.revision().await.unwrap() > newest, "{damage}: a revision is used twice");
    }
    let found = store.range(Range::default()).await.unwrap().entries;
    let named = |key: &Bytes, lost: &Lost| {
        let changed = model.changed[key];
        lost.key.as_ref().map_or((lost.first..=lost.last).contains(&changed), |lost| lost == key)
    };
    let found: BTreeMap<_, _> = found.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
    for expected in &model.entries {
        if found.get(&expected.key) != Some(expected) {
            let named = report.lost.iter().any(|lost| named(&expected.key, lost));
            assert!(named, "{damage}: {:?} is not what it was: {report:#?}", expected.key);
        }
    }
    for (key, entry) in &found {
        assert_eq!(model.values.get(&(key.clone(), entry.revision)), Some(&entry.value), "{damage}: made up");
        if !model.entries.iter().any(|expected| expected.key == *key) {
            let named = report.lost.iter().any(|lost| named(key, lost));
            assert!(named, "{damage}: {key:?} had been deleted: {report:#?}");
        }
    }
    // Nothing else may be reported as lost.
    for lost in &report.lost {
        if let (Some(key), LostFate::Gone) = (&lost.key, lost.fate) {
            assert!(!found.contains_key(key), "{damage}: {lost}");
        }
    }
    store.txn(Txn::new().put("/new", "1", Precondition::Absent)).await.unwrap();
    store.close().await.unwrap();
    Some(report)
}

/// Number of bytes up to the last non-zero one.
fn written(bytes: &[u8]) -> u64 {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.file_name().is_some_and(|name| name != "LOCK" && name != "reserve") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&file, &target).unwrap();
    }
}

/// The result of opening a damaged store.
#[derive(Debug, PartialEq)]
enum Fate {
    Refused,
    Reported,
    Harmless,
}

/// Opens a damaged store: it is refused, it reports the damage, or nothing is lost.
async fn fate(folder: &Path, expected: &[KeyValue], damage: &str) -> Fate {
    let store = match open(folder) {
        Ok(store) => store,
        Err(OpenError::Damaged { .. } | OpenError::UnknownFormat { .. }) => return Fate::Refused,
        Err(other) => panic!("{damage}: refused for an unexpected reason: {other}"),
    };
    let report = store.check().await.unwrap();
    let read = store.range(Range::default()).await;
    store.close().await.unwrap();
    if !report.is_sound() {
        return Fate::Reported;
    }
    assert_eq!(read.unwrap().entries, expected, "{damage}: data was lost silently");
    Fate::Harmless
}

#[tokio::test(flavor = "multi_thread")]
async fn any_damaged_file_is_refused_or_reported_or_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let model = filled(&whole).await;
    let (random, _clock) = Env::simulated(11);
    let mut fates = Vec::new();
    let (mut repairs, mut named) = (0, 0);
    for file in files(&whole) {
        let name = file.strip_prefix(&whole).unwrap().to_owned();
        let bytes = fs::read(&file).unwrap();
        let written = written(&bytes);
        let mut damages: Vec<(String, Option<Vec<u8>>)> = vec![("is gone".to_owned(), None)];
        for _ in 0..4 {
            let at = random.random_below(written.max(1)) as usize;
            let mut flipped = bytes.clone();
            if let Some(byte) = flipped.get_mut(at) {
                *byte ^= 1 << random.random_below(8);
                damages.push((format!("has a flipped bit at byte {at}"), Some(flipped)));
            }
            let at = random.random_below(written) as usize;
            damages.push((format!("is cut to {at} bytes"), Some(bytes[..at].to_vec())));
            let at = random.random_below(written) as usize;
            let mut blank = bytes.clone();
            blank[at..].iter_mut().take(512).for_each(|byte| *byte = 0);
            damages.push((format!("has zeros at byte {at}"), Some(blank)));
        }
        for (number, (damage, damaged)) in damages.into_iter().enumerate() {
            let folder = dir.path().join("damaged");
            copy(&whole, &folder);
            match damaged {
                Some(bytes) => fs::write(folder.join(&name), bytes).unwrap(),
                None => fs::remove_file(folder.join(&name)).unwrap(),
            }
            let damage = format!("{} {damage}", name.display());
            let is_log = name.starts_with("store/log");
            // Every second one, and before it is opened: opening rebuilds some files.
            let report = if number % 2 == 1 { repaired(&folder, &model, &damage).await } else { None };
            if let Some(report) = report {
                let of_these = report.lost.len();
                println!("repaired: {damage}: {} problems, {of_these} lost", report.problems.len());
                if is_log && damage.contains("flipped") {
                    assert!(of_these <= 2, "{damage}: one bit: {report:#?}");
                }
                repairs += 1;
                named += of_these;
                fs::remove_dir_all(&folder).unwrap();
                continue;
            }
            let fate = fate(&folder, &model.entries, &damage).await;
            println!("{fate:?}: {damage}");
            if number == 0 && (is_log || name.ends_with("FORMAT")) {
                assert_ne!(fate, Fate::Harmless, "{damage}: the damage was not detected");
            }
            fates.push(fate);
            fs::remove_dir_all(&folder).unwrap();
        }
    }
    let count = |fate| fates.iter().filter(|known| **known == fate).count();
    println!(
        "{} damages: {} refused, {} reported, {} harmless",
        fates.len(),
        count(Fate::Refused),
        count(Fate::Reported),
        count(Fate::Harmless)
    );
    assert!(count(Fate::Refused) > 0 && count(Fate::Reported) > 0);
    assert!(repairs > 20 && named > 0, "{repairs} repairs, {named} lost");
}

/// Files that can be derived from the log are rebuilt.
#[tokio::test(flavor = "multi_thread")]
async fn derived_files_are_rebuilt_when_the_store_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let model = filled(&whole).await;
    let log = files(&whole.join("store/log"));
    let full = &log[..log.len() - 1];
    for (name, place) in [
        ("store/watermark".to_owned(), Some(3)),
        ("store/watermark".to_owned(), None),
        (format!("store/log/{}", full[0].file_name().unwrap().display()), Some(20)),
        (format!("store/log/{}", full[full.len() - 1].file_name().unwrap().display()), Some(200)),
    ] {
        let folder = dir.path().join("damaged");
        copy(&whole, &folder);
        let path = folder.join(&name);
        match place {
            Some(from_end) => {
                let mut bytes = fs::read(&path).unwrap();
                let at = bytes.len() - from_end;
                bytes[at] ^= 4;
                fs::write(&path, bytes).unwrap();
            }
            None => fs::remove_file(&path).unwrap(),
        }
        let report = check_folder(&folder, &mut |_| {}).unwrap();
        assert!(!report.is_sound() && report.lost.is_empty(), "{name}: {report:?}");
        for _ in 0..2 {
            let store = open(&folder).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(store.check().await.unwrap().is_sound(), "{name}");
            assert_eq!(store.range(Range::default()).await.unwrap().entries, model.entries, "{name}");
            store.close().await.unwrap();
        }
        assert!(check_folder(&folder, &mut |_| {}).unwrap().is_sound(), "{name}");
        fs::remove_dir_all(&folder).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_is_rebuilt_if_the_log_has_the_same_information() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let mut last = Revision::FIRST;
    for i in 0..3000 {
        let key = format!("/{:02}", i % 40);
        last = store.txn(Txn::new().put(key, vec![b'x'; 200], Precondition::Any)).await.unwrap();
    }
    let expected = store.range(Range::default()).await.unwrap();
    store.close().await.unwrap();
    for damage in ["", "k1s state\n and nothing else"] {
        fs::write(dir.path().join("store/checkpoint"), damage).unwrap();
        let store = open(dir.path()).unwrap();
        assert_eq!(store.range(Range::default()).await.unwrap(), expected);
        let report = store.check().await.unwrap();
        assert!(report.is_sound(), "{report:?}");
        assert!(report.oldest < last, "the history is there");
        store.close().await.unwrap();
    }
}

/// A server's data folder has other contents; a repair can write to another folder; and it can be
/// interrupted.
#[tokio::test(flavor = "multi_thread")]
async fn a_repair_accepts_either_folder_writes_elsewhere_and_can_be_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("data");
    let quiet = &mut |_: k1s_store_disk::Progress| {};
    let store = open(&folder).unwrap();
    for key in ["/a", "/b", "/c"] {
        store.create(key.into(), vec![b'x'; 300].into()).await.unwrap();
    }
    let in_use = check_folder(&folder, quiet).unwrap_err();
    assert!(matches!(in_use, OpenError::Locked { .. }), "{in_use}");
    store.close().await.unwrap();
    assert!(matches!(repair_folder(&folder, None, quiet).unwrap(), Repaired::Sound(_)));

    // In the value of the second record.
    let segment = folder.join("store/log/000000000001.log");
    let mut bytes = fs::read(&segment).unwrap();
    let second = memchr::memmem::find_iter(&bytes, b"\x02rec").nth(1).unwrap();
    bytes[second + 200] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    open(&folder).unwrap_err();
    for name in ["", "store"] {
        let report = check_folder(folder.join(name), quiet).unwrap();
        assert_eq!(
            report.lost.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["key \"/b\", revision 3: lost"]
        );
    }
    let output = dir.path().join("output");
    repair_folder(folder.join("store"), Some(&output), quiet).unwrap();
    assert!(fs::read(&segment).unwrap() == bytes, "nothing was changed");
    let keys = async |folder: &Path| {
        let store = open(folder).unwrap();
        let entries = store.range(Range::default()).await.unwrap().entries;
        store.close().await.unwrap();
        entries.into_iter().map(|entry| String::from_utf8(entry.key.to_vec()).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&output).await, ["/a", "/c"]);
    let again = repair_folder(&folder, Some(&output), quiet).unwrap_err().to_string();
    assert!(again.contains("there is a store already"), "{again}");

    repair_folder(&folder, None, quiet).unwrap();
    assert_eq!(keys(&folder).await, ["/a", "/c"]);
    // Simulates a process that ended between the last two steps: no empty store is created, and the repair
    // can be resumed.
    fs::rename(folder.join("store"), folder.join("store.repaired")).unwrap();
    let refused = open(&folder).unwrap_err().to_string();
    assert!(refused.contains("a repair of the store was interrupted"), "{refused}");
    assert!(matches!(repair_folder(&folder, None, quiet).unwrap(), Repaired::Finished { .. }));
    assert_eq!(keys(&folder).await, ["/a", "/c"]);
    let nothing = check_folder(dir.path(), quiet).unwrap_err().to_string();
    assert!(nothing.contains("there is no store in it"), "{nothing}");
}

/// Flips a bit of the pointer of record `number` in the first segment.
fn damage_pointer(folder: &Path, number: usize) {
    let segment = folder.join("store/log/000000000001.log");
    let bytes = fs::read(&segment).unwrap();
    let record = memchr::memmem::find_iter(&bytes, b"\x02rec").nth(number).unwrap();
    // One of the upper bytes of the revision, so that it seems far in the future.
    let at = record + 4 + 6;
    let mut file = fs::OpenOptions::new().write(true).open(&segment).unwrap();
    file.seek(SeekFrom::Start(at as u64)).unwrap();
    file.write_all(&[bytes[at] ^ 0x40]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_with_a_damaged_pointer_is_reported_and_not_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let feed = FeedOptions { changes: 2, ..FeedOptions::default() };
    let store =
        DiskStore::open(Env::system(), dir.path(), DiskOptions { feed, ..DiskOptions::default() }).unwrap();
    let put = async |key: &str| {
        store.txn(Txn::new().put(key.to_owned(), "value", Precondition::Any)).await.unwrap()
    };
    put("/a").await;
    for _ in 0..10 {
        put("/other").await;
    }
    let moment = put("/other").await;
    put("/a").await;
    for _ in 0..10 {
        put("/other").await;
    }
    store.compact(Revision::new(moment.get() - 5)).await.unwrap();
    damage_pointer(dir.path(), 0);
    let error = store.get(b"/a", Some(moment)).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");

    damage_pointer(dir.path(), 20);
    let mut watch = store.watch(WatchRequest::default().after(moment)).await.unwrap();
    loop {
        match Env::system().timeout(Duration::from_secs(60), watch.next()).await {
            Ok(Some(Ok(_))) => {}
            Ok(Some(Err(error))) => {
                assert!(matches!(error, Error::Corrupt { .. }), "{error}");
                break;
            }
            _ => panic!("records after the damage are missing silently"),
        }
    }
    assert!(!store.check().await.unwrap().is_sound());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_segment_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    store.create("/a".into(), "1".into()).await.unwrap();
    store.close().await.unwrap();
    let segment = dir.path().join("store/log/000000000001.log");
    // Most of it is a hole, which would only occupy memory.
    fs::OpenOptions::new().write(true).open(segment).unwrap().set_len(1 << 40).unwrap();
    let error = open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("000000000001.log: it has 1099511627776 bytes"), "{error}");
}
