//! The files around the log: who has the store, its format, and how far it was acknowledged.
//!
//! ```text
//!   LOCK               held while the store is open, as the folder itself and `store` are; says by whom
//!   reserve            takes up room until the disk is full
//!   store/FORMAT       the format's number
//!   store/watermark    the last revision that was acknowledged
//!   store/log/         every record, in segments
//!   store/checkpoint   which of them nobody can read any more
//! ```
//!
//! While a store is being made it has a file `store/NEW`, too, and no `FORMAT`. It says whether this was to be an empty store, or
//! a copy of another.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use k1s_store::Revision;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    error::OpenError,
    lock::{Access, Lock},
    log,
};

/// The format this program writes.
pub(crate) const FORMAT: u32 = 1;

/// A store that a repair has made, until it takes the place of the damaged one.
pub(crate) const REPAIRED: &str = "store.repaired";

const FORMAT_LINE: &str = "k1s disk store, format ";

/// The folder of a store that this process has locked.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    store: PathBuf,
    lock: Arc<Lock>,
}

/// What is in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing that was ever acknowledged.
    Nothing,
    /// A copy of another store that is not whole.
    PartOfCopy,
    Store,
}

/// What a store is made to be.
#[derive(Clone, Copy)]
pub(crate) enum Making {
    Empty,
    Copy,
}

impl Making {
    fn text(self) -> &'static str {
        match self {
            Self::Empty => "this store is being made\n",
            Self::Copy => "this copy of a store is being made\n",
        }
    }
}

impl Folder {
    /// Locks the folder, which is made if need be.
    pub(crate) fn lock(path: &Path) -> Result<Self, OpenError> {
        fs::create_dir_all(path).map_err(OpenError::io(path))?;
        Self::lock_existing(path, &path.join("store"), Access::Write)
    }

    /// Locks a folder that is there, with the store in it at `store`.
    pub(crate) fn lock_existing(path: &Path, store: &Path, access: Access) -> Result<Self, OpenError> {
        let lock = Arc::new(Lock::take(path, store, access)?);
        Ok(Self { path: path.to_owned(), store: store.to_owned(), lock })
    }

