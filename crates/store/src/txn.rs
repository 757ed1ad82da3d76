//! Transactions: several writes that happen together, if their preconditions hold.

use std::collections::HashSet;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::{Error, Result, Revision, limits};

/// A condition on a key, without which a transaction fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Always holds.
    Any,
    /// The key has no value.
    Absent,
    /// The key has a value.
    Exists,
    /// The key has a value that this revision wrote.
    Revision(Revision),
}

impl Precondition {
    /// Whether it holds for a key whose value was written by `current`, or that has none.
    pub fn holds(self, current: Option<Revision>) -> bool {
        match self {
            Self::Any => true,
            Self::Absent => current.is_none(),
            Self::Exists => current.is_some(),
            Self::Revision(expected) => current == Some(expected),
        }
    }
}

/// What a step does to its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sets the key to this value.
    Put(Bytes),
    /// Deletes the key. A key without a value is left as it is.
    Delete,
    /// Changes nothing; only checks the precondition.
    Check,
}

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// The key.
    pub key: Bytes,
    /// The condition on the key.
    pub precondition: Precondition,
    /// The change to the key.
    pub action: Action,
}

/// Writes that are applied together at one revision, or not at all.
///
/// All preconditions are checked against the state before the transaction; a key may occur once.
///
/// ```
/// # use k1s_store::{Precondition, Revision, Txn};
/// let rename = Txn::new()
///     .check("/namespaces/default", Precondition::Exists)
///     .create("/pods/new", "…")
///     .delete("/pods/old", Precondition::Revision(Revision::new(42)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    ops: SmallVec<[Op; 1]>,
}

impl Txn {
    /// An empty transaction.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates `key`; it must not exist.
    #[must_use]
    pub fn create(self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        self.put(key, value, Precondition::Absent)
    }

    /// Sets the value of `key`, if `precondition` holds.
    #[must_use]
    pub fn put(self, key: impl Into<Bytes>, value: impl Into<Bytes>, precondition: Precondition) -> Self {
        self.op(Op { key: key.into(), precondition, action: Action::Put(value.into()) })
    }

    /// Deletes `key`, if `precondition` holds.
    #[must_use]
    pub fn delete(self, key: impl Into<Bytes>, precondition: Precondition) -> Self {
        self.op(Op { key: key.into(), precondition, action: Action::Delete })
    }

    /// Fails the transaction unless `precondition` holds for `key`.
    #[must_use]
    pub fn check(self, key: impl Into<Bytes>, precondition: Precondition) -> Self {
        self.op(Op { key: key.into(), precondition, action: Action::Check })
    }

    /// Adds a step.
    #[must_use]
    pub fn op(mut self, op: Op) -> Self {
        self.ops.push(op);
        self
    }

    /// Its steps.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Its steps, to be carried out.
    pub fn into_ops(self) -> SmallVec<[Op; 1]> {
        self.ops
    }

    /// Bytes of its keys and values.
    pub fn size(&self) -> usize {
        self.ops.iter().map(|op| op.key.len() + op.action.value_len()).sum()
    }

    /// Fails if no backend would accept it: no steps, a duplicate key, or more than the [`limits`].
    pub fn validate(&self) -> Result<()> {
        let too_large = |what, size, limit, unit| {
            if size > limit { Err(Error::TooLarge { what, size, limit, unit }) } else { Ok(()) }
        };
        if self.ops.is_empty() {
            return Err(Error::invalid("a transaction must have at least one step"));
        }
        too_large("the transaction", self.ops.len(), limits::MAX_OPS, "steps")?;
        for op in &self.ops {
            if op.key.is_empty() {
                return Err(Error::invalid("a key must not be empty"));
            }
            too_large("the key", op.key.len(), limits::MAX_KEY_BYTES, "bytes")?;
            too_large("the value", op.action.value_len(), limits::MAX_VALUE_BYTES, "bytes")?;
        }
        if self.ops.len() > 1 {
            // Most have a few steps: comparing them is faster than hashing.
            let twice = if self.ops.len() <= 4 {
                let ops = &self.ops;
                ops.iter()
                    .enumerate()
                    .find(|(i, op)| ops[..*i].iter().any(|seen| seen.key == op.key))
                    .map(|(_, op)| op)
            } else {
                let mut seen = HashSet::with_capacity(self.ops.len());
                self.ops.iter().find(|op| !seen.insert(&op.key))
            };
            if let Some(twice) = twice {
                return Err(Error::invalid(format!(
                    "key \"{}\" is named twice in one transaction",
                    twice.key.escape_ascii()
                )));
            }
        }
        Ok(())
    }
}

impl Action {
    fn value_len(&self) -> usize {
        match self {
            Self::Put(value) => value.len(),
            Self::Delete | Self::Check => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precondition_is_judged_on_the_revision_of_the_key() {
        let at = |number| Some(Revision::new(number));
        assert!(Precondition::Any.holds(None) && Precondition::Any.holds(at(3)));
        assert!(Precondition::Absent.holds(None) && !Precondition::Absent.holds(at(3)));
        assert!(!Precondition::Exists.holds(None) && Precondition::Exists.holds(at(3)));
        let third = Precondition::Revision(Revision::new(3));
        assert!(third.holds(at(3)) && !third.holds(at(4)) && !third.holds(None));
    }

    #[test]
    fn a_transaction_that_makes_no_sense_is_refused_with_the_reason() {
        let refused = |txn: Txn| txn.validate().unwrap_err().to_string();
        assert_eq!(refused(Txn::new()), "invalid request: a transaction must have at least one step");
        assert_eq!(refused(Txn::new().create("", "v")), "invalid request: a key must not be empty");
        assert_eq!(
            refused(Txn::new().create("/a", "1").delete("/a", Precondition::Any)),
            "invalid request: key \"/a\" is named twice in one transaction"
        );
        assert_eq!(
            refused(Txn::new().create(vec![b'k'; limits::MAX_KEY_BYTES + 1], "v")),
            format!(
                "the key has {} bytes, more than the {} this store takes",
                limits::MAX_KEY_BYTES + 1,
                limits::MAX_KEY_BYTES
            )
        );
        let many = (0..=limits::MAX_OPS).fold(Txn::new(), |txn, i| txn.create(format!("/{i}"), ""));
        assert_eq!(refused(many), "the transaction has 129 steps, more than the 128 this store takes");
    }
}
