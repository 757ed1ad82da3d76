//! The checkpoint and the watermark can be derived from the log: wherever they are damaged, the store opens
//! unchanged and they are rebuilt.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use k1s_env::Env;
use k1s_store::{KeyValue, Precondition, Range, Revision, Store, Txn};
use k1s_store_disk::{DiskOptions, testing::SimDisk};

const FOLDER: &str = "/data";

fn options() -> DiskOptions {
    DiskOptions { segment_bytes: 2000, reserve_bytes: 0, ..DiskOptions::default() }
}

/// A store with several segments, deletions and compactions, and its entries.
async fn filled() -> (SimDisk, Vec<KeyValue>) {
    let disk = SimDisk::new(1);
    let store = disk.open_stepped(Env::system(), FOLDER, options()).unwrap();
    let mut last = Revision::FIRST;
    for number in 0..60 {
        let key = format!("/{:02}", number % 17);
        let txn = match number % 9 {
            0 => Txn::new().delete(key, Precondition::Any),
            _ => Txn::new().put(key, vec![number; 150], Precondition::Any),
        };
        last = store.txn(txn).await.unwrap();
    }
    store.compact(Revision::new(last.get() - 10)).await.unwrap();
    let entries = store.range(Range::default()).await.unwrap().entries;
    assert!(store.check().await.unwrap().is_sound());
    store.close().await.unwrap();
    drop(store);
    let segments = disk.paths().iter().filter(|path| path.starts_with("/data/store/log")).count();
    assert!(segments > 3, "{segments}");
    (disk, entries)
}

/// All damages to try: a name, and the remaining bytes.
fn damages(bytes: &[u8], places: impl Iterator<Item = usize> + Clone) -> Vec<(String, Option<Vec<u8>>)> {
    let mut damages = vec![("absent".to_owned(), None)];
    for at in places {
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 1 << (at % 8);
        damages.push((format!("a bit of byte {at}"), Some(flipped)));
        damages.push((format!("cut to {at} bytes"), Some(bytes[..at].to_vec())));
        for (what, with) in [("zeros", 0), ("garbage", 0xa5)] {
            let mut blank = bytes.to_vec();
            blank[at..].iter_mut().take(32).for_each(|byte| *byte = with);
            damages.push((format!("{what} at byte {at}"), Some(blank)));
        }
    }
    damages.retain(|(_, damaged)| damaged.as_deref() != Some(bytes));
    damages
}

async fn is_rebuilt(name: &str, places: impl Iterator<Item = usize> + Clone) {
    let (whole, entries) = filled().await;
    let path = format!("{FOLDER}/store/{name}");
    let bytes = whole.read(&path).unwrap();
    let places = places.take_while(|place| *place < bytes.len());
    let damages = damages(&bytes, places);
    assert!(damages.len() > 100, "{}", damages.len());
    for (damage, damaged) in damages {
        let disk = whole.copied(2);
        match damaged {
            Some(damaged) => disk.write(&path, damaged).unwrap(),
            None => disk.remove(&path).unwrap(),
        }
        for _ in 0..2 {
            let store = disk
                .open_stepped(Env::system(), FOLDER, options())
                .unwrap_or_else(|error| panic!("{name}, {damage}: {error}"));
            assert_eq!(store.range(Range::default()).await.unwrap().entries, entries, "{name}, {damage}");
            let report = store.check().await.unwrap();
            assert!(report.is_sound(), "{name}, {damage}: {report:?}");
            store.close().await.unwrap();
        }
        let report = disk.check_folder(FOLDER).unwrap();
        assert!(report.is_sound(), "{name}, {damage}: {report:?}");
    }
}

#[tokio::test]
async fn a_checkpoint_damaged_anywhere_is_rebuilt() {
    is_rebuilt("checkpoint", 0..).await;
}

#[tokio::test]
async fn a_watermark_damaged_anywhere_is_rebuilt() {
    // Both slots, some bytes between them, and both ends.
    is_rebuilt("watermark", (0..40).chain((40..4090).step_by(270)).chain(4090..)).await;
}
