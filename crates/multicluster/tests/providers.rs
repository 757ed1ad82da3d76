//! Where clusters come from.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use common::{
    copies, copy, engaged, expected, idle, manager, map, maps, names, projects,
    proxy::{Proxy, client_of, kubeconfig, listening, secret},
    runtime, sources, start, state_of, tenants, until,
};
use k1s::{
    BoxError, Context, ManagerOptions, ObjectKey, Request, Runtime,
    k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret},
    kind,
    kube::{
        self, Api,
        api::{DeleteParams, Patch, PatchParams, PostParams},
    },
    multicluster::{
        ClusterName, ClusterState, Controller, MultiClusterManager, MultiClusterOptions, Provider as _,
        providers::{
            KubeconfigFiles, KubeconfigSecrets, MultiProvider, Namespaces, ProjectsProvider, StaticProvider,
            TenantsProvider,
        },
    },
    server::User,
    tokio::sync::Semaphore,
};
use k1s_runtime::ControllerOptions;
use serde_json::json;

#[tokio::test]
async fn tenants_of_a_server_come_and_go_over_https() {
    let server = listening().await;
    tenants(&server, 2).await;
    let host = runtime().await;
    let manager = manager(&host);
    let client = client_of(server.kubeconfig().unwrap()).await;
    let provider = TenantsProvider::new(client)
        .with_filter(|name| name.starts_with('t'))
        .with_interval(Duration::from_millis(20));
    let provider = Arc::new(provider);
    manager.add_provider(Arc::clone(&provider) as _);
    let running = start(&manager);
    engaged(&manager, &["t0", "t1"]).await;
    for name in ["t0", "t1"] {
        sources(&server.tenant_client(name).await.unwrap(), 2, name).await;
    }
    manager.wait_until_idle(idle()).await.unwrap();
    for name in ["t0", "t1"] {
        let client = server.tenant_client(name).await.unwrap();
        assert_eq!(copies(&client).await, expected(2, name));
        assert_eq!(provider.get(&name.into()).await.unwrap().name().as_str(), name);
    }
    assert!(provider.get(&"default".into()).await.unwrap_err().is_not_found());
    server.server().delete_tenant("t0").await.unwrap();
    server.server().create_tenant("t2").await.unwrap();
    engaged(&manager, &["t1", "t2"]).await;
    running.stop().await;
    host.stop().await.unwrap();
    server.stop().await.unwrap();
}

