//! The state that is not in the log itself: how far the history is compacted, and which records are dead.
//!
//! A checkpoint is a separate file, replaced as a whole. Changes since the last one are found in the log
//! again. Only records that it lists as dead may be omitted from the log.
//!
//! ```text
//!   "k1s state\n", oldest: u64, swept: u64, segments: u32, of each: id: u64, from: u64, cleaned: u64, records: u32,
//!   words: u32, then the words: a bit for each record, set if it is dead: u64; then a checksum: u64
//! ```

use std::{
    collections::{HashMap, HashSet},
    io,
    path::Path,
    sync::Arc,
};

use bytes::Bytes;
use k1s_store::{Error, Revision};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    error::OpenError,
    files::Files,
    log::{Bits, Segment, Segments},
    record::{Pointer, Record},
};

const BEGIN: &[u8; 10] = b"k1s state\n";

/// The contents of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// The oldest revision that can be read and watched from.
    pub(crate) oldest: Revision,
    /// Dead records have been found up to this revision.
    pub(crate) swept: Revision,
    dead: Vec<DeadOf>,
}

/// The dead records of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DeadOf {
    id: u64,
    from: u64,
    cleaned: Revision,
    /// Number of records the segment had.
    records: u32,
    dead: Bits,
}

impl Checkpoint {
    pub(crate) fn new(oldest: Revision, swept: Revision, log: &Segments) -> Self {
        let dead_of = |segment: &Arc<Segment>| DeadOf {
            id: segment.id(),
            from: segment.from(),
            cleaned: segment.cleaned(),
            records: segment.records(),
            dead: segment.dead(),
        };
        Self { oldest, swept, dead: log.iter().map(dead_of).collect() }
    }

    /// Atomically replaces the previous checkpoint. First syncs the names of the segments in `log`, which it
    /// refers to.
    pub(crate) fn write(&self, files: &dyn Files, path: &Path, log: &Path) -> io::Result<()> {
        files.sync_dir(log)?;
        let new = path.with_extension("new");
        // A partial file would occupy space that is needed.
        files.write_synced(&new, &self.encode()).inspect_err(|_| drop(files.remove_file(&new)))?;
        files.rename(&new, path)?;
        path.parent().map_or(Ok(()), |store| files.sync_dir(store))
    }

