//! The suite every backend passes, a third party's too.
//!
//! A backend says how to make an empty store; the suite does the rest. Its test file is this long:
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
//! with, in its `Cargo.toml`,
//!
//! ```toml
//! [dev-dependencies]
//! k1s-store-conformance.workspace = true
//! ```
//!
//! A store that survives being closed is made with [`Fresh::reopenable`]: the closure opens the same data
//! each time it is called, and what it owns (a temporary directory, a server) lives as long as the case.
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
//!         // Fewer keys and seeds where a write costs more.
//!         Profile { many_keys: 20_000, ..Profile::default() }
//!     }
//! }
//! ```
//!
//! What a fresh store must be: empty, written to by nobody else ([`Profile::shared`] lifts that for other key
//! spaces of one server), and keeping a history of at least 20,000 revisions that nobody else compacts. A case
//! runs on a tokio runtime of its own with several threads, and a store is made inside it.
//!
//! Beyond the fixed cases there are four searches, each reproducible from its seed. The suite runs each with a
//! few seeds ([`Profile::seeds`]); a backend's own tests can run them with many:
//!
//! - [`model`] compares a random sequence of operations with a simple model, answer by answer, and shortens
//!   the sequence that fails. [`replay`] runs a sequence made elsewhere (by proptest, say).
//! - [`watch_promises`] has many writers, watches that drop and resume, and compaction, all at once. What
//!   was seen is judged by one checker for each promise of [`Watch`](k1s_store::Watch): see [`watched`].
//! - [`linearizability`] has clients race for a few keys, and looks for an order of their operations that
//!   explains every answer: see [`linear`].
//!
//! [`cases`] lists the cases for programs that want to run them in another way.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "this is a test suite: it reports by panicking"
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
