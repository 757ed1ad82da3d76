//! Clusters behind sockets: how many connections they need, servers that hang, and credentials that are revoked.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{sync::Arc, time::Duration};

use common::{
    copies, copy, engaged, expected, manager, map, maps, names,
    proxy::{Proxy, client_of, config_of, kubeconfig, listening, secret},
    runtime, sources, start, state_of, tenants, until,
};
use k1s::{
    Handler, ManagerOptions, ProjectsOptions, Runtime,
    env::Env,
    k8s_openapi::api::{
        authentication::v1::TokenRequest,
        core::v1::{ConfigMap, Secret, ServiceAccount},
        rbac::v1::ClusterRoleBinding,
    },
    kind,
    kube::{
        self, Api,
        api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    },
    multicluster::{
        Cluster, ClusterState, Controller, MultiClusterManager, MultiClusterOptions, Provider,
        providers::{KubeconfigFiles, KubeconfigSecrets, ProjectsProvider, TenantsProvider},
    },
    projects::{self, SUSPEND},
};
use k1s_runtime::client::http2;
use serde_json::json;

/// A fleet of all tenants of a server, whose watches are open, and the most connections that it needed.
async fn connections_of_a_fleet(server: &Runtime, count: usize) -> usize {
    let proxy = Proxy::to(server.url().unwrap()).await;
    let kubeconfig = proxy.kubeconfig(server.kubeconfig().unwrap());
    let mut wanted = tenants(server, count).await;
    wanted.sort();
    let host = runtime().await;
    let manager = manager(&host);
    let provider =
        TenantsProvider::new(client_of(&kubeconfig).await).with_filter(|name| name.starts_with('t'));
    manager.add_provider(Arc::new(provider));
    let running = start(&manager);
    until(async || (names(&manager) == wanted).then_some(())).await;
    for name in &wanted {
        sources(&server.tenant_client(name).await.unwrap(), 1, name).await;
    }
    for name in &wanted {
        let client = server.tenant_client(name).await.unwrap();
        until(async || (copies(&client).await == expected(1, name)).then_some(())).await;
    }
    assert!(manager.clusters().iter().all(|cluster| cluster.state == ClusterState::Ready));
    let most = proxy.most();
    running.stop().await;
    host.stop().await.unwrap();
    most
}

