//! Disk space reserved for a full disk, so that writes which free space can still be made.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use k1s_store::{Action, Txn};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    files::{File, Files, Mode},
    heads::Heads,
    record::entry_size,
};

/// Number of bytes written or released at a time.
const SLICE: u64 = 64 << 10;

/// Maximum growth of a value for an update that leads to a deletion: it sets the deletion timestamp and
/// finalizers.
const GROWTH: u32 = 1 << 10;

/// Maximum size of a transaction that uses the reserve.
const LARGEST: usize = 256 << 10;

/// A file that occupies space until the disk is full.
pub(crate) struct Reserve {
    files: Arc<dyn Files>,
    path: PathBuf,
    wanted: u64,
    left: u64,
}

impl Reserve {
    pub(crate) fn open(files: Arc<dyn Files>, path: &Path, wanted: u64) -> Self {
        let left = files.metadata(path).map_or(0, |metadata| metadata.len);
        Self { files, path: path.to_owned(), wanted, left }
    }

    /// Bytes currently reserved.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Fills the reserve up. If there is no room for all of it, nothing is added: other writes may need the
    /// room.
    pub(crate) fn fill(&mut self) -> io::Result<()> {
        if self.left == self.wanted {
            return Ok(());
        }
        let file = self.files.open(&self.path, Mode::Create)?;
        self.write(&*file).inspect_err(|_| drop(file.set_len(self.left)))?;
        self.left = self.wanted;
        Ok(())
    }

    fn write(&self, file: &dyn File) -> io::Result<()> {
        if self.left > self.wanted {
            return file.set_len(self.wanted);
        }
        // Not zeros: a compressing file system would allocate nothing for them.
        let noise: Vec<u8> = (0..SLICE / 8).flat_map(|i| xxh3_64(&i.to_le_bytes()).to_le_bytes()).collect();
        let mut at = self.left;
        while at < self.wanted {
            let len = (self.wanted - at).min(SLICE);
            file.write_all_at(&noise[..len as usize], at)?;
            at += len;
        }
        Ok(())
    }

    /// Releases part of the reserve. Returns false if nothing is left.
    pub(crate) fn release(&mut self, bytes: u64) -> bool {
        if self.left == 0 {
            return false;
        }
        let left = self.left.saturating_sub(bytes.max(SLICE));
        let given = self.files.open(&self.path, Mode::Write).and_then(|file| file.set_len(left));
        self.left = if given.is_ok() { left } else { 0 };
        given.is_ok()
    }

    /// Whether a transaction may use the reserve: all of it for deletions, three quarters for updates that
    /// shrink values, half for updates that grow them slightly, as marking an object for deletion does.
    /// Creations may not use it.
    pub(crate) fn serves(&self, txn: &Txn, heads: &Heads) -> bool {
        let mut stays = 0;
        for op in txn.ops() {
            let Action::Put(value) = &op.action else { continue };
            let Some(before) = heads.get(&op.key).and_then(|head| head.size) else { return false };
            let after = entry_size(&op.key, value);
            if after > before.saturating_add(GROWTH) {
                return false;
            }
            stays = stays.max(self.wanted / if after > before { 2 } else { 4 });
        }
        txn.size() <= LARGEST && (stays == 0 || self.left > stays)
    }
}
