//! Owners of dynamic kinds, whose scope is discovered from the server.

use k1s_runtime::{Controller, Handler, Kind, Manager, Request, kind};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::json;

use crate::{
    Seen,
    common::{HANG, World, config_map, idle, start},
};

fn definition(kind: &str, scope: &str) -> CustomResourceDefinition {
    let plural = format!("{}s", kind.to_lowercase());
    serde_json::from_value(json!({
        "metadata": {"name": format!("{plural}.test.k1s.dev")},
        "spec": {
            "group": "test.k1s.dev",
            "names": {"plural": plural, "kind": kind},
            "scope": scope,
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    }))
    .unwrap()
}

fn dynamic(kind: &str) -> Kind<DynamicObject> {
    Kind::dynamic(ApiResource::from_gvk(&GroupVersionKind::gvk("test.k1s.dev", "v1", kind)))
}

fn child(name: &str, owner: &str) -> ConfigMap {
    let mut child = config_map(name, &[]);
    child.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "test.k1s.dev/v1".into(),
        kind: owner.into(),
        name: "w".into(),
        uid: "1".into(),
        controller: Some(true),
        ..Default::default()
    }]);
    child
}

#[tokio::test]
async fn dynamic_owners_are_queued_by_their_scope() {
    let world = World::new().await;
    let (live, manager, seen) = (world.live(), world.manager(), Seen::default());
    // The kinds are not served yet: events of children are kept until they are.
    live.create(&child("of-global", "Global")).await.unwrap();
    live.create(&child("of-local", "Local")).await.unwrap();
    for name in ["Global", "Local"] {
        Controller::managed_by(&manager)
            .for_(dynamic(name))
            .owns(kind::<ConfigMap>())
            .complete(seen.reconciler())
            .unwrap();
    }
    let by_hand = Seen::default();
    Controller::managed_by(&manager)
        .named("by-hand")
        .watches(kind::<ConfigMap>(), Handler::<_, Request>::for_owner(&dynamic("Global")))
        .complete(by_hand.reconciler())
        .unwrap();
    let running = start(&manager);
    live.create(&definition("Global", "Cluster")).await.unwrap();
    live.create(&definition("Local", "Namespaced")).await.unwrap();
    idle(&manager).await;
    let mut queued = seen.take();
    queued.sort();
    assert_eq!((queued, by_hand.take()), (vec!["default/w".to_owned(), "w".into()], vec!["w".to_owned()]));
    live.create(&child("late", "Global")).await.unwrap();
    idle(&manager).await;
    assert_eq!((seen.take(), by_hand.take()), (vec!["w".to_owned()], vec!["w".to_owned()]));
    running.end().await.unwrap();
}

#[tokio::test]
async fn a_manager_of_one_namespace_can_control_cluster_scoped_kinds() {
    let world = World::new().await;
    let (live, seen) = (world.live(), Seen::default());
    let mut options = world.options();
    options.namespaces = Some(vec!["default".into()]);
    let manager = Manager::new(world.kube.clone(), options).unwrap();
    live.create(&definition("Global", "Cluster")).await.unwrap();
    let global = |name: &str| {
        let mut global = DynamicObject::new(name, dynamic("Global").resource());
        global.metadata.namespace = None;
        global
    };
    let globals = live.kind(dynamic("Global"));
    // A definition is served shortly after it is stored.
    let served = async {
        while globals.create(&global("w")).await.is_err() {
            world.env.yield_now().await;
        }
    };
    world.env.timeout(HANG, served).await.unwrap();
    Controller::managed_by(&manager)
        .for_(dynamic("Global"))
        .owns(kind::<ConfigMap>())
        .complete(seen.reconciler())
        .unwrap();
    Controller::managed_by(&manager).for_(kind::<Namespace>()).complete(seen.reconciler()).unwrap();
    let running = start(&manager);
    idle(&manager).await;
    let queued = seen.take();
    assert!(queued.contains(&"w".to_owned()) && queued.contains(&"kube-system".to_owned()), "{queued:?}");
    live.create(&child("of-global", "Global")).await.unwrap();
    idle(&manager).await;
    assert_eq!(seen.take(), ["w"]);
    running.end().await.unwrap();
}
