//! Controllers from the user's view: triggers of requests, effects of results, the reconciler's context.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;
#[path = "controllers/owners.rs"]
mod owners;
#[path = "controllers/panics.rs"]
mod panics;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use common::{World, config_map, idle, start};
use k1s_runtime::{
    Action, BoxError, Context, Controller, ControllerOptions, Event, Handler, IdleOptions, ManagerError,
    ObjectKey, Reconciler, Request, TerminalError, client::ListOptions, kind, metadata, predicate, source,
    util,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::{ResourceExt as _, api::ObjectMeta};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Records the requests that it gets.
#[derive(Clone, Default)]
struct Seen(watch::Sender<Vec<(String, Context)>>);

impl Seen {
    fn reconciler(&self) -> impl Reconciler<Request> + use<> {
        let seen = self.clone();
        move |request: Request, context: Context| {
            seen.0.send_modify(|seen| seen.push((request.to_string(), context)));
            async { Ok::<_, BoxError>(Action::done()) }
        }
    }

    fn take(&self) -> Vec<String> {
        self.0.send_replace(Vec::new()).into_iter().map(|(key, _)| key).collect()
    }

    /// Waits until `count` requests were seen.
    async fn at_least(&self, world: &World, count: usize) {
        let mut seen = self.0.subscribe();
        let waited = world.env.timeout(common::HANG, seen.wait_for(|seen| seen.len() >= count)).await;
        waited.expect("all requests arrive").unwrap();
    }

    fn causes(&self) -> Vec<Vec<String>> {
        self.0
            .send_replace(Vec::new())
            .into_iter()
            .map(|(_, context)| context.causes().iter().map(ToString::to_string).collect())
            .collect()
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

#[tokio::test]
async fn each_object_is_reconciled_with_its_causes() {
    let world = World::new().await;
    let live = world.live();
    live.create(&config_map("before", &[])).await.unwrap();
    let manager = world.manager();
    let seen = Seen::default();
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>().with_predicate(predicate::label_selector("!system").unwrap().and(
            predicate::MetaPredicate::new(|event| {
                event.new.namespace.as_deref() == Some("default")
                    && event.new.name.as_deref() != Some("kube-root-ca.crt")
            }),
        )))
        .complete(seen.reconciler())
        .unwrap();
    let running = start(&manager);
    idle(&manager).await;
    let causes = seen.causes();
    assert_eq!(causes.len(), 1, "{causes:?}");
    assert!(
        causes[0][0].starts_with("ConfigMap default/before") && causes[0][0].contains("listed"),
        "{causes:?}"
    );

    let created = live.create(&config_map("a", &[("x", "1")])).await.unwrap();
    idle(&manager).await;
    let version = created.resource_version().unwrap();
    assert_eq!(seen.causes(), [[format!("ConfigMap default/a created (rv {version})")]]);

    live.update(&ConfigMap { data: None, ..created.clone() }).await.unwrap();
    idle(&manager).await;
    let causes = seen.causes();
    assert!(causes.len() == 1 && causes[0][0].contains("default/a updated"), "{causes:?}");

    live.delete(&created).await.unwrap();
    idle(&manager).await;
    let causes = seen.causes();
    assert!(causes.len() == 1 && causes[0][0].contains("default/a deleted"), "{causes:?}");
    running.end().await.unwrap();
}

#[tokio::test]
async fn children_queue_their_owner_and_a_change_of_owner_queues_both() {
    let world = World::new().await;
    let live = world.live();
    let manager = world.manager();
    let seen = Seen::default();
    Controller::managed_by(&manager)
        .for_(kind::<ServiceAccount>())
        .owns(kind::<ConfigMap>())
        .owns(kind::<Secret>().match_every_owner())
        .complete(seen.reconciler())
        .unwrap();
    let running = start(&manager);
    let account = |name: &str| ServiceAccount {
        metadata: ObjectMeta {
            name: Some(name.into()),
            namespace: Some("default".into()),
            ..Default::default()
        },
        ..Default::default()
    };
    let one = live.create(&account("one")).await.unwrap();
    let two = live.create(&account("two")).await.unwrap();
    idle(&manager).await;
    seen.take();

    let mut child = config_map("child", &[]);
    util::set_controller_reference(&one, &mut child).unwrap();
    let stored = live.create(&child).await.unwrap();
    idle(&manager).await;
    assert_eq!(seen.take(), ["default/one"]);

    let mut moved = stored.clone();
    moved.metadata.owner_references = None;
    util::set_controller_reference(&two, &mut moved).unwrap();
    let moved = live.update(&moved).await.unwrap();
    idle(&manager).await;
    assert_eq!(
        BTreeSet::from_iter(seen.take()),
        BTreeSet::from(["default/one".into(), "default/two".into()])
    );

    // An owner that is not the controller counts only if all owners do.
    let mut shared = moved.clone();
    shared.metadata.owner_references.as_mut().unwrap()[0].controller = None;
    live.update(&shared).await.unwrap();
    idle(&manager).await;
    assert_eq!(seen.take(), ["default/two"], "the old state was controlled");
    let mut secret = Secret {
        metadata: ObjectMeta {
            name: Some("s".into()),
            namespace: Some("default".into()),
            ..Default::default()
        },
        ..Default::default()
    };
    util::set_owner_reference(&one, &mut secret).unwrap();
    live.create(&secret).await.unwrap();
    idle(&manager).await;
    assert_eq!(seen.take(), ["default/one"]);
    running.end().await.unwrap();
}

#[tokio::test]
async fn mappers_see_the_old_and_new_object_and_may_read_the_cache() {
    let world = World::new().await;
    let live = world.live();
    let manager = world.manager();
    let seen = Seen::default();
    let client = manager.client();
    Controller::managed_by(&manager)
        .named("mapped")
        .watches(
            kind::<Secret>(),
            Handler::map(|event: &Event<Secret>| {
                let names = event.old().into_iter().chain([event.object()]);
                names.filter_map(|secret| Some(key(secret.annotations().get("for")?))).collect::<Vec<_>>()
            }),
        )
        .watches(
            metadata::<ServiceAccount>(),
            Handler::map_async(move |event| {
                let client = client.clone();
                async move {
                    let name = event.key().name().to_owned();
                    let all = client.list::<ConfigMap>(ListOptions::in_namespace("default")).await.unwrap();
                    all.into_iter()
                        .map(|map| key(&map.name_any()))
                        .filter(|key| key.name().starts_with(&name))
                        .collect::<Vec<_>>()
                }
            }),
        )
        .complete(seen.reconciler())
        .unwrap();
    let running = start(&manager);
    idle(&manager).await;
    seen.take();
    let secret = |target: &str| Secret {
        metadata: ObjectMeta {
            name: Some("s".into()),
            namespace: Some("default".into()),
            annotations: Some(BTreeMap::from([("for".into(), target.into())])),
            ..Default::default()
        },
        ..Default::default()
    };
    let stored = live.create(&secret("x")).await.unwrap();
    idle(&manager).await;
    assert_eq!(seen.take(), ["default/x"]);
    let mut changed = secret("y");
    changed.metadata.resource_version = stored.metadata.resource_version;
    live.update(&changed).await.unwrap();
    idle(&manager).await;
    assert_eq!(BTreeSet::from_iter(seen.take()), BTreeSet::from(["default/x".into(), "default/y".into()]));

    manager.client().create(&config_map("robot-1", &[])).await.unwrap();
    manager.client().create(&config_map("other", &[])).await.unwrap();
    let robot = ServiceAccount {
        metadata: ObjectMeta {
            name: Some("robot".into()),
            namespace: Some("default".into()),
            ..Default::default()
        },
        ..Default::default()
    };
    live.create(&robot).await.unwrap();
    idle(&manager).await;
    assert_eq!(seen.take(), ["default/robot-1"]);
    running.end().await.unwrap();
}

#[tokio::test]
async fn raw_sources_queue_requests() {
    let world = World::new().await;
    let manager = world.manager();
    let seen = Seen::default();
    let (sender, channel) = source::channel::<ConfigMap, Request>(Handler::for_object());
    let (numbers, stream) = tokio::sync::mpsc::unbounded_channel();
    let stream = futures_util::stream::unfold(stream, |mut from| async { Some((from.recv().await?, from)) });
    Controller::managed_by(&manager)
        .named("raw")
        .watches_raw_source(channel)
        .watches_raw_source(source::stream("numbers", stream))
        .watches_raw_source(source::func("once", |context: source::SourceContext| async move {
            context.queue().add(key("from-func"));
        }))
        .complete(seen.reconciler())
        .unwrap();
    let running = start(&manager);
    sender.send(config_map("from-channel", &[])).await.unwrap();
    numbers.send(key("from-stream")).unwrap();
    let all = BTreeSet::from([
        "default/from-channel".into(),
        "default/from-func".into(),
        "default/from-stream".into(),
    ]);
    seen.at_least(&world, 3).await;
    assert_eq!(seen.take().into_iter().collect::<BTreeSet<String>>(), all);
    running.end().await.unwrap();
    assert!(sender.send(config_map("late", &[])).await.is_err());
}

#[tokio::test]
async fn failures_are_retried_with_backoff_and_terminal_ones_are_not() {
    let (world, clock) = World::simulated(1).await;
    let manager = world.manager();
    let attempts: Arc<Mutex<Vec<(u32, k1s_env::Instant)>>> = Arc::default();
    let (noted, env) = (attempts.clone(), world.env.clone());
    let controller = Controller::managed_by(&manager)
        .named("failing")
        .watches_raw_source(source::func("none", |_: source::SourceContext| async {}))
        .build(move |request: Request, context: Context| {
            let (noted, env) = (noted.clone(), env.clone());
            async move {
                noted.lock().push((context.attempt(), env.now()));
                match request.name() {
                    "fails" if context.attempt() < 6 => Err("not yet".into()),
                    "terminal" => Err(BoxError::from(Wrapped(TerminalError::new("never")))),
                    "panics" if context.attempt() == 1 => panic!("out of {}", "luck"),
                    _ => Ok(Action::done()),
                }
            }
        })
        .unwrap();
    let running = start(&manager);
    settle(&world, &clock).await;

    controller.queue().add(key("fails"));
    settle(&world, &clock).await;
    for _ in 0..5 {
        clock.advance_to_next_of(&controller);
        settle(&world, &clock).await;
    }
    let seen = std::mem::take(&mut *attempts.lock());
    assert_eq!(seen.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    let pauses: Vec<u128> = seen.windows(2).map(|pair| (pair[1].1 - pair[0].1).as_millis()).collect();
    assert_eq!(pauses, [5, 10, 20, 40, 80]);
    assert_eq!(controller.queue().retries(&key("fails")), 0, "a success resets the retries");

    controller.queue().add(key("terminal"));
    settle(&world, &clock).await;
    assert_eq!(attempts.lock().len(), 1);
    assert!(controller.queue().state().is_empty());

    controller.queue().add(key("panics"));
    settle(&world, &clock).await;
    clock.advance_to_next_of(&controller);
    settle(&world, &clock).await;
    assert_eq!(attempts.lock().len(), 3);
    let metrics = manager.metrics().encode();
    for line in [
        r#"controller_runtime_reconcile_total{controller="failing",result="error"} 7"#,
        r#"controller_runtime_reconcile_total{controller="failing",result="success"} 2"#,
        r#"controller_runtime_reconcile_errors_total{controller="failing"} 7"#,
        r#"controller_runtime_terminal_reconcile_errors_total{controller="failing"} 1"#,
        r#"controller_runtime_reconcile_panics_total{controller="failing"} 1"#,
        r#"controller_runtime_reconcile_timeouts_total{controller="failing"} 0"#,
        r#"controller_runtime_reconcile_time_seconds_count{controller="failing"} 9"#,
        r#"controller_runtime_max_concurrent_reconciles{controller="failing"} 1"#,
        r#"controller_runtime_active_workers{controller="failing"} 0"#,
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    assert_eq!(controller.stats().panics, 1);
    running.end().await.unwrap();
}

#[derive(Debug, thiserror::Error)]
#[error("wrapped")]
struct Wrapped(#[source] TerminalError);

#[tokio::test]
async fn a_requested_requeue_delay_is_kept_and_is_no_failure() {
    let (world, clock) = World::simulated(2).await;
    let manager = world.manager();
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let controller = Controller::managed_by(&manager)
        .named("later")
        .watches_raw_source(source::func("none", |_: source::SourceContext| async {}))
        .build(move |_: Request, context: Context| {
            counted.fetch_add(1, Ordering::SeqCst);
            assert_eq!(context.attempt(), 1);
            async { Ok::<_, BoxError>(Action::requeue_after(Duration::from_secs(3600)).with_priority(7)) }
        })
        .unwrap();
    let running = start(&manager);
    controller.queue().add(key("a"));
    settle(&world, &clock).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(controller.queue().state().delayed, 1);
    clock.advance(Duration::from_secs(3599));
    settle(&world, &clock).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    clock.advance(Duration::from_secs(1));
    settle(&world, &clock).await;
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    running.end().await.unwrap();
}

#[tokio::test]
async fn a_reconcile_that_exceeds_its_timeout_is_cancelled() {
    let (world, clock) = World::simulated(3).await;
    let manager = world.manager();
    let cancelled = Arc::new(AtomicUsize::new(0));
    let noted = cancelled.clone();
    let options =
        ControllerOptions { reconciliation_timeout: Some(Duration::from_secs(10)), ..Default::default() };
    let controller = Controller::managed_by(&manager)
        .named("slow")
        .with_options(options)
        .watches_raw_source(source::func("none", |_: source::SourceContext| async {}))
        .build(move |_: Request, context: Context| {
            let noted = noted.clone();
            async move {
                if context.attempt() > 1 {
                    return Ok::<_, BoxError>(Action::done());
                }
                let watched = context.clone();
                let _guard = OnDrop(move || {
                    noted.fetch_add(usize::from(watched.cancellation().is_cancelled()), Ordering::SeqCst);
                });
                std::future::pending::<()>().await;
                Ok(Action::done())
            }
        })
        .unwrap();
    let running = start(&manager);
    controller.queue().add(key("a"));
    settle(&world, &clock).await;
    clock.advance(Duration::from_secs(10));
    settle(&world, &clock).await;
    assert_eq!(cancelled.load(Ordering::SeqCst), 1);
    assert!(manager.metrics().encode().contains(r#"reconcile_timeouts_total{controller="slow"} 1"#));
    clock.advance_to_next_of(&controller);
    settle(&world, &clock).await;
    assert_eq!(controller.stats().reconciles, 2);
    running.end().await.unwrap();
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_two_workers_have_the_same_key() {
    let world = World::new().await;
    let manager = world.manager();
    let active: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let peak = watch::Sender::new(0);
    let (busy, most, env) = (active.clone(), peak.clone(), world.env.clone());
    let controller = Controller::managed_by(&manager)
        .named("busy")
        .with_options(ControllerOptions::concurrent(8))
        .watches_raw_source(source::func("none", |_: source::SourceContext| async {}))
        .build(move |request: Request, _: Context| {
            let (busy, most, env) = (busy.clone(), most.clone(), env.clone());
            async move {
                assert!(busy.lock().insert(request.to_string()), "{request} runs twice concurrently");
                most.send_modify(|most| *most = busy.lock().len().max(*most));
                // The first run waits for a second one: there are enough workers and keys.
                let _ = most.subscribe().wait_for(|most| *most > 1).await;
                env.yield_now().await;
                busy.lock().remove(&request.to_string());
                Ok::<_, BoxError>(Action::done())
            }
        })
        .unwrap();
    let running = start(&manager);
    for round in 0..20 {
        for name in 0..10 {
            controller.queue().add(key(&format!("k{name}")));
        }
        if round % 5 == 0 {
            controller.queue().idle().await;
        }
    }
    idle(&manager).await;
    assert_eq!(controller.stats().errors, 0);
    assert!((2..=8).contains(&*peak.borrow()), "{}", *peak.borrow());
    running.end().await.unwrap();
}

#[tokio::test]
async fn watches_can_be_added_and_removed_while_a_controller_runs() {
    let world = World::new().await;
    let live = world.live();
    let manager = world.manager();
    let seen = Seen::default();
    let controller =
        Controller::managed_by(&manager).for_(kind::<Secret>()).build(seen.reconciler()).unwrap();
    let running = start(&manager);
    idle(&manager).await;
    live.create(&config_map("a", &[])).await.unwrap();
    idle(&manager).await;
    assert!(seen.take().is_empty());
    let watch = controller
        .watch(source::kind(
            kind::<ConfigMap>(),
            Handler::map(|event: &Event<ConfigMap>| Some(event.key()).filter(|key| key.name() == "a")),
        ))
        .unwrap();
    idle(&manager).await;
    assert_eq!(seen.take(), ["default/a"]);
    controller.unwatch(watch);
    live.delete(&config_map("a", &[])).await.unwrap();
    idle(&manager).await;
    assert!(seen.take().is_empty());
    running.end().await.unwrap();
}

#[tokio::test]
async fn names_are_unique_in_a_manager_and_descriptions_must_be_complete() {
    let world = World::new().await;
    let (manager, other) = (world.manager(), world.manager());
    let seen = Seen::default();
    let build = |manager: &k1s_runtime::Manager| {
        Controller::managed_by(manager).for_(kind::<ConfigMap>()).complete(seen.reconciler())
    };
    build(&manager).unwrap();
    build(&other).unwrap();
    assert_eq!(
        build(&manager).unwrap_err().to_string(),
        "this manager has a controller named \"configmap\" already; names are used in metrics and logs: call named"
    );
    let refused = |result: Result<(), _>| -> String {
        BoxError::from(result.unwrap_err() as k1s_runtime::controller::BuildError).to_string()
    };
    assert!(
        refused(Controller::managed_by(&manager).complete(seen.reconciler())).contains("watches nothing")
    );
    // `owns` without `for_`, and `for_` twice, do not compile: see the doc tests of `controller::Builder`.
    let nameless = Controller::managed_by(&manager).watches(kind::<Secret>(), Handler::for_object());
    assert!(refused(nameless.complete(seen.reconciler())).contains("needs a name"));
}

#[tokio::test]
async fn run_until_idle_reports_the_work_done_and_left() {
    let world = World::new().await;
    let live = world.live();
    for name in ["a", "b", "c"] {
        live.create(&config_map(name, &[])).await.unwrap();
    }
    let manager = world.manager();
    let client = manager.client();
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .complete(move |request: Request, context: Context| {
            let client = client.clone();
            async move {
                if request.namespace() != Some("default") || request.name() == "kube-root-ca.crt" {
                    return Ok(Action::done());
                }
                let map = client.get::<ConfigMap>(&request).await?;
                if request.name() == "b" && context.attempt() < 3 && map.data.is_none() {
                    return Err(BoxError::from("twice"));
                }
                if map.data.as_ref().is_none_or(|data| !data.contains_key("seen")) {
                    let mut map = (*map).clone();
                    map.data.get_or_insert_default().insert("seen".into(), "yes".into());
                    client.update(&map).await?;
                }
                Ok(if request.name() == "c" {
                    Action::requeue_after(Duration::from_secs(99))
                } else {
                    Action::done()
                })
            }
        })
        .unwrap();
    let report = manager.run_until_idle(IdleOptions::within(common::HANG)).await.unwrap();
    assert_eq!((report.errors(), report.writes, report.delayed), (2, 3, 1), "{report}");
    assert!(report.succeeded(), "what was retried with success is no failure: {:?}", report.failed);
    for name in ["a", "b", "c"] {
        let map = live.get::<ConfigMap>(&key(name)).await.unwrap();
        assert_eq!(map.data.as_ref().unwrap()["seen"], "yes");
    }
    assert!(matches!(
        manager.run_until_idle(IdleOptions::default()).await,
        Err(ManagerError::AlreadyStarted)
    ));
}

#[tokio::test]
async fn a_report_names_what_failed_for_good_and_forgets_what_was_mended() {
    let world = World::new().await;
    let live = world.live();
    for name in ["broken", "mended"] {
        live.create(&config_map(name, &[])).await.unwrap();
    }
    let manager = world.manager();
    let client = manager.client();
    let controller = Controller::managed_by(&manager)
        .named("strict")
        .for_(kind::<ConfigMap>())
        .build(move |request: Request, _: Context| {
            let client = client.clone();
            async move {
                let terminal = |what: &'static str| Err(BoxError::from(TerminalError::new(what)));
                match request.name() {
                    "broken" => terminal("never"),
                    "mended" => {
                        let mut map = (*client.get::<ConfigMap>(&request).await?).clone();
                        if map.data.is_some() {
                            return Ok(Action::done());
                        }
                        // The event of this change queues it again.
                        map.data = Some([("mended".to_owned(), "yes".to_owned())].into());
                        client.update(&map).await?;
                        terminal("not yet")
                    }
                    _ => Ok(Action::done()),
                }
            }
        })
        .unwrap();
    let report = manager.run_until_idle(IdleOptions::within(common::HANG)).await.unwrap();
    assert_eq!((report.errors(), report.terminal(), controller.stats().terminal), (2, 2, 2), "{report}");
    let failed: Vec<String> = report.failed.iter().map(ToString::to_string).collect();
    assert_eq!(failed, ["strict default/broken: terminal error: never"]);
    assert!(report.failed[0].terminal && !report.succeeded());
    assert!(report.to_string().contains("2 errors (2 not retried)"), "{report}");
}

#[tokio::test]
async fn the_work_in_flight_is_named_at_the_deadline() {
    let world = World::new().await;
    world.live().create(&config_map("stuck", &[])).await.unwrap();
    let mut options = world.options();
    options.graceful_shutdown_timeout = Some(Duration::from_millis(50));
    let manager = k1s_runtime::Manager::new(world.kube.clone(), options).unwrap();
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .complete(|request: Request, _: Context| async move {
            if request.name() == "stuck" {
                std::future::pending::<()>().await;
            }
            Ok::<_, BoxError>(Action::done())
        })
        .unwrap();
    let error = manager.run_until_idle(IdleOptions::within(Duration::from_millis(300))).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("not idle after 300ms") && text.contains("reconcile/configmap default/stuck"),
        "{text}"
    );
}

/// Lets everything happen that needs no time to pass.
async fn settle(world: &World, clock: &k1s_env::VirtualClock) {
    // The client's own task is not tracked by the environment; on a single-threaded runtime it gets a turn.
    for _ in 0..20 {
        for _ in 0..20 {
            world.env.yield_now().await;
        }
        clock.settle().await;
    }
}

trait AdvanceToNext {
    fn advance_to_next_of(&self, controller: &Controller);
}

impl AdvanceToNext for k1s_env::VirtualClock {
    /// To the due time of the queue's next key.
    fn advance_to_next_of(&self, controller: &Controller) {
        let due = controller.queue().state().next_due.expect("something is due");
        self.advance(due - self.now());
    }
}
