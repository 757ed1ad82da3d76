//! The trees that older formats had, kept by fjall: what is needed to read them.

use std::{
    fs::{self, OpenOptions},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use bytes::Bytes;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, Readable, Snapshot};
use k1s_store::{Error, Result, Revision};
use xxhash_rust::xxh3::xxh3_128;

use crate::{
    error::{OpenError, io_error, is_damage},
    record::Head,
};

/// The tree that has the newest record of each key, under `k` + key, and some marks.
pub(super) const HEADS: &str = "heads";
/// The mark that says up to where the heads are in the tree.
pub(super) const APPLIED: &[u8] = b"mapplied";
/// The mark that says up to where the history is compacted.
pub(super) const COMPACTED: &[u8] = b"mcompacted";
/// The mark that says up to where compacted records have been counted, and heads of deleted keys removed.
pub(super) const SWEPT: &[u8] = b"mswept";

/// The open engine.
pub(super) struct Engine {
    heads: Keyspace,
    snapshot: Snapshot,
}

impl Engine {
    /// Opens an engine that is there.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        // The engine makes anew what it does not find, and drops a tree it finds incomplete.
        let version = path.join("version");
        if !version.exists() {
            return Err(OpenError::damaged(&version, "the file is missing"));
        }
        check_lists(&path.join("keyspaces"))?;
        // Empty, and of no account here: the folder has a lock of its own. The engine wants it to be there.
        let lock = path.join("lock");
        OpenOptions::new().create(true).append(true).open(&lock).map_err(OpenError::io(&lock))?;
        let open = || -> fjall::Result<Option<Self>> {
            let db = database(path).open()?;
            if !db.keyspace_exists(HEADS) {
                return Ok(None);
            }
            let heads = db.keyspace(HEADS, KeyspaceCreateOptions::default)?;
            Ok(Some(Self { heads, snapshot: db.snapshot() }))
        };
        let open = || open().map_err(|error| open_error(path, error));
        match catch_unwind(AssertUnwindSafe(open)) {
            Ok(opened) => {
                opened?.ok_or_else(|| OpenError::damaged(path, "its tree is missing or incomplete"))
            }
            Err(panic) => Err(OpenError::damaged(
                path,
                format!("the disk engine could not make sense of it: {}", panic_text(&*panic)),
            )),
        }
    }

    /// What a mark says; the first revision if it is not there.
    pub(super) fn mark(&self, name: &[u8]) -> Result<Revision> {
        let bytes = self.snapshot.get(&self.heads, name).map_err(|error| engine_error(&error))?;
        let Some(bytes) = bytes else { return Ok(Revision::FIRST) };
        <[u8; 8]>::try_from(&bytes[..])
            .map(|number| Revision::new(u64::from_be_bytes(number)))
            .map_err(|_| Error::corrupt(format!("the mark {} has the wrong length", name.escape_ascii())))
    }

    /// The newest record of each key.
    pub(super) fn heads(&self) -> impl Iterator<Item = Result<(Bytes, Head)>> {
        self.snapshot.range(&self.heads, &b"k"[..]..&b"l"[..]).map(|stored| {
            let (key, bytes) = stored.into_inner().map_err(|error| engine_error(&error))?;
            let key = Bytes::from(key).slice(1..);
            let head = decode_head(&key, &bytes)?;
            Ok((key, head))
        })
    }
}

/// How the engine is opened.
pub(super) fn database(path: &Path) -> fjall::DatabaseBuilder<Database> {
    // Of two threads, one would do nothing but wait for the other, and that without a pause.
    Database::builder(path).worker_threads(1)
}

/// Checks the list of files that each tree has. The engine knows their checksums, but does not look: what it then takes for
/// the length of a list may be more than there is memory.
fn check_lists(trees: &Path) -> Result<(), OpenError> {
    let entries = match fs::read_dir(trees) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(OpenError::damaged(trees, "the folder is missing"));
        }
        Err(error) => return Err(OpenError::io(trees)(error)),
    };
    for entry in entries {
        let tree = entry.map_err(OpenError::io(trees))?.path();
        let current = tree.join("current");
        // A tree that was being made or removed. If it is one that is needed, it will be missed.
        if !current.exists() && tree.file_name().is_none_or(|name| name != "0") {
            continue;
        }
        let bytes = read_or_damaged(&current)?;
        // The list's number, its checksum, and the kind of that, little-endian.
        let parts = bytes
            .split_first_chunk::<8>()
            .and_then(|(number, rest)| Some((number, rest.first_chunk::<16>()?)));
        let Some((number, sum)) = parts else {
            return Err(OpenError::damaged(&current, "it is cut off"));
        };
        let list = tree.join(format!("v{}", u64::from_le_bytes(*number)));
        if xxh3_128(&read_or_damaged(&list)?) != u128::from_le_bytes(*sum) {
            return Err(OpenError::damaged(&list, "it does not match its checksum"));
        }
    }
    Ok(())
}

fn read_or_damaged(path: &Path) -> Result<Vec<u8>, OpenError> {
    fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => OpenError::damaged(path, "the file is missing"),
        _ => OpenError::io(path)(error),
    })
}

/// A stored head, or what is wrong with it.
fn decode_head(key: &[u8], bytes: &[u8]) -> Result<Head> {
    Head::decode(bytes)
        .ok_or_else(|| Error::corrupt(format!("the head of key \"{}\" is malformed", key.escape_ascii())))
}

/// What the engine said about the files in `path`.
fn open_error(path: &Path, error: fjall::Error) -> OpenError {
    match error {
        fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source))
            if is_damage(&source) =>
        {
            OpenError::damaged(
                path,
                format!("a file of the engine is missing, cut off or malformed: {source}"),
            )
        }
        fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source)) => {
            OpenError::Io { path: path.to_owned(), source }
        }
        other => OpenError::damaged(path, describe(&other)),
    }
}

/// What an error of the engine means to somebody who reads it.
pub(super) fn engine_error(error: &fjall::Error) -> Error {
    match error {
        fjall::Error::Io(io) | fjall::Error::Storage(fjall::LsmError::Io(io)) => io_error(io),
        fjall::Error::Poisoned => {
            Error::unavailable("the disk engine stopped after an error in the background")
        }
        other => Error::corrupt(describe(other)),
    }
}

fn describe(error: &fjall::Error) -> String {
    match error {
        fjall::Error::Storage(error) => match error {
            fjall::LsmError::ChecksumMismatch { .. } => "a block does not match its checksum".to_owned(),
            fjall::LsmError::Unrecoverable => "files of the engine are missing or unreadable".to_owned(),
            other => format!("{other:?}"),
        },
        fjall::Error::Unrecoverable => "files of the engine are missing or unreadable".to_owned(),
        other => format!("{other:?}"),
    }
}

/// Runs code of the engine that may panic on damaged files, and makes that an error.
pub(super) fn no_panic<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(Error::corrupt(format!("the disk engine gave up: {}", panic_text(&*panic))))
    })
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}