#[tokio::test]
async fn one_connection_serves_all_tenants_of_a_server() {
    let server = listening().await;
    assert_eq!(connections_of_a_fleet(&server, 30).await, 1);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_server_that_limits_the_requests_of_a_connection_gets_more_connections() {
    let mut options = k1s::server::ServerOptions::default();
    options.connections.max_streams = 10;
    let builder = Runtime::builder().server_options(options);
    let server = builder.listen(([127, 0, 0, 1], 0)).start().await.unwrap();
    // A watch of each of 30 tenants, and short requests beside them.
    let connections = connections_of_a_fleet(&server, 30).await;
    assert!((4..=8).contains(&connections), "{connections}");
    server.stop().await.unwrap();
}

/// The most connections that a provider's fleet of five clusters needs, each with a watch of three kinds.
async fn connections_with(
    server: &Runtime,
    proxy: &Proxy,
    host: &Runtime,
    provider: Arc<dyn Provider>,
) -> usize {
    let manager =
        MultiClusterManager::new(host, ManagerOptions::local(), MultiClusterOptions::new()).unwrap();
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .watches(kind::<Secret>(), |_| Handler::for_object())
        .watches(kind::<ServiceAccount>(), |_| Handler::for_object())
        .complete(copy)
        .unwrap();
    manager.add_provider(provider);
    let running = start(&manager);
    for number in 0..5 {
        let client = server.tenant_client(&format!("t{number}")).await.unwrap();
        until(async || (copies(&client).await == expected(1, "a")).then_some(())).await;
    }
    let ready = || manager.clusters().iter().filter(|cluster| cluster.state == ClusterState::Ready).count();
    until(async || (ready() == 5).then_some(())).await;
    let most = proxy.most();
    running.stop().await;
    most
}

/// A server with five tenants, and a proxy before it.
async fn five() -> (Runtime, Proxy) {
    let server = listening().await;
    for name in tenants(&server, 5).await {
        sources(&server.tenant_client(&name).await.unwrap(), 1, "a").await;
    }
    let proxy = Proxy::to(server.url().unwrap()).await;
    (server, proxy)
}

#[tokio::test]
async fn kubeconfigs_in_secrets_for_one_server_share_a_connection() {
    let ((server, proxy), host) = (five().await, runtime().await);
    let secrets = Api::<Secret>::default_namespaced(host.client());
    for number in 0..5 {
        let name = format!("t{number}");
        let secret = secret(&name, &proxy.kubeconfig(&kubeconfig(&server, &name)));
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }
    let provider = Arc::new(KubeconfigSecrets::new("default"));
    assert_eq!(connections_with(&server, &proxy, &host, provider).await, 1);
    host.stop().await.unwrap();
    server.stop().await.unwrap();
}

#[tokio::test]
async fn kubeconfig_files_for_one_server_share_a_connection() {
    let ((server, proxy), host) = (five().await, runtime().await);
    let folder = tempfile::tempdir().unwrap();
    for number in 0..5 {
        let name = format!("t{number}");
        std::fs::write(folder.path().join(&name), proxy.kubeconfig(&kubeconfig(&server, &name))).unwrap();
    }
    let provider = Arc::new(KubeconfigFiles::new(folder.path()));
    assert_eq!(connections_with(&server, &proxy, &host, provider).await, 1);
    host.stop().await.unwrap();
    server.stop().await.unwrap();
}

#[tokio::test]
async fn projects_at_internal_addresses_of_one_server_share_a_connection() {
    let ((server, proxy), host) = (five().await, runtime().await);
    common::projects::install(&host).await;
    for number in 0..5 {
        let planes = common::projects::all(host.client(), true);
        let name = format!("t{number}");
        common::projects::put(&planes, "ProjectControlPlane", &name, "ControlPlaneReady", true).await;
    }
    let credentials = config_of(&proxy.kubeconfig(server.kubeconfig().unwrap())).await;
    let address = format!("{}clusters/{{name}}", credentials.cluster_url);
    let provider = Arc::new(ProjectsProvider::internal_at(address, credentials));
    assert_eq!(connections_with(&server, &proxy, &host, provider).await, 1);
    host.stop().await.unwrap();
    server.stop().await.unwrap();
}

/// As docs/multicluster.md has an operator beside `k1s serve --projects`: its client is that of the host.
#[tokio::test]
async fn projects_of_a_server_are_worked_in_over_one_connection_from_their_creation_until_their_deletion() {
    let builder = Runtime::builder().projects(ProjectsOptions::default());
    let server = builder.listen(([127, 0, 0, 1], 0)).start().await.unwrap();
    let proxy = Proxy::to(server.url().unwrap()).await;
    let client = client_of(&proxy.kubeconfig(server.kubeconfig().unwrap())).await;
    let manager =
        MultiClusterManager::new(client, ManagerOptions::local(), MultiClusterOptions::new()).unwrap();
    Controller::managed_by(&manager).for_(kind::<ConfigMap>()).complete(copy).unwrap();
    manager.add_provider(Arc::new(ProjectsProvider::external()));
    let running = start(&manager);
    let projects = Api::<DynamicObject>::all_with(server.client(), &projects::project());
    for name in ["p0", "p1"] {
        let project = DynamicObject::new(name, &projects::project())
            .data(json!({"spec": {"ownerRef": {"kind": "Organization", "name": "acme"}}}));
        projects.create(&PostParams::default(), &project).await.unwrap();
    }
    let copied = async |name: &str, count: usize| {
        let client = server.tenant_client(name).await.unwrap();
        until(async || (copies(&client).await == expected(count, name)).then_some(())).await;
    };
    engaged(&manager, &["p0", "p1"]).await;
    for name in ["p0", "p1"] {
        sources(&server.tenant_client(name).await.unwrap(), 1, name).await;
        copied(name, 1).await;
    }
    let suspend = async |value: serde_json::Value| {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {SUSPEND: value}}}));
        projects.patch("p0", &PatchParams::default(), &patch).await.unwrap();
    };
    suspend("true".into()).await;
    engaged(&manager, &["p1"]).await;
    suspend(json!(null)).await;
    engaged(&manager, &["p0", "p1"]).await;
    let p0 = server.tenant_client("p0").await.unwrap();
    maps(p0).create(&PostParams::default(), &map("src-1", "p0")).await.unwrap();
    copied("p0", 2).await;
    projects.delete("p0", &DeleteParams::default()).await.unwrap();
    engaged(&manager, &["p1"]).await;
    until(async || projects.get_opt("p0").await.unwrap().is_none().then_some(())).await;
    assert_eq!(server.server().stored_tenants().await.unwrap(), ["default", "p1"]);
    let p1 = server.tenant_client("p1").await.unwrap();
    maps(p1).create(&PostParams::default(), &map("src-1", "p1")).await.unwrap();
    copied("p1", 2).await;
    assert_eq!(proxy.most(), 1);
    running.stop().await;
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_server_that_hangs_delays_nobody_and_is_worked_with_again_when_it_answers() {
    let far = listening().await;
    tenants(&far, 1).await;
    let inside = far.tenant_client("t0").await.unwrap();
    sources(&inside, 1, "far").await;
    let proxy = Proxy::to(far.url().unwrap()).await;
    let (env, clock) = Env::simulated(9);
    let host = Runtime::builder().env(env).start().await.unwrap();
    tenants(&host, 1).await;
    let near = host.tenant_client("t0").await.unwrap();
    let manager = manager(&host);
    let running = start(&manager);
    let state = || state_of(&manager, "far").unwrap();
    let fails = || matches!(state(), ClusterState::Failing { .. });
    let later = async || clock.advance_and_settle(Duration::from_secs(1)).await;

    // It accepts connections, and does not answer.
    proxy.hang();
    let config = config_of(&proxy.kubeconfig(&kubeconfig(&far, "t0"))).await;
    let client = http2(host.env(), config).unwrap();
    manager.engage(Cluster::new("far", client, manager.cluster_options()));
    manager.engage(common::cluster(&host, &manager, "t0").await);
    sources(&near, 1, "one").await;
    until(async || (copies(&near).await == expected(1, "one")).then_some(())).await;
    assert_eq!(state(), ClusterState::Engaging);
    let until_later = async |holds: &dyn Fn() -> bool| {
        until(async || {
            later().await;
            holds().then_some(())
        })
        .await;
    };
    until_later(&fails).await;
    proxy.flow();
    until_later(&|| state() == ClusterState::Ready).await;
    until(async || (copies(&inside).await == expected(1, "far")).then_some(())).await;

    // It does not answer any more, on the connection that there is.
    proxy.hang();
    let change = async |client: &kube::Client, value: &str| {
        let maps = maps(client.clone());
        maps.replace("src-0", &PostParams::default(), &map("src-0", value)).await.unwrap();
    };
    change(&inside, "meanwhile").await;
    change(&near, "two").await;
    until(async || (copies(&near).await == expected(1, "two")).then_some(())).await;
    until_later(&fails).await;
    change(&near, "three").await;
    until(async || (copies(&near).await == expected(1, "three")).then_some(())).await;
    assert_eq!(copies(&inside).await, expected(1, "far"));
    proxy.flow();
    until_later(&|| state() == ClusterState::Ready).await;
    until(async || {
        later().await;
        (copies(&inside).await == expected(1, "meanwhile")).then_some(())
    })
    .await;
    running.stop().await;
    drop(proxy);
    host.stop().await.unwrap();
    far.stop().await.unwrap();
}

