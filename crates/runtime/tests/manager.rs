//! The lifecycle of a manager: order of start and stop, causes of its end, and cleanup.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::{sync::Arc, time::Duration};

use common::{HANG, World, config_map, idle, start};
use k1s_runtime::{
    Action, BoxError, Context, Controller, Manager, ManagerError, ManagerOptions, ObjectKey, Request, kind,
    leader::LeaderElectionOptions, runnable, source,
};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn nothing() -> impl source::Source<Request> {
    source::func("none", |_: source::SourceContext| async {})
}

#[tokio::test]
async fn a_manager_is_started_once() {
    let world = World::new().await;
    let manager = world.manager();
    let running = start(&manager);
    manager.elected().await;
    let again = manager.start(CancellationToken::new()).await.unwrap_err();
    assert_eq!(again.to_string(), "manager already started");
    running.end().await.unwrap();
}

#[tokio::test]
async fn the_field_owner_is_set_once_for_all_writes() {
    let world = World::new().await;
    let owner = |change: fn(&mut ManagerOptions)| {
        let mut options = world.options();
        change(&mut options);
        let client = Manager::new(world.kube.clone(), options).unwrap().client();
        client.field_owner().map(str::to_owned)
    };
    assert_eq!(owner(|options| options.field_owner = Some("me".into())).as_deref(), Some("me"));
    let elect = |options: &mut ManagerOptions| {
        options.leader_election = Some(LeaderElectionOptions::new("my-operator", "default"));
    };
    assert_eq!(owner(elect).as_deref(), Some("my-operator"));
    let program = owner(|_| {}).unwrap();
    assert!(program.starts_with("manager"), "{program}");
}

#[tokio::test]
async fn a_reconcile_in_flight_ends_before_the_manager_and_no_other_begins() {
    let (world, clock) = World::simulated(1).await;
    let manager = world.manager();
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let (started, wait, noted) = (begun.clone(), go.clone(), log.clone());
    let controller = Controller::managed_by(&manager)
        .named("slow")
        .watches_raw_source(nothing())
        .build(move |request: Request, context: Context| {
            let (started, wait, noted) = (started.clone(), wait.clone(), noted.clone());
            async move {
                noted.lock().push(format!("begin {request}"));
                started.notify_one();
                wait.notified().await;
                noted
                    .lock()
                    .push(format!("end {request} cancelled={}", context.cancellation().is_cancelled()));
                Ok::<_, BoxError>(Action::done())
            }
        })
        .unwrap();
    let running = start(&manager);
    controller.queue().add(key("a"));
    begun.notified().await;
    controller.queue().add(key("b"));
    running.stop.cancel();
    // If it did not wait for the reconcile, the manager would have ended once everything is settled.
    clock.settle().await;
    assert!(!running.task.is_finished());
    go.notify_one();
    running.end().await.unwrap();
    assert_eq!(*log.lock(), ["begin default/a", "end default/a cancelled=false"]);
}

#[tokio::test]
async fn a_shutdown_timeout_is_an_error_that_names_the_keys() {
    let world = World::new().await;
    let mut options = world.options();
    options.graceful_shutdown_timeout = Some(Duration::from_millis(100));
    let manager = Manager::new(world.kube.clone(), options).unwrap();
    let begun = Arc::new(Notify::new());
    let started = begun.clone();
    let controller = Controller::managed_by(&manager)
        .named("stuck")
        .watches_raw_source(nothing())
        .build(move |_: Request, context: Context| {
            let started = started.clone();
            async move {
                started.notify_one();
                context.cancelled().await;
                std::future::pending::<()>().await;
                Ok::<_, BoxError>(Action::done())
            }
        })
        .unwrap();
    let running = start(&manager);
    controller.queue().add(key("deep/in/it"));
    begun.notified().await;
    let error = running.end().await.unwrap_err();
    let ManagerError::ShutdownTimeout { stuck } = &error else { panic!("{error}") };
    assert!(stuck.len() == 1 && stuck[0].starts_with("reconcile/stuck default/deep/in/it"), "{stuck:?}");
    assert!(error.to_string().contains("default/deep/in/it"));
    // No task is left.
    manager.work().wait_idle(HANG).await.unwrap();
}

