//! What can go wrong, and what the caller can do about it.

use bytes::Bytes;

use crate::{KeyValue, Precondition, Revision};

/// The result of an operation on a store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on a store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A precondition of a transaction did not hold; nothing was written. Read again and decide anew.
    #[error(transparent)]
    Conflict(Box<Conflict>),

    /// The history that was asked for is gone. List again, and watch from there.
    #[error("revision {requested} has been compacted; the oldest revision that is left is {oldest}")]
    Compacted {
        /// What was asked for.
        requested: Revision,
        /// The oldest revision that can still be read, and watched from.
        oldest: Revision,
    },

    /// The store has not reached that revision yet.
    #[error("revision {requested} is in the future; the newest revision is {current}")]
    FutureRevision {
        /// What was asked for.
        requested: Revision,
        /// The newest revision.
        current: Revision,
    },

    /// The store was closed.
    #[error("the store is closed")]
    Closed,

    /// There is no room to write. Nothing was written, reads go on, and writes work again when there is room.
    #[error("the store is full: {reason}")]
    Full {
        /// What is full, in words.
        reason: String,
    },

    /// What is stored is damaged. Retrying will not help; a backup will.
    #[error("the store is damaged: {reason}")]
    Corrupt {
        /// What is wrong and where.
        reason: String,
    },

    /// The store cannot be reached or cannot work at the moment; try again.
    ///
    /// For a write with [`Outcome::Unknown`] it is not known whether it happened: look before writing again.
    #[error("the store is unavailable: {reason}{}", .outcome.note())]
    Unavailable {
        /// What is the matter.
        reason: String,
        /// Whether a write may have happened all the same.
        outcome: Outcome,
    },

    /// A key, a value or a transaction is larger than the store takes.
    #[error("{what} has {size} {unit}, more than the {limit} this store takes")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        size: usize,
        /// How large it may be.
        limit: usize,
        /// What is counted: bytes, operations.
        unit: &'static str,
    },

    /// The request makes no sense; the caller has a bug.
    #[error("invalid request: {reason}")]
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
}

/// Whether a write that failed may have happened all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did not happen.
    NotApplied,
    /// It may have happened, whole, or not at all.
    Unknown,
}

impl Outcome {
    fn note(self) -> &'static str {
        match self {
            Self::NotApplied => "",
            Self::Unknown => " (whether the write happened is not known)",
        }
    }
}

impl Error {
    /// A failed precondition on `key`, where `current` is what is there now.
    pub fn conflict(key: Bytes, expected: Precondition, current: Option<KeyValue>) -> Self {
        Self::Conflict(Box::new(Conflict { key, expected, current }))
    }

    /// The store cannot work at the moment, and nothing was written.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into(), outcome: Outcome::NotApplied }
    }

    /// The store cannot work at the moment, and it is not known whether the write happened.
    pub fn outcome_unknown(reason: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into(), outcome: Outcome::Unknown }
    }

    /// What is stored is damaged.
    pub fn corrupt(reason: impl Into<String>) -> Self {
        Self::Corrupt { reason: reason.into() }
    }

    /// The request makes no sense.
    pub fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid { reason: reason.into() }
    }
}

/// The precondition that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The key it was on.
    pub key: Bytes,
    /// What the transaction expected of it.
    pub expected: Precondition,
    /// What is there now.
    pub current: Option<KeyValue>,
}

impl std::error::Error for Conflict {}

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { key, expected, current } = self;
        write!(f, "conflict on key \"{}\": expected it ", key.escape_ascii())?;
        match expected {
            Precondition::Any => f.write_str("to be anything")?,
            Precondition::Absent => f.write_str("to be absent")?,
            Precondition::Exists => f.write_str("to exist")?,
            Precondition::Revision(revision) => write!(f, "at revision {revision}")?,
        }
        match current {
            Some(entry) => write!(f, ", it is at revision {}", entry.revision),
            None => f.write_str(", it is absent"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_was_expected_and_what_is_there() {
        let current = KeyValue { key: "/a".into(), value: "v".into(), revision: Revision::new(9) };
        let conflict = |expected, current| Error::conflict("/a".into(), expected, current).to_string();
        assert_eq!(
            conflict(Precondition::Revision(Revision::new(4)), Some(current)),
            "conflict on key \"/a\": expected it at revision 4, it is at revision 9"
        );
        assert_eq!(
            conflict(Precondition::Exists, None),
            "conflict on key \"/a\": expected it to exist, it is absent"
        );
        assert_eq!(
            Error::outcome_unknown("connection reset").to_string(),
            "the store is unavailable: connection reset (whether the write happened is not known)"
        );
        assert_eq!(
            Error::TooLarge { what: "the value of key \"a\"", size: 9, limit: 8, unit: "bytes" }.to_string(),
            "the value of key \"a\" has 9 bytes, more than the 8 this store takes"
        );
    }
}
