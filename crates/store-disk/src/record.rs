//! Encoding of records. Pure: bytes in, bytes out.
//!
//! A record is one operation of one transaction; its pointer is the revision and its index in the
//! transaction. The log holds records in the order of their pointers, so the cost of a write does not grow
//! with the store. They are also the history: a record points to the one it replaced.

use bytes::{BufMut, Bytes};
use k1s_store::{Error, KeyValue, Result, Revision, limits};
use xxhash_rust::xxh3::Xxh3;

/// Identifies a record: the revision that wrote it, and its index in the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pointer {
    pub(crate) revision: Revision,
    pub(crate) index: u32,
}

impl Pointer {
    pub(crate) const LEN: usize = 12;

    pub(crate) fn new(revision: Revision, index: u32) -> Self {
        Self { revision, index }
    }

    /// The record that follows, if this record's revision has `steps` records.
    pub(crate) fn next(self, steps: u32) -> Self {
        if self.index + 1 < steps {
            Self::new(self.revision, self.index + 1)
        } else {
            Self::new(self.revision.next(), 0)
        }
    }

    /// The error for a record that should exist and does not.
    pub(crate) fn missing(self) -> Error {
        Error::corrupt(format!("record {} of revision {} is missing", self.index, self.revision))
    }

    /// The byte order is the order of the pointers.
    pub(crate) fn encode(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.revision.get().to_be_bytes());
        bytes[8..].copy_from_slice(&self.index.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (revision, index) = bytes.split_first_chunk::<8>()?;
        let index = index.try_into().ok()?;
        Some(Self::new(u64::from_be_bytes(*revision).into(), u32::from_be_bytes(index)))
    }
}

/// The newest record of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) pointer: Pointer,
    /// Bytes of the key and its value; `None` if the record deletes the key.
    pub(crate) size: Option<u32>,
}

impl Head {
    pub(crate) const LEN: usize = Pointer::LEN + 4;

    /// Larger than any key with its value.
    const DELETED: u32 = u32::MAX;

    pub(crate) fn encode(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..Pointer::LEN].copy_from_slice(&self.pointer.encode());
        bytes[Pointer::LEN..].copy_from_slice(&self.size.unwrap_or(Self::DELETED).to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (pointer, size) = bytes.split_at_checked(Pointer::LEN)?;
        let size = u32::from_be_bytes(size.try_into().ok()?);
        Some(Self { pointer: Pointer::decode(pointer)?, size: (size != Self::DELETED).then_some(size) })
    }

    /// Whether the key has a value.
    pub(crate) fn live(self) -> bool {
        self.size.is_some()
    }

    /// The revision of the key's value, if it has one.
    pub(crate) fn live_revision(self) -> Option<Revision> {
        self.size.map(|_| self.pointer.revision)
    }
}

/// The size of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Keys that have a value.
    pub(crate) keys: u64,
    /// Bytes of those keys and values.
    pub(crate) bytes: u64,
}

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) key: Bytes,
    /// `None` if it deletes the key.
    pub(crate) value: Option<Bytes>,
    /// Whether the key had no value before.
    pub(crate) created: bool,
    /// The previous record of the same key, if any, including a deletion.
    pub(crate) replaced: Option<Pointer>,
    /// Number of records of its revision.
    pub(crate) steps: u32,
    /// The size of the store after this record.
    pub(crate) totals: Totals,
}

/// The size of an entry in [`Totals::bytes`].
pub(crate) fn entry_size(key: &[u8], value: &[u8]) -> u32 {
    // The store's limits keep both far below this.
    u32::try_from(key.len() + value.len()).unwrap_or(u32::MAX - 1)
}

/// The parts of a record that a segment's directory lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outline<'a> {
    pub(crate) key: &'a [u8],
    /// See [`Head::size`].
    pub(crate) size: Option<u32>,
}

impl<'a> Outline<'a> {
    /// The outline of an encoded record, without checking its checksum.
    pub(crate) fn of(bytes: &'a [u8]) -> Option<Self> {
        let body = bytes.get(..bytes.len().checked_sub(CHECKSUM)?)?;
        let (header, rest) = body.split_at_checked(HEADER)?;
        let key_len = u32::from_be_bytes(*header.last_chunk()?);
        let (key, value) = rest.split_at_checked(key_len as usize)?;
        Some(Self { key, size: (header[0] & DELETED == 0).then(|| entry_size(key, value)) })
    }
}

const DELETED: u8 = 1;
const CREATED: u8 = 2;
const REPLACED: u8 = 4;

/// flags, replaced, steps, keys, bytes, length of the key
const HEADER: usize = 1 + Pointer::LEN + 4 + 8 + 8 + 4;
const CHECKSUM: usize = 8;

impl Record {
    /// Appends the encoding of the record. The checksum covers the pointer: a record in the wrong place is as
    /// damaged as one with wrong bytes.
    pub(crate) fn encode(&self, pointer: Pointer, bytes: &mut Vec<u8>) {
        let begin = bytes.len();
        let value = self.value.as_deref().unwrap_or_default();
        bytes.reserve(HEADER + self.key.len() + value.len() + CHECKSUM);
        let flag = |set: bool, flag| if set { flag } else { 0 };
        bytes.put_u8(
            flag(self.value.is_none(), DELETED)
                | flag(self.created, CREATED)
                | flag(self.replaced.is_some(), REPLACED),
        );
        bytes.put_slice(&self.replaced.map_or([0; Pointer::LEN], Pointer::encode));
        bytes.put_u32(self.steps);
        bytes.put_u64(self.totals.keys);
        bytes.put_u64(self.totals.bytes);
        bytes.put_u32(self.key.len() as u32);
        bytes.put_slice(&self.key);
        bytes.put_slice(value);
        bytes.put_u64(checksum(pointer, &bytes[begin..]));
    }