#[tokio::test]
async fn tenants_of_two_servers_are_one_fleet_also_while_one_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let near = runtime().await;
    let far = Runtime::builder().disk(folder.path()).listen(([127, 0, 0, 1], 0)).start().await.unwrap();
    let proxy = Proxy::to(far.url().unwrap()).await;
    let kubeconfig = proxy.kubeconfig(far.kubeconfig().unwrap());
    // The same names on both, and other objects.
    for (server, value) in [(&near, "near"), (&far, "far")] {
        for name in tenants(server, 2).await {
            sources(&server.tenant_client(&name).await.unwrap(), 2, value).await;
        }
    }
    let interval = Duration::from_millis(20);
    let remote = TenantsProvider::new(client_of(&kubeconfig).await)
        .with_filter(|name| name.starts_with('t'))
        .with_interval(interval);
    let provider = MultiProvider::new()
        .with("near", Arc::new(near.tenants_provider().with_interval(interval)))
        .unwrap()
        .with("far", Arc::new(remote))
        .unwrap();
    let manager = manager(&near);
    manager.add_provider(Arc::new(provider));
    let running = start(&manager);
    engaged(&manager, &["far#t0", "far#t1", "near#t0", "near#t1"]).await;
    let copied = async |server: &Runtime, name: &str, wanted: BTreeMap<String, String>| {
        let client = server.tenant_client(name).await.unwrap();
        until(async || (copies(&client).await == wanted).then_some(())).await;
    };
    for name in ["t0", "t1"] {
        copied(&near, name, expected(2, "near")).await;
        copied(&far, name, expected(2, "far")).await;
    }

    // Cut off: the other server's clusters go on and come and go; these are named.
    proxy.cut();
    let failing = |name: &str| {
        let clusters = manager.clusters();
        let found = clusters.iter().find(|cluster| cluster.name.as_str() == name);
        found.is_some_and(|cluster| matches!(cluster.state, ClusterState::Failing { .. }))
    };
    until(async || (failing("far#t0") && failing("far#t1")).then_some(())).await;
    assert!(!failing("near#t0"));
    far.server().delete_tenant("t0").await.unwrap();
    sources(&far.tenant_client("t2").await.unwrap(), 1, "new").await;
    let changed = maps(far.tenant_client("t1").await.unwrap());
    changed.replace("src-0", &PostParams::default(), &map("src-0", "later")).await.unwrap();
    near.server().delete_tenant("t0").await.unwrap();
    sources(&near.tenant_client("t2").await.unwrap(), 1, "new").await;
    copied(&near, "t2", expected(1, "new")).await;
    engaged(&manager, &["far#t0", "far#t1", "near#t1", "near#t2"]).await;
    assert_eq!(copies(&far.tenant_client("t1").await.unwrap()).await, expected(2, "far"));
    // It can be disengaged without an answer, and engaged again before there is one.
    let before = manager.cluster(&"far#t1".into()).unwrap();
    manager.disengage(&"far#t1".into()).await.unwrap();
    assert!(before.cache().informer_states().is_empty());
    manager.engage(before);

    proxy.restore();
    engaged(&manager, &["far#t1", "far#t2", "near#t1", "near#t2"]).await;
    copied(&far, "t2", expected(1, "new")).await;
    let mut wanted = expected(2, "far");
    wanted.insert("copy-src-0".to_owned(), "later".to_owned());
    copied(&far, "t1", wanted).await;
    manager.wait_until_idle(idle()).await.unwrap();
    assert!(manager.clusters().iter().all(|cluster| cluster.state == ClusterState::Ready));
    running.stop().await;
    drop(proxy);
    near.stop().await.unwrap();
    far.stop().await.unwrap();
}

