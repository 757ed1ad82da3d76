//! The cases by topic. `suite.rs` lists them.

pub(super) mod compaction;
pub(super) mod crowds;
pub(super) mod history;
pub(super) mod lifetime;
pub(super) mod progress;
pub(super) mod ranges;
pub(super) mod searches;
pub(super) mod transactions;
pub(super) mod watching;
pub(super) mod writes;
