//! The directory of a segment: the position and key of every record, and which records are dead.
//!
//! It is written behind the last frame of a full segment. Opening the log reads all keys from the
//! directories, without reading the records.
//!
//! ```text
//!   directory  03 "dir", entries, then
//!              bytes of the entries: u32, records: u32, end of the frames: u32, checksum: u64, "k1s end\n"
//!   entry      pointer: u64 u32, offset: u32, size: u32 (or ffffffff: the key is deleted),
//!              bytes shared with the previous entry's key: u16, length of the suffix: u16, suffix
//! ```

use k1s_store::Revision;
use xxhash_rust::xxh3::xxh3_64;

use super::format::{SEGMENT_HEADER, number, short};
use crate::{
    keys::common,
    record::{Head, Outline, Pointer},
};

const DIRECTORY: &[u8; 4] = b"\x03dir";
const END: &[u8; 8] = b"k1s end\n";

/// Maximum number of dead records that are collected before their numbers are looked up.
const MAX_UNSORTED: usize = 1024;

const ENTRY: usize = Head::LEN + 4 + 2 + 2;
pub(super) const TRAILER: usize = 4 + 4 + 4 + 8 + 8;

/// The positions of a segment's records.
#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    /// The revision of each record, in order.
    revisions: Vec<u64>,
    /// The index of each record in its revision, and its offset in the segment.
    places: Vec<(u32, u32)>,
    /// The end of the frames.
    pub(super) end: u32,
    /// Dead records by number,
    dead: Bits,
    /// and further ones by pointer, unordered: looking up many together is cheaper than one by one.
    unsorted_dead: Vec<Pointer>,
    /// Total size of the records in `dead`.
    dead_bytes: u64,
    /// The encoded entries, while the segment grows.
    growing: Option<Entries>,
}

/// The entries of a directory being assembled.
#[derive(Clone, Debug, Default)]
struct Entries {
    bytes: Vec<u8>,
    last_key: Vec<u8>,
}

/// A record as listed in its segment's directory.
pub(crate) struct Listed<'a> {
    /// Its number in the segment.
    pub(crate) number: usize,
    pub(crate) key: &'a [u8],
    pub(crate) head: Head,
}

impl Directory {
    /// The directory of an empty segment.
    pub(super) fn new() -> Self {
        Self { end: SEGMENT_HEADER as u32, growing: Some(Entries::default()), ..Self::default() }
    }

    /// Adds a record that begins at `offset`.
    pub(super) fn add(&mut self, pointer: Pointer, offset: u32, outline: &Outline<'_>) {
        self.revisions.push(pointer.revision.get());
        self.places.push((pointer.index, offset));
        if let Some(entries) = &mut self.growing {
            entries.add(Head { pointer, size: outline.size }, offset, outline.key);
        }
    }

    pub(super) fn records(&self) -> u32 {
        self.revisions.len() as u32
    }

    /// The pointer of a record by its number.
    pub(super) fn pointer(&self, number: usize) -> Option<Pointer> {
        Some(Pointer::new(Revision::new(*self.revisions.get(number)?), self.places.get(number)?.0))
    }

    /// The last record, if any.
    pub(super) fn last(&self) -> Option<Pointer> {
        self.pointer(self.revisions.len().checked_sub(1)?)
    }

    /// The number of the first record that is not before `pointer`.
    pub(super) fn seek(&self, pointer: Pointer) -> usize {
        let number = first_not_before(&self.revisions, pointer.revision.get());
        // Usually no record of a revision has been omitted.
        let likely = number + pointer.index as usize;
        if self.pointer(likely) == Some(pointer) {
            return likely;
        }
        if self.pointer(number).is_none_or(|found| found >= pointer) {
            return number;
        }
        let same = self.revisions[number..].partition_point(|revision| *revision == pointer.revision.get());
        number + self.places[number..number + same].partition_point(|(index, _)| *index < pointer.index)
    }

    fn number_of(&self, pointer: Pointer) -> Option<usize> {
        let number = self.seek(pointer);
        (self.pointer(number) == Some(pointer)).then_some(number)
    }

    /// The offset of a record; for the number after the last, the end of the frames.
    pub(super) fn begin(&self, number: usize) -> u32 {
        self.places.get(number).map_or(self.end, |(_, offset)| *offset)
    }

    /// The extent of a record. The header of another frame may follow within it.
    pub(super) fn find(&self, pointer: Pointer) -> Option<(u32, u32)> {
        let number = self.number_of(pointer)?;
        Some((self.begin(number), self.begin(number + 1)))
    }

