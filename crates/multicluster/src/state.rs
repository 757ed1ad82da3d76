//! The states of clusters, as they are reported.

use std::{fmt, time::Duration};

use k1s_runtime::{Cluster, ClusterName};

/// A cluster and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterStatus {
    /// Its name.
    pub name: ClusterName,
    /// Its state.
    pub state: ClusterState,
}

/// The state of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterState {
    /// Its caches are not synced yet.
    Engaging,
    /// Its caches are synced.
    Ready,
    /// It does not answer, or does not serve or allow what a controller watches. It is retried.
    Failing {
        /// Why.
        reason: String,
    },
    /// It comes and goes too often, and has to wait.
    BackingOff {
        /// For how long.
        remaining: Duration,
    },
    /// The work with it ends.
    Disengaging,
}

impl ClusterState {
    /// The states, as in metrics.
    pub(crate) const NAMES: [&'static str; 5] =
        ["engaging", "ready", "failing", "backing_off", "disengaging"];

    /// The name in metrics.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            ClusterState::Engaging => "engaging",
            ClusterState::Ready => "ready",
            ClusterState::Failing { .. } => "failing",
            ClusterState::BackingOff { .. } => "backing_off",
            ClusterState::Disengaging => "disengaging",
        }
    }

    /// The state of a cluster that is engaged for `age`.
    pub(crate) fn of(cluster: &Cluster, age: Duration, answer_within: Duration) -> ClusterState {
        if let Some((kind, problem)) = cluster.cache().problems().into_iter().next() {
            return ClusterState::Failing { reason: format!("{kind}: {problem}") };
        }
        match cluster.cache().unsynced().into_iter().next() {
            None => ClusterState::Ready,
            Some((kind, _)) if age >= answer_within => {
                ClusterState::Failing { reason: format!("no answer for {age:?}: {kind} is not synced") }
            }
            Some(_) => ClusterState::Engaging,
        }
    }
}

impl fmt::Display for ClusterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterState::Engaging => f.write_str("engaging"),
            ClusterState::Ready => f.write_str("ready"),
            ClusterState::Failing { reason } => write!(f, "failing: {reason}"),
            ClusterState::BackingOff { remaining } => write!(f, "backing off for {remaining:?}"),
            ClusterState::Disengaging => f.write_str("disengaging"),
        }
    }
}
