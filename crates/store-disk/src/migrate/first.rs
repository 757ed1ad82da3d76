//! From format 1, which had the records in a tree of the engine, to format 2, which has them in a log.

use std::fs;

use fjall::{KeyspaceCreateOptions, Readable};
use k1s_store::{Error, Revision};

use super::engine::{APPLIED, HEADS, database, engine_error, no_panic};
use crate::{
    error::{OpenError, io_error},
    folder::{Folder, sync},
    log::{Frame, Log},
    options::DiskOptions,
    record::Pointer,
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
        let db = database(&engine).open().map_err(|error| engine_error(&error))?;
        let tree =
            |name| db.keyspace(name, KeyspaceCreateOptions::default).map_err(|error| engine_error(&error));
        let (data, heads) = (tree("data")?, tree(HEADS)?);
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
