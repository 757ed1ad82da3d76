//! Copying a moment of a store while it goes on.

use std::path::Path;

use fjall::{PersistMode, Readable};
use k1s_store::{Error, Revision};

use crate::{
    engine::Engine,
    error::{OpenError, engine_error, no_panic},
    folder::Folder,
    options::DiskOptions,
    view::View,
};

/// So many bytes go into one batch of the copy.
const BATCH_BYTES: usize = 4 << 20;

/// Makes a store in `target` that is what `view` shows.
pub(crate) fn backup(view: &View, target: &Path, options: &DiskOptions) -> Result<Revision, OpenError> {
    let folder = Folder::lock(target)?;
    if folder.holds_store() {
        return Err(OpenError::Unsuitable {
            folder: target.to_owned(),
            reason: "there is a store already; a copy needs a folder of its own".to_owned(),
        });
    }
    folder.create(view.state.revision, |path| {
        let copy = Engine::create(path, options)?;
        no_panic(|| copy_trees(view, &copy)).map_err(|error| match error {
            Error::Corrupt { reason } => {
                OpenError::damaged(view.engine.path(), format!("it cannot be copied: {reason}"))
            }
            other => OpenError::io(path)(std::io::Error::other(other.to_string())),
        })
    })?;
    Ok(view.state.revision)
}

fn copy_trees(view: &View, copy: &Engine) -> Result<(), Error> {
    for (from, to) in [(&view.engine.data, &copy.data), (&view.engine.heads, &copy.heads)] {
        let mut batch = copy.batch(1024);
        let mut bytes = 0;
        for stored in view.snapshot.iter(from) {
            let (key, value) = stored.into_inner().map_err(|error| engine_error(&error))?;
            bytes += key.len() + value.len();
            batch.insert(to, key, value);
            if bytes >= BATCH_BYTES {
                let full = std::mem::replace(&mut batch, copy.batch(1024));
                full.durability(Some(PersistMode::Buffer)).commit().map_err(|error| engine_error(&error))?;
                bytes = 0;
            }
        }
        batch.durability(Some(PersistMode::Buffer)).commit().map_err(|error| engine_error(&error))?;
    }
    copy.sync()
}
