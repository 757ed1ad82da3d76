//! Events about objects, for humans: `kubectl describe` shows them.
//!
//! The [`EventBroadcaster`] of a manager has a queue and a task that delivers its events. [`EventRecorder`]s, one per
//! component, add to the queue; they never wait and never fail. Events that do not fit are dropped and counted.
//!
//! Repeated events become one with a count, and many events that differ only in their note are combined, with the limits
//! of client-go; see [`EventOptions`].
//!
//! ```
//! # use k8s_openapi::api::core::v1::Pod;
//! # async fn example(client: kube::Client, pod: Pod) -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use k1s_env::{Env, WorkTracker};
//! use k1s_runtime::recorder::{EventBroadcaster, EventOptions, EventType, NewEvent};
//!
//! let env = Env::system();
//! let tracker = WorkTracker::new(env.clone());
//! let events = EventBroadcaster::start(client, env, &tracker, EventOptions::default());
//!
//! let recorder = events.recorder("widget-controller");
//! recorder.event(&pod, EventType::Normal, "Started", "Started the container");
//! recorder.publish(NewEvent::about(&pod, EventType::Warning, "Unhealthy", "No answer").action("Probing"));
//!
//! events.shutdown(Duration::from_secs(10)).await?;
//! # Ok(())
//! # }
//! ```

mod broadcaster;
mod correlator;
mod delivery;
mod event;
mod lru;
mod options;
mod sink;

pub use broadcaster::{EventBroadcaster, EventRecorder, Undelivered};
pub use delivery::EventStats;
pub use event::{EventType, NewEvent};
pub use options::{EventApi, EventOptions};
