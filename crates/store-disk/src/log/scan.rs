//! Reads a segment that may be damaged: all intact records, and the position of all damage.
//!
//! A record has its own checksum, so it is recognized even if its neighbours or its frame are damaged. After
//! a damaged record, the directory tells where the next one begins. Without a directory, it is the next place
//! that looks like a record and also ends where another one, a frame or the file's end begins: bytes in a
//! value are not taken for a record.

use std::{
    io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use k1s_store::Revision;

use super::{
    MAX_SEGMENT_BYTES, directory,
    format::{self, FRAME, FRAME_HEADER, Found, Header, RECORD, RECORD_HEADER, SEGMENT_HEADER, short},
    id_of, path_of,
};
use crate::{
    files::{Files, Mode},
    record::{Head, Outline, Pointer, Record, Totals, entry_size},
};

/// Maximum length of a key.
const MAX_KEY: usize = 64 << 10;

/// The readable parts of a segment.
pub(crate) struct Scan {
    pub(crate) id: u64,
    pub(crate) path: PathBuf,
    /// `None` if the header is damaged.
    header: Option<Header>,
    /// In the order of their offsets, which is that of their pointers.
    pub(crate) records: Vec<Whole>,
    /// The entries of its directory, if that is intact.
    pub(crate) listed: Option<Vec<(Bytes, Head)>>,
    /// Places where a record should be and is not readable.
    pub(crate) unread: Vec<Unread>,
    /// Descriptions of the damage.
    pub(crate) problems: Vec<String>,
}

/// An intact record, without its value.
pub(crate) struct Whole {
    pub(crate) pointer: Pointer,
    pub(crate) key: Bytes,
    pub(crate) head: Head,
    pub(crate) steps: u32,
    pub(crate) totals: Totals,
    /// The offset of its bytes in the file.
    pub(crate) at: usize,
    pub(crate) len: usize,
    /// Whether its frame is intact.
    pub(crate) frame_is_whole: bool,
    /// Its number in the segment, where known.
    pub(crate) number: Option<usize>,
}

impl Whole {
    fn new(pointer: Pointer, record: &Record, at: usize, len: usize) -> Self {
        let size = record.value.as_ref().map(|value| entry_size(&record.key, value));
        Self {
            pointer,
            key: Bytes::copy_from_slice(&record.key),
            head: Head { pointer, size },
            steps: record.steps,
            totals: record.totals,
            at,
            len,
            frame_is_whole: false,
            number: None,
        }
    }
}

/// Bytes that are not a readable record where there should be one.
pub(crate) struct Unread {
    /// The pointer they seem to have.
    pub(crate) pointer: Option<Pointer>,
    pub(crate) key: Option<Bytes>,
    /// Whether it is exactly one record.
    pub(crate) is_one: bool,
}

/// The ids of the segments in a folder, in order.
pub(crate) fn ids(files: &dyn Files, folder: &Path) -> io::Result<Vec<u64>> {
    let mut ids: Vec<_> = files.list(folder)?.iter().filter_map(|name| id_of(name, "log")).collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Size of the unit in which unreadable parts of a file are skipped.
const SECTOR: usize = 4096;

/// All bytes of a file. Unreadable sectors are zeros.
pub(crate) fn read_all(files: &dyn Files, path: &Path) -> io::Result<Bytes> {
    let file = files.open(path, Mode::Read)?;
    // Segments are not longer: anything beyond is not part of one, and might not fit into memory.
    let len = file.metadata()?.len.min(MAX_SEGMENT_BYTES + (64 << 20));
    let mut bytes = vec![0; len as usize];
    if file.read_exact_at(&mut bytes, 0).is_ok() {
        return Ok(bytes.into());
    }
    for (number, part) in (0..).zip(bytes.chunks_mut(SECTOR)) {
        if file.read_exact_at(part, number * SECTOR as u64).is_err() {
            part.fill(0);
        }
    }
    Ok(bytes.into())
}

impl Scan {
    /// Reads a segment.
    pub(crate) fn read(files: &dyn Files, folder: &Path, id: u64) -> io::Result<Self> {
        let path = path_of(folder, id);
        let bytes = read_all(files, &path)?;
        let header = bytes.first_chunk::<SEGMENT_HEADER>().and_then(Header::decode);
        let header = header.filter(|header| header.id == id && (1..=id).contains(&header.from));
        let mut scan = Self {
            id,
            path,
            header,
            records: Vec::new(),
            listed: None,
            unread: Vec::new(),
            problems: Vec::new(),
        };
        if header.is_none() {
            scan.problem(0, "its header is damaged");
        }
        Reader::new(&bytes, &mut scan).read();
        Ok(scan)
    }

    /// The first of the segments that it replaced.
    pub(crate) fn from(&self) -> Option<u64> {
        self.header.map(|header| header.from)
    }

    /// The first of the segments it replaced, and the revision it is cleaned up to.
    pub(crate) fn origin(&self) -> Option<(u64, Revision)> {
        self.header.map(|header| (header.from, header.cleaned))
    }

    pub(crate) fn begin(&self) -> Option<Revision> {
        self.header.map(|header| header.begin)
    }

    fn problem(&mut self, at: usize, what: &str) {
        self.problems.push(format!("{}: {what} at byte {at}", self.path.display()));
    }
}

struct Reader<'a> {
    bytes: &'a Bytes,
    scan: &'a mut Scan,
    /// The offsets of records and their pointers, if the directory is intact.
    places: Vec<(usize, Pointer)>,
    /// The end of the frames.
    end: usize,
    /// Whether `end` is known.
    has_directory: bool,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a Bytes, scan: &'a mut Scan) -> Self {
        let mut reader = Self { bytes, scan, places: Vec::new(), end: bytes.len(), has_directory: false };
        if let Some((end, entries)) = directory::of_segment(bytes) {
            let mut listed = Vec::new();
            let read = directory::each(entries, |entry, at| {
                listed.push((Bytes::copy_from_slice(entry.key), entry.head));
                reader.places.push((at as usize, entry.head.pointer));
            });
            if read.is_some() {
                reader.has_directory = true;
                reader.end = end as usize;
                reader.scan.listed = Some(listed);
            } else {
                reader.places.clear();
            }
        }
        reader
    }

    fn read(&mut self) {
        let mut at = SEGMENT_HEADER;
        // The end of the last intact frame.
        let mut whole_until = 0;
        // Whether the next record is expected at `at`, behind the previous one.
        let mut in_order = true;
        let mut skipped = false;
        while at < self.end {
            let rest = &self.bytes[at..self.end];
            if rest.starts_with(FRAME) {
                match format::find_frame(rest) {
                    Found::Frame { len, .. } => whole_until = at + len,
                    Found::Damage(reason) => self.scan.problem(at, reason),
                    Found::Nothing => {}
                }
                at += FRAME_HEADER;
                in_order = true;
                continue;
            }
            let place = self.places.binary_search_by_key(&at, |(place, _)| *place).ok();
            let listed = place.and_then(|place| self.places.get(place)).map(|(_, pointer)| *pointer);
            let trusted = in_order || listed.is_some();
            match self.record(at, listed, trusted) {
                Some(whole) => {
                    at = whole.at + whole.len;
                    in_order = true;
                    let frame_is_whole = at <= whole_until;
                    let number =
                        place.or((!skipped && !self.has_directory).then_some(self.scan.records.len()));
                    if self.scan.records.last().is_none_or(|last| last.pointer < whole.pointer) {
                        self.scan.records.push(Whole { frame_is_whole, number, ..whole });
                    }
                }
                None if !self.has_directory && rest.iter().all(|byte| *byte == 0) => break,
                None => {
                    if !self.has_directory && directory::begins(rest) {
                        self.scan.problem(at, "its directory is damaged");
                        break;
                    }
                    if in_order {
                        self.scan.problem(at, "there is no intact record");
                    }
                    skipped = true;
                    let next;
                    (next, in_order) = self.skip(at);
                    at = next;
                }
            }
        }
    }

    /// The record whose header is at `at`, if it is intact. Unless it is `trusted` to be there, something
    /// else must begin at its end.
    fn record(&self, at: usize, listed: Option<Pointer>, trusted: bool) -> Option<Whole> {
        let rest = &self.bytes[at..self.end];
        let header = rest.get(..RECORD_HEADER)?;
        let said = Pointer::decode(&header[4..4 + Pointer::LEN]);
        // The pointer in the header may be damaged; the checksum decides among the candidates.
        let follows = self.scan.records.last().map(|last| last.pointer.next(last.steps));
        let pointers = [said, listed, follows];
        let len = short(&header[RECORD_HEADER - 4..])? as usize;
        let body_at = at + RECORD_HEADER;
        let lens = std::iter::once(len)
            .chain(next_begins(&rest[RECORD_HEADER..]).chain([rest.len() - RECORD_HEADER]).take(ENDS_TRIED));
        for len in lens {
            let Some(body) = rest.get(RECORD_HEADER..RECORD_HEADER + len) else { continue };
            let body = self.bytes.slice_ref(body);
            for pointer in pointers.into_iter().flatten() {
                if let Some(record) = Record::decode(pointer, &body)
                    && (trusted || self.is_end(body_at + len))
                {
                    return Some(Whole::new(pointer, &record, body_at, len));
                }
            }
        }
        None
    }

    /// Whether a record can end at `at`.
    fn is_end(&self, at: usize) -> bool {
        let rest = self.bytes.get(at..self.end).unwrap_or_default();
        rest.starts_with(RECORD) || rest.starts_with(FRAME) || rest.iter().all(|byte| *byte == 0)
    }

    /// Records an unreadable place. Returns the offset to continue at, and whether a record must be there.
    fn skip(&mut self, at: usize) -> (usize, bool) {
        let rest = &self.bytes[at..self.end];
        let body_len = rest.get(RECORD_HEADER - 4..RECORD_HEADER).and_then(short).unwrap_or(0) as usize;
        let said_end = at + RECORD_HEADER + body_len;
        let begins_well = rest.starts_with(RECORD);
        let ends_well = said_end < self.end && body_len > 0 && self.is_end(said_end);
        let next = if self.has_directory {
            let next = self.places.partition_point(|(place, _)| *place <= at);
            let place = self.places.get(next).map_or(self.end, |(place, _)| *place);
            // A frame header may precede it.
            let frame = place
                .checked_sub(FRAME_HEADER)
                .filter(|frame| *frame > at && self.bytes[*frame..].starts_with(FRAME));
            (frame.unwrap_or(place), true)
        } else if begins_well && ends_well {
            (said_end, true)
        } else {
            (next_begins(&rest[1..]).next().map_or(self.end, |next| at + 1 + next), false)
        };
        let pointer = rest.get(4..4 + Pointer::LEN).filter(|_| begins_well).and_then(Pointer::decode);
        let body = rest.get(RECORD_HEADER..next.0 - at).filter(|_| begins_well).unwrap_or_default();
        let outline = Outline::of(body).filter(|outline| outline.key.len() < MAX_KEY);
        self.scan.unread.push(Unread {
            pointer,
            key: outline.map(|outline| Bytes::copy_from_slice(outline.key)),
            is_one: begins_well && ends_well,
        });
        next
    }
}

/// Maximum number of ends that are tried for a record whose length is damaged.
const ENDS_TRIED: usize = 8;

/// Offsets where records or frames seem to begin.
fn next_begins(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let mut records = memchr::memmem::find_iter(bytes, RECORD).peekable();
    let mut frames = memchr::memmem::find_iter(bytes, FRAME).peekable();
    std::iter::from_fn(move || match (records.peek(), frames.peek()) {
        (Some(record), Some(frame)) if record < frame => records.next(),
        (_, Some(_)) => frames.next(),
        (_, None) => records.next(),
    })
}
