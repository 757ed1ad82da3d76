//! Damaged, truncated and missing files: refused or reported, never a panic, never silent loss.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{
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
use k1s_store_disk::{DiskOptions, DiskStore, OpenError};

/// Small segments, so that a store of a few hundred kilobytes has several of everything.
fn options() -> DiskOptions {
    DiskOptions { segment_bytes: 64 << 10, history_revisions: 200, ..DiskOptions::default() }
}

fn open(folder: &Path) -> Result<DiskStore, OpenError> {
    DiskStore::open(Env::system(), folder, options())
}

fn value(env: &Env) -> Bytes {
    let mut value = vec![0; 500];
    env.fill_random(&mut value);
    value.into()
}

/// A store with history, deletions and compaction behind it, and what is in it.
async fn filled(folder: &Path) -> Vec<KeyValue> {
    let (random, _clock) = Env::simulated(7);
    let store = open(folder).unwrap();
    for i in 0..1500 {
        let key = format!("/objects/{:03}", random.random_below(300));
        let txn = match random.random_below(8) {
            0 => Txn::new().delete(key, Precondition::Any),
            1 => Txn::new().put(key, value(&random), Precondition::Any).put(
                format!("/pairs/{i}"),
                value(&random),
                Precondition::Any,
            ),
            _ => Txn::new().put(key, value(&random), Precondition::Any),
        };
        store.txn(txn).await.unwrap();
    }
    let entries = store.range(Range::default()).await.unwrap().entries;
    let report = store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    store.close().await.unwrap();
    entries
}

/// Bytes up to the last that is not zero.
fn written(bytes: &[u8]) -> u64 {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.file_name().is_some_and(|name| !name.eq_ignore_ascii_case("lock")) {
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

/// What became of a damaged store.
#[derive(Debug, PartialEq)]
enum Fate {
    Refused,
    Reported,
    Harmless,
}

/// Opens a damaged store. It may be refused, it may say what is wrong, or nothing is lost.
async fn fate(folder: &Path, expected: &[KeyValue], damage: &str) -> Fate {
    let store = match open(folder) {
        Ok(store) => store,
        Err(OpenError::Damaged { .. } | OpenError::NewerFormat { .. }) => return Fate::Refused,
        Err(other) => panic!("{damage}: refused for another reason: {other}"),
    };
    let report = store.check().await.unwrap();
    let read = store.range(Range::default()).await;
    store.close().await.unwrap();
    if !report.is_sound() {
        return Fate::Reported;
    }
    assert_eq!(read.unwrap().entries, expected, "{damage}: something was lost, and nothing said so");
    Fate::Harmless
}

#[tokio::test(flavor = "multi_thread")]
async fn any_damaged_file_is_refused_or_reported_or_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let expected = filled(&whole).await;
    let (random, _clock) = Env::simulated(11);
    let mut fates = Vec::new();
    for file in files(&whole) {
        let name = file.strip_prefix(&whole).unwrap().to_owned();
        let bytes = fs::read(&file).unwrap();
        let written = written(&bytes);
        let mut damages: Vec<(String, Option<Vec<u8>>)> = vec![("is gone".to_owned(), None)];
        for _ in 0..6 {
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
            let fate = fate(&folder, &expected, &damage).await;
            println!("{fate:?}: {damage}");
            if number == 0 {
                assert_ne!(fate, Fate::Harmless, "{damage}, and nobody noticed");
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
}

/// Flips a bit of the pointer in front of record `number` in the first segment.
fn damage_pointer(folder: &Path, number: usize) {
    let segment = folder.join("store/log/000000000001.log");
    let bytes = fs::read(&segment).unwrap();
    let record = memchr::memmem::find_iter(&bytes, b"\x02rec").nth(number).unwrap();
    // One of the upper bytes of the revision: it seems to be of the far future.
    let at = record + 4 + 6;
    let mut file = fs::OpenOptions::new().write(true).open(&segment).unwrap();
    file.seek(SeekFrom::Start(at as u64)).unwrap();
    file.write_all(&[bytes[at] ^ 0x40]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_whose_pointer_is_damaged_is_not_taken_for_one_that_is_not_there() {
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
            _ => panic!("what comes behind the damage is missing, and nothing said so"),
        }
    }
    assert!(!store.check().await.unwrap().is_sound());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_segment_that_is_longer_than_any_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    store.create("/a".into(), "1".into()).await.unwrap();
    store.close().await.unwrap();
    let segment = dir.path().join("store/log/000000000001.log");
    // Most of it is a hole that takes up no room on disk, but would in memory.
    fs::OpenOptions::new().write(true).open(segment).unwrap().set_len(1 << 40).unwrap();
    let error = open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("000000000001.log: it has 1099511627776 bytes"), "{error}");
}
