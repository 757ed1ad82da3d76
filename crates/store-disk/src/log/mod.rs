//! The log: all records in revision order, in segment files.
//!
//! A batch of writes is one frame, appended to the last segment and synced. That alone makes it durable. It
//! is not written again, unless it outlives most of its neighbours: see [`clean`].
//!
//! Records are found by their pointers, through the in-memory [`directory`] of each segment.

pub(crate) mod clean;
mod directory;
mod format;
pub(crate) mod scan;
mod segment;

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use k1s_store::{Result, Revision};

use crate::{
    error::OpenError,
    files::{DirAccess, Files},
    lock::Access,
    record::{Pointer, Record},
};
pub(crate) use directory::Bits;
pub(crate) use format::Frame;
use format::{Header, SEGMENT_HEADER};
pub(crate) use segment::Segment;
use segment::Torn;

/// Number of zeros written behind a small frame that extends the file. A sync is faster if it changes only
/// contents: neither the length of the file nor its allocation.
const PREALLOCATED: u64 = 1 << 20;

/// Size from which a frame does not benefit from that.
const LARGE_FRAME: usize = 32 << 10;

/// Maximum size of a segment: offsets are 32-bit numbers.
const MAX_SEGMENT_BYTES: u64 = 1 << 30;

/// A snapshot of all segments, oldest first. The files stay readable while it exists.
#[derive(Clone, Debug)]
pub(crate) struct Segments(Arc<[Arc<Segment>]>);

impl Segments {
    /// The segment that can hold a revision.
    pub(crate) fn of(&self, revision: Revision) -> Option<&Arc<Segment>> {
        let next = self.0.partition_point(|segment| segment.begin() <= revision);
        self.0.get(next.checked_sub(1)?)
    }

    /// The record at `pointer`, if present.
    pub(crate) fn get(&self, pointer: Pointer) -> Result<Option<Record>> {
        match self.of(pointer.revision) {
            Some(segment) => segment.get(pointer),
            None => Ok(None),
        }
    }

    /// Calls `each` for every record from `first` on, in order, until it returns false.
    pub(crate) fn each(
        &self,
        first: Pointer,
        mut each: impl FnMut(Pointer, Bytes) -> Result<bool>,
    ) -> Result<()> {
        let next = self.0.partition_point(|segment| segment.begin() <= first.revision);
        for segment in &self.0[next.saturating_sub(1)..] {
            if !segment.each(first, &mut each)? {
                break;
            }
        }
        Ok(())
    }

    /// The last record.
    pub(crate) fn last(&self) -> Option<Pointer> {
        self.0.iter().rev().find_map(|segment| segment.last())
    }

    /// Fails if the segment being written is no longer at its path.
    pub(crate) fn check_in_place(&self) -> io::Result<()> {
        self.0.last().map_or(Ok(()), |last| last.check_in_place())
    }

    /// Marks a record as dead.
    pub(crate) fn mark_dead(&self, pointer: Pointer) {
        if let Some(segment) = self.of(pointer.revision) {
            segment.mark_dead(pointer);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.0.iter()
    }
}

/// The writable end of the log.
#[derive(Debug)]
pub(crate) struct Log {
    files: Arc<dyn Files>,
    folder: PathBuf,
    segments: Segments,
    /// Size at which a segment is full.
    segment_bytes: u64,
    /// The end of the bytes written to the last segment, including preallocated zeros.
    written: u64,
    /// Whether the last write failed, so that the contents behind the last frame are unknown.
    failed: bool,
}

impl Log {
    /// Creates an empty log in a folder that does not exist.
    pub(crate) fn create(
        files: &Arc<dyn Files>,
        folder: &Path,
        segment_bytes: u64,
    ) -> Result<Self, OpenError> {
        let make = || {
            files.create_dir(folder, DirAccess::Default)?;
            let header = Header { id: 1, from: 1, begin: Revision::FIRST, cleaned: Revision::FIRST };
            place(&**files, folder, Segment::create(files, &new_path_of(folder, 1), header)?)
        };
        let first = make().map_err(OpenError::io(folder))?;
        Ok(Self {
            files: files.clone(),
            folder: folder.to_owned(),
            segments: Segments([Arc::new(first)].into()),
            segment_bytes: segment_bytes.min(MAX_SEGMENT_BYTES),
            written: SEGMENT_HEADER as u64,
            failed: false,
        })
    }