/// A kubeconfig for a tenant, as a service account that may do everything there.
async fn kubeconfig_of_account(server: &Runtime, tenant: &str, account: &str) -> String {
    let client = server.tenant_client(tenant).await.unwrap();
    let accounts = Api::<ServiceAccount>::default_namespaced(client.clone());
    let made = json!({"metadata": {"name": account}});
    accounts.create(&PostParams::default(), &serde_json::from_value(made).unwrap()).await.unwrap();
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": account},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
    }))
    .unwrap();
    Api::all(client).create(&PostParams::default(), &binding).await.unwrap();
    let wanted = TokenRequest::default();
    let token = accounts.create_token_request(account, &PostParams::default(), &wanted).await.unwrap();
    let mut config: serde_json::Value = {
        let config = kube::config::Kubeconfig::from_yaml(&kubeconfig(server, tenant)).unwrap();
        serde_json::to_value(config).unwrap()
    };
    config["users"][0]["user"] = json!({"token": token.status.unwrap().token});
    config.to_string()
}

#[tokio::test]
async fn a_cluster_with_revoked_credentials_fails_until_its_secret_has_others() {
    let server = listening().await;
    tenants(&server, 1).await;
    let inside = server.tenant_client("t0").await.unwrap();
    sources(&inside, 1, "before").await;
    let proxy = Proxy::to(server.url().unwrap()).await;
    let host = runtime().await;
    let secrets = Api::<Secret>::default_namespaced(host.client());
    let first = proxy.kubeconfig(&kubeconfig_of_account(&server, "t0", "first").await);
    secrets.create(&PostParams::default(), &secret("edge", &first)).await.unwrap();
    let manager = manager(&host);
    manager.add_provider(Arc::new(KubeconfigSecrets::new("default")));
    let running = start(&manager);
    engaged(&manager, &["edge"]).await;
    until(async || (copies(&inside).await == expected(1, "before")).then_some(())).await;
    let before = manager.cluster(&"edge".into()).unwrap();

    Api::<ServiceAccount>::default_namespaced(inside.clone())
        .delete("first", &DeleteParams::default())
        .await
        .unwrap();
    // A watch that is open stays open, here as with Kubernetes.
    proxy.cut();
    proxy.restore();
    let reason = until(async || match state_of(&manager, "edge") {
        Some(ClusterState::Failing { reason }) if reason.contains("nauthorized") => Some(reason),
        _ => None,
    })
    .await;
    assert!(reason.starts_with("ConfigMap: "), "{reason}");
    let changed = map("src-0", "after");
    maps(inside.clone()).replace("src-0", &PostParams::default(), &changed).await.unwrap();

    let second = proxy.kubeconfig(&kubeconfig_of_account(&server, "t0", "second").await);
    secrets.replace("edge", &PostParams::default(), &secret("edge", &second)).await.unwrap();
    until(async || (copies(&inside).await == expected(1, "after")).then_some(())).await;
    until(async || (state_of(&manager, "edge") == Some(ClusterState::Ready)).then_some(())).await;
    assert!(!manager.cluster(&"edge".into()).unwrap().is_same(&before));
    running.stop().await;
    host.stop().await.unwrap();
    drop(proxy);
    server.stop().await.unwrap();
}
