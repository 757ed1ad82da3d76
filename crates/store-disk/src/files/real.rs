//! The operating system's files.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

use super::{DirAccess, File, Files, Metadata, Mode};

#[derive(Debug)]
pub(super) struct Real;

impl Files for Real {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn File>> {
        let mut options = OpenOptions::new();
        options.read(true).write(mode != Mode::Read);
        options.create(matches!(mode, Mode::Create | Mode::Truncate)).truncate(mode == Mode::Truncate);
        Ok(Box::new(options.open(path)?))
    }

    fn create_dir(&self, path: &Path, access: DirAccess) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        if access == DirAccess::Private {
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        }
        #[cfg(not(unix))]
        let _ = access;
        builder.create(path)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        fs::metadata(path).map(|metadata| Metadata::from(&metadata))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    #[cfg(unix)]
    fn chown_like(&self, like: &Path, path: &Path) -> io::Result<()> {
        use std::os::unix::fs::{MetadataExt, chown};
        let owner = fs::metadata(like)?;
        chown(path, Some(owner.uid()), Some(owner.gid()))
    }

    #[cfg(not(unix))]
    fn chown_like(&self, _: &Path, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl File for fs::File {
    #[cfg(unix)]
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, bytes, offset)
    }

    #[cfg(unix)]
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, offset)
    }

    #[cfg(windows)]
    fn read_exact_at(&self, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let read = std::os::windows::fs::FileExt::seek_read(self, bytes, offset)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            bytes = &mut bytes[read..];
            offset += read as u64;
        }
        Ok(())
    }

    #[cfg(windows)]
    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = std::os::windows::fs::FileExt::seek_write(self, bytes, offset)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[written..];
            offset += written as u64;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Self::set_len(self, len)
    }

    fn sync_data(&self) -> io::Result<()> {
        Self::sync_data(self)
    }

    fn sync_all(&self) -> io::Result<()> {
        Self::sync_all(self)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        Self::metadata(self).map(|metadata| Metadata::from(&metadata))
    }

    fn try_lock(&self) -> Result<(), TryLockError> {
        Self::try_lock(self)
    }
}

impl From<&fs::Metadata> for Metadata {
    #[cfg(unix)]
    fn from(metadata: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            is_dir: metadata.is_dir(),
            len: metadata.len(),
            allocated: metadata.blocks() * 512,
            id: (metadata.dev(), metadata.ino()),
        }
    }

    #[cfg(not(unix))]
    fn from(metadata: &fs::Metadata) -> Self {
        Self { is_dir: metadata.is_dir(), len: metadata.len(), allocated: metadata.len(), id: (0, 0) }
    }
}