#[tokio::test]
async fn unfinished_work_is_done_after_a_restart() {
    let world = World::new().await;
    let live = world.live();
    let done: Arc<Mutex<Vec<String>>> = Arc::default();
    for n in 0..20 {
        live.create(&config_map(&format!("m{n:02}"), &[])).await.unwrap();
    }
    let mut starts = 0;
    while done.lock().len() < 20 {
        starts += 1;
        assert!(starts <= 20, "each start does something: {:?}", done.lock());
        let manager = world.manager();
        let (client, noted, stop) = (manager.client(), done.clone(), CancellationToken::new());
        let (token, begun_with) = (stop.clone(), done.lock().len());
        Controller::managed_by(&manager)
            .for_(kind::<ConfigMap>())
            .complete(move |request: Request, _: Context| {
                let (client, noted, token) = (client.clone(), noted.clone(), token.clone());
                async move {
                    let map = client.get::<ConfigMap>(&request).await?;
                    if request.name().starts_with('m') && map.data.as_ref().is_none_or(|data| data.is_empty())
                    {
                        // A shutdown during the run: this reconcile still completes.
                        if noted.lock().len() > begun_with + 3 {
                            token.cancel();
                        }
                        let mut map = (*map).clone();
                        map.data.get_or_insert_default().insert("done".into(), "yes".into());
                        client.update(&map).await?;
                        noted.lock().push(request.to_string());
                    }
                    Ok::<_, BoxError>(Action::done())
                }
            })
            .unwrap();
        let idle = async {
            let _ = manager.wait_until_idle(k1s_runtime::IdleOptions::within(HANG)).await;
            stop.cancel();
        };
        let (ended, ()) = tokio::join!(manager.start(stop.clone()), idle);
        ended.unwrap();
    }
    assert!(starts > 1, "the shutdowns interrupted the work");
    let mut done = done.lock().clone();
    done.sort();
    done.dedup();
    assert_eq!(done.len(), 20);
}

#[tokio::test]
async fn runnables_start_and_stop_in_order_and_a_failing_one_ends_the_manager() {
    let world = World::new().await;
    let manager = world.manager();
    let log: watch::Sender<Vec<&'static str>> = watch::Sender::default();
    let noting = |begin: &'static str, end: &'static str| {
        let log = log.clone();
        move |stop: CancellationToken| {
            let log = log.clone();
            async move {
                log.send_modify(|log| log.push(begin));
                stop.cancelled().await;
                log.send_modify(|log| log.push(end));
                Ok(())
            }
        }
    };
    manager.add(runnable("needs a leader", noting("leader +", "leader -")));
    manager.add(runnable("everywhere", noting("other +", "other -")).without_leader_election());
    let running = start(&manager);
    let mut seen = log.subscribe();
    world.env.timeout(HANG, seen.wait_for(|log| log.len() == 2)).await.unwrap().unwrap();
    // Added to a running manager: started immediately.
    manager.add(runnable("late", noting("late +", "late -")));
    world.env.timeout(HANG, seen.wait_for(|log| log.len() == 3)).await.unwrap().unwrap();
    running.end().await.unwrap();
    let log = log.borrow().clone();
    let at = |what: &str| log.iter().position(|one| *one == what).unwrap();
    assert!(at("other -") < at("leader -"), "{log:?}");
    assert!(at("leader +") < at("late +"), "{log:?}");

    let manager = world.manager();
    manager.add(runnable("doomed", |_| async { Err("no luck".into()) }));
    let error = manager.start(CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "doomed: no luck");
}