    /// Marks a record as dead.
    pub(super) fn mark_dead(&mut self, pointer: Pointer) {
        self.unsorted_dead.push(pointer);
        if self.unsorted_dead.len() >= MAX_UNSORTED {
            self.sort_dead();
        }
    }

    fn sort_dead(&mut self) {
        self.unsorted_dead.sort_unstable();
        let mut number = 0;
        for pointer in std::mem::take(&mut self.unsorted_dead) {
            // The pointers are sorted, so the next one is further on, and not far.
            while self.revisions.get(number + 64).is_some_and(|revision| *revision < pointer.revision.get()) {
                number += 64;
            }
            while self.pointer(number).is_some_and(|found| found < pointer) {
                number += 1;
            }
            if self.pointer(number) == Some(pointer) && !self.dead.contains(number) {
                self.dead.set(number);
                self.dead_bytes += self.bytes_of(number);
            }
        }
    }

    /// Number of dead records.
    pub(super) fn dead_count(&self) -> u32 {
        self.dead.count() + self.unsorted_dead.len() as u32
    }

    /// Approximate size of the dead records.
    pub(super) fn dead_bytes(&self) -> u64 {
        let average = u64::from(self.end) / u64::from(self.records().max(1));
        self.dead_bytes + self.unsorted_dead.len() as u64 * average
    }

    fn bytes_of(&self, number: usize) -> u64 {
        u64::from(self.begin(number + 1) - self.begin(number))
    }

    /// The dead records.
    pub(super) fn dead(&mut self) -> &Bits {
        self.sort_dead();
        &self.dead
    }

    pub(super) fn set_dead(&mut self, dead: Bits) {
        self.dead_bytes = (0..self.revisions.len())
            .filter(|number| dead.contains(*number))
            .map(|number| self.bytes_of(number))
            .sum();
        self.dead = dead;
        self.unsorted_dead = Vec::new();
    }

    /// Called when the directory is on disk: drops the data that was only needed to write it.
    pub(super) fn complete(&mut self) {
        self.growing = None;
        self.revisions.shrink_to_fit();
        self.places.shrink_to_fit();
    }

    /// Whether it is on disk.
    pub(super) fn is_complete(&self) -> bool {
        self.growing.is_none()
    }

    /// The encoded entries, unless the directory is on disk.
    pub(super) fn entries(&self) -> Option<Vec<u8>> {
        self.growing.as_ref().map(|entries| entries.bytes.clone())
    }

    /// The encoded directory, unless it is on disk.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let entries = &self.growing.as_ref()?.bytes;
        let mut bytes = Vec::with_capacity(4 + entries.len() + TRAILER);
        bytes.extend_from_slice(DIRECTORY);
        bytes.extend_from_slice(entries);
        for number in [entries.len() as u32, self.records(), self.end] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.extend_from_slice(&xxh3_64(&bytes).to_be_bytes());
        bytes.extend_from_slice(END);
        Some(bytes)
    }

    /// Whether these bytes, which end with the file, look like this directory, possibly damaged.
    pub(super) fn resembles(&self, bytes: &[u8]) -> bool {
        let by_trailer = || {
            let trailer = bytes.last_chunk::<TRAILER>()?.strip_suffix(END)?;
            Some(short(&trailer[4..8])? == self.records() && short(&trailer[8..12])? == self.end)
        };
        bytes.starts_with(DIRECTORY) || by_trailer() == Some(true)
    }

    /// The size of the directory that ends with `trailer`, and the end of the frames.
    pub(super) fn by_trailer(trailer: &[u8; TRAILER]) -> Option<(usize, u32)> {
        let trailer = trailer.strip_suffix(END)?;
        Some((4 + short(&trailer[..4])? as usize + TRAILER, short(&trailer[8..12])?))
    }

    /// Decodes a directory, if the bytes are exactly one and intact.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (entries, trailer) = check(bytes)?;
        let (records, end) = (short(&trailer[4..8])?, short(&trailer[8..12])?);
        let mut directory = Self { end, ..Self::default() };
        directory.revisions.reserve_exact(records as usize);
        directory.places.reserve_exact(records as usize);
        each(entries, |listed, offset| {
            directory.revisions.push(listed.head.pointer.revision.get());
            directory.places.push((listed.head.pointer.index, offset));
        })?;
        (directory.records() == records).then_some(directory)
    }
}

