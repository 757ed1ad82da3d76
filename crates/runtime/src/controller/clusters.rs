//! Requests of several clusters in one controller.

use crate::{cluster::Cluster, queue::Key};

/// Finds the cluster that a request belongs to, for a controller whose requests are of several clusters. See
/// [`Builder::across`](super::Builder::across).
pub trait RequestClusters<R: Key>: Send + Sync + 'static {
    /// The cluster of a request. `None` if it is gone: the request is dropped.
    fn cluster(&self, request: &R) -> Option<Cluster>;

    /// A number for the cluster of a request. The queue takes turns between requests of the same priority with different
    /// numbers.
    fn flow(&self, request: &R) -> u64;

    /// Whether the spans of reconciles have a field `cluster`.
    fn in_logs(&self) -> bool;
}
