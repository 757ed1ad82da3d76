//! What a crash can leave at the end of the journal, and what only damage can.

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

/// A store as a crash leaves it: five writes acknowledged, and of the sixth the disk has all, some or nothing.
struct Crashed {
    folder: tempfile::TempDir,
    journal: PathBuf,
    watermark: Vec<u8>,
    bytes: Vec<u8>,
    /// Where the last batch begins, and where it ends.
    last: std::ops::Range<usize>,
}

impl Crashed {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("store/engine/0.jnl");
        let watermark = folder.path().join("store/watermark");
        let store = open(folder.path()).unwrap();
        for i in 0..5 {
            store.create(format!("/{i}").into(), vec![b'a' + i; 700].into()).await.unwrap();
        }
        store.close().await.unwrap();
        let acknowledged = fs::read(&watermark).unwrap();
        let begin = written(&fs::read(&journal).unwrap());

        let store = open(folder.path()).unwrap();
        let txn = Txn::new().create("/5", vec![b'f'; 1500]).delete("/0", Precondition::Exists);
        store.txn(txn).await.unwrap();
        store.close().await.unwrap();
        let mut bytes = fs::read(&journal).unwrap();
        let end = written(&bytes);
        // The rest is zeros, and there is a lot of it.
        bytes.truncate(end + 10_000);
        assert!(begin + 1500 < end);
        Self { folder, journal, watermark: acknowledged, bytes, last: begin..end }
    }

    /// Opens the store with these bytes in its journal. Returns its keys, or why it is refused.
    async fn open_with(&self, journal: &[u8]) -> Result<Vec<String>, OpenError> {
        fs::write(&self.journal, journal).unwrap();
        fs::write(self.folder.path().join("store/watermark"), &self.watermark).unwrap();
        let store = open(self.folder.path())?;
        let report = store.check().await.unwrap();
        assert!(report.is_sound(), "{report:?}");
        let entries = store.range(Range::default()).await.unwrap().entries;
        // It can be written to, and what is written is there the next time.
        let revision = store.create("/next".into(), "v".into()).await.unwrap();
        store.close().await.unwrap();
        let store = open(self.folder.path()).unwrap();
        assert_eq!(store.revision().await.unwrap(), revision);
        store.close().await.unwrap();
        Ok(entries.into_iter().map(|entry| String::from_utf8(entry.key.to_vec()).unwrap()).collect())
    }
}

/// The engine ends a batch with this; what follows has not been used.
fn written(journal: &[u8]) -> usize {
    memchr::memmem::rfind(journal, b"FJL\x03").unwrap() + 4
}

const BEFORE: [&str; 5] = ["/0", "/1", "/2", "/3", "/4"];
const AFTER: [&str; 5] = ["/1", "/2", "/3", "/4", "/5"];

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_was_under_way_is_whole_or_absent_wherever_it_was_torn() {
    let crashed = Crashed::new().await;
    assert_eq!(crashed.open_with(&crashed.bytes).await.unwrap(), AFTER);
    for cut in crashed.last.clone().step_by(23) {
        // The file ends there, or the rest of it was never written.
        let short = &crashed.bytes[..cut];
        let mut padded = short.to_vec();
        padded.resize(cut + 100_000, 0);
        assert_eq!(crashed.open_with(short).await.unwrap(), BEFORE, "cut at {cut}");
        assert_eq!(crashed.open_with(&padded).await.unwrap(), BEFORE, "nothing written from {cut} on");
    }
    // Sectors may reach the disk in any order: the end is there, something before it is not.
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
async fn damage_to_what_was_acknowledged_is_refused_and_left_as_it_is() {
    let crashed = Crashed::new().await;
    let mut refused = 0;
    let damages = (0..crashed.last.start).step_by(13).collect::<Vec<_>>();
    for at in &damages {
        let mut damaged = crashed.bytes.clone();
        damaged[*at] ^= 0x10;
        match crashed.open_with(&damaged).await {
            // The number of the last batch that was acknowledged: then, only what was not is dropped.
            Ok(keys) => assert!(keys == BEFORE || keys == AFTER, "byte {at}: {keys:?}"),
            Err(error) => {
                let text = error.to_string();
                assert!(
                    matches!(error, OpenError::Damaged { path, .. } if path == crashed.journal),
                    "{text}"
                );
                assert!(text.contains(" at byte "), "byte {at}: {text}");
                assert!(text.contains("revision 6 had been acknowledged"), "byte {at}: {text}");
                assert!(fs::read(&crashed.journal).unwrap() == damaged, "byte {at}: the journal was changed");
                refused += 1;
            }
        }
    }
    assert!(refused > damages.len() * 9 / 10, "{refused} of {} were refused", damages.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_journal_that_holds_one_acknowledged_write_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    store.create("/only".into(), "one".into()).await.unwrap();
    store.close().await.unwrap();
    let journal = folder.path().join("store/engine/0.jnl");
    let mut bytes = fs::read(&journal).unwrap();
    bytes[20] ^= 1;
    fs::write(&journal, &bytes).unwrap();
    let error = open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("it ends at revision 1, but revision 2 had been acknowledged"), "{error}");
    assert!(fs::read(&journal).unwrap() == bytes, "the journal was changed");
}