#[tokio::test]
async fn tenants_of_this_process_come_and_go_without_waiting_for_the_next_list() {
    let runtime = runtime().await;
    tenants(&runtime, 1).await;
    let manager = manager(&runtime);
    manager.add_provider(Arc::new(runtime.tenants_provider().with_interval(Duration::from_secs(3600))));
    let running = start(&manager);
    engaged(&manager, &["t0"]).await;
    let before = manager.cluster(&"t0".into()).unwrap();
    runtime.server().create_tenant("t1").await.unwrap();
    engaged(&manager, &["t0", "t1"]).await;
    runtime.server().delete_tenant("t0").await.unwrap();
    engaged(&manager, &["t1"]).await;
    runtime.server().create_tenant("t0").await.unwrap();
    until(async || (!manager.cluster(&"t0".into())?.is_same(&before)).then_some(())).await;
    for number in 2..40 {
        runtime.server().create_tenant(&format!("t{number}")).await.unwrap();
    }
    until(async || (names(&manager).len() == 40).then_some(())).await;
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_tenant_that_is_made_again_is_engaged_anew() {
    let runtime = runtime().await;
    tenants(&runtime, 1).await;
    let manager = manager(&runtime);
    manager.add_provider(Arc::new(runtime.tenants_provider().with_interval(Duration::from_millis(20))));
    let running = start(&manager);
    engaged(&manager, &["t0"]).await;
    let before = manager.cluster(&"t0".into()).unwrap();
    runtime.server().delete_tenant("t0").await.unwrap();
    runtime.server().create_tenant("t0").await.unwrap();
    until(async || (!manager.cluster(&"t0".into())?.is_same(&before)).then_some(())).await;
    let client = runtime.tenant_client("t0").await.unwrap();
    sources(&client, 1, "again").await;
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!(copies(&client).await, expected(1, "again"));
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn kubeconfigs_in_secrets_are_clusters() {
    let server = listening().await;
    tenants(&server, 2).await;
    for name in ["t0", "t1"] {
        sources(&server.tenant_client(name).await.unwrap(), 1, name).await;
    }
    let host = runtime().await;
    let secrets = Api::<Secret>::default_namespaced(host.client());
    secrets.create(&PostParams::default(), &secret("edge", &kubeconfig(&server, "t0"))).await.unwrap();
    let mut other = secret("unlabelled", &kubeconfig(&server, "t1"));
    other.metadata.labels = None;
    secrets.create(&PostParams::default(), &other).await.unwrap();
    secrets.create(&PostParams::default(), &secret("broken", "{")).await.unwrap();

    let manager = manager(&host);
    manager.add_provider(Arc::new(KubeconfigSecrets::new("default")));
    let running = start(&manager);
    engaged(&manager, &["edge"]).await;
    let first = server.tenant_client("t0").await.unwrap();
    until(async || (copies(&first).await == expected(1, "t0")).then_some(())).await;

    // Other credentials, here those of another tenant: engaged anew.
    let before = manager.cluster(&"edge".into()).unwrap();
    let changed = secret("edge", &kubeconfig(&server, "t1"));
    secrets.replace("edge", &PostParams::default(), &changed).await.unwrap();
    until(async || (!manager.cluster(&"edge".into())?.is_same(&before)).then_some(())).await;
    assert!(before.stopped().is_cancelled());
    let second = server.tenant_client("t1").await.unwrap();
    until(async || (copies(&second).await == expected(1, "t1")).then_some(())).await;
    // Anything else about the Secret does not matter.
    let now = manager.cluster(&"edge".into()).unwrap();
    let labelled = json!({"metadata": {"annotations": {"note": "x"}}});
    secrets.patch("edge", &PatchParams::default(), &Patch::Merge(labelled)).await.unwrap();
    secrets.delete("broken", &DeleteParams::default()).await.unwrap();
    manager.wait_until_idle(idle()).await.unwrap();
    assert!(manager.cluster(&"edge".into()).unwrap().is_same(&now));
    secrets.delete("edge", &DeleteParams::default()).await.unwrap();
    engaged(&manager, &[]).await;
    running.stop().await;
    host.stop().await.unwrap();
    server.stop().await.unwrap();
}

fn write(folder: &Path, name: &str, content: &str) {
    // Replaced at once, as tools do.
    std::fs::write(folder.join(".new"), content).unwrap();
    std::fs::rename(folder.join(".new"), folder.join(name)).unwrap();
}

#[tokio::test]
async fn contexts_of_kubeconfig_files_are_clusters() {
    let server = listening().await;
    tenants(&server, 2).await;
    for name in ["t0", "t1"] {
        sources(&server.tenant_client(name).await.unwrap(), 1, name).await;
    }
    let context = {
        let config = kube::config::Kubeconfig::from_yaml(server.kubeconfig().unwrap()).unwrap();
        config.contexts[0].name.clone()
    };
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.yaml", &kubeconfig(&server, "t0"));
    write(folder.path(), "README", "not a kubeconfig: [");
    let host = runtime().await;
    let manager = manager(&host);
    let files = KubeconfigFiles::new(folder.path()).with_interval(Duration::from_millis(20));
    manager.add_provider(Arc::new(files));
    let running = start(&manager);
    let (a, b) = (format!("a.yaml+{context}"), format!("b.yaml+{context}"));
    engaged(&manager, &[&a]).await;
    let first = server.tenant_client("t0").await.unwrap();
    until(async || (copies(&first).await == expected(1, "t0")).then_some(())).await;
    let before = manager.cluster(&a.as_str().into()).unwrap();
    write(folder.path(), "a.yaml", &kubeconfig(&server, "t1"));
    write(folder.path(), "b.yaml", &kubeconfig(&server, "t0"));
    engaged(&manager, &[&a, &b]).await;
    until(async || (!manager.cluster(&a.as_str().into())?.is_same(&before)).then_some(())).await;
    let second = server.tenant_client("t1").await.unwrap();
    until(async || (copies(&second).await == expected(1, "t1")).then_some(())).await;
    std::fs::remove_file(folder.path().join("a.yaml")).unwrap();
    engaged(&manager, &[&b]).await;
    running.stop().await;
    host.stop().await.unwrap();
    server.stop().await.unwrap();
}

#[tokio::test]
async fn namespaces_are_clusters() {
    let runtime = runtime().await;
    let namespaces = Api::<Namespace>::all(runtime.client());
    for (name, labels) in
        [("team-a", json!({"team": "a"})), ("team-b", json!({"team": "b"})), ("other", json!({}))]
    {
        let namespace = json!({"metadata": {"name": name, "labels": labels}});
        namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
    }
    for name in ["team-a", "team-b", "other"] {
        let mut one = map("one", name);
        one.metadata.namespace = Some(name.to_owned());
        Api::<ConfigMap>::namespaced(runtime.client(), name)
            .create(&PostParams::default(), &one)
            .await
            .unwrap();
    }
    let manager =
        MultiClusterManager::new(&runtime, ManagerOptions::local(), MultiClusterOptions::new()).unwrap();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .complete(move |request: k1s::Request, context: k1s::Context| {
            let log = Arc::clone(&log);
            async move {
                let all = context.cluster().client().list::<ConfigMap>(Default::default()).await?;
                assert!(all.iter().all(|map| map.metadata.namespace.as_deref() == request.namespace()));
                log.lock().unwrap().push(format!("{}: {request}", context.cluster().name()));
                Ok::<_, BoxError>(k1s::Action::done())
            }
        })
        .unwrap();
    manager.add_provider(Arc::new(Namespaces::selected("team in (a, b)").unwrap()));
    manager.run_until_idle(idle()).await.unwrap();
    let mut seen = seen.lock().unwrap().clone();
    seen.retain(|line| line.ends_with("/one"));
    seen.sort();
    assert_eq!(seen, ["team-a: team-a/one", "team-b: team-b/one"]);
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn several_providers_have_prefixes() {
    let runtime = runtime().await;
    tenants(&runtime, 2).await;
    for name in ["t0", "t1"] {
        sources(&runtime.tenant_client(name).await.unwrap(), 1, name).await;
    }
    let edge = StaticProvider::new().with("t0", runtime.tenant_client("t0").await.unwrap());
    let core = StaticProvider::new().with("t0", runtime.tenant_client("t1").await.unwrap());
    let multi =
        MultiProvider::new().with("edge", Arc::new(edge)).unwrap().with("core", Arc::new(core)).unwrap();
    assert!(MultiProvider::new().with("a#b", Arc::new(StaticProvider::new())).is_err());
    let manager = manager(&runtime);
    manager.add_provider(Arc::new(multi));
    let running = start(&manager);
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!(names(&manager), ["core#t0", "edge#t0"]);
    for name in ["t0", "t1"] {
        let client = runtime.tenant_client(name).await.unwrap();
        assert_eq!(copies(&client).await, expected(1, name));
    }
    // By name, engaged or not.
    let cluster = manager.get_cluster(&"edge#t0".into()).await.unwrap();
    assert_eq!(cluster.name().as_str(), "edge#t0");
    manager.disengage(&"edge#t0".into()).await.unwrap();
    assert!(manager.cluster(&"edge#t0".into()).is_none());
    let cluster = manager.get_cluster(&"edge#t0".into()).await.unwrap();
    assert_eq!(cluster.name().as_str(), "edge#t0");
    assert!(manager.get_cluster(&"edge#t9".into()).await.unwrap_err().is_not_found());
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn project_control_planes_that_are_ready_are_clusters() {
    let runtime = runtime().await;
    tenants(&runtime, 3).await;
    projects::install(&runtime).await;
    let planes = projects::all(runtime.client(), true);
    projects::put(&planes, "ProjectControlPlane", "t0", "ControlPlaneReady", true).await;
    projects::put(&planes, "ProjectControlPlane", "t1", "ControlPlaneReady", false).await;
    projects::put(&planes, "ProjectControlPlane", "t2", "ControlPlaneReady", true).await;
    let manager = manager(&runtime);
    let provider =
        ProjectsProvider::in_process(runtime.tenant_connector()).with_selector("of in (t0, t1)").unwrap();
    manager.add_provider(Arc::new(provider));
    let running = start(&manager);
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!(names(&manager), ["t0"], "t1 is not ready, t2 not selected");
    projects::put(&planes, "ProjectControlPlane", "t1", "ControlPlaneReady", true).await;
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!(names(&manager), ["t0", "t1"]);
    let client = runtime.tenant_client("t1").await.unwrap();
    sources(&client, 1, "project").await;
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!(copies(&client).await, expected(1, "project"));
    projects::put(&planes, "ProjectControlPlane", "t1", "ControlPlaneReady", false).await;
    planes.delete("t0", &DeleteParams::default()).await.unwrap();
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!(names(&manager), Vec::<String>::new());
    running.stop().await;
    runtime.stop().await.unwrap();
}

/// A server that has the control planes of projects below their paths: tenants of a runtime, here.
fn endpoint(runtime: &Runtime) -> kube::Client {
    let (host, connect) = (runtime.client(), runtime.tenant_connector());
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (host, connect) = (host.clone(), Arc::clone(&connect));
        async move {
            let path = request.uri().path_and_query().unwrap().as_str().to_owned();
            let rest = path.strip_prefix("/apis/resourcemanager.miloapis.com/v1alpha1/projects/");
            let inside = rest.and_then(|rest| rest.split_once("/control-plane"));
            let (client, path) = match inside {
                None => (host, path.clone()),
                Some((project, path)) => {
                    (connect(ClusterName::new(project)).await?.client(), path.to_owned())
                }
            };
            let (mut parts, body) = request.into_parts();
            parts.uri = path.parse()?;
            Ok::<_, BoxError>(client.send(http::Request::from_parts(parts, body)).await?)
        }
    });
    kube::Client::new(service, "default")
}

#[tokio::test]
async fn projects_that_are_ready_are_clusters_through_the_endpoint_of_the_api() {
    let runtime = runtime().await;
    tenants(&runtime, 2).await;
    projects::install(&runtime).await;
    let all = projects::all(runtime.client(), false);
    projects::put(&all, "Project", "t0", "Ready", true).await;
    projects::put(&all, "Project", "t1", "Ready", false).await;
    let client = runtime.tenant_client("t0").await.unwrap();
    sources(&client, 2, "external").await;
    // The manager has another host than the endpoint.
    let host = self::runtime().await;
    let manager = manager(&host);
    manager.add_provider(Arc::new(ProjectsProvider::external().watched_at(endpoint(&runtime))));
    let running = start(&manager);
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!(names(&manager), ["t0"]);
    assert_eq!(copies(&client).await, expected(2, "external"));
    all.delete("t0", &DeleteParams::default()).await.unwrap();
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!(names(&manager), Vec::<String>::new());
    running.stop().await;
    host.stop().await.unwrap();
    runtime.stop().await.unwrap();
}

/// A plugin of a kubeconfig runs where the kubeconfig is read.
#[tokio::test]
async fn a_kubeconfig_from_a_secret_runs_no_program_and_reads_no_file_unless_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let ran = folder.path().join("ran");
    let answer = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"},
    });
    let config = json!({
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": "sh", "args": ["-c", format!("touch {}; echo '{answer}'", ran.display())],
        }}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    });
    for allowed in [false, true] {
        let host = runtime().await;
        let secrets = Api::<Secret>::namespaced(host.client(), "default");
        secrets.create(&PostParams::default(), &secret("far", &config.to_string())).await.unwrap();
        let manager = manager(&host);
        manager.add_provider(Arc::new(KubeconfigSecrets::new("default").with_local_access(allowed)));
        let running = start(&manager);
        if allowed {
            engaged(&manager, &["far"]).await;
        } else {
            let errors =
                "controller_runtime_reconcile_errors_total{controller=\"provider-kubeconfig-secrets\"} ";
            let tried = |line: &str| line.strip_prefix(errors).is_some_and(|count| count != "0");
            until(async || manager.metrics().encode().lines().any(tried).then_some(())).await;
            assert_eq!(names(&manager), Vec::<String>::new());
        }
        assert_eq!(ran.exists(), allowed);
        running.stop().await;
        host.stop().await.unwrap();
    }
}

