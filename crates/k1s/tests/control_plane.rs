//! A server with its controllers, which start where they are needed and stop together with it; and leader
//! election on a shared store.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::StreamExt as _;
use k1s::{
    Connect, ControllersOptions, Election, IdleOptions, Manager, ManagerOptions, Runtime,
    controller::{leader::LeaderElectionOptions, manager::Companion},
    env::Env,
    k8s_openapi::{
        api::{
            coordination::v1::Lease,
            core::v1::{ConfigMap, Namespace, Secret, ServiceAccount},
        },
        apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
    },
    kube::{
        self, Api,
        api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams},
    },
    server::{ApiServer, CONTROLLERS_LEASE, ServerOptions, User},
    store::{
        MemoryStore, Store,
        etcd::{EtcdStore, testing::EtcdServer},
    },
};

async fn plane(env: &Env, store: &Arc<MemoryStore>, controllers: ControllersOptions) -> Runtime {
    let mut options = ServerOptions::default();
    options.root_ca = "the authority".to_owned();
    let builder = Runtime::builder().env(env.clone()).shared_store(Arc::clone(store) as Arc<dyn Store>);
    builder.server_options(options).controllers(controllers).start().await.unwrap()
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

/// Watches until an object exists or does not.
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
    accounts.get("default").await.expect("it exists as soon as the namespace does");
    assert_eq!(plane.tenants_with_controllers(), [""; 0], "there is no work for controllers");
    family(&b).await;
    assert_eq!(plane.tenants_with_controllers(), ["b"]);
    delete_owner(&b).await;
    collected(&b).await;
    plane.server().delete_tenant("b").await.unwrap();
    assert_eq!(plane.tenants_with_controllers(), [""; 0]);
    // A new tenant with the same name.
    let b = client(plane.server(), "b").await;
    family(&b).await;
    delete_owner(&b).await;
    collected(&b).await;
    // Deleting a default object is work for controllers, too.
    accounts.delete("default", &DeleteParams::default()).await.unwrap();
    assert_eq!(plane.tenants_with_controllers(), ["a", "b"]);
    eventually(&accounts, "default", true).await;
    let namespaces = Api::<Namespace>::all(a.clone());
    namespaces.delete("n", &DeleteParams::default()).await.unwrap();
    eventually(&namespaces, "n", false).await;
    plane.stop().await.unwrap();
    assert_eq!(plane.tenants_with_controllers(), [""; 0]);
    let left: Vec<String> = env.tasks().iter().map(|task| task.name.to_string()).collect();
    assert!(left.iter().all(|name| !name.contains("controller")), "{left:?}");
}

#[tokio::test]
async fn unfinished_work_is_done_after_the_next_start() {
    let (env, store) = (Env::system(), Arc::new(MemoryStore::default()));
    let first = plane(&env, &store, ControllersOptions::none()).await;
    let before = client(first.server(), "default").await;
    family(&before).await;
    delete_owner(&before).await;
    assert_eq!(first.tenants_with_controllers(), [""; 0]);
    first.stop().await.unwrap();
    let second = plane(&env, &store, ControllersOptions::default()).await;
    assert_eq!(second.tenants_with_controllers(), ["default"]);
    let client = client(second.server(), "default").await;
    collected(&client).await;
    second.stop().await.unwrap();
}

#[tokio::test]
async fn unfinished_work_in_unused_tenants_is_found_at_the_start() {
    let (env, store) = (Env::system(), Arc::new(MemoryStore::default()));
    let first = plane(&env, &store, ControllersOptions::none()).await;
    let (left, gone) = (client(first.server(), "left").await, client(first.server(), "no-account").await);
    client(first.server(), "idle").await;
    half_deleted(&left).await;
    // Only the missing account shows that work is left.
    let accounts = Api::<ServiceAccount>::default_namespaced(gone.clone());
    accounts.delete("default", &DeleteParams::default()).await.unwrap();
    let second = plane(&env, &store, ControllersOptions::default()).await;
    finished(&left).await;
    eventually(&accounts, "default", true).await;
    assert_eq!(second.tenants_with_controllers(), ["left", "no-account"]);
    assert_eq!(second.server().tenants(), ["default", "left", "no-account"], "other tenants are not opened");
    second.stop().await.unwrap();
    first.stop().await.unwrap();
}