    /// Another store in the same folder, under another name.
    pub(crate) fn beside(&self, name: &str) -> Self {
        Self { path: self.path.clone(), store: self.path.join(name), lock: self.lock.clone() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the store is.
    pub(crate) fn store(&self) -> &Path {
        &self.store
    }

    /// Which records are dead.
    pub(crate) fn checkpoint(&self) -> PathBuf {
        self.store.join("checkpoint")
    }

    /// Room that is kept for a full disk.
    pub(crate) fn reserve(&self) -> PathBuf {
        self.path.join("reserve")
    }

    /// Where the log is.
    pub(crate) fn log(&self) -> PathBuf {
        self.store.join("log")
    }

    /// What is here. Only what holds nothing may be made anew.
    pub(crate) fn content(&self) -> Result<Content, OpenError> {
        let is_empty = || fs::read_dir(&self.store).is_ok_and(|mut entries| entries.next().is_none());
        if !self.store.exists() {
            let repaired = self.path.join(REPAIRED);
            if repaired.join("FORMAT").exists() {
                return Err(OpenError::Unsuitable {
                    folder: self.path.clone(),
                    reason: format!(
                        "a repair of the store was interrupted right before its end; `k1s store repair {}` finishes it",
                        self.path.display()
                    ),
                });
            }
            return Ok(Content::Nothing);
        }
        if is_empty() {
            return Ok(Content::Nothing);
        }
        let new = self.store.join("NEW");
        // The format is written when everything else is there.
        if !new.exists() || self.format(&self.store.join("FORMAT")).is_ok() {
            return Ok(Content::Store);
        }
        if fs::read_to_string(&new).is_ok_and(|what| what == Making::Copy.text()) {
            return Ok(Content::PartOfCopy);
        }
        if log::holds_records(&self.log()).map_err(OpenError::io(&self.log()))? {
            return Err(OpenError::damaged(
                &new,
                "it says that this store was never finished, but there are records in it; nothing was changed",
            ));
        }
        Ok(Content::Nothing)
    }

    /// Removes a file that says that the store is being made, which is there though it has been.
    pub(crate) fn remove_stray_mark(&self) {
        let new = self.store.join("NEW");
        if new.exists() {
            let removed = fs::remove_file(&new);
            tracing::warn!(path = %new.display(), ?removed, "the store is whole; this file is not needed");
        }
    }

    /// Makes a store, which is at `revision`: `fill` makes the log and the checkpoint.
    pub(crate) fn create<T>(
        &self,
        making: Making,
        revision: Revision,
        fill: impl FnOnce(&Self) -> Result<T, OpenError>,
    ) -> Result<T, OpenError> {
        // Under another name: what is half removed must not look like a store.
        let unfinished = self.path.join("store.unfinished");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(OpenError::io(&unfinished))?;
        }
        if self.store.exists() {
            fs::rename(&self.store, &unfinished).map_err(OpenError::io(&self.store))?;
            fs::remove_dir_all(&unfinished).map_err(OpenError::io(&unfinished))?;
        }
        let new = self.store.join("NEW");
        let begin = || {
            private_folder(&self.store)?;
            fs::write(&new, making.text())?;
            sync(&new)?;
            sync(&self.store)?;
            sync(&self.path)
        };
        begin().map_err(OpenError::io(&self.store))?;
        self.lock.take_store(&self.path, &self.store)?;
        let filled = fill(self)?;
        Watermark::create(&self.store.join("watermark"), revision)?;
        let format = self.store.join("FORMAT");
        let finish = || {
            fs::write(&format, format!("{FORMAT_LINE}{FORMAT}\n"))?;
            sync(&format)?;
            sync(&self.store)?;
            fs::remove_file(&new)?;
            sync(&self.store)
        };
        finish().map_err(OpenError::io(&format))?;
        Ok(filled)
    }

    /// Fails unless the store has the format that this program knows.
    pub(crate) fn check_format(&self) -> Result<(), OpenError> {
        match self.format(&self.store.join("FORMAT"))? {
            FORMAT => Ok(()),
            found => Err(OpenError::UnknownFormat { folder: self.path.clone(), found, known: FORMAT }),
        }
    }

    fn format(&self, path: &Path) -> Result<u32, OpenError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::damaged(path, "the file is missing"));
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => String::new(),
            Err(error) => return Err(OpenError::io(path)(error)),
        };
        text.strip_prefix(FORMAT_LINE)
            .and_then(|rest| rest.trim_end().parse().ok())
            .filter(|format| *format > 0)
            .ok_or_else(|| {
                OpenError::damaged(path, format!("expected \"{FORMAT_LINE}{FORMAT}\", found {text:?}"))
            })
    }

    pub(crate) fn watermark(&self) -> Result<Watermark, OpenError> {
        Watermark::open(&self.store.join("watermark"))
    }

    /// What the watermark says, without opening it for writing.
    pub(crate) fn acknowledged(&self) -> Result<Revision, OpenError> {
        let path = self.store.join("watermark");
        match fs::read(&path) {
            Ok(bytes) => Watermark::decode(&path, &bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(OpenError::damaged(&path, "the file is missing"))
            }
            Err(error) => Err(OpenError::io(&path)(error)),
        }
    }

    /// Puts a new watermark in the place of one that cannot be read.
    pub(crate) fn replace_watermark(&self, revision: Revision) -> Result<(), OpenError> {
        let (path, new) = (self.store.join("watermark"), self.store.join("watermark.new"));
        Watermark::create(&new, revision)?;
        fs::rename(&new, &path).and_then(|()| sync(&self.store)).map_err(OpenError::io(&path))
    }

    /// Whether there is room to write, found out by writing.
    pub(crate) fn probe(&self) -> io::Result<()> {
        const ROOM: usize = 1 << 20;
        let path = self.path.join("probe");
        let written = File::create(&path).and_then(|mut file| {
            // Not zeros: a file system that compresses would have room for any number of them.
            let noise: Vec<u8> =
                (0..ROOM as u64 / 8).flat_map(|i| xxh3_64(&i.to_le_bytes()).to_le_bytes()).collect();
            file.write_all(&noise)?;
            file.sync_all()
        });
        let removed = fs::remove_file(&path);
        written.and(removed)
    }
}

/// Bytes that the files in a folder take up on disk. Parts that were never written do not count.
pub(crate) fn disk_bytes(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => bytes += allocated(&metadata),
                // Files are removed while we look.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(bytes)
}

#[cfg(unix)]
fn allocated(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(metadata) * 512
}

#[cfg(not(unix))]
fn allocated(metadata: &fs::Metadata) -> u64 {
    metadata.len()
}

/// Makes the contents of a file, or the names in a folder, durable.
pub(crate) fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(unix)]
fn write_at_start(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    // One system call instead of two: this is done for every batch of writes.
    std::os::unix::fs::FileExt::write_all_at(file, bytes, 0)
}

#[cfg(not(unix))]
fn write_at_start(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    io::Seek::seek(file, io::SeekFrom::Start(0))?;
    file.write_all(bytes)
}

