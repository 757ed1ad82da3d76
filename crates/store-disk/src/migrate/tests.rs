//! Stores as older formats had them, and what becomes of them.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    io::Write,
    path::Path,
};

use fjall::KeyspaceCreateOptions;
use k1s_env::Env;
use k1s_store::{Range, Revision, Store};

use super::engine::{APPLIED, COMPACTED, HEADS, SWEPT, database};
use crate::{
    DiskOptions, DiskStore,
    folder::{Folder, Making},
    log::{Frame, Log},
    record::{Head, Pointer, Record, Totals, entry_size},
};

/// Writes as a store makes them: a revision each, with what it replaced and the totals.
#[derive(Default)]
struct Writes {
    heads: HashMap<String, Head>,
    totals: Totals,
}

impl Writes {
    fn next(&mut self, revision: u64, key: &str, value: Option<&str>) -> (Pointer, Record) {
        let pointer = Pointer::new(Revision::new(revision), 0);
        let replaced = self.heads.get(key).copied();
        let size = value.map(|value| entry_size(key.as_bytes(), value.as_bytes()));
        let size_before = replaced.and_then(|head| head.size);
        let totals = &mut self.totals;
        totals.keys = totals.keys + u64::from(size.is_some()) - u64::from(size_before.is_some());
        totals.bytes = totals.bytes + u64::from(size.unwrap_or(0)) - u64::from(size_before.unwrap_or(0));
        self.heads.insert(key.to_owned(), Head { pointer, size });
        let record = Record {
            key: key.to_owned().into(),
            value: value.map(|value| value.to_owned().into()),
            created: size_before.is_none(),
            replaced: replaced.map(|head| head.pointer),
            steps: 1,
            totals: *totals,
        };
        (pointer, record)
    }
}

fn head_key(key: &str) -> String {
    format!("k{key}")
}

/// A store as the first format had it: three keys, one of them written twice, one deleted.
fn first_format(path: &Path) {
    let folder = Folder::lock(path).unwrap();
    let make = |folder: &Folder| {
        let db = database(&folder.engine()).open().unwrap();
        let [data, heads] =
            ["data", HEADS].map(|name| db.keyspace(name, KeyspaceCreateOptions::default).unwrap());
        let mut writes = Writes::default();
        let steps =
            [("/a", Some("1")), ("/b", Some("1")), ("/a", Some("2")), ("/c", Some("1")), ("/b", None)];
        for (revision, (key, value)) in (2..).zip(steps) {
            let (pointer, record) = writes.next(revision, key, value);
            let mut bytes = Vec::new();
            record.encode(pointer, &mut bytes);
            data.insert(pointer.encode(), bytes).unwrap();
            heads.insert(head_key(key), writes.heads[key].encode()).unwrap();
        }
        for mark in [COMPACTED, SWEPT] {
            heads.insert(mark, Revision::FIRST.get().to_be_bytes()).unwrap();
        }
        db.persist(fjall::PersistMode::SyncAll).unwrap();
        Ok(())
    };
    folder.create(Making::Empty, Revision::new(6), make).unwrap();
    fs::write(path.join("store/FORMAT"), "k1s disk store, format 1\n").unwrap();
}

type Contents = BTreeMap<String, String>;

async fn values(store: &DiskStore, at: u64) -> Contents {
    let range = Range::default().at(Revision::new(at));
    let text = |bytes: bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    let entries = store.range(range).await.unwrap().entries;
    entries.into_iter().map(|entry| (text(entry.key), text(entry.value))).collect()
}

