//! One file of the log.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use k1s_store::{Error, Result, Revision};
use parking_lot::RwLock;

use super::{
    directory::{self, Bits, Directory, Listed, TRAILER},
    format::{self, FRAME_HEADER, Found, Frame, Header, SEGMENT_HEADER},
};
use crate::{
    error::{OpenError, io_error},
    files::{File, Files, Mode},
    lock::{Access, FileId},
    record::{Outline, Pointer, Record},
};

/// Bytes per read when all records are read.
const CHUNK: u32 = 256 << 10;

/// A file of the log. Its contents do not change; only the last one grows.
#[derive(Debug)]
pub(crate) struct Segment {
    files: Arc<dyn Files>,
    pub(super) path: PathBuf,
    pub(super) file: Box<dyn File>,
    pub(super) header: Header,
    /// `None` where the file system has no stable file ids.
    file_id: Option<FileId>,
    directory: RwLock<Directory>,
}

/// Damage behind the last intact frame.
pub(super) struct Torn {
    pub(super) reason: &'static str,
    pub(super) at: usize,
    /// Whether an intact frame follows. A crash cannot leave that: a frame is only written after the one
    /// before it is synced.
    pub(super) frame_follows: bool,
    /// Whether it looks like the directory of the frames before it.
    pub(super) directory_follows: bool,
}

impl Segment {
    /// Creates an empty segment.
    pub(super) fn create(files: &Arc<dyn Files>, path: &Path, header: Header) -> io::Result<Self> {
        let file = files.open(path, Mode::Truncate)?;
        file.write_all_at(&header.encode(), 0)?;
        file.sync_all()?;
        Ok(Self::of(files, path, file, header, Directory::new()))
    }

    fn of(
        files: &Arc<dyn Files>,
        path: &Path,
        file: Box<dyn File>,
        header: Header,
        directory: Directory,
    ) -> Self {
        let file_id = FileId::known(&**files, &*file, path);
        let directory = RwLock::new(directory);
        Self { files: files.clone(), path: path.to_owned(), file, header, file_id, directory }
    }

    /// Opens a segment. If it has no intact directory, it may end with damage, which is returned. Nothing is
    /// changed: see [`cut`](Self::cut).
    pub(super) fn open(
        files: &Arc<dyn Files>,
        path: &Path,
        access: Access,
    ) -> Result<(Self, Option<Torn>), OpenError> {
        let mode = if access == Access::Write { Mode::Write } else { Mode::Read };
        let file = files.open(path, mode).map_err(OpenError::io(path))?;
        let len = file.metadata().map_err(OpenError::io(path))?.len;
        let mut header = [0; SEGMENT_HEADER];
        let header = match file.read_exact_at(&mut header, 0) {
            Ok(()) => Header::decode(&header),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => return Err(OpenError::io(path)(error)),
        };
        let header = header.ok_or_else(|| OpenError::damaged(path, "its header is damaged"))?;
        let whole = Self::read_directory(&*file, len).map_err(OpenError::io(path))?;
        let (directory, torn) = match whole.as_deref().and_then(Directory::decode) {
            Some(directory) => (directory, None),
            None => Self::scan(path, &*file, len)?,
        };
        Ok((Self::of(files, path, file, header, directory), torn))
    }

    /// The directory at the end of a file, if any.
    fn read_directory(file: &dyn File, len: u64) -> io::Result<Option<Vec<u8>>> {
        let mut trailer = [0; TRAILER];
        let Some(at) = len.checked_sub(TRAILER as u64) else { return Ok(None) };
        file.read_exact_at(&mut trailer, at)?;
        let Some((directory_len, end)) = Directory::by_trailer(&trailer) else { return Ok(None) };
        if u64::from(end) + directory_len as u64 != len {
            return Ok(None);
        }
        let mut bytes = vec![0; directory_len];
        file.read_exact_at(&mut bytes, u64::from(end))?;
        Ok(Some(bytes))
    }

    /// Reads all frames up to the end or the first damage.
    fn scan(path: &Path, file: &dyn File, len: u64) -> Result<(Directory, Option<Torn>), OpenError> {
        // Offsets are 32-bit numbers. A larger file would not fit into memory either.
        let len = u32::try_from(len).map_err(|_| {
            OpenError::damaged(path, format!("it has {len} bytes, more than a segment can have"))
        })?;
        let mut bytes = vec![0; len as usize];
        file.read_exact_at(&mut bytes, 0).map_err(OpenError::io(path))?;
        let mut directory = Directory::new();
        loop {
            let begin = directory.end as usize;
            let rest = bytes.get(begin..).unwrap_or_default();
            match format::find_frame(rest) {
                Found::Nothing => return Ok((directory, None)),
                Found::Frame { len, body, revision } => {
                    let body_at = begin + len - body.len();
                    let mut sensible = !body.is_empty();
                    for placed in format::records(body) {
                        let outlined =
                            placed.ok().and_then(|placed| Some((Outline::of(placed.bytes)?, placed)));
                        match outlined {
                            Some((outline, placed)) if directory.last() < Some(placed.pointer) => {
                                directory.add(placed.pointer, (body_at + placed.at) as u32, &outline);
                            }
                            _ => sensible = false,
                        }
                    }
                    if !sensible || directory.last().is_none_or(|last| last.revision != revision) {
                        // Its checksum is right, so it was written like this, but not by this program.
                        return Err(OpenError::damaged(
                            path,
                            format!("the frame at byte {begin} is malformed"),
                        ));
                    }
                    directory.end = (begin + len) as u32;
                }
                Found::Damage(reason) => {
                    let torn = Torn {
                        reason,
                        at: begin,
                        frame_follows: format::frame_follows(rest),
                        directory_follows: directory.resembles(rest),
                    };
                    return Ok((directory, Some(torn)));
                }
            }
        }
    }

