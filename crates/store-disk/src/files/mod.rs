//! All access to files: the operating system's, or a simulated disk's in tests.
//!
//! The store goes through [`Files`] and [`File`] for all I/O, so that a test can decide what a power cut
//! leaves behind, which calls fail, and when the disk is full. A call costs one virtual dispatch on top of a
//! system call; nothing is copied.

mod real;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod sim;

use std::{
    ffi::OsString,
    fmt,
    fs::TryLockError,
    io::{
        self,
        ErrorKind::{InvalidInput, PermissionDenied, Unsupported},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

/// A file system.
pub(crate) trait Files: fmt::Debug + Send + Sync {
    /// Opens a file; with [`Mode::Read`] also a directory, to lock or sync it.
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn File>>;

    /// Creates a directory.
    fn create_dir(&self, path: &Path, access: DirAccess) -> io::Result<()>;

    fn metadata(&self, path: &Path) -> io::Result<Metadata>;

    /// The names in a directory.
    fn list(&self, path: &Path) -> io::Result<Vec<OsString>>;

    /// Renames a file or directory atomically. The new name is durable when the directory is synced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn remove_file(&self, path: &Path) -> io::Result<()>;

    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;

    /// The absolute path without symbolic links.
    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf>;

    /// Gives `path` the owner of `like`.
    fn chown_like(&self, like: &Path, path: &Path) -> io::Result<()>;
}

/// An open file, or a directory that was opened for reading. Dropping it releases its lock.
pub(crate) trait File: fmt::Debug + Send + Sync {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes the contents durable, and the length (`fdatasync`).
    fn sync_data(&self) -> io::Result<()>;

    /// Makes the contents durable, or the names in a directory (`fsync`).
    fn sync_all(&self) -> io::Result<()>;

    fn metadata(&self) -> io::Result<Metadata>;

    /// Takes the exclusive lock, if it is free.
    fn try_lock(&self) -> Result<(), TryLockError>;
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    /// Reading and writing, of a file that exists.
    Write,
    /// Reading and writing; created if it does not exist.
    Create,
    /// Reading and writing; created if it does not exist, else emptied.
    Truncate,
}

/// Access permissions of a new directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirAccess {
    /// According to the process's umask.
    Default,
    /// The owner only: it holds a control plane's secrets.
    Private,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) is_dir: bool,
    pub(crate) len: u64,
    /// Bytes allocated on disk: less than `len` for a sparse file.
    pub(crate) allocated: u64,
    /// Device and inode, or the same value for all files where there are none.
    pub(crate) id: (u64, u64),
}

/// The operating system's files.
pub(crate) fn real() -> Arc<dyn Files> {
    Arc::new(real::Real)
}

impl dyn Files + '_ {
    pub(crate) fn exists(&self, path: &Path) -> bool {
        self.metadata(path).is_ok()
    }

    pub(crate) fn is_dir(&self, path: &Path) -> bool {
        self.metadata(path).is_ok_and(|metadata| metadata.is_dir)
    }

    /// The whole contents of a file.
    pub(crate) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path, Mode::Read)?;
        let mut bytes = vec![0; usize::try_from(file.metadata()?.len).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Creates or replaces a file, and syncs its contents. (Its name is durable when the directory is
    /// synced.)
    pub(crate) fn write_synced(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.open(path, Mode::Truncate)?;
        file.write_all_at(bytes, 0)?;
        file.sync_all()
    }

    /// Syncs the names in a directory.
    pub(crate) fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.open(path, Mode::Read)?.sync_all()
    }

    /// Creates a directory and its missing ancestors.
    pub(crate) fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        match self.metadata(path) {
            Ok(metadata) if metadata.is_dir => return Ok(()),
            Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            self.create_dir_all(parent)?;
        }
        match self.create_dir(path, DirAccess::Default) {
            // Another process may have been faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.is_dir(path) => Ok(()),
            created => created,
        }
    }

    /// Syncs the names of `path` and of all its ancestors: the process that created them may not have synced
    /// them.
    pub(crate) fn sync_ancestors(&self, path: &Path) -> io::Result<()> {
        for dir in path.ancestors().skip(1) {
            let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
            match self.sync_dir(dir) {
                // Not accessible, or not syncable: then it was not created by this process either.
                Err(error) if matches!(error.kind(), PermissionDenied | InvalidInput | Unsupported) => {}
                synced => synced?,
            }
        }
        Ok(())
    }
}
