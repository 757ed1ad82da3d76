//! The runtime: started and stopped as a whole, on every store, with and without a socket.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod schemas;
mod slow;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use k1s::{
    Action, BoxError, Client, Context, Controller, IdleOptions, Manager, ManagerOptions, Request, Runtime,
    RuntimeBuilder, StartError, StopError,
    controller::client::{ApplyOptions, ClientOptions},
    env::Env,
    k8s_openapi::{
        api::{
            core::v1::{ConfigMap, Endpoints, Namespace, Service},
            discovery::v1::EndpointSlice,
        },
        apimachinery::pkg::util::intstr::IntOrString,
    },
    kind,
    kube::{
        self, Api, Config, CustomResource,
        api::{PatchParams, PostParams},
        config::{KubeConfigOptions, Kubeconfig},
    },
    manifests::{ApplyError, FIELD_MANAGER},
    store::etcd::testing::EtcdServer,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A custom resource for tests.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[kube(group = "test.k1s.dev", version = "v1", kind = "Widget", namespaced)]
#[kube(crates(kube_core = "k1s::kube::core", k8s_openapi = "k1s::k8s_openapi"))]
struct WidgetSpec {
    size: i32,
}

const ANY_PORT: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

fn hello() -> ConfigMap {
    serde_json::from_value(serde_json::json!({"metadata": {"name": "hello"}, "data": {"greeting": "hi"}}))
        .unwrap()
}

async fn create(client: &kube::Client) -> ConfigMap {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    maps.create(&PostParams::default(), &hello()).await.unwrap()
}

async fn find(client: &kube::Client) -> Option<ConfigMap> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    maps.get_opt("hello").await.unwrap()
}

