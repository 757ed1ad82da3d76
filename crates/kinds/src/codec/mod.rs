//! Typed JSON with the semantics of Go: decoding and encoding.

mod decode;
mod encode;
pub(crate) mod gotype;
mod quantity;
pub(crate) mod scalars;
mod unstructured;

#[cfg(test)]
mod tests;

pub use decode::{DecodeError, decode, decode_strict};
pub use encode::{complete, finish, would_drop};
pub use unstructured::from_unstructured;