/// The last revision that was acknowledged, in a file of its own.
///
/// It is written after each synced batch, but not synced itself: it survives the process, and after
/// a power cut it may be old, but never says more than what is durable. A store that opens with
/// less than it says has lost something.
#[derive(Debug)]
pub(crate) struct Watermark {
    path: PathBuf,
    file: File,
}

impl Watermark {
    fn create(path: &Path, revision: Revision) -> Result<(), OpenError> {
        fs::write(path, Self::encode(revision)).and_then(|()| sync(path)).map_err(OpenError::io(path))
    }

    fn open(path: &Path) -> Result<Self, OpenError> {
        let mut file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::damaged(path, "the file is missing"));
            }
            Err(error) => return Err(OpenError::io(path)(error)),
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(OpenError::io(path))?;
        Self::decode(path, &bytes)?;
        Ok(Self { path: path.to_owned(), file })
    }

    fn decode(path: &Path, bytes: &[u8]) -> Result<Revision, OpenError> {
        bytes
            .first_chunk()
            .map(|number| Revision::new(u64::from_be_bytes(*number)))
            .filter(|revision| Self::encode(*revision) == *bytes)
            .ok_or_else(|| OpenError::damaged(path, "it does not match its checksum"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn raise(&mut self, revision: Revision) -> io::Result<()> {
        write_at_start(&mut self.file, &Self::encode(revision))
    }

    fn encode(revision: Revision) -> [u8; 16] {
        let number = revision.get().to_be_bytes();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number);
        bytes[8..].copy_from_slice(&xxh3_64(&number).to_be_bytes());
        bytes
    }
}

/// Makes a folder that nobody else can look into: a control plane's secrets are in it.
fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::lock(dir.path()).unwrap();
        folder
            .create(Making::Empty, Revision::FIRST, |folder| {
                fs::create_dir(folder.log()).map_err(OpenError::io(&folder.path))
            })
            .unwrap();
        (dir, folder)
    }

    #[test]
    fn a_second_lock_fails_at_once_and_names_the_holder() {
        let (dir, _folder) = made();
        let error = Folder::lock(dir.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("in use by process {}", std::process::id())), "{error}");
    }

    #[test]
    #[cfg(unix)]
    fn nobody_else_can_look_into_a_store() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_dir, folder) = made();
        assert_eq!(fs::metadata(&folder.store).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn another_format_is_refused_with_both_numbers() {
        let (_dir, folder) = made();
        for found in [2, 3, 7] {
            fs::write(folder.store.join("FORMAT"), format!("k1s disk store, format {found}\n")).unwrap();
            let error = folder.check_format().unwrap_err().to_string();
            assert!(
                error.contains(&format!("has format {found}, but this program knows format 1 only")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_damaged_or_missing_format_or_watermark_is_refused() {
        let (_dir, folder) = made();
        for damage in [&b"k1s disk store, format 0\n"[..], b"", b"\xff\xfe", b"k1s disk store, format x"] {
            fs::write(folder.store.join("FORMAT"), damage).unwrap();
            let error = folder.check_format().unwrap_err();
            assert!(matches!(&error, OpenError::Damaged { path, .. } if path.ends_with("FORMAT")), "{error}");
        }
        fs::remove_file(folder.store.join("FORMAT")).unwrap();
        assert!(matches!(folder.check_format(), Err(OpenError::Damaged { .. })));

        let watermark = folder.store.join("watermark");
        let whole = fs::read(&watermark).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&watermark, damaged).unwrap();
            assert!(matches!(folder.watermark(), Err(OpenError::Damaged { .. })), "bit {bit}");
        }
        fs::write(&watermark, &whole[..7]).unwrap();
        assert!(matches!(folder.watermark(), Err(OpenError::Damaged { .. })));
        fs::write(&watermark, &whole).unwrap();
        let mut opened = folder.watermark().unwrap();
        opened.raise(Revision::new(99)).unwrap();
        assert_eq!(folder.acknowledged().unwrap(), Revision::new(99));
    }

    #[test]
    fn a_store_that_was_made_half_way_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::lock(dir.path()).unwrap();
        fs::create_dir(dir.path().join("store")).unwrap();
        assert_eq!(folder.content().unwrap(), Content::Nothing);
        fs::create_dir_all(dir.path().join("store/log/rubbish")).unwrap();
        fs::write(dir.path().join("store/NEW"), "").unwrap();
        fs::create_dir_all(dir.path().join("store.unfinished/log")).unwrap();
        assert_eq!(folder.content().unwrap(), Content::Nothing);
        folder
            .create(Making::Empty, Revision::FIRST, |folder| {
                fs::create_dir(folder.log()).map_err(OpenError::io(&folder.path))
            })
            .unwrap();
        assert_eq!(folder.content().unwrap(), Content::Store);
        assert!(!folder.log().join("rubbish").exists());
    }
}
