//! What the server answers to writes of custom resources and to patches, to the word.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod client;
mod custom_resources;
mod patches;
