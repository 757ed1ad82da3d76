//! The steps of a random sequence.

use bytes::Bytes;
use k1s_store::limits;

use crate::support::Dice;

/// One operation of a sequence that is compared with the model.
///
/// Numbers are taken modulo the number of choices, and revisions are relative to the newest, so any sequence
/// is valid and stays so when a step is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A transaction.
    Txn(Vec<StepOp>),
    /// Reads a key.
    Get(u8, At),
    /// Reads a range.
    Range {
        /// The prefix.
        prefix: u8,
        /// The start key.
        start: Option<u8>,
        /// Maximum number of entries; 0 for all.
        limit: u8,
        /// The revision to read at.
        at: At,
    },
    /// Compacts.
    Compact(At),
    /// Reads the revision and statistics.
    Stats,
    /// Opens a watch.
    Watch {
        /// The prefix.
        prefix: u8,
        /// The revision to start after.
        after: At,
        /// Whether to request previous values.
        previous: bool,
    },
    /// Reads up to this many of the items due on an open watch.
    Read(u8, u8),
    /// Requests a mark on an open watch and reads up to it.
    Mark(u8),
    /// Drops an open watch.
    Drop(u8),
}

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepOp {
    /// The key.
    pub key: u8,
    /// The precondition.
    pub only: If,
    /// The action.
    pub act: Act,
}

/// A precondition, relative to the state of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum If {
    /// No precondition.
    Any,
    /// The key is absent.
    Absent,
    /// The key exists.
    Exists,
    /// The key is at its current revision; for an absent key, at the newest revision.
    Current,
    /// The key is at a revision this many before the newest.
    Stale(u8),
}

/// An action on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Puts a unique value.
    Put,
    /// Puts an empty value.
    PutEmpty,
    /// Puts a value that is too large.
    PutTooLarge,
    /// Deletes.
    Delete,
    /// Only checks.
    Check,
}

/// A revision, relative to the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The newest, not requested by number.
    Now,
    /// This many revisions before the newest.
    Back(u8),
    /// This many revisions in the future.
    Ahead(u8),
}

const KEYS: [&[u8]; 12] = [
    b"/a/1",
    b"/a/2",
    b"/a/3",
    b"/b/1",
    b"/a",
    b"/a/",
    b"/a/1\x00",
    b"/a/1\xff",
    b"\x00",
    b"\xff",
    b"\xff\xff",
    b"b",
];
const PREFIXES: [&[u8]; 9] = [b"", b"/a/", b"/a", b"/a/1", b"/b/", b"\xff", b"\xff\xff", b"\x00", b"/none/"];

pub(super) fn key(number: u8) -> Bytes {
    Bytes::from_static(KEYS[usize::from(number) % KEYS.len()])
}

pub(super) fn prefix(number: u8) -> Bytes {
    Bytes::from_static(PREFIXES[usize::from(number) % PREFIXES.len()])
}

impl Act {
    /// The value it writes, if any; `unique` makes it distinct.
    pub(super) fn value(self, unique: usize) -> Option<Bytes> {
        match self {
            Self::Put => Some(format!("v{unique}").into()),
            Self::PutEmpty => Some(Bytes::new()),
            Self::PutTooLarge => Some(vec![0; limits::MAX_VALUE_BYTES + 1].into()),
            Self::Delete | Self::Check => None,
        }
    }
}

impl Step {
    pub(super) fn random(dice: &Dice) -> Self {
        match dice.below(100) {
            0..40 => Self::Txn((0..ops(dice)).map(|_| StepOp::random(dice)).collect()),
            40..50 => Self::Get(dice.byte(), At::random(dice)),
            50..65 => Self::Range {
                prefix: dice.byte(),
                start: dice.chance(40).then(|| dice.byte()),
                limit: if dice.chance(50) { 0 } else { dice.below(6) as u8 },
                at: At::random(dice),
            },
            65..68 => Self::Compact(At::random(dice)),
            68..72 => Self::Stats,
            72..78 => Self::Watch { prefix: dice.byte(), after: At::random(dice), previous: dice.chance(50) },
            78..90 => Self::Read(dice.byte(), dice.below(8) as u8),
            90..97 => Self::Mark(dice.byte()),
            _ => Self::Drop(dice.byte()),
        }
    }
}

/// Number of steps of a transaction: mostly one, sometimes none.
fn ops(dice: &Dice) -> usize {
    match dice.below(100) {
        0..2 => 0,
        2..60 => 1,
        _ => 2 + dice.below(3),
    }
}

impl StepOp {
    fn random(dice: &Dice) -> Self {
        let only = match dice.below(100) {
            0..45 => If::Any,
            45..60 => If::Absent,
            60..70 => If::Exists,
            70..92 => If::Current,
            _ => If::Stale(dice.below(20) as u8),
        };
        let act = match dice.below(200) {
            0..120 => Act::Put,
            120..130 => Act::PutEmpty,
            130 => Act::PutTooLarge,
            131..175 => Act::Delete,
            _ => Act::Check,
        };
        Self { key: dice.byte(), only, act }
    }
}

impl At {
    fn random(dice: &Dice) -> Self {
        match dice.below(100) {
            0..35 => Self::Now,
            35..93 => Self::Back(dice.below(24) as u8),
            93..96 => Self::Back(dice.byte()),
            _ => Self::Ahead(dice.below(4) as u8),
        }
    }
}
