//! The cache: its reads, the events it delivers to handlers, and recovery from faults.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;
#[path = "cache/limits.rs"]
mod limits;
#[path = "cache/panics.rs"]
mod panics;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use common::{HANG, World, config_map};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use k1s_runtime::{
    BoxError, Cache, CacheOptions, Event, InformerOptions, Kind, ObjectKey,
    cache::{CacheError, Problem},
    client::{Client, ClientOptions, ListOptions},
    kind, metadata,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::{
    ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind, ObjectMeta},
    client::Body,
};
use parking_lot::Mutex;
use serde_json::json;

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn cached(world: &World, options: CacheOptions) -> (Cache, Client) {
    let cache = Cache::new(&world.env, world.kube.clone(), options);
    let client =
        Client::new(world.kube.clone(), ClientOptions { env: world.env.clone(), ..Default::default() });
    (cache.clone(), client.with_cache(cache))
}

async fn within<T>(world: &World, what: &str, future: impl Future<Output = T>) -> T {
    world.env.timeout(HANG, future).await.unwrap_or_else(|_| panic!("{what}: still not done"))
}

/// Waits until all pending events were delivered to handlers.
async fn caught_up(world: &World, cache: &Cache) {
    let problems = within(world, "catching up", cache.catch_up()).await;
    assert_eq!(problems, []);
}

#[tokio::test]
async fn a_read_shows_what_the_same_client_wrote() {
    let world = World::new().await;
    let (cache, client) = cached(&world, CacheOptions::default());
    assert_eq!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap(), None);
    for round in 0..200 {
        let text = round.to_string();
        let name = format!("a{}", round % 3);
        let stored = match client.get_opt::<ConfigMap>(&key(&name)).await.unwrap() {
            None => client.create(&config_map(&name, &[("n", &text)])).await.unwrap(),
            Some(map) => {
                let mut map = (*map).clone();
                map.data = Some(BTreeMap::from([("n".to_owned(), text.clone())]));
                client.update(&map).await.expect("the cache had the newest state")
            }
        };
        let read = client.get::<ConfigMap>(&key(&name)).await.unwrap();
        assert_eq!(read.data.as_ref().unwrap()["n"], text);
        let listed = client.list::<ConfigMap>(ListOptions::in_namespace("default")).await.unwrap();
        assert!(listed.iter().any(|map| map.resource_version() == stored.resource_version()));
        if round % 7 == 0 {
            client.delete(&stored).await.unwrap();
            assert_eq!(
                client.get_opt::<ConfigMap>(&key(&name)).await.unwrap(),
                None,
                "deleted in round {round}"
            );
        }
    }
    caught_up(&world, &cache).await;
    let there = client.live().list::<ConfigMap>(ListOptions::default()).await.unwrap();
    let known = client.list::<ConfigMap>(ListOptions::default()).await.unwrap();
    assert_eq!(there.items.len(), known.len());
    cache.stop().await;
}

#[tokio::test]
async fn handlers_get_each_object_and_change_once_and_in_order() {
    let world = World::new().await;
    let (cache, client) = cached(&world, CacheOptions::default());
    client.create(&config_map("before", &[])).await.unwrap();
    let delivered: Arc<Mutex<Vec<String>>> = Arc::default();
    let informer = cache.informer(&kind::<ConfigMap>()).unwrap();
    let noted = delivered.clone();
    let registration = informer.add_handler(Box::new(move |event: &Event<ConfigMap>| {
        if event.key().name() == "kube-root-ca.crt" {
            return;
        }
        let (what, name) = (
            match event {
                Event::Created { initial: true, .. } => "initial",
                Event::Created { .. } => "created",
                Event::Updated { .. } => "updated",
                Event::Deleted { .. } => "deleted",
                _ => "other",
            },
            event.key().name().to_owned(),
        );
        let versions =
            event.old().map(|old| format!("{}→", old.resource_version().unwrap())).unwrap_or_default();
        noted.lock().push(format!("{what} {name} {versions}{}", event.object().resource_version().unwrap()));
    }));
    within(&world, "the list", informer.synced()).await;
    // Written through the cache: the handler gets the server's event along with the previous state.
    let first = client.create(&config_map("a", &[("n", "1")])).await.unwrap();
    let mut second = first.clone();
    second.data = None;
    let second = client.update(&second).await.unwrap();
    client.delete(&second).await.unwrap();
    caught_up(&world, &cache).await;
    let events = delivered.lock().clone();
    let (v1, v2) = (first.resource_version().unwrap(), second.resource_version().unwrap());
    assert!(events[0].starts_with("initial before"), "{events:?}");
    assert_eq!(events[1], format!("created a {v1}"));
    assert_eq!(events[2], format!("updated a {v1}→{v2}"));
    assert!(events[3].starts_with("deleted a"));
    assert_eq!(events.len(), 4);

    // A new handler gets the existing objects; a dropped one gets nothing.
    drop(registration);
    client.create(&config_map("late", &[])).await.unwrap();
    caught_up(&world, &cache).await;
    assert_eq!(delivered.lock().len(), 4);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let _registration = informer.add_handler(Box::new(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
    }));
    assert_eq!(count.load(Ordering::SeqCst), informer.len());
    cache.stop().await;
}

