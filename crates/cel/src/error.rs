//! What can be wrong with an expression: when it is compiled, and when it runs.

use std::fmt;

use thiserror::Error;

/// A mistake in the text of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The line, from 1; 0 if the issue has no place.
    pub line: usize,
    /// The column, from 1, in characters; 0 if there is none.
    pub column: usize,
    /// What is wrong, in upstream's words.
    pub message: String,
}

/// Why an expression does not compile: one issue or more, in the order of their places.
///
/// Displayed as upstream shows them, with the line of the source and a mark below it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct CompileError {
    issues: Vec<Issue>,
    more: usize,
    source_text: Box<str>,
}

/// Maximum number of issues in an error.
const MAX_ISSUES: usize = 100;

/// Longer lines of the source are not shown.
const MAX_SNIPPET: usize = 16_384;

impl CompileError {
    /// An error about a source text. Issues are ordered by their places.
    pub(crate) fn new(source: &str, mut issues: Vec<Issue>) -> Self {
        let more = issues.len().saturating_sub(MAX_ISSUES);
        issues.truncate(MAX_ISSUES);
        issues.sort_by_key(|issue| (issue.line, issue.column));
        Self { issues, more, source_text: source.into() }
    }

    /// What is wrong.
    pub fn issues(&self) -> &[Issue] {
        &self.issues
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, issue) in self.issues.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            if issue.line == 0 {
                write!(f, "ERROR: <input>:-1:0: {}", issue.message)?;
                continue;
            }
            write!(f, "ERROR: <input>:{}:{}: {}", issue.line, issue.column, issue.message)?;
            let line = self.source_text.split('\n').nth(issue.line - 1);
            let shown = line.filter(|line| issue.column > 0 && line.len() <= MAX_SNIPPET);
            let Some(line) = shown else { continue };
            write!(f, "\n | {}\n | ", line.replace('\t', " "))?;
            let mut rest = line.chars();
            // Wide characters get wide marks, so that the mark is below its place.
            for shown in rest.by_ref().take(issue.column - 1) {
                f.write_str(if shown.is_ascii() { "." } else { "\u{ff0e}" })?;
            }
            f.write_str(if rest.next().is_none_or(|marked| marked.is_ascii()) { "^" } else { "\u{ff3e}" })?;
        }
        if self.more > 0 {
            write!(f, "\n{} more errors were truncated", self.more)?;
        }
        Ok(())
    }
}

/// Why an expression has no result. The words are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The evaluation cost more than it may. Unlike other errors, `||` and `&&` do not hide it.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimit,
    /// No overload of a function takes these values.
    #[error("no such overload")]
    NoSuchOverload,
    /// An integer was divided by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// The remainder of a division by zero.
    #[error("modulus by zero")]
    ModulusByZero,
    /// An integer out of its range.
    #[error("integer overflow")]
    IntOverflow,
    /// An unsigned integer out of its range.
    #[error("unsigned integer overflow")]
    UintOverflow,
    /// A duration out of its range.
    #[error("duration overflow")]
    DurationOverflow,
    /// A timestamp out of its range: the years 1 to 9999.
    #[error("timestamp overflow")]
    TimestampOverflow,
    /// A map or an object has no such key.
    #[error("no such key: {0}")]
    NoSuchKey(Box<str>),
    /// A list has no such index.
    #[error("index out of bounds: {0}")]
    IndexOutOfBounds(Box<str>),
    /// Anything else.
    #[error("{0}")]
    Message(Box<str>),
}

impl EvalError {
    /// An error with these words.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Message(message.into().into_boxed_str())
    }
}
