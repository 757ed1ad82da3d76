//! Errors, and what the caller can do about them.

use bytes::Bytes;

use crate::{KeyValue, Precondition, Revision};

/// The result of an operation on a store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on a store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A precondition of a transaction did not hold; nothing was written. Read again, and retry.
    #[error(transparent)]
    Conflict(Box<Conflict>),

    /// The requested history is compacted. List again, and watch from there.
    #[error("revision {requested} has been compacted; the oldest revision that is left is {oldest}")]
    Compacted {
        /// The requested revision.
        requested: Revision,
        /// The oldest revision that can still be read, and watched from.
        oldest: Revision,
    },

    /// The store has not reached that revision yet.
    #[error("revision {requested} is in the future; the newest revision is {current}")]
    FutureRevision {
        /// The requested revision.
        requested: Revision,
        /// The newest revision.
        current: Revision,
    },

    /// The store was closed.
    #[error("the store is closed")]
    Closed,

    /// There is no space. Nothing was written, reads work, and so do writes when there is space again.
    #[error("the store is full: {reason}")]
    Full {
        /// What is full.
        reason: String,
    },

    /// Stored data is damaged. Retrying does not help; restore a backup.
    #[error("the store is damaged: {reason}")]
    Corrupt {
        /// What is wrong and where.
        reason: String,
    },

    /// The store cannot be reached or cannot work now; retry.
    ///
    /// A write with [`Outcome::Unknown`] may have happened: read before retrying.
    #[error("the store is unavailable: {reason}{}", .outcome.note())]
    Unavailable {
        /// Why.
        reason: String,
        /// Whether a write may have happened nevertheless.
        outcome: Outcome,
    },

    /// A key, a value or a transaction exceeds a limit.
    #[error("{what} has {size} {unit}, more than the {limit} this store takes")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
        /// The unit of both: bytes, operations.
        unit: &'static str,
    },

    /// The request is invalid: a bug in the caller.
    #[error("invalid request: {reason}")]
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
}

/// Whether a failed write may have happened nevertheless.
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
    /// A failed precondition on `key`, where `current` is its current entry.
    pub fn conflict(key: Bytes, expected: Precondition, current: Option<KeyValue>) -> Self {
        Self::Conflict(Box::new(Conflict { key, expected, current }))
    }

    /// The store cannot work now, and nothing was written.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into(), outcome: Outcome::NotApplied }
    }

    /// The store cannot work now, and it is not known whether the write happened.
    pub fn outcome_unknown(reason: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into(), outcome: Outcome::Unknown }
    }

    /// Stored data is damaged.
    pub fn corrupt(reason: impl Into<String>) -> Self {
        Self::Corrupt { reason: reason.into() }
    }

    /// The request is invalid.
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
    /// Its current entry.
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
