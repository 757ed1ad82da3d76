//! `CustomResourceDefinitions`: structural schemas, validation, defaulting and pruning. No I/O, no tasks, no
//! clock.
//!
//! - [`crd`]: the `CustomResourceDefinition` itself: defaults, preparation, validation, warnings.
//! - [`conversion`]: the reviews of conversion webhooks.
//! - [`names`]: the accepted names of a definition, and its conditions.
//! - [`kind`]: a definition compiled into a [`CustomKind`] that serves requests.
//! - [`structural`]: the schema of a version: pruning, defaulting and validation of custom resources.
//! - [`versions`]: the priority of versions: `v10 > v2 > v1 > v11beta2`.
//! - [`openapi`]: the published schema.
//! - [`meta`]: the metadata of embedded objects.

mod apply;
pub mod conversion;
pub mod crd;
mod field_path;
mod go;
pub mod kind;
mod lazy;
pub mod meta;
pub mod names;
pub mod openapi;
pub mod structural;
pub mod versions;

pub use apply::ApplySchema;

pub use go::settle_numbers;
pub use kind::{CustomKind, CustomVersion};
pub use lazy::Schema;
pub use structural::{DefaultsTooLarge, Structural};