#[tokio::test]
async fn internal_addresses_are_made_from_a_template() {
    let server = listening().await;
    tenants(&server, 1).await;
    sources(&server.tenant_client("t0").await.unwrap(), 1, "internal").await;
    let host = runtime().await;
    projects::install(&host).await;
    projects::put(
        &projects::all(host.client(), true),
        "ProjectControlPlane",
        "t0",
        "ControlPlaneReady",
        true,
    )
    .await;
    let config = kube::config::Kubeconfig::from_yaml(server.kubeconfig().unwrap()).unwrap();
    let credentials = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.unwrap();
    let address = format!("{}/clusters/{{name}}", server.url().unwrap());
    let manager = manager(&host);
    manager.add_provider(Arc::new(ProjectsProvider::internal_at(address, credentials)));
    manager.run_until_idle(idle()).await.unwrap();
    let client = server.tenant_client("t0").await.unwrap();
    assert_eq!(copies(&client).await, expected(1, "internal"));
    // The connection is one of the host's environment.
    assert!(host.env().tasks().iter().any(|task| &*task.name == "http2-requests"));
    host.stop().await.unwrap();
    server.stop().await.unwrap();
}

/// Reconciles of sources wait for permits.
struct Gate {
    permits: Semaphore,
    /// The clusters of those that have begun.
    begun: Mutex<BTreeSet<String>>,
}

