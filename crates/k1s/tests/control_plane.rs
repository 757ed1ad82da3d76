//! A server with its controllers: started where they are needed, and stopped as one.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use k1s::{
    ControlPlane, Runtime,
    controllers::ControllersOptions,
    env::Env,
    k8s_openapi::{
        api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount},
        apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
    },
    kube::{
        self, Api,
        api::{DeleteParams, ListParams, WatchParams},
    },
    server::{ApiServer, ServerOptions, User},
    store::{MemoryStore, Store},
};

async fn plane(env: &Env, store: &Arc<MemoryStore>, controllers: ControllersOptions) -> ControlPlane {
    let mut options = ServerOptions::default();
    options.root_ca = "the authority".to_owned();
    ControlPlane::start(env, Arc::clone(store) as Arc<dyn Store>, options, controllers).await.unwrap()
}

async fn client(server: &ApiServer, tenant: &str) -> kube::Client {
    kube::Client::new(server.tenant(tenant).await.unwrap().as_user(User::admin()), "default")
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

/// An owner and its dependent.
async fn family(client: &kube::Client) {
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let owner = ConfigMap { metadata: named("owner"), ..ConfigMap::default() };
    let owner = maps.create(&Default::default(), &owner).await.unwrap();
    let reference = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: "owner".to_owned(),
        uid: owner.metadata.uid.unwrap(),
        ..OwnerReference::default()
    };
    let metadata = ObjectMeta { owner_references: Some(vec![reference]), ..named("dependent") };
    let dependent = Secret { metadata, ..Secret::default() };
    Api::<Secret>::default_namespaced(client.clone()).create(&Default::default(), &dependent).await.unwrap();
}

async fn delete_owner(client: &kube::Client) {
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    maps.delete("owner", &DeleteParams::background()).await.unwrap();
}

/// Waits, watching, until an object is there or not.
async fn eventually<K>(objects: &Api<K>, name: &str, there: bool)
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let wait = async {
        loop {
            let list = objects.list(&ListParams::default()).await.unwrap();
            if list.items.iter().any(|one| one.meta().name.as_deref() == Some(name)) == there {
                return;
            }
            let version = list.metadata.resource_version.unwrap();
            let mut watch = objects.watch(&WatchParams::default(), &version).await.unwrap().boxed();
            let _ = watch.next().await;
        }
    };
    let waited = Env::system().timeout(Duration::from_secs(60), wait).await;
    assert!(waited.is_ok(), "{name} is there: not {there}");
}

async fn is_collected(client: &kube::Client) -> bool {
    Api::<Secret>::default_namespaced(client.clone()).get_opt("dependent").await.unwrap().is_none()
}

async fn collected(client: &kube::Client) {
    eventually(&Api::<Secret>::default_namespaced(client.clone()), "dependent", false).await;
}

#[tokio::test]
async fn controllers_run_in_the_tenants_that_need_them_until_they_are_gone() {
    let env = Env::system();
    let plane = plane(&env, &Arc::new(MemoryStore::default()), ControllersOptions::default()).await;
    let (a, b) = (client(plane.server(), "a").await, client(plane.server(), "b").await);
    let plain = ConfigMap { metadata: named("plain"), ..ConfigMap::default() };
    Api::<ConfigMap>::default_namespaced(a.clone()).create(&Default::default(), &plain).await.unwrap();
    let namespace = Namespace { metadata: named("n"), ..Namespace::default() };
    Api::<Namespace>::all(a.clone()).create(&Default::default(), &namespace).await.unwrap();
    let accounts = Api::<ServiceAccount>::namespaced(a.clone(), "n");
    accounts.get("default").await.expect("it is there as soon as the namespace is");
    assert_eq!(plane.tenants_with_controllers(), [""; 0], "nothing here is a matter for controllers");
    family(&b).await;
    assert_eq!(plane.tenants_with_controllers(), ["b"]);
    delete_owner(&b).await;
    collected(&b).await;
    plane.server().delete_tenant("b").await.unwrap();
    assert_eq!(plane.tenants_with_controllers(), [""; 0]);
    // One of the same name is another one.
    let b = client(plane.server(), "b").await;
    family(&b).await;
    delete_owner(&b).await;
    collected(&b).await;
    // A default object that is deleted is a matter for them, too.
    accounts.delete("default", &DeleteParams::default()).await.unwrap();
    assert_eq!(plane.tenants_with_controllers(), ["a", "b"]);
    eventually(&accounts, "default", true).await;
    let namespaces = Api::<Namespace>::all(a.clone());
    namespaces.delete("n", &DeleteParams::default()).await.unwrap();
    eventually(&namespaces, "n", false).await;
    plane.stop().await;
    assert_eq!(plane.tenants_with_controllers(), [""; 0]);
    let left: Vec<String> = env.tasks().iter().map(|task| task.name.to_string()).collect();
    assert!(left.iter().all(|name| !name.contains("controller")), "{left:?}");
}

#[tokio::test]
async fn what_is_left_in_a_store_is_done_after_the_next_start() {
    let (env, store) = (Env::system(), Arc::new(MemoryStore::default()));
    let first = plane(&env, &store, ControllersOptions::none()).await;
    let before = client(first.server(), "default").await;
    family(&before).await;
    delete_owner(&before).await;
    assert_eq!(first.tenants_with_controllers(), [""; 0]);
    first.stop().await;
    let second = plane(&env, &store, ControllersOptions::default()).await;
    assert_eq!(second.tenants_with_controllers(), ["default"]);
    let client = client(second.server(), "default").await;
    collected(&client).await;
    second.stop().await;
}

#[tokio::test]
async fn a_runtime_has_its_controllers_and_can_be_told_to_have_none() {
    let runtime = Runtime::builder().memory().start().await.unwrap();
    family(&runtime.client()).await;
    delete_owner(&runtime.client()).await;
    collected(&runtime.client()).await;
    runtime.stop().await.unwrap();
    let runtime = Runtime::builder().memory().controllers(ControllersOptions::none()).start().await.unwrap();
    family(&runtime.client()).await;
    delete_owner(&runtime.client()).await;
    assert!(!is_collected(&runtime.client()).await);
    runtime.stop().await.unwrap();
}
