//! Reads from the cache, writes to the server.
#![allow(dead_code)]
mod options;
mod written;
pub use options::ListOptions;
pub use written::Written;
