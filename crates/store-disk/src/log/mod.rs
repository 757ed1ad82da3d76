//! The log: every record, in the order of revisions, in files of its own.
//!
//! A batch of writes is one frame, written to the end of the last segment and synced. That is all that makes it
//! durable, and the only time it is written, unless it outlives most of its neighbours: see [`clean`].
//!
//! Records are found by their pointers. Each segment has a [`directory`] of them, which is in memory.

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

/// A sync takes less time if nothing but contents has changed: neither the length of the file nor where it is on disk. So
/// a small frame that reaches new ground is written with so many zeros behind it.
const ROOM: u64 = 1 << 20;

/// A frame of this size does not gain from that.
const LARGE: usize = 32 << 10;

/// Places in a segment are numbers of 32 bits.
const MOST_BYTES: u64 = 1 << 30;

/// All segments, oldest first, as they were at some moment: the files stay readable as long as somebody has this.
#[derive(Clone, Debug)]
pub(crate) struct Segments(Arc<[Arc<Segment>]>);

impl Segments {
    /// The segment that a revision is in, if it is anywhere.
    pub(crate) fn of(&self, revision: Revision) -> Option<&Arc<Segment>> {
        let next = self.0.partition_point(|segment| segment.begin() <= revision);
        self.0.get(next.checked_sub(1)?)
    }

    /// The record at `pointer`, if it is there.
    pub(crate) fn get(&self, pointer: Pointer) -> Result<Option<Record>> {
        match self.of(pointer.revision) {
            Some(segment) => segment.get(pointer),
            None => Ok(None),
        }
    }

    /// Calls `each` for every record from `first` on, in order, until it says that it has seen enough.
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

    /// Fails if the segment that is written to is not where it was.
    pub(crate) fn check_in_place(&self) -> io::Result<()> {
        self.0.last().map_or(Ok(()), |last| last.check_in_place())
    }

