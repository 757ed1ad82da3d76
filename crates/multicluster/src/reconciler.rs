//! Reconcilers in a multi-cluster controller: their runs count as work with their cluster.

use std::{future::Future, sync::Arc};

use k1s_env::Instant;
use k1s_runtime::{Action, BoxError, Cluster, Context, Reconciler, Request};

use crate::{
    MultiRequest,
    engagement::Live,
    metrics::{OfCluster, ReconcileMetrics},
};

/// What runs of a controller have in common.
pub(crate) struct Runs {
    pub(crate) live: Arc<Live>,
    pub(crate) metrics: ReconcileMetrics,
    pub(crate) controller: Arc<str>,
}

impl Runs {
    /// Runs a reconcile, unless its cluster is gone. It is cancelled if it does not end in time when its cluster goes.
    async fn run<E: Into<BoxError>>(
        &self,
        cluster: &Cluster,
        reconcile: impl Future<Output = Result<Action, E>>,
    ) -> Result<Action, BoxError> {
        let name = cluster.name();
        // The name may stand for another engagement by now. That one has queued what there is to do, and a run for the old one
        // would not count as work with it.
        let engagement = self.live.get(name).filter(|now| now.cluster.is_same(cluster));
        let Some(running) = engagement.and_then(|engagement| engagement.begin()) else {
            return Ok(Action::done());
        };
        let metrics =
            running.engagement().metrics(&self.controller, || self.metrics.of(&self.controller, name));
        let began = cluster.env().now();
        let mut counted = metrics.map(|metrics| Counted { metrics, cluster, began, success: None });
        tokio::select! {
            biased;
            ended = reconcile => {
                if let Some(counted) = &mut counted {
                    counted.success = Some(ended.is_ok());
                }
                ended.map_err(Into::into)
            }
            () = running.abort().cancelled() => Err("cancelled: the cluster was disengaged".into()),
        }
    }
}

/// Counts a run when it ends, in whatever way.
struct Counted<'a> {
    metrics: Arc<OfCluster>,
    cluster: &'a Cluster,
    began: Instant,
    success: Option<bool>,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.metrics.count(self.success, self.cluster.env().now() - self.began);
    }
}

/// A reconciler that was written for one cluster.
pub(crate) struct Uniform<T> {
    pub(crate) runs: Runs,
    pub(crate) reconciler: T,
}

impl<T: Reconciler<Request>> Reconciler<MultiRequest> for Uniform<T> {
    type Error = BoxError;

    async fn reconcile(&self, request: MultiRequest, context: Context) -> Result<Action, BoxError> {
        let cluster = context.cluster().clone();
        self.runs.run(&cluster, self.reconciler.reconcile(request.request, context)).await
    }
}

/// A reconciler that knows of clusters.
pub(crate) struct Aware<T> {
    pub(crate) runs: Runs,
    pub(crate) reconciler: T,
}

impl<T: Reconciler<MultiRequest>> Reconciler<MultiRequest> for Aware<T> {
    type Error = BoxError;

    async fn reconcile(&self, request: MultiRequest, context: Context) -> Result<Action, BoxError> {
        let cluster = context.cluster().clone();
        self.runs.run(&cluster, self.reconciler.reconcile(request, context)).await
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use k1s_runtime::{ClusterOptions, Metrics};
    use kube::client::Body;

    use super::*;
    use crate::{ClusterLabel, MultiClusterOptions, engagement::Engagement};

    fn cluster(name: &str) -> Cluster {
        let service = tower::service_fn(|_: http::Request<Body>| async {
            Ok::<_, Infallible>(http::Response::new(Body::empty()))
        });
        Cluster::new(name, kube::Client::new(service, "default"), ClusterOptions::default())
    }

    /// A request is taken with the cluster that its name stood for then. If that one was replaced before the reconciler runs, its
    /// client is stale, and nobody would wait for the run when the cluster goes.
    #[tokio::test]
    async fn a_run_for_a_cluster_that_was_replaced_does_not_begin() {
        let (old, new) = (cluster("a"), cluster("a"));
        let live = Arc::new(Live::new(cluster(""), &MultiClusterOptions::new()));
        let metrics = ReconcileMetrics::register(&Metrics::new(), ClusterLabel::Off);
        let runs = Runs { live: Arc::clone(&live), metrics, controller: "test".into() };
        let begun = AtomicUsize::new(0);
        let run = async |cluster: &Cluster| {
            let reconcile = async {
                begun.fetch_add(1, Ordering::Relaxed);
                Ok::<_, BoxError>(Action::done())
            };
            let _ = runs.run(cluster, reconcile).await.unwrap();
            begun.load(Ordering::Relaxed)
        };
        live.add(&Engagement::new(old.clone()));
        assert_eq!(run(&old).await, 1);
        live.add(&Engagement::new(new.clone()));
        assert_eq!(run(&old).await, 1, "the old client is not used any more");
        assert_eq!(run(&new).await, 2);
        live.remove(new.name());
        assert_eq!(run(&new).await, 2, "it is gone");
    }
}
