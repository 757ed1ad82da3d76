//! The options of a multi-cluster manager.

use std::time::Duration;

/// The options of a [`MultiClusterManager`](crate::MultiClusterManager), besides those of its
/// [`Manager`](k1s_runtime::Manager).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MultiClusterOptions {
    /// Whether metrics and logs name the cluster. On by default; `Off` for large fleets, whose metrics would be too many.
    pub cluster_label: ClusterLabel,
    /// Maximum time that the running reconciles of a cluster have to finish when it is disengaged; then they are cancelled.
    /// 30 s by default.
    pub disengage_timeout: Duration,
    /// Time after which a cluster whose caches have not synced is reported as failing. 10 s by default.
    pub answer_within: Duration,
    /// Duration of a reconcile after which it counts as slow: another worker takes requests until it ends, so that clusters that
    /// do not answer do not delay the others. 5 s by default.
    pub slow_after: Duration,
    /// Maximum number of slow reconciles of a controller for which there is another worker. 100 by default.
    pub max_slow: usize,
    /// Whether the manager is ready only if no cluster fails. Off by default: `/readyz?verbose` and the metrics name the failing
    /// ones, and the work with the others continues.
    pub ready_needs_clusters: bool,
    /// How long a cluster that comes and goes has to wait before it is engaged again: nothing the first time, then this,
    /// doubled each time up to `backoff_max`. 1 s by default.
    pub backoff_initial: Duration,
    /// Maximum wait. 5 minutes by default.
    pub backoff_max: Duration,
    /// A cluster that was engaged for this long does not count as one that comes and goes. 1 minute by default.
    pub stable_after: Duration,
}

impl Default for MultiClusterOptions {
    fn default() -> MultiClusterOptions {
        MultiClusterOptions {
            cluster_label: ClusterLabel::On,
            disengage_timeout: Duration::from_secs(30),
            answer_within: Duration::from_secs(10),
            slow_after: Duration::from_secs(5),
            max_slow: 100,
            ready_needs_clusters: false,
            backoff_initial: Duration::from_secs(1),
            backoff_max: Duration::from_secs(300),
            stable_after: Duration::from_secs(60),
        }
    }
}

impl MultiClusterOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> MultiClusterOptions {
        MultiClusterOptions::default()
    }

    /// Sets [`cluster_label`](Self::cluster_label).
    #[must_use]
    pub fn with_cluster_label(mut self, label: ClusterLabel) -> MultiClusterOptions {
        self.cluster_label = label;
        self
    }

    /// Sets [`disengage_timeout`](Self::disengage_timeout).
    #[must_use]
    pub fn with_disengage_timeout(mut self, timeout: Duration) -> MultiClusterOptions {
        self.disengage_timeout = timeout;
        self
    }

    /// Sets [`answer_within`](Self::answer_within).
    #[must_use]
    pub fn with_answer_within(mut self, limit: Duration) -> MultiClusterOptions {
        self.answer_within = limit;
        self
    }

    /// Sets [`slow_after`](Self::slow_after).
    #[must_use]
    pub fn with_slow_after(mut self, after: Duration) -> MultiClusterOptions {
        self.slow_after = after;
        self
    }

    /// Sets [`max_slow`](Self::max_slow).
    #[must_use]
    pub fn with_max_slow(mut self, max: usize) -> MultiClusterOptions {
        self.max_slow = max;
        self
    }

    /// Sets [`ready_needs_clusters`](Self::ready_needs_clusters).
    #[must_use]
    pub fn with_ready_needs_clusters(mut self, needed: bool) -> MultiClusterOptions {
        self.ready_needs_clusters = needed;
        self
    }

    /// Sets [`stable_after`](Self::stable_after).
    #[must_use]
    pub fn with_stable_after(mut self, after: Duration) -> MultiClusterOptions {
        self.stable_after = after;
        self
    }

    /// Sets [`backoff_initial`](Self::backoff_initial) and [`backoff_max`](Self::backoff_max).
    #[must_use]
    pub fn with_backoff(mut self, initial: Duration, max: Duration) -> MultiClusterOptions {
        (self.backoff_initial, self.backoff_max) = (initial, max);
        self
    }
}

/// Whether metrics and logs name the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClusterLabel {
    /// There are metrics of reconciles and queues with a label `cluster`, and the spans of reconciles have a field of that name.
    #[default]
    On,
    /// Metrics are of all clusters together.
    Off,
}
