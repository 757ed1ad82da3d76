//! The conformance suite for store backends, including third-party ones.
//!
//! A backend provides empty stores; the suite does the rest. The backend's test file:
//!
//! ```no_run
//! use std::sync::Arc;
//! use async_trait::async_trait;
//! use k1s_store::MemoryStore;
//! use k1s_store_conformance::{Backend, Fresh};
//!
//! struct Memory;
//!
//! #[async_trait]
//! impl Backend for Memory {
//!     async fn fresh(&self) -> Fresh {
//!         Fresh::new(Arc::new(MemoryStore::default()))
//!     }
//! }
//!
//! // One #[test] for each case, named after the promise it checks.
//! k1s_store_conformance::conformance_tests!(Memory);
//! ```
//!
//! and in its `Cargo.toml`:
//!
//! ```toml
//! [dev-dependencies]
//! k1s-store-conformance.workspace = true
//! ```
//!
//! A store that survives being closed is created with [`Fresh::reopenable`]: the closure opens the same data
//! each time it is called, and whatever it owns (a temporary directory, a server) lives as long as the case.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use async_trait::async_trait;
//! # use k1s_store::{MemoryStore, Store};
//! # use k1s_store_conformance::{Backend, Fresh, Profile};
//! # struct Directory;
//! # impl Directory { fn new() -> Self { Self } }
//! # async fn open(_: &Directory) -> Arc<dyn Store> { Arc::new(MemoryStore::default()) }
//! # struct Disk;
//! #[async_trait]
//! impl Backend for Disk {
//!     async fn fresh(&self) -> Fresh {
//!         let directory = Arc::new(Directory::new());
//!         Fresh::reopenable(move || {
//!             let directory = directory.clone();
//!             async move { open(&directory).await }
//!         })
//!         .await
//!     }
//!
//!     fn profile(&self) -> Profile {
//!         // Fewer keys if writes are expensive.
//!         Profile { many_keys: 20_000, ..Profile::default() }
//!     }
//! }
//! ```
//!
//! A fresh store must be empty, have no other writers ([`Profile::shared`] lifts that for other key spaces of
//! the same server), and keep at least 20,000 revisions of history without being compacted by anything else.
//! Each case runs on its own multi-threaded tokio runtime and creates its stores there.
//!
//! Beyond the fixed cases there are random searches, each reproducible from its seed. The suite runs each
//! with a few seeds ([`Profile::seeds`]); a backend's own tests can run them with many:
//!
//! - [`model`] compares a random sequence of operations with a simple model, result by result, and shrinks a
//!   failing sequence. [`replay`] runs a sequence generated elsewhere (by proptest, say).
//! - [`watch_promises`] runs many writers, watches that drop and resume, and compaction concurrently. The
//!   recorded items are checked by one checker for each promise of [`Watch`](k1s_store::Watch): see [`watched`].
//! - [`linearizability`] runs concurrent clients on a few keys, and searches for an order of their operations
//!   that explains every result: see [`linear`].
//!
//! [`cases`] lists the cases for programs with their own test runner.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test suite reports failures by panicking"
)]

mod backend;
mod cases;
mod fixture;
pub mod linear;
mod model;
mod probe;
mod suite;
mod support;
mod violation;
pub mod watched;

pub use backend::{Backend, Profile};
pub use fixture::Fresh;
pub use linear::linearizability;
pub use model::{Act, At, If, Step, StepOp, model, replay};
pub use suite::{Case, cases, run, run_async};
pub use violation::Violation;
pub use watched::watch_promises;
