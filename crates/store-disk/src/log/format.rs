//! Encoding of the log. Pure: bytes in, bytes out.
//!
//! A segment is a header, then frames: one for each batch of writes that was synced together. A frame is a
//! header and the records of the batch. A full segment ends with a directory. All numbers are big-endian.
//!
//! ```text
//!   segment    "k1s log\n", id: u64, from: u64, begin: u64, cleaned: u64, checksum: u64
//!   frame      01 "k1s", records: u32, bytes: u32, revision: u64 (the last in it), checksum: u64, then its records
//!   record     02 "rec", pointer: u64 u32, bytes: u32, then the record
//!   directory  see [`directory`](super::directory)
//! ```
//!
//! Zeros may follow the last frame of the segment being written: space preallocated for the next frames.

use k1s_store::Revision;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::record::Pointer;

const SEGMENT: &[u8; 8] = b"k1s log\n";
pub(super) const FRAME: &[u8; 4] = b"\x01k1s";
pub(super) const RECORD: &[u8; 4] = b"\x02rec";

pub(super) const SEGMENT_HEADER: usize = 8 + 4 * 8 + 8;
pub(super) const FRAME_HEADER: usize = 4 + 4 + 4 + 8 + 8;
pub(super) const RECORD_HEADER: usize = 4 + Pointer::LEN + 4;

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Segments are numbered from 1.
    pub(super) id: u64,
    /// It replaces all segments from this one to `id`: more than one if they were cleaned together.
    pub(super) from: u64,
    /// All records have this revision or a later one.
    pub(super) begin: Revision,
    /// Records that were dead at this revision have been omitted.
    pub(super) cleaned: Revision,
}

impl Header {
    pub(super) fn encode(self) -> [u8; SEGMENT_HEADER] {
        let mut bytes = [0; SEGMENT_HEADER];
        bytes[..8].copy_from_slice(SEGMENT);
        let numbers = [self.id, self.from, self.begin.get(), self.cleaned.get()];
        for (place, number) in bytes[8..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        let sum = xxh3_64(&bytes[..SEGMENT_HEADER - 8]);
        bytes[SEGMENT_HEADER - 8..].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; SEGMENT_HEADER]) -> Option<Self> {
        let mut numbers = bytes[8..].chunks_exact(8).filter_map(number);
        let header = Self {
            id: numbers.next()?,
            from: numbers.next()?,
            begin: numbers.next()?.into(),
            cleaned: numbers.next()?.into(),
        };
        (header.encode() == *bytes).then_some(header)
    }
}

/// A batch of records being assembled, encoded as in the log.
#[derive(Default)]
pub(crate) struct Frame {
    bytes: Vec<u8>,
    /// The offset of each record in the frame.
    records: Vec<(Pointer, u32)>,
}

impl Frame {
    /// Adds a record, encoded by `encode`.
    pub(crate) fn push(&mut self, pointer: Pointer, encode: impl FnOnce(&mut Vec<u8>)) {
        if self.bytes.is_empty() {
            self.bytes.resize(FRAME_HEADER, 0);
        }
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(RECORD);
        self.bytes.extend_from_slice(&pointer.encode());
        self.bytes.extend_from_slice(&[0; 4]);
        encode(&mut self.bytes);
        let len = (self.bytes.len() - begin - RECORD_HEADER) as u32;
        self.bytes[begin + RECORD_HEADER - 4..][..4].copy_from_slice(&len.to_be_bytes());
        self.records.push((pointer, begin as u32));
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Removes the zeros that [`finish`](Self::finish) appended.
    pub(super) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// Empties the frame, and keeps its memory unless it is large.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(1 << 20);
        self.records.clear();
    }

    pub(super) fn records(&self) -> impl Iterator<Item = Placed<'_>> {
        self.records.iter().map(|(pointer, at)| {
            let at = *at as usize;
            let len = short(&self.bytes[at + RECORD_HEADER - 4..][..4]).unwrap_or(0);
            Placed { pointer: *pointer, at, bytes: &self.bytes[at + RECORD_HEADER..][..len as usize] }
        })
    }

    /// The complete frame, followed by `room` zeros that are not part of it.
    pub(super) fn finish(&mut self, room: usize) -> &[u8] {
        let Some((last, _)) = self.records.last() else { return &[] };
        let end = self.bytes.len();
        let (header, body) = self.bytes.split_at_mut(FRAME_HEADER);
        header[..4].copy_from_slice(FRAME);
        header[4..8].copy_from_slice(&(self.records.len() as u32).to_be_bytes());
        header[8..12].copy_from_slice(&(body.len() as u32).to_be_bytes());
        header[12..20].copy_from_slice(&last.revision.get().to_be_bytes());
        let sum = frame_sum(&header[..20], body);
        header[20..].copy_from_slice(&sum.to_be_bytes());
        self.bytes.resize(end + room, 0);
        &self.bytes
    }
}

fn frame_sum(header: &[u8], body: &[u8]) -> u64 {
    let mut hash = Xxh3::with_seed(0x6b31_7366);
    hash.update(header);
    hash.update(body);
    hash.digest()
}

/// What is at an offset where a frame or the end is expected.
pub(super) enum Found<'a> {
    /// An intact frame of `len` bytes, with its records.
    Frame {
        len: usize,
        body: &'a [u8],
        revision: Revision,
    },
    /// Nothing: the bytes end here, or were never used.
    Nothing,
    Damage(&'static str),
}

