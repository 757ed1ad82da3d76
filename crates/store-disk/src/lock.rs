//! Who has a store, and whether what is open is still what the path shows.
//!
//! Three things are locked: the data folder, `store` in it, and the file `LOCK`. A folder cannot be removed without removing the
//! store, and keeps its lock when it is moved. `LOCK` says who has the store, and keeps out older versions of this program,
//! which look at nothing else.

use std::{
    error, fmt,
    fs::{self, File, Metadata, OpenOptions, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use parking_lot::Mutex;

use crate::error::OpenError;

/// What a lock is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Write,
    /// Nothing is changed: a folder that cannot be written to will do.
    Read,
}

/// The locks on a data folder, held until this is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _folder: Option<File>,
    _file: Option<File>,
    store: Mutex<Option<File>>,
}

impl Lock {
    /// Locks a data folder that is there, and the store in it if there is one.
    pub(crate) fn take(path: &Path, store: &Path, access: Access) -> Result<Self, OpenError> {
        let in_use = || locked(path);
        let folder = lock_folder(path)?.map_err(|()| in_use())?;
        let file = lock_file(path, access)?;
        let lock = Self { _folder: folder, _file: file, store: Mutex::new(None) };
        if store.exists() {
            lock.take_store(path, store)?;
        }
        Ok(lock)
    }

    /// Locks the store in the folder, which is there now.
    pub(crate) fn take_store(&self, path: &Path, store: &Path) -> Result<(), OpenError> {
        // The one before may be of the same folder.
        let mut place = self.store.lock();
        *place = None;
        *place = lock_folder(store)?.map_err(|()| locked(path))?;
        Ok(())
    }
}

fn locked(path: &Path) -> OpenError {
    // What the holder wrote is a courtesy; without it the lock holds all the same.
    let holder = fs::read_to_string(path.join("LOCK")).ok().filter(|holder| !holder.is_empty());
    OpenError::Locked {
        folder: path.to_owned(),
        holder: holder.unwrap_or_else(|| "another process".to_owned()),
    }
}

/// Locks a folder. `Err(())`: somebody else has it. `None`: folders cannot be locked here, as on some network file systems.
fn lock_folder(path: &Path) -> Result<Result<Option<File>, ()>, OpenError> {
    if !cfg!(unix) {
        return Ok(Ok(None));
    }
    let folder = match File::open(path) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(Ok(None)),
        Err(error) => return Err(OpenError::io(path)(error)),
    };
    match folder.try_lock() {
        Ok(()) => Ok(Ok(Some(folder))),
        Err(TryLockError::WouldBlock) => Ok(Err(())),
        Err(TryLockError::Error(error)) => {
            tracing::debug!(folder = %path.display(), %error, "the folder cannot be locked");
            Ok(Ok(None))
        }
    }
}

fn lock_file(path: &Path, access: Access) -> Result<Option<File>, OpenError> {
    let lock_path = path.join("LOCK");
    let opened = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&lock_path);
    let (mut lock, writable) = match opened {
        Ok(lock) => (lock, true),
        Err(error) if cannot_write(&error) && access == Access::Read => match File::open(&lock_path) {
            Ok(lock) => (lock, false),
            Err(_) => return Ok(None),
        },
        Err(error) if cannot_write(&error) => {
            return Err(OpenError::ReadOnly { folder: path.to_owned(), reason: error.to_string() });
        }
        Err(error) => return Err(OpenError::io(&lock_path)(error)),
    };
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = lock.read_to_string(&mut holder);
            let holder = if holder.is_empty() { "another process".to_owned() } else { holder };
            return Err(OpenError::Locked { folder: path.to_owned(), holder });
        }
        Err(TryLockError::Error(error)) => return Err(OpenError::io(&lock_path)(error)),
    }
    if writable {
        // On a full disk the holder's name cannot be written; the store can be read all the same.
        let _ = lock.set_len(0).and_then(|()| lock.write_all(this_process().as_bytes()));
    }
    Ok(Some(lock))
}

/// Whether a file cannot be opened for writing because of permissions, or because nothing there can be written to.
pub(crate) fn cannot_write(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn this_process() -> String {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    format!("process {} ({})", std::process::id(), name.as_deref().unwrap_or("unknown"))
}

/// Which file it is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId(u64, u64);

impl FileId {
    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(metadata.dev(), metadata.ino())
    }

    /// Without numbers of files, only that there is one can be told.
    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Self {
        Self(0, 0)
    }

    /// That of an open file, if its path shows the same one. (Some file systems make up numbers as they go.)
    pub(crate) fn known(file: &File, path: &Path) -> Option<Self> {
        let id = Self::of(&file.metadata().ok()?);
        (Self::of(&fs::metadata(path).ok()?) == id).then_some(id)
    }

    /// Fails if the path does not show this file any more.
    pub(crate) fn check(self, path: &Path) -> io::Result<()> {
        match fs::metadata(path) {
            Ok(metadata) if Self::of(&metadata) == self => Ok(()),
            Ok(_) => Err(io::Error::other(Gone { path: path.to_owned() })),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Err(io::Error::other(Gone { path: path.to_owned() }))
            }
            Err(error) => Err(error),
        }
    }
}

/// A file of an open store is not where it was: the store's folder was removed, moved or replaced.
#[derive(Debug)]
struct Gone {
    path: PathBuf,
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the data folder was removed, moved or replaced while the store was open: {} is not the file that is written to; \
             nothing is written until the store is opened again",
            self.path.display()
        )
    }
}

impl error::Error for Gone {}

/// Whether an error says that the store's folder was removed, moved or replaced.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Gone>())
}
