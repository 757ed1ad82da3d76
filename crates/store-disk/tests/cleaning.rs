//! Cleaning reclaims the space of dead records, and nothing else.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use k1s_env::Env;
use k1s_store::{Error, Precondition, Range, Revision, Store, Txn};
use k1s_store_disk::{DiskOptions, DiskStore};

const SEGMENT: u64 = 16 << 10;

fn options() -> DiskOptions {
    DiskOptions { segment_bytes: SEGMENT, history_revisions: 300, ..DiskOptions::default() }
}

fn open(folder: &Path) -> DiskStore {
    DiskStore::open(Env::system(), folder, options()).unwrap()
}

type Contents = BTreeMap<Vec<u8>, (Vec<u8>, Revision)>;

async fn contents(store: &DiskStore, at: Option<Revision>) -> Result<Contents, Error> {
    let range = Range::default();
    let range = match at {
        Some(revision) => range.at(revision),
        None => range,
    };
    let entries = store.range(range).await?.entries;
    Ok(entries
        .into_iter()
        .map(|entry| (entry.key.to_vec(), (entry.value.to_vec(), entry.revision)))
        .collect())
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("store/log")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "log"));
    paths.sort();
    paths
}

fn log_bytes(folder: &Path) -> u64 {
    segments(folder).iter().map(|path| fs::metadata(path).unwrap().len()).sum()
}

/// Writes some keys constantly, and others rarely.
async fn churn(store: &DiskStore, random: &Env, writes: u64, model: &mut Contents) -> Revision {
    let mut revision = store.revision().await.unwrap();
    for n in 0..writes {
        let key = match random.random_below(10) {
            0 => format!("/cold/{:04}", random.random_below(400)),
            1 => format!("/gone/{n}"),
            _ => format!("/hot/{}", random.random_below(20)),
        };
        let mut value = vec![0; 50 + random.random_below(200) as usize];
        random.fill_random(&mut value);
        revision = match random.random_below(12) {
            0 => {
                model.remove(key.as_bytes());
                store.txn(Txn::new().delete(key, Precondition::Any)).await.unwrap()
            }
            _ => {
                let txn = Txn::new().put(key.clone(), value.clone(), Precondition::Any);
                let revision = store.txn(txn).await.unwrap();
                model.insert(key.into_bytes(), (value, revision));
                revision
            }
        };
        if n % 3 == 0 {
            // Only the records of their deletion remain.
            model.retain(|key, _| !key.starts_with(b"/gone/"));
            for entry in store.range(Range::prefix("/gone/")).await.unwrap().entries {
                revision = store.txn(Txn::new().delete(entry.key, Precondition::Any)).await.unwrap();
            }
        }
    }
    revision
}

/// Polls until a condition holds, for at most a minute.
async fn wait_for(what: &str, is_so: impl AsyncFn() -> bool) {
    let env = Env::system();
    let waiting = async {
        while !is_so().await {
            env.yield_now().await;
        }
    };
    env.timeout(Duration::from_secs(60), waiting).await.expect(what);
}

#[tokio::test(flavor = "multi_thread")]
async fn space_is_reclaimed_and_every_kept_revision_stays_readable() {
    let dir = tempfile::tempdir().unwrap();
    let (random, _clock) = Env::simulated(5);
    let (mut model, mut moments) = (Contents::new(), Vec::<(Revision, Contents)>::new());
    let mut store = open(dir.path());
    let mut checked = 0;
    for round in 0..60 {
        let revision = churn(&store, &random, 150, &mut model).await;
        assert_eq!(contents(&store, None).await.unwrap(), model, "round {round}");
        moments.push((revision, model.clone()));
        for (revision, then) in &moments {
            match contents(&store, Some(*revision)).await {
                Ok(found) => {
                    assert_eq!(found, *then, "round {round}, at revision {revision}");
                    checked += 1;
                }
                Err(Error::Compacted { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let oldest = store.stats().await.unwrap().oldest;
        moments.retain(|(revision, _)| *revision >= oldest);
        if round % 7 == 0 {
            let report = store.check().await.unwrap();
            assert!(report.is_sound(), "round {round}: {report:?}");
            store.close().await.unwrap();
            store = open(dir.path());
        }
    }
    assert!(checked > 100, "too few old revisions were read: {checked}");
    // Some 11,000 records of 200 bytes were written. Live records, the same amount of dead ones, and a few
    // segments may remain.
    let bound = 2 * (u64::from(u32::try_from(model.len()).unwrap()) + 700) * 300 + 6 * SEGMENT;
    wait_for("the log is small again", async || log_bytes(dir.path()) < bound).await;
    assert!(segments(dir.path()).len() < 60, "{:?}", segments(dir.path()));
    let report = store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(contents(&store, None).await.unwrap(), model);
}

/// Simulates a power cut after segments were replaced by their cleaned copy.
#[tokio::test(flavor = "multi_thread")]
async fn replaced_and_unfinished_files_are_ignored_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (random, _clock) = Env::simulated(6);
    let mut model = Contents::new();
    let store = open(dir.path());
    let mut old = BTreeMap::new();
    for _ in 0..40 {
        churn(&store, &random, 50, &mut model).await;
        for path in segments(dir.path()) {
            // A file may be removed meanwhile.
            if let Ok(bytes) = fs::read(&path) {
                old.entry(path).or_insert(bytes);
            }
        }
    }
    store.close().await.unwrap();
    let kept = segments(dir.path());
    let mut returned = 0;
    for (path, bytes) in old.iter().filter(|(path, _)| !kept.contains(path)) {
        fs::write(path, bytes).unwrap();
        returned += 1;
    }
    fs::write(dir.path().join("store/log/000000000003.new"), "half a segment").unwrap();
    assert!(returned > 5, "no segment was replaced: {kept:?}");
    let store = open(dir.path());
    assert_eq!(contents(&store, None).await.unwrap(), model);
    let report = store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(segments(dir.path()), kept, "obsolete files are removed");
}

/// Only the checkpoint tells which records were omitted from the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_from_before_segments_were_cleaned_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (random, _clock) = Env::simulated(7);
    let store = open(dir.path());
    churn(&store, &random, 100, &mut Contents::new()).await;
    store.close().await.unwrap();
    let checkpoint = dir.path().join("store/checkpoint");
    let before = fs::read(&checkpoint).unwrap();
    let store = open(dir.path());
    churn(&store, &random, 2000, &mut Contents::new()).await;
    wait_for("something is cleaned", async || {
        let last = segments(dir.path()).pop().unwrap();
        let made: usize = last.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        segments(dir.path()).len() < made
    })
    .await;
    store.close().await.unwrap();
    fs::write(&checkpoint, before).unwrap();
    let error = DiskStore::open(Env::system(), dir.path(), options()).unwrap_err().to_string();
    assert!(error.contains("checkpoint: it does not match segment"), "{error}");
}
