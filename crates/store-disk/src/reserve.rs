//! Room on disk that is kept for when there is no other: so that what gives room back can be written.

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

/// So much is written, and given back, at a time.
const SLICE: u64 = 64 << 10;

/// An update may make a value larger by so much and still be one that leads to its deletion: it notes when it was asked for, and by
/// whom it is waited for.
const GROWTH: u32 = 1 << 10;

/// No transaction that uses the reserve is larger than this.
const LARGEST: usize = 256 << 10;

/// A file that takes up room until that is needed.
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

    /// How much there is of it.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Fills it up. If there is no room for all of it, it takes up none: somebody may need that.
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
        // Not zeros: a file system that compresses would need no room for them.
        let noise: Vec<u8> = (0..SLICE / 8).flat_map(|i| xxh3_64(&i.to_le_bytes()).to_le_bytes()).collect();
        let mut at = self.left;
        while at < self.wanted {
            let len = (self.wanted - at).min(SLICE);
            file.write_all_at(&noise[..len as usize], at)?;
            at += len;
        }
        Ok(())
    }

    /// Gives some of it to the disk. False if there is nothing left.
    pub(crate) fn release(&mut self, bytes: u64) -> bool {
        if self.left == 0 {
            return false;
        }
        let left = self.left.saturating_sub(bytes.max(SLICE));
        let given = self.files.open(&self.path, Mode::Write).and_then(|file| file.set_len(left));
        self.left = if given.is_ok() { left } else { 0 };
        given.is_ok()
    }

    /// Whether a transaction may use what is left: one that deletes may use all of it, one that makes values smaller three quarters,
    /// and one that makes them a little larger half, as it must be to mark what is to be deleted. Nothing new may.
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