fn contents(pairs: &[(&str, &str)]) -> Contents {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn a_store_of_the_first_format_is_migrated_with_its_history() {
    let folder = tempfile::tempdir().unwrap();
    first_format(folder.path());
    // Somebody was interrupted before.
    fs::create_dir(folder.path().join("store/log.new")).unwrap();
    fs::write(folder.path().join("store/log.new/000000000001.log"), "half").unwrap();
    for _ in 0..2 {
        let store = DiskStore::open(Env::system(), folder.path(), DiskOptions::default()).unwrap();
        let report = store.check().await.unwrap();
        assert!(report.is_sound(), "{report:?}");
        assert_eq!(report.records, 5);
        assert_eq!(values(&store, 6).await, contents(&[("/a", "2"), ("/c", "1")]));
        assert_eq!(values(&store, 3).await, contents(&[("/a", "1"), ("/b", "1")]));
        store.close().await.unwrap();
    }
    let format = fs::read_to_string(folder.path().join("store/FORMAT")).unwrap();
    assert_eq!(format, "k1s disk store, format 3\n");
    assert!(!folder.path().join("store/engine").exists());
}

const WRITES: u64 = 400;

/// A store as the second format had it, with some segments, swept half way, and an engine that is a little behind. Returns what
/// it had at each revision.
fn second_format(path: &Path) -> Vec<Contents> {
    let (swept, oldest, applied) = (150, 160, 350);
    let (random, _clock) = Env::simulated(5);
    let folder = Folder::lock(path).unwrap();
    let mut moments = vec![Contents::new(); 2];
    let make = |folder: &Folder| {
        let db = database(&folder.engine()).open().unwrap();
        let heads = db.keyspace(HEADS, KeyspaceCreateOptions::default).unwrap();
        let mut log = Log::create(&folder.log(), 4 << 10).unwrap();
        let mut writes = Writes::default();
        let mut frame = Frame::default();
        for revision in 2..=WRITES {
            let key = format!("/objects/{}", random.random_below(20));
            let value = format!("{revision}").repeat(20);
            let mut now = moments.last().cloned().unwrap();
            let value = if now.contains_key(&key) && random.random_below(3) == 0 {
                now.remove(&key);
                None
            } else {
                now.insert(key.clone(), value.clone());
                Some(&value[..])
            };
            moments.push(now);
            let (pointer, record) = writes.next(revision, &key, value);
            frame.clear();
            frame.push(pointer, |bytes| record.encode(pointer, bytes));
            log.append(&mut frame).unwrap();
            if revision == swept {
                writes.heads.retain(|_, head| head.live());
            }
            if revision == applied {
                for (key, head) in &writes.heads {
                    heads.insert(head_key(key), head.encode()).unwrap();
                }
            }
        }
        for (mark, revision) in [(COMPACTED, oldest), (SWEPT, swept), (APPLIED, applied)] {
            heads.insert(mark, revision.to_be_bytes()).unwrap();
        }
        db.persist(fjall::PersistMode::SyncAll).unwrap();
        // It had something else behind the frames.
        let segments = log.segments();
        let full = segments.iter().filter(|segment| segment.last() != segments.last());
        for segment in full {
            let path = folder.log().join(format!("{:012}.log", segment.id()));
            let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
            file.set_len(u64::from(segment.end())).unwrap();
            file.write_all(b"\x03idx and so on").unwrap();
        }
        assert!(segments.iter().count() > 5);
        Ok(())
    };
    folder.create(Making::Empty, Revision::new(WRITES), make).unwrap();
    fs::write(path.join("store/FORMAT"), "k1s disk store, format 2\n").unwrap();
    moments
}

#[tokio::test]
async fn a_store_of_the_second_format_is_migrated_with_its_history() {
    let folder = tempfile::tempdir().unwrap();
    let moments = second_format(folder.path());
    for _ in 0..2 {
        let store = DiskStore::open(Env::system(), folder.path(), DiskOptions::default()).unwrap();
        let report = store.check().await.unwrap();
        assert!(report.is_sound(), "{report:?}");
        assert_eq!((report.oldest, report.revision), (Revision::new(160), Revision::new(WRITES)));
        for at in 160..=WRITES {
            assert_eq!(values(&store, at).await, moments[at as usize], "at {at}");
        }
        store.close().await.unwrap();
    }
    assert!(!folder.path().join("store/engine").exists());
}

#[tokio::test]
async fn a_store_whose_migration_was_interrupted_is_migrated_anew() {
    let folder = tempfile::tempdir().unwrap();
    let moments = second_format(folder.path());
    super::heads_into_memory(&Folder::lock(folder.path()).unwrap()).unwrap();
    // Nobody got to say that it was done; and one of the segments has only half of its directory.
    let first = folder.path().join("store/log/000000000001.log");
    let len = fs::metadata(&first).unwrap().len();
    fs::OpenOptions::new().write(true).open(&first).unwrap().set_len(len - 10).unwrap();
    let store = DiskStore::open(Env::system(), folder.path(), DiskOptions::default()).unwrap();
    assert!(store.check().await.unwrap().is_sound());
    assert_eq!(values(&store, WRITES).await, moments[WRITES as usize]);
}

#[test]
fn a_store_that_has_lost_a_record_is_not_migrated() {
    let folder = tempfile::tempdir().unwrap();
    second_format(folder.path());
    let segment = folder.path().join("store/log/000000000010.log");
    fs::OpenOptions::new().write(true).open(&segment).unwrap().set_len(100).unwrap();
    let error =
        DiskStore::open(Env::system(), folder.path(), DiskOptions::default()).unwrap_err().to_string();
    assert!(error.contains("damaged") && error.contains("is missing"), "{error}");
}
