//! A promise that was broken, with the evidence.

use std::fmt;

/// A promise that was broken, with the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The promise, in a word or a sentence.
    pub promise: &'static str,
    /// What was seen that breaks it.
    pub evidence: String,
}

impl Violation {
    /// A broken promise.
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
