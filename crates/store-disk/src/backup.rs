//! Copying a moment of a store while it goes on.

use std::path::Path;

use k1s_store::{Error, Revision};

use crate::{
    engine::{Engine, State},
    error::{OpenError, engine_error, io_error, no_panic},
    folder::Folder,
    log::{Frame, Log, clean::Survivors},
    options::DiskOptions,
    record::{APPLIED, COMPACTED, Pointer, Record, SWEPT},
    view::View,
};

/// So many bytes go into one frame of the copy, and so many heads into one batch.
const BATCH_BYTES: usize = 1 << 20;
const HEADS: usize = 4096;

/// Makes a store in `target` that is what `view` shows.
pub(crate) fn backup(view: &View, target: &Path, options: &DiskOptions) -> Result<Revision, OpenError> {
    let folder = Folder::lock(target)?;
    if folder.holds_store() {
        return Err(OpenError::Unsuitable {
            folder: target.to_owned(),
            reason: "there is a store already; a copy needs a folder of its own".to_owned(),
        });
    }
    folder.create(view.state.revision, |folder| {
        no_panic(|| copy(view, folder, options)).map_err(|error| match error {
            Error::Corrupt { reason } => {
                OpenError::damaged(view.heads.engine().path(), format!("it cannot be copied: {reason}"))
            }
            other => OpenError::io(target)(std::io::Error::other(other.to_string())),
        })
    })?;
    Ok(view.state.revision)
}

fn copy(view: &View, folder: &Folder, options: &DiskOptions) -> Result<(), Error> {
    let mut log = Log::create(&folder.log(), options.segment_bytes).map_err(OpenError::into_store_error)?;
    let engine = Engine::create(&folder.engine(), options).map_err(OpenError::into_store_error)?;
    let mut frame = Frame::default();
    let mut survivors = Survivors::new(view);
    view.heads.log().each(Pointer::new(Revision::FIRST, 0), |pointer, bytes| {
        if pointer.revision > view.state.revision {
            return Ok(false);
        }
        // What is damaged is not copied.
        let record = Record::read(pointer, &bytes)?;
        if survivors.contain(pointer, &record)? {
            frame.push(pointer, |into| into.extend_from_slice(&bytes));
        }
        // A revision is in one frame.
        if frame.len() >= BATCH_BYTES && pointer.index + 1 == record.steps {
            log.append_unsynced(&mut frame).map_err(|error| io_error(&error))?;
            frame.clear();
        }
        Ok(true)
    })?;
    if !frame.is_empty() {
        log.append_unsynced(&mut frame).map_err(|error| io_error(&error))?;
    }
    log.sync().map_err(|error| io_error(&error))?;

    let mut batch = engine.batch(HEADS);
    for head in view.heads.all() {
        let (key, head) = head?;
        engine.put_head(&mut batch, &key, head);
        if batch.len() >= HEADS {
            let full = std::mem::replace(&mut batch, engine.batch(HEADS));
            full.commit().map_err(|error| engine_error(&error))?;
        }
    }
    let State { revision, oldest, swept, .. } = view.state;
    for (mark, revision) in [(APPLIED, revision), (COMPACTED, oldest), (SWEPT, swept)] {
        engine.put_mark(&mut batch, mark, revision);
    }
    batch.commit().map_err(|error| engine_error(&error))?;
    engine.sync()
}
