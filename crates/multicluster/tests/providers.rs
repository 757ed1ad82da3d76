//! Where clusters come from.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use common::{copies, copy, expected, idle, map, maps, runtime, sources, start, tenants, until};
use k1s::{
    BoxError, CancellationToken, ManagerOptions, Runtime,
    env::{Env, Task},
    k8s_openapi::{
        ByteString,
        api::core::v1::{ConfigMap, Namespace, Secret},
    },
    kind,
    kube::{
        self, Api,
        api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    },
    multicluster::{
        ClusterName, ClusterState, Controller, MultiClusterManager, MultiClusterOptions, Provider as _,
        providers::{
            KUBECONFIG_LABEL, KubeconfigFiles, KubeconfigSecrets, MultiProvider, Namespaces,
            ProjectsProvider, StaticProvider, TenantsProvider,
        },
    },
    tokio::{
        self,
        net::{TcpListener, TcpStream},
    },
};
use k1s_runtime::client::http2;
use serde_json::json;

fn manager(runtime: &Runtime) -> MultiClusterManager {
    let manager =
        MultiClusterManager::new(runtime, ManagerOptions::local(), MultiClusterOptions::new()).unwrap();
    Controller::managed_by(&manager).for_(kind::<ConfigMap>()).complete(copy).unwrap();
    manager
}

fn names(manager: &MultiClusterManager) -> Vec<String> {
    manager.clusters().iter().map(|cluster| cluster.name.to_string()).collect()
}

/// Waits until these clusters are engaged.
async fn engaged(manager: &MultiClusterManager, wanted: &[&str]) {
    until(async || (names(manager) == wanted).then_some(())).await;
}

/// A runtime that listens on HTTP, and a kubeconfig for a tenant of it.
async fn listening() -> Runtime {
    Runtime::builder().listen(([127, 0, 0, 1], 0)).start().await.unwrap()
}

fn kubeconfig(runtime: &Runtime, tenant: &str) -> String {
    let (text, url) = (runtime.kubeconfig().unwrap(), runtime.url().unwrap());
    assert!(text.contains(url), "{text}");
    text.replacen(url, &format!("{url}/clusters/{tenant}"), 1)
}

async fn client_of(kubeconfig: &str) -> kube::Client {
    let config = kube::config::Kubeconfig::from_yaml(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.unwrap();
    http2(&Env::system(), config).unwrap()
}

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

/// Forwards connections to a server, and can cut them.
struct Proxy {
    address: SocketAddr,
    /// `Err` while it refuses connections; cancelled to cut those that there are.
    open: Arc<Mutex<Result<CancellationToken, ()>>>,
    /// Connections at this moment, and the most there have been.
    count: Arc<Mutex<(usize, usize)>>,
    task: Task<()>,
}

impl Proxy {
    async fn to(server: &str) -> Proxy {
        let server: SocketAddr = server.strip_prefix("https://").unwrap().parse().unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let open = Arc::new(Mutex::new(Ok(CancellationToken::new())));
        let count = Arc::new(Mutex::new((0, 0)));
        let (state, counted, env) = (Arc::clone(&open), Arc::clone(&count), Env::system());
        let task = env.clone().spawn("proxy", async move {
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                let Ok(cut) = state.lock().unwrap().clone() else { continue };
                let counted = Arc::clone(&counted);
                drop(env.spawn("proxied connection", async move {
                    {
                        let mut count = counted.lock().unwrap();
                        count.0 += 1;
                        count.1 = count.1.max(count.0);
                    }
                    let mut far = TcpStream::connect(server).await.unwrap();
                    let copied = tokio::io::copy_bidirectional(&mut near, &mut far);
                    // How a connection ends does not matter here.
                    drop(cut.run_until_cancelled(copied).await);
                    counted.lock().unwrap().0 -= 1;
                }));
            }
        });
        Proxy { address, open, count, task }
    }

    fn cut(&self) {
        if let Ok(cut) = std::mem::replace(&mut *self.open.lock().unwrap(), Err(())) {
            cut.cancel();
        }
    }

    fn restore(&self) {
        *self.open.lock().unwrap() = Ok(CancellationToken::new());
    }

    /// The most connections that there have been at a time.
    fn most(&self) -> usize {
        self.count.lock().unwrap().1
    }
}

/// A fleet of all tenants of a server, whose watches are open, and the most connections that it needed.
async fn connections_of_a_fleet(server: &Runtime, count: usize) -> usize {
    let proxy = Proxy::to(server.url().unwrap()).await;
    let address = format!("https://{}", proxy.address);
    let kubeconfig = server.kubeconfig().unwrap().replace(server.url().unwrap(), &address);
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

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        self.task.abort();
    }
}