#[tokio::test]
async fn cut_watches_and_compacted_history_lose_nothing() {
    let world = World::new().await;
    let options = CacheOptions { retry_initial: Duration::from_millis(1), ..CacheOptions::default() };
    let (cache, client) = cached(&world, options);
    let informer = cache.informer(&kind::<ConfigMap>()).unwrap();
    let alive: Arc<Mutex<BTreeMap<String, String>>> = Arc::default();
    let shadow = alive.clone();
    // The events alone are enough to reconstruct the state.
    let _registration = informer.add_handler(Box::new(move |event: &Event<ConfigMap>| {
        let mut shadow = shadow.lock();
        let (name, version) = (event.key().to_string(), event.object().resource_version().unwrap());
        match event {
            Event::Created { .. } => assert_eq!(shadow.insert(name, version), None),
            Event::Updated { old, .. } => {
                assert_eq!(shadow.insert(name, version), old.resource_version());
            }
            Event::Deleted { .. } => assert!(shadow.remove(&name).is_some()),
            _ => {}
        }
    }));
    let live = world.live();
    let mut lists = 0;
    for round in 0..60_u32 {
        let name = format!("m{}", round % 7);
        match round % 3 {
            0 => {
                let _ = live.create(&config_map(&name, &[("r", &round.to_string())])).await;
            }
            1 => {
                let _ = live.delete(&config_map(&name, &[])).await;
            }
            _ => {
                let _ = client.create(&config_map(&name, &[])).await;
            }
        }
        match round % 10 {
            3 => world.faults.cut(),
            5 => {
                // The next watch fails with 410 Gone.
                world.faults.refuse(|request| {
                    request.uri().query().is_some_and(|query| query.contains("watch=true")).then_some(410)
                });
                world.faults.cut();
                live.create(&config_map(&format!("gone-{round}"), &[])).await.unwrap();
                world.faults.none();
                lists += 1;
            }
            7 => world.faults.refuse(|request| request.method().eq("GET").then_some(500)),
            8 => world.faults.none(),
            _ => {}
        }
    }
    assert!(lists > 0);
    world.faults.none();
    caught_up(&world, &cache).await;
    let there: BTreeMap<String, String> = live
        .list::<ConfigMap>(ListOptions::default())
        .await
        .unwrap()
        .iter()
        .map(|map| (ObjectKey::of(&**map).to_string(), map.resource_version().unwrap()))
        .collect();
    assert_eq!(*alive.lock(), there);
    let cached: BTreeMap<String, String> = informer
        .list(&ListOptions::default())
        .unwrap()
        .iter()
        .map(|map| (ObjectKey::of(&**map).to_string(), map.resource_version().unwrap()))
        .collect();
    assert_eq!(cached, there);
    assert_eq!(cache.panics(), [], "the handler's assertions held");
    cache.stop().await;
}

