//! Hostile clients and damaged stores: every request is answered in bounded time and memory, and other objects are not
//! affected.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/listening.rs"]
mod listening;

mod applies;
mod bodies;
mod connections;
mod corpus;
mod nesting;
mod rules;
mod unreadable;
mod work;
