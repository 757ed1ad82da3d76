//! Bytes, borrowed from the program or shared.

use std::{ops::Deref, sync::Arc};

/// A sequence of bytes.
#[derive(Clone, Debug)]
pub enum Bytes<'a> {
    /// A constant of the program.
    Borrowed(&'a [u8]),
    /// Bytes of their own.
    Shared(Arc<[u8]>),
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}