async fn over_https(runtime: &Runtime) -> kube::Client {
    let kubeconfig = Kubeconfig::from_yaml(runtime.kubeconfig().unwrap()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

#[tokio::test]
async fn data_on_disk_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("data");
    let start = || Runtime::builder().disk(&folder).tenant("controller-app").start();
    let runtime = start().await.unwrap();
    assert_eq!(runtime.tenant(), "controller-app");
    let created = create(&runtime.client()).await;
    runtime.stop().await.unwrap();

    let runtime = start().await.unwrap();
    assert_eq!(find(&runtime.client()).await, Some(created));
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn data_in_etcd_survives_a_restart() {
    let env = Env::system();
    let Some(etcd) = EtcdServer::start(&env).await.unwrap() else { return };
    let start = || Runtime::builder().etcd([etcd.endpoint()]).tenant("controller-app").start();
    let runtime = start().await.unwrap();
    let created = create(&runtime.client()).await;
    runtime.stop().await.unwrap();
    let runtime = start().await.unwrap();
    assert_eq!(find(&runtime.client()).await, Some(created));
    assert!(find(&runtime.tenant_client("other").await.unwrap()).await.is_none());
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn data_in_memory_is_lost_at_a_restart() {
    for found in [false, false] {
        let runtime = Runtime::builder().memory().start().await.unwrap();
        assert_eq!(find(&runtime.client()).await.is_some(), found);
        create(&runtime.client()).await;
        runtime.stop().await.unwrap();
    }
}

#[tokio::test]
async fn two_runtimes_in_one_process_share_nothing() {
    let one = Runtime::builder().start().await.unwrap();
    let other = Runtime::builder().start().await.unwrap();
    create(&one.client()).await;
    assert!(find(&one.client()).await.is_some());
    assert!(find(&other.client()).await.is_none());
    one.stop().await.unwrap();
    create(&other.client()).await;
    other.stop().await.unwrap();
}

#[tokio::test]
async fn tenants_see_nothing_of_each_other() {
    let runtime = Runtime::builder().tenant("a").start().await.unwrap();
    create(&runtime.client()).await;
    let other = runtime.tenant_client("b").await.unwrap();
    assert!(find(&other).await.is_none());
    assert!(find(&runtime.tenant_client("a").await.unwrap()).await.is_some());
    let refused = runtime.tenant_client("not a name").await.err().unwrap();
    assert!(refused.message.contains("the tenant's name \"not a name\" is invalid"), "{refused}");
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_kubeconfig_client_reaches_the_same_tenant_over_https() {
    let runtime = Runtime::builder().tenant("a").listen(ANY_PORT).start().await.unwrap();
    assert!(runtime.url().unwrap().starts_with("https://127.0.0.1:"));
    assert_ne!(runtime.address().unwrap().port(), 0);
    let client = over_https(&runtime).await;
    create(&client).await;
    assert!(find(&runtime.client()).await.is_some());

    // Clients that do not trust the authority, or have no token, are rejected.
    let mut config = Config::new(runtime.url().unwrap().parse().unwrap());
    let outside = kube::Client::try_from(config.clone()).unwrap();
    assert!(Api::<Namespace>::all(outside).list(&kube::api::ListParams::default()).await.is_err());
    config.accept_invalid_certs = true;
    let nobody = kube::Client::try_from(config).unwrap();
    let refused = Api::<Namespace>::all(nobody).list(&kube::api::ListParams::default()).await.unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 403 || status.code == 401),
        "{refused}"
    );
    drop(client);
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn the_kubernetes_service_points_to_the_listen_address() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let runtime = Runtime::builder().disk(folder.path()).listen(ANY_PORT).start().await.unwrap();
        let port = i32::from(runtime.address().unwrap().port());
        for client in [runtime.client(), runtime.tenant_client("other").await.unwrap()] {
            let service = Api::<Service>::default_namespaced(client.clone()).get("kubernetes").await.unwrap();
            let leads = service.spec.unwrap().ports.unwrap().remove(0);
            assert_eq!((leads.port, leads.target_port), (443, Some(IntOrString::Int(port))));
            let endpoints = Api::<Endpoints>::default_namespaced(client.clone());
            let subset = endpoints.get("kubernetes").await.unwrap().subsets.unwrap().remove(0);
            assert_eq!(subset.addresses.unwrap()[0].ip, "127.0.0.1");
            assert_eq!(subset.ports.unwrap()[0].port, port);
            let slice = Api::<EndpointSlice>::default_namespaced(client).get("kubernetes").await.unwrap();
            assert_eq!(slice.metadata.labels.unwrap()["kubernetes.io/service-name"], "kubernetes");
            assert_eq!(slice.endpoints.unwrap()[0].addresses, ["127.0.0.1"]);
            assert_eq!(slice.ports.unwrap()[0].port, Some(port));
        }
        runtime.stop().await.unwrap();
    }
    let runtime = Runtime::builder().memory().start().await.unwrap();
    let endpoints = Api::<Endpoints>::default_namespaced(runtime.client());
    assert!(endpoints.get_opt("kubernetes").await.unwrap().is_none(), "it does not listen");
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_runtime_without_an_address_has_no_kubeconfig() {
    let runtime = Runtime::builder().start().await.unwrap();
    assert_eq!(runtime.kubeconfig(), None);
    assert_eq!(runtime.address(), None);
    assert_eq!(runtime.token(), None);
    assert_eq!(runtime.certificate_authority(), None);
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_folder_in_use_is_reported_and_stays_usable() {
    let folder = tempfile::tempdir().unwrap();
    let first = Runtime::builder().disk(folder.path()).start().await.unwrap();
    let error = Runtime::builder().disk(folder.path()).start().await.unwrap_err();
    assert!(matches!(&error, StartError::FolderInUse { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("is in use by") && text.contains("choose another folder"), "{text}");
    create(&first.client()).await;
    first.stop().await.unwrap();
    Runtime::builder().disk(folder.path()).start().await.unwrap().stop().await.unwrap();
}

#[tokio::test]
async fn a_port_in_use_is_reported_and_nothing_is_left_open() {
    let folder = tempfile::tempdir().unwrap();
    let first = Runtime::builder().listen(ANY_PORT).start().await.unwrap();
    let address: SocketAddr = first.address().unwrap();
    let error = Runtime::builder().disk(folder.path()).listen(address).start().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot listen at {address}: it is in use; choose another port, or 0 for a free one")
    );
    Runtime::builder().disk(folder.path()).start().await.unwrap().stop().await.unwrap();
    first.stop().await.unwrap();
}

#[tokio::test]
async fn an_unreachable_etcd_is_reported_with_its_address() {
    let mut options = k1s::store::etcd::EtcdOptions::new(["http://127.0.0.1:1"]);
    options.connect_timeout = Duration::from_millis(200);
    options.request_timeout = Duration::from_millis(200);
    let error = Runtime::builder().etcd_with(options).start().await.unwrap_err();
    assert!(matches!(&error, StartError::Etcd { .. }), "{error}");
    assert!(error.to_string().starts_with("etcd at http://127.0.0.1:1 cannot be used: "), "{error}");
}

#[tokio::test]
async fn an_invalid_tenant_name_leaves_nothing_running() {
    let env = Env::system();
    let folder = tempfile::tempdir().unwrap();
    let start = || Runtime::builder().env(env.clone()).disk(folder.path());
    let error = start().tenant("Not_A_Name").listen(ANY_PORT).start().await.unwrap_err();
    assert!(error.to_string().contains("the tenant's name \"Not_A_Name\" is invalid"), "{error}");
    env.tasks_ended().await;
    start().start().await.unwrap().stop().await.unwrap();
}

#[tokio::test]
async fn stopping_waits_for_requests_in_flight_and_rejects_new_ones() {
    let env = Env::system();
    let store = Arc::new(slow::store(&env));
    let runtime = Arc::new(Runtime::builder().env(env.clone()).store(store.clone()).start().await.unwrap());
    store.slow.store(true, std::sync::atomic::Ordering::SeqCst);
    let client = runtime.client();
    let writing = env.spawn("writing", {
        let client = client.clone();
        async move { create(&client).await }
    });
    store.arrived.acquire().await.unwrap().forget();
    let in_flight = runtime.work().running();
    assert!(
        in_flight.iter().any(|work| work.description == "POST /api/v1/namespaces/default/configmaps"),
        "{in_flight:?}"
    );
    let stopping = env.spawn("stopping", {
        let runtime = Arc::clone(&runtime);
        async move { runtime.stop().await }
    });
    // Once it is stopping, it rejects new requests.
    let refused = loop {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        if let Err(error) = maps.get_opt("hello").await {
            break error;
        }
        env.yield_now().await;
    };
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 503), "{refused}");
    assert!(!stopping.is_finished(), "a request is in flight");
    store.open.add_permits(1);
    assert_eq!(writing.await.unwrap().data.unwrap()["greeting"], "hi");
    stopping.await.unwrap().unwrap();
    runtime.stop().await.expect("a second stop does nothing");
}

#[tokio::test]
async fn requests_that_do_not_end_in_time_are_reported() {
    let (env, clock) = Env::simulated(1);
    let store = Arc::new(slow::store(&env));
    let runtime = Runtime::builder()
        .env(env.clone())
        .store(store.clone())
        .stop_timeout(Duration::from_secs(7))
        .start()
        .await
        .unwrap();
    store.slow.store(true, std::sync::atomic::Ordering::SeqCst);
    let client = runtime.client();
    let writing = env.spawn("writing", async move {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        maps.create(&PostParams::default(), &hello()).await.is_err()
    });
    store.arrived.acquire().await.unwrap().forget();
    let stopping = env.spawn("stopping", async move { runtime.stop().await });
    while clock.next_deadline().is_none_or(|at| at > clock.now() + Duration::from_secs(7)) {
        env.yield_now().await;
    }
    clock.advance(Duration::from_secs(7));
    let error = stopping.await.unwrap().unwrap_err();
    assert!(matches!(error, StopError::InFlight(_)), "{error}");
    assert!(error.to_string().contains("POST /api/v1/namespaces/default/configmaps"), "{error}");
    store.open.add_permits(1);
    assert!(writing.await.unwrap(), "the store is closed");
}

/// Uses every feature that starts tasks, stops, and checks at once that none is left.
async fn leaves_no_task(env: &Env, builder: RuntimeBuilder) {
    let runtime = builder.env(env.clone()).listen(ANY_PORT).start().await.unwrap();
    runtime.install::<Widget>().await.unwrap();
    let client = over_https(&runtime).await;
    create(&client).await;
    // Controllers, quotas and aggregated roles, in two tenants.
    for tenant in [runtime.client(), runtime.tenant_client("other").await.unwrap()] {
        let text = "\
{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: default}, spec: {hard: {configmaps: 10}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, aggregationRule: {clusterRoleSelectors: [{}]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: doomed}}
";
        let options = ClientOptions { env: env.clone(), ..ClientOptions::default() };
        k1s::manifests::apply(&Client::new(tenant.clone(), options), text).await.unwrap();
        Api::<Namespace>::all(tenant).delete("doomed", &Default::default()).await.unwrap();
    }
    // Watches, in process and over HTTPS, that are never closed.
    let mut watches = Vec::new();
    for client in [runtime.client(), client] {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        watches.push(maps.watch(&kube::api::WatchParams::default(), "0").await.unwrap());
    }
    assert!(!env.tasks().is_empty());
    runtime.stop().await.unwrap();
    assert!(env.tasks().is_empty(), "{:?}", env.tasks());
}

#[tokio::test]
async fn no_task_is_left_when_it_has_stopped() {
    let env = Env::system();
    let folder = tempfile::tempdir().unwrap();
    leaves_no_task(&env, Runtime::builder().memory()).await;
    leaves_no_task(&env, Runtime::builder().disk(folder.path())).await;
    let Some(etcd) = EtcdServer::start(&env).await.unwrap() else { return };
    leaves_no_task(&env, Runtime::builder().etcd([etcd.endpoint()])).await;
}

#[tokio::test]
async fn a_dropped_runtime_releases_everything() {
    let env = Env::system();
    let folder = tempfile::tempdir().unwrap();
    let runtime =
        Runtime::builder().env(env.clone()).disk(folder.path()).listen(ANY_PORT).start().await.unwrap();
    create(&runtime.client()).await;
    drop(runtime);
    env.tasks_ended().await;
    let runtime = Runtime::builder().disk(folder.path()).start().await.unwrap();
    assert!(find(&runtime.client()).await.is_some());
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_manager_for_a_runtime_shares_its_clock_and_its_work() {
    let (env, _clock) = Env::simulated(3);
    let runtime = Runtime::builder().env(env).start().await.unwrap();
    create(&runtime.client()).await;
    let manager = Manager::new(&runtime, ManagerOptions::local()).unwrap();
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .complete(async |_: Request, _: Context| Ok::<_, BoxError>(Action::done()))
        .unwrap();
    let report = manager.run_until_idle(IdleOptions::default()).await.unwrap();
    assert!(report.reconciles() >= 1, "{report}");
    let components: Vec<String> = runtime.work().stats().iter().map(|stats| stats.name.to_string()).collect();
    assert!(components.contains(&"requests".to_owned()), "{components:?}");
    assert!(components.iter().any(|name| name.contains("configmap")), "{components:?}");
    runtime.stop().await.unwrap();
    assert_eq!(runtime.work().in_flight(), 0);
}

#[tokio::test]
async fn a_definition_and_its_objects_are_applied_together() {
    let runtime = Runtime::builder().start().await.unwrap();
    let text = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.test.k1s.dev}
spec:
  group: test.k1s.dev
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: test.k1s.dev/v1
kind: Gadget
metadata: {name: one}
spec: {size: 1, colour: red}
---
apiVersion: v1
kind: Namespace
metadata: {name: elsewhere}
";
    let shown = |applied: Vec<k1s::manifests::Applied>| {
        applied.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        shown(runtime.apply(text).await.unwrap()),
        "customresourcedefinition gadgets.test.k1s.dev created\ngadget default/one created\nnamespace elsewhere created"
    );
    assert_eq!(
        shown(runtime.apply(&text.replace("size: 1, colour: red", "size: 2")).await.unwrap()),
        "customresourcedefinition gadgets.test.k1s.dev unchanged\ngadget default/one updated\nnamespace elsewhere unchanged"
    );
    let kind =
        kube::api::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("test.k1s.dev", "v1", "Gadget"));
    let gadgets: Api<kube::api::DynamicObject> = Api::default_namespaced_with(runtime.client(), &kind);
    let one = gadgets.get("one").await.unwrap();
    assert_eq!(one.data["spec"], json!({"size": 2}), "what the text has lost is removed");

    let error =
        runtime.apply("{apiVersion: test.k1s.dev/v1, kind: Nothing, metadata: {name: x}}").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "nothing x: no matches for kind \"Nothing\" in version \"test.k1s.dev/v1\""
    );
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_text_takes_its_fields_from_others_unless_told_otherwise() {
    let runtime = Runtime::builder().start().await.unwrap();
    let text =
        |data: &str| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {data}}}");
    runtime.apply(&text("{x: '1', w: '1'}")).await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(runtime.client());
    let merge = kube::api::Patch::Merge(json!({"data": {"x": "2", "z": "2"}}));
    maps.patch("a", &PatchParams::apply("editor"), &merge).await.unwrap();

    let error = runtime.apply_with(&text("{x: '3'}"), ApplyOptions::default()).await.unwrap_err();
    let ApplyError::Refused { error, .. } = error else { panic!("{error}") };
    assert_eq!(
        error.apply_conflicts().unwrap().to_string(),
        r#"1 field of other managers: .data.x of "editor""#
    );
    let dry = ApplyOptions { dry_run: true, ..ApplyOptions::forced() };
    let told = runtime.apply_with(&text("{x: '3'}"), dry).await.unwrap();
    assert_eq!(told[0].to_string(), "configmap default/a updated");
    let data = async || serde_json::to_value(maps.get("a").await.unwrap().data).unwrap();
    assert_eq!(data().await, json!({"w": "1", "x": "2", "z": "2"}));

    runtime.apply(&text("{x: '3'}")).await.unwrap();
    assert_eq!(data().await, json!({"x": "3", "z": "2"}), "w was only in the text, z is the editor's");
    let again = runtime.apply(&text("{x: '3'}")).await.unwrap();
    assert_eq!(again[0].to_string(), "configmap default/a unchanged");

    // What was exported from a server can be applied again, by any manager.
    let mut exported = maps.get("a").await.unwrap();
    assert!(exported.metadata.managed_fields.is_some());
    exported.metadata.resource_version = None;
    let exported = serde_json::to_string(&exported).unwrap();
    let told = runtime.apply_with(&exported, "restore").await.unwrap();
    assert_eq!(told[0].to_string(), "configmap default/a unchanged");
    let managers = maps.get("a").await.unwrap().metadata.managed_fields.unwrap();
    let mut managers: Vec<_> = managers.iter().map(|entry| entry.manager.as_deref().unwrap()).collect();
    managers.sort_unstable();
    assert_eq!(managers, ["editor", FIELD_MANAGER, "restore"]);
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn an_object_without_a_name_is_created_each_time() {
    let runtime = Runtime::builder().start().await.unwrap();
    let text = "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: made-}}";
    for _ in 0..2 {
        let told = runtime.apply(text).await.unwrap();
        assert!(told[0].to_string().starts_with("configmap default/made-"), "{}", told[0]);
    }
    let maps: Api<ConfigMap> = Api::default_namespaced(runtime.client());
    let made = maps.list(&Default::default()).await.unwrap();
    let made = made.iter().filter(|map| map.metadata.name.as_ref().unwrap().starts_with("made-")).count();
    assert_eq!(made, 2);
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_kind_can_be_used_right_after_its_installation() {
    let runtime = Runtime::builder().start().await.unwrap();
    runtime.install::<Widget>().await.unwrap();
    let widgets: Api<Widget> = Api::default_namespaced(runtime.client());
    widgets.create(&PostParams::default(), &Widget::new("w", WidgetSpec { size: 3 })).await.unwrap();
    runtime.install::<Widget>().await.expect("a second installation changes nothing");
    assert_eq!(widgets.get("w").await.unwrap().spec.size, 3);
    runtime.stop().await.unwrap();
}