fn gated(runtime: &Runtime) -> (MultiClusterManager, Arc<Gate>) {
    let manager =
        MultiClusterManager::new(runtime, ManagerOptions::local(), MultiClusterOptions::new()).unwrap();
    let gate = Arc::new(Gate { permits: Semaphore::new(0), begun: Mutex::default() });
    let inside = Arc::clone(&gate);
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .with_options(ControllerOptions::concurrent(50))
        .complete(move |request: Request, context: Context| {
            let gate = Arc::clone(&inside);
            async move {
                if request.name().starts_with("src-") {
                    gate.begun.lock().unwrap().insert(context.cluster().name().to_string());
                    gate.permits.acquire().await?.forget();
                }
                copy(request, context).await
            }
        })
        .unwrap();
    (manager, gate)
}

/// Waits until a reconcile has begun in each of these clusters.
async fn begun(gate: &Gate, names: &[String]) {
    until(async || names.iter().all(|name| gate.begun.lock().unwrap().contains(name)).then_some(())).await;
}

#[tokio::test]
async fn a_tenant_whose_reconcile_does_not_end_delays_no_other_and_its_successor_waits() {
    let runtime = runtime().await;
    let old = tenants(&runtime, 1).await;
    sources(&runtime.tenant_client("t0").await.unwrap(), 1, "old").await;
    let (manager, gate) = gated(&runtime);
    // Without announcements: lists alone.
    let all = kube::Client::new(runtime.server().as_user(User::admin()), "default");
    let provider = TenantsProvider::new(all)
        .with_connector(runtime.tenant_connector())
        .with_filter(|name| name.starts_with('t'))
        .with_interval(Duration::from_millis(20));
    manager.add_provider(Arc::new(provider));
    let running = start(&manager);
    begun(&gate, &old).await;
    let disengaging = || state_of(&manager, "t0") == Some(ClusterState::Disengaging);
    runtime.server().delete_tenant("t0").await.unwrap();
    until(async || disengaging().then_some(())).await;
    for (name, value) in [("t0", "new"), ("t1", "other")] {
        runtime.server().create_tenant(name).await.unwrap();
        sources(&runtime.tenant_client(name).await.unwrap(), 1, value).await;
    }
    until(async || state_of(&manager, "t1")).await;
    assert!(disengaging(), "its reconcile still runs");
    gate.permits.add_permits(1000);
    for (name, value) in [("t0", "new"), ("t1", "other")] {
        let client = runtime.tenant_client(name).await.unwrap();
        until(async || (copies(&client).await == expected(1, value)).then_some(())).await;
    }
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn objects_whose_clusters_cannot_be_left_do_not_occupy_the_provider() {
    const STUCK: usize = 20;
    let runtime = runtime().await;
    let all = tenants(&runtime, STUCK + 1).await;
    let (stuck, other) = (&all[..STUCK], &all[STUCK]);
    projects::install(&runtime).await;
    let planes = projects::all(runtime.client(), true);
    let ready = async |name: &str, ready: bool| {
        projects::put(&planes, "ProjectControlPlane", name, "ControlPlaneReady", ready).await;
    };
    for name in stuck {
        sources(&runtime.tenant_client(name).await.unwrap(), 1, "a").await;
        ready(name, true).await;
    }
    let (manager, gate) = gated(&runtime);
    manager.add_provider(Arc::new(ProjectsProvider::in_process(runtime.tenant_connector())));
    let running = start(&manager);
    begun(&gate, stuck).await;
    for name in stuck {
        ready(name, false).await;
    }
    ready(other, true).await;
    let disengaging = |name: &String| state_of(&manager, name) == Some(ClusterState::Disengaging);
    until(async || {
        (stuck.iter().all(disengaging) && manager.cluster(&other.as_str().into()).is_some()).then_some(())
    })
    .await;
    gate.permits.add_permits(1000);
    engaged(&manager, &[other]).await;
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_fixed_cluster_has_the_managers_options_once_it_runs_and_is_never_a_stopped_one() {
    let runtime = runtime().await;
    tenants(&runtime, 1).await;
    let client = runtime.tenant_client("t0").await.unwrap();
    sources(&client, 1, "a").await;
    let provider = Arc::new(StaticProvider::new().with("t0", client.clone()));
    // Its options are the defaults, since no manager is known. It is nobody else's.
    let early = provider.get(&"t0".into()).await.unwrap();
    assert!(!early.is_same(&provider.get(&"t0".into()).await.unwrap()));
    assert!(provider.get(&"t1".into()).await.unwrap_err().is_not_found());
    let manager = manager(&runtime);
    manager.add_provider(Arc::clone(&provider) as _);
    let running = start(&manager);
    engaged(&manager, &["t0"]).await;
    let cluster = manager.cluster(&"t0".into()).unwrap();
    assert!(provider.get(&"t0".into()).await.unwrap().is_same(&cluster));
    // It counts as work of the manager: `wait_until_idle` waits for its reconciles.
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!(copies(&client).await, expected(1, "a"));
    manager.disengage(&"t0".into()).await.unwrap();
    assert!(cluster.stopped().is_cancelled());
    let again = manager.get_cluster(&"t0".into()).await.unwrap();
    assert!(!again.stopped().is_cancelled());
    again.client().get::<ConfigMap>(&ObjectKey::namespaced("default", "src-0")).await.unwrap();
    running.stop().await;
    runtime.stop().await.unwrap();
}
