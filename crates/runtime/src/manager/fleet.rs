//! Further clusters that a manager's controllers work with.

use crate::cluster::Cluster;

/// The other clusters of a manager, which come and go while it runs. A manager is idle only when these are, too: their
/// caches have seen everything, and the control planes that run in this process have nothing to do.
#[async_trait::async_trait]
pub trait Fleet: Send + Sync + 'static {
    /// The clusters whose kinds are watched now.
    fn clusters(&self) -> Vec<Cluster>;

    /// Waits until the clusters that are known to come or go have done so.
    async fn settled(&self);

    /// A counter that changes whenever a cluster comes or goes.
    fn activity(&self) -> u64;

    /// Descriptions of what [`settled`](Self::settled) waits for.
    fn busy(&self) -> Vec<String>;
}
