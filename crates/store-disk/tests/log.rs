//! What a crash can leave at the end of the log, and what only damage can.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use k1s_env::Env;
use k1s_store::{Precondition, Range, Store, Txn};
use k1s_store_disk::{DiskOptions, DiskStore, OpenError};

fn open(folder: &Path) -> Result<DiskStore, OpenError> {
    DiskStore::open(Env::system(), folder, DiskOptions::default())
}

/// A store after a crash: five acknowledged writes, and a sixth that is on disk completely, in part or not at
/// all.
struct Crashed {
    folder: tempfile::TempDir,
    segment: PathBuf,
    /// All other files, as they were before the sixth write.
    others: Vec<(PathBuf, Vec<u8>)>,
    bytes: Vec<u8>,
    /// The extent of the last frame.
    last: std::ops::Range<usize>,
}

impl Crashed {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let segment = first_segment(folder.path());
        let store = open(folder.path()).unwrap();
        for i in 0..5 {
            store.create(format!("/{i}").into(), vec![b'a' + i; 700].into()).await.unwrap();
        }
        store.close().await.unwrap();
        let begin = written(&fs::read(&segment).unwrap());
        let others = files(folder.path()).into_iter().filter(|path| *path != segment);
        let others = others.map(|path| (path.clone(), fs::read(&path).unwrap())).collect();

        let store = open(folder.path()).unwrap();
        let txn = Txn::new().create("/5", vec![b'f'; 1500]).delete("/0", Precondition::Exists);
        store.txn(txn).await.unwrap();
        store.close().await.unwrap();
        let mut bytes = fs::read(&segment).unwrap();
        let end = written(&bytes);
        // The rest is zeros, and long.
        bytes.truncate(end + 10_000);
        assert!(begin + 1500 < end);
        Self { folder, segment, others, bytes, last: begin..end }
    }

    /// Opens the store with these bytes in its log. Returns its keys, or the error.
    async fn open_with(&self, log: &[u8]) -> Result<Vec<String>, OpenError> {
        fs::remove_dir_all(self.folder.path().join("store")).unwrap();
        for (path, bytes) in
            self.others.iter().map(|(path, bytes)| (path, &bytes[..])).chain([(&self.segment, log)])
        {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let store = open(self.folder.path())?;
        let report = store.check().await.unwrap();
        assert!(report.is_sound(), "{report:?}");
        let entries = store.range(Range::default()).await.unwrap().entries;
        // It accepts writes, and they are still there after a reopen.
        let revision = store.create("/next".into(), "v".into()).await.unwrap();
        store.close().await.unwrap();
        let store = open(self.folder.path()).unwrap();
        assert_eq!(store.revision().await.unwrap(), revision);
        store.close().await.unwrap();
        Ok(entries.into_iter().map(|entry| String::from_utf8(entry.key.to_vec()).unwrap()).collect())
    }
}

fn first_segment(folder: &Path) -> PathBuf {
    folder.join("store/log/000000000001.log")
}

