//! The server in the hands of those who mean it ill: what they send, and how.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod connections;
mod work;
