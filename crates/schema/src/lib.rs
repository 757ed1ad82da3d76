//! `CustomResourceDefinitions`: structural schemas, validation, defaulting and pruning. No I/O, no tasks, no clock.
//!
//! - [`crd`]: the `CustomResourceDefinition` itself: defaults, what may be created and updated, warnings.
//! - [`names`]: which names of a definition are accepted, and the conditions that say so.
//! - [`kind`]: a definition compiled into a [`CustomKind`] that serves requests.
//! - [`structural`]: one version's schema: pruning, defaulting and validation of custom resources.
//! - [`versions`]: the order of versions such as `v10 > v2 > v1 > v11beta2`.
//! - [`openapi`]: the schema as it is published.
//! - [`meta`]: the metadata of objects inside custom resources.

pub mod crd;
mod go;
mod go_regex;
pub mod kind;
mod lazy;
pub mod meta;
pub mod names;
mod names_rules;
pub mod openapi;
pub mod structural;
pub mod versions;

pub use go::settle_numbers;
pub use kind::{CustomKind, CustomVersion};
pub use lazy::Schema;
pub use structural::{DefaultsTooLarge, Structural};
