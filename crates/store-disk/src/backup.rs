//! Copies a snapshot of a store while writes continue.

use std::{path::Path, sync::Arc};

use k1s_store::{Error, Revision};

use crate::{
    checkpoint::Checkpoint,
    error::{OpenError, io_error},
    files::Files,
    folder::{Content, Folder, Making},
    heads::Dead,
    log::{Frame, Log},
    options::DiskOptions,
    record::{Pointer, Record},
    view::View,
};

/// Size at which a frame of the copy is closed.
const FRAME_BYTES: usize = 1 << 20;

/// Creates a store in `target` from the snapshot `view` of the store in `source`.
pub(crate) fn backup(
    files: &Arc<dyn Files>,
    view: &View,
    dead: &Dead,
    source: &Path,
    target: &Path,
    options: &DiskOptions,
) -> Result<Revision, OpenError> {
    let folder = Folder::lock(files, target)?;
    if folder.content()? == Content::Store {
        return Err(OpenError::Unsuitable {
            folder: target.to_owned(),
            reason: "there is a store already; a copy needs a folder of its own".to_owned(),
        });
    }
    folder.create(Making::Copy, view.state.revision, |folder| {
        copy(view, dead, folder, options).map_err(|error| match error {
            Error::Corrupt { reason } => OpenError::damaged(source, format!("it cannot be copied: {reason}")),
            other => OpenError::io(target)(std::io::Error::other(other.to_string())),
        })
    })?;
    Ok(view.state.revision)
}

/// Writes the records of a snapshot that are not dead into a store that is being created.
pub(crate) fn copy(view: &View, dead: &Dead, folder: &Folder, options: &DiskOptions) -> Result<(), Error> {
    let mut log = Log::create(folder.files(), &folder.log(), options.segment_bytes)
        .map_err(OpenError::into_store_error)?;
    let mut frame = Frame::default();
    let mut last = Revision::FIRST;
    for (segment, dead) in dead {
        let mut number = 0;
        segment.each(Pointer::new(Revision::FIRST, 0), &mut |pointer, bytes| {
            if pointer.revision > view.state.revision {
                return Ok(false);
            }
            let is_dead = dead.contains(number);
            number += 1;
            if is_dead {
                return Ok(true);
            }
            // A revision is never split across frames.
            if frame.len() >= FRAME_BYTES && pointer.revision > last {
                log.append_unsynced(&mut frame).map_err(|error| io_error(&error))?;
                frame.clear();
            }
            // Damaged records are not copied.
            Record::read(pointer, &bytes)?;
            frame.push(pointer, |into| into.extend_from_slice(&bytes));
            last = pointer.revision;
            Ok(true)
        })?;
    }
    if !frame.is_empty() {
        log.append_unsynced(&mut frame).map_err(|error| io_error(&error))?;
    }
    log.sync().map_err(|error| io_error(&error))?;
    let checkpoint = Checkpoint::new(view.state.oldest, view.state.swept, &log.segments());
    checkpoint.write(&**folder.files(), &folder.checkpoint(), &folder.log()).map_err(|error| io_error(&error))
}

#[cfg(test)]
mod tests {
    use k1s_env::Env;
    use k1s_store::{Precondition, Store, Txn};

    use super::*;
    use crate::DiskStore;

    #[tokio::test]
    async fn an_interrupted_copy_is_refused_until_it_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let open = |name| DiskStore::open(Env::system(), dir.path().join(name), DiskOptions::default());
        let store = open("store").unwrap();
        store.txn(Txn::new().put("/a", "1", Precondition::Any)).await.unwrap();
        let target = dir.path().join("copy");
        let interrupted = Folder::lock(&crate::files::real(), &target).unwrap().create(
            Making::Copy,
            Revision::FIRST,
            |folder| Err::<(), _>(OpenError::io(&folder.log())(std::io::Error::other("power cut"))),
        );
        assert!(interrupted.is_err());
        let refused = open("copy").unwrap_err().to_string();
        assert!(refused.contains("a backup into it was interrupted"), "{refused}");
        store.backup(&target).await.unwrap();
        assert_eq!(open("copy").unwrap().get(b"/a", None).await.unwrap().entry.unwrap().value, "1");
    }
}
