//! Clusters that two managers share.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use common::{Running, copies, copy, expected, runtime, sources, start, tenants, until};
use k1s::{
    Context, ManagerOptions, Request, Runtime,
    k8s_openapi::api::core::v1::ConfigMap,
    kind,
    multicluster::{Controller, MultiClusterManager, MultiClusterOptions, providers::ShardedProvider},
};
use k1s_runtime::sharding::{Sharding, ShardingOptions};

const TENANTS: usize = 12;

/// The reconciles that run.
#[derive(Default)]
struct Log {
    /// The replica that reconciles in each cluster, and how many reconciles run there.
    running: BTreeMap<String, (&'static str, usize)>,
    violations: Vec<String>,
}

type Busy = Arc<Mutex<Log>>;

struct Replica {
    manager: MultiClusterManager,
    sharding: Sharding,
    running: Running,
}

impl Replica {
    fn start(runtime: &Runtime, identity: &'static str, busy: &Busy) -> Replica {
        let manager =
            MultiClusterManager::new(runtime, ManagerOptions::local(), MultiClusterOptions::new()).unwrap();
        let mut options = ShardingOptions::new("fleet", "default");
        options.identity = Some(identity.to_owned());
        options.lease_duration = Duration::from_millis(1500);
        options.renew_deadline = Duration::from_secs(1);
        options.retry_period = Duration::from_millis(100);
        let sharding = Sharding::new(runtime.client(), manager.env().clone(), options).unwrap();
        manager.add(sharding.clone());
        let tenants = Arc::new(runtime.tenants_provider());
        manager.add_provider(Arc::new(ShardedProvider::new(tenants, &sharding)));
        let busy = Arc::clone(busy);
        Controller::managed_by(&manager)
            .for_(kind::<ConfigMap>())
            .complete(move |request: Request, context: Context| {
                let work = Work::begin(&busy, context.cluster().name(), identity);
                async move {
                    let _work = work;
                    copy(request, context).await
                }
            })
            .unwrap();
        let running = start(&manager);
        Replica { manager, sharding, running }
    }

    fn engaged(&self) -> BTreeSet<String> {
        self.manager.clusters().into_iter().map(|cluster| cluster.name.to_string()).collect()
    }
}

/// A running reconcile.
struct Work {
    busy: Busy,
    cluster: String,
}

impl Work {
    fn begin(busy: &Busy, cluster: &str, identity: &'static str) -> Work {
        let mut log = busy.lock().unwrap();
        let (owner, count) = log.running.remove(cluster).unwrap_or((identity, 0));
        if owner != identity && count > 0 {
            log.violations.push(format!("{owner} and {identity} work in {cluster}"));
        }
        log.running.insert(cluster.to_owned(), (identity, count + 1));
        Work { busy: Arc::clone(busy), cluster: cluster.to_owned() }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Ok(mut log) = self.busy.lock() {
            log.running.get_mut(&self.cluster).unwrap().1 -= 1;
        }
    }
}

#[tokio::test]
async fn each_cluster_is_engaged_by_one_of_the_replicas() {
    let runtime = runtime().await;
    let names: BTreeSet<String> = tenants(&runtime, TENANTS).await.into_iter().collect();
    let busy = Busy::default();
    let one = Replica::start(&runtime, "one", &busy);
    until(async || (one.engaged() == names).then_some(())).await;
    let two = Replica::start(&runtime, "two", &busy);
    let share = until(async || {
        let (ones, twos) = (one.engaged(), two.engaged());
        let both: BTreeSet<String> = ones.union(&twos).cloned().collect();
        (both == names && ones.is_disjoint(&twos) && !twos.is_empty()).then_some(twos)
    })
    .await;
    for name in &share {
        assert!(two.sharding.owner_of(name).is_some() && one.sharding.owner_of(name).is_none());
    }
    let check = async |value: &str| {
        for name in &names {
            let client = runtime.tenant_client(name).await.unwrap();
            until(async || (copies(&client).await == expected(1, value)).then_some(())).await;
        }
    };
    for name in &names {
        sources(&runtime.tenant_client(name).await.unwrap(), 1, "a").await;
    }
    check("a").await;

    // A client of a cluster that is disengaged because its shard has moved refuses writes.
    let moved = share.first().unwrap();
    let client = two.manager.cluster(&moved.as_str().into()).unwrap().client().clone();
    two.running.stop().await;
    let refused = client.create(&common::map("late", "")).await.unwrap_err();
    assert!(refused.to_string().contains("is not owned any more"), "{refused}");

    // The other replica takes its clusters.
    until(async || (one.engaged() == names).then_some(())).await;
    for name in &names {
        let maps = common::maps(runtime.tenant_client(name).await.unwrap());
        maps.replace("src-0", &Default::default(), &common::map("src-0", "b")).await.unwrap();
    }
    check("b").await;
    assert!(busy.lock().unwrap().violations.is_empty(), "{:?}", busy.lock().unwrap().violations);
    one.running.stop().await;
    runtime.stop().await.unwrap();
}
