//! Locks on a store, and whether its open files are still the ones at their paths.
//!
//! Three things are locked: the data folder, `store` in it, and the file `LOCK`. A folder cannot be removed
//! without removing the store, and keeps its lock when it is moved. `LOCK` names the holder, and excludes
//! older versions of this program, which lock nothing else.

use std::{
    error, fmt,
    fs::TryLockError,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::{
    error::OpenError,
    files::{File, Files, Mode},
};

/// What a lock is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Write,
    /// Nothing is changed, so a read-only folder is accepted.
    Read,
}

/// The locks on a data folder, held until this is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    files: Arc<dyn Files>,
    _folder: Option<Box<dyn File>>,
    _file: Option<Box<dyn File>>,
    store: Mutex<Option<Box<dyn File>>>,
}

impl Lock {
    /// Locks an existing data folder, and the store in it if there is one.
    pub(crate) fn take(
        files: Arc<dyn Files>,
        path: &Path,
        store: &Path,
        access: Access,
    ) -> Result<Self, OpenError> {
        let folder = lock_folder(&*files, path)?.map_err(|()| locked(&*files, path))?;
        let file = lock_file(&*files, path, access)?;
        let lock = Self { files, _folder: folder, _file: file, store: Mutex::new(None) };
        if lock.files.exists(store) {
            lock.take_store(path, store)?;
        }
        Ok(lock)
    }

    /// Locks the store in the folder, which exists now.
    pub(crate) fn take_store(&self, path: &Path, store: &Path) -> Result<(), OpenError> {
        // The previous lock may be of the same folder.
        let mut place = self.store.lock();
        *place = None;
        *place = lock_folder(&*self.files, store)?.map_err(|()| locked(&*self.files, path))?;
        Ok(())
    }
}

fn locked(files: &dyn Files, path: &Path) -> OpenError {
    // The holder's text is informational; the lock does not depend on it.
    let holder = files.read(&path.join("LOCK")).ok().filter(|holder| !holder.is_empty());
    let holder = holder.map(|holder| String::from_utf8_lossy(&holder).into_owned());
    OpenError::Locked {
        folder: path.to_owned(),
        holder: holder.unwrap_or_else(|| "another process".to_owned()),
    }
}

/// Locks a folder. `Err(())`: another process holds the lock. `None`: folders cannot be locked here, as on
/// some network file systems.
fn lock_folder(files: &dyn Files, path: &Path) -> Result<Result<Option<Box<dyn File>>, ()>, OpenError> {
    if !cfg!(unix) {
        return Ok(Ok(None));
    }
    let folder = match files.open(path, Mode::Read) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(Ok(None)),
        Err(error) => return Err(OpenError::io(path)(error)),
    };
    match folder.try_lock() {
        Ok(()) => Ok(Ok(Some(folder))),
        Err(TryLockError::WouldBlock) => Ok(Err(())),
        Err(TryLockError::Error(error)) => {
            tracing::debug!(folder = %path.display(), %error, "could not lock the folder");
            Ok(Ok(None))
        }
    }
}

fn lock_file(files: &dyn Files, path: &Path, access: Access) -> Result<Option<Box<dyn File>>, OpenError> {
    let lock_path = path.join("LOCK");
    let (lock, writable) = match files.open(&lock_path, Mode::Create) {
        Ok(lock) => (lock, true),
        Err(error) if cannot_write(&error) && access == Access::Read => {
            match files.open(&lock_path, Mode::Read) {
                Ok(lock) => (lock, false),
                Err(_) => return Ok(None),
            }
        }
        Err(error) if cannot_write(&error) => {
            return Err(OpenError::ReadOnly { folder: path.to_owned(), reason: error.to_string() });
        }
        Err(error) => return Err(OpenError::io(&lock_path)(error)),
    };
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(locked(files, path)),
        Err(TryLockError::Error(error)) => return Err(OpenError::io(&lock_path)(error)),
    }
    if writable {
        // On a full disk the holder cannot be written; the store can still be read.
        let _ = lock.set_len(0).and_then(|()| lock.write_all_at(this_process().as_bytes(), 0));
    }
    Ok(Some(lock))
}

/// Whether a file cannot be opened for writing because of permissions or a read-only file system.
pub(crate) fn cannot_write(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn this_process() -> String {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    format!("process {} ({})", std::process::id(), name.as_deref().unwrap_or("unknown"))
}

/// The identity of a file, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId((u64, u64));

impl FileId {
    /// The id of an open file, if its path has the same one. (On some file systems, ids are not stable.)
    pub(crate) fn known(files: &dyn Files, file: &dyn File, path: &Path) -> Option<Self> {
        let id = file.metadata().ok()?.id;
        (files.metadata(path).ok()?.id == id).then_some(Self(id))
    }

    /// Fails if there is no longer the same file at the path.
    pub(crate) fn check(self, files: &dyn Files, path: &Path) -> io::Result<()> {
        match files.metadata(path) {
            Ok(metadata) if metadata.id == self.0 => Ok(()),
            Ok(_) => Err(io::Error::other(Gone { path: path.to_owned() })),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Err(io::Error::other(Gone { path: path.to_owned() }))
            }
            Err(error) => Err(error),
        }
    }
}

/// A file of an open store is no longer at its path: the store's folder was removed, moved or replaced.
#[derive(Debug)]
struct Gone {
    path: PathBuf,
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the data folder was removed, moved or replaced while the store was open: {} is no longer the open file; \
             nothing is written until the store is opened again",
            self.path.display()
        )
    }
}

impl error::Error for Gone {}

/// Whether an error means that the store's folder was removed, moved or replaced.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Gone>())
}
