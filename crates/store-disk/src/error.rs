//! Errors of opening a store, and the mapping of I/O errors to store errors.

use std::{
    io,
    path::{Path, PathBuf},
};

use k1s_store::Error;

use crate::lock::is_gone;

/// Error of opening, checking or copying a [`DiskStore`](crate::DiskStore).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another part of this one, has the store open.
    #[error("the store in {} is in use by {holder}; only one process can open it at a time", .folder.display())]
    Locked {
        /// The store's folder.
        folder: PathBuf,
        /// The holder, as recorded in its lock file.
        holder: String,
    },

    /// The store has a format that this version of the program does not support.
    #[error(
        "the store in {} has format {found}, but this program supports only format {known}; use the version of it that \
         wrote the store",
        .folder.display()
    )]
    UnknownFormat {
        /// The store's folder.
        folder: PathBuf,
        /// Its format.
        found: u32,
        /// The format this program supports.
        known: u32,
    },

    /// Insufficient permissions, or a file system that is mounted read-only. A store is only served if it can
    /// be written to.
    #[error(
        "the store in {} cannot be written to: {reason}; this process needs write permission for the folder and everything in it, \
         on a file system that is not mounted read-only (`k1s store check` works without)",
        .folder.display()
    )]
    ReadOnly {
        /// The store's folder.
        folder: PathBuf,
        /// The error of the operating system.
        reason: String,
    },

    /// Something on disk is damaged. Nothing was changed.
    #[error("the store is damaged: {}: {reason}", .path.display())]
    Damaged {
        /// The file or folder that is damaged.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// The folder holds something other than a store, an incomplete backup, or a store where a new one was to
    /// be created.
    #[error("{}: {reason}", .folder.display())]
    Unsuitable {
        /// The folder.
        folder: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },

    /// The operating system returned an error.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The path that was accessed.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }

    /// Maps the error for callers of a store that is already open.
    pub(crate) fn into_store_error(self) -> Error {
        match self {
            Self::Damaged { .. } => Error::corrupt(self.to_string()),
            other => Error::unavailable(other.to_string()),
        }
    }
}

/// Maps an I/O error to the error that callers of the store see.
pub(crate) fn io_error(error: &io::Error) -> Error {
    match error.kind() {
        _ if is_gone(error) => Error::unavailable(error.to_string()),
        _ if is_full(error) => Error::Full { reason: error.to_string() },
        _ if is_damage(error) => {
            Error::corrupt(format!("a file of the store is missing, cut off or malformed: {error}"))
        }
        _ => Error::unavailable(format!("I/O error: {error}")),
    }
}

/// Whether an I/O error means that the disk is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Whether an I/O error means that a file is damaged.
pub(crate) fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, NotFound, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | NotFound | UnexpectedEof)
}
