//! What names clusters: the metrics of their states, and the log. Both can be turned off.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::sync::{Arc, Mutex};

use common::{cluster, idle, runtime, sources, start, tenants, until};
use k1s::{
    Action, BoxError, Context, ManagerOptions, Request, Runtime,
    k8s_openapi::api::core::v1::ConfigMap,
    kind,
    multicluster::{ClusterLabel, Controller, MultiClusterManager, MultiClusterOptions},
};

/// A manager whose controller logs a line for each reconcile.
fn logging(runtime: &Runtime, label: ClusterLabel) -> MultiClusterManager {
    let options = MultiClusterOptions::new().with_cluster_label(label);
    let manager = MultiClusterManager::new(runtime, ManagerOptions::local(), options).unwrap();
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .complete(async |_: Request, _: Context| {
            tracing::info!("it reconciles");
            Ok::<_, BoxError>(Action::done())
        })
        .unwrap();
    manager
}

/// Captures the log of this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The lines that reconciles of the clusters `t0` and `t1` have logged.
async fn logged(label: ClusterLabel) -> Vec<String> {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let runtime = runtime().await;
    for name in tenants(&runtime, 2).await {
        sources(&runtime.tenant_client(&name).await.unwrap(), 1, "a").await;
    }
    let manager = logging(&runtime, label);
    manager.add_provider(Arc::new(runtime.tenants_provider()));
    manager.run_until_idle(idle()).await.unwrap();
    runtime.stop().await.unwrap();
    let text = String::from_utf8(std::mem::take(&mut *log.0.lock().unwrap())).unwrap();
    text.lines().filter(|line| line.ends_with("it reconciles")).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_log_of_a_reconcile_names_its_cluster_unless_that_is_turned_off() {
    let lines = logged(ClusterLabel::On).await;
    for name in ["t0", "t1"] {
        let of = format!("cluster=\"{name}\"");
        assert!(lines.iter().any(|line| line.contains(&of) && line.contains("src-0")), "{lines:?}");
    }
    assert!(lines.iter().all(|line| line.contains("cluster=")), "{lines:?}");
    let lines = logged(ClusterLabel::Off).await;
    assert!(lines.iter().any(|line| line.contains("src-0")), "{lines:?}");
    assert!(lines.iter().all(|line| !line.contains("cluster=")), "{lines:?}");
}

#[tokio::test]
async fn the_state_of_each_cluster_is_a_metric_as_long_as_there_is_that_cluster() {
    for label in [ClusterLabel::On, ClusterLabel::Off] {
        let runtime = runtime().await;
        tenants(&runtime, 1).await;
        let manager = logging(&runtime, label);
        let running = start(&manager);
        let shows = |line: &str| manager.metrics().encode().lines().any(|one| one == line);
        let state = |name: &str, value: u8| {
            shows(&format!("k1s_multicluster_cluster_state{{cluster=\"t0\",state=\"{name}\"}} {value}"))
        };
        manager.engage(cluster(&runtime, &manager, "t0").await);
        until(async || shows("k1s_multicluster_clusters{state=\"ready\"} 1").then_some(())).await;
        let named = label == ClusterLabel::On;
        assert_eq!(state("ready", 1), named, "{}", manager.metrics().encode());
        for other in ["engaging", "failing", "backing_off", "disengaging"] {
            assert_eq!(state(other, 0), named, "{other}: {}", manager.metrics().encode());
        }
        manager.disengage(&"t0".into()).await.unwrap();
        assert!(!manager.metrics().encode().contains("cluster=\"t0\""));
        running.stop().await;
        runtime.stop().await.unwrap();
    }
}
