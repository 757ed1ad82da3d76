//! One file of the log.

use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use bytes::Bytes;
use k1s_store::{Error, Result, Revision};
use parking_lot::RwLock;

use super::format::{self, Found, Frame, Header, INDEX_TRAILER, Index, SEGMENT_HEADER};
use crate::{
    error::{OpenError, io_error},
    record::{Dead, Pointer, Record},
};

/// So much is read at a time where all records are wanted.
const CHUNK: u32 = 256 << 10;

/// A file of the log. What is in it does not change; the last one grows.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) header: Header,
    index: RwLock<Index>,
    /// How many of its records are known to be superfluous.
    dead: AtomicU32,
}

/// What is behind the last whole frame, if it is not nothing.
pub(super) struct Torn {
    pub(super) reason: &'static str,
    pub(super) at: usize,
    /// Whether there is a whole frame further behind. A crash cannot leave that: a frame is written when the one before
    /// it is synced.
    pub(super) frame_follows: bool,
}

impl Segment {
    /// Makes an empty segment.
    pub(super) fn create(path: &Path, header: Header) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(path)?;
        write_all_at(&file, &header.encode(), 0)?;
        file.sync_all()?;
        Ok(Self::of(path, file, header, Index::new()))
    }

    fn of(path: &Path, file: File, header: Header, index: Index) -> Self {
        Self { path: path.to_owned(), file, header, index: RwLock::new(index), dead: AtomicU32::new(0) }
    }

    /// Opens a segment. The last one need not have an index, and may end with something else than a frame, which comes
    /// along. Nothing is changed: see [`cut`](Self::cut).
    pub(super) fn open(path: &Path, is_last: bool) -> Result<(Self, Option<Torn>), OpenError> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(OpenError::io(path))?;
        let len = file.metadata().map_err(OpenError::io(path))?.len();
        let mut header = [0; SEGMENT_HEADER];
        let header = match read_exact_at(&file, &mut header, 0) {
            Ok(()) => Header::decode(&header),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => return Err(OpenError::io(path)(error)),
        };
        let header = header.ok_or_else(|| OpenError::damaged(path, "it does not begin as a segment does"))?;
        let (index, torn) = match Self::read_index(&file, len).map_err(OpenError::io(path))? {
            Some(index) => (index, None),
            None if is_last => Self::scan(path, &file, len)?,
            None => return Err(OpenError::damaged(path, "its index is missing or damaged")),
        };
        Ok((Self::of(path, file, header, index), torn))
    }

    /// The index at the end of a file, if there is one.
    fn read_index(file: &File, len: u64) -> io::Result<Option<Index>> {
        let mut trailer = [0; INDEX_TRAILER];
        let Some(at) = len.checked_sub(INDEX_TRAILER as u64) else { return Ok(None) };
        read_exact_at(file, &mut trailer, at)?;
        let Some(index_len) = Index::len_by_trailer(&trailer) else { return Ok(None) };
        let Some(at) = len.checked_sub(index_len as u64) else { return Ok(None) };
        let mut bytes = vec![0; index_len];
        read_exact_at(file, &mut bytes, at)?;
        Ok(Index::decode(&bytes).filter(|index| u64::from(index.end) == at))
    }

    /// Reads all frames, up to what is none.
    fn scan(path: &Path, file: &File, len: u64) -> Result<(Index, Option<Torn>), OpenError> {
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        read_exact_at(file, &mut bytes, 0).map_err(OpenError::io(path))?;
        let mut index = Index::new();
        loop {
            let begin = index.end as usize;
            let rest = bytes.get(begin..).unwrap_or_default();
            match format::find_frame(rest) {
                Found::Nothing => return Ok((index, None)),
                Found::Frame { len, body, revision } => {
                    let body_at = begin + len - body.len();
                    let mut sensible = !body.is_empty();
                    for placed in format::records(body) {
                        match placed {
                            Ok(placed) if index.last < Some(placed.pointer) => {
                                index.add(placed.pointer, (body_at + placed.at) as u32);
                            }
                            _ => sensible = false,
                        }
                    }
                    if !sensible || index.last.is_none_or(|last| last.revision != revision) {
                        // Its checksum is right: it was written so, and not by us.
                        return Err(OpenError::damaged(
                            path,
                            format!("the frame at byte {begin} makes no sense"),
                        ));
                    }
                    index.end = (begin + len) as u32;
                }
                Found::Damage(reason) => {
                    let torn = Torn { reason, at: begin, frame_follows: format::frame_follows(rest) };
                    return Ok((index, Some(torn)));
                }
            }
        }
    }

    /// Completes it: nothing is added any more.
    pub(super) fn seal(&self) -> io::Result<()> {
        let index = self.index.read();
        let end = u64::from(index.end);
        self.file.set_len(end)?;
        write_all_at(&self.file, &index.encode(), end)?;
        self.file.sync_all()
    }

    /// Whether it has its index on disk.
    pub(super) fn is_sealed(&self) -> io::Result<bool> {
        Ok(Self::read_index(&self.file, self.file.metadata()?.len())?.is_some())
    }

    /// Removes what was written behind the end that is known to be good.
    pub(super) fn cut(&self) -> io::Result<()> {
        self.file.set_len(u64::from(self.end()))?;
        self.file.sync_all()
    }

    /// Lets readers find the records of a frame that was written to the end.
    pub(super) fn extend(&self, frame: &Frame) {
        let mut index = self.index.write();
        let begin = index.end;
        for (pointer, offset) in frame.records() {
            index.add(*pointer, begin + offset);
        }
        index.end = begin + frame.len() as u32;
    }

    pub(crate) fn id(&self) -> u64 {
        self.header.id
    }

    /// The same segment, whose file has another name now.
    pub(super) fn at(self, path: PathBuf) -> Self {
        Self { path, ..self }
    }

    /// Whether this one was made of `other`.
    pub(super) fn stands_for(&self, other: &Self) -> bool {
        (self.header.from..=self.header.id).contains(&other.header.id)
    }

    /// Its records are of this revision or later ones.
    pub(crate) fn begin(&self) -> Revision {
        self.header.begin
    }

    /// Where its frames end.
    pub(crate) fn end(&self) -> u32 {
        self.index.read().end
    }

    pub(crate) fn records(&self) -> u32 {
        self.index.read().records
    }

    /// Its last record.
    pub(crate) fn last(&self) -> Option<Pointer> {
        self.index.read().last
    }

    pub(crate) fn dead(&self) -> u32 {
        self.dead.load(Ordering::Relaxed)
    }

    pub(crate) fn set_dead(&self, dead: u32) {
        self.dead.store(dead, Ordering::Relaxed);
    }

    /// Whether a number of dead records was counted in this one, not in one that it has replaced.
    pub(crate) fn is_meant_by(&self, dead: Dead) -> bool {
        dead.of == self.records() || dead.of == 0 && self.header.cleaned == Revision::FIRST
    }

    /// The record at `pointer`, if it is here.
    pub(crate) fn get(&self, pointer: Pointer) -> Result<Option<Record>> {
        let Some((begin, end)) = self.index.read().find(pointer) else { return Ok(None) };
        let bytes = Bytes::from(self.read(begin, end)?);
        for placed in format::records(&bytes) {
            let placed = placed.map_err(|at| self.misplaced(begin, at))?;
            if placed.pointer == pointer {
                return Record::read(pointer, &bytes.slice_ref(placed.bytes)).map(Some);
            }
            if placed.pointer > pointer {
                break;
            }
        }
        Ok(None)
    }

    /// Calls `each` for every record from `first` on, until it says that it has seen enough. False if it did.
    pub(crate) fn each(
        &self,
        first: Pointer,
        each: &mut dyn FnMut(Pointer, Bytes) -> Result<bool>,
    ) -> Result<bool> {
        let (mut at, end) = {
            let index = self.index.read();
            (index.seek(first), index.end)
        };
        let mut want = CHUNK;
        while at < end {
            let until = at.saturating_add(want).min(end);
            let bytes = Bytes::from(self.read(at, until)?);
            let mut next = at;
            for placed in format::records(&bytes) {
                match placed {
                    Ok(placed) => {
                        next = at + (placed.at + placed.len()) as u32;
                        if placed.pointer >= first && !each(placed.pointer, bytes.slice_ref(placed.bytes))? {
                            return Ok(false);
                        }
                    }
                    // The rest is in the next chunk.
                    Err(_) if until < end => break,
                    Err(place) => return Err(self.misplaced(at, place)),
                }
            }
            // A record that is longer than a chunk is read in one piece.
            want = if next == at { want.saturating_mul(2) } else { CHUNK };
            if next == at && until == end {
                break;
            }
            at = next;
        }
        Ok(true)
    }

    fn read(&self, begin: u32, end: u32) -> Result<Vec<u8>> {
        let mut bytes = vec![0; (end - begin) as usize];
        read_exact_at(&self.file, &mut bytes, u64::from(begin)).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::corrupt(format!("{} is cut off", self.path.display())),
            _ => io_error(&error),
        })?;
        Ok(bytes)
    }

    fn misplaced(&self, begin: u32, at: usize) -> Error {
        Error::corrupt(format!("{} has no record at byte {}", self.path.display(), begin as usize + at))
    }
}

#[cfg(unix)]
pub(super) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
pub(super) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[read..];
        offset += read as u64;
    }
    Ok(())
}
