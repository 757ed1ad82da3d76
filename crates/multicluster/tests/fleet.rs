//! One controller over clusters that come and go.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use common::{cluster, copies, copy, expected, idle, runtime, sources, start, state_of, tenants, until};
use k1s::{
    Action, BoxError, CancellationToken, Context, ManagerOptions, Request, TerminalError, async_trait,
    env::Env,
    k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event},
    kind,
    kube::{self, Api},
    multicluster::{
        Cluster, ClusterLabel, ClusterName, ClusterState, Controller, Engager, MultiClusterManager,
        MultiClusterOptions, MultiRequest, Provider, ProviderError, providers::StaticProvider,
    },
    tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
        sync::{Notify, Semaphore},
    },
};
use k1s_runtime::{ControllerOptions, Handler, client::ListOptions, recorder::EventType};

fn manager(runtime: &k1s::Runtime) -> MultiClusterManager {
    manager_with(runtime, MultiClusterOptions::new())
}

fn manager_with(runtime: &k1s::Runtime, options: MultiClusterOptions) -> MultiClusterManager {
    MultiClusterManager::new(runtime, ManagerOptions::local(), options).unwrap()
}

/// The controller of the tests, over the clusters of providers.
fn copying(manager: &MultiClusterManager) {
    Controller::managed_by(manager).for_(kind::<ConfigMap>()).complete(copy).unwrap();
}

/// A client that accepts requests and never answers.
fn hanging() -> kube::Client {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        pending::<()>().await;
        Ok::<_, Infallible>(http::Response::new(kube::client::Body::empty()))
    });
    kube::Client::new(service, "default")
}