/// A dependent whose owner is deleted, and a terminating namespace.
async fn half_deleted(client: &kube::Client) {
    family(client).await;
    delete_owner(client).await;
    let namespaces = Api::<Namespace>::all(client.clone());
    let namespace = Namespace { metadata: named("doomed"), ..Namespace::default() };
    namespaces.create(&Default::default(), &namespace).await.unwrap();
    namespaces.delete("doomed", &DeleteParams::default()).await.unwrap();
}

/// Waits until both are deleted.
async fn finished(client: &kube::Client) {
    collected(client).await;
    eventually(&Api::<Namespace>::all(client.clone()), "doomed", false).await;
}

fn times(lease: u64, retry: u64) -> LeaderElectionOptions {
    LeaderElectionOptions {
        lease_duration: Duration::from_millis(lease),
        renew_deadline: Duration::from_millis(lease / 2),
        retry_period: Duration::from_millis(retry),
        ..LeaderElectionOptions::default()
    }
}

async fn candidate(env: &Env, store: &Arc<dyn Store>, times: LeaderElectionOptions) -> Runtime {
    let builder = Runtime::builder().env(env.clone()).shared_store(Arc::clone(store));
    builder.election(Election::Always(times)).start().await.unwrap()
}

/// Does not release its Lease, as if the process had been killed.
fn without_release(times: LeaderElectionOptions) -> LeaderElectionOptions {
    LeaderElectionOptions { release_on_cancel: false, ..times }
}

#[tokio::test]
async fn one_leader_does_the_work_and_another_takes_over_when_it_is_killed() {
    let (env, store) = (Env::system(), Arc::new(MemoryStore::default()));
    // Writes through another server: the candidates learn of it only through the store.
    let writer = plane(&env, &store, ControllersOptions::none()).await;
    let store: Arc<dyn Store> = store;
    let first = candidate(&env, &store, without_release(times(1000, 100))).await;
    let (a, b) = (client(writer.server(), "a").await, client(writer.server(), "b").await);
    half_deleted(&a).await;
    finished(&a).await;
    let second = candidate(&env, &store, times(1000, 100)).await;
    half_deleted(&b).await;
    finished(&b).await;
    assert_eq!(first.tenants_with_controllers(), ["a", "b"]);
    assert_eq!(second.tenants_with_controllers(), [""; 0], "another one leads");

    let c = client(writer.server(), "c").await;
    family(&c).await;
    drop(first);
    half_deleted(&a).await;
    delete_owner(&c).await;
    finished(&a).await;
    collected(&c).await;
    assert_eq!(second.tenants_with_controllers(), ["a", "c"], "in b nothing is left to do");
    second.stop().await.unwrap();
    writer.stop().await.unwrap();
}

#[tokio::test]
async fn a_stopped_leader_hands_over_at_once() {
    let (env, store) = (Env::system(), Arc::new(MemoryStore::default()));
    let writer = plane(&env, &store, ControllersOptions::none()).await;
    let store: Arc<dyn Store> = store;
    // No candidate would check the Lease again during this test.
    let hours = || times(4 * 3_600_000, 3_600_000);
    let first = candidate(&env, &store, hours()).await;
    let client = client(writer.server(), "default").await;
    half_deleted(&client).await;
    finished(&client).await;
    let second = candidate(&env, &store, hours()).await;
    first.stop().await.unwrap();
    half_deleted(&client).await;
    finished(&client).await;
    assert_eq!(second.tenants_with_controllers(), ["default"]);
    second.stop().await.unwrap();
    let (namespace, name) = CONTROLLERS_LEASE;
    let lease = Api::<Lease>::namespaced(client, namespace).get(name).await.unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some(""), "it was released");
    writer.stop().await.unwrap();
}

