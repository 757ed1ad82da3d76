//! Panics in user code are reported and do not end an informer.

use std::{collections::BTreeMap, sync::Arc};

use k1s_runtime::{
    Cache, CacheOptions, Event, InformerOptions, Metrics,
    cache::Problem,
    client::{Client, ListOptions},
    kind,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use parking_lot::Mutex;

use crate::{
    caught_up,
    common::{World, config_map},
    key, within,
};

fn is_bad(map: &ConfigMap) -> bool {
    map.data.as_ref().is_some_and(|data| data.contains_key("bad"))
}

fn counted(world: &World, options: CacheOptions) -> (Cache, Metrics) {
    let metrics = Metrics::new();
    (Cache::with_metrics(&world.env, world.kube.clone(), options, &metrics, None), metrics)
}

async fn write(live: &Client, name: &str, data: &[(&str, &str)]) {
    let mut map = config_map(name, data);
    match live.get_opt::<ConfigMap>(&key(name)).await.unwrap() {
        None => live.create(&map).await.unwrap(),
        Some(there) => {
            map.metadata.resource_version = there.resource_version();
            live.update(&map).await.unwrap()
        }
    };
}

/// Waits until all pending events were delivered, and returns the reported panics.
async fn problems_after_catch_up(world: &World, cache: &Cache) -> Vec<String> {
    let problems = within(world, "catching up", cache.catch_up()).await;
    problems.into_iter().map(|(kind, problem)| format!("{kind}: {problem}")).collect()
}

#[tokio::test]
async fn a_panicking_handler_gets_the_next_event_and_other_handlers_this_one() {
    let world = World::new().await;
    let live = world.live();
    write(&live, "first", &[("bad", "1")]).await;
    let (cache, metrics) = counted(&world, CacheOptions::default());
    let informer = cache.informer(&kind::<ConfigMap>()).unwrap();
    within(&world, "the list", informer.synced()).await;
    let received: [Arc<Mutex<Vec<String>>>; 2] = Default::default();
    let [doomed, calm] = received.clone();
    let registration = informer.add_handler(Box::new(move |event: &Event<ConfigMap>| {
        assert!(!is_bad(event.object()), "on purpose");
        doomed.lock().push(event.key().name().to_owned());
    }));
    let _calm = informer.add_handler(Box::new(move |event: &Event<ConfigMap>| {
        calm.lock().push(event.key().name().to_owned());
    }));
    // Also on the objects that existed when it was added.
    assert_eq!(
        problems_after_catch_up(&world, &cache).await,
        ["ConfigMap: the handler panicked on default/first: on purpose"]
    );
    write(&live, "a", &[("bad", "1")]).await;
    write(&live, "b", &[]).await;
    assert_eq!(problems_after_catch_up(&world, &cache).await.len(), 2);
    let names = |received: &Mutex<Vec<String>>| {
        let received = std::mem::take(&mut *received.lock());
        received.into_iter().filter(|name| !name.contains("kube")).collect::<Vec<_>>()
    };
    assert_eq!(names(&received[0]), ["b"]);
    assert_eq!(names(&received[1]), ["first", "a", "b"]);
    let problem = informer.problem().unwrap();
    assert!(
        matches!(&problem, Problem::Panicked { object: Some(object), .. } if *object == key("a")),
        "{problem}"
    );
    assert!(!problem.is_lasting(), "the kind can be read");
    let metric = r#"k1s_panics_total{controller="",source="ConfigMap",code="handler"} 2"#;
    assert!(metrics.encode().contains(metric), "{}", metrics.encode());

    // An update or a delete clears the report.
    write(&live, "a", &[]).await;
    assert_eq!(problems_after_catch_up(&world, &cache).await.len(), 1);
    drop(registration);
    caught_up(&world, &cache).await;
    assert_eq!(informer.problem(), None);
    cache.stop().await;
}

#[tokio::test]
async fn a_panic_in_a_transform_or_index_skips_the_object_and_keeps_its_last_state() {
    for (lean, by_index) in [(false, false), (true, false), (false, true), (true, true)] {
        let world = World::new().await;
        let live = world.live();
        let mut options = InformerOptions { lean, ..Default::default() };
        if !by_index {
            options.transform = Some(Arc::new(|map: &mut ConfigMap| assert!(!is_bad(map), "on purpose")));
        }
        write(&live, "always", &[("bad", "1")]).await;
        let (cache, metrics) =
            counted(&world, CacheOptions::default().by_object(&kind::<ConfigMap>(), options));
        if by_index {
            cache.index_field(&kind::<ConfigMap>(), "data.n", |map: &ConfigMap| {
                assert!(!is_bad(map), "on purpose");
                map.data.iter().filter_map(|data| data.get("n").cloned()).collect()
            });
        }
        let code = if by_index { "the index \"data.n\"" } else { "the transform" };
        let informer = cache.informer(&kind::<ConfigMap>()).unwrap();
        within(&world, "the list", informer.synced()).await;
        assert!(informer.undecodable().contains_key(&key("always")));
        assert!(informer.get(&key("always")).is_none());
        write(&live, "a", &[("n", "1")]).await;
        write(&live, "a", &[("n", "2"), ("bad", "1")]).await;
        write(&live, "b", &[("n", "1")]).await;
        let problems = problems_after_catch_up(&world, &cache).await;
        assert_eq!(
            problems,
            ["a", "always"].map(|name| format!("ConfigMap: {code} panicked on default/{name}: on purpose"))
        );
        let n = |name: &str| informer.get(&key(name)).map(|map| map.data.as_ref().unwrap()["n"].clone());
        assert_eq!((n("a").as_deref(), n("b").as_deref()), (Some("1"), Some("1")));
        if by_index {
            let found = informer.list(&ListOptions::default().matching_fields([("data.n", "1")]).unwrap());
            assert_eq!(found.unwrap().len(), 2, "the index has the last good state");
        }
        assert!(metrics.encode().contains(r#"k1s_cache_undecodable_objects_total{kind="ConfigMap"} 2"#));

        // Cleared by an update, or by a delete.
        write(&live, "a", &[("n", "3")]).await;
        live.delete(&config_map("always", &[])).await.unwrap();
        caught_up(&world, &cache).await;
        assert_eq!(n("a").as_deref(), Some("3"));
        assert_eq!(informer.undecodable(), BTreeMap::new());
        cache.stop().await;
    }
}

#[tokio::test]
async fn a_panic_report_is_cleared_even_if_the_deletion_was_missed() {
    let world = World::new().await;
    let live = world.live();
    let transform: k1s_runtime::cache::Transform<ConfigMap> =
        Arc::new(|map: &mut ConfigMap| assert!(!is_bad(map), "on purpose"));
    let options = InformerOptions { transform: Some(transform), ..Default::default() };
    let (cache, _) = counted(&world, CacheOptions::default().by_object(&kind::<ConfigMap>(), options));
    write(&live, "a", &[("bad", "1")]).await;
    let informer = cache.informer(&kind::<ConfigMap>()).unwrap();
    within(&world, "the list", informer.synced()).await;
    assert_eq!(cache.panics().len(), 1);
    // Deleted between two watches, with the history gone: the next list does not contain it.
    world.faults.refuse(|request| {
        request.uri().query().is_some_and(|query| query.contains("watch=true")).then_some(410)
    });
    world.faults.cut();
    live.delete(&config_map("a", &[])).await.unwrap();
    let mut changes = cache.changes();
    let wait = async {
        while !cache.panics().is_empty() {
            changes.changed().await.unwrap();
        }
    };
    within(&world, "the list", wait).await;
    world.faults.none();
    assert_eq!(informer.undecodable(), BTreeMap::new());
    cache.stop().await;
}
