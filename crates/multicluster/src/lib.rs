//! Controllers over many clusters that come and go.

mod builder;
mod engagement;
mod fleet;
mod index;
mod manager;
mod metrics;
mod options;
mod provider;
pub mod providers;
mod reconciler;
mod request;
mod state;

pub use builder::{AfterFor, BeforeFor, Builder, Controller};
#[doc(no_inline)]
pub use k1s_runtime::{Cluster, ClusterName, ClusterOptions};
pub use manager::MultiClusterManager;
pub use options::{ClusterLabel, MultiClusterOptions};
pub use provider::{Engager, Provider, ProviderError, Stuck};
pub use request::MultiRequest;
pub use state::{ClusterState, ClusterStatus};
