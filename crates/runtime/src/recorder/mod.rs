//! Events about objects, for people to read: `kubectl describe` shows them.
//!
//! An [`EventBroadcaster`] belongs to a manager: a queue, and a task that delivers what is in it. [`EventRecorder`]s put
//! events there, one for each component; they never wait and never fail. What does not fit is dropped and counted.
//!
//! Events that repeat become one with a count, and many that differ in their words alone become one as well, by the numbers
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
