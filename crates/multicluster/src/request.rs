//! Requests that name their cluster.

use std::fmt;

use k1s_runtime::{ClusterName, Request};

/// A request of one of many clusters. Displayed as `cluster/namespace/name`; without the cluster, if that is the manager's own.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MultiRequest<R = Request> {
    /// The cluster; empty for the manager's own.
    pub cluster: ClusterName,
    /// The request in that cluster.
    pub request: R,
}

impl<R> MultiRequest<R> {
    /// A request of a cluster.
    pub fn new(cluster: impl Into<ClusterName>, request: R) -> MultiRequest<R> {
        MultiRequest { cluster: cluster.into(), request }
    }
}

impl<R: fmt::Display> fmt::Display for MultiRequest<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.cluster.is_local() {
            write!(f, "{}/", self.cluster)?;
        }
        self.request.fmt(f)
    }
}

impl<R: fmt::Debug> fmt::Debug for MultiRequest<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.cluster.is_local() {
            write!(f, "{}/", self.cluster)?;
        }
        self.request.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use k1s_runtime::ObjectKey;

    use super::*;

    #[test]
    fn a_request_is_displayed_with_its_cluster() {
        let request = MultiRequest::new("team-a", ObjectKey::namespaced("default", "web"));
        assert_eq!(request.to_string(), "team-a/default/web");
        assert_eq!(format!("{request:?}"), "team-a/default/web");
        assert_eq!(MultiRequest::new("", ObjectKey::cluster("web")).to_string(), "web");
    }
}
