//! Strings, borrowed from the input or shared.

use std::{fmt, ops::Deref, sync::Arc};

/// A string: of the input or the program, or one that an expression made.
#[derive(Clone)]
pub enum Text<'a> {
    /// A part of the input or of the program.
    Borrowed(&'a str),
    /// A string of its own.
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text<'_> {}
