//! No rule panics, whatever the document: rules run on input that clients control.

mod random;
mod variants;
mod workloads;