/// The index of the first number that is at least `wanted`.
///
/// Revisions are distributed almost evenly: an interpolated guess is mostly close, and cheaper than another
/// memory access.
fn first_not_before(ordered: &[u64], wanted: u64) -> usize {
    let (mut low, mut high) = (0, ordered.len());
    // The answer is in low..=high.
    let mut guesses = 4;
    while let (true, Some(first), Some(last)) =
        (guesses > 0, ordered.get(low), high.checked_sub(1).and_then(|last| ordered.get(last)))
    {
        if wanted <= *first {
            return low;
        }
        if wanted > *last {
            return high;
        }
        let distance =
            u128::from(wanted - first) * (high - 1 - low) as u128 / u128::from((last - first).max(1));
        let guess = low + distance as usize;
        if ordered[guess] < wanted {
            low = guess + 1;
        } else {
            high = guess + 1;
            // It may be the first of several equal ones.
            if guess == 0 || ordered[guess - 1] < wanted {
                return guess;
            }
            high -= 1;
        }
        guesses -= 1;
    }
    low + ordered[low..high].partition_point(|number| *number < wanted)
}

/// The entries and the trailer of an intact directory.
fn check(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (body, sum) = bytes.strip_suffix(END)?.split_last_chunk::<8>()?;
    if u64::from_be_bytes(*sum) != xxh3_64(body) {
        return None;
    }
    let (entries, trailer) = body.split_at_checked(body.len().checked_sub(TRAILER - 16)?)?;
    Some((entries.strip_prefix(DIRECTORY)?, trailer))
}

/// Whether these bytes start like a directory.
pub(super) fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(DIRECTORY)
}

/// The end of the frames and the entries of the directory in the bytes of a whole segment, if it is intact.
pub(super) fn of_segment(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (len, end) = Directory::by_trailer(bytes.last_chunk::<TRAILER>()?)?;
    let directory = bytes.get(end as usize..)?;
    (directory.len() == len).then(|| entries_of(directory))?.map(|entries| (end, entries))
}

/// The entries of a directory, if it is intact.
pub(super) fn entries_of(bytes: &[u8]) -> Option<&[u8]> {
    Some(check(bytes)?.0)
}

/// Calls `each` for every entry, with the record's offset. Returns `None` if an entry is malformed.
pub(super) fn each(mut entries: &[u8], mut each: impl FnMut(&Listed<'_>, u32)) -> Option<()> {
    let mut key = Vec::new();
    let mut number = 0;
    while !entries.is_empty() {
        let (entry, rest) = entries.split_at_checked(ENTRY)?;
        let (head, entry) = entry.split_at(Head::LEN);
        let (offset, lengths) = (short(&entry[..4])?, short(&entry[4..])?);
        let (shared, others) = ((lengths >> 16) as usize, (lengths & 0xffff) as usize);
        let (others, rest) = rest.split_at_checked(others)?;
        if shared > key.len() {
            return None;
        }
        key.truncate(shared);
        key.extend_from_slice(others);
        each(&Listed { number, key: &key, head: Head::decode(head)? }, offset);
        number += 1;
        entries = rest;
    }
    Some(())
}

impl Entries {
    fn add(&mut self, head: Head, offset: u32, key: &[u8]) {
        // The store's limit on keys keeps both lengths far below 16 bits.
        let shared = common(&self.last_key, key);
        let others = &key[shared..];
        self.bytes.extend_from_slice(&head.encode());
        self.bytes.extend_from_slice(&offset.to_be_bytes());
        self.bytes.extend_from_slice(&(shared as u16).to_be_bytes());
        self.bytes.extend_from_slice(&(others.len() as u16).to_be_bytes());
        self.bytes.extend_from_slice(others);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(others);
    }
}

/// A set of records of a segment, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
    count: u32,
}

impl Bits {
    pub(crate) fn set(&mut self, number: usize) {
        let word = number / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let bit = 1 << (number % 64);
        self.count += u32::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    pub(crate) fn contains(&self, number: usize) -> bool {
        self.words.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Number of records in the set.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Appends the number of words as u32, then the words.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&(self.words.len() as u32).to_be_bytes());
        for word in &self.words {
            bytes.extend_from_slice(&word.to_be_bytes());
        }
    }

