//! Patches of all kinds: tables of what they do, and properties that hold for any of them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::needless_pass_by_value, reason = "documents are written where they are used")]

mod json;
mod merge;
mod properties;
mod schema;
mod strategic;
