//! Panics in predicates, handlers, mappers and sources: they are reported, and everything else continues.

use std::collections::BTreeSet;

use k1s_runtime::{
    Action, BoxError, Context, Controller, Event, Handler, IdleOptions, Manager, Request, client::Client,
    kind, predicate, runnable, source,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt as _;
use tokio_util::sync::CancellationToken;

use crate::{
    Seen,
    common::{HANG, World, config_map, start},
    key,
};

/// The reason why a manager is not ready.
async fn readiness(manager: &Manager) -> String {
    manager.readyz().run("caches").await.unwrap().err().unwrap_or_default()
}

/// Waits until the manager is idle; returns the reported panics.
async fn problems(manager: &Manager) -> Vec<String> {
    let report = manager.wait_until_idle(IdleOptions::within(HANG)).await.unwrap();
    report.problems.into_iter().map(|(kind, problem)| format!("{kind}: {problem}")).collect()
}

async fn bump(live: &Client, name: &str, to: &str) {
    let mut map = (*live.get::<ConfigMap>(&key(name)).await.unwrap()).clone();
    map.data = Some([("to".to_owned(), to.to_owned())].into());
    live.update(&map).await.unwrap();
}

fn is_bad(map: &ConfigMap) -> bool {
    map.data.as_ref().is_some_and(|data| data.get("to").is_some_and(|to| to == "bad"))
}

#[tokio::test]
async fn a_panicking_predicate_accepts_and_is_reported_until_it_succeeds() {
    let world = World::new().await;
    let (live, manager, seen) = (world.live(), world.manager(), Seen::default());
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>().with_predicate(predicate::Predicate::new(|event: &Event<ConfigMap>| {
            assert!(!is_bad(event.object()), "out of luck");
            event.key().name() == "a"
        })))
        .complete(seen.reconciler())
        .unwrap();
    let running = start(&manager);
    live.create(&config_map("a", &[])).await.unwrap();
    assert_eq!(problems(&manager).await, Vec::<String>::new());
    assert_eq!(seen.take(), ["default/a"]);
    bump(&live, "a", "bad").await;
    let reported = "ConfigMap: the predicate of controller \"configmap\" panicked on default/a: out of luck";
    assert_eq!(problems(&manager).await, [reported]);
    assert_eq!(seen.take(), ["default/a"], "an extra reconcile is harmless, a missing one is not");
    assert_eq!(readiness(&manager).await, reported);
    let metric = r#"k1s_panics_total{controller="configmap",source="ConfigMap",code="predicate"} 1"#;
    assert!(manager.metrics().encode().contains(metric));
    bump(&live, "a", "good").await;
    assert_eq!(problems(&manager).await, Vec::<String>::new());
    assert_eq!((seen.take(), &*readiness(&manager).await), (vec!["default/a".to_owned()], ""));
    running.end().await.unwrap();
}

#[tokio::test]
async fn panicking_handlers_and_mappers_get_the_next_event() {
    let world = World::new().await;
    let (live, manager, seen) = (world.live(), world.manager(), Seen::default());
    let doomed = |map: &ConfigMap| {
        assert!(!is_bad(map), "out of luck");
        [key(&map.name_any())].into_iter().filter(|key| key.name().len() == 1)
    };
    Controller::managed_by(&manager)
        .named("maps")
        .watches(kind::<ConfigMap>(), Handler::map_object(doomed))
        .complete(seen.reconciler())
        .unwrap();
    Controller::managed_by(&manager)
        .named("waits")
        .watches(
            kind::<ConfigMap>(),
            Handler::map_object_async(move |map: std::sync::Arc<ConfigMap>| async move {
                doomed(&map).collect::<Vec<_>>()
            }),
        )
        .complete(seen.reconciler())
        .unwrap();
    let running = start(&manager);
    live.create(&config_map("a", &[("to", "bad")])).await.unwrap();
    live.create(&config_map("b", &[])).await.unwrap();
    assert_eq!(
        problems(&manager).await,
        [
            "ConfigMap: the handler of controller \"maps\" panicked on default/a: out of luck",
            "ConfigMap: the mapper of controller \"waits\" panicked on default/a: out of luck",
        ]
    );
    assert_eq!(seen.take(), ["default/b", "default/b"]);
    assert!(readiness(&manager).await.contains("panicked on default/a"));
    // A deletion is delivered too, and clears the report.
    live.delete(&config_map("a", &[])).await.unwrap();
    problems(&manager).await;
    running.end().await.unwrap();
    assert_eq!(readiness(&manager).await, "", "a controller that has ended has nothing to report");
}