    /// Writes the frames after `revision` again, unchanged.
    pub(super) fn write_again(&self, revision: Revision) -> io::Result<()> {
        let (begin, end) = {
            let directory = self.directory.read();
            let first = directory.begin(directory.seek(Pointer::new(revision.next(), 0)));
            (first.saturating_sub(FRAME_HEADER as u32).max(SEGMENT_HEADER as u32), directory.end)
        };
        if begin + (FRAME_HEADER as u32) < end {
            let mut bytes = vec![0; (end - begin) as usize];
            self.file.read_exact_at(&mut bytes, u64::from(begin))?;
            self.file.write_all_at(&bytes, u64::from(begin))?;
        }
        Ok(())
    }

    /// Seals the segment with its directory: nothing is appended any more.
    pub(super) fn seal(&self) -> io::Result<()> {
        let (bytes, end) = {
            let directory = self.directory.read();
            (directory.encode(), u64::from(directory.end))
        };
        let Some(bytes) = bytes else { return Ok(()) };
        self.file.set_len(end)?;
        self.file.write_all_at(&bytes, end)?;
        self.file.sync_all()?;
        self.directory.write().complete();
        Ok(())
    }

    /// Whether its directory is on disk.
    pub(super) fn is_sealed(&self) -> bool {
        self.directory.read().is_complete()
    }

    /// Removes everything behind the last good frame.
    pub(super) fn cut(&self) -> io::Result<()> {
        self.file.set_len(u64::from(self.end()))?;
        self.file.sync_all()
    }

    /// Removes the file of a segment that is not part of the log.
    pub(crate) fn discard(&self) {
        let _ = self.files.remove_file(&self.path);
    }

    /// Makes the records of an appended frame visible to readers.
    pub(super) fn extend(&self, frame: &Frame) {
        let mut directory = self.directory.write();
        let begin = directory.end;
        for placed in frame.records() {
            // The bytes were encoded by this process.
            if let Some(outline) = Outline::of(placed.bytes) {
                directory.add(placed.pointer, begin + placed.at as u32, &outline);
            }
        }
        directory.end = begin + frame.len() as u32;
    }

    pub(crate) fn id(&self) -> u64 {
        self.header.id
    }

    /// The first of the segments that it replaced.
    pub(crate) fn from(&self) -> u64 {
        self.header.from
    }

    /// Records that were dead at this revision have been omitted.
    pub(crate) fn cleaned(&self) -> Revision {
        self.header.cleaned
    }

    /// Changes the path, after a rename.
    pub(super) fn at(self, path: PathBuf) -> Self {
        Self { path, ..self }
    }

    /// Whether all frames were found, although the directory cannot be read. `torn`: the damage behind them,
    /// if any. `next`: the first revision of the next segment.
    pub(super) fn has_all_frames(&self, torn: Option<&Torn>, next: Revision) -> bool {
        // A segment that was never cleaned ends where the next one begins.
        let reaches_next = self.header.cleaned == Revision::FIRST
            && self.last().is_some_and(|last| last.revision.next() == next);
        match torn {
            Some(torn) if torn.frame_follows => false,
            Some(torn) => torn.directory_follows || reaches_next,
            None => reaches_next,
        }
    }

    /// Fails if there is another file, or none, at its path.
    pub(super) fn check_in_place(&self) -> io::Result<()> {
        self.file_id.map_or(Ok(()), |id| id.check(&*self.files, &self.path))
    }

    /// Whether this segment replaced `other`.
    pub(super) fn stands_for(&self, other: &Self) -> bool {
        (self.header.from..=self.header.id).contains(&other.header.id)
    }

    /// All records have this revision or a later one.
    pub(crate) fn begin(&self) -> Revision {
        self.header.begin
    }

    /// The end of its frames.
    pub(crate) fn end(&self) -> u32 {
        self.directory.read().end
    }

    pub(crate) fn records(&self) -> u32 {
        self.directory.read().records()
    }

    /// Its last record.
    pub(crate) fn last(&self) -> Option<Pointer> {
        self.directory.read().last()
    }