#[tokio::test]
async fn lists_select_by_namespace_labels_fields_and_indexes() {
    let world = World::new().await;
    let live = world.live();
    for namespace in ["one", "two"] {
        let metadata = ObjectMeta { name: Some(namespace.into()), ..Default::default() };
        live.create(&Namespace { metadata, ..Default::default() }).await.unwrap();
        for n in 0..4 {
            let mut map = config_map(&format!("m{n}"), &[("owner", if n % 2 == 0 { "even" } else { "odd" })]);
            map.metadata.namespace = Some(namespace.into());
            map.metadata.labels = Some(BTreeMap::from([("n".into(), n.to_string())]));
            live.create(&map).await.unwrap();
        }
    }
    for lean in [false, true] {
        let options = CacheOptions::default()
            .by_object(&kind::<ConfigMap>(), InformerOptions { lean, ..Default::default() });
        let (cache, client) = cached(&world, options);
        cache.index_field(&kind::<ConfigMap>(), "data.owner", |map: &ConfigMap| {
            map.data.iter().filter_map(|data| data.get("owner").cloned()).collect()
        });
        let names = async |options: ListOptions| -> Vec<String> {
            let all = client.list::<ConfigMap>(options).await.unwrap();
            all.iter()
                .map(|map| ObjectKey::of(&**map).to_string())
                .filter(|name| !name.contains("kube-root"))
                .collect()
        };
        let in_one = || ListOptions::in_namespace("one");
        assert_eq!(names(in_one()).await, ["one/m0", "one/m1", "one/m2", "one/m3"]);
        assert_eq!(names(in_one().label_selector("n in (1,2)").unwrap()).await, ["one/m1", "one/m2"]);
        let odd = |options: ListOptions| options.matching_fields([("data.owner", "odd")]).unwrap();
        assert_eq!(names(odd(ListOptions::default())).await, ["one/m1", "one/m3", "two/m1", "two/m3"]);
        assert_eq!(names(odd(in_one()).label_selector("n=3").unwrap()).await, ["one/m3"]);
        let not_odd = in_one().field_selector("data.owner!=odd,metadata.name!=m0").unwrap();
        assert_eq!(names(not_odd).await, ["one/m2"]);
        assert_eq!(names(odd(ListOptions::default()).limit(3)).await.len(), 3);
        let error = client
            .list::<ConfigMap>(ListOptions::default().matching_fields([("data.colour", "red")]).unwrap())
            .await
            .unwrap_err();
        assert!(error.to_string().contains("no index \"data.colour\""), "{error}");

        // An index follows changes, and the client's own writes immediately.
        let mut map = (*client.get::<ConfigMap>(&ObjectKey::namespaced("one", "m1")).await.unwrap()).clone();
        map.data = Some(BTreeMap::from([("owner".into(), "even".into())]));
        let map = client.update(&map).await.unwrap();
        assert_eq!(names(odd(in_one())).await, ["one/m3"]);
        let mut back = map.clone();
        back.data = Some(BTreeMap::from([("owner".into(), "odd".into())]));
        live.update(&back).await.unwrap();
        caught_up(&world, &cache).await;
        assert_eq!(names(odd(in_one())).await, ["one/m1", "one/m3"]);
        cache.stop().await;
    }
}

/// Before an informer runs and while it does.
#[tokio::test]
async fn an_index_replaces_another_one_of_the_same_name() {
    let world = World::new().await;
    world.live().create(&config_map("one", &[("a", "1"), ("b", "2")])).await.unwrap();
    let (cache, client) = cached(&world, CacheOptions::default());
    let add = |field: &'static str| {
        let held = Arc::new(());
        let holds = Arc::clone(&held);
        cache.index_field(&kind::<ConfigMap>(), "data.x", move |map: &ConfigMap| {
            let _ = &holds;
            map.data.iter().filter_map(|data| data.get(field).cloned()).collect()
        });
        held
    };
    let found = async |value: &str| {
        let options = ListOptions::default().matching_fields([("data.x", value)]).unwrap();
        client.list::<ConfigMap>(options).await.unwrap().len()
    };
    let before = [add("a"), add("b"), add("a")];
    assert_eq!(before.each_ref().map(Arc::strong_count), [1, 1, 2], "those that were replaced are freed");
    assert_eq!((found("1").await, found("2").await), (1, 0));
    let after = [add("b"), add("a"), add("b")];
    assert_eq!(after.each_ref().map(|held| Arc::strong_count(held) > 1), [false, false, true]);
    assert_eq!(Arc::strong_count(&before[2]), 1);
    assert_eq!((found("1").await, found("2").await), (0, 1));
    cache.stop().await;
}