#[tokio::test]
async fn panicking_sources_are_reported() {
    let world = World::new().await;
    let (manager, seen) = (world.manager(), Seen::default());
    let (sender, channel) = source::channel::<ConfigMap, Request>(Handler::map_object(|map: &ConfigMap| {
        assert!(!is_bad(map), "out of luck");
        [key(&map.name_any())]
    }));
    Controller::managed_by(&manager)
        .named("raw")
        .watches_raw_source(channel)
        .watches_raw_source(source::func("doomed", |_: source::SourceContext| async { panic!("no more") }))
        .complete(seen.reconciler())
        .unwrap();
    let running = start(&manager);
    sender.send(config_map("a", &[("to", "bad")])).await.unwrap();
    sender.send(config_map("b", &[])).await.unwrap();
    let reported: BTreeSet<String> = problems(&manager).await.into_iter().collect();
    assert_eq!(
        reported,
        BTreeSet::from([
            "channel of ConfigMap: the handler of controller \"raw\" panicked on default/a: out of luck"
                .to_owned(),
            "doomed: the source of controller \"raw\" panicked: no more".to_owned(),
        ])
    );
    assert_eq!(seen.take(), ["default/b"]);
    assert!(readiness(&manager).await.contains("doomed: the source of controller"));
    running.end().await.unwrap();

    // A source that panics on start ends the manager with an error.
    let manager = world.manager();
    Controller::managed_by(&manager)
        .named("raw")
        .watches_raw_source(source::func("doomed", |_: source::SourceContext| -> std::future::Ready<()> {
            panic!("not at all")
        }))
        .complete(seen.reconciler())
        .unwrap();
    let error = manager.start(CancellationToken::new()).await.unwrap_err().to_string();
    assert!(error.contains("cannot watch doomed: panic: not at all [recovered]"), "{error}");
}

#[tokio::test]
async fn a_panicking_runnable_ends_the_manager() {
    let world = World::new().await;
    let manager = world.manager();
    manager.add(runnable("doomed", |_| async { panic!("out of luck") }));
    let error = world.env.timeout(HANG, manager.start(CancellationToken::new())).await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "doomed: panic: out of luck [recovered]");
}

#[tokio::test]
async fn removing_a_watch_removes_its_reports() {
    let world = World::new().await;
    let (live, manager, seen) = (world.live(), world.manager(), Seen::default());
    live.create(&config_map("a", &[("to", "bad")])).await.unwrap();
    let controller = Controller::managed_by(&manager)
        .for_(kind::<Secret>())
        .build(|_: Request, _: Context| async { Ok::<_, BoxError>(Action::done()) })
        .unwrap();
    let running = start(&manager);
    assert_eq!(problems(&manager).await, Vec::<String>::new());
    let handler = Handler::map_object(|map: &ConfigMap| {
        assert!(!is_bad(map), "out of luck");
        None
    });
    let watch = controller.watch(source::kind(kind::<ConfigMap>(), handler)).unwrap();
    assert_eq!(problems(&manager).await.len(), 1);
    controller.unwatch(watch);
    assert_eq!(problems(&manager).await, Vec::<String>::new());
    drop(seen);
    running.end().await.unwrap();
}