    /// Decodes the record at `pointer`, or reports how it is damaged.
    pub(crate) fn read(pointer: Pointer, bytes: &Bytes) -> Result<Self> {
        Self::decode(pointer, bytes).ok_or_else(|| {
            Error::corrupt(format!("{} does not match its checksum", describe(pointer, bytes)))
        })
    }

    /// Copies the record into its own memory: see [`KeyValue::detached`].
    pub(crate) fn detached(self) -> Self {
        let value = self.value.as_deref();
        let whole = KeyValue::detached(&self.key, value.unwrap_or_default(), Revision::FIRST);
        Self { key: whole.key, value: value.map(|_| whole.value), ..self }
    }

    /// Decodes the record, if the bytes are intact and belong to `pointer`. Key and value share the bytes.
    pub(crate) fn decode(pointer: Pointer, bytes: &Bytes) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<CHECKSUM>()?;
        if body.len() < HEADER || u64::from_be_bytes(*sum) != checksum(pointer, body) {
            return None;
        }
        let (flags, rest) = body.split_first()?;
        let (replaced, rest) = rest.split_at(Pointer::LEN);
        let (steps, rest) = rest.split_first_chunk()?;
        let (keys, rest) = rest.split_first_chunk()?;
        let (total, rest) = rest.split_first_chunk()?;
        let (key_len, _) = rest.split_first_chunk()?;
        let key_end = HEADER.checked_add(u32::from_be_bytes(*key_len) as usize)?;
        if key_end > body.len() {
            return None;
        }
        Some(Self {
            key: bytes.slice(HEADER..key_end),
            value: (flags & DELETED == 0).then(|| bytes.slice(key_end..body.len())),
            created: flags & CREATED != 0,
            replaced: if flags & REPLACED == 0 { None } else { Some(Pointer::decode(replaced)?) },
            steps: u32::from_be_bytes(*steps),
            totals: Totals { keys: u64::from_be_bytes(*keys), bytes: u64::from_be_bytes(*total) },
        })
    }
}

/// Describes a record that may be damaged: by its pointer, and its key if that is readable.
pub(crate) fn describe(pointer: Pointer, bytes: &[u8]) -> String {
    let Pointer { revision, index } = pointer;
    let key = Outline::of(bytes).map(|outline| outline.key).filter(|key| key.len() <= limits::MAX_KEY_BYTES);
    match key {
        Some(key) => format!("record {index} of revision {revision}, key \"{}\",", key.escape_ascii()),
        None => format!("record {index} of revision {revision}"),
    }
}

fn checksum(pointer: Pointer, body: &[u8]) -> u64 {
    let mut hash = Xxh3::with_seed(0x6b31_7332);
    hash.update(&pointer.encode());
    hash.update(body);
    hash.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            key: "/pods/a".into(),
            value: Some("value".into()),
            created: false,
            replaced: Some(Pointer::new(Revision::new(7), 1)),
            steps: 2,
            totals: Totals { keys: 3, bytes: 99 },
        }
    }

    fn encoded(record: &Record, pointer: Pointer) -> Bytes {
        let mut bytes = Vec::new();
        record.encode(pointer, &mut bytes);
        bytes.into()
    }

    #[test]
    fn a_record_round_trips() {
        let pointer = Pointer::new(Revision::new(300), 0);
        for record in [
            record(),
            Record { value: None, ..record() },
            Record { value: Some(Bytes::new()), created: true, replaced: None, ..record() },
        ] {
            let encoded = encoded(&record, pointer);
            assert_eq!(Record::decode(pointer, &encoded).map(Record::detached), Some(record.clone()));
            let size = record.value.as_ref().map(|value| entry_size(&record.key, value));
            assert_eq!(Outline::of(&encoded), Some(Outline { key: &record.key, size }));
            assert_eq!(Record::decode(pointer, &encoded), Some(record));
        }
    }

    #[test]
    fn every_flipped_bit_every_truncation_and_the_wrong_pointer_are_detected() {
        let pointer = Pointer::new(Revision::new(300), 0);
        let bytes = encoded(&record(), pointer);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Record::decode(pointer, &damaged.into()), None, "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(Record::decode(pointer, &bytes.slice(..len)), None, "cut to {len}");
        }
        assert_eq!(Record::decode(Pointer::new(Revision::new(300), 1), &bytes), None);
    }

    #[test]
    fn encoded_pointers_sort_by_revision() {
        let pointers = [(1, 0), (1, 1), (255, 0), (256, 0), (u64::MAX, u32::MAX)]
            .map(|(revision, index)| Pointer::new(Revision::new(revision), index));
        assert!(pointers.map(Pointer::encode).is_sorted());
        for pointer in pointers {
            assert_eq!(Pointer::decode(&pointer.encode()), Some(pointer));
            for head in [Head { pointer, size: Some(70) }, Head { pointer, size: None }] {
                assert_eq!(Head::decode(&head.encode()), Some(head));
            }
        }
        assert_eq!(Head::decode(b"short"), None);
    }
}