async fn over_tenants(count: usize) {
    let runtime = runtime().await;
    let names = tenants(&runtime, count).await;
    for name in &names {
        sources(&runtime.tenant_client(name).await.unwrap(), 2, name).await;
    }
    // The manager's own cluster has objects, too, which are not the controller's concern.
    sources(&runtime.client(), 1, "host").await;
    let manager = manager(&runtime);
    copying(&manager);
    manager.add_provider(Arc::new(runtime.tenants_provider()));
    let report = manager.run_until_idle(idle()).await.unwrap();
    for name in &names {
        let client = runtime.tenant_client(name).await.unwrap();
        assert_eq!(copies(&client).await, expected(2, name), "{name}");
    }
    assert_eq!(copies(&runtime.client()).await, BTreeMap::new());
    assert_eq!((report.writes, report.errors()), (2 * count as u64, 0));
    assert!(manager.clusters().is_empty(), "all clusters are stopped");
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_controller_written_for_one_cluster_runs_over_one_tenant() {
    over_tenants(1).await;
}

#[tokio::test]
async fn a_controller_written_for_one_cluster_runs_over_a_hundred_tenants() {
    over_tenants(100).await;
}

#[tokio::test]
async fn clusters_come_and_go_while_the_manager_runs() {
    let runtime = runtime().await;
    tenants(&runtime, 2).await;
    let manager = manager(&runtime);
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let log = Arc::clone(&seen);
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .complete_multi(move |request: MultiRequest, context: Context| {
            let log = Arc::clone(&log);
            async move {
                assert_eq!(context.cluster().name(), &request.cluster);
                log.lock().unwrap().insert(request.to_string());
                copy(request.request, context).await
            }
        })
        .unwrap();
    let running = start(&manager);
    let (one, two) = (runtime.tenant_client("t0").await.unwrap(), runtime.tenant_client("t1").await.unwrap());
    manager.engage(cluster(&runtime, &manager, "t0").await);
    manager.engage(cluster(&runtime, &manager, "t1").await);
    sources(&one, 1, "a").await;
    sources(&two, 1, "b").await;
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!((copies(&one).await, copies(&two).await), (expected(1, "a"), expected(1, "b")));
    assert!(seen.lock().unwrap().contains("t1/default/src-0"), "{seen:?}");
    assert_eq!(state_of(&manager, "t0"), Some(ClusterState::Ready));

    // What happens in a cluster that is disengaged does not matter any more; the others go on.
    let gone = manager.cluster(&"t0".into()).unwrap();
    manager.disengage(&"t0".into()).await.unwrap();
    assert!(gone.cache().informer_states().is_empty(), "the informers of t0 are gone");
    assert!(manager.cluster(&"t0".into()).is_none());
    for (client, value) in [(&one, "c"), (&two, "d")] {
        common::maps(client.clone())
            .replace("src-0", &Default::default(), &common::map("src-0", value))
            .await
            .unwrap();
    }
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!((copies(&one).await, copies(&two).await), (expected(1, "a"), expected(1, "d")));

    // The same cluster again, although its cache was stopped.
    manager.engage(gone);
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!(copies(&one).await, expected(1, "c"));
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_cluster_that_hangs_delays_nobody_and_is_named() {
    let (env, clock) = Env::simulated(3);
    let runtime = k1s::Runtime::builder().env(env).start().await.unwrap();
    tenants(&runtime, 3).await;
    let manager = manager(&runtime);
    copying(&manager);
    // The one that hangs is there before the start, and before the others.
    manager.engage(Cluster::new("a-hangs", hanging(), manager.cluster_options()));
    let running = start(&manager);
    for name in ["t0", "t1", "t2"] {
        sources(&runtime.tenant_client(name).await.unwrap(), 1, name).await;
        manager.engage(cluster(&runtime, &manager, name).await);
    }
    for name in ["t0", "t1", "t2"] {
        let client = runtime.tenant_client(name).await.unwrap();
        until(async || (copies(&client).await == expected(1, name)).then_some(())).await;
        until(async || (state_of(&manager, name) == Some(ClusterState::Ready)).then_some(())).await;
    }
    assert_eq!(state_of(&manager, "a-hangs"), Some(ClusterState::Engaging));
    clock.advance_and_settle(Duration::from_secs(11)).await;
    let Some(ClusterState::Failing { reason }) = state_of(&manager, "a-hangs") else {
        panic!("{:?}", manager.clusters())
    };
    assert!(reason.contains("no answer for 11s: ConfigMap"), "{reason}");
    assert_eq!(manager.readyz().failures().await, vec![], "the manager is ready nevertheless");
    let metrics = manager.metrics().encode();
    assert!(metrics.contains("k1s_multicluster_clusters{state=\"failing\"} 1"), "{metrics}");
    assert!(metrics.contains("k1s_multicluster_clusters{state=\"ready\"} 3"), "{metrics}");
    // It can be disengaged although it does not answer.
    manager.disengage(&"a-hangs".into()).await.unwrap();
    assert_eq!(manager.clusters().len(), 3);
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn readiness_can_depend_on_clusters() {
    let (env, clock) = Env::simulated(4);
    let runtime = k1s::Runtime::builder().env(env).start().await.unwrap();
    let options = MultiClusterOptions::new().with_ready_needs_clusters(true);
    let manager = manager_with(&runtime, options);
    copying(&manager);
    let running = start(&manager);
    manager.engage(Cluster::new("hangs", hanging(), manager.cluster_options()));
    manager.elected().await;
    until(async || (!manager.cluster(&"hangs".into())?.cache().informer_states().is_empty()).then_some(()))
        .await;
    clock.advance_and_settle(Duration::from_secs(11)).await;
    let failures = manager.readyz().failures().await;
    let (check, reason) = &failures[0];
    assert_eq!(&**check, "clusters");
    assert!(reason.starts_with("1 of 1 clusters fail: hangs: failing: no answer for 11s"), "{reason}");
    running.stop().await;
    runtime.stop().await.unwrap();
}

/// A reconciler that waits for permits, and tells when it has begun.
struct Gate {
    begun: Notify,
    permits: Semaphore,
    ended: Mutex<Vec<String>>,
}

fn gated(manager: &MultiClusterManager) -> Arc<Gate> {
    let gate = Arc::new(Gate { begun: Notify::new(), permits: Semaphore::new(0), ended: Mutex::default() });
    let inside = Arc::clone(&gate);
    Controller::managed_by(manager)
        .named("gated")
        .for_(kind::<ConfigMap>())
        .with_cluster_event_filter(|_, event| event.new.name.as_deref() == Some("src-0"))
        .complete(move |request: Request, context: Context| {
            let gate = Arc::clone(&inside);
            async move {
                gate.begun.notify_one();
                gate.permits.acquire().await?.forget();
                gate.ended.lock().unwrap().push(format!("{}/{request}", context.cluster().name()));
                // A request that comes back is dropped if its cluster is gone.
                Ok::<_, BoxError>(Action::requeue_after(Duration::from_millis(1)))
            }
        })
        .unwrap();
    gate
}

#[tokio::test]
async fn a_disengaged_cluster_lets_its_running_reconciles_finish_and_starts_no_more() {
    let runtime = runtime().await;
    tenants(&runtime, 1).await;
    let client = runtime.tenant_client("t0").await.unwrap();
    sources(&client, 1, "a").await;
    let manager = manager(&runtime);
    let gate = gated(&manager);
    let running = start(&manager);
    manager.engage(cluster(&runtime, &manager, "t0").await);
    gate.begun.notified().await;
    let ending = {
        let manager = manager.clone();
        runtime.env().spawn("disengage", async move { manager.disengage(&"t0".into()).await })
    };
    until(async || (state_of(&manager, "t0") == Some(ClusterState::Disengaging)).then_some(())).await;
    assert!(!ending.is_finished(), "a reconcile is running");
    gate.permits.add_permits(10);
    ending.await.unwrap().unwrap();
    assert_eq!(*gate.ended.lock().unwrap(), ["t0/default/src-0"]);
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!(gate.ended.lock().unwrap().len(), 1, "it was not queued again");
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn reconciles_that_do_not_end_are_named_and_cancelled() {
    let (env, clock) = Env::simulated(5);
    let runtime = k1s::Runtime::builder().env(env).start().await.unwrap();
    tenants(&runtime, 1).await;
    let client = runtime.tenant_client("t0").await.unwrap();
    sources(&client, 1, "a").await;
    let options = MultiClusterOptions::new().with_disengage_timeout(Duration::from_secs(7));
    let manager = manager_with(&runtime, options);
    let gate = gated(&manager);
    let running = start(&manager);
    manager.engage(cluster(&runtime, &manager, "t0").await);
    gate.begun.notified().await;
    let ending = {
        let manager = manager.clone();
        runtime.env().spawn("disengage", async move { manager.disengage(&"t0".into()).await })
    };
    until(async || (state_of(&manager, "t0") == Some(ClusterState::Disengaging)).then_some(())).await;
    clock.settle().await;
    clock.advance_and_settle(Duration::from_secs(7)).await;
    let stuck = ending.await.unwrap().unwrap_err();
    assert_eq!(stuck.to_string(), "cluster \"t0\": cancelled after 7s: gated t0/default/src-0");
    gate.permits.add_permits(10);
    assert!(manager.clusters().is_empty());
    assert!(gate.ended.lock().unwrap().is_empty());
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn reconciles_of_a_cluster_that_hangs_do_not_occupy_the_only_worker() {
    let (env, clock) = Env::simulated(7);
    let runtime = k1s::Runtime::builder().env(env).start().await.unwrap();
    tenants(&runtime, 2).await;
    let options = MultiClusterOptions::new().with_disengage_timeout(Duration::from_secs(1));
    let manager = manager_with(&runtime, options);
    let begun = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&begun);
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .complete(move |request: Request, context: Context| {
            let log = Arc::clone(&log);
            async move {
                if context.cluster().name().as_str() == "t0" {
                    log.lock().unwrap().push(request.to_string());
                    pending::<()>().await;
                }
                copy(request, context).await
            }
        })
        .unwrap();
    let running = start(&manager);
    let (hangs, fine) =
        (runtime.tenant_client("t0").await.unwrap(), runtime.tenant_client("t1").await.unwrap());
    sources(&hangs, 3, "hangs").await;
    sources(&fine, 3, "fine").await;
    manager.engage(cluster(&runtime, &manager, "t0").await);
    until(async || (!begun.lock().unwrap().is_empty()).then_some(())).await;
    manager.engage(cluster(&runtime, &manager, "t1").await);
    clock.settle().await;
    assert_eq!(copies(&fine).await, BTreeMap::new(), "the only worker waits");
    clock.advance_and_settle(Duration::from_secs(5)).await;
    until(async || (copies(&fine).await == expected(3, "fine")).then_some(())).await;
    clock.advance_and_settle(Duration::from_secs(60)).await;
    assert_eq!(begun.lock().unwrap().len(), 1, "one at a time of each cluster");
    // When the slow one ends, there is one worker again.
    let ending = {
        let manager = manager.clone();
        runtime.env().spawn("disengage", async move { manager.disengage(&"t0".into()).await })
    };
    until(async || (state_of(&manager, "t0") == Some(ClusterState::Disengaging)).then_some(())).await;
    clock.settle().await;
    clock.advance_and_settle(Duration::from_secs(1)).await;
    ending.await.unwrap().unwrap_err();
    let workers = || {
        let tasks = runtime.env().tasks();
        tasks
            .iter()
            .filter(|task| &*task.name == "controller configmap")
            .map(|task| task.running())
            .sum::<usize>()
    };
    until(async || (workers() == 1).then_some(())).await;
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn other_credentials_are_engaged_anew_and_flapping_costs_backoff() {
    let (env, clock) = Env::simulated(6);
    let runtime = k1s::Runtime::builder().env(env).start().await.unwrap();
    tenants(&runtime, 1).await;
    let manager = manager(&runtime);
    copying(&manager);
    let running = start(&manager);
    let name = ClusterName::new("t0");
    let mut before = cluster(&runtime, &manager, "t0").await;
    manager.engage(before.clone());
    // The same once more is no change; the first change takes effect at once.
    manager.engage(before.clone());
    assert!(!before.stopped().is_cancelled());
    let next = cluster(&runtime, &manager, "t0").await;
    manager.engage(next.clone());
    until(async || manager.cluster(&name)?.is_same(&next).then_some(())).await;
    assert!(before.stopped().is_cancelled());
    // Then it has to wait: 1 s, 2 s.
    before = next;
    for wait in [1, 2] {
        let next = cluster(&runtime, &manager, "t0").await;
        manager.engage(next.clone());
        let waiting = ClusterState::BackingOff { remaining: Duration::from_secs(wait) };
        until(async || (state_of(&manager, "t0")? == waiting).then_some(())).await;
        assert!(before.stopped().is_cancelled());
        clock.settle().await;
        clock.advance_and_settle(Duration::from_secs(wait)).await;
        until(async || manager.cluster(&name)?.is_same(&next).then_some(())).await;
        before = next;
    }
    // A cluster that was stable does not wait.
    clock.advance_and_settle(Duration::from_secs(61)).await;
    let next = cluster(&runtime, &manager, "t0").await;
    manager.engage(next.clone());
    until(async || manager.cluster(&name)?.is_same(&next).then_some(())).await;
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn indexes_hold_for_clusters_that_are_engaged_later() {
    let runtime = runtime().await;
    tenants(&runtime, 2).await;
    let manager = manager(&runtime);
    copying(&manager);
    let running = start(&manager);
    manager.engage(cluster(&runtime, &manager, "t0").await);
    let value = |map: &ConfigMap| map.data.iter().flatten().map(|(_, value)| value.clone()).collect();
    manager.index_field(&kind::<ConfigMap>(), "value", value);
    manager.engage(cluster(&runtime, &manager, "t1").await);
    for name in ["t0", "t1"] {
        sources(&runtime.tenant_client(name).await.unwrap(), 3, name).await;
        manager.wait_until_idle(idle()).await.unwrap();
        let client = manager.cluster(&name.into()).unwrap().client().clone();
        let found = client
            .list::<ConfigMap>(ListOptions::default().field_selector(&format!("value={name}")).unwrap())
            .await;
        assert_eq!(found.unwrap().len(), 6, "{name}: sources and copies");
    }
    running.stop().await;
    runtime.stop().await.unwrap();
}

/// A provider that knows a cluster, and does not engage it.
struct Knows(Cluster);

#[async_trait]
impl Provider for Knows {
    fn name(&self) -> String {
        "knows".to_owned()
    }

    async fn get(&self, name: &ClusterName) -> Result<Cluster, ProviderError> {
        let known = (self.0.name() == name).then(|| self.0.clone());
        known.ok_or_else(|| ProviderError::NotFound(name.clone()))
    }

    async fn run(self: Arc<Self>, engager: Arc<dyn Engager>, _: CancellationToken) -> Result<(), BoxError> {
        engager.synced();
        Ok(())
    }
}

/// As a reconciler does that reads another cluster each time it runs.
#[tokio::test]
async fn a_cluster_that_is_not_engaged_is_indexed_once_however_often_it_is_asked_for() {
    let runtime = runtime().await;
    tenants(&runtime, 1).await;
    sources(&runtime.tenant_client("t0").await.unwrap(), 3, "a").await;
    let manager = manager(&runtime);
    let (indexed, counted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = Arc::clone(&indexed);
    manager.index_field(&kind::<ConfigMap>(), "value", move |map: &ConfigMap| {
        counts.fetch_add(1, Ordering::Relaxed);
        map.data.iter().flatten().map(|(_, value)| value.clone()).collect()
    });
    manager.add_provider(Arc::new(Knows(cluster(&runtime, &manager, "t0").await)));
    for _ in 0..100 {
        let cluster = manager.get_cluster(&"t0".into()).await.unwrap();
        let found = cluster
            .client()
            .list::<ConfigMap>(ListOptions::default().field_selector("value=a").unwrap())
            .await;
        assert_eq!(found.unwrap().len(), 3);
        let now = indexed.load(Ordering::Relaxed);
        let before = counted.swap(now, Ordering::Relaxed);
        assert!(before == 0 || before == now, "indexed again: {before} calls, then {now}");
    }
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_controller_can_work_with_the_local_cluster_and_skip_others() {
    let runtime = runtime().await;
    let names = tenants(&runtime, 2).await;
    for name in &names {
        sources(&runtime.tenant_client(name).await.unwrap(), 1, name).await;
    }
    sources(&runtime.client(), 1, "host").await;
    let manager = manager(&runtime);
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .engage_with_local(true)
        .with_cluster_filter(|cluster| cluster.name().as_str() != "t1")
        .complete(copy)
        .unwrap();
    let mut provider = StaticProvider::new();
    for name in &names {
        provider = provider.with(name.as_str(), runtime.tenant_client(name).await.unwrap());
    }
    manager.add_provider(Arc::new(provider));
    let metrics = manager.metrics().clone();
    manager.run_until_idle(idle()).await.unwrap();
    assert_eq!(copies(&runtime.client()).await, expected(1, "host"));
    assert_eq!(copies(&runtime.tenant_client("t0").await.unwrap()).await, expected(1, "t0"));
    assert_eq!(copies(&runtime.tenant_client("t1").await.unwrap()).await, BTreeMap::new());
    let metrics = metrics.encode();
    let of = |cluster: &str| format!("{{controller=\"configmap\",cluster=\"{cluster}\",result=\"success\"}}");
    assert!(
        metrics.contains(&of("t0")) && metrics.contains(&of("")) && !metrics.contains(&of("t1")),
        "{metrics}"
    );
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn metrics_of_large_fleets_do_not_name_clusters() {
    let runtime = runtime().await;
    tenants(&runtime, 1).await;
    sources(&runtime.tenant_client("t0").await.unwrap(), 1, "a").await;
    let manager = manager_with(&runtime, MultiClusterOptions::new().with_cluster_label(ClusterLabel::Off));
    copying(&manager);
    manager.add_provider(Arc::new(runtime.tenants_provider()));
    let metrics = manager.metrics().clone();
    manager.run_until_idle(idle()).await.unwrap();
    assert!(!metrics.encode().contains("cluster=\"t0\""));
    assert!(metrics.encode().contains("controller_runtime_reconcile_total{controller=\"configmap\""));
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_controller_can_leave_out_the_clusters_of_providers() {
    let runtime = runtime().await;
    tenants(&runtime, 1).await;
    let inside = runtime.tenant_client("t0").await.unwrap();
    for (client, value) in [(&inside, "t0"), (&runtime.client(), "host")] {
        sources(client, 1, value).await;
    }
    let manager = manager(&runtime);
    let controller = Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .engage_with_local(true)
        .engage_with_providers(false);
    controller.complete(copy).unwrap();
    manager.add_provider(Arc::new(runtime.tenants_provider()));
    let running = start(&manager);
    manager.wait_until_idle(idle()).await.unwrap();
    assert_eq!(state_of(&manager, "t0"), Some(ClusterState::Ready), "it is engaged nevertheless");
    assert!(manager.cluster(&"t0".into()).unwrap().cache().informer_states().is_empty());
    assert_eq!(copies(&runtime.client()).await, expected(1, "host"));
    assert_eq!(copies(&inside).await, BTreeMap::new());
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn events_are_recorded_in_the_cluster_that_they_are_about() {
    let runtime = runtime().await;
    let names = tenants(&runtime, 2).await;
    for name in &names {
        sources(&runtime.tenant_client(name).await.unwrap(), 1, name).await;
    }
    let manager = manager(&runtime);
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .complete(async |request: Request, context: Context| {
            let cluster = context.cluster();
            if request.name() == "src-0"
                && let Some(map) = cluster.client().get_opt::<ConfigMap>(&request).await?
            {
                let recorder = cluster.event_recorder_for("test");
                recorder.event(&*map, EventType::Normal, "Seen", format!("in {}", cluster.name()));
            }
            Ok::<_, BoxError>(Action::done())
        })
        .unwrap();
    manager.add_provider(Arc::new(runtime.tenants_provider()));
    let running = start(&manager);
    let notes = async |client: kube::Client| -> BTreeSet<String> {
        let events = Api::<Event>::all(client).list(&Default::default()).await.unwrap();
        let seen = events.into_iter().filter(|event| event.reason.as_deref() == Some("Seen"));
        seen.filter_map(|event| event.note).collect()
    };
    for name in &names {
        let client = runtime.tenant_client(name).await.unwrap();
        let found = until(async || Some(notes(client.clone()).await).filter(|notes| !notes.is_empty())).await;
        assert_eq!(found, BTreeSet::from([format!("in {name}")]));
    }
    assert_eq!(notes(runtime.client()).await, BTreeSet::new());
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn verbose_readiness_names_a_cluster_that_fails() {
    let (env, clock) = Env::simulated(11);
    let runtime = k1s::Runtime::builder().env(env).start().await.unwrap();
    let mut options = ManagerOptions::local();
    options.health_probe_address = "127.0.0.1:0".to_owned();
    let manager = MultiClusterManager::new(&runtime, options, MultiClusterOptions::new()).unwrap();
    copying(&manager);
    let running = start(&manager);
    manager.engage(Cluster::new("hangs", hanging(), manager.cluster_options()));
    let address = until(async || manager.addresses().health).await;
    let ready = async || {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = "GET /readyz?verbose HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    };
    manager.elected().await;
    assert!(ready().await.contains("[+]clusters ok\n"));
    clock.advance_and_settle(Duration::from_secs(11)).await;
    let text = ready().await;
    let named = "[+]clusters ok: 1 of 1 clusters fail: hangs: failing: no answer for 11s";
    assert!(text.starts_with("HTTP/1.1 200") && text.contains(named), "{text}");
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn metrics_of_controllers_name_clusters_until_they_are_gone() {
    let runtime = runtime().await;
    tenants(&runtime, 2).await;
    sources(&runtime.tenant_client("t0").await.unwrap(), 3, "a").await;
    sources(&runtime.tenant_client("t1").await.unwrap(), 1, "b").await;
    let manager = manager(&runtime);
    let permits = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&permits);
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .with_cluster_event_filter(|_, event| {
            event.new.name.as_deref().is_some_and(|name| name.starts_with("src"))
        })
        .complete(move |_: Request, context: Context| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await?.forget();
                match context.cluster().name().as_str() {
                    "t1" => Err(TerminalError::new("no").into()),
                    _ => Ok::<_, BoxError>(Action::done()),
                }
            }
        })
        .unwrap();
    let running = start(&manager);
    let shows = |name: &str, rest: &str, value: u64| {
        let line = format!("k1s_multicluster_{name}{{controller=\"configmap\",cluster={rest}}} {value}\n");
        manager.metrics().encode().contains(&line)
    };
    manager.engage(cluster(&runtime, &manager, "t0").await);
    // One of them is with the only worker.
    until(async || shows("workqueue_depth", "\"t0\"", 2).then_some(())).await;
    assert!(shows("workqueue_adds_total", "\"t0\"", 3), "{}", manager.metrics().encode());
    manager.engage(cluster(&runtime, &manager, "t1").await);
    until(async || shows("workqueue_depth", "\"t1\"", 1).then_some(())).await;
    permits.add_permits(100);
    manager.wait_until_idle(idle()).await.unwrap();
    for (name, rest, value) in [
        ("workqueue_depth", "\"t0\"", 0),
        ("workqueue_adds_total", "\"t1\"", 1),
        ("reconcile_time_seconds_count", "\"t0\"", 3),
        ("reconcile_total", "\"t0\",result=\"success\"", 3),
        ("reconcile_total", "\"t1\",result=\"error\"", 1),
    ] {
        assert!(shows(name, rest, value), "{name} {rest} {value}: {}", manager.metrics().encode());
    }
    manager.disengage(&"t0".into()).await.unwrap();
    let metrics = manager.metrics().encode();
    assert!(!metrics.contains("cluster=\"t0\"") && metrics.contains("cluster=\"t1\""), "{metrics}");
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_noisy_cluster_does_not_starve_the_others() {
    let runtime = runtime().await;
    tenants(&runtime, 2).await;
    let (noisy, quiet) =
        (runtime.tenant_client("t0").await.unwrap(), runtime.tenant_client("t1").await.unwrap());
    sources(&noisy, 200, "noise").await;
    sources(&quiet, 5, "signal").await;
    let manager = manager(&runtime);
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&order);
    let open = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&open);
    let controller = Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .with_cluster_event_filter(|_, event| {
            event.new.name.as_deref().is_some_and(|name| name.starts_with("src"))
        })
        .with_options(ControllerOptions::concurrent(1))
        .build(move |_: Request, context: Context| {
            let (log, gate) = (Arc::clone(&log), Arc::clone(&gate));
            async move {
                gate.acquire().await?.forget();
                log.lock().unwrap().push(context.cluster().name().to_string());
                Ok::<_, BoxError>(Action::done())
            }
        })
        .unwrap();
    let running = start(&manager);
    manager.engage(cluster(&runtime, &manager, "t0").await);
    // All 200 are there (one of them is being reconciled) before the first of the other cluster.
    until(async || (controller.queue().len() == 199).then_some(())).await;
    manager.engage(cluster(&runtime, &manager, "t1").await);
    until(async || (controller.queue().len() == 204).then_some(())).await;
    open.add_permits(1000);
    manager.wait_until_idle(idle()).await.unwrap();
    let order = order.lock().unwrap().clone();
    assert_eq!(order.len(), 205);
    let last = order.iter().rposition(|name| name == "t1").unwrap();
    assert!(last <= 12, "5 of one cluster are done after 12 runs, not after {last}: {:?}", &order[..20]);
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn events_of_the_host_queue_requests_of_other_clusters() {
    let runtime = runtime().await;
    let names = tenants(&runtime, 3).await;
    let manager = manager(&runtime);
    let clusters = names.clone();
    let own = manager.clone();
    // Copies templates of the host into every cluster, and corrects drift.
    Controller::managed_by(&manager)
        .named("templates")
        .watches(kind::<ConfigMap>(), |_| Handler::for_object())
        .watches_host(
            kind::<ConfigMap>(),
            Handler::map_object(move |map: &ConfigMap| {
                let key = k1s::ObjectKey::of(map);
                clusters.iter().map(|name| MultiRequest::new(name.as_str(), key.clone())).collect::<Vec<_>>()
            }),
        )
        .complete_multi(move |request: MultiRequest, context: Context| {
            let host = own.local_cluster().client().clone();
            async move {
                if !request.request.name().starts_with("template") {
                    return Ok(Action::done());
                }
                let Some(template) = host.get_opt::<ConfigMap>(&request.request).await? else {
                    return Ok(Action::done());
                };
                let client = context.cluster().client();
                let value = &template.data.clone().unwrap_or_default()["value"];
                let wanted = common::map(request.request.name(), value);
                match client.get_opt::<ConfigMap>(&request.request).await? {
                    None => drop(client.create(&wanted).await?),
                    Some(found) if found.data != wanted.data => {
                        let mut found = (*found).clone();
                        found.data = wanted.data;
                        client.update(&found).await?;
                    }
                    Some(_) => {}
                }
                Ok::<_, BoxError>(Action::done())
            }
        })
        .unwrap();
    manager.add_provider(Arc::new(runtime.tenants_provider()));
    let running = start(&manager);
    common::maps(runtime.client()).create(&Default::default(), &common::map("template", "x")).await.unwrap();
    manager.wait_until_idle(idle()).await.unwrap();
    let drifting = common::maps(runtime.tenant_client("t1").await.unwrap());
    drifting.replace("template", &Default::default(), &common::map("template", "drift")).await.unwrap();
    manager.wait_until_idle(idle()).await.unwrap();
    for name in &names {
        let maps = common::maps(runtime.tenant_client(name).await.unwrap());
        assert_eq!(maps.get("template").await.unwrap().data.unwrap()["value"], "x", "{name}");
    }
    running.stop().await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn clusters_are_engaged_and_disengaged_under_load() {
    let runtime = runtime().await;
    let names = tenants(&runtime, 8).await;
    let manager = manager(&runtime);
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .with_options(ControllerOptions::concurrent(4))
        .complete(copy)
        .unwrap();
    let running = start(&manager);
    let mut writers = Vec::new();
    for name in &names {
        let client = runtime.tenant_client(name).await.unwrap();
        writers.push(runtime.env().spawn("writer", async move { sources(&client, 40, "load").await }));
    }
    for round in 0..6 {
        for (number, name) in names.iter().enumerate() {
            if (round + number) % 2 == 0 {
                manager.engage(cluster(&runtime, &manager, name).await);
            } else {
                manager.disengage(&name.as_str().into()).await.unwrap();
            }
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
    for name in &names {
        if manager.cluster(&name.as_str().into()).is_none() && state_of(&manager, name).is_none() {
            manager.engage(cluster(&runtime, &manager, name).await);
        }
    }
    for name in &names {
        let client = runtime.tenant_client(name).await.unwrap();
        until(async || (copies(&client).await == expected(40, "load")).then_some(())).await;
    }
    running.stop().await;
    runtime.stop().await.unwrap();
}