#[tokio::test]
async fn a_cache_with_a_selector_shows_only_selected_objects_even_after_own_writes() {
    let world = World::new().await;
    let live = world.live();
    let metadata = ObjectMeta { name: Some("other".into()), ..Default::default() };
    live.create(&Namespace { metadata, ..Default::default() }).await.unwrap();
    let options = CacheOptions::default().by_object(
        &kind::<ConfigMap>(),
        InformerOptions {
            namespaces: Some(vec!["default".into(), "other".into()]),
            labels: Some(k1s_object::selector::LabelSelector::parse("mine=yes").unwrap()),
            transform: Some(Arc::new(|map: &mut ConfigMap| map.data = None)),
            ..Default::default()
        },
    );
    let (cache, client) = cached(&world, options);
    let mut mine = config_map("mine", &[("a", "b")]);
    mine.metadata.labels = Some(BTreeMap::from([("mine".into(), "yes".into())]));
    let stored = client.create(&mine).await.unwrap();
    let theirs = client.create(&config_map("theirs", &[])).await.unwrap();
    assert!(stored.data.is_some());
    let read = client.get::<ConfigMap>(&key("mine")).await.unwrap();
    assert_eq!(read.data, None, "transformed");
    assert_eq!(client.get_opt::<ConfigMap>(&key("theirs")).await.unwrap(), None);
    // A write that takes the object out of the selection removes it immediately and for good.
    let mut out = stored.clone();
    out.metadata.labels = None;
    let out = client.update(&out).await.unwrap();
    assert_eq!(client.get_opt::<ConfigMap>(&key("mine")).await.unwrap(), None);
    caught_up(&world, &cache).await;
    assert_eq!(client.get_opt::<ConfigMap>(&key("mine")).await.unwrap(), None);
    // And back in again.
    let mut back = theirs.clone();
    back.metadata.labels = Some(BTreeMap::from([("mine".into(), "yes".into())]));
    client.update(&back).await.unwrap();
    assert!(client.get_opt::<ConfigMap>(&key("theirs")).await.unwrap().is_some());
    client.delete(&out).await.unwrap();
    caught_up(&world, &cache).await;
    assert_eq!(client.list::<ConfigMap>(ListOptions::default()).await.unwrap().len(), 1);
    cache.stop().await;
}

#[tokio::test]
async fn a_selector_that_matches_nothing_selects_nothing() {
    let world = World::new().await;
    let labels = Some(k1s_object::selector::LabelSelector::nothing());
    let options = CacheOptions::default()
        .by_object(&kind::<ConfigMap>(), InformerOptions { labels, ..Default::default() });
    let (cache, client) = cached(&world, options);
    client.create(&config_map("a", &[])).await.unwrap();
    assert_eq!(client.list::<ConfigMap>(ListOptions::default()).await.unwrap(), []);
    caught_up(&world, &cache).await;
    assert_eq!(client.list::<ConfigMap>(ListOptions::default()).await.unwrap(), []);
    cache.stop().await;
}

#[tokio::test]
async fn dynamic_kinds_and_metadata_have_their_own_informers() {
    let world = World::new().await;
    let (cache, client) = cached(&world, CacheOptions::default());
    client.create(&config_map("a", &[("x", "y")])).await.unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let dynamic = client.kind(Kind::<DynamicObject>::dynamic(resource));
    let object = dynamic.get(&key("a")).await.unwrap();
    assert_eq!(object.data["data"]["x"], "y");
    assert_eq!(object.types.as_ref().unwrap().kind, "ConfigMap", "items of lists get their kind");
    let partial = client.kind(metadata::<ConfigMap>());
    assert_eq!(partial.get(&key("a")).await.unwrap().name_any(), "a");
    // A write through one form is visible in all.
    let mut typed = (*client.get::<ConfigMap>(&key("a")).await.unwrap()).clone();
    typed.metadata.labels = Some(BTreeMap::from([("l".into(), "m".into())]));
    client.update(&typed).await.unwrap();
    assert_eq!(dynamic.get(&key("a")).await.unwrap().labels()["l"], "m");
    assert_eq!(partial.get(&key("a")).await.unwrap().labels()["l"], "m");
    cache.stop().await;
}

