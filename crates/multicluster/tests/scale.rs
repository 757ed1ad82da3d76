//! A controller over a thousand clusters of one process.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use common::{copies, copy, expected, runtime, sources, start, tenants};
use k1s::{
    IdleOptions, ManagerOptions,
    k8s_openapi::api::core::v1::ConfigMap,
    kind,
    multicluster::{Cluster, Controller, MultiClusterManager, MultiClusterOptions},
};

/// `K1S_CLUSTERS` sets another number.
const CLUSTERS: usize = 1000;

/// Tasks by name: those that all clusters have, and those of the process.
fn tasks(runtime: &k1s::Runtime) -> BTreeMap<String, usize> {
    let tasks = runtime.env().tasks();
    tasks.iter().map(|task| (task.name.to_string(), task.running())).filter(|(_, count)| *count > 0).collect()
}

#[tokio::test]
async fn a_controller_works_with_a_thousand_clusters_and_lets_go_of_all_of_them() {
    let count = std::env::var("K1S_CLUSTERS").ok().and_then(|count| count.parse().ok()).unwrap_or(CLUSTERS);
    let runtime = runtime().await;
    let names = tenants(&runtime, count).await;
    for name in &names {
        sources(&runtime.tenant_client(name).await.unwrap(), 1, name).await;
    }
    let manager =
        MultiClusterManager::new(&runtime, ManagerOptions::local(), MultiClusterOptions::new()).unwrap();
    Controller::managed_by(&manager).for_(kind::<ConfigMap>()).complete(copy).unwrap();
    let running = start(&manager);
    let idle = || IdleOptions::within(Duration::from_secs(600));
    manager.wait_until_idle(idle()).await.unwrap();
    let before = tasks(&runtime);
    manager.add_provider(Arc::new(runtime.tenants_provider()));
    manager.wait_until_idle(idle()).await.unwrap();
    for name in &names {
        let client = runtime.tenant_client(name).await.unwrap();
        assert_eq!(copies(&client).await, expected(1, name), "{name}");
    }
    let clusters: Vec<Cluster> =
        names.iter().map(|name| manager.cluster(&name.as_str().into()).expect("it is engaged")).collect();
    let engaged = tasks(&runtime);
    let grown = |now: &BTreeMap<String, usize>| -> BTreeMap<String, usize> {
        let of = |(name, count): (&String, &usize)| {
            let more = count.saturating_sub(before.get(name).copied().unwrap_or_default());
            (more > 0).then(|| (name.clone(), more))
        };
        now.iter().filter_map(of).collect()
    };
    assert!(grown(&engaged).values().any(|more| *more >= count), "{:?}", grown(&engaged));

    for cluster in &clusters {
        manager.disengage(cluster.name()).await.unwrap();
        assert!(cluster.cache().informer_states().is_empty(), "{}", cluster.name());
    }
    assert!(manager.clusters().is_empty());
    manager.wait_until_idle(idle()).await.unwrap();
    // What is left is the server's: the caches of its tenants.
    let left = grown(&tasks(&runtime));
    let of_clusters =
        |name: &String| ["cache: ", "events", "informer ", "resync "].iter().any(|of| name.starts_with(of));
    assert!(!left.keys().any(of_clusters), "{left:?}");
    running.stop().await;
    runtime.stop().await.unwrap();
}
