//! The controller runtime: Go's controller-runtime, in Rust.
//!
//! A controller brings the actual state to the desired state. It receives the key of an object, reads the current state,
//! compares it with the desired one, and acts; after a failure or a change it runs again. This crate provides everything
//! around that. It needs only a `kube::Client`: for the embedded control plane, a real cluster, or any other server of the
//! Kubernetes API.
//!
//! ```no_run
//! use k1s_runtime::{Action, BoxError, Context, Controller, Manager, ManagerOptions, Request, kind, shutdown_on_signals};
//! use k8s_openapi::api::core::v1::ConfigMap;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), BoxError> {
//!     let manager = Manager::new(kube::Client::try_default().await?, ManagerOptions::default())?;
//!     let client = manager.client();
//!     Controller::managed_by(&manager).for_(kind::<ConfigMap>()).complete(
//!         move |request: Request, _: Context| {
//!             let client = client.clone();
//!             async move {
//!                 if let Some(map) = client.get_opt::<ConfigMap>(&request).await? {
//!                     tracing::info!(%request, keys = map.data.iter().flatten().count(), "reconciled");
//!                 }
//!                 Ok::<_, BoxError>(Action::done())
//!             }
//!         },
//!     )?;
//!     manager.start(shutdown_on_signals(manager.env())).await?;
//!     Ok(())
//! }
//! ```
//!
//! # A tour
//!
//! | | |
//! |---|---|
//! | [`Manager`] | shares client, cache and metrics among controllers; starts and stops them in order; [`run_until_idle`](Manager::run_until_idle) for programs that do their work and exit |
//! | [`Controller`] | [built](controller::Builder) from the kind it is [for](controller::Builder::for_), and those it [owns](controller::Builder::owns) and [watches](controller::Builder::watches) |
//! | [`Reconciler`] | your code: a type or a function; returns an [`Action`] or an error, which is retried unless it is a [`TerminalError`]; its [`Context`] has the causes of the run |
//! | [`source`], [`handler`], [`predicate`] | where events come from, which requests they queue, which of them are filtered out |
//! | [`queue`] | priorities, one run per key at a time, delays, rate limits |
//! | [`Cache`] | shared informers that recover from failed watches, and include their client's own writes |
//! | [`Client`] | reads from the cache, writes to the server; [`util`] has helpers for owners, finalizers, conditions, conflicts |
//! | [`leader`] | leader election among replicas |
//! | [`sharding`] | replicas that share a fleet of clusters, or the keys of a controller |
//! | [`recorder`] | events for humans |
//! | [`changes`] | a record of changes, and a feed of it for many readers |
//! | `webhook` | admission and conversion for your own kinds |
//! | [`endpoint`], [`metrics`] | health, readiness, metrics, and the equivalent of Go's pprof |
//!
//! # What it may not do
//!
//! The runtime does not depend on the server in this workspace; it uses the Kubernetes API over HTTP only. Time, tasks, ids
//! and randomness come from [`k1s_env::Env`], so that tests can control them. There is no process-global state: two managers
//! share nothing, neither metrics nor names.

mod announce;
pub mod cache;
pub mod changes;
pub mod client;
pub mod cluster;
pub mod controller;
mod debug;
pub mod endpoint;
pub mod event;
pub mod handler;
pub mod key;
pub mod kind;
pub mod leader;
pub mod manager;
pub mod metrics;
mod owners;
mod panics;
pub mod predicate;
pub mod queue;
pub mod reconcile;
pub mod recorder;
pub mod sharding;
pub mod source;
#[cfg(feature = "tls")]
pub mod tls;
pub mod util;
#[cfg(feature = "webhook")]
pub mod webhook;

pub use cache::{Cache, CacheOptions, InformerOptions};
pub use client::Client;
pub use cluster::{Cluster, ClusterName, ClusterOptions};
pub use controller::{Controller, ControllerDefaults, ControllerOptions};
pub use event::Event;
pub use handler::Handler;
pub use key::{ObjectKey, Request};
pub use kind::{Form, GroupKind, Kind, Object, TypedObject, kind, metadata};
pub use manager::{
    Connect, IdleOptions, Manager, ManagerError, ManagerOptions, runnable, shutdown_on_signals,
};
pub use metrics::Metrics;
pub use predicate::Predicate;
pub use reconcile::{Action, Context, Reconciler, TerminalError};

/// Any error, from any library that a reconciler uses.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