#[tokio::test]
async fn endpoints_serve_health_readiness_and_metrics() {
    let world = World::new().await;
    let mut options = world.options();
    options.metrics_address = "127.0.0.1:0".into();
    options.health_probe_address = "127.0.0.1:0".into();
    let manager = Manager::new(world.kube.clone(), options).unwrap();
    let resource =
        kube::api::ApiResource::from_gvk(&kube::api::GroupVersionKind::gvk("test.k1s.dev", "v1", "Widget"));
    let widgets = k1s_runtime::Kind::<kube::api::DynamicObject>::dynamic(resource);
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .complete(|_: Request, _: Context| async { Ok::<_, BoxError>(Action::done()) })
        .unwrap();
    manager.add_healthz_check("own", || async { Ok(()) });
    let running = start(&manager);
    idle(&manager).await;
    let addresses = manager.addresses();
    let get = async |address: std::net::SocketAddr, path: &str| -> (u16, String) { get(address, path).await };
    assert_eq!(get(addresses.health.unwrap(), "/healthz").await, (200, "ok".into()));
    assert_eq!(get(addresses.health.unwrap(), "/readyz").await.0, 200);
    let (code, text) = get(addresses.metrics.unwrap(), "/metrics").await;
    assert_eq!(code, 200);
    for name in [
        "controller_runtime_reconcile_total",
        "controller_runtime_reconcile_time_seconds_bucket",
        "workqueue_depth",
        "workqueue_adds_total",
        "workqueue_queue_duration_seconds_count",
        "workqueue_work_duration_seconds_sum",
        "workqueue_unfinished_work_seconds",
        "workqueue_longest_running_processor_seconds",
        "workqueue_retries_total",
        r#"rest_client_requests_total{code="200",method="GET""#,
    ] {
        assert!(text.contains(name), "{name} is not in\n{text}");
    }
    // A kind that is not served: the manager is not ready, names the kind, and continues.
    manager.cache().get(&widgets, &key("w")).await.unwrap_err();
    let Some(Err(text)) = manager.readyz().run("caches").await else { panic!("it is ready") };
    assert!(
        text.contains("Widget.test.k1s.dev: the server does not serve widgets.test.k1s.dev (v1)"),
        "{text}"
    );
    assert_eq!(get(addresses.health.unwrap(), "/readyz").await.0, 500);
    assert_eq!(get(addresses.health.unwrap(), "/healthz").await.0, 200);
    running.end().await.unwrap();
}

#[tokio::test]
async fn metrics_can_be_protected_and_health_is_not() {
    use k1s_runtime::{endpoint::AccessReviewOptions, manager::MetricsServing};
    let world = World::new().await;
    for secure in [false, true] {
        let mut options = world.options();
        options.metrics_address = "127.0.0.1:0".into();
        options.health_probe_address = "127.0.0.1:0".into();
        options.metrics_serving = MetricsServing {
            secure,
            access_review: Some(AccessReviewOptions::default()),
            ..MetricsServing::default()
        };
        let manager = Manager::new(world.kube.clone(), options).unwrap();
        let running = start(&manager);
        world.env.timeout(HANG, manager.elected()).await.unwrap();
        let addresses = manager.addresses();
        assert_eq!(get(addresses.health.unwrap(), "/healthz").await.0, 200);
        if secure {
            let handshake = b"GET /metrics HTTP/1.1\r\nhost: test\r\n\r\n";
            let mut stream = tokio::net::TcpStream::connect(addresses.metrics.unwrap()).await.unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut stream, handshake).await.unwrap();
            let mut answer = Vec::new();
            let _ = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer).await;
            assert!(!answer.starts_with(b"HTTP"), "it is no plain HTTP");
        } else {
            let refused = get(addresses.metrics.unwrap(), "/metrics").await;
            assert_eq!(refused, (401, "Unauthorized\n".to_owned()));
        }
        running.end().await.unwrap();
    }
    let mut options = world.options();
    options.metrics_address = "127.0.0.1:0".into();
    options.metrics_serving =
        MetricsServing { cert_dir: Some("/nowhere".into()), ..MetricsServing::secure() };
    let manager = Manager::new(world.kube.clone(), options).unwrap();
    let error = manager.start(CancellationToken::new()).await.unwrap_err().to_string();
    assert!(error.starts_with("metrics: /nowhere/tls.crt cannot be read"), "{error}");
}

async fn get(address: std::net::SocketAddr, path: &str) -> (u16, String) {
    http(address, "GET", path, "").await
}

