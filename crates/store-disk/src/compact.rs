//! Compacts a store that is not open: one without history replaces it.
//!
//! An open store compacts itself, a segment at a time, and leaves the last one as it is. This rewrites all of it.

use std::{path::Path, sync::Arc};

use k1s_store::Revision;

use crate::{
    backup,
    error::OpenError,
    files::{self, Files},
    folder::{Folder, Making, REPAIRED, disk_bytes},
    history::{History, sweep_until},
    lock::Access,
    opened::Opened,
    options::DiskOptions,
    repair::{finish_swap, own_like, places, sound, suitable, swap},
    salvage::Progress,
};

/// The result of [`compact_folder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// The newest revision, which is the oldest one now, too.
    pub revision: Revision,
    /// Keys with a value.
    pub keys: u64,
    /// Number of records before and after.
    pub records: (u64, u64),
    /// Bytes on disk before and after.
    pub bytes: (u64, u64),
}

/// Drops the history of the store in `path`, a data folder or the folder `store` in one, and reclaims all of its space. The copy
/// is checked before it replaces the store, so there must be room for both. Clients that watch from an older revision must list
/// again.
///
/// # Errors
/// If it is open or damaged, or cannot be read or written. The store is then unchanged. If the process ends at the very last
/// step, the next call, or [`repair_folder`](crate::repair_folder), completes it.
pub fn compact_folder(
    path: impl AsRef<Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Compacted, OpenError> {
    compact_on(&files::real(), path.as_ref(), progress)
}

fn compact_on(
    files: &Arc<dyn Files>,
    path: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Compacted, OpenError> {
    let (path, store) = places(&**files, path)?;
    let folder = Folder::lock_existing(files, &path, &store, Access::Write)?;
    let beside = folder.beside(REPAIRED);
    finish_swap(&folder, &beside)?;
    // Left over if the last call could not remove it.
    let replaced = path.join("store.replaced");
    if files.exists(&replaced) {
        files.remove_dir_all(&replaced).map_err(OpenError::io(&replaced))?;
    }
    suitable(&folder)?;
    let before = sound(&folder, progress)?;
    if let Some(problem) = before.problems.first() {
        return Err(OpenError::damaged(&store, problem.clone()));
    }
    let allocated = |folder: &Path| disk_bytes(&**files, folder).map_err(OpenError::io(folder));
    let bytes_before = allocated(&store)?;

    progress(Progress { what: "writing records", done: 0, of: 1 });
    let options = DiskOptions::default();
    let (opened, _) = Opened::read(&folder, &options, Access::Read)?;
    let opened =
        without_history(opened).map_err(|error| OpenError::damaged(&folder.log(), error.to_string()))?;
    let (view, dead) = opened.view().pinned();
    let copied = beside
        .create(Making::Copy, before.revision, |target| {
            backup::copy(&view, &dead, target, &options)
                .map_err(|error| OpenError::io(target.store())(std::io::Error::other(error.to_string())))
        })
        .and_then(|()| sound(&beside, progress));
    let after = match copied {
        Ok(report)
            if report.is_sound() && report.keys == before.keys && report.revision == before.revision =>
        {
            report
        }
        Ok(report) => {
            let reason = format!("the copy is not sound: {:?}; the store is unchanged", report.problems);
            return Err(OpenError::damaged(beside.store(), reason));
        }
        Err(error) => {
            // The partial copy may be what filled the disk.
            let _ = files.remove_dir_all(beside.store());
            return Err(error);
        }
    };
    own_like(&**files, &store, beside.store());
    let bytes_after = allocated(beside.store())?;
    swap(&folder, &beside, &replaced)?;
    if let Err(error) = files.remove_dir_all(&replaced) {
        tracing::warn!(folder = %replaced.display(), %error, "the store as it was could not be removed");
    }
    Ok(Compacted {
        revision: after.revision,
        keys: after.keys,
        records: (before.records, after.records),
        bytes: (bytes_before, bytes_after),
    })
}

/// Finds all records that cannot be read any more if the history begins at the newest revision.
fn without_history(mut opened: Opened) -> Result<Opened, k1s_store::Error> {
    let newest = opened.state.revision;
    loop {
        let swept = History::sweep(&opened.log.segments(), opened.state, newest, 0)?;
        opened.state = swept.state;
        opened.heads.sweep(&swept.dead, swept.state);
        opened.heads.forget(&swept.deleted);
        if swept.state.swept >= sweep_until(newest, newest) {
            return Ok(opened);
        }
    }
}
