//! Kubernetes objects as JSON, and what can be said about them without asking anybody: no I/O, no tasks, no clock.
//!
//! - [`columns`], [`jsonpath`]: the tables of custom resources.
//! - [`decode`], [`yaml`]: request bodies to JSON values.
//! - [`depth`]: how deeply objects may be nested.
//! - [`field`]: field errors and the way through a document that remembers where it is.
//! - [`gvk`]: the names of kinds and resources.
//! - [`meta`]: the rules of `metadata`.
//! - [`names`], [`ip`]: the formats of names, keys, values and addresses.
//! - [`quantity`]: amounts of resources.
//! - [`selector`]: label and field selectors.
//! - [`patch`]: JSON Patch, JSON Merge Patch and strategic merge patch.
//! - [`status`]: the `Status` that answers a request which cannot be served.
//! - [`time`]: points in time, durations and ages.

pub mod columns;
pub mod decode;
pub mod depth;
pub mod field;
pub mod gvk;
pub mod ip;
pub mod jsonpath;
pub mod meta;
pub mod names;
pub mod patch;
pub mod quantity;
pub mod selector;
pub mod status;
pub mod time;
pub mod yaml;
mod yaml_out;

pub use field::{At, Check, FieldError};
pub use status::Status;
pub use yaml_out::to_string as to_yaml;
