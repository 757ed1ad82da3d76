//! Chaos: an operator that owns trees of objects, against a server that restarts and a network that drops, delays
//! and cuts connections. Whatever fails, it converges to the same state as without faults and leaves nothing behind.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the seed is needed to reproduce a failure")]

mod network;
mod operator;
mod own;
#[cfg(unix)]
mod processes;
mod script;
mod simulated;
mod state;
