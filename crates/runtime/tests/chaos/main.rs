//! Chaos: an operator that owns trees of objects, against a server that is restarted and a network that loses, delays and
//! cuts. Whatever happens, it comes to the state that it comes to without faults, and leaves nothing behind.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the seed is for whom it fails")]

mod network;
mod operator;
mod own;
#[cfg(unix)]
mod processes;
mod script;
mod simulated;
mod state;
