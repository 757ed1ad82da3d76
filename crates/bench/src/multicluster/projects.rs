//! From the create of a Project to the first reconcile in it, with everything in this process; beside tenants without a
//! Project: one that a manager is started for, and one that an informer lists.

use std::{sync::Arc, time::Duration};

use k1s::{
    ProjectsOptions, Runtime,
    multicluster::{
        self, ClusterName, MultiClusterManager, MultiClusterOptions, MultiRequest,
        providers::ProjectsProvider,
    },
    projects::project,
};
use k1s_env::Env;
use k1s_runtime::{
    Action, BoxError, Cache, CacheOptions, Context, Controller, Manager, ManagerOptions, Request, kind,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{DynamicObject, PostParams},
};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::part::start;
use crate::{
    Failure,
    report::{Measurement, Unit, quantile},
};

const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn run(env: &Env, count: u64) -> Result<Vec<Measurement>, Failure> {
    let runtime = Runtime::builder().projects(ProjectsOptions::default()).start().await?;
    let manager = MultiClusterManager::new(&runtime, ManagerOptions::local(), MultiClusterOptions::new())?;
    manager.add_provider(Arc::new(ProjectsProvider::in_process(runtime.tenant_connector())));
    let seen = Arc::new(watch::Sender::new(ClusterName::default()));
    let sees = Arc::clone(&seen);
    // Every tenant has namespaces from its beginning.
    multicluster::Controller::managed_by(&manager).for_(kind::<Namespace>()).complete_multi(
        move |request: MultiRequest, _: Context| {
            sees.send_replace(request.cluster);
            std::future::ready(Ok::<_, BoxError>(Action::done()))
        },
    )?;
    let stop = CancellationToken::new();
    let mut alone = Vec::new();
    let running = start(env, &stop, &manager);
    let api = Api::<DynamicObject>::all_with(runtime.client(), &project());
    let (mut times, mut managers, mut floor) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..count {
        let name = format!("project-{number}");
        let object = DynamicObject::new(&name, &project())
            .data(json!({"spec": {"ownerRef": {"kind": "Organization", "name": "acme"}}}));
        let mut first = seen.subscribe();
        let began = env.now();
        api.create(&PostParams::default(), &object).await?;
        let first = env.timeout(PATIENCE, first.wait_for(|cluster| cluster.as_str() == name)).await;
        first.map_err(|_| Failure(format!("nothing is reconciled in {name}")))??;
        times.push((env.now() - began).as_secs_f64() * 1e3);

        let began = env.now();
        let client = runtime.tenant_client(&format!("managed-{number}")).await;
        let client = client.map_err(|status| Failure(status.message))?;
        let manager = Manager::new(client, ManagerOptions::local())?;
        let (sees, mut first) = watch::channel(false);
        Controller::managed_by(&manager).for_(kind::<Namespace>()).complete(
            move |_: Request, _: Context| {
                sees.send_replace(true);
                std::future::ready(Ok::<_, BoxError>(Action::done()))
            },
        )?;
        let stopped = stop.clone();
        alone.push(env.spawn("manager", async move { manager.start(stopped).await }));
        let first = env.timeout(PATIENCE, first.wait_for(|seen| *seen)).await;
        first.map_err(|_| Failure(format!("nothing is reconciled in managed-{number}")))??;
        managers.push((env.now() - began).as_secs_f64() * 1e3);

        let began = env.now();
        let client = runtime.tenant_client(&format!("tenant-{number}")).await;
        let client = client.map_err(|status| Failure(status.message))?;
        let cache = Cache::new(env, client, CacheOptions::default());
        cache.informer(&kind::<Namespace>())?.synced().await;
        floor.push((env.now() - began).as_secs_f64() * 1e3);
    }
    stop.cancel();
    running.await??;
    for manager in alone {
        manager.await??;
    }
    runtime.stop().await?;
    let made = |name: &str, values: &mut [f64], part| {
        Measurement::new(name, quantile(values, part), Unit::Milliseconds)
    };
    Ok(vec![
        made("fleet.project.p50", &mut times, 0.5),
        made("fleet.project.p99", &mut times, 0.99),
        made("managers.project.p50", &mut managers, 0.5),
        made("managers.project.p99", &mut managers, 0.99),
        made("informers.project.p50", &mut floor, 0.5),
        made("informers.project.p99", &mut floor, 0.99),
    ])
}