#[tokio::test]
async fn one_bad_object_is_reported_and_skipped() {
    let world = World::new().await;
    let live = world.live();
    live.create(&config_map("bad", &[("n", "1")])).await.unwrap();
    let (cache, _) = cached(&world, CacheOptions::default());
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let informer = cache.informer(&Kind::<Picky>::dynamic(resource)).unwrap();
    within(&world, "the list", informer.synced()).await;
    let bad = informer.undecodable();
    assert!(bad.contains_key(&key("bad")), "{bad:?}");
    assert!(bad[&key("bad")].contains("picky"), "{bad:?}");
    live.create(&config_map("good", &[("fine", "yes")])).await.unwrap();
    caught_up(&world, &cache).await;
    assert!(informer.get(&key("good")).is_some());
    let mut mended = config_map("bad", &[("fine", "yes")]);
    mended.metadata.resource_version = live.get::<ConfigMap>(&key("bad")).await.unwrap().resource_version();
    live.update(&mended).await.unwrap();
    caught_up(&world, &cache).await;
    assert!(informer.get(&key("bad")).is_some());
    assert!(!informer.undecodable().contains_key(&key("bad")));
    cache.stop().await;
}

/// A type that not every `ConfigMap` deserializes into.
#[derive(Debug, Clone, serde::Serialize)]
struct Picky(DynamicObject);

impl<'de> serde::Deserialize<'de> for Picky {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Picky, D::Error> {
        let object = DynamicObject::deserialize(deserializer)?;
        if object.data.pointer("/data/n").is_some() {
            return Err(serde::de::Error::custom("picky"));
        }
        Ok(Picky(object))
    }
}

impl kube::Resource for Picky {
    type DynamicType = ApiResource;
    type Scope = kube::core::DynamicResourceScope;

    fn kind(dt: &ApiResource) -> std::borrow::Cow<'_, str> {
        DynamicObject::kind(dt)
    }
    fn group(dt: &ApiResource) -> std::borrow::Cow<'_, str> {
        DynamicObject::group(dt)
    }
    fn version(dt: &ApiResource) -> std::borrow::Cow<'_, str> {
        DynamicObject::version(dt)
    }
    fn plural(dt: &ApiResource) -> std::borrow::Cow<'_, str> {
        DynamicObject::plural(dt)
    }
    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

#[tokio::test]
async fn a_kind_that_is_not_served_fails_reads_until_it_is_served() {
    let world = World::new().await;
    let options = CacheOptions {
        retry_initial: Duration::from_millis(5),
        retry_max: Duration::from_millis(5),
        ..Default::default()
    };
    let (cache, client) = cached(&world, options);
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("test.k1s.dev", "v1", "Widget"));
    let widgets = client.kind(Kind::<DynamicObject>::dynamic(resource.clone()));
    let error = within(&world, "the read", widgets.get_opt(&key("w"))).await.unwrap_err();
    assert!(error.to_string().contains("the server does not serve widgets.test.k1s.dev (v1)"), "{error}");
    assert!(error.is_no_match());
    assert!(
        matches!(&cache.unsynced()[..], [(name, Some(Problem::NotServed { .. }))] if name == "Widget.test.k1s.dev")
    );
    let definition: k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition =
        serde_json::from_value(json!({
            "metadata": {"name": "widgets.test.k1s.dev"},
            "spec": {
                "group": "test.k1s.dev",
                "names": {"plural": "widgets", "kind": "Widget"},
                "scope": "Namespaced",
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
            },
        }))
        .unwrap();
    client.create(&definition).await.unwrap();
    let informer = cache.informer(&Kind::<DynamicObject>::dynamic(resource)).unwrap();
    within(&world, "the kind", informer.synced()).await;
    assert_eq!(widgets.get_opt(&key("w")).await.unwrap(), None);
    assert!(cache.unsynced().is_empty());
    cache.stop().await;
}