    /// Opens a log, which must be intact up to `acknowledged`, or completely if that is `None`. Changes
    /// nothing: call [`prepare`](Self::prepare) once the store is known to be sound. A damaged directory is
    /// rebuilt from the frames, if those are intact.
    pub(crate) fn open(
        files: &Arc<dyn Files>,
        folder: &Path,
        segment_bytes: u64,
        acknowledged: Option<Revision>,
        access: Access,
    ) -> Result<Self, OpenError> {
        let ids = scan::ids(&**files, folder).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => OpenError::damaged(folder, "the folder is missing"),
            _ => OpenError::io(folder)(error),
        })?;
        let mut segments = Vec::<Arc<Segment>>::with_capacity(ids.len());
        let mut torn = None;
        // From last to first, since a cleaned segment names the ones before it that it replaced.
        let mut wanted = None;
        for id in ids.iter().rev() {
            let path = path_of(folder, *id);
            match wanted {
                Some(wanted) if *id > wanted => continue,
                Some(wanted) if *id < wanted => return Err(missing(folder, wanted)),
                _ => {}
            }
            let (segment, mut torn_there) = Segment::open(files, &path, access)?;
            // The last one may still be growing; the others end with a directory.
            if let (false, Some(next)) = (segment.is_sealed(), segments.last()) {
                if !segment.has_all_frames(torn_there.take().as_ref(), next.begin()) {
                    return Err(OpenError::damaged(
                        &path,
                        "its directory is missing or damaged, and its end too",
                    ));
                }
                tracing::warn!(segment = %path.display(), "the segment's directory is missing or damaged, and is rebuilt");
            }
            if segment.id() != *id || !(1..=*id).contains(&segment.header.from) {
                return Err(OpenError::damaged(&path, "it is the file of another segment"));
            }
            torn = torn.or(torn_there);
            wanted = Some(segment.header.from - 1);
            segments.push(Arc::new(segment));
        }
        match wanted {
            None => return Err(OpenError::damaged(folder, "its segments are missing")),
            Some(0) => {}
            Some(wanted) => return Err(missing(folder, wanted)),
        }
        segments.reverse();
        // It is unknown how far the file was written: assume nothing is preallocated.
        let log = Self {
            files: files.clone(),
            folder: folder.to_owned(),
            segments: Segments(segments.into()),
            segment_bytes: segment_bytes.min(MAX_SEGMENT_BYTES),
            written: 0,
            failed: true,
        };
        if let Some((Torn { reason, at, frame_follows, .. }, last)) = torn.zip(log.last()) {
            let whole_up_to = log.segments.last().map_or(Revision::FIRST, |last| last.revision);
            if frame_follows || acknowledged.is_none_or(|acknowledged| whole_up_to < acknowledged) {
                let known = match acknowledged {
                    Some(acknowledged) => format!("and revision {acknowledged} had been acknowledged"),
                    None => "and the last acknowledged revision is unknown".to_owned(),
                };
                return Err(OpenError::damaged(
                    &last.path,
                    format!("{reason} at byte {at}; it is intact up to revision {whole_up_to}, {known}"),
                ));
            }
            tracing::warn!(
                segment = %last.path.display(), byte = at, reason,
                "cutting off a write that was interrupted and never acknowledged"
            );
        }
        Ok(log)
    }

    pub(crate) fn segments(&self) -> Segments {
        self.segments.clone()
    }

    fn last(&self) -> Option<&Arc<Segment>> {
        self.segments.0.last()
    }

    /// Fails if the file being written is no longer at its path: the store's folder was removed, moved or
    /// replaced.
    pub(crate) fn check_in_place(&self) -> io::Result<()> {
        self.last().map_or(Ok(()), |last| last.check_in_place())
    }

    /// Syncs the names of all segments, and the frames that were not acknowledged. Those are written again:
    /// after a failed sync, another sync may not write the cached pages.
    pub(crate) fn make_durable(&self, acknowledged: Option<Revision>) -> io::Result<()> {
        self.files.sync_dir(&self.folder)?;
        if let Some(last) = self.last() {
            last.write_again(acknowledged.unwrap_or(Revision::FIRST))?;
        }
        self.sync()
    }

    /// Cuts off torn frames, after a crash or a failure, and removes files that have been replaced.
    pub(crate) fn prepare(&mut self) -> io::Result<()> {
        if !self.failed {
            return Ok(());
        }
        // Directories that were rebuilt.
        self.seal()?;
        if let Some(last) = self.last() {
            if last.is_sealed() {
                self.roll()?;
            } else {
                last.cut()?;
                self.written = u64::from(last.end());
            }
        }
        self.remove_leftovers()?;
        self.failed = false;
        Ok(())
    }

    /// After a failed write: removes what was written of it, so that the next open does not find it. The log
    /// must still be [prepared](Self::prepare).
    pub(crate) fn take_back(&self) -> io::Result<()> {
        match self.last() {
            // A sealed segment holds nothing of it: it was to go into the next one.
            Some(last) if self.failed && !last.is_sealed() => last.cut(),
            _ => Ok(()),
        }
    }

    fn remove_leftovers(&self) -> io::Result<()> {
        for name in self.files.list(&self.folder)? {
            let path = self.folder.join(&name);
            // Only files written by this program are removed.
            let is_ours = id_of(&name, "log").or(id_of(&name, "new")).is_some();
            if is_ours
                && !self.segments.iter().any(|segment| segment.path == path)
                && let Err(error) = self.files.remove_file(&path)
            {
                // It occupies space, but does no harm.
                tracing::warn!(path = %path.display(), %error, "could not remove an obsolete file");
            }
        }
        Ok(())
    }

    /// Appends a frame and syncs it. Readers find its records when this returns. After an error, nothing can
    /// be written until the log has been [prepared](Self::prepare) again.
    pub(crate) fn append(&mut self, frame: &mut Frame) -> io::Result<()> {
        self.write(frame, true, false)
    }

    /// The same, but allocates no more space than the frame needs: no zeros behind it, and no new segment.
    pub(crate) fn append_tightly(&mut self, frame: &mut Frame) -> io::Result<()> {
        self.write(frame, true, true)
    }

    /// Appends a frame without syncing it.
    pub(crate) fn append_unsynced(&mut self, frame: &mut Frame) -> io::Result<()> {
        self.write(frame, false, false)
    }

    fn write(&mut self, frame: &mut Frame, durable: bool, tight: bool) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other("the log must be recovered first"));
        }
        self.failed = true;
        if durable {
            self.check_in_place()?;
        }
        let full = if tight { MAX_SEGMENT_BYTES } else { self.segment_bytes };
        if self.last().is_none_or(|last| u64::from(last.end()) >= full) {
            self.roll()?;
        }
        let Some(last) = self.segments.0.last() else { return Err(io::ErrorKind::NotFound.into()) };
        let begin = u64::from(last.end());
        let len = frame.len();
        let end = begin + len as u64;
        let room = if len < LARGE_FRAME && end > self.written && !tight {
            PREALLOCATED.min(self.segment_bytes.saturating_sub(end)) as usize
        } else {
            0
        };
        last.file.write_all_at(frame.finish(room), begin)?;
        if durable {
            last.file.sync_data()?;
            // Data in a file that is no longer at its path is not durable.
            last.check_in_place()?;
        }
        frame.truncate(len);
        last.extend(frame);
        self.written = self.written.max(end + room as u64);
        self.failed = false;
        Ok(())
    }

    /// Syncs everything.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.last().map_or(Ok(()), |last| last.file.sync_all())
    }

    /// Replaces `run` by its [cleaned](clean) copy. After an error, nothing has changed.
    pub(crate) fn replace(&mut self, run: &[Arc<Segment>], cleaned: Segment) -> io::Result<()> {
        let path = path_of(&self.folder, cleaned.id());
        self.files.rename(&cleaned.path, &path).inspect_err(|_| cleaned.discard())?;
        let cleaned = Arc::new(cleaned.at(path));
        let replaced = |segment: &Arc<Segment>| cleaned.stands_for(segment);
        let before = self.segments.iter().take_while(|segment| !replaced(segment));
        let after = self
            .segments
            .iter()
            .skip_while(|segment| !replaced(segment))
            .filter(|segment| !replaced(segment));
        self.segments = Segments(before.cloned().chain([cleaned.clone()]).chain(after.cloned()).collect());
        if let Err(error) = self.files.sync_dir(&self.folder) {
            // The next open removes the replaced files.
            tracing::warn!(path = %cleaned.path.display(), %error, "the name of a cleaned segment may not be durable yet");
            return Ok(());
        }
        for segment in run.iter().filter(|segment| segment.path != cleaned.path) {
            if let Err(error) = self.files.remove_file(&segment.path) {
                tracing::warn!(path = %segment.path.display(), %error, "could not remove an obsolete file");
            }
        }
        Ok(())
    }

    /// Full segments whose directory is not on disk.
    pub(crate) fn unsealed(&self) -> impl Iterator<Item = &Path> {
        let full = self.segments.0.split_last().map_or(&[][..], |(_, full)| full);
        full.iter().filter(|segment| !segment.is_sealed()).map(|segment| &*segment.path)
    }

    /// Writes the directories of all full segments.
    pub(crate) fn seal(&self) -> io::Result<()> {
        let full = self.segments.0.split_last().map_or(&[][..], |(_, full)| full);
        full.iter().try_for_each(|segment| segment.seal())
    }

    /// Seals the last segment and starts another.
    fn roll(&mut self) -> io::Result<()> {
        let Some(last) = self.last() else { return Err(io::ErrorKind::NotFound.into()) };
        last.seal()?;
        let id = last.id() + 1;
        let begin = self.segments.last().map_or(Revision::FIRST, |last| last.revision.next());
        let header = Header { id, from: id, begin, cleaned: Revision::FIRST };
        let new = Segment::create(&self.files, &new_path_of(&self.folder, id), header)?;
        let next = place(&*self.files, &self.folder, new)?;
        self.segments = Segments(self.segments.iter().cloned().chain([Arc::new(next)]).collect());
        self.written = SEGMENT_HEADER as u64;
        Ok(())
    }
}

