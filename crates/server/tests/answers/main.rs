//! The exact responses to writes of custom resources and to patches.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod client;
mod custom_resources;
mod embedded;
mod managers;
mod patches;
mod upstream;
