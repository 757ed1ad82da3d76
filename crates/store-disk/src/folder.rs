//! The files around the log: lock, format and watermark.
//!
//! ```text
//!   LOCK               names the holder; locked while the store is open, like the folder itself and `store`
//!   reserve            occupies space until the disk is full
//!   store/FORMAT       the format's number
//!   store/watermark    the last acknowledged revision
//!   store/log/         all records, in segments
//!   store/checkpoint   which records are dead
//! ```
//!
//! While a store is being created it has a file `store/NEW`, and no `FORMAT`. `NEW` says whether the store
//! was to be empty or a copy of another.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use k1s_store::Revision;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    error::OpenError,
    files::{DirAccess, File, Files, Mode},
    lock::{Access, Lock},
    log,
};

/// The format this program writes.
pub(crate) const FORMAT: u32 = 1;

/// A store created by a repair, until it replaces the damaged one.
pub(crate) const REPAIRED: &str = "store.repaired";

const FORMAT_LINE: &str = "k1s disk store, format ";

/// The folder of a store that this process has locked.
#[derive(Debug)]
pub(crate) struct Folder {
    files: Arc<dyn Files>,
    path: PathBuf,
    store: PathBuf,
    lock: Arc<Lock>,
}

/// The contents of a data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing that was ever acknowledged.
    Nothing,
    /// An incomplete copy of another store.
    PartOfCopy,
    Store,
}

