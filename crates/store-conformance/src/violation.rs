//! A broken promise with its evidence.

use std::fmt;

/// A broken promise with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The promise, as a short sentence.
    pub promise: &'static str,
    /// The observation that breaks it.
    pub evidence: String,
}

impl Violation {
    /// Creates a violation of `promise`.
    pub fn new(promise: &'static str, evidence: impl Into<String>) -> Self {
        Self { promise, evidence: evidence.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken promise: {}\n  {}", self.promise, self.evidence)
    }
}

impl std::error::Error for Violation {}