    pub(crate) fn read(files: &dyn Files, path: &Path) -> Result<Self, OpenError> {
        let bytes = files.read(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => OpenError::damaged(path, "the file is missing"),
            _ => OpenError::io(path)(error),
        })?;
        Self::decode(&bytes).ok_or_else(|| OpenError::damaged(path, "it does not match its checksum"))
    }

    /// Marks the dead records of the segments. Fails with the reason if this is not the checkpoint of this
    /// log.
    pub(crate) fn apply(&self, log: &Segments) -> Result<(), String> {
        let is_there = |id: u64| log.iter().any(|segment| (segment.from()..=segment.id()).contains(&id));
        if let Some(missing) = self.dead.iter().find(|dead| !is_there(dead.id)) {
            return Err(format!("segment {} of the log, which it lists, is missing", missing.id));
        }
        for segment in log.iter() {
            let (id, cleaned) = (segment.id(), segment.cleaned());
            let known = self.dead.iter().find(|dead| dead.id == id);
            match known {
                Some(DeadOf { from, cleaned: then, records, dead, .. })
                    if (*from, *then) == (segment.from(), cleaned) && *records <= segment.records() =>
                {
                    segment.set_dead(dead.clone());
                }
                // Cleaned after this checkpoint: everything dead was omitted.
                _ if cleaned == self.swept => {}
                // Created after this checkpoint.
                None if cleaned == Revision::FIRST && segment.begin() > self.swept => {}
                _ => {
                    return Err(format!(
                        "it does not match segment {id} of the log: it is swept to revision {}, the segment \
                         is cleaned up to {cleaned}",
                        self.swept
                    ));
                }
            }
        }
        Ok(())
    }

    /// Rebuilds a lost checkpoint from the log, and marks the dead records of the segments. The history
    /// begins where no record has been omitted from the log yet.
    ///
    /// A deleted key may reappear: if the record of its deletion has been omitted, and the record it replaced
    /// has not. Then the store is larger than its newest record says.
    pub(crate) fn rebuild(log: &Segments) -> Result<Self, Error> {
        let swept = log.iter().map(|segment| segment.cleaned()).max().unwrap_or(Revision::FIRST);
        let mut newest = HashMap::new();
        for segment in log.iter() {
            segment.each_listed(|listed| {
                newest.insert(Bytes::copy_from_slice(listed.key), listed.head);
            })?;
        }
        let mut live: HashSet<Pointer> =
            newest.into_values().filter(|head| head.live()).map(|head| head.pointer).collect();
        log.each(Pointer::new(swept.next(), 0), |pointer, bytes| {
            let record = Record::read(pointer, &bytes)?;
            live.extend(record.replaced.filter(|_| !record.created));
            Ok(true)
        })?;
        for segment in log.iter() {
            let mut dead = Bits::default();
            segment.each_listed(|listed| {
                let pointer = listed.head.pointer;
                if pointer.revision <= swept && !live.contains(&pointer) {
                    dead.set(listed.number);
                }
            })?;
            segment.set_dead(dead);
        }
        Ok(Self::new(swept, swept, log))
    }

    /// The dead records of a segment, if this checkpoint lists it.
    pub(crate) fn dead_of(&self, id: u64, header: (u64, Revision)) -> Option<&Bits> {
        let of = self.dead.iter().find(|of| of.id == id)?;
        (header == (of.from, of.cleaned)).then_some(&of.dead)
    }

    /// The dead records of a segment whose header is damaged, if the listed one has the same number of
    /// records.
    pub(crate) fn dead_among(&self, id: u64, records: usize) -> Option<&Bits> {
        let of = self.dead.iter().find(|of| of.id == id)?;
        (of.records as usize == records).then_some(&of.dead)
    }

    /// The first of the segments that segment `id` replaced, if this checkpoint lists it.
    pub(crate) fn first_of(&self, id: u64) -> Option<u64> {
        self.dead.iter().find(|of| of.id == id).map(|of| of.from)
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = BEGIN.to_vec();
        for number in [self.oldest, self.swept] {
            bytes.extend_from_slice(&number.get().to_be_bytes());
        }
        bytes.extend_from_slice(&(self.dead.len() as u32).to_be_bytes());
        for DeadOf { id, from, cleaned, records, dead } in &self.dead {
            for number in [*id, *from, cleaned.get()] {
                bytes.extend_from_slice(&number.to_be_bytes());
            }
            bytes.extend_from_slice(&records.to_be_bytes());
            dead.encode(&mut bytes);
        }
        bytes.extend_from_slice(&xxh3_64(&bytes).to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<8>()?;
        if u64::from_be_bytes(*sum) != xxh3_64(body) {
            return None;
        }
        let mut rest = body.strip_prefix(BEGIN)?;
        let (oldest, swept) = (number(&mut rest)?, number(&mut rest)?);
        let mut dead = Vec::new();
        for _ in 0..short(&mut rest)? {
            let (id, from, cleaned) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
            let records = short(&mut rest)?;
            let (bits, behind) = Bits::decode(rest)?;
            rest = behind;
            dead.push(DeadOf { id, from, cleaned: cleaned.into(), records, dead: bits });
        }
        let fit = dead.iter().all(|of| of.dead.fit(of.records));
        (rest.is_empty() && fit).then_some(Self { oldest: oldest.into(), swept: swept.into(), dead })
    }
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_be_bytes(*number))
}

fn short(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    fn checkpoint() -> Checkpoint {
        let mut dead = Bits::default();
        for number in [0, 3, 70] {
            dead.set(number);
        }
        let cleaned = Revision::new(9);
        Checkpoint {
            oldest: Revision::new(30),
            swept: Revision::new(20),
            dead: vec![
                DeadOf { id: 4, from: 1, cleaned, records: 71, dead },
                DeadOf { id: 5, from: 5, cleaned: Revision::FIRST, records: 0, dead: Bits::default() },
            ],
        }
    }

    #[test]
    fn a_checkpoint_round_trips_and_detects_every_flipped_bit_and_every_truncation() {
        let bytes = checkpoint().encode();
        assert_eq!(Checkpoint::decode(&bytes), Some(checkpoint()));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Checkpoint::decode(&damaged), None, "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(Checkpoint::decode(&bytes[..len]), None, "cut to {len}");
        }
    }

    #[test]
    fn a_checkpoint_replaces_the_previous_one() {
        let folder = tempfile::tempdir().unwrap();
        let (files, path) = (files::real(), folder.path().join("checkpoint"));
        assert!(matches!(Checkpoint::read(&*files, &path), Err(OpenError::Damaged { .. })));
        checkpoint().write(&*files, &path, folder.path()).unwrap();
        let newer = Checkpoint { oldest: Revision::new(40), ..checkpoint() };
        newer.write(&*files, &path, folder.path()).unwrap();
        assert_eq!(Checkpoint::read(&*files, &path).unwrap(), newer);
    }
}