    /// Notes that nobody can read a record any more.
    pub(crate) fn kill(&self, pointer: Pointer) {
        if let Some(segment) = self.of(pointer.revision) {
            segment.kill(pointer);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.0.iter()
    }
}

/// The end of the log that is written to.
#[derive(Debug)]
pub(crate) struct Log {
    files: Arc<dyn Files>,
    folder: PathBuf,
    segments: Segments,
    /// A segment of this size is full.
    segment_bytes: u64,
    /// Up to here, the last segment has been written to, if only with zeros.
    written: u64,
    /// Whether the last write failed: what is behind the end of the last segment is not known.
    failed: bool,
}

impl Log {
    /// Makes an empty log in a folder that does not exist.
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
            segment_bytes: segment_bytes.min(MOST_BYTES),
            written: SEGMENT_HEADER as u64,
            failed: false,
        })
    }

    /// Opens a log, in which everything up to `acknowledged` must be whole, or all of it if that is not known. Changes nothing:
    /// that is for [`prepare`](Self::prepare) when it is clear that the store is sound. A directory that is damaged is made again
    /// from the frames, if those are whole.
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
        // From the last to the first: one that was cleaned together with those before it says so.
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
                tracing::warn!(segment = %path.display(), "its directory is missing or damaged, and is made again");
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
        // Not known how far it was written to: as if there were no room.
        let log = Self {
            files: files.clone(),
            folder: folder.to_owned(),
            segments: Segments(segments.into()),
            segment_bytes: segment_bytes.min(MOST_BYTES),
            written: 0,
            failed: true,
        };
        if let Some((Torn { reason, at, frame_follows, .. }, last)) = torn.zip(log.last()) {
            let whole_up_to = log.segments.last().map_or(Revision::FIRST, |last| last.revision);
            if frame_follows || acknowledged.is_none_or(|acknowledged| whole_up_to < acknowledged) {
                let known = match acknowledged {
                    Some(acknowledged) => format!("and revision {acknowledged} had been acknowledged"),
                    None => "and what had been acknowledged is not known".to_owned(),
                };
                return Err(OpenError::damaged(
                    &last.path,
                    format!("{reason} at byte {at}; it is whole up to revision {whole_up_to}, {known}"),
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

    /// Fails if the file that is written to is not where it was: the store's folder was removed, moved or replaced.
    pub(crate) fn check_in_place(&self) -> io::Result<()> {
        self.last().map_or(Ok(()), |last| last.check_in_place())
    }

    /// Makes the names of all segments durable, and what was never acknowledged: that is written again, since a sync that failed may have
    /// left it in the system's memory only, where another sync does not find it.
    pub(crate) fn make_durable(&self, acknowledged: Option<Revision>) -> io::Result<()> {
        self.files.sync_dir(&self.folder)?;
        if let Some(last) = self.last() {
            last.write_again(acknowledged.unwrap_or(Revision::FIRST))?;
        }
        self.sync()
    }

    /// Cuts off what was torn, after a crash or a failure, and removes files that others have replaced.
    pub(crate) fn prepare(&mut self) -> io::Result<()> {
        if !self.failed {
            return Ok(());
        }
        // Directories that were made again.
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

    /// After a write that failed: removes what there is of it, so that nobody who opens the log takes it for one that
    /// did not fail. The log still has to be [prepared](Self::prepare).
    pub(crate) fn take_back(&self) -> io::Result<()> {
        match self.last() {
            // In one that is sealed there is nothing of it: it was to go into the next.
            Some(last) if self.failed && !last.is_sealed() => last.cut(),
            _ => Ok(()),
        }
    }

    fn remove_leftovers(&self) -> io::Result<()> {
        for name in self.files.list(&self.folder)? {
            let path = self.folder.join(&name);
            // Nothing but what this program has written is removed.
            let is_ours = id_of(&name, "log").or(id_of(&name, "new")).is_some();
            if is_ours
                && !self.segments.iter().any(|segment| segment.path == path)
                && let Err(error) = self.files.remove_file(&path)
            {
                // It takes up room, and is in nobody's way.
                tracing::warn!(path = %path.display(), %error, "a file that is not needed any more stays");
            }
        }
        Ok(())
    }

    /// Writes a frame and syncs it. Readers find its records when this is done. After an error, nothing can be
    /// written until the log was [prepared](Self::prepare) again.
    pub(crate) fn append(&mut self, frame: &mut Frame) -> io::Result<()> {
        self.write(frame, true, false)
    }

    /// The same, but takes up no more room than the frame needs: no zeros behind it, and no other segment.
    pub(crate) fn append_tightly(&mut self, frame: &mut Frame) -> io::Result<()> {
        self.write(frame, true, true)
    }

    /// Writes a frame that need not be durable yet.
    pub(crate) fn append_unsynced(&mut self, frame: &mut Frame) -> io::Result<()> {
        self.write(frame, false, false)
    }

    fn write(&mut self, frame: &mut Frame, durable: bool, tight: bool) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other("the log has to be mended first"));
        }
        self.failed = true;
        if durable {
            self.check_in_place()?;
        }
        let full = if tight { MOST_BYTES } else { self.segment_bytes };
        if self.last().is_none_or(|last| u64::from(last.end()) >= full) {
            self.roll()?;
        }
        let Some(last) = self.segments.0.last() else { return Err(io::ErrorKind::NotFound.into()) };
        let begin = u64::from(last.end());
        let len = frame.len();
        let end = begin + len as u64;
        let room = if len < LARGE && end > self.written && !tight {
            ROOM.min(self.segment_bytes.saturating_sub(end)) as usize
        } else {
            0
        };
        last.file.write_all_at(frame.finish(room), begin)?;
        if durable {
            last.file.sync_data()?;
            // What is on disk, but in a file that nobody will look for, is not durable.
            last.check_in_place()?;
        }
        frame.truncate(len);
        last.extend(frame);
        self.written = self.written.max(end + room as u64);
        self.failed = false;
        Ok(())
    }

    /// Makes everything durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.last().map_or(Ok(()), |last| last.file.sync_all())
    }

    /// Puts a segment that was [cleaned](clean) in the place of those that it was made of. After an error, nothing has changed.
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
            // Files that are not needed go when the log is opened, too.
            tracing::warn!(path = %cleaned.path.display(), %error, "a new name may not be on disk yet");
            return Ok(());
        }
        for segment in run.iter().filter(|segment| segment.path != cleaned.path) {
            if let Err(error) = self.files.remove_file(&segment.path) {
                tracing::warn!(path = %segment.path.display(), %error, "a file that is not needed any more stays");
            }
        }
        Ok(())
    }

    /// Segments but the last whose directory is not on disk.
    pub(crate) fn unsealed(&self) -> impl Iterator<Item = &Path> {
        let full = self.segments.0.split_last().map_or(&[][..], |(_, full)| full);
        full.iter().filter(|segment| !segment.is_sealed()).map(|segment| &*segment.path)
    }

    /// Completes all segments but the last.
    pub(crate) fn seal(&self) -> io::Result<()> {
        let full = self.segments.0.split_last().map_or(&[][..], |(_, full)| full);
        full.iter().try_for_each(|segment| segment.seal())
    }

    /// Completes the last segment and begins another.
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

/// Whether any file of a log has more than its beginning in it: something that a store which was never finished does not have.
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

/// Gives a new segment its name: from then on it counts.
fn place(files: &dyn Files, folder: &Path, segment: Segment) -> io::Result<Segment> {
    let path = path_of(folder, segment.id());
    files.rename(&segment.path, &path)?;
    files.sync_dir(folder)?;
    Ok(segment.at(path))
}

fn missing(folder: &Path, id: u64) -> OpenError {
    OpenError::damaged(&path_of(folder, id), "the segment is missing")
}

/// A segment that is being written and does not count yet.
fn new_path_of(folder: &Path, id: u64) -> PathBuf {
    path_of(folder, id).with_extension("new")
}

fn path_of(folder: &Path, id: u64) -> PathBuf {
    folder.join(format!("{id:012}.log"))
}

/// The number of a segment by the name of its file, if it is the name of one.
fn id_of(name: &OsStr, ending: &str) -> Option<u64> {
    let id = name.to_str()?.strip_suffix(ending)?.strip_suffix('.')?.parse().ok()?;
    // They are numbered from 1, and other ways to write the number are not ours.
    (id > 0 && *name == *format!("{id:012}.{ending}")).then_some(id)
}