async fn post(address: std::net::SocketAddr, path: &str, body: &str) -> (u16, String) {
    http(address, "POST", path, body).await
}

async fn http(address: std::net::SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, body.to_owned())
}

#[tokio::test]
async fn only_the_leader_works_and_the_next_one_takes_over() {
    let world = World::new().await;
    let with_election = || {
        let mut options = world.options();
        options.leader_election = Some(LeaderElectionOptions::new("test", "default"));
        Manager::new(world.kube.clone(), options).unwrap()
    };
    let worked: Arc<Mutex<Vec<usize>>> = Arc::default();
    let managers: Vec<Manager> = (0..2).map(|_| with_election()).collect();
    for (n, manager) in managers.iter().enumerate() {
        let worked = worked.clone();
        Controller::managed_by(manager)
            .for_(kind::<ConfigMap>())
            .complete(move |request: Request, _: Context| {
                if request.namespace() == Some("default") && request.name() == "a" {
                    worked.lock().push(n);
                }
                async { Ok::<_, BoxError>(Action::done()) }
            })
            .unwrap();
    }
    let first = start(&managers[0]);
    world.env.timeout(HANG, managers[0].elected()).await.unwrap();
    let second = start(&managers[1]);
    world.live().create(&config_map("a", &[])).await.unwrap();
    idle(&managers[0]).await;
    assert_eq!(*worked.lock(), [0]);
    // On a graceful end it releases the lease: the other manager need not wait for its expiry.
    first.end().await.unwrap();
    let holder = world.live().get::<Lease>(&key("test")).await.unwrap();
    drop(holder);
    world.env.timeout(HANG, managers[1].elected()).await.unwrap();
    idle(&managers[1]).await;
    assert_eq!(*worked.lock(), [0, 1]);
    second.end().await.unwrap();
}

#[tokio::test]
async fn a_controller_can_have_its_own_election() {
    let world = World::new().await;
    let ran: watch::Sender<Vec<(usize, String)>> = watch::Sender::default();
    let managers: Vec<Manager> = (0..2).map(|_| world.manager()).collect();
    for (n, manager) in managers.iter().enumerate() {
        for name in ["shared", "everywhere"] {
            let ran = ran.clone();
            let election = LeaderElectionOptions::new("shared", "default");
            let options = k1s_runtime::ControllerOptions {
                leader_election: (name == "shared").then_some(election),
                needs_leader_election: Some(name == "shared"),
                ..Default::default()
            };
            Controller::managed_by(manager)
                .named(name)
                .with_options(options)
                .for_(kind::<ConfigMap>())
                .complete(move |request: Request, context: Context| {
                    if request.name() == "a" {
                        ran.send_modify(|ran| ran.push((n, context.controller().to_owned())));
                    }
                    async { Ok::<_, BoxError>(Action::done()) }
                })
                .unwrap();
        }
    }
    world.live().create(&config_map("a", &[])).await.unwrap();
    let running: Vec<_> = managers.iter().map(start).collect();
    world.env.timeout(HANG, ran.subscribe().wait_for(|ran| ran.len() == 3)).await.unwrap().unwrap();
    let ran = ran.borrow().clone();
    let mut everywhere: Vec<usize> =
        ran.iter().filter(|(_, name)| name == "everywhere").map(|(n, _)| *n).collect();
    everywhere.sort_unstable();
    assert_eq!(everywhere, [0, 1]);
    assert_eq!(ran.iter().filter(|(_, name)| name == "shared").count(), 1);
    for running in running {
        running.end().await.unwrap();
    }
}

