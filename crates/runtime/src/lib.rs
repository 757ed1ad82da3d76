//! The controller runtime.

pub mod cache;
pub mod client;
pub mod endpoint;
pub mod event;
pub mod key;
pub mod kind;
pub mod leader;
pub mod metrics;
pub mod queue;
pub mod recorder;
pub mod util;
pub mod webhook;

pub use event::Event;
pub use key::{ObjectKey, Request};
pub use kind::{Form, Kind, Object, kind, metadata};
pub use metrics::Metrics;

/// Any error, of whatever library a reconciler uses.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
