//! Bringing a store of an older format up to date.

use std::fs;

use fjall::{KeyspaceCreateOptions, Readable};
use k1s_store::{Error, Revision};

use crate::{
    engine::database,
    error::{OpenError, engine_error, io_error, no_panic},
    folder::{Folder, sync},
    log::{Frame, Log},
    options::DiskOptions,
    record::{APPLIED, Pointer},
};

/// So many bytes go into one frame.
const FRAME_BYTES: usize = 1 << 20;

/// Format 1 had the records in a tree of the engine, `data`, under their pointers.
pub(crate) fn records_into_log(folder: &Folder) -> Result<(), OpenError> {
    let engine = folder.engine();
    // Not in its place until it is complete. Whoever was interrupted here begins anew.
    let unfinished = folder.log().with_extension("new");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(OpenError::io(&unfinished))?;
    }
    if folder.log().exists() {
        return Ok(());
    }
    let copy = || -> Result<(), Error> {
        let options = DiskOptions::default();
        let db = database(&engine, options.cache_bytes).open().map_err(|error| engine_error(&error))?;
        let tree =
            |name| db.keyspace(name, KeyspaceCreateOptions::default).map_err(|error| engine_error(&error));
        let (data, heads) = (tree("data")?, tree("heads")?);
        let mut log = Log::create(&unfinished, options.segment_bytes).map_err(OpenError::into_store_error)?;
        let mut frame = Frame::default();
        let mut last = Revision::FIRST;
        for stored in db.snapshot().iter(&data) {
            let (key, bytes) = stored.into_inner().map_err(|error| engine_error(&error))?;
            let Some(pointer) = Pointer::decode(&key) else {
                return Err(Error::corrupt(format!("a record has the key \"{}\"", key.escape_ascii())));
            };
            if frame.len() >= FRAME_BYTES && pointer.revision > last {
                log.append_unsynced(&mut frame).map_err(|error| io_error(&error))?;
                frame.clear();
            }
            frame.push(pointer, |into| into.extend_from_slice(&bytes));
            last = pointer.revision;
        }
        if !frame.is_empty() {
            log.append_unsynced(&mut frame).map_err(|error| io_error(&error))?;
        }
        log.sync().map_err(|error| io_error(&error))?;
        heads.insert(APPLIED, last.get().to_be_bytes()).map_err(|error| engine_error(&error))?;
        db.persist(fjall::PersistMode::SyncAll).map_err(|error| engine_error(&error))
    };
    no_panic(copy).map_err(|error| OpenError::damaged(&engine, format!("it cannot be migrated: {error}")))?;
    fs::rename(&unfinished, folder.log()).map_err(OpenError::io(&unfinished))?;
    folder.log().parent().map_or(Ok(()), sync).map_err(OpenError::io(&folder.log()))
}

#[cfg(test)]
mod tests {
    use k1s_env::Env;
    use k1s_store::{Range, Store};

    use super::*;
    use crate::{
        DiskStore,
        record::{COMPACTED, Head, Record, SWEPT, Totals, entry_size, head_key},
    };

    /// A store as the first format had it: three keys, one of them written twice, one deleted.
    fn first_format(path: &std::path::Path) {
        let folder = Folder::lock(path).unwrap();
        let revision = Revision::new(6);
        folder
            .create(revision, |folder| {
                let db = database(&folder.engine(), 1 << 20).open().unwrap();
                let [data, heads] =
                    ["data", "heads"].map(|name| db.keyspace(name, KeyspaceCreateOptions::default).unwrap());
                let mut before = std::collections::HashMap::<&str, Head>::new();
                let mut totals = Totals::default();
                let writes = [
                    ("/a", Some("1")),
                    ("/b", Some("1")),
                    ("/a", Some("2")),
                    ("/c", Some("1")),
                    ("/b", None),
                ];
                for (number, (key, value)) in (2..).zip(writes) {
                    let pointer = Pointer::new(Revision::new(number), 0);
                    let replaced = before.get(key).copied();
                    let size = value.map(|value| entry_size(key.as_bytes(), value.as_bytes()));
                    let size_before = replaced.and_then(|head| head.size);
                    totals.keys = totals.keys + u64::from(size.is_some()) - u64::from(size_before.is_some());
                    totals.bytes =
                        totals.bytes + u64::from(size.unwrap_or(0)) - u64::from(size_before.unwrap_or(0));
                    let record = Record {
                        key: key.into(),
                        value: value.map(Into::into),
                        created: size_before.is_none(),
                        replaced: replaced.map(|head| head.pointer),
                        steps: 1,
                        totals,
                    };
                    let mut bytes = Vec::new();
                    record.encode(pointer, &mut bytes);
                    data.insert(pointer.encode(), bytes).unwrap();
                    let head = Head { pointer, size };
                    heads.insert(head_key(key.as_bytes()), head.encode()).unwrap();
                    before.insert(key, head);
                }
                for mark in [COMPACTED, SWEPT] {
                    heads.insert(mark, Revision::FIRST.get().to_be_bytes()).unwrap();
                }
                db.persist(fjall::PersistMode::SyncAll).unwrap();
                Ok(())
            })
            .unwrap();
        fs::write(path.join("store/FORMAT"), "k1s disk store, format 1\n").unwrap();
    }

    async fn values(store: &DiskStore, at: u64) -> Vec<(String, String)> {
        let range = Range::default().at(Revision::new(at));
        let text = |bytes: bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        let entries = store.range(range).await.unwrap().entries;
        entries.into_iter().map(|entry| (text(entry.key), text(entry.value))).collect()
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
            let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
            assert_eq!(values(&store, 6).await, [pair("/a", "2"), pair("/c", "1")]);
            assert_eq!(values(&store, 3).await, [pair("/a", "1"), pair("/b", "1")]);
            store.close().await.unwrap();
        }
        assert_eq!(
            fs::read_to_string(folder.path().join("store/FORMAT")).unwrap(),
            "k1s disk store, format 2\n"
        );
        assert!(!folder.path().join("store/engine/keyspaces/1").exists(), "the records are not there twice");
    }
}