/// The end of the last frame.
fn written(segment: &[u8]) -> usize {
    let last = memchr::memmem::rfind(segment, b"\x01k1s").unwrap();
    let len = u32::from_be_bytes(segment[last + 8..last + 12].try_into().unwrap());
    last + 28 + len as usize
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

const BEFORE: [&str; 5] = ["/0", "/1", "/2", "/3", "/4"];
const AFTER: [&str; 5] = ["/1", "/2", "/3", "/4", "/5"];

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_write_is_complete_or_absent_wherever_it_was_torn() {
    let crashed = Crashed::new().await;
    assert_eq!(crashed.open_with(&crashed.bytes).await.unwrap(), AFTER);
    for cut in crashed.last.clone().step_by(23) {
        // The file ends there, or the rest was never written.
        let short = &crashed.bytes[..cut];
        let mut padded = short.to_vec();
        padded.resize(cut + 100_000, 0);
        assert_eq!(crashed.open_with(short).await.unwrap(), BEFORE, "cut at {cut}");
        assert_eq!(crashed.open_with(&padded).await.unwrap(), BEFORE, "nothing written from {cut} on");
    }
    // Sectors may reach the disk in any order: the end is there, but an earlier one is not.
    for missing in crashed.last.clone().step_by(512) {
        let mut torn = crashed.bytes.clone();
        torn[missing..].iter_mut().take(512).for_each(|byte| *byte = 0);
        if torn == crashed.bytes {
            continue;
        }
        assert_eq!(crashed.open_with(&torn).await.unwrap(), BEFORE, "zeros at {missing}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_acknowledged_writes_is_refused_and_nothing_is_changed() {
    let crashed = Crashed::new().await;
    let mut refused = 0;
    let damages = (0..crashed.last.start).step_by(13).collect::<Vec<_>>();
    for at in &damages {
        let mut damaged = crashed.bytes.clone();
        damaged[*at] ^= 0x10;
        match crashed.open_with(&damaged).await {
            Ok(keys) => panic!("byte {at}: {keys:?}"),
            // The header.
            Err(error) if *at < 48 => {
                assert!(error.to_string().contains("its header is damaged"), "byte {at}: {error}");
                refused += 1;
            }
            Err(error) => {
                let text = error.to_string();
                assert!(
                    matches!(error, OpenError::Damaged { path, .. } if path == crashed.segment),
                    "{text}"
                );
                assert!(text.contains(" at byte "), "byte {at}: {text}");
                assert!(text.contains("revision 6 had been acknowledged"), "byte {at}: {text}");
                assert!(fs::read(&crashed.segment).unwrap() == damaged, "byte {at}: the log was changed");
                refused += 1;
            }
        }
    }
    assert_eq!(refused, damages.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_log_with_a_single_acknowledged_write_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    store.create("/only".into(), "one".into()).await.unwrap();
    store.close().await.unwrap();
    let segment = first_segment(folder.path());
    let mut bytes = fs::read(&segment).unwrap();
    bytes[80] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    let error = open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("at byte 48; it is intact up to revision 1, and revision 2 had been"), "{error}");
    assert!(fs::read(&segment).unwrap() == bytes, "the log was changed");
}

/// Checkpoints are rare. The log has everything since the last one.
#[tokio::test(flavor = "multi_thread")]
async fn changes_since_the_last_checkpoint_are_found_in_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    store.create("/first".into(), "1".into()).await.unwrap();
    store.close().await.unwrap();
    let checkpoint = dir.path().join("store/checkpoint");
    let before = fs::read(&checkpoint).unwrap();

    let store = open(dir.path()).unwrap();
    for i in 0..3000 {
        store.txn(Txn::new().put(format!("/{}", i % 700), vec![b'x'; 100], Precondition::Any)).await.unwrap();
    }
    let deleted = store
        .txn(Txn::new().delete("/first", Precondition::Exists).delete("/7", Precondition::Exists))
        .await
        .unwrap();
    store.compact(deleted).await.unwrap();
    let expected = store.range(Range::default()).await.unwrap();
    assert_eq!(expected.entries.len(), 699);
    store.close().await.unwrap();

    assert_ne!(fs::read(&checkpoint).unwrap(), before);
    fs::write(&checkpoint, before).unwrap();
    let store = open(dir.path()).unwrap();
    assert_eq!(store.range(Range::default()).await.unwrap(), expected);
    let report = store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_files_in_the_folder_of_the_log_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    store.create("/a".into(), "1".into()).await.unwrap();
    store.close().await.unwrap();
    let log = dir.path().join("store/log");
    fs::create_dir(log.join("lost+found")).unwrap();
    let others =
        ["notes.txt", "2.log", "+00000000002.log", "000000000002.log.gz", "000000000002", "x.new", "0.log"];
    for name in others {
        fs::write(log.join(name), "not a segment").unwrap();
    }
    // These were written by this program, and are obsolete.
    fs::write(log.join("000000000009.new"), "half a segment").unwrap();
    for key in ["/b", "/c"] {
        let store = open(dir.path()).unwrap();
        assert!(store.get(b"/a", None).await.unwrap().entry.is_some());
        store.create(key.into(), "1".into()).await.unwrap();
        store.compact(store.revision().await.unwrap()).await.unwrap();
        store.close().await.unwrap();
    }
    for name in others {
        assert_eq!(fs::read_to_string(log.join(name)).unwrap(), "not a segment", "{name}");
    }
    assert!(!log.join("000000000009.new").exists());
}
