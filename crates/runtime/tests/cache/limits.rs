//! A cache limited to some namespaces: cluster-scoped kinds, and reads outside of the limits.

use std::sync::Arc;

use k1s_runtime::{
    Cache, CacheOptions, GroupKind, InformerOptions, Kind, Manager, ObjectKey,
    cache::{CacheError, Problem},
    client::{Error, ListOptions},
    kind, metadata,
    util::{OperationResult, create_or_patch, create_or_update},
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::{
    ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind, ObjectMeta},
};
use parking_lot::Mutex;

use crate::{
    cached, caught_up,
    common::{World, config_map},
    within,
};

fn limited(namespaces: &[&str]) -> CacheOptions {
    let namespaces = namespaces.iter().map(|namespace| Arc::from(*namespace)).collect();
    CacheOptions { namespaces: Some(namespaces), ..CacheOptions::default() }
}

fn dynamic(kind: &str) -> Kind<DynamicObject> {
    Kind::dynamic(ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind)))
}

async fn make_namespaces(world: &World, names: &[&str]) {
    for name in names {
        let metadata = ObjectMeta { name: Some((*name).into()), ..Default::default() };
        world.live().create(&Namespace { metadata, ..Default::default() }).await.unwrap();
    }
}

fn config_map_in(namespace: &str, name: &str) -> ConfigMap {
    let mut map = config_map(name, &[]);
    map.metadata.namespace = Some(namespace.into());
    map
}

/// Records the paths that a cache requests.
fn paths(world: &World) -> Arc<Mutex<Vec<String>>> {
    let paths: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = paths.clone();
    world.faults.refuse(move |request| {
        noted.lock().push(request.uri().path().to_owned());
        None
    });
    paths
}

#[tokio::test]
async fn cluster_scoped_kinds_are_watched_cluster_wide() {
    let world = World::new().await;
    make_namespaces(&world, &["a", "b"]).await;
    let paths = paths(&world);
    let (cache, client) = cached(&world, limited(&["a"]));
    let names = |found: Vec<String>| found.into_iter().filter(|name| name.len() == 1).collect::<Vec<_>>();
    let typed = within(&world, "typed", client.list::<Namespace>(ListOptions::default())).await.unwrap();
    assert_eq!(names(typed.iter().map(|one| one.name_any()).collect()), ["a", "b"]);
    let partial = client.kind(metadata::<Namespace>());
    let partial = within(&world, "metadata", partial.list(ListOptions::default())).await.unwrap();
    assert_eq!(names(partial.iter().map(|one| one.name_any()).collect()), ["a", "b"]);
    // The scope of a dynamic type comes from the server.
    let namespaces = client.kind(dynamic("Namespace"));
    let found = within(&world, "dynamic", namespaces.list(ListOptions::default())).await.unwrap();
    assert_eq!(names(found.iter().map(|one| one.name_any()).collect()), ["a", "b"]);
    assert!(namespaces.get_opt(&ObjectKey::cluster("b")).await.unwrap().is_some());
    assert!(!paths.lock().iter().any(|path| path.contains("/namespaces/a/")), "{paths:?}");

    // A dynamic namespaced kind is limited as well, and has the index that was added before its scope was known.
    let maps = client.kind(dynamic("ConfigMap"));
    cache.index_field(&dynamic("ConfigMap"), "data.x", |map: &DynamicObject| {
        map.data["data"]["x"].as_str().map(str::to_owned).into_iter().collect()
    });
    world.live().create(&config_map_in("b", "outside")).await.unwrap();
    let mut inside = config_map_in("a", "inside");
    inside.data = Some([("x".to_owned(), "1".to_owned())].into());
    client.create(&inside).await.unwrap();
    let listed = within(&world, "maps", maps.list(ListOptions::default())).await.unwrap();
    let listed: Vec<String> = listed.iter().map(|map| map.namespace().unwrap()).collect();
    assert!(!listed.is_empty() && listed.iter().all(|namespace| namespace == "a"), "{listed:?}");
    let by_index = ListOptions::default().matching_fields([("data.x", "1")]).unwrap();
    assert_eq!(maps.list(by_index).await.unwrap().len(), 1);
    caught_up(&world, &cache).await;
    cache.stop().await;
}

