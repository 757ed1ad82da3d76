//! The controller runtime: what Go's controller-runtime is to Go.
//!
//! A controller makes the world what objects ask for. It is told a name, looks at what there is, compares it with what
//! should be, and acts; when it failed, or something has changed, it looks again. This crate is everything around that.
//! It needs only a `kube::Client`: the embedded control plane, a real cluster, or any other server of Kubernetes' API.
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
//!                     tracing::info!(%request, keys = map.data.iter().flatten().count(), "looked at");
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
//! | [`Manager`] | shares client, cache, metrics among controllers; starts and stops them in order; [`run_until_idle`](Manager::run_until_idle) for programs that do their work and end |
//! | [`Controller`] | [built](controller::Builder) from what it is [for](controller::Builder::for_), what it [owns](controller::Builder::owns) and [watches](controller::Builder::watches) |
//! | [`Reconciler`] | what you write: a type or a function; its result is an [`Action`] or an error, [`TerminalError`] is not tried again; its [`Context`] says why it runs |
//! | [`source`], [`handler`], [`predicate`] | where events come from, which requests they queue, which of them count |
//! | [`queue`] | priorities, one run per key at a time, delays, rate limits |
//! | [`Cache`] | informers that are shared, survive what watches do, and show their client's own writes |
//! | [`Client`] | reads from the cache, writes to the server; [`util`] has helpers for owners, finalizers, conditions, conflicts |
//! | [`leader`] | of several replicas, one works |
//! | [`recorder`] | events for people |
//! | `webhook` | admission and conversion for your own kinds |
//! | [`endpoint`], [`metrics`] | health, readiness, metrics, and what Go calls pprof |
//!
//! # What it may not do
//!
//! It knows nothing of the server in this workspace, and talks to any through HTTP's semantics alone. Time, tasks, ids and
//! randomness come from [`k1s_env::Env`], so a test can own them. There is nothing global to a process: two managers never
//! meet, not in metrics, not in names.

mod announce;
pub mod cache;
pub mod client;
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
pub mod source;
#[cfg(feature = "tls")]
pub mod tls;
pub mod util;
#[cfg(feature = "webhook")]
pub mod webhook;

pub use cache::{Cache, CacheOptions, InformerOptions};
pub use client::Client;
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

/// Any error, of whatever library a reconciler uses.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
