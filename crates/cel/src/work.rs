//! A bound on evaluations that belong together.

use std::cell::Cell;

use crate::error::EvalError;

/// What one evaluation may work beside its cost, if nobody says.
pub(crate) const ALONE: u64 = 10_000_000;

/// A bound for a call outside of an evaluation.
pub(crate) fn alone() -> Work {
    Work::new(ALONE)
}

/// A bound that evaluations share, such as those of all rules of an object: what they cost, and what upstream's costs do not
/// count, which are evaluations themselves, parts of values that are compared, items that are copied, and regular
/// expressions that are compiled.
///
/// A unit takes about as long as a unit of cost, so this bounds time.
#[derive(Debug)]
pub struct Work {
    left: Cell<u64>,
    exhausted: Cell<bool>,
}

impl Work {
    /// A bound of this many units.
    pub fn new(units: u64) -> Work {
        Work { left: Cell::new(units), exhausted: Cell::new(false) }
    }

    /// The units that are left.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Whether an evaluation was stopped because not enough was left. Its result is [`EvalError::CostLimit`].
    pub fn is_exhausted(&self) -> bool {
        self.exhausted.get()
    }

    pub(crate) fn take(&self, units: u64) -> Result<(), EvalError> {
        match self.left.get().checked_sub(units) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.left.set(0);
                self.exhausted.set(true);
                Err(EvalError::CostLimit)
            }
        }
    }
}
