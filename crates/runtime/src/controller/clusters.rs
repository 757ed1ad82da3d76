//! Requests of several clusters in one controller.

use std::time::Duration;

use crate::{cluster::Cluster, queue::Key};

/// When and how often workers are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Substitutes {
    /// The duration of a run after which its worker is replaced until it ends.
    pub after: Duration,
    /// Maximum number of workers that are replaced at once.
    pub max: usize,
}

/// Finds the cluster that a request belongs to, for a controller whose requests are of several clusters. See
/// [`Builder::across`](super::Builder::across).
pub trait RequestClusters<R: Key>: Send + Sync + 'static {
    /// The cluster of a request. `None` if it is gone: the request is dropped.
    fn cluster(&self, request: &R) -> Option<Cluster>;

    /// A number for the cluster of a request. The queue takes turns between requests of the same priority with different
    /// numbers.
    fn flow(&self, request: &R) -> u64;

    /// When and how often a worker whose run takes long is replaced meanwhile; `None` is never.
    ///
    /// A run waits for its cluster: without a replacement, a few runs of a cluster that does not answer would delay the requests
    /// of all others. Of one cluster, at most `max_concurrent_reconciles` run at once, however many workers there are.
    fn substitutes(&self) -> Option<Substitutes>;

    /// Whether the spans of reconciles have a field `cluster`.
    fn in_logs(&self) -> bool;

    /// Whether the queue counts by [`flow`](Self::flow): see [`QueueOptions::count_flows`](crate::queue::QueueOptions::count_flows).
    fn counts(&self) -> bool {
        false
    }
}