/// The kind of store being created.
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
    /// Locks the folder, and creates it if needed.
    pub(crate) fn lock(files: &Arc<dyn Files>, path: &Path) -> Result<Self, OpenError> {
        files.create_dir_all(path).map_err(OpenError::io(path))?;
        Self::lock_existing(files, path, &path.join("store"), Access::Write)
    }

    /// Locks an existing folder, with the store in it at `store`.
    pub(crate) fn lock_existing(
        files: &Arc<dyn Files>,
        path: &Path,
        store: &Path,
        access: Access,
    ) -> Result<Self, OpenError> {
        let lock = Arc::new(Lock::take(files.clone(), path, store, access)?);
        Ok(Self { files: files.clone(), path: path.to_owned(), store: store.to_owned(), lock })
    }

    /// Another store in the same folder, under another name.
    pub(crate) fn beside(&self, name: &str) -> Self {
        Self {
            files: self.files.clone(),
            path: self.path.clone(),
            store: self.path.join(name),
            lock: self.lock.clone(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    /// The folder `store`.
    pub(crate) fn store(&self) -> &Path {
        &self.store
    }

    /// The file that lists dead records.
    pub(crate) fn checkpoint(&self) -> PathBuf {
        self.store.join("checkpoint")
    }

    /// The file that reserves space for a full disk.
    pub(crate) fn reserve(&self) -> PathBuf {
        self.path.join("reserve")
    }

    /// The folder of the log.
    pub(crate) fn log(&self) -> PathBuf {
        self.store.join("log")
    }

    /// The contents of the folder. A store may only be created if there is nothing.
    pub(crate) fn content(&self) -> Result<Content, OpenError> {
        let is_empty = || self.files.list(&self.store).is_ok_and(|names| names.is_empty());
        if !self.files.exists(&self.store) {
            let repaired = self.path.join(REPAIRED);
            if self.files.exists(&repaired.join("FORMAT")) {
                return Err(OpenError::Unsuitable {
                    folder: self.path.clone(),
                    reason: format!(
                        "a repair of the store was interrupted before its last step; `k1s store repair {}` finishes it",
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
        // `FORMAT` is written last.
        if !self.files.exists(&new) || self.format(&self.store.join("FORMAT")).is_ok() {
            return Ok(Content::Store);
        }
        if self.files.read(&new).is_ok_and(|what| what == Making::Copy.text().as_bytes()) {
            return Ok(Content::PartOfCopy);
        }
        if log::holds_records(&*self.files, &self.log()).map_err(OpenError::io(&self.log()))? {
            return Err(OpenError::damaged(
                &new,
                "it marks the store as unfinished, but the log has records; nothing was changed",
            ));
        }
        Ok(Content::Nothing)
    }

    /// Syncs everything that the previous process may have left in the page cache, since readers will rely on
    /// it and a power cut could undo it.
    pub(crate) fn make_durable(&self) -> io::Result<()> {
        let new = self.store.join("NEW");
        if self.files.exists(&new) {
            // The store is complete, but `FORMAT` may not have been durable when its creator ended. It is
            // written again: after a failed sync, another sync may not write the cached pages.
            self.write_format()?;
            self.files.sync_dir(&self.store)?;
            self.files.remove_file(&new)?;
        }
        self.files.sync_dir(&self.store)?;
        self.files.sync_dir(&self.path)
    }

    /// Creates a store at `revision`; `fill` writes the log and the checkpoint.
    pub(crate) fn create<T>(
        &self,
        making: Making,
        revision: Revision,
        fill: impl FnOnce(&Self) -> Result<T, OpenError>,
    ) -> Result<T, OpenError> {
        // Renamed first: a partly removed store must not look like a store.
        let unfinished = self.path.join("store.unfinished");
        let files = &self.files;
        if files.exists(&unfinished) {
            files.remove_dir_all(&unfinished).map_err(OpenError::io(&unfinished))?;
        }
        if files.exists(&self.store) {
            let renamed = files.rename(&self.store, &unfinished).and_then(|()| files.sync_dir(&self.path));
            renamed.map_err(OpenError::io(&self.store))?;
            files.remove_dir_all(&unfinished).map_err(OpenError::io(&unfinished))?;
        }
        let new = self.store.join("NEW");
        let begin = || {
            files.create_dir(&self.store, DirAccess::Private)?;
            files.write_synced(&new, making.text().as_bytes())?;
            files.sync_dir(&self.store)?;
            files.sync_dir(&self.path)?;
            files.sync_ancestors(&self.path)
        };
        begin().map_err(OpenError::io(&self.store))?;
        self.lock.take_store(&self.path, &self.store)?;
        let filled = fill(self)?;
        let watermark = self.store.join("watermark");
        files.write_synced(&watermark, &Acknowledged::encode(revision)).map_err(OpenError::io(&watermark))?;
        let format = self.store.join("FORMAT");
        let finish = || {
            self.write_format()?;
            files.sync_dir(&self.store)?;
            files.remove_file(&new)?;
            files.sync_dir(&self.store)
        };
        finish().map_err(OpenError::io(&format))?;
        Ok(filled)
    }

    fn write_format(&self) -> io::Result<()> {
        self.files.write_synced(&self.store.join("FORMAT"), format!("{FORMAT_LINE}{FORMAT}\n").as_bytes())
    }

    /// Fails unless the store has the supported format.
    pub(crate) fn check_format(&self) -> Result<(), OpenError> {
        match self.format(&self.store.join("FORMAT"))? {
            FORMAT => Ok(()),
            found => Err(OpenError::UnknownFormat { folder: self.path.clone(), found, known: FORMAT }),
        }
    }

    fn format(&self, path: &Path) -> Result<u32, OpenError> {
        let text = match self.files.read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::damaged(path, "the file is missing"));
            }
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
        let path = self.store.join("watermark");
        let file = self.files.open(&path, Mode::Write).map_err(OpenError::io(&path))?;
        Ok(Watermark { path, file })
    }

    /// Reads the watermark.
    pub(crate) fn acknowledged(&self) -> Result<Acknowledged, OpenError> {
        let path = self.store.join("watermark");
        match self.files.read(&path) {
            Ok(bytes) => Acknowledged::decode(&bytes)
                .ok_or_else(|| OpenError::damaged(&path, "it does not match its checksum")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(OpenError::damaged(&path, "the file is missing"))
            }
            Err(error) => Err(OpenError::io(&path)(error)),
        }
    }

    /// Replaces the watermark. A failure is only logged, since the log has the same information. Everything
    /// up to `revision` must be durable.
    pub(crate) fn renew_watermark(&self, revision: Revision) {
        if let Err(error) = self.replace_watermark(revision) {
            tracing::warn!(store = %self.store.display(), %error, "could not replace the watermark");
        }
    }

    /// Atomically replaces the watermark. Everything up to `revision` must be durable.
    fn replace_watermark(&self, revision: Revision) -> io::Result<()> {
        let (path, new) = (self.store.join("watermark"), self.store.join("watermark.new"));
        self.files.write_synced(&new, &Acknowledged::encode(revision))?;
        self.files.rename(&new, &path)?;
        self.files.sync_dir(&self.store)
    }

    /// Whether there is room to write, determined by writing.
    pub(crate) fn probe(&self) -> io::Result<()> {
        const ROOM: usize = 1 << 20;
        let path = self.path.join("probe");
        // Not zeros: a compressing file system would allocate nothing for them.
        let noise: Vec<u8> =
            (0..ROOM as u64 / 8).flat_map(|i| xxh3_64(&i.to_le_bytes()).to_le_bytes()).collect();
        let written = self.files.write_synced(&path, &noise);
        let removed = self.files.remove_file(&path);
        written.and(removed)
    }
}

/// Bytes allocated on disk by the files in a folder. Sparse parts do not count.
pub(crate) fn disk_bytes(files: &dyn Files, folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for name in files.list(&folder)? {
            let path = folder.join(name);
            match files.metadata(&path) {
                Ok(metadata) if metadata.is_dir => folders.push(path),
                Ok(metadata) => bytes += metadata.allocated,
                // Files may be removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(bytes)
}

/// The last acknowledged revision, stored twice in one file.
///
/// The second slot is written after each synced batch, but not synced: it survives a killed process, and
/// after a power cut it may be old or torn, but is never ahead of what is durable. The first slot is synced,
/// and only written when the store is opened or closed, by replacing the file: it remains if the second is
/// torn. A store whose log ends before either slot has lost data.
#[derive(Debug)]
pub(crate) struct Watermark {
    path: PathBuf,
    file: Box<dyn File>,
}

/// The contents of a watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    /// The last revision that is known to have been acknowledged.
    pub(crate) revision: Revision,
    /// Whether the file should be replaced: it is torn, or the synced slot is behind.
    pub(crate) renew: bool,
    /// Whether part of it cannot be read.
    pub(crate) torn: bool,
}

impl Acknowledged {
    const SLOT: usize = 16;
    /// In another sector than the first slot, so that writing one cannot tear the other.
    const SECOND: usize = 4096;

    fn encode(revision: Revision) -> Vec<u8> {
        let mut bytes = vec![0; Self::SECOND + Self::SLOT];
        for at in [0, Self::SECOND] {
            bytes[at..at + Self::SLOT].copy_from_slice(&Self::encode_slot(revision));
        }
        bytes
    }

    fn encode_slot(revision: Revision) -> [u8; Self::SLOT] {
        let number = revision.get().to_be_bytes();
        let mut bytes = [0; Self::SLOT];
        bytes[..8].copy_from_slice(&number);
        bytes[8..].copy_from_slice(&xxh3_64(&number).to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let slot = |at| {
            let slot = bytes.get(at..at + Self::SLOT)?;
            let revision = Revision::new(u64::from_be_bytes(*slot.first_chunk()?));
            (Self::encode_slot(revision) == slot).then_some(revision)
        };
        let (first, second) = (slot(0), slot(Self::SECOND));
        let revision = first.max(second)?;
        let torn = first.is_none() || second.is_none();
        Some(Self { revision, renew: torn || first != second, torn })
    }
}

impl Watermark {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn raise(&mut self, revision: Revision) -> io::Result<()> {
        self.file.write_all_at(&Acknowledged::encode_slot(revision), Acknowledged::SECOND as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::files;

    fn made() -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::lock(&files::real(), dir.path()).unwrap();
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
        let error = Folder::lock(&files::real(), dir.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("in use by process {}", std::process::id())), "{error}");
    }

    #[test]
    #[cfg(unix)]
    fn a_store_is_readable_by_its_owner_only() {
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
                error.contains(&format!("has format {found}, but this program supports only format 1")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_damaged_or_missing_format_is_refused() {
        let (_dir, folder) = made();
        for damage in [&b"k1s disk store, format 0\n"[..], b"", b"\xff\xfe", b"k1s disk store, format x"] {
            fs::write(folder.store.join("FORMAT"), damage).unwrap();
            let error = folder.check_format().unwrap_err();
            assert!(matches!(&error, OpenError::Damaged { path, .. } if path.ends_with("FORMAT")), "{error}");
        }
        fs::remove_file(folder.store.join("FORMAT")).unwrap();
        assert!(matches!(folder.check_format(), Err(OpenError::Damaged { .. })));
    }

    #[test]
    fn a_watermark_is_readable_however_its_second_slot_is_torn() {
        let (_dir, folder) = made();
        let path = folder.store.join("watermark");
        folder.replace_watermark(Revision::new(7)).unwrap();
        folder.watermark().unwrap().raise(Revision::new(99)).unwrap();
        let says = |revision, renew, torn| Acknowledged { revision: Revision::new(revision), renew, torn };
        assert_eq!(folder.acknowledged().unwrap(), says(99, true, false));
        let whole = fs::read(&path).unwrap();
        for byte in 0..16 {
            for bit in 0..8 {
                let damage = |at: usize| {
                    let mut damaged = whole.clone();
                    damaged[at + byte] ^= 1 << bit;
                    damaged
                };
                assert_eq!(
                    Acknowledged::decode(&damage(4096)),
                    Some(says(7, true, true)),
                    "bit {bit} of {byte}"
                );
                assert_eq!(
                    Acknowledged::decode(&damage(0)),
                    Some(says(99, true, true)),
                    "bit {bit} of {byte}"
                );
            }
        }
        for len in 0..whole.len() {
            let expected = (len >= 16).then_some(says(7, true, true));
            assert_eq!(Acknowledged::decode(&whole[..len]), expected, "cut to {len}");
        }
        folder.replace_watermark(Revision::new(99)).unwrap();
        assert_eq!(folder.acknowledged().unwrap(), says(99, false, false));
        fs::write(&path, vec![0; whole.len()]).unwrap();
        assert!(matches!(folder.acknowledged(), Err(OpenError::Damaged { .. })));
        fs::remove_file(&path).unwrap();
        assert!(matches!(folder.acknowledged(), Err(OpenError::Damaged { .. })));
    }

    #[test]
    fn a_partly_created_store_is_created_again() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::lock(&files::real(), dir.path()).unwrap();
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