/// Examines the bytes where a frame should begin.
pub(super) fn find_frame(bytes: &[u8]) -> Found<'_> {
    if bytes.iter().all(|byte| *byte == 0) {
        return Found::Nothing;
    }
    let Some((header, rest)) = bytes.split_at_checked(FRAME_HEADER) else {
        return Found::Damage("a frame is cut off");
    };
    if !header.starts_with(FRAME) {
        return Found::Damage("a frame begins with the wrong bytes");
    }
    let (Some(len), Some(revision), Some(sum)) =
        (short(&header[8..12]), number(&header[12..20]), number(&header[20..28]))
    else {
        return Found::Damage("a frame is cut off");
    };
    let Some(body) = rest.get(..len as usize) else {
        return Found::Damage("a frame is cut off");
    };
    if frame_sum(&header[..20], body) != sum {
        return Found::Damage("a frame does not match its checksum");
    }
    Found::Frame { len: FRAME_HEADER + body.len(), body, revision: revision.into() }
}

/// Whether there is an intact frame anywhere after the first byte.
pub(super) fn frame_follows(bytes: &[u8]) -> bool {
    let behind = bytes.get(1..).unwrap_or_default();
    memchr::memmem::find_iter(behind, FRAME)
        .any(|at| matches!(find_frame(&behind[at..]), Found::Frame { .. }))
}

/// The records in bytes that begin at a record or a frame, with their offsets. Stops at the first byte that
/// is neither, which is an error unless the bytes end there.
pub(super) fn records(bytes: &[u8]) -> Records<'_> {
    Records { bytes, at: 0 }
}

pub(super) struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A record in a segment: its pointer, the offset of its header, and its bytes.
pub(super) struct Placed<'a> {
    pub(super) pointer: Pointer,
    pub(super) at: usize,
    pub(super) bytes: &'a [u8],
}

impl Placed<'_> {
    /// Size including the header.
    pub(super) fn len(&self) -> usize {
        RECORD_HEADER + self.bytes.len()
    }
}

impl<'a> Iterator for Records<'a> {
    /// The error is the offset of the first byte that is not a record.
    type Item = Result<Placed<'a>, usize>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.bytes.get(self.at..)?;
            if rest.is_empty() {
                return None;
            }
            if rest.starts_with(FRAME) {
                self.at += FRAME_HEADER;
                continue;
            }
            let at = self.at;
            let placed = rest.strip_prefix(RECORD).and_then(|rest| {
                let (pointer, rest) = rest.split_at_checked(Pointer::LEN)?;
                let (len, rest) = rest.split_at_checked(4)?;
                let bytes = rest.get(..short(len)? as usize)?;
                Some(Placed { pointer: Pointer::decode(pointer)?, at, bytes })
            });
            let Some(placed) = placed else {
                self.at = self.bytes.len();
                return Some(Err(at));
            };
            self.at += placed.len();
            return Some(Ok(placed));
        }
    }
}

pub(super) fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

pub(super) fn short(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer(revision: u64) -> Pointer {
        Pointer::new(Revision::new(revision), 0)
    }

    fn frame(revisions: std::ops::Range<u64>) -> Vec<u8> {
        let mut frame = Frame::default();
        for revision in revisions {
            frame.push(pointer(revision), |bytes| bytes.resize(bytes.len() + revision as usize, 7));
        }
        frame.finish(0).to_vec()
    }

    #[test]
    fn a_frame_round_trips_and_detects_every_flipped_bit() {
        let whole = frame(3..6);
        let Found::Frame { len, body, revision } = find_frame(&whole) else { panic!("no frame") };
        assert_eq!((len, revision), (whole.len(), Revision::new(5)));
        let found: Vec<_> =
            records(body).map(|placed| placed.map(|placed| (placed.pointer, placed.bytes.len()))).collect();
        assert_eq!(found, [3, 4, 5].map(|revision| Ok((pointer(revision), revision as usize))));
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(find_frame(&damaged), Found::Damage(_)), "bit {bit}");
        }
        for len in 1..whole.len() {
            assert!(matches!(find_frame(&whole[..len]), Found::Damage(_)), "cut to {len}");
        }
        assert!(matches!(find_frame(&[0; 100]), Found::Nothing) && matches!(find_frame(&[]), Found::Nothing));
    }

    #[test]
    fn records_are_read_across_frames_and_anything_else_is_an_error() {
        let mut bytes = [frame(1..3), frame(3..4)].concat();
        let pointers =
            |bytes: &[u8]| records(bytes).map(|placed| placed.ok().map(|p| p.pointer)).collect::<Vec<_>>();
        assert_eq!(pointers(&bytes), [1, 2, 3].map(|revision| Some(pointer(revision))));
        bytes.push(0);
        assert_eq!(pointers(&bytes).last(), Some(&None));
    }

    #[test]
    fn an_intact_frame_behind_damage_is_found() {
        let (first, second) = (frame(1..2), frame(2..3));
        let mut both = [&first[..], &second].concat();
        both[10] ^= 1;
        assert!(frame_follows(&both));
        assert!(!frame_follows(&both[..both.len() - 1]));
        assert!(!frame_follows(&first));
    }

    #[test]
    fn a_segment_header_round_trips_and_detects_every_flipped_bit() {
        let header = Header { id: 7, from: 5, begin: Revision::new(100), cleaned: Revision::new(300) };
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Some(header));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&damaged), None, "bit {bit}");
        }
    }
}
