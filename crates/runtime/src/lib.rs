//! The controller runtime: what Go's controller-runtime is to Go.

pub mod cache;
pub mod client;
pub mod controller;
pub mod endpoint;
pub mod event;
pub mod handler;
pub mod key;
pub mod kind;
pub mod leader;
pub mod manager;
pub mod metrics;
pub mod predicate;
pub mod queue;
pub mod reconcile;
pub mod recorder;
pub mod source;
pub mod util;
pub mod webhook;

pub use cache::{Cache, CacheOptions, InformerOptions};
pub use client::Client;
pub use controller::{Controller, ControllerOptions};
pub use event::Event;
pub use handler::Handler;
pub use key::{ObjectKey, Request};
pub use kind::{Form, Kind, Object, kind, metadata};
pub use manager::{
    Connect, IdleOptions, Manager, ManagerError, ManagerOptions, runnable, shutdown_on_signals,
};
pub use metrics::Metrics;
pub use predicate::Predicate;
pub use reconcile::{Action, Context, Reconciler, TerminalError};

/// Any error, of whatever library a reconciler uses.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
