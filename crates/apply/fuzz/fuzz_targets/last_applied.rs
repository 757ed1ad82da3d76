//! The annotation of a client-side apply from bytes.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code, reason = "each target has one body")]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::last_applied(data));