#[tokio::test]
async fn the_controllers_lease_is_not_work_for_them() {
    let (env, store) = (Env::system(), Arc::new(MemoryStore::default()) as Arc<dyn Store>);
    let plane = candidate(&env, &store, times(1000, 100)).await;
    let client = client(plane.server(), "default").await;
    let (namespace, name) = CONTROLLERS_LEASE;
    eventually(&Api::<Lease>::namespaced(client.clone(), namespace), name, true).await;
    assert_eq!(plane.tenants_with_controllers(), [""; 0]);
    plane.stop().await.unwrap();
}

#[tokio::test]
async fn a_follower_does_not_wait_for_the_leaders_controllers() {
    let (env, store) = (Env::system(), Arc::new(MemoryStore::default()) as Arc<dyn Store>);
    let leader = candidate(&env, &store, times(2000, 50)).await;
    let inside = client(leader.server(), "default").await;
    half_deleted(&inside).await;
    finished(&inside).await;
    let start = Runtime::builder().env(env.clone()).store(Arc::clone(&store));
    let runtime = start.election(Election::Always(times(2000, 50))).start().await.unwrap();
    family(&runtime.client()).await;
    let manager = Manager::new(&runtime, ManagerOptions::local()).unwrap();
    let report = manager.run_until_idle(IdleOptions::within(Duration::from_secs(60))).await.unwrap();
    assert!(report.control_plane.is_empty(), "{report}");
    delete_owner(&runtime.client()).await;
    collected(&runtime.client()).await;
    leader.stop().await.unwrap();
    // From here on it is the leader, and its controllers count.
    half_deleted(&runtime.client()).await;
    let manager = Manager::new(&runtime, ManagerOptions::local()).unwrap();
    let mut beside = Connect::companion(&&runtime).unwrap();
    beside.wait_for(|companion| matches!(companion, Companion::Running(_))).await.unwrap();
    let report = manager.run_until_idle(IdleOptions::within(Duration::from_secs(60))).await.unwrap();
    assert!(is_collected(&runtime.client()).await);
    assert!(report.control_plane.contains_key("garbage-collector"), "{report}");
    runtime.stop().await.unwrap();
}

/// Counts the deletion events per uid, until all wanted uids were deleted.
async fn deletions(client: kube::Client, from: String, wanted: BTreeSet<String>) -> BTreeMap<String, usize> {
    let secrets = Api::<Secret>::all(client);
    let mut seen = BTreeMap::new();
    let (mut events, mut last) = (secrets.watch(&WatchParams::default(), &from).await.unwrap().boxed(), from);
    while !wanted.iter().all(|uid| seen.contains_key(uid)) {
        match events.next().await {
            Some(Ok(WatchEvent::Deleted(secret))) => {
                last = secret.metadata.resource_version.unwrap();
                *seen.entry(secret.metadata.uid.unwrap()).or_default() += 1;
            }
            Some(Ok(WatchEvent::Added(other) | WatchEvent::Modified(other))) => {
                last = other.metadata.resource_version.unwrap();
            }
            Some(Ok(_)) => {}
            _ => events = secrets.watch(&WatchParams::default(), &last).await.unwrap().boxed(),
        }
    }
    seen
}

