//! Kubernetes objects as JSON, and what can be said about them without asking anybody: no I/O, no tasks, no clock.
//!
//! - [`field`]: field errors and the way through a document that remembers where it is.
//! - [`names`], [`ip`]: the formats of names, keys, values and addresses.
//! - [`status`]: the `Status` that answers a request which cannot be served.

pub mod field;
pub mod ip;
pub mod names;
pub mod status;

pub use field::{At, Check, FieldError};
pub use status::Status;