#[tokio::test]
async fn webhooks_are_served_as_long_as_the_manager_runs() {
    let world = World::new().await;
    let mut options = world.options();
    options.webhook.port = 0;
    options.webhook.host = Some([127, 0, 0, 1].into());
    options.webhook.tls = false;
    let manager = Manager::new(world.kube.clone(), options).unwrap();
    k1s_runtime::webhook::Webhook::for_::<ConfigMap>()
        .validate_with(|validation, _| match validation.object() {
            Some(object) if object.data.is_none() => Err("data is needed".into()),
            _ => Ok(vec![]),
        })
        .complete(manager.webhook_server())
        .unwrap();
    let running = start(&manager);
    let address = world.env.timeout(HANG, manager.webhook_server().bound()).await.unwrap();
    manager.elected().await;
    assert_eq!(manager.addresses().webhook, Some(address));
    let review = serde_json::json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "name": "a", "namespace": "default", "operation": "CREATE", "userInfo": {"username": "test"},
            "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}},
        },
    });
    let (code, answer) = post(address, "/validate--v1-configmap", &review.to_string()).await;
    assert_eq!(code, 200, "{answer}");
    assert!(answer.contains("data is needed") && answer.contains(r#""allowed":false"#), "{answer}");
    assert!(manager.metrics().encode().contains("controller_runtime_webhook_requests_total"));
    running.end().await.unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn losing_the_lease_ends_the_manager() {
    let world = World::new().await;
    let mut options = world.options();
    let mut election = LeaderElectionOptions::new("test", "default");
    election.lease_duration = Duration::from_millis(1000);
    election.renew_deadline = Duration::from_millis(300);
    election.retry_period = Duration::from_millis(50);
    options.leader_election = Some(election);
    let manager = Manager::new(world.kube.clone(), options).unwrap();
    let running = start(&manager);
    world.env.timeout(HANG, manager.elected()).await.unwrap();
    world.faults.refuse(|request| request.method().eq("PUT").then_some(500));
    let ended = world.env.timeout(HANG, running.task).await.unwrap().unwrap();
    assert_eq!(ended.unwrap_err().to_string(), "leader election lost");
}

#[tokio::test]
async fn a_stopped_manager_leaves_no_tasks() {
    let (env, _clock) = k1s_env::Env::simulated(9);
    let store = Arc::new(k1s_store::MemoryStore::new(env.clone(), k1s_store::MemoryOptions::default()));
    let world = World::with(env.clone(), store).await;
    let before: Vec<String> = env.tasks().iter().map(|task| task.name.to_string()).collect();
    let manager = world.manager();
    let client = manager.client();
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .complete(move |request: Request, _: Context| {
            let client = client.clone();
            async move {
                client.list::<k8s_openapi::api::core::v1::Secret>(Default::default()).await?;
                client.get_opt::<ConfigMap>(&request).await?;
                Ok::<_, BoxError>(Action::requeue_after(Duration::from_secs(5)))
            }
        })
        .unwrap();
    let running = start(&manager);
    idle(&manager).await;
    running.end().await.unwrap();
    let after: Vec<String> = env.tasks().iter().map(|task| task.name.to_string()).collect();
    let left: Vec<&String> = after
        .iter()
        .filter(|name| !before.contains(name))
        // Except the server's watch caches, which stay.
        .filter(|name| *name != "store-feed" && !name.starts_with("watch cache"))
        .collect();
    assert!(left.is_empty(), "{left:?}; before: {before:?}");
    assert_eq!(manager.work().in_flight(), 0);
}

#[tokio::test]
async fn caches_are_synced_before_runnables_start() {
    let world = World::new().await;
    world.live().create(&config_map("a", &[])).await.unwrap();
    let manager = world.manager();
    // Lists are refused until the test has checked that nothing was started.
    let held = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let (refuse, requested) = (held.clone(), Arc::new(Notify::new()));
    let notify = requested.clone();
    world.faults.refuse(move |request| {
        let is_list = request.uri().path() == "/api/v1/configmaps";
        let refused = is_list && refuse.load(std::sync::atomic::Ordering::SeqCst);
        if refused {
            notify.notify_one();
        }
        refused.then_some(500)
    });
    let informer = manager.cache().informer(&kind::<ConfigMap>()).unwrap();
    // A kind that is not served does not delay them: a runnable may be about to install it.
    let resource =
        kube::api::ApiResource::from_gvk(&kube::api::GroupVersionKind::gvk("test.k1s.dev", "v1", "Widget"));
    let widgets = k1s_runtime::Kind::<kube::api::DynamicObject>::dynamic(resource);
    manager.cache().informer(&widgets).unwrap();
    let found = watch::Sender::new(Vec::new());
    for needs_leader in [false, true] {
        let (informer, found) = (informer.clone(), found.clone());
        let reads = runnable(format!("reads {needs_leader}"), move |_| {
            let complete = informer.has_synced() && informer.get(&key("a")).is_some();
            found.send_modify(|found| found.push(complete));
            async { Ok(()) }
        });
        manager.add(if needs_leader { reads } else { reads.without_leader_election() });
    }
    let running = start(&manager);
    for _ in 0..2 {
        world.env.timeout(HANG, requested.notified()).await.unwrap();
    }
    assert!(found.borrow().is_empty());
    held.store(false, std::sync::atomic::Ordering::SeqCst);
    let mut updates = found.subscribe();
    world.env.timeout(HANG, updates.wait_for(|found| found.len() == 2)).await.unwrap().unwrap();
    assert_eq!(*found.borrow(), [true, true]);
    running.end().await.unwrap();

    // A manager that is stopped while waiting starts nothing.
    let manager = world.manager();
    held.store(true, std::sync::atomic::Ordering::SeqCst);
    manager.cache().informer(&kind::<ConfigMap>()).unwrap();
    manager.add(runnable("never", |_| async { Err("it was started".into()) }));
    let running = start(&manager);
    world.env.timeout(HANG, requested.notified()).await.unwrap();
    world.env.timeout(HANG, running.end()).await.unwrap().unwrap();
}

#[tokio::test]
async fn controllers_inherit_the_managers_options_unless_overridden() {
    use k1s_runtime::{ControllerDefaults, ControllerOptions, GroupKind};
    let world = World::new().await;
    let mut options = world.options();
    let number = |n| std::num::NonZeroUsize::new(n).unwrap();
    options.controller = ControllerDefaults {
        max_concurrent_reconciles: Some(number(3)),
        group_kind_concurrency: [(GroupKind::of::<ConfigMap>(), number(5))].into(),
        recover_panic: Some(false),
        ..Default::default()
    };
    let manager = Manager::new(world.kube.clone(), options).unwrap();
    let reconcile = |_: Request, _: Context| async { Ok::<_, BoxError>(Action::done()) };
    Controller::managed_by(&manager).for_(kind::<ConfigMap>()).complete(reconcile).unwrap();
    Controller::managed_by(&manager).for_(kind::<Lease>()).complete(reconcile).unwrap();
    Controller::managed_by(&manager).named("raw").watches_raw_source(nothing()).complete(reconcile).unwrap();
    Controller::managed_by(&manager)
        .named("own")
        .with_options(ControllerOptions::concurrent(1))
        .for_(kind::<ConfigMap>())
        .complete(reconcile)
        .unwrap();
    let metrics = manager.metrics().encode();
    for (name, count) in [("configmap", 5), ("lease", 3), ("raw", 3), ("own", 1)] {
        let line = format!(r#"controller_runtime_max_concurrent_reconciles{{controller="{name}"}} {count}"#);
        assert!(metrics.contains(&line), "{line} is not in\n{metrics}");
    }
    // A panic ends the manager here, unless a controller overrides it.
    for (recovers, ended) in [(None, true), (Some(true), false)] {
        let mut options = world.options();
        options.controller.recover_panic = Some(false);
        let manager = Manager::new(world.kube.clone(), options).unwrap();
        let controller = Controller::managed_by(&manager)
            .named("panics")
            .with_options(ControllerOptions { recover_panic: recovers, ..Default::default() })
            .watches_raw_source(nothing())
            .build(|_: Request, context: Context| async move {
                assert!(context.attempt() > 1, "out of luck");
                Ok::<_, BoxError>(Action::done())
            })
            .unwrap();
        controller.queue().add(key("a"));
        let report = manager.run_until_idle(k1s_runtime::IdleOptions::within(HANG)).await;
        assert_eq!(report.is_err(), ended, "{report:?}");
    }
}