#[tokio::test]
async fn answers_that_never_end_are_given_up_in_time() {
    let (world, clock) = World::simulated(8).await;
    let (inner, seen) = (world.kube.clone(), Arc::new(Mutex::new(BTreeSet::new())));
    let first_hangs = tower::service_fn(move |request: Request<Body>| {
        let (inner, first) = (inner.clone(), seen.lock().insert(request.uri().path().to_owned()));
        async move {
            if first {
                let silence =
                    StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, BoxError>>());
                return Ok(Response::builder().status(503).body(silence.boxed_unsync())?);
            }
            let answer = inner.send(request).await?;
            Ok::<_, BoxError>(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()))
        }
    });
    let cache = Cache::new(&world.env, kube::Client::new(first_hangs, "default"), CacheOptions::default());
    let typed = cache.informer(&kind::<ConfigMap>()).unwrap();
    // This one looks for its scope first.
    let secrets = Kind::<DynamicObject>::dynamic(ApiResource::erase::<Secret>(&()));
    let dynamic = cache.informer(&secrets).unwrap();
    // One that is not used would end.
    let _used = (typed.add_handler(Box::new(|_| {})), dynamic.add_handler(Box::new(|_| {})));
    for _ in 0..100 {
        clock.advance_and_settle(Duration::from_secs(10)).await;
    }
    assert_eq!(cache.unsynced(), []);
    assert_eq!(cache.informer_states().len(), 2);
    cache.stop().await;
}

#[tokio::test]
async fn a_missing_permission_is_named() {
    let world = World::new().await;
    world.faults.refuse(|request| {
        request.uri().query().is_some_and(|query| query.contains("watch=true")).then_some(403)
    });
    let (cache, _) = cached(&world, CacheOptions::default());
    let informer = cache.informer(&kind::<Secret>()).unwrap();
    let mut changes = cache.changes();
    let wait = async {
        loop {
            if let Some(problem) = informer.problem() {
                return problem.to_string();
            }
            changes.changed().await.unwrap();
        }
    };
    let problem = within(&world, "the problem", wait).await;
    assert!(problem.starts_with("not allowed to watch secrets (v1)"), "{problem}");
    cache.stop().await;
}

#[tokio::test]
async fn an_unused_informer_stops_and_a_read_restarts_it() {
    let (world, clock) = World::simulated(5).await;
    let (cache, client) = cached(&world, CacheOptions::default());
    client.list::<Secret>(ListOptions::default()).await.unwrap();
    let informer = cache.informer(&kind::<ConfigMap>()).unwrap();
    let registration = informer.add_handler(Box::new(|_| {}));
    assert!(format!("{cache:?}").contains("Secret"));
    clock.advance_and_settle(Duration::from_secs(1000)).await;
    assert!(!format!("{cache:?}").contains("Secret"), "{cache:?}");
    assert!(format!("{cache:?}").contains("ConfigMap"), "it has a handler");
    client.list::<Secret>(ListOptions::default()).await.unwrap();
    assert!(format!("{cache:?}").contains("Secret"));
    drop(registration);
    cache.stop().await;
    assert!(matches!(cache.informer(&kind::<Secret>()), Err(CacheError::Stopped)));
}

#[tokio::test]
async fn objects_are_resynced_periodically() {
    let (world, clock) = World::simulated(6).await;
    let (cache, client) = cached(&world, CacheOptions::default());
    client.create(&config_map("a", &[])).await.unwrap();
    let informer = cache.informer(&kind::<ConfigMap>()).unwrap();
    let resyncs = Arc::new(AtomicUsize::new(0));
    let counted = resyncs.clone();
    let _registration = informer.add_handler(Box::new(move |event: &Event<ConfigMap>| {
        if matches!(event, Event::Updated { resync: true, old, new, .. } if Arc::ptr_eq(old, new))
            && event.key().name() == "a"
        {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    }));
    informer.synced().await;
    clock.advance_and_settle(Duration::from_secs(8 * 3600)).await;
    assert_eq!(resyncs.load(Ordering::SeqCst), 0);
    clock.advance_and_settle(Duration::from_secs(3 * 3600 + 60)).await;
    assert_eq!(resyncs.load(Ordering::SeqCst), 1);
    cache.stop().await;
}

#[tokio::test]
async fn reads_start_no_informer_with_fail_on_missing_informer() {
    let world = World::new().await;
    let (cache, client) =
        cached(&world, CacheOptions { fail_on_missing_informer: true, ..Default::default() });
    let error = client.get_opt::<ConfigMap>(&key("a")).await.unwrap_err();
    assert!(error.to_string().contains("ConfigMap has no informer"), "{error}");
    let _informer = cache.informer(&kind::<ConfigMap>()).unwrap();
    assert_eq!(client.get_opt::<ConfigMap>(&key("a")).await.unwrap(), None);
    cache.stop().await;
}