#[tokio::test]
async fn reads_outside_of_the_namespaces_fail_with_an_error_that_names_them() {
    let world = World::new().await;
    make_namespaces(&world, &["a", "b", "c"]).await;
    for namespace in ["a", "b", "c"] {
        world.live().create(&config_map_in(namespace, "x")).await.unwrap();
    }
    let (cache, client) = cached(&world, limited(&["b", "a"]));
    assert!(client.get::<ConfigMap>(&ObjectKey::namespaced("a", "x")).await.is_ok());
    let error = client.get_opt::<ConfigMap>(&ObjectKey::namespaced("c", "x")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "get configmaps c/x: ConfigMap in namespace \"c\" is not in the cache, which holds the namespaces \"a\", \"b\" \
         only; add the namespace to the manager's or the kind's, or read from the server: api_reader(), live()"
    );
    assert!(error.is_outside_cache() && !error.is_not_found());
    let error = client.list::<ConfigMap>(ListOptions::in_namespace("c")).await.unwrap_err();
    assert!(error.to_string().starts_with("list configmaps in c: ConfigMap in namespace \"c\""), "{error}");
    let error = client.kind(dynamic("ConfigMap")).list(ListOptions::in_namespace("c")).await.unwrap_err();
    let Error::Cache { source, .. } = &error else { panic!("{error}") };
    assert!(matches!(&**source, CacheError::OtherNamespace { namespace, .. } if namespace == "c"));
    // Without a namespace, a list returns everything in the cache; live reads see everything.
    let all = client.list::<ConfigMap>(ListOptions::default()).await.unwrap();
    assert!(all.iter().all(|map| map.namespace().as_deref() != Some("c")));
    assert!(client.live().get::<ConfigMap>(&ObjectKey::namespaced("c", "x")).await.is_ok());
    // Writes are not limited.
    client.create(&config_map_in("c", "y")).await.unwrap();
    cache.stop().await;
}

#[tokio::test]
async fn a_missing_permission_is_named_with_its_namespace() {
    let world = World::new().await;
    world.faults.refuse(|request| request.uri().path().contains("/namespaces/b/").then_some(403));
    let (cache, _) = cached(&world, limited(&["a", "b"]));
    let problem = problem_of(&world, &cache, &kind::<Secret>()).await;
    assert!(
        matches!(&problem, Problem::Forbidden { namespace: Some(namespace), .. } if **namespace == *"b"),
        "{problem}"
    );
    assert!(
        problem.to_string().starts_with("not allowed to list secrets (v1) in namespace b: "),
        "{problem}"
    );
    cache.stop().await;
}

#[tokio::test]
async fn a_kind_whose_discovery_is_forbidden_fails_reads() {
    let world = World::new().await;
    world.faults.refuse(|request| (request.uri().path() == "/api").then_some(403));
    let (cache, client) = cached(&world, limited(&["a"]));
    let maps = client.kind(dynamic("ConfigMap"));
    let error = within(&world, "the read", maps.list(ListOptions::default())).await.unwrap_err();
    assert!(error.is_forbidden(), "{error}");
    assert!(error.to_string().contains("not allowed to get the discovery of configmaps (v1)"), "{error}");
    cache.stop().await;
}

async fn problem_of(world: &World, cache: &Cache, kind: &Kind<Secret>) -> Problem {
    let informer = cache.informer(kind).unwrap();
    let mut changes = cache.changes();
    let wait = async {
        loop {
            if let Some(problem) = informer.problem() {
                return problem;
            }
            changes.changed().await.unwrap();
        }
    };
    within(world, "the problem", wait).await
}

#[tokio::test]
async fn create_or_update_finds_objects_that_the_cache_does_not_hold() {
    let world = World::new().await;
    make_namespaces(&world, &["a", "b"]).await;
    let labels = k1s_object::selector::LabelSelector::parse("mine=yes").unwrap();
    let options = InformerOptions { labels: Some(labels), ..Default::default() };
    let (cache, client) = cached(&world, limited(&["a"]).by_object(&kind::<ConfigMap>(), options));
    // In another namespace; and in this one, without the label.
    for namespace in ["b", "a"] {
        let mut done = Vec::new();
        for value in ["1", "1", "2"] {
            let set = |map: &mut ConfigMap| map.data = Some([("k".to_owned(), value.to_owned())].into());
            let made = create_or_update(&client, config_map_in(namespace, "x"), set).await.unwrap();
            assert_eq!(made.0.data.unwrap()["k"], value);
            done.push(made.1);
        }
        assert_eq!(done, [OperationResult::Created, OperationResult::Unchanged, OperationResult::Updated]);
        let set = |map: &mut ConfigMap| map.data = Some([("k".to_owned(), "3".to_owned())].into());
        let made = create_or_patch(&client, config_map_in(namespace, "x"), set).await.unwrap();
        assert_eq!(made.1, OperationResult::Updated);
    }
    cache.stop().await;
}

#[tokio::test]
async fn some_kinds_can_bypass_the_cache() {
    let world = World::new().await;
    let mut options = world.options();
    options.uncached = vec![GroupKind::of::<Secret>(), "Widget.test.k1s.dev".into()];
    let manager = Manager::new(world.kube.clone(), options).unwrap();
    let client = manager.client();
    assert_eq!(client.list::<Secret>(ListOptions::default()).await.unwrap(), []);
    assert_eq!(client.kind(metadata::<Secret>()).list(ListOptions::default()).await.unwrap().len(), 0);
    assert!(client.get_opt::<Secret>(&ObjectKey::namespaced("default", "s")).await.unwrap().is_none());
    assert!(manager.cache().informer_states().is_empty(), "secrets are not watched");
    client.list::<ConfigMap>(ListOptions::default()).await.unwrap();
    assert_eq!(manager.cache().informer_states().len(), 1);
    manager.cache().stop().await;
}
