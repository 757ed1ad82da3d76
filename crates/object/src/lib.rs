//! Kubernetes objects as JSON, and the rules that need nothing else: no I/O, no tasks, no clock.
//!
//! - [`columns`], [`jsonpath`]: the tables of custom resources.
//! - [`decode`], [`yaml`]: request bodies to JSON values.
//! - [`depth`]: the limit on the nesting of objects.
//! - [`field`]: field errors, and positions in a document that know their path.
//! - [`gvk`]: the names of kinds and resources.
//! - [`meta`]: validation of `metadata`.
//! - [`names`], [`ip`]: the formats of names, keys, values and addresses.
//! - [`quantity`]: quantities as `resource.Quantity` has them.
//! - [`selector`]: label and field selectors.
//! - [`patch`]: JSON Patch, JSON Merge Patch and strategic merge patch.
//! - [`status`]: `metav1.Status`, the response to a failed request.
//! - [`time`]: times, durations and ages.

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