    /// Approximate bytes of dead records, and of live ones.
    pub(crate) fn dead_and_live_bytes(&self) -> (u64, u64) {
        let directory = self.directory.read();
        if directory.dead_count() >= directory.records() {
            return (u64::from(directory.end), 0);
        }
        let dead = directory.dead_bytes().min(u64::from(directory.end));
        (dead, u64::from(directory.end) - dead)
    }

    /// The dead records.
    pub(crate) fn dead(&self) -> Bits {
        self.directory.write().dead().clone()
    }

    pub(crate) fn set_dead(&self, dead: Bits) {
        self.directory.write().set_dead(dead);
    }

    /// Marks a record as dead.
    pub(super) fn mark_dead(&self, pointer: Pointer) {
        self.directory.write().mark_dead(pointer);
    }

    /// Calls `each` for every record listed in the directory.
    pub(crate) fn each_listed(&self, mut each: impl FnMut(&Listed<'_>)) -> Result<()> {
        let growing = self.directory.read().entries();
        let listed = match growing {
            Some(entries) => directory::each(&entries, |listed, _| each(listed)),
            None => {
                let len = self.file.metadata().map_err(|error| io_error(&error))?.len;
                let whole = Self::read_directory(&*self.file, len).map_err(|error| io_error(&error))?;
                let entries = whole.as_deref().and_then(directory::entries_of);
                entries.and_then(|entries| directory::each(entries, |listed, _| each(listed)))
            }
        };
        listed.ok_or_else(|| Error::corrupt(format!("the directory of {} is damaged", self.path.display())))
    }

    /// The record at `pointer`, if present.
    pub(crate) fn get(&self, pointer: Pointer) -> Result<Option<Record>> {
        let Some((begin, end)) = self.directory.read().find(pointer) else { return Ok(None) };
        let bytes = Bytes::from(self.read(begin, end)?);
        match format::records(&bytes).next() {
            Some(Ok(placed)) if placed.pointer == pointer => {
                Record::read(pointer, &bytes.slice_ref(placed.bytes)).map(Some)
            }
            // The directory lists it: anything else in its place is damage, not an absent record.
            _ => Err(self.misplaced(begin, 0)),
        }
    }

    /// Calls `each` for every record from `first` on, until it returns false. Returns false if it did.
    pub(crate) fn each(
        &self,
        first: Pointer,
        each: &mut dyn FnMut(Pointer, Bytes) -> Result<bool>,
    ) -> Result<bool> {
        let (mut number, mut at, end) = {
            let directory = self.directory.read();
            let number = directory.seek(first);
            (number, directory.begin(number), directory.end)
        };
        let mut want = CHUNK;
        while at < end {
            let until = at.saturating_add(want).min(end);
            let bytes = Bytes::from(self.read(at, until)?);
            let mut next = at;
            for placed in format::records(&bytes) {
                match placed {
                    Ok(placed) => {
                        // A lookup by pointer must not miss a record whose pointer is damaged.
                        if self.directory.read().pointer(number) != Some(placed.pointer) {
                            return Err(self.misplaced(at, placed.at));
                        }
                        number += 1;
                        next = at + (placed.at + placed.len()) as u32;
                        if !each(placed.pointer, bytes.slice_ref(placed.bytes))? {
                            return Ok(false);
                        }
                    }
                    // The rest is in the next chunk.
                    Err(_) if until < end => break,
                    Err(place) => return Err(self.misplaced(at, place)),
                }
            }
            // A record longer than a chunk is read in one piece.
            want = if next == at { want.saturating_mul(2) } else { CHUNK };
            if next == at && until == end {
                return Err(self.misplaced(at, 0));
            }
            at = next;
        }
        Ok(true)
    }

    /// Fails if there is anything but intact frames.
    pub(crate) fn check_frames(&self) -> Result<()> {
        let mut at = SEGMENT_HEADER;
        let end = self.end();
        let bytes = self.read(at as u32, end)?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let reason = match format::find_frame(rest) {
                Found::Frame { len, .. } => {
                    at += len;
                    rest = &rest[len..];
                    continue;
                }
                Found::Nothing => "there are zeros instead of a frame",
                Found::Damage(reason) => reason,
            };
            return Err(Error::corrupt(format!("{}: {reason} at byte {at}", self.path.display())));
        }
        Ok(())
    }

    fn read(&self, begin: u32, end: u32) -> Result<Vec<u8>> {
        let mut bytes = vec![0; (end - begin) as usize];
        self.file.read_exact_at(&mut bytes, u64::from(begin)).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::corrupt(format!("{} is cut off", self.path.display())),
            _ => io_error(&error),
        })?;
        Ok(bytes)
    }

    fn misplaced(&self, begin: u32, at: usize) -> Error {
        Error::corrupt(format!("{} has no record at byte {}", self.path.display(), begin as usize + at))
    }
}