#[tokio::test]
async fn on_etcd_leaders_are_killed_in_turn_and_everything_is_deleted_once() {
    let env = Env::system();
    let Some(etcd) = EtcdServer::start(&env).await.unwrap() else { return };
    let connect =
        async || Arc::new(EtcdStore::connect(env.clone(), etcd.options()).await.unwrap()) as Arc<dyn Store>;
    let writer = Runtime::builder().env(env.clone()).store(connect().await);
    let writer = writer.controllers(ControllersOptions::none()).start().await.unwrap();
    let client = client(writer.server(), "t").await;
    let secrets = Api::<Secret>::all(client.clone());
    let from = secrets.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut wanted = BTreeSet::new();
    let mut planes = vec![candidate(&env, &connect().await, without_release(times(1000, 100))).await];
    for round in 0..3 {
        planes.push(candidate(&env, &connect().await, without_release(times(1000, 100))).await);
        let space = format!("n{round}");
        let namespaces = Api::<Namespace>::all(client.clone());
        let namespace = Namespace { metadata: named(&space), ..Namespace::default() };
        namespaces.create(&Default::default(), &namespace).await.unwrap();
        let inside = Api::<Secret>::namespaced(client.clone(), &space);
        for number in 0..20 {
            let secret = Secret { metadata: named(&format!("s{number}")), ..Secret::default() };
            wanted.insert(inside.create(&Default::default(), &secret).await.unwrap().metadata.uid.unwrap());
        }
        let owner = secrets_family(&client, round).await;
        wanted.extend(owner);
        namespaces.delete(&space, &DeleteParams::default()).await.unwrap();
        let maps = Api::<ConfigMap>::default_namespaced(client.clone());
        maps.delete(&format!("owner{round}"), &DeleteParams::background()).await.unwrap();
        // The current leader, in the middle of its work.
        drop(planes.remove(0));
        eventually(&namespaces, &space, false).await;
    }
    let told = env.timeout(Duration::from_secs(60), deletions(client.clone(), from, wanted.clone()));
    let told = told.await.unwrap();
    assert!(told.values().all(|count| *count == 1), "{told:?}");
    assert_eq!(told.keys().cloned().collect::<BTreeSet<_>>(), wanted);
    for plane in planes {
        plane.stop().await.unwrap();
    }
    writer.stop().await.unwrap();
}

/// Creates an owner in the default namespace; returns the uids of its dependents.
async fn secrets_family(client: &kube::Client, round: usize) -> Vec<String> {
    let name = format!("owner{round}");
    let owner = ConfigMap { metadata: named(&name), ..ConfigMap::default() };
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let uid = maps.create(&Default::default(), &owner).await.unwrap().metadata.uid.unwrap();
    let reference = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name,
        uid,
        ..OwnerReference::default()
    };
    let mut uids = Vec::new();
    for number in 0..20 {
        let metadata = ObjectMeta {
            owner_references: Some(vec![reference.clone()]),
            ..named(&format!("dependent{round}-{number}"))
        };
        let dependent = Secret { metadata, ..Secret::default() };
        let secrets = Api::<Secret>::default_namespaced(client.clone());
        uids.push(secrets.create(&Default::default(), &dependent).await.unwrap().metadata.uid.unwrap());
    }
    uids
}

#[tokio::test]
async fn a_namespace_deletion_interrupted_by_a_restart_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let start = || Runtime::builder().disk(folder.path());
    let runtime = start().start().await.unwrap();
    let namespaces = Api::<Namespace>::all(runtime.client());
    let namespace = Namespace { metadata: named("n"), ..Namespace::default() };
    namespaces.create(&Default::default(), &namespace).await.unwrap();
    let metadata = ObjectMeta { finalizers: Some(vec!["example.com/hold".to_owned()]), ..named("held") };
    let held = ConfigMap { metadata, ..ConfigMap::default() };
    let maps = Api::<ConfigMap>::namespaced(runtime.client(), "n");
    maps.create(&Default::default(), &held).await.unwrap();
    namespaces.delete("n", &DeleteParams::default()).await.unwrap();
    runtime.stop().await.unwrap();
    // The last finalizer is removed while no controllers run.
    let runtime = start().controllers(ControllersOptions::none()).start().await.unwrap();
    let maps = Api::<ConfigMap>::namespaced(runtime.client(), "n");
    let nothing = serde_json::json!({"metadata": {"finalizers": null}});
    maps.patch("held", &PatchParams::default(), &Patch::Merge(nothing)).await.unwrap();
    assert!(Api::<Namespace>::all(runtime.client()).get_opt("n").await.unwrap().is_some());
    runtime.stop().await.unwrap();
    let runtime = start().start().await.unwrap();
    eventually(&Api::<Namespace>::all(runtime.client()), "n", false).await;
    runtime.stop().await.unwrap();
}

#[tokio::test]
async fn a_runtime_runs_controllers_unless_they_are_turned_off() {
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
