//! Kubernetes objects as JSON, and what can be said about them without asking anybody: no I/O, no tasks, no clock.
//!
//! - [`field`]: field errors and the way through a document that remembers where it is.
//! - [`status`]: the `Status` that answers a request which cannot be served.

pub mod field;
pub mod status;

pub use field::{At, Check, FieldError};
pub use status::Status;
