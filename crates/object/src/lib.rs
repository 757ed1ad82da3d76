//! Kubernetes objects as JSON, and what can be said about them without asking anybody: no I/O, no tasks, no clock.
//!
//! - [`field`]: field errors and the way through a document that remembers where it is.
//! - [`patch`]: JSON Patch, JSON Merge Patch and strategic merge patch.
//! - [`status`]: the `Status` that answers a request which cannot be served.

pub mod field;
pub mod patch;
pub mod status;

pub use field::{At, Check, FieldError};
pub use status::Status;
