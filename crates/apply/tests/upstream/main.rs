//! The cases of structured-merge-diff and of kube-apiserver's field manager, as data: `cases/*.json`.
//!
//! Each case has the name of the upstream test that it is from. `README.md` in the parent folder counts them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod fieldpath;
mod known;
mod managed;
mod merge;
mod support;
mod typed;