    /// Decodes the set at the start of `bytes`; also returns the remaining bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (len, rest) = bytes.split_first_chunk::<4>()?;
        let (words, rest) = rest.split_at_checked((u32::from_be_bytes(*len) as usize).checked_mul(8)?)?;
        let words: Vec<u64> = words.chunks_exact(8).filter_map(number).collect();
        let count = words.iter().map(|word| word.count_ones()).sum();
        Some((Self { words, count }, rest))
    }

    /// Whether all are among the first `records`.
    pub(crate) fn fit(&self, records: u32) -> bool {
        let last = self.words.iter().rposition(|word| *word != 0);
        last.is_none_or(|last| {
            last as u64 * 64 + 64 - u64::from(self.words[last].leading_zeros()) <= u64::from(records)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer(revision: u64, index: u32) -> Pointer {
        Pointer::new(Revision::new(revision), index)
    }

    fn directory() -> Directory {
        let mut directory = Directory::new();
        for record in 0..200 {
            let key = format!("/objects/{}", record * 7919 % 200);
            let outline = Outline { key: key.as_bytes(), size: (record % 7 != 0).then_some(record) };
            // Three records per revision, and no revision that is a multiple of ten.
            let revision = u64::from(10 + record / 3);
            if !revision.is_multiple_of(10) {
                directory.add(pointer(revision, record % 3), SEGMENT_HEADER as u32 + record * 100, &outline);
            }
        }
        directory.end = SEGMENT_HEADER as u32 + 20_000;
        directory
    }

    #[test]
    fn records_are_found_by_exact_pointer() {
        let directory = directory();
        for record in 0..200 {
            let (revision, place) = (u64::from(10 + record / 3), SEGMENT_HEADER as u32 + record * 100);
            let found = directory.find(pointer(revision, record % 3));
            if revision.is_multiple_of(10) {
                assert_eq!(found, None);
            } else {
                assert_eq!(found.map(|(begin, _)| begin), Some(place));
                assert_eq!(directory.begin(directory.seek(pointer(revision, record % 3))), place);
            }
        }
        assert_eq!(directory.find(pointer(11, 3)), None);
        assert_eq!(directory.find(pointer(9, 0)), None);
        let begin_from = |pointer| directory.begin(directory.seek(pointer));
        assert_eq!(begin_from(pointer(9, 0)), SEGMENT_HEADER as u32 + 300, "the first record");
        assert_eq!(begin_from(pointer(900, 0)), directory.end);
    }

    #[test]
    fn a_directory_round_trips_and_detects_every_flipped_bit() {
        let directory = directory();
        let bytes = directory.encode().unwrap();
        assert_eq!(Directory::by_trailer(bytes.last_chunk().unwrap()), Some((bytes.len(), directory.end)));
        let read = Directory::decode(&bytes).unwrap();
        assert_eq!(
            (&read.revisions, &read.places, read.end),
            (&directory.revisions, &directory.places, directory.end)
        );
        let mut listed = Vec::new();
        each(entries_of(&bytes).unwrap(), |entry, offset| {
            listed.push((String::from_utf8(entry.key.to_vec()).unwrap(), entry.head, offset));
        })
        .unwrap();
        let record = 50;
        let place =
            listed.iter().find(|(_, _, offset)| *offset == SEGMENT_HEADER as u32 + record * 100).unwrap();
        let head = Head { pointer: pointer(26, 2), size: Some(50) };
        assert_eq!((&place.0[..], place.1), (&format!("/objects/{}", 50 * 7919 % 200)[..], head));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Directory::decode(&damaged).is_none(), "bit {bit}");
        }
        assert_eq!(Directory::decode(&Directory::new().encode().unwrap()).unwrap().last(), None);
    }

    #[test]
    fn first_not_before_agrees_with_a_binary_search() {
        let even: Vec<u64> = (0..100).collect();
        let thrice: Vec<u64> = (0..300).map(|number| 7 + number / 3).collect();
        let uneven: Vec<u64> = (0..200).map(|number| number * number * number).collect();
        let gaps: Vec<u64> = [1, 1, 1, 2, 1000, 1001, 1001, u64::MAX / 2, u64::MAX].into();
        for list in [even, thrice, uneven, gaps, vec![5], vec![5; 40], vec![]] {
            let near =
                list.iter().flat_map(|number| [number.saturating_sub(1), *number, number.saturating_add(1)]);
            for wanted in near.chain([0, 3, u64::MAX]) {
                let expected = list.partition_point(|number| *number < wanted);
                assert_eq!(first_not_before(&list, wanted), expected, "{wanted} in {list:?}");
            }
        }
    }

    #[test]
    fn dead_records_are_counted_once() {
        let mut directory = directory();
        for pointer in [pointer(11, 0), pointer(11, 0), pointer(75, 1), pointer(30, 0)] {
            directory.mark_dead(pointer);
        }
        let dead = directory.dead();
        assert_eq!(dead.count(), 2, "there is no revision 30");
        let numbers: Vec<_> = (0..200).filter(|number| dead.contains(*number)).collect();
        assert_eq!(numbers.first(), Some(&0));
        let mut bytes = Vec::new();
        dead.encode(&mut bytes);
        bytes.push(9);
        let (read, rest) = Bits::decode(&bytes).unwrap();
        assert_eq!((&read, rest), (dead, &[9][..]));
        let last = *numbers.last().unwrap() as u32;
        assert!(read.fit(last + 1) && !read.fit(last));
    }
}
