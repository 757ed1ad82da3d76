//! What a hostile client sends, and what a damaged store holds: everything is answered, in bounded time and memory, and
//! nothing takes other objects with it. Each module is a theme.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod bodies;
mod connections;
mod corpus;
mod nesting;
mod unreadable;
mod work;
