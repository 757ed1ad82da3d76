//! Typed JSON as Go knows it: what its decoder does to a document, and what its encoder prints.

mod decode;
mod encode;
pub(crate) mod gotype;
mod quantity;
pub(crate) mod scalars;
mod unstructured;

#[cfg(test)]
mod tests;

pub use decode::{DecodeError, decode, decode_strict};
pub use encode::finish;
pub use unstructured::from_unstructured;
