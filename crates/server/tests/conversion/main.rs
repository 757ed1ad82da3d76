//! Custom resources of several versions, which a webhook converts.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod admission;
mod failures;
#[path = "../common/https.rs"]
mod https;
mod migration;
mod parameters;
mod remote;
mod storage;
mod upstream;
mod verbs;
mod views;
mod world;
