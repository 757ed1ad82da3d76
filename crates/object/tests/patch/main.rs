//! All types of patches: tables of results, and properties.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::needless_pass_by_value, reason = "documents are written where they are used")]

mod json;
mod merge;
mod properties;
mod schema;
mod strategic;