#[tokio::test]
async fn tenants_of_two_servers_are_one_fleet_also_while_one_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let near = runtime().await;
    let far = Runtime::builder().disk(folder.path()).listen(([127, 0, 0, 1], 0)).start().await.unwrap();
    let proxy = Proxy::to(far.url().unwrap()).await;
    let kubeconfig =
        far.kubeconfig().unwrap().replace(far.url().unwrap(), &format!("https://{}", proxy.address));
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

fn secret(name: &str, kubeconfig: &str) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some(name.to_owned());
    secret.metadata.labels = Some(BTreeMap::from([(KUBECONFIG_LABEL.to_owned(), "true".to_owned())]));
    let content = ByteString(kubeconfig.as_bytes().to_vec());
    secret.data = Some(BTreeMap::from([("kubeconfig".to_owned(), content)]));
    secret
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

/// Definitions of Projects and their control planes, with as much schema as the provider needs.
async fn install_projects(runtime: &Runtime) {
    for (group, kind, plural) in [
        ("resourcemanager.miloapis.com", "Project", "projects"),
        ("infrastructure.miloapis.com", "ProjectControlPlane", "projectcontrolplanes"),
    ] {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group,
                "names": {"kind": kind, "plural": plural},
                "scope": "Cluster",
                "versions": [{
                    "name": "v1alpha1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        });
        runtime.apply(&definition.to_string()).await.unwrap();
    }
}

fn projects(client: kube::Client, internal: bool) -> Api<DynamicObject> {
    let (group, kind) = if internal {
        ("infrastructure.miloapis.com", "ProjectControlPlane")
    } else {
        ("resourcemanager.miloapis.com", "Project")
    };
    let gvk = kube::core::GroupVersionKind::gvk(group, "v1alpha1", kind);
    Api::all_with(client, &kube::api::ApiResource::from_gvk(&gvk))
}

async fn put(api: &Api<DynamicObject>, kind: &str, name: &str, condition: &str, ready: bool) {
    let group = if kind == "Project" { "resourcemanager" } else { "infrastructure" };
    let status = if ready { "True" } else { "False" };
    let object = json!({
        "apiVersion": format!("{group}.miloapis.com/v1alpha1"),
        "kind": kind,
        "metadata": {"name": name, "labels": {"of": name}},
        "status": {"conditions": [{"type": condition, "status": status}]},
    });
    let force = PatchParams::apply("test").force();
    api.patch(name, &force, &Patch::Apply(object)).await.unwrap();
}

#[tokio::test]
async fn project_control_planes_that_are_ready_are_clusters() {
    let runtime = runtime().await;
    tenants(&runtime, 3).await;
    install_projects(&runtime).await;
    let planes = projects(runtime.client(), true);
    put(&planes, "ProjectControlPlane", "t0", "ControlPlaneReady", true).await;
    put(&planes, "ProjectControlPlane", "t1", "ControlPlaneReady", false).await;
    put(&planes, "ProjectControlPlane", "t2", "ControlPlaneReady", true).await;
    let manager = manager(&runtime);
    let provider =
        ProjectsProvider::in_process(runtime.tenant_connector()).with_selector("of in (t0, t1)").unwrap();
    manager.add_provider(Arc::new(provider));
    let running = start(&manager);
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!(names(&manager), ["t0"], "t1 is not ready, t2 not selected");
    put(&planes, "ProjectControlPlane", "t1", "ControlPlaneReady", true).await;
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!(names(&manager), ["t0", "t1"]);
    let client = runtime.tenant_client("t1").await.unwrap();
    sources(&client, 1, "project").await;
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!(copies(&client).await, expected(1, "project"));
    put(&planes, "ProjectControlPlane", "t1", "ControlPlaneReady", false).await;
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
    install_projects(&runtime).await;
    let all = projects(runtime.client(), false);
    put(&all, "Project", "t0", "Ready", true).await;
    put(&all, "Project", "t1", "Ready", false).await;
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

#[tokio::test]
async fn internal_addresses_are_made_from_a_template() {
    let server = listening().await;
    tenants(&server, 1).await;
    sources(&server.tenant_client("t0").await.unwrap(), 1, "internal").await;
    let host = runtime().await;
    install_projects(&host).await;
    put(&projects(host.client(), true), "ProjectControlPlane", "t0", "ControlPlaneReady", true).await;
    let config = kube::config::Kubeconfig::from_yaml(server.kubeconfig().unwrap()).unwrap();
    let credentials = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.unwrap();
    let address = format!("{}/clusters/{{name}}", server.url().unwrap());
    let manager = manager(&host);
    manager.add_provider(Arc::new(ProjectsProvider::internal_at(address, credentials)));
    manager.run_until_idle(idle()).await.unwrap();
    let client = server.tenant_client("t0").await.unwrap();
    assert_eq!(copies(&client).await, expected(1, "internal"));
    host.stop().await.unwrap();
    server.stop().await.unwrap();
}