/// Whether any file of a log has more than a header. An unfinished store has no such file.
pub(crate) fn holds_records(files: &dyn Files, folder: &Path) -> io::Result<bool> {
    let names = match files.list(folder) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    for name in names {
        let metadata = files.metadata(&folder.join(name))?;
        if !metadata.is_dir && metadata.len > SEGMENT_HEADER as u64 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Renames a new segment to its final name, which makes it part of the log.
fn place(files: &dyn Files, folder: &Path, segment: Segment) -> io::Result<Segment> {
    let path = path_of(folder, segment.id());
    files.rename(&segment.path, &path)?;
    files.sync_dir(folder)?;
    Ok(segment.at(path))
}

fn missing(folder: &Path, id: u64) -> OpenError {
    OpenError::damaged(&path_of(folder, id), "the segment is missing")
}

/// The path of a segment that is being written and not yet part of the log.
fn new_path_of(folder: &Path, id: u64) -> PathBuf {
    path_of(folder, id).with_extension("new")
}

fn path_of(folder: &Path, id: u64) -> PathBuf {
    folder.join(format!("{id:012}.log"))
}

/// The id in the name of a segment file, if it is one.
fn id_of(name: &OsStr, ending: &str) -> Option<u64> {
    let id = name.to_str()?.strip_suffix(ending)?.strip_suffix('.')?.parse().ok()?;
    // Ids start at 1, and have exactly one spelling.
    (id > 0 && *name == *format!("{id:012}.{ending}")).then_some(id)
}
