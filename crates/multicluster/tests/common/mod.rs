//! Tenants of one process, and a controller that was written for one cluster.

#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

pub mod network;
pub mod projects;
pub mod proxy;
pub mod server;

use std::{collections::BTreeMap, time::Duration};

use k1s::{
    Action, BoxError, Context, IdleOptions, ManagerOptions, Request, Runtime,
    k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta},
    kind,
    kube::{
        self, Api, ResourceExt as _,
        api::{ListParams, PostParams},
    },
    multicluster::{
        Cluster, ClusterName, ClusterState, Controller, MultiClusterManager, MultiClusterOptions,
    },
};
use k1s_runtime::ObjectKey;

pub async fn runtime() -> Runtime {
    Runtime::builder().start().await.unwrap()
}

pub async fn tenants(runtime: &Runtime, count: usize) -> Vec<String> {
    let names: Vec<String> = (0..count).map(|number| format!("t{number}")).collect();
    for name in &names {
        runtime.server().create_tenant(name).await.unwrap();
    }
    names
}

/// A tenant as a cluster, as the provider makes it.
pub async fn cluster(runtime: &Runtime, manager: &MultiClusterManager, tenant: &str) -> Cluster {
    let connection = runtime.tenant_connector()(ClusterName::new(tenant)).await.unwrap();
    Cluster::new(tenant, &*connection, manager.cluster_options())
}

pub fn maps(client: kube::Client) -> Api<ConfigMap> {
    Api::default_namespaced(client)
}

pub fn map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("default".to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("value".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

/// Creates `src-0`, `src-1`, … in a tenant.
pub async fn sources(client: &kube::Client, count: usize, value: &str) {
    for number in 0..count {
        let map = map(&format!("src-{number}"), value);
        maps(client.clone()).create(&PostParams::default(), &map).await.unwrap();
    }
}

/// The `ConfigMap`s of a tenant that the controller made, and their values.
pub async fn copies(client: &kube::Client) -> BTreeMap<String, String> {
    let list = maps(client.clone()).list(&ListParams::default()).await.unwrap();
    let copies = list.into_iter().filter(|map| map.name_any().starts_with("copy-"));
    copies
        .map(|map| (map.name_any(), map.data.unwrap_or_default().remove("value").unwrap_or_default()))
        .collect()
}

/// What [`copies`] shows when `src-0` … are copied.
pub fn expected(count: usize, value: &str) -> BTreeMap<String, String> {
    (0..count).map(|number| (format!("copy-src-{number}"), value.to_owned())).collect()
}

/// Copies every `src-…` to `copy-src-…`, in whichever cluster it runs.
pub async fn copy(request: Request, context: Context) -> Result<Action, BoxError> {
    let client = context.cluster().client();
    let Some(name) = request.name().strip_prefix("src-") else { return Ok(Action::done()) };
    let Some(source) = client.get_opt::<ConfigMap>(&request).await? else { return Ok(Action::done()) };
    let key = ObjectKey::namespaced("default", format!("copy-src-{name}"));
    let value = source.data.as_ref().and_then(|data| data.get("value")).cloned().unwrap_or_default();
    match client.get_opt::<ConfigMap>(&key).await? {
        None => drop(client.create(&map(key.name(), &value)).await?),
        Some(copy) if copy.data != source.data => {
            let mut copy = (*copy).clone();
            copy.data = source.data.clone();
            client.update(&copy).await?;
        }
        Some(_) => {}
    }
    Ok(Action::done())
}

/// A manager with [`copy`] for the clusters of providers.
pub fn manager(runtime: &Runtime) -> MultiClusterManager {
    let manager =
        MultiClusterManager::new(runtime, ManagerOptions::local(), MultiClusterOptions::new()).unwrap();
    Controller::managed_by(&manager).for_(kind::<ConfigMap>()).complete(copy).unwrap();
    manager
}

pub fn names(manager: &MultiClusterManager) -> Vec<String> {
    manager.clusters().iter().map(|cluster| cluster.name.to_string()).collect()
}

/// Waits until these clusters are engaged.
pub async fn engaged(manager: &MultiClusterManager, wanted: &[&str]) {
    until(async || (names(manager) == wanted).then_some(())).await;
}

pub fn state_of(manager: &MultiClusterManager, name: &str) -> Option<ClusterState> {
    let clusters = manager.clusters();
    clusters.into_iter().find(|cluster| cluster.name.as_str() == name).map(|cluster| cluster.state)
}

/// Waits until a condition holds.
pub async fn until<T>(mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let env = k1s::env::Env::system();
    let wait = async {
        loop {
            if let Some(found) = check().await {
                return found;
            }
            env.yield_now().await;
        }
    };
    env.timeout(Duration::from_secs(60), wait).await.expect("the condition holds in time")
}

pub fn idle() -> IdleOptions {
    IdleOptions::within(Duration::from_secs(120))
}

/// A manager that runs in the background.
pub struct Running {
    stop: k1s::CancellationToken,
    task: k1s::env::Task<Result<(), k1s::ManagerError>>,
}

pub fn start(manager: &MultiClusterManager) -> Running {
    let stop = k1s::CancellationToken::new();
    let (own, token) = (manager.clone(), stop.clone());
    let task = manager.env().spawn("manager", async move { own.start(token).await });
    Running { stop, task }
}

impl Running {
    pub async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}
